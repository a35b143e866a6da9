"""A field below a prefix of an S3 bucket, or of anything that speaks S3; through obstore.

A page's tag is its ETag. Writes are conditional on it, in the store itself. A deletion cannot be: the tag is compared
right before it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import unquote, urlsplit

from memoryfield.errors import (
    MemoryfieldError,
    PageChanged,
    PageExists,
    QueryError,
    ReadOnlyField,
    StoreRefused,
    StoreUnreachable,
)
from memoryfield.format.snapshot import LARGEST_PAGE
from memoryfield.stores.protocol import MOST_ENTRIES, Fetched, Listed, Listing, sorted_out
from memoryfield.stores.reading import at_once

if TYPE_CHECKING:
    from obstore.store import S3Store as Bucket

CONCURRENT = 32
_PART = 1000  # entries; what S3 gives at a time
_NOWHERE = "memoryfield-looks-whether-this-is-a-bucket"  # no object has this name


class S3Store:
    """A field in a bucket.

    Keys, region and endpoint are those of the environment (``AWS_ACCESS_KEY_ID`` and so on) unless they are given.

    Args:
        address: ``s3://bucket/prefix``; the pages are the objects directly below the prefix.
        timeout: Seconds for one request.
        retries: How often a request is made again.
        config: What obstore's ``S3Store`` takes, for instance ``endpoint``, ``region``, ``access_key_id``,
            ``secret_access_key``, ``skip_signature``.

    Raises:
        QueryError: The address names no bucket, or an option is unknown.
    """

    read_only = False

    def __init__(self, address: str, *, timeout: float = 30.0, retries: int = 3, **config: Any) -> None:
        from obstore.store import S3Store as Bucket

        parts = urlsplit(address)
        if "@" in parts.netloc:
            raise QueryError("an S3 address holds no keys: put them in the environment, or give them as options")
        prefix = unquote(parts.path).strip("/")
        if not parts.netloc or parts.query or parts.fragment or ".." in prefix.split("/") or "//" in prefix:
            raise QueryError("an S3 address is s3://bucket/prefix")
        self.place = f"s3://{parts.netloc}/{prefix}"
        in_environment = os.environ.get("AWS_ENDPOINT_URL") or os.environ.get("AWS_ENDPOINT") or ""
        endpoint = str(config.get("endpoint") or config.get("aws_endpoint") or in_environment)
        self.identity = f"{self.place} at {endpoint.rpartition('@')[2] or 'the default endpoint'}"
        self._patience = timeout * (retries + 1)  # seconds for a part of a listing
        client: dict[str, Any] = {"timeout": timedelta(seconds=timeout), "connect_timeout": timedelta(seconds=timeout)}
        if endpoint.startswith("http://"):
            client["allow_http"] = True
        retry: dict[str, Any] = {"max_retries": retries, "retry_timeout": timedelta(seconds=timeout * (retries + 1))}
        try:
            self._bucket: Bucket = Bucket(
                parts.netloc,
                prefix=prefix or None,
                client_options=client,  # type: ignore[arg-type]  # a plain mapping
                retry_config=retry,  # type: ignore[arg-type]  # its stubs ask for a typed one
                **config,
            )
        except Exception:  # obstore repeats in its message what it was given, keys included
            raise QueryError(f"{self.place}: an option for the store is unknown or has no such value") from None

    def __repr__(self) -> str:
        return f"<S3Store {self.place!r}>"

    def list(self) -> Listing:
        """Return what is directly below the prefix."""
        with self._errors("the listing"):
            # a loop of its own, on a thread of its own: a notebook has one that is running
            with ThreadPoolExecutor(1, thread_name_prefix="memoryfield-s3-list") as thread:
                entries = thread.submit(asyncio.run, self._entries()).result()
            if not entries:
                self._check_empty()
        return sorted_out(entries, self.place)

    async def _entries(self) -> Sequence[Listed]:
        """Return what is listed; asynchronously, since a listing that never ends could not be stopped otherwise."""
        import obstore

        found: dict[str, Listed] = {}
        parts = aiter(obstore.list(self._bucket, chunk_size=_PART))
        while True:
            try:
                part = await asyncio.wait_for(anext(parts), self._patience)
            except StopAsyncIteration:
                return tuple(found.values())
            for item in part:
                if item["path"] in found or len(found) > MOST_ENTRIES:
                    raise StoreRefused(f"{self.place}: the listing does not end; nothing was changed")
                moment = int(item["last_modified"].timestamp() * 1_000_000) * 1000
                found[item["path"]] = Listed(item["path"], item["e_tag"] or "", item["size"], moment)

    def _check_empty(self) -> None:
        """Refuse an empty listing of something that has an answer to everything, as a page to log in has."""
        import obstore

        try:
            obstore.head(self._bucket, _NOWHERE)
        except FileNotFoundError:
            return
        raise StoreRefused(f"{self.place} answers with a web page (a login?), not as a bucket; nothing was changed")

    def read_many(self, wanted: Sequence[Listed]) -> Iterator[Fetched]:
        """Yield objects as they are now, several at a time."""
        return at_once(self._read, wanted, CONCURRENT)

    def _read(self, item: Listed) -> Fetched:
        import obstore

        largest = LARGEST_PAGE if item.filename.endswith(".md") else (item.size or LARGEST_PAGE)
        with self._errors(item.filename):
            try:
                found = obstore.get(self._bucket, item.filename)
                meta = found.meta
                if meta["size"] > largest:
                    raise StoreRefused(f"{item.filename} in {self.place} is larger than {largest:,} bytes")
                raw = bytes(found.bytes())
            except FileNotFoundError:
                return Fetched(item.filename, None, "")
        if len(raw) != meta["size"]:
            raise StoreUnreachable(f"{item.filename} in {self.place}: the answer breaks off before the end")
        moment = int(meta["last_modified"].timestamp() * 1_000_000) * 1000
        return Fetched(item.filename, raw, meta["e_tag"] or "", moment)

    def write_if(self, filename: str, raw: bytes, tag: str | None) -> str:
        """Write an object; see ``Store``."""
        import obstore
        from obstore.exceptions import AlreadyExistsError, PreconditionError

        with self._errors(filename):
            try:
                done = obstore.put(
                    self._bucket,
                    filename,
                    raw,
                    mode="create" if tag is None else {"e_tag": tag},
                    use_multipart=False,
                    attributes={"Content-Type": "text/markdown; charset=utf-8"},
                )
            except AlreadyExistsError:
                raise PageExists(f"{filename} is in {self.place} already; nothing was written") from None
            except (PreconditionError, FileNotFoundError):
                message = f"{filename} in {self.place} was changed meanwhile; nothing was written: read it again"
                raise PageChanged(message) from None
        return done["e_tag"] or ""

    def delete_if(self, filename: str, tag: str) -> None:
        """Delete an object; see ``Store``."""
        import obstore

        with self._errors(filename):
            try:
                now = obstore.head(self._bucket, filename)["e_tag"]
            except FileNotFoundError:
                raise PageChanged(f"{filename} in {self.place} was deleted meanwhile") from None
            if now != tag:
                raise PageChanged(f"{filename} in {self.place} was changed meanwhile; it was not deleted")
            obstore.delete(self._bucket, filename)

    def open_zip(self) -> BinaryIO | None:
        """Return None: a bucket makes no archives."""
        return None

    @contextlib.contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        """Turn errors of the store into ours; their own texts may hold keys and are not repeated."""
        from obstore.exceptions import (
            BaseError,
            InvalidPathError,
            NotSupportedError,
            PermissionDeniedError,
            UnauthenticatedError,
        )

        try:
            yield
        except MemoryfieldError:
            raise
        except FileNotFoundError:
            raise StoreRefused(f"{self.place}: there is no such bucket") from None
        except TimeoutError:
            raise StoreUnreachable(f"{self.place}: {what} does not end within {self._patience:g} seconds") from None
        except (PermissionDeniedError, UnauthenticatedError) as error:
            if what != "the listing" and isinstance(error, PermissionDeniedError):
                raise ReadOnlyField(f"{self.place} does not allow that for {what} with these keys") from None
            raise StoreRefused(f"{self.place} does not let these keys in (or none were given)") from None
        except InvalidPathError:
            message = f"{self.place} holds an object whose name no file can have (.. or // or a line end in it)"
            raise StoreRefused(f"{message}: give it another name, or open another part of the bucket") from None
        except (NotSupportedError, NotImplementedError):
            raise StoreRefused(f"{self.place} cannot write on a condition; it is read only for us") from None
        except (BaseError, OSError, ValueError):
            raise StoreUnreachable(f"{self.place}: no usable answer for {what} (tried several times)") from None
