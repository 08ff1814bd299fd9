"""Run this project and other tools on corpora whose true pairs are known, one after another, and print JSON: how right, how fast.

    python benchmarks/compare.py CORPUS=TRUTH [CORPUS=TRUTH ...] [--peers PYTHON] [--repeat 1]

CORPUS is Parquet with `id` and `text`, TRUTH an output of jobs/truth.py on it with --min-similarity 0.7. PYTHON is that of an
environment with the other tools: pip install "datatrove[processing]" spacy text-dedup rensa pyarrow. Each is run as it comes
(words, or 5-grams of words, threshold 0.7) and with 3-grams and 0.75, as the truth is counted.

`seconds` are, of this project, those of the whole process, with what Spark takes to start and all that the job writes; of the
others those of their work in a process that has imported them. `fingerprint_seconds` and `search_seconds` are stages of this
project's job, with writing. With --repeat all seconds are medians. bytes are what is kept of a document to compare it by.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from memory import Sampler
from quality import PRECISION_SIMILARITY, Pairs, Truth, quality, texts_of

from simhash_udf.core.components import connected_components
from simhash_udf.manifest import read_report, table_path

HERE = Path(__file__).parent
JOB = HERE.parent / "jobs" / "dedup.py"
MINHASH = "--fingerprint minhash --ngram 3 --max-distance 8"
OWN = {
    "as it comes": ("", 8),
    "--max-distance 12 --verify jaccard": ("--max-distance 12 --verify jaccard --min-similarity 0.75", 8),
    f"{MINHASH} --verify jaccard": (f"{MINHASH} --verify jaccard --min-similarity 0.75", 8),
    f"{MINHASH} --verify sketch": (f"{MINHASH} --verify sketch --min-similarity 0.78", 40),
}
PEERS = {
    "text-dedup": {"as it comes": (5, 0.7), "3-grams, 0.75": (3, 0.75)},
    "datatrove": {"as it comes": (5, 0.7), "3-grams": (3, 0.75)},
    "rensa": {"words, 0.7": (1, 0.7), "3-grams, 0.75": (3, 0.75)},
}


def called(command: list[str]) -> tuple[str, float, int]:
    """What a command prints, its seconds, and the bytes it had at its peak."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+", encoding="utf-8") as log, Sampler() as sampler:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=log, text=True, check=False)
        seconds = time.monotonic() - began
        if done.returncode:
            log.seek(0)
            sys.exit(f"{command} failed\n{log.read()[-3000:]}")
    return done.stdout, seconds, sampler.peaks.total


def own(corpus: str, ids: pa.Array, flags: str, size: int, scratch: str) -> tuple[Any, Any, dict[str, Any]]:
    output = f"{scratch}/result"
    command = [sys.executable, str(JOB), "--input", corpus, "--output", output, "--max-removed", "1", "--if-exists", "replace"]
    _, seconds, peak = called([*command, *flags.split()])
    table = pq.read_table(table_path(output, "pairs"))
    a, b = (pc.index_in(table[name].combine_chunks(), ids).to_numpy() for name in ("id_a", "id_b"))
    stages = read_report(output)["seconds"]
    of_search = sum(time for name, time in stages.items() if name not in ("documents", "fingerprints", "kept", "whole run"))
    more = {"fingerprint_seconds": stages["fingerprints"], "search_seconds": round(of_search, 2)}
    return a, b, {"seconds": round(seconds, 2), "peak_mib": peak >> 20, "bytes_of_a_signature": size, **more}


def peer(python: str, tool: str, corpus: str, ngram: int, threshold: float, scratch: str) -> tuple[Any, Any, dict[str, Any]]:
    command = [python, str(HERE / "peers.py"), tool, corpus, f"{scratch}/pairs.parquet", str(ngram), str(threshold)]
    printed, _, peak = called(command)
    table = pq.read_table(f"{scratch}/pairs.parquet")
    return table["a"].to_numpy(), table["b"].to_numpy(), {"peak_mib": peak >> 20, **json.loads(printed.splitlines()[-1])}


def clusters(documents: int, a: Any, b: Any) -> Any:
    """The smallest place in the cluster of each document."""
    labels = np.arange(documents)
    nodes, smallest = connected_components(a.astype(np.int64), b.astype(np.int64))
    labels[nodes] = smallest
    return labels


def judged(documents: int, truth: Truth, a: Any, b: Any) -> dict[str, Any]:
    """How right pairs are, and how many documents their clusters drop; `dropped_wrongly`, `not_dropped` as in evaluate.py."""
    pairs = Pairs(np.minimum(a, b), np.maximum(a, b), np.zeros(len(a), np.int32))
    ours, true = clusters(documents, a, b), clusters(documents, *truth.similar(PRECISION_SIMILARITY))
    parts = len(np.unique(np.stack([ours, true]), axis=1).T)
    found, wanted = len(np.unique(ours)), len(np.unique(true))
    of_pairs = quality(truth.of(pairs), np.ones(len(a), np.bool_), truth.wanted)
    return {**of_pairs, "dropped": documents - found, "dropped_wrongly": parts - found, "not_dropped": parts - wanted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="CORPUS=TRUTH")
    parser.add_argument("--peers", metavar="PYTHON", help="Python of an environment with the other tools")
    parser.add_argument("--repeat", type=int, default=1, help="how often all are run, one after another")
    given = parser.parse_args()
    rows: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for corpus, _, truth_path in (pair.partition("=") for pair in given.corpora * given.repeat):
        ids = texts_of(corpus)["id"].combine_chunks()
        truth = Truth(ids, truth_path)
        with tempfile.TemporaryDirectory() as scratch:
            runs = [("simhash-udf", name, partial(own, corpus, ids, *words, scratch)) for name, words in OWN.items()]
            for tool, variants in PEERS.items() if given.peers else ():
                runs += [
                    (tool, name, partial(peer, given.peers, tool, corpus, *words, scratch)) for name, words in variants.items()
                ]
            for tool, name, run in runs:
                a, b, figures = run()
                row = {**judged(len(ids), truth, a, b), **figures}
                print(Path(corpus).stem, tool, name, row, file=sys.stderr)
                rows.setdefault((Path(corpus).stem, tool, name), []).append(row)
    printed = []
    for (corpus, tool, name), runs_of_one in rows.items():
        timed = [key for key in runs_of_one[0] if key.endswith("seconds")]
        medians = {key: round(statistics.median(row[key] for row in runs_of_one), 2) for key in timed}
        printed.append({"corpus": corpus, "tool": tool, "settings": name, **runs_of_one[0], **medians})
    print(json.dumps(printed, indent=1))


if __name__ == "__main__":
    main()
