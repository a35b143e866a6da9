"""Reading zip archives that strangers made: everything is checked before it is believed (FORMAT A2).

The directory of the archive is parsed here and not by ``zipfile``, which builds an object for each of two million
claimed members before one can count them, and which hands out the first bytes of a member that holds more than it
claims. Nothing here writes. A refused archive raises ``ArchiveError`` with the name of the member.
"""

from __future__ import annotations

import re
import stat
import struct
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import BinaryIO, NamedTuple

from memoryfield.errors import ArchiveError
from memoryfield.format.names import PAGE_SUFFIX, skip_reason
from memoryfield.format.normal import normalized
from memoryfield.format.snapshot import LARGEST_PAGE, Skipped

_END = struct.Struct("<4s4H2LH")
_END64_LOCATOR = struct.Struct("<4sLQL")
_END64 = struct.Struct("<4sQ2H2L4Q")
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_LOCAL = struct.Struct("<4s5H3L2H")
_LONGEST_COMMENT = 65535
_UTF8_FLAG, _ENCRYPTED_FLAGS = 0x800, 0x1 | 0x40 | 0x2000
_STORED, _DEFLATED = 0, 8
_BLOCK = 65536
_DRIVE = re.compile(r"[A-Za-z]:")
_RESOURCES = "__MACOSX"
LONGEST_NAME = 255  # bytes of a file name on common systems


@dataclass(frozen=True)
class Limits:
    """How much an archive may hold before it is refused.

    Attributes:
        members: Number of members.
        page_bytes: Size of a page.
        member_bytes: Size of any other member.
        total_bytes: Size of all members together.
        ratio: Unpacked bytes for each packed byte, of members and totals above 1 MiB.
    """

    members: int = 100_000
    page_bytes: int = LARGEST_PAGE
    member_bytes: int = 4 * 2**30
    total_bytes: int = 16 * 2**30
    ratio: int = 200


class Member(NamedTuple):
    """A file in an archive, as its directory describes it."""

    stored_name: bytes
    offset: int
    packed: int
    size: int
    crc: int
    method: int
    modified: datetime | None


@dataclass(frozen=True)
class Listing:
    """What an archive offers.

    Attributes:
        members: Files of the field by filename, without a top directory that all share.
        skipped: Other members, with why they are left out.
        start: Where the archive's own directory begins.
    """

    members: Mapping[str, Member]
    skipped: tuple[Skipped, ...]
    start: int


def read_listing(handle: BinaryIO, limits: Limits, label: str) -> Listing:
    """Read and check the directory of an archive.

    Args:
        handle: The archive, opened for reading.
        limits: What is refused.
        label: What errors call the archive.

    Raises:
        ArchiveError: The archive is damaged or hostile.
    """
    length = handle.seek(0, 2)
    count, start, size = _end(handle, length, label)
    if count > limits.members:
        raise ArchiveError(f"{label} claims {count:,} members; at most {limits.members:,} are read")
    handle.seek(start)
    directory = handle.read(size)
    found: dict[str, Member] = {}
    for name, member in _entries(directory, count, limits, label):
        plain = _plain_name(name, label)
        if name.endswith("/"):
            continue
        if plain in found:
            raise ArchiveError(f"{label} holds two members of the name {plain!r}")
        found[plain] = member
    _refuse_twins(found, label)
    _check_sizes(found, limits, length, label)
    _check_places(found, start, label)
    members, skipped = _sorted_out(found)
    return Listing(members, skipped, start)


