"""A bucket on loopback that costs as little as Python allows: the pages of a directory, read only.

``python bucket_worker.py DIRECTORY SECONDS`` prints its port; each answer waits for SECONDS, as a network would. Its
one bucket is ``bench``, and the pages are below ``field/``.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from pathlib import Path

_GONE = b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"


def answers(directory: Path) -> dict[bytes, bytes]:
    """Return what is answered to each path."""
    found: dict[bytes, bytes] = {}
    rows = []
    for path in sorted(directory.glob("*.md")):
        raw = path.read_bytes()
        tag = f'"{hashlib.md5(raw, usedforsecurity=False).hexdigest()}"'
        head = f"ETag: {tag}\r\nLast-Modified: Sun, 13 Sep 2020 12:26:40 GMT\r\nContent-Length: {len(raw)}"
        found[b"/bench/field/" + path.name.encode()] = f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + raw
        rows.append(
            f"<Contents><Key>field/{path.name}</Key><LastModified>2020-09-13T12:26:40.000Z</LastModified>"
            f"<ETag>{tag}</ETag><Size>{len(raw)}</Size></Contents>"
        )
    listing = f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>".encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/xml\r\nContent-Length: {len(listing)}\r\n\r\n"
    found[b"/bench"] = found[b"/bench/"] = head.encode() + listing
    return found


class Connection(asyncio.Protocol):
    """Answers GET and nothing else."""

    def __init__(self, found: dict[bytes, bytes], seconds: float) -> None:
        self._found, self._seconds, self._held = found, seconds, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._held += data
        while (end := self._held.find(b"\r\n\r\n")) >= 0:
            path = self._held.split(b" ", 2)[1].partition(b"?")[0]
            self._held = self._held[end + 4 :]
            answer = self._found.get(path, _GONE)
            if self._seconds:
                asyncio.get_running_loop().call_later(self._seconds, self._transport.write, answer)
            else:
                self._transport.write(answer)


async def main() -> None:
    found = answers(Path(sys.argv[1]))
    seconds = float(sys.argv[2])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(found, seconds), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
