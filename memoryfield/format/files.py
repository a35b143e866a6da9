"""One directory opened for work: read, write and remove the files directly in it, never through a link.

Where the system can (Linux, macOS), every call is relative to the descriptor of the directory and refuses links by
itself. Elsewhere (Windows) a file is looked at before it is opened and compared with what was opened. What the files
mean is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Protocol

from memoryfield.errors import FieldError, FieldNotFound, InvalidName, ReadOnlyField

CAN_BE_RELATIVE = (
    hasattr(os, "O_NOFOLLOW")
    and hasattr(os, "O_DIRECTORY")
    and {os.open, os.stat, os.unlink, os.rename, os.link} <= os.supports_dir_fd
    and {os.scandir, os.listdir} <= os.supports_fd
)
# What a system does not know counts as 0. O_NONBLOCK: opening a named pipe must not wait for a writer.
_SAFE_FLAGS = sum(getattr(os, flag, 0) for flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"))
READ_FLAGS = os.O_RDONLY | _SAFE_FLAGS
CREATE_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _SAFE_FLAGS

TEMPORARY_PREFIX = ".memoryfield-"
TEMPORARY_SUFFIX = ".tmp"
LEFTOVER_AGE = 3600.0  # seconds after which a temporary file must stem from a process that was killed
READ_BLOCK = 65536
_OUT_OF_RESOURCES = frozenset([errno.EMFILE, errno.ENFILE, errno.ENOMEM])


class Unreadable(Exception):
    """A file that is there but is not read; the text says why in a few words."""


def flat(filename: str) -> str:
    """Return *filename* if it names a file directly in a directory.

    Raises:
        InvalidName: It is empty, a path, or holds a NUL.
    """
    separators = [c for c in (os.sep, os.altsep, "\0") if c]
    if filename in ("", ".", "..") or any(c in filename for c in separators):
        raise InvalidName(f"{filename!r} is not the name of a file directly in a field")
    return filename


def refusal(error: OSError) -> Unreadable | None:
    """Return what to say of a file that could not be opened; None where it is gone.

    Raises:
        OSError: The trouble is the process's, not the file's: leaving pages out for it would look like their deletion.
    """
    if error.errno in _OUT_OF_RESOURCES:
        raise error
    if error.errno == errno.ENOENT:
        return None
    if error.errno == errno.ELOOP:
        return Unreadable("symbolic link")
    return Unreadable(f"not readable ({error.strerror or error})")


def kind(mode: int) -> str | None:
    """Return what a file is, in words, from its ``st_mode``; None for a regular file."""
    if stat.S_ISREG(mode):
        return None
    for is_kind, words in (
        (stat.S_ISLNK, "symbolic link"),
        (stat.S_ISDIR, "sub-directory"),
        (stat.S_ISFIFO, "named pipe"),
        (stat.S_ISSOCK, "socket"),
        (stat.S_ISCHR, "device"),
        (stat.S_ISBLK, "device"),
    ):
        if is_kind(mode):
            return words
    return "not a regular file"


def same_file(before: os.stat_result, now: os.stat_result) -> bool:
    """Say whether two looks at a name saw the same file with the same content, as far as stat data tell."""
    return (before.st_ino, before.st_size, before.st_mtime_ns, before.st_ctime_ns, before.st_mode) == (
        now.st_ino,
        now.st_size,
        now.st_mtime_ns,
        now.st_ctime_ns,
        now.st_mode,
    )


class Opener(Protocol):
    """What ``Folder.opener`` returns: ``os.open`` in its simplest form."""

    def __call__(self, path: str, flags: int, /, *, dir_fd: int | None) -> int:
        """Open a file and return its descriptor."""


class Folder:
    """A directory held open; use it in a ``with`` statement.

    Attributes:
        path: The directory.
        descriptor: Its descriptor, where work is relative to it.

    Args:
        path: The directory; it may itself be reached through a link, its files may not.
        relative: Work relative to a descriptor of the directory; the default is to do so where it is possible.

    Raises:
        FieldNotFound: No such directory.
    """

    def __init__(self, path: Path, *, relative: bool = CAN_BE_RELATIVE) -> None:
        self.path = path
        self.descriptor: int | None = None
        try:
            if relative:
                self.descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            elif not stat.S_ISDIR(os.stat(path).st_mode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
        except OSError as error:
            reason = error.strerror or error
            raise FieldNotFound(f"{path} cannot be opened as a directory of pages: {reason}") from error

    def __enter__(self) -> Folder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None

    def _place(self, filename: str) -> str:
        return filename if self.descriptor is not None else os.path.join(self.path, filename)

    # Reading

    def scan(self) -> list[os.DirEntry[str]]:
        """Return what stands in the directory, in the system's order."""
        try:
            with os.scandir(self.path if self.descriptor is None else self.descriptor) as entries:
                return list(entries)
        except OSError as error:
            raise FieldNotFound(f"{self.path} cannot be listed: {error.strerror or error}") from error

    def names(self) -> list[str]:
        """Return the names of what stands in the directory, in the system's order."""
        try:
            return os.listdir(self.path if self.descriptor is None else self.descriptor)
        except OSError as error:
            raise FieldNotFound(f"{self.path} cannot be listed: {error.strerror or error}") from error

    def opener(self) -> Opener:
        """Return a function that opens a file for reading without following a link; call it as ``os.open``.

        Its arguments are the filename, ``READ_FLAGS``, and ``dir_fd=folder.descriptor``. Where the system can refuse
        links it is ``os.open`` itself: a scan calls it once a page, and a wrapper would cost a fifth of the scan.
        """
        return os.open if self.descriptor is not None else self._open_compared

    def _open_compared(self, filename: str, flags: int, *, dir_fd: int | None = None) -> int:
        """Open a file on a system that cannot refuse links when opening."""
        seen = self.status(filename)
        if not stat.S_ISREG(seen.st_mode) or getattr(seen, "st_reparse_tag", None):
            raise Unreadable(kind(seen.st_mode) or "symbolic link")
        descriptor = os.open(self._place(filename), flags, dir_fd=dir_fd)
        opened = os.fstat(descriptor)
        if (opened.st_ino, opened.st_dev) != (seen.st_ino, seen.st_dev):
            os.close(descriptor)
            raise Unreadable("replaced while it was opened")
        return descriptor

    def status(self, filename: str) -> os.stat_result:
        """Return the stat data of a name itself, not of what a link points to."""
        return os.stat(self._place(filename), dir_fd=self.descriptor, follow_symlinks=False)

    def asker(self) -> Callable[[str], os.stat_result]:
        """Return ``status`` for many names; see ``opener``."""
        if self.descriptor is None:
            return self.status
        return functools.partial(os.stat, dir_fd=self.descriptor, follow_symlinks=False)

    def is_there(self, filename: str) -> bool:
        """Say whether anything of that name stands in the directory."""
        try:
            self.status(filename)
        except FileNotFoundError:
            return False
        return True

    @contextlib.contextmanager
    def opened(self, filename: str) -> Iterator[tuple[int, os.stat_result]]:
        """Open a file for reading and give its descriptor and stat data.

        Raises:
            FileNotFoundError: No such file.
            Unreadable: Something else than a regular file, or one without permission.
        """
        try:
            descriptor = self.opener()(flat(filename), READ_FLAGS, dir_fd=self.descriptor)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise refusal(error) or error from error
        try:
            status = os.fstat(descriptor)
            words = kind(status.st_mode)
            if words is not None:
                raise Unreadable(words)
            yield descriptor, status
        finally:
            os.close(descriptor)

    def read(self, filename: str, limit: int | None = None) -> tuple[bytes, os.stat_result]:
        """Return the bytes of a file and the stat data from before they were read.

        Args:
            filename: A name directly in the directory.
            limit: Largest size in bytes.

        Raises:
            FileNotFoundError: No such file.
            Unreadable: Something else than a regular file, one without permission, or one above *limit*.
        """
        with self.opened(filename) as (descriptor, status):
            return read_all(descriptor, status, limit), status

    # Writing

    def stage(
        self,
        data: bytes,
        *,
        like: os.stat_result | None = None,
        modified_ns: int | None = None,
        mode: int | None = None,
    ) -> str:
        """Write *data* to a new temporary file, through to the disk, and return its name.

        Args:
            data: The whole content.
            like: Stat data of the file that will be replaced: mode and, where possible, owner are taken over.
            modified_ns: Modification time for the file, in nanoseconds since 1970.
            mode: Permission bits for a file that replaces none.
        """
        name = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}{TEMPORARY_SUFFIX}"
        # A page that is private is so from the first byte; the umask may take away more, which is given back below.
        if like is not None:
            mode = stat.S_IMODE(like.st_mode)
        first = 0o666 if mode is None else mode & 0o777 | stat.S_IWUSR
        descriptor = os.open(self._place(name), CREATE_FLAGS, first, dir_fd=self.descriptor)
        try:
            try:
                view = memoryview(data)
                while view:
                    view = view[os.write(descriptor, view) :]
                if like is not None:
                    _take_over(descriptor, like)
                elif mode is not None and hasattr(os, "fchmod"):
                    with contextlib.suppress(OSError):
                        os.fchmod(descriptor, mode & 0o777)
                if modified_ns is not None and os.utime in os.supports_fd:
                    os.utime(descriptor, ns=(modified_ns, modified_ns))
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except BaseException:
            self.discard(name)
            raise
        return name

    def put_new(self, temporary: str, filename: str) -> None:
        """Give a staged file its name, which must be free.

        Raises:
            FileExistsError: Something has that name.
        """
        source, goal = self._place(temporary), self._place(filename)
        if os.name == "nt":
            os.rename(source, goal)  # refuses an existing target there
            return
        try:
            os.link(source, goal, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if self.is_there(filename):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), filename) from None
            self.replace(temporary, filename)
        else:
            self.discard(temporary)

    def is_same(self, one: str, other: str) -> bool:
        """Say whether two names are one file: hard links, or a system that does not tell upper from lower case."""
        try:
            first, second = self.status(one), self.status(other)
        except FileNotFoundError:
            return False
        return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)

    def move(self, filename: str, new: str) -> None:
        """Give a file another name, which must be free or be its own in another case.

        Raises:
            FileExistsError: Something else has that name.
        """
        if self.is_same(filename, new):
            self.replace(filename, new)
        else:
            self.put_new(filename, new)

    def replace(self, temporary: str, filename: str) -> None:
        """Put a staged file in the place of *filename*; a link of that name would be replaced, not followed."""
        source, goal = self._place(temporary), self._place(filename)
        for pause in (0.01, 0.05, 0.2, None):
            try:
                os.replace(source, goal, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)
                return
            except PermissionError:
                # Windows refuses while a scanner or an editor has the old file open; mostly for moments.
                if os.name != "nt" or pause is None:
                    raise
                time.sleep(pause)

    def remove(self, filename: str) -> None:
        """Remove a name; of a link the link, not its target."""
        os.unlink(self._place(filename), dir_fd=self.descriptor)

    def discard(self, temporary: str) -> None:
        """Remove a staged file if it is there."""
        with contextlib.suppress(OSError):
            self.remove(temporary)

    def sync(self) -> None:
        """Bring names that were given and taken to the disk, where the system offers it."""
        if self.descriptor is not None:
            with contextlib.suppress(OSError):  # some network file systems refuse it for directories
                os.fsync(self.descriptor)

    def sweep(self, now: float | None = None) -> None:
        """Remove temporary files that a killed process left here more than an hour ago."""
        limit = (time.time() if now is None else now) - LEFTOVER_AGE
        for entry in self.scan():
            if is_temporary(entry.name) and entry.is_file(follow_symlinks=False):
                with contextlib.suppress(OSError):
                    if self.status(entry.name).st_mtime < limit:
                        self.remove(entry.name)