def chunks(handle: BinaryIO, name: str, member: Member, listing: Listing, label: str) -> Iterator[bytes]:
    """Yield the content of a member in pieces, and stop with an error where it is not what the directory says.

    Raises:
        ArchiveError: The member is damaged, or holds more or less than it claims.
    """
    handle.seek(member.offset)
    local = handle.read(_LOCAL.size)
    if len(local) < _LOCAL.size or local[:4] != b"PK\x03\x04":
        raise ArchiveError(f"{label}: {name!r} is not where the directory of the archive says")
    _, _, flags, method, _, _, _, _, _, name_size, extra_size = _LOCAL.unpack(local)
    if handle.read(name_size) != member.stored_name or method != member.method or flags & _ENCRYPTED_FLAGS:
        raise ArchiveError(f"{label}: {name!r} calls itself otherwise than the directory of the archive does")
    if member.offset + _LOCAL.size + name_size + extra_size + member.packed > listing.start:
        raise ArchiveError(f"{label}: {name!r} reaches into the directory of the archive")
    handle.seek(extra_size, 1)
    size, crc = 0, 0
    for piece in _unpacked(handle, name, member, label):
        size += len(piece)
        if size > member.size:
            raise ArchiveError(f"{label}: {name!r} holds more than the {member.size:,} bytes that it claims")
        crc = zlib.crc32(piece, crc)
        yield piece
    if size != member.size:
        raise ArchiveError(f"{label}: {name!r} holds {size:,} bytes and claims {member.size:,}")
    if crc != member.crc:
        raise ArchiveError(f"{label}: {name!r} is damaged: its CRC is not the one in the directory of the archive")


def twin_key(name: str) -> str:
    """Return a text that is equal for names which differ only by case or by Unicode form."""
    return normalized("NFC", normalized("NFC", name).casefold())


def twins(names: Iterable[str]) -> list[tuple[str, str]]:
    """Return the pairs of names that some file systems cannot tell apart."""
    first: dict[str, str] = {}
    return [(first[key], name) for name in names if first.setdefault(key := twin_key(name), name) != name]


def name_problem(name: str) -> str | None:
    """Return why a member of this name is refused, or None."""
    if "\0" in name:
        return "it holds a NUL"
    if "\\" in name:
        return "it holds a backslash"
    if name.startswith("/"):
        return "it is an absolute path"
    if _DRIVE.match(name):
        return "it begins with a drive letter"
    parts = name.removesuffix("/").split("/")
    if ".." in parts:
        return "it leads out of the field"
    if "" in parts:
        return "it has an empty part"
    return None


def _end(handle: BinaryIO, length: int, label: str) -> tuple[int, int, int]:
    """Return the number of members that an archive claims, and the place and size of its directory."""
    tail_start = max(length - _END.size - _LONGEST_COMMENT, 0)
    handle.seek(tail_start)
    tail = handle.read(length - tail_start)
    at = len(tail) - _END.size
    while at >= 0:  # the comment may hold the signature; the record is the one whose comment ends with the file
        at = tail.rfind(b"PK\x05\x06", 0, at + 4)
        if at >= 0 and int.from_bytes(tail[at + 20 : at + 22], "little") == len(tail) - at - _END.size:
            break
        at -= 1
    if at < 0:
        raise ArchiveError(f"{label} is not a zip archive, or its end is missing")
    _, disk, first_disk, here, count, size, start, _ = _END.unpack_from(tail, at)
    end = tail_start + at
    handle.seek(max(end - _END64_LOCATOR.size, 0))
    locator = handle.read(_END64_LOCATOR.size)
    if end >= _END64_LOCATOR.size and locator[:4] == b"PK\x06\x07":
        end = end - _END64_LOCATOR.size - _END64.size
        _, _, place, disks = _END64_LOCATOR.unpack(locator)
        if place != end or disks > 1:
            raise ArchiveError(f"{label} is damaged: its end is not where it says")
        handle.seek(end)
        record = handle.read(_END64.size)
        if record[:4] != b"PK\x06\x06":
            raise ArchiveError(f"{label} is damaged: its end is not where it says")
        _, _, _, _, disk, first_disk, here, count, size, start = _END64.unpack(record)
    if disk or first_disk or here != count:
        raise ArchiveError(f"{label} is one part of a split archive")
    if start + size != end:
        raise ArchiveError(
            f"{label} is damaged: its directory is not where it says, or bytes were put before the archive"
        )
    return count, start, size


