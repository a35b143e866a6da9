"""An animated PNG from screenshots of one size; the browser finds what changed from frame to frame."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_OVER = 1  # a frame is laid over the one before
# what is the same as in the picture before becomes transparent, which takes next to no room
_CHANGES = """async ([before, now]) => {
  const pixels = async (url) => {
    const bitmap = await createImageBitmap(await (await fetch(url)).blob());
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height);
    const context = canvas.getContext('2d', { willReadFrequently: true });
    context.drawImage(bitmap, 0, 0);
    return [canvas, context, context.getImageData(0, 0, bitmap.width, bitmap.height)];
  };
  const [canvas, context, mine] = await pixels(now);
  if (before) {
    const [, , old] = await pixels(before);
    const [a, b] = [new Uint32Array(mine.data.buffer), new Uint32Array(old.data.buffer)];
    for (let i = 0; i < a.length; i++) if (a[i] === b[i]) a[i] = 0;
    context.putImageData(mine, 0, 0);
  }
  const bytes = new Uint8Array(await (await canvas.convertToBlob({ type: 'image/png' })).arrayBuffer());
  let text = '';
  for (let i = 0; i < bytes.length; i += 8192) text += String.fromCharCode(...bytes.subarray(i, i + 8192));
  return btoa(text);
}"""


def changes(page: Any, pictures: Sequence[Path]) -> list[bytes]:
    """Return the first picture and, for each other one, a PNG of what differs from the one before it.

    Args:
        page: Playwright's page in which that is worked out.
        pictures: PNG files of one size.
    """
    urls = ["data:image/png;base64," + base64.b64encode(picture.read_bytes()).decode() for picture in pictures]
    pairs = zip(["", *urls[:-1]], urls, strict=True)
    return [base64.b64decode(page.evaluate(_CHANGES, list(pair))) for pair in pairs]


def record(frames: Sequence[bytes], target: Path, seconds: float = 1.8) -> Path:
    """Write an animation and return where.

    Args:
        frames: PNG pictures of one size and colour type, in order, each laid over the one before.
        target: File to write.
        seconds: How long each is shown; the last one twice as long.

    Raises:
        ValueError: No frames, or pictures that differ in size.
    """
    chunks = [list(_chunks(frame)) for frame in frames]
    heads = {next(data for kind, data in found if kind == b"IHDR") for found in chunks}
    if len(heads) != 1:
        raise ValueError(f"{len(heads)} different sizes or colour types in {len(frames)} pictures")
    head = heads.pop()
    width, height = struct.unpack(">II", head[:8])
    parts = [_SIGNATURE, _chunk(b"IHDR", head), _chunk(b"acTL", struct.pack(">II", len(frames), 0))]
    sequence = 0
    for number, found in enumerate(chunks):
        shown = int(seconds * 1000) * (2 if number == len(chunks) - 1 else 1)
        control = struct.pack(">IIIIIHHBB", sequence, width, height, 0, 0, shown, 1000, 0, _OVER if number else 0)
        parts.append(_chunk(b"fcTL", control))
        sequence += 1
        body = zlib.compress(zlib.decompress(b"".join(data for kind, data in found if kind == b"IDAT")), 9)
        if number == 0:
            parts.append(_chunk(b"IDAT", body))
        else:
            parts.append(_chunk(b"fdAT", struct.pack(">I", sequence) + body))
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
