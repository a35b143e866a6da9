"""Peak memory of processes that work with 100,000 x 768, in sizes of the float32 matrix."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from material import DIMENSIONS, MODEL_CODE, FreeEmbedder, age, workspace, write_pages
from measure import Results, arguments

REACH = 2.0


def child(job: str, directory: str) -> None:
    """Do one job and print the peak of this process in bytes, and the seconds it took."""
    import memoryfield as mf

    field = mf.open_field(directory, model=FreeEmbedder(pool=0))
    started = time.perf_counter()
    if job == "sync":
        field.sync(progress=False)
    elif job == "search":
        index = field.vector_index()
        index.search(index.embedder.embed_query(""), 10)
    elif job == "exact":
        index = field.vector_index()
        index.search(index.embedder.embed_query(""), 10, exact=True)
    elif job == "field":
        field.search("a question", retriever="vector", progress=False)
    elif job == "near":
        field.near_duplicates(0.999, progress=False)
    print(_peak(), time.perf_counter() - started)


def _peak() -> int:
    """Return the peak memory of this process in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # ru_maxrss begins with what the parent process had when it started this one
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    import resource

    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    count = 20_000 if options.quick else 100_000
    matrix = count * DIMENSIONS * 4
    results = Results(
        "Memory", f"Peak of a whole process, interpreter and libraries included; {count:,} pages of 0.4 kB."
    )
    jobs = [
        ("first sync, nothing indexed", "sync", False),
        ("load and search over bits", "search", True),
        ("load and search, every row scored", "exact", True),
        ("open_field, sync with nothing changed, search", "field", True),
        ("near_duplicates", "near", False),
    ]
    with workspace() as place:
        directory = write_pages(place / "field", count, size=400)
        time.sleep(3.2)
        for what, job, promised in jobs:
            command = [sys.executable, __file__, "--child", job, str(directory)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                results.add(
                    what, "the matrix", f"{matrix / 1e6:.0f} MB", "failed", done.stderr.strip().splitlines()[-1]
                )
                continue
            peak, seconds = (float(word) for word in done.stdout.split())
            reach, reached = (f"below {REACH:g} x", peak / matrix < REACH) if promised else ("", None)
            shown = f"{peak / 1e6:.0f} MB, {seconds:.1f} s"
            results.add(what, "the matrix", f"{matrix / 1e6:.0f} MB", shown, peak / matrix, reach, reached)
            age(directory / f"{MODEL_CODE}.sqlite3")
    results.print()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(*sys.argv[2:4])
    else:
        main()
