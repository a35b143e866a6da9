"""From what a person writes to the pages behind it: a path, or an address of a field that lives elsewhere."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from typing import Any

from memoryfield.errors import FieldNotFound, QueryError
from memoryfield.format.directory import PageDirectory
from memoryfield.format.pages import open_pages
from memoryfield.format.zippages import ZipPages
from memoryfield.stores.pages import StorePages
from memoryfield.stores.protocol import Store

# two letters at least: "C:" is a drive
_ADDRESS = re.compile(r"([a-z][a-z0-9.-]*(?:\+[a-z]+)?[a-z0-9])://", re.IGNORECASE)
_NEEDS = {"http": "httpx", "s3": "obstore", "git": "pygit2", "fsspec": "fsspec"}


def is_address(place: object) -> bool:
    """Say whether *place* is an address such as ``s3://bucket/notes``, not a path."""
    return isinstance(place, str) and _ADDRESS.match(place) is not None


def open_store(address: str, **options: Any) -> Store:
    """Return the store behind an address; nothing is read yet, except of a git repository.

    Args:
        address: ``https://...`` (a server of memoryfields), ``s3://bucket/prefix``, ``git+file://PATH@REVISION``, or
            anything that fsspec reads.
        options: Of the store: ``token``, ``timeout``, ``writes`` (HTTP); what obstore's ``S3Store`` takes; what
            fsspec's file system takes.

    Raises:
        QueryError: No such address, or an option that the store does not have.
        FieldNotFound: A package is missing, or nothing is there.
    """
    found = _ADDRESS.match(address)
    if found is None:
        raise QueryError(f"{address!r} is no address such as https://host/field or s3://bucket/field")
    scheme = found.group(1).lower()
    if scheme in ("http", "https"):
        _need("http")
        from memoryfield.stores.http import HttpStore

        return HttpStore(address, **options)
    if scheme == "s3":
        _need("s3")
        from memoryfield.stores.s3 import S3Store

        return S3Store(address, **options)
    if scheme == "git+file":
        _need("git")
        from memoryfield.stores.git import GitStore

        return GitStore(address, **options)
    if scheme in ("file", "local"):
        raise QueryError("a field on this machine is opened by its path, without file://")
    _need("fsspec")
    from memoryfield.stores.anywhere import FsspecStore

    return FsspecStore(address, **options)


def open_source(
    place: str | os.PathLike[str], create: bool = False, **options: Any
) -> PageDirectory | ZipPages | StorePages:
    """Open a directory, an archive or an address.

    Args:
        place: A path, or an address as ``open_store`` takes it.
        create: Make the directory when it is missing; a place elsewhere is never made.
        options: See ``open_store``; none for a path.

    Raises:
        FieldNotFound: Nothing is there.
        MemoryfieldError: As ``open_pages`` and ``open_store``.
    """
    if isinstance(place, str) and is_address(place):
        return StorePages(open_store(place, **options))
    if options:
        raise QueryError(f"a path takes no {next(iter(options))}")
    return open_pages(place, create)


def _need(extra: str) -> None:
    package = _NEEDS[extra]
    if find_spec(package) is None:
        raise FieldNotFound(
            f"the package {package} is needed for that address: pip install 'memoryfield-lab[{extra}]' (or {package})"
        )
