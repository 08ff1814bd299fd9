"""Run one other tool on a corpus and write the pairs that it finds; benchmarks/compare.py calls this in their environment.

    python benchmarks/peers.py TOOL CORPUS PAIRS NGRAM THRESHOLD

TOOL is text-dedup, datatrove or rensa. CORPUS is Parquet with `text`. PAIRS, Parquet, gets `a` and `b`, places of documents: all
pairs that share a band of their signatures, and for rensa, which estimates similarity from the whole signature, those of them
that reach the threshold. Prints JSON: seconds, and bytes of a signature.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import tempfile
import time
from collections.abc import Iterable
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

BANDS, ROWS = 14, 8  # of datatrove's default; similarity 0.72 has an even chance


def text_dedup(corpus: str, ngram: int, threshold: float) -> tuple[Iterable[set[int]], int]:
    """Its command line as it is, with its union-find told to remember what was united: a star for each bucket of a band."""
    from text_dedup import minhash

    buckets: list[set[int]] = []
    last = [-1]
    union = minhash.uf.union

    def remember(document: int, smallest: int) -> None:
        if smallest != last[0] or document in buckets[-1]:
            buckets.append(set())
            last[0] = smallest
        buckets[-1].add(document)
        union(document, smallest)

    minhash.uf.union = remember
    permutations = 256
    with tempfile.TemporaryDirectory() as work:
        words = ["--path", "parquet", "--data_files", corpus, "--split", "train", "--cache_dir", f"{work}/cache"]
        words += ["--output", f"{work}/output", "--column", "text", "--ngram", str(ngram), "--threshold", str(threshold)]
        words += ["--num_perm", str(permutations), "--min_length", "1", "--hash_func", "xxh3", "--num_proc", "2"]
        minhash.main(words, standalone_mode=False)
    return buckets, permutations * 8


def datatrove(corpus: str, ngram: int, threshold: float) -> tuple[Iterable[set[int]], int]:
    """Its first three steps; what it writes for a bucket is a chain of the documents in it. Its bands decide on the threshold."""
    from datatrove.data import Document
    from datatrove.pipeline.dedup.minhash import (
        MinhashConfig,
        MinhashDedupBuckets,
        MinhashDedupCluster,
        MinhashDedupSignature,
    )

    texts = pq.read_table(corpus, columns=["text"])["text"].to_pylist()
    config = MinhashConfig(n_grams=ngram, num_buckets=BANDS, hashes_per_bucket=ROWS)
    buckets = []
    with tempfile.TemporaryDirectory() as work:
        documents = (Document(text=text or "", id=str(i)) for i, text in enumerate(texts))
        MinhashDedupSignature(f"{work}/signatures", config=config).run(documents, 0, 1)
        for band in range(BANDS):
            MinhashDedupBuckets(f"{work}/signatures", f"{work}/pairs", config=config).run(None, band, BANDS)
        MinhashDedupCluster(f"{work}/pairs", f"{work}/clusters", config=config).run(None, 0, 1)
        for path in sorted(Path(f"{work}/pairs").glob("*.dups")):
            chain: list[int] = []
            for _, a, _, b in struct.iter_unpack("<4I", path.read_bytes()):
                if not chain or chain[-1] != a:
                    buckets.append(set(chain))
                    chain = [a]
                chain.append(b)
            buckets.append(set(chain))
    return buckets, BANDS * (ROWS * 8 + 4)


def rensa(corpus: str, ngram: int, threshold: float) -> tuple[Iterable[set[int]], int]:
    """R-MinHash, its bands, and its estimate of each candidate's similarity; n-grams are made here, since it makes none."""
    from rensa import RMinHash, RMinHashLSH

    texts = pq.read_table(corpus, columns=["text"])["text"].to_pylist()
    permutations = BANDS * ROWS
    bands = RMinHashLSH(threshold, permutations, BANDS)
    signatures: list[Any] = []
    for i, text in enumerate(texts):
        words = re.findall(r"\w+", (text or "").lower())
        signature = RMinHash(permutations, 42)
        signature.update([" ".join(words[at : at + ngram]) for at in range(max(1, len(words) - ngram + 1))])
        signatures.append(signature)
        bands.insert(i, signature)
    pairs = []
    for a, signature in enumerate(signatures):
        for b in bands.query(signature):
            if a < b and signature.jaccard(signatures[b]) >= threshold:
                pairs.append({a, b})
    return pairs, permutations * 4


TOOLS = {"text-dedup": text_dedup, "datatrove": datatrove, "rensa": rensa}


def main() -> None:
    tool, corpus, pairs_path, ngram, threshold = sys.argv[1:]
    began = time.perf_counter()
    buckets, size = TOOLS[tool](corpus, int(ngram), float(threshold))
    seconds = time.perf_counter() - began
    pairs = sorted({pair for bucket in buckets for pair in combinations(sorted(bucket), 2)})
    columns = [pa.array(side, pa.int64()) for side in (zip(*pairs, strict=True) if pairs else ((), ()))]
    pq.write_table(pa.table(columns, ["a", "b"]), pairs_path)
    print(json.dumps({"seconds": round(seconds, 2), "bytes_of_a_signature": size}))


if __name__ == "__main__":
    main()
