"""How right each kind of fingerprint is at each distance, alone and with each check, on corpora whose true pairs are known;
prints JSON, or with --markdown the tables of docs/quality_sweep.md.

    python benchmarks/quality.py CORPUS=TRUTH [CORPUS=TRUTH ...] [--chance CORPUS] [--features word3 char6 ...] [--markdown]

CORPUS is Parquet with `id` and `text`, TRUTH an output of jobs/truth.py on it with --min-similarity 0.7. A pair of similarity 0.8
or more must be found (recall), one of 0.7 or more may be (precision).

    alone      pairs of fingerprints within the distance
    checked    those of them whose similarity is at least 0.75, as with --verify jaccard --min-similarity 0.75: none is wrong
    sketched   those whose sketches tell of at least 0.78, as with --verify sketch --min-similarity 0.78

--chance counts, in a corpus of documents with little in common, the pairs of different texts that are similar by less than 0.3,
and how many there would be in a hundred million documents if each two are as likely to be one.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simhash_udf import hamming
from simhash_udf.core.blocks import Band
from simhash_udf.core.fingerprint import fingerprint_batch
from simhash_udf.core.search import BucketSearch
from simhash_udf.core.similarity import gram_sets, similarities
from simhash_udf.core.sketch import SKETCH_BITS, minhash_batch, sketch_words
from simhash_udf.manifest import table_path

FEATURES = ["word1", "word2", "word3", *(f"char{n}" for n in range(4, 10))]
KINDS = ["tf", "log", "binary", "minhash"]
DISTANCES = [3, 4, 5, 6, 7, 8, 9, 10, 11, 12]
SHOWN = [3, 4, 6, 8, 10, 12]
RECALL_SIMILARITY, PRECISION_SIMILARITY, CHECKED_SIMILARITY, SKETCHED_SIMILARITY = 0.8, 0.7, 0.75, 0.78
CHANCE_SIMILARITY, CHANCE_DOCUMENTS = 0.3, 100_000_000
COMPARED_AT_ONCE = 5_000_000


@dataclass(frozen=True)
class Pairs:
    """Pairs of documents by their places, `a` < `b`, and their Hamming distances."""

    a: Any
    b: Any
    distance: Any


def texts_of(path: str) -> pa.Table:
    return pq.read_table(path, columns=["id", "text"]).combine_chunks()


def fingerprints_of(texts: pa.Array, features: str, kind: str) -> pa.Array:
    unit, ngram = features[:4], int(features[4:])
    if kind == "minhash":
        return minhash_batch(texts, unit=unit, ngram=ngram)
    return fingerprint_batch(texts, unit=unit, ngram=ngram, weighting=kind).fingerprint


def pairs_within(fingerprints: pa.Array, distance: int) -> Iterator[Pairs]:
    """All pairs of documents, a batch at a time, each pair once."""
    places = np.flatnonzero(fingerprints.is_valid().to_numpy(zero_copy_only=False))
    told = fingerprints.drop_null().to_numpy().view(np.uint64)
    order = np.argsort(told, kind="stable")
    members = places[order]
    distinct, first, count = np.unique(told[order], return_index=True, return_counts=True)

    def products(i: Any, j: Any, bits: Any) -> Pairs:
        sizes = count[i] * count[j]
        pair = np.repeat(np.arange(len(i)), sizes)
        at = np.arange(len(pair)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        a, b = members[first[i[pair]] + at // count[j[pair]]], members[first[j[pair]] + at % count[j[pair]]]
        return Pairs(np.minimum(a, b), np.maximum(a, b), bits[pair])

    alike = np.flatnonzero(count > 1)
    equal = products(alike, alike, np.zeros(len(alike), np.int32))
    # Each document met itself, and each other one twice.
    once = np.unique(equal.a * np.int64(len(fingerprints)) + equal.b)
    a, b = once // len(fingerprints), once % len(fingerprints)
    yield Pairs(a[a < b], b[a < b], np.zeros(int((a < b).sum()), np.int32))
    for smaller, larger, bits in BucketSearch((Band(0, 0),), distance).pairs(distinct.copy(), 0):
        i, j = (np.searchsorted(distinct, np.asarray(side).view(np.uint64)) for side in (smaller, larger))
        yield products(i, j, np.asarray(bits))


def joined(batches: Iterator[Pairs]) -> Pairs:
    every = list(batches)
    return Pairs(*(np.concatenate([getattr(batch, name) for batch in every]) for name in ("a", "b", "distance")))


class Truth:
    """The true pairs of a corpus."""

    def __init__(self, ids: pa.Array, path: str) -> None:
        table = pq.read_table(table_path(path, "truth"))
        a, b = (pc.index_in(table[name].combine_chunks(), ids).to_numpy().astype(np.int64) for name in ("id_a", "id_b"))
        self._documents = len(ids)
        keys = np.minimum(a, b) * self._documents + np.maximum(a, b)
        order = np.argsort(keys)
        self._keys, self._similarity = keys[order], table["similarity"].to_numpy()[order]
        self.wanted = int((self._similarity >= RECALL_SIMILARITY).sum())

    def similar(self, least: float) -> tuple[Any, Any]:
        """The pairs of at least this similarity, as two arrays of places."""
        keys = self._keys[self._similarity >= least]
        return keys // self._documents, keys % self._documents

    def of(self, pairs: Pairs) -> Any:
        """The similarity of each pair, 0 where it is below what the truth holds."""
        keys = pairs.a.astype(np.int64) * self._documents + pairs.b
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._similarity[at], 0.0)


def quality(similarity: Any, found: Any, wanted: int) -> dict[str, float]:
    """Precision, recall and F1 of the pairs that are found, by their true similarity."""
    pairs = int(found.sum())
    right = int((found & (similarity >= PRECISION_SIMILARITY)).sum())
    precision = right / pairs if pairs else 1.0
    recall = int((found & (similarity >= RECALL_SIMILARITY)).sum()) / wanted if wanted else 1.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"pairs": pairs, "precision": round(precision, 4), "recall": round(recall, 4), "f1": round(f1, 4)}


def qualities(corpus: str, truth_path: str, features: list[str]) -> Iterator[dict[str, Any]]:
    """The quality of each kind of fingerprint at each distance, on one corpus."""
    table = texts_of(corpus)
    texts, truth = table["text"].combine_chunks(), Truth(table["id"].combine_chunks(), truth_path)
    sketches, _ = sketch_words(texts, unit="word", ngram=3)
    for feature in features:
        for kind in KINDS:
            began = time.perf_counter()
            fingerprints = fingerprints_of(texts, feature, kind)
            seconds = time.perf_counter() - began
            pairs = joined(pairs_within(fingerprints, max(DISTANCES)))
            similarity = truth.of(pairs)
            estimate = 1 - 2 * hamming(sketches[pairs.a], sketches[pairs.b]).sum(axis=1) / SKETCH_BITS
            for distance in DISTANCES:
                near = pairs.distance <= distance
                yield {
                    "corpus": Path(corpus).stem,
                    "documents": len(texts),
                    "true_pairs": truth.wanted,
                    "features": feature,
                    "kind": kind,
                    "fingerprint_seconds": round(seconds, 3),
                    "distance": distance,
                    "alone": quality(similarity, near, truth.wanted),
                    "checked": quality(similarity, near & (similarity >= CHECKED_SIMILARITY), truth.wanted),
                    "sketched": quality(similarity, near & (estimate >= SKETCHED_SIMILARITY), truth.wanted),
                }


def chance(corpus: str, features: list[str]) -> Iterator[dict[str, Any]]:
    """Pairs of different texts of one corpus that have little in common, and how many there would be in a hundred million."""
    texts = texts_of(corpus)["text"].combine_chunks()
    content = fingerprint_batch(texts, unit="word", ngram=1, weighting="binary").content
    texts = texts.take(pa.array(np.unique(content.fill_null(0).to_numpy(), return_index=True)[1]))
    values, ends = gram_sets(texts, unit="word", ngram=3)
    starts = np.concatenate([[0], ends[:-1]])
    sizes = ends - starts
    possible = len(texts) * (len(texts) - 1) / 2
    for feature in features:
        for kind in KINDS:
            found = np.zeros(max(DISTANCES) + 1, np.int64)
            for pairs in pairs_within(fingerprints_of(texts, feature, kind), max(DISTANCES)):
                for at in range(0, len(pairs.a), COMPARED_AT_ONCE):
                    a, b = pairs.a[at : at + COMPARED_AT_ONCE], pairs.b[at : at + COMPARED_AT_ONCE]
                    # Sets of very different sizes cannot be similar.
                    maybe = np.minimum(sizes[a], sizes[b]) >= CHANCE_SIMILARITY * np.maximum(sizes[a], sizes[b])
                    similar = np.zeros(len(a))
                    similar[maybe] = similarities(values, starts, ends, a[maybe], b[maybe], "jaccard")
                    apart = pairs.distance[at : at + COMPARED_AT_ONCE][similar < CHANCE_SIMILARITY]
                    found += np.bincount(apart, minlength=len(found))
            for distance in DISTANCES:
                pairs_apart = int(found[: distance + 1].sum())
                share = pairs_apart / possible
                yield {
                    "corpus": Path(corpus).stem,
                    "documents": len(texts),
                    "features": feature,
                    "kind": kind,
                    "distance": distance,
                    "chance_pairs": pairs_apart,
                    "chance_pairs_of_100_million_documents": round(share * CHANCE_DOCUMENTS**2 / 2),
                }


def markdown(measured: list[dict[str, Any]], by_chance: list[dict[str, Any]]) -> Iterator[str]:
    """A table for each corpus and check, a line for each kind of fingerprint, a column for each distance."""
    shown = {
        "alone": lambda row: f"{row['alone']['precision']:.3f} / {row['alone']['recall']:.3f}",
        "checked": lambda row: f"{row['checked']['recall']:.3f}",
        "sketched": lambda row: f"{row['sketched']['precision']:.3f} / {row['sketched']['recall']:.3f}",
        "by chance": lambda row: f"{row['chance_pairs']:,}",
    }
    titles = {
        "alone": "fingerprints alone, precision / recall",
        "checked": f"with `--verify jaccard --min-similarity {CHECKED_SIMILARITY}`, recall",
        "sketched": f"with `--verify sketch --min-similarity {SKETCHED_SIMILARITY}`, precision / recall",
        "by chance": f"pairs of texts that are similar by less than {CHANCE_SIMILARITY}",
    }
    tables = [(rows, name) for rows in by_corpus(measured) for name in ("alone", "checked", "sketched")]
    for rows, name in [*tables, *((rows, "by chance") for rows in by_corpus(by_chance))]:
        yield f"\n## {rows[0]['corpus']}: {titles[name]}\n"
        yield "| features | kind | " + " | ".join(f"k={distance}" for distance in SHOWN) + " |"
        yield "|---" * (len(SHOWN) + 2) + "|"
        for line in range(0, len(rows), len(DISTANCES)):
            cells = [shown[name](row) for row in rows[line : line + len(DISTANCES)] if row["distance"] in SHOWN]
            yield f"| {rows[line]['features']} | {rows[line]['kind']} | " + " | ".join(cells) + " |"


def by_corpus(rows: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    return [[row for row in rows if row["corpus"] == corpus] for corpus in dict.fromkeys(row["corpus"] for row in rows)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="CORPUS=TRUTH")
    parser.add_argument("--chance", metavar="CORPUS", help="corpus to count pairs without anything in common in")
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=FEATURES)
    parser.add_argument("--markdown", action="store_true", help="print tables in place of JSON")
    given = parser.parse_args()
    measured = []
    for corpus, _, truth in (pair.partition("=") for pair in given.corpora):
        for row in qualities(corpus, truth, given.features):
            measured.append(row)
            if row["distance"] == max(DISTANCES):
                print(row["corpus"], row["features"], row["kind"], row["alone"], file=sys.stderr)
    by_chance = list(chance(given.chance, given.features)) if given.chance else []
    if given.markdown:
        print("\n".join(markdown(measured, by_chance)))
    else:
        print(json.dumps({"quality": measured, "chance": by_chance}, indent=1))


if __name__ == "__main__":
    main()
