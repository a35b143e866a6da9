"""An animated PNG from screenshots of one size; browsers show it, and nothing but the standard library makes it."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

_SIGNATURE = b"\x89PNG\r\n\x1a\n"


def record(frames: Sequence[Path], target: Path, seconds: float = 1.6) -> Path:
    """Write an animation of PNG files and return where.

    Args:
        frames: Pictures of one size and colour type, in order.
        target: File to write.
        seconds: How long each is shown; the last one twice as long.

    Raises:
        ValueError: No frames, or pictures that differ in size.
    """
    chunks = [list(_chunks(frame.read_bytes())) for frame in frames]
    heads = {next(data for kind, data in found if kind == b"IHDR") for found in chunks}
    if len(heads) != 1:
        raise ValueError(f"{len(heads)} different sizes or colour types in {len(frames)} pictures")
    head = heads.pop()
    width, height = struct.unpack(">II", head[:8])
    parts = [_SIGNATURE, _chunk(b"IHDR", head), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    sequence = 0
    for number, found in enumerate(chunks):
        shown = int(seconds * 1000) * (2 if number == len(chunks) - 1 else 1)
        control = struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, shown, 1000, 0, 0)
        parts.append(_chunk(b"fcTL", control))
        sequence += 1
        for kind, data in found:
            if kind == b"IDAT" and number == 0:
                parts.append(_chunk(b"IDAT", data))
            elif kind == b"IDAT":
                parts.append(_chunk(b"fdAT", struct.pack(">I", sequence) + data))
                sequence += 1
    parts.append(_chunk(b"IEND", b""))
    target.write_bytes(b"".join(parts))
    return target


def _chunks(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    if not raw.startswith(_SIGNATURE):
        raise ValueError("not a PNG")
    position = len(_SIGNATURE)
    while position < len(raw):
        (length,) = struct.unpack(">I", raw[position : position + 4])
        yield raw[position + 4 : position + 8], raw[position + 8 : position + 8 + length]
        position += 12 + length


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