def _entries(directory: bytes, count: int, limits: Limits, label: str) -> Iterator[tuple[str, Member]]:
    """Yield names, as they stand there, and members."""
    at = 0
    for _ in range(count):
        if len(directory) - at < _CENTRAL.size or directory[at : at + 4] != b"PK\x01\x02":
            raise ArchiveError(f"{label} is damaged: its directory ends before all {count:,} members")
        fields = _CENTRAL.unpack_from(directory, at)
        flags, method, time, date, crc, packed, size, name_size, extra_size, comment_size = fields[3:13]
        attributes, offset = fields[15:]
        name_at, extra_at = at + _CENTRAL.size, at + _CENTRAL.size + name_size
        at = extra_at + extra_size + comment_size
        stored_name = directory[name_at:extra_at]
        name = _decoded(stored_name, flags, label)
        if 0xFFFFFFFF in (packed, size, offset):
            size, packed, offset = _large(
                directory[extra_at : extra_at + extra_size], size, packed, offset, name, label
            )
        if flags & _ENCRYPTED_FLAGS:
            raise ArchiveError(f"{label}: {name!r} is encrypted")
        words = _special(attributes >> 16)
        if words is not None:
            raise ArchiveError(f"{label}: {name!r} is {words}")
        if method not in (_STORED, _DEFLATED) or (method == _STORED and packed != size):
            raise ArchiveError(f"{label}: {name!r} is packed in a way (method {method}) that is not read here")
        yield name, Member(stored_name, offset, packed, size, crc, method, _moment(date, time))
    if at != len(directory):
        raise ArchiveError(f"{label} is damaged: its directory holds more than the {count:,} members that it claims")


def _decoded(stored_name: bytes, flags: int, label: str) -> str:
    try:
        return stored_name.decode("utf-8")  # many programs write UTF-8 and forget the flag
    except UnicodeDecodeError:
        if flags & _UTF8_FLAG:
            raise ArchiveError(f"{label}: the name {stored_name!r} is not the UTF-8 that it claims to be") from None
        return stored_name.decode("cp437")


def _large(extra: bytes, size: int, packed: int, offset: int, name: str, label: str) -> tuple[int, int, int]:
    """Return size, packed size and offset with what a zip64 extra field says in place of the full values."""
    at = 0
    while at + 4 <= len(extra):
        kind, length = struct.unpack_from("<HH", extra, at)
        if kind == 1:
            numbers = iter(struct.unpack_from(f"<{min(length, len(extra) - at - 4) // 8}Q", extra, at + 4))
            try:
                size, packed, offset = (next(numbers) if v == 0xFFFFFFFF else v for v in (size, packed, offset))
            except (RuntimeError, ValueError):
                break
            return size, packed, offset
        at += 4 + length
    raise ArchiveError(f"{label}: {name!r} is described with sizes that are missing")


def _special(mode: int) -> str | None:
    kind = stat.S_IFMT(mode)
    if kind in (0, stat.S_IFREG, stat.S_IFDIR):
        return None
    return "a symbolic link" if kind == stat.S_IFLNK else "no regular file"


def _moment(date: int, time: int) -> datetime | None:
    """Return the time of a member, taken as UTC; None for the fixed one of archives without times, and for nonsense."""
    try:
        moment = datetime(
            (date >> 9) + 1980, date >> 5 & 15, date & 31, time >> 11, time >> 5 & 63, (time & 31) * 2, tzinfo=UTC
        )
    except ValueError:
        return None
    return None if (moment.year, moment.month, moment.day) == (1980, 1, 1) else moment


def _plain_name(name: str, label: str) -> str:
    problem = name_problem(name)
    if problem is not None:
        raise ArchiveError(f"{label}: the member {name!r} is refused: {problem}")
    return "/".join(part for part in name.split("/") if part not in ("", "."))