def read_all(descriptor: int, status: os.stat_result, limit: int | None = None, head: bytes = b"") -> bytes:
    """Return everything that an open regular file holds.

    Args:
        descriptor: The file, opened for reading.
        status: Its stat data.
        limit: Largest size in bytes.
        head: What was read from it before.

    Raises:
        Unreadable: It is not a regular file, cannot be read, or is larger than *limit*.
    """
    words = kind(status.st_mode)
    if words is not None:
        raise Unreadable(words)
    parts, size = [head], len(head)
    try:
        while limit is None or size <= limit:
            part = os.read(descriptor, max(READ_BLOCK, min(status.st_size - size + 1, 1 << 24)))
            if not part:
                return b"".join(parts)
            parts.append(part)
            size += len(part)
    except OSError as error:
        raise refusal(error) or error from error
    raise Unreadable(f"larger than {limit // 2**20} MiB" if limit >= 2**20 else f"larger than {limit} bytes")


def is_temporary(filename: str) -> bool:
    """Say whether a file is one that a write of ours makes and takes away again."""
    return filename.startswith(TEMPORARY_PREFIX) and filename.endswith(TEMPORARY_SUFFIX)


@contextlib.contextmanager
def write_errors(path: Path) -> Iterator[None]:
    """Turn what the system says about a failed write in *path* into this library's errors."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            message = f"{path} cannot be written ({reason}): change its permissions or work on a copy"
            raise ReadOnlyField(message) from error
        raise FieldError(f"writing in {path} failed: {reason}") from error


def _take_over(descriptor: int, like: os.stat_result) -> None:
    if hasattr(os, "fchown") and hasattr(os, "geteuid"):
        mine = os.fstat(descriptor)
        if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
            with contextlib.suppress(OSError):  # only root may give files away
                os.fchown(descriptor, like.st_uid, like.st_gid)
    if hasattr(os, "fchmod"):
        with contextlib.suppress(OSError):
            os.fchmod(descriptor, stat.S_IMODE(like.st_mode))
