"""A field in anything that fsspec reads (SFTP, WebDAV, Google Cloud, memory and more); read only.

fsspec's writes are no base for more: half a file is committed on an exception, and conditions are not checked. Its
listings are asked for anew each time: a cached one hides what others wrote.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from memoryfield.errors import FieldNotFound, QueryError, ReadOnlyField, StoreRefused, StoreUnreachable
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.stores.protocol import Fetched, Listed, Listing, sorted_out

# Of what a file system says of a file, that which changes when the bytes do; the first that is there is taken.
_VERSIONS = ("ETag", "etag", "e_tag", "md5", "md5Hash", "checksum", "versionId", "generation", "contentHash")
_TIMES = ("mtime", "last_modified", "LastModified", "modified", "updated", "created")
_OWN_PATHS = ("file", "local")
_SERVERS = ("host", "port", "endpoint_url", "base_url", "account_name", "project")  # options that say where it is


class FsspecStore:
    """A field in a file system of fsspec.

    Args:
        address: For instance ``sftp://host/notes`` or ``memory://notes``; chains (``::``) are refused.
        options: What that file system takes.

    Raises:
        QueryError: No such file system, or a chain.
        FieldNotFound: The package that it needs is missing.
    """

    read_only = True

    def __init__(self, address: str, **options: Any) -> None:
        import fsspec

        scheme = address.partition("://")[0].lower()
        if "::" in address or scheme in _OWN_PATHS:
            raise QueryError("chains of addresses, and files of this machine by address, are not opened")
        self.place = _shown(address)
        try:
            self._system, path = fsspec.core.url_to_fs(address, use_listings_cache=False, **options)
        except ImportError as error:
            raise FieldNotFound(f"{self.place} needs a package that is not installed: {error.name or scheme}") from None
        except Exception:  # what it says may repeat the address with its password
            raise QueryError(f"{self.place}: fsspec knows no such address, or cannot open it") from None
        self._path = str(path).rstrip("/")
        servers = [f"{key}={str(options[key]).rpartition('@')[2]}" for key in _SERVERS if key in options]
        self.identity = " ".join([self.place, *servers])

    def __repr__(self) -> str:
        return f"<FsspecStore {self.place!r}>"

    def list(self) -> Listing:
        """Return what is there now."""
        try:
            self._system.invalidate_cache()
            found = self._system.ls(self._path, detail=True)
        except (FileNotFoundError, NotADirectoryError):
            raise FieldNotFound(f"{self.place}: there is no such directory") from None
        except PermissionError:
            raise StoreRefused(f"{self.place} may not be read") from None
        except Exception:
            raise StoreUnreachable(f"{self.place}: no usable answer") from None
        return sorted_out(map(self._listed, found), self.place, writes=False)

    def _listed(self, info: Mapping[str, Any]) -> Listed:
        name = str(info.get("name", "")).rstrip("/").rpartition("/")[2]
        if info.get("type") != "file" or info.get("islink"):
            return Listed(f"{name}/", "")
        size = info.get("size")
        moment = next((info[key] for key in _TIMES if info.get(key) is not None), None)
        version = next((info[key] for key in _VERSIONS if info.get(key)), None)
        if version is None and moment is not None:
            version = f"{moment} {size}"
        return Listed(name, "" if version is None else str(version), size, _nanoseconds(moment))

    def read_many(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        """Yield files as they are now."""
        for item in wanted:
            largest = LARGEST_PAGE if item.filename.endswith(".md") else (item.size or LARGEST_PAGE)
            try:
                # one byte more than may be: it shows that there is more
                raw = self._system.cat_file(f"{self._path}/{item.filename}", start=0, end=largest + 1)
            except (FileNotFoundError, IsADirectoryError):
                yield Fetched(item.filename, None, "")
                continue
            except PermissionError:
                raise StoreRefused(f"{item.filename} in {self.place} may not be read") from None
            except Exception:
                raise StoreUnreachable(f"{item.filename} in {self.place}: no usable answer") from None
            if not isinstance(raw, bytes) or len(raw) > largest:
                raise StoreRefused(f"{item.filename} in {self.place} is larger than {largest:,} bytes")
            yield Fetched(item.filename, raw, item.tag, item.modified_ns)

    def write_if(self, filename: str, raw: bytes, tag: str | None) -> str:
        """Refuse: fsspec checks no conditions."""
        raise ReadOnlyField(f"{self.place} is read only: through fsspec nothing is written on a condition")

    def delete_if(self, filename: str, tag: str) -> None:
        """Refuse: fsspec checks no conditions."""
        self.write_if(filename, b"", tag)

    def open_zip(self) -> BinaryIO | None:
        """Return None: a file system makes no archives."""
        return None


def _nanoseconds(moment: Any) -> int:
    if hasattr(moment, "timestamp"):
        return int(moment.timestamp() * 1_000_000) * 1000
    if isinstance(moment, int | float) and 0 < moment < 2**33:
        return int(moment * 1_000_000) * 1000
    return 0


def _shown(address: str) -> str:
    """Return an address without user, password, query and fragment."""
    scheme, _, rest = re.split(r"[?#]", address, maxsplit=1)[0].partition("://")
    host, slash, path = rest.partition("/")
    return f"{scheme.lower()}://{host.rpartition('@')[2]}{slash}{path.rstrip('/')}"
