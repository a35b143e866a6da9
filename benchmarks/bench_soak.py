"""Eight readers and four writers at ``memoryfield serve`` over 1,000 pages for ten minutes: nothing lost, no error."""

from __future__ import annotations

import argparse
from pathlib import Path

import loopback
import material
from measure import Results
from soak import READER_PAUSE, WRITER_PAUSE, Soak, soak

_FLAT = 1.1  # memory at the end against early on


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--quick", action="store_true", help="half a minute")
    options = parser.parse_args()
    minutes = 0.5 if options.quick else options.minutes
    pauses = (
        f"a reader pauses for {READER_PAUSE * 1e3:.0f} ms after each request, a writer for {WRITER_PAUSE * 1e3:.0f} ms"
    )
    results = Results("Soak", f"8 readers and 4 writers for {minutes:g} minutes, real server over loopback; {pauses}.")
    with material.workspace() as place:
        field = material.write_pages(Path(place) / "field", 1000)
        with loopback.serving(field, place, "--writes") as server:
            seen = soak(server, field, minutes * 60, told=_progress)
            cpu = server.cpu_seconds()
    _report(results, seen, cpu)


def _progress(seen: Soak) -> None:
    if len(seen.memory) % 30 == 0:
        at, size, files = seen.memory[-1]
        total = seen.requests.total()
        print(
            f"{at:5.0f} s: {total:,} requests, {size / 2**20:.0f} MiB, {files} files, {len(seen.wrong)} wrong",
            flush=True,
        )


def _report(results: Results, seen: Soak, cpu: float) -> None:
    total = seen.requests.total()
    writes = sum(count for what, count in seen.requests.items() if what.split()[0] in ("put", "delete", "count"))
    early, late = seen.growth()
    results.add("answers", "", "", f"{total:,} ({total / seen.seconds:.0f} a second), {writes:,} of them to changes")
    results.add("errors", "", "", str(len(seen.wrong)), None, "none", not seen.wrong)
    results.add(
        "pages compared at the end", "", "", f"{seen.pages}, and {seen.counted:,} steps counted of {seen.steps:,}"
    )
    sizes = f"{early / 2**20:.0f} MiB in the second fifth, {late / 2**20:.0f} MiB in the last"
    results.add("memory", "", "", sizes, late / early, f"flat: at most {_FLAT:g} x", late <= _FLAT * early)
    files = [count for _, _, count in seen.memory]
    results.add("open files", "", "", f"at most {max(files)}, {files[-1]} at the end")
    results.add("CPU of the server", "", "", f"{cpu / seen.seconds:.2f} of a core")
    results.print()
    shown = ", ".join(f"{what}: {count:,}" for what, count in sorted(seen.requests.items()))
    print(f"\n- {shown}")
    for text in seen.wrong:
        print(f"- WRONG: {text}")


if __name__ == "__main__":
    main()