def _refuse_twins(names: Iterable[str], label: str) -> None:
    for one, other in twins(names):
        raise ArchiveError(f"{label} holds {one!r} and {other!r}, which many file systems cannot keep apart")


def _check_sizes(members: Mapping[str, Member], limits: Limits, length: int, label: str) -> None:
    total = 0
    for name, member in members.items():
        largest = limits.page_bytes if name.endswith(PAGE_SUFFIX) else limits.member_bytes
        if member.size > largest:
            raise ArchiveError(f"{label}: {name!r} would have {member.size:,} bytes; at most {largest:,} are read")
        if member.size > max(2**20, limits.ratio * member.packed):
            raise ArchiveError(
                f"{label}: {name!r} would grow from {member.packed:,} to {member.size:,} bytes, "
                f"more than {limits.ratio} times"
            )
        total += member.size
    if total > limits.total_bytes:
        raise ArchiveError(f"{label} would unpack to {total:,} bytes; at most {limits.total_bytes:,} are read")
    if total > max(2**20, limits.ratio * length):
        raise ArchiveError(f"{label} would grow from {length:,} to {total:,} bytes, more than {limits.ratio} times")


def _check_places(members: Mapping[str, Member], start: int, label: str) -> None:
    """Refuse members that share bytes: a few kilobytes could be unpacked again and again."""
    behind = 0
    for name, member in sorted(members.items(), key=lambda item: item[1].offset):
        if member.offset < behind:
            raise ArchiveError(f"{label}: {name!r} shares bytes with another member")
        behind = member.offset + _LOCAL.size + len(member.stored_name) + member.packed
        if behind > start:
            raise ArchiveError(f"{label}: {name!r} reaches beyond the end of the archive's content")


def _sorted_out(found: Mapping[str, Member]) -> tuple[dict[str, Member], tuple[Skipped, ...]]:
    """Return the members that belong to the field, under the names they have there, and the others."""
    tops = {name.partition("/")[0] if "/" in name else "" for name in found if _counts(name)}
    top = f"{tops.pop()}/" if len(tops) == 1 and "" not in tops else ""
    members: dict[str, Member] = {}
    skipped: list[Skipped] = []
    for full_name, member in sorted(found.items()):
        name = full_name.removeprefix(top)
        if full_name.startswith(_RESOURCES + "/"):
            skipped.append(Skipped(full_name, "resource fork of macOS"))
        elif "/" in name:
            skipped.append(Skipped(name, "in a sub-directory"))
        elif len(name.encode("utf-8")) > LONGEST_NAME:
            skipped.append(Skipped(name, "name too long"))
        elif (reason := skip_reason(name)) not in (None, "not a valid page name"):
            skipped.append(Skipped(name, str(reason)))
        else:
            members[name] = member
    return members, tuple(skipped)


def _counts(full_name: str) -> bool:
    """Say whether a member has a say in what the top directory is."""
    reason = skip_reason(full_name.rpartition("/")[2])
    return not full_name.startswith(_RESOURCES + "/") and reason in (None, "not a valid page name")


def _unpacked(handle: BinaryIO, name: str, member: Member, label: str) -> Iterator[bytes]:
    left = member.packed
    inflater = zlib.decompressobj(-15) if member.method == _DEFLATED else None
    while left:
        packed = handle.read(min(left, _BLOCK))
        if not packed:
            raise ArchiveError(f"{label}: {name!r} ends too early")
        left -= len(packed)
        if inflater is None:
            yield packed
            continue
        try:
            while packed:
                piece = inflater.decompress(packed, _BLOCK)
                packed = inflater.unconsumed_tail
                if piece:
                    yield piece
                if inflater.eof:
                    break
        except zlib.error as error:
            raise ArchiveError(f"{label}: {name!r} is damaged: {error}") from None
        if inflater.eof and (left or inflater.unused_data):
            raise ArchiveError(f"{label}: {name!r} has more packed bytes than belong to it")
    if inflater is not None and not inflater.eof:
        raise ArchiveError(f"{label}: {name!r} ends too early")
