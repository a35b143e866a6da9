"""Requests a second of ``memoryfield serve``: search and pages of a field of 1,000, eight clients at once."""

from __future__ import annotations

import random
from pathlib import Path

import loopback
import material
from measure import Results, arguments

CLIENTS = 8
QUESTIONS = 500  # different ones, of three words each
_WORDS = """
anchor bilge boat brake cable cradle crane deck depth diesel draft engine fender ferry fuel gate harbour hull insurance
keel ladder lift mast mooring paint permit pilot policy pontoon price pump quay repair rigging rope rudder sail shackle
slip storm survey tide timber varnish water weight winch wind winter wood work yard
"""


def main() -> None:
    options = arguments(__doc__ or "")
    total = 400 if options.quick else 2000
    how = f"{CLIENTS} clients on the machine of the server; {QUESTIONS} questions of three words, in turn."
    results = Results("HTTP", how)
    chance = random.Random(8)
    asked = ["+".join(chance.sample(_WORDS.split(), 3)) for _ in range(QUESTIONS)]
    with material.workspace() as place:
        field = material.write_pages(Path(place) / "field", 1000)
        with loopback.serving(field, place) as server:
            names = sorted(path.name for path in field.glob("*.md"))
            for what, paths, reach in (
                ("search by vector, hashing of words included", _searches(asked, "vector"), 200),
                ("search by words", _searches(asked, "keyword"), 200),
                ("hybrid search, hashing of words included", _searches(asked, "hybrid"), 200),
                ("a page", [f"/{name}" for name in names[:100]], None),
            ):
                loopback.ask(server.port, paths, 2 * CLIENTS, CLIENTS)  # what is loaded at the first request is loaded
                before = server.cpu_seconds()
                seen = loopback.ask(server.port, paths, total, CLIENTS)
                cpu = (server.cpu_seconds() - before) / total
                rate = seen.good / seen.seconds
                times = f"median {seen.delay(0.5) * 1e3:.0f} ms, 99 % in {seen.delay(0.99) * 1e3:.0f} ms"
                used = f"{cpu * 1e3:.1f} ms of CPU each"
                shown = f"{rate:.0f} a second ({seen.good} of {total} answered; {times}; {used})"
                wanted = f"at least {reach} a second" if reach else ""
                results.add(what, "", "", shown, None, wanted, None if reach is None else rate >= reach)
    results.print()


def _searches(questions: list[str], retriever: str) -> list[str]:
    return [f"/search?q={question}&retriever={retriever}" for question in questions]


if __name__ == "__main__":
    main()
