"""Time other exact schemes beside the project's kernel, on one core and in memory, and print JSON.

    python benchmarks/alternatives.py [--rows 300000] [--distances 3 6 8] [--fingerprints FILE.parquet] [--repeat 3]

    kernel      this project's search of one bucket
    bands       k + 1 equal bands, each row with all rows of its chunk (the plain use of the pigeonhole principle)
    thresholds  m parts, in one of which a pair differs in at most its threshold of 0 or 1, thresholds summing to k - m + 1:
                HEngine (Liu, Shen, Torng 2011) with the tight thresholds of GPH (Qin et al. 2018); each row looks up the chunk
                itself and those one bit away
    trie        a prefix tree joined with itself, left where the prefixes differ in more than k bits already: the pruning of the
                HA-index (Tang et al. 2015)

Each scheme finds the same pairs, which is checked. With --fingerprints the rows are those of a column `fingerprint`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
from numba import njit

from simhash_udf.core.blocks import Band, equal_bands
from simhash_udf.core.compare import bit_count
from simhash_udf.core.search import BucketSearch


def kernel(rows: Any, distance: int) -> int:
    engine = BucketSearch((Band(0, 0),), distance)
    return sum(len(a) for a, _, _ in engine.pairs(rows, 0))


@njit
def _part(row: Any, start: int, width: int) -> int:
    return np.int64((row >> np.uint64(64 - start - width)) & np.uint64((1 << width) - 1))


@njit
def _is_first(difference: Any, index: int, starts: Any, widths: Any, thresholds: Any) -> bool:
    """Whether a pair is within the threshold of no part before this one, so that this one reports it."""
    for i in range(index):
        if bit_count(np.uint64(_part(difference, starts[i], widths[i]))) <= np.uint64(thresholds[i]):
            return False
    return True


@njit
def _by_parts(rows: Any, distance: int, starts: Any, widths: Any, thresholds: Any) -> int:
    found, within = 0, np.uint64(distance)
    for index in range(len(starts)):
        start, width = starts[index], widths[index]
        ends = np.zeros((1 << width) + 1, np.int64)
        for row in rows:
            ends[_part(row, start, width) + 1] += 1
        for i in range(1 << width):
            ends[i + 1] += ends[i]
        order, free = np.empty_like(rows), ends.copy()
        for row in rows:
            chunk = _part(row, start, width)
            order[free[chunk]] = row
            free[chunk] += 1
        for chunk in range(1 << width):
            for bit in range(-1, width if thresholds[index] else 0):
                other = chunk if bit < 0 else chunk ^ (1 << bit)
                if other < chunk:
                    continue
                for i in range(ends[chunk], ends[chunk + 1]):
                    for j in range(i + 1 if bit < 0 else ends[other], ends[other + 1]):
                        difference = order[i] ^ order[j]
                        if bit_count(difference) <= within and _is_first(difference, index, starts, widths, thresholds):
                            found += 1
    return found


def bands(rows: Any, distance: int) -> int:
    cut = equal_bands(distance)
    starts, widths = (np.array([getattr(band, name) for band in cut]) for name in ("start", "width"))
    return int(_by_parts(rows, distance, starts, widths, np.zeros(len(cut), np.int64)))


def thresholds(rows: Any, distance: int) -> int:
    parts = distance // 2 + 1
    edges = [64 * i // parts for i in range(parts + 1)]
    ones = distance - parts + 1
    starts, widths = np.array(edges[:-1]), np.diff(edges)
    # Tables of more than 2^22 chunks are mostly misses: the rest of such a part is left to the comparison.
    widths = np.minimum(widths, 22)
    return int(_by_parts(rows, distance, starts, widths, np.array([1] * ones + [0] * (parts - ones))))


@njit
def _join_tries(rows: Any, distance: int) -> int:
    found, within = 0, np.uint64(distance)
    # Pairs of nodes: two ranges of the sorted rows, and the bits of their common prefixes.
    stack = [(0, len(rows), 0, len(rows), 0)]
    while stack:
        low, high, other_low, other_high, depth = stack.pop()
        if (high - low) * (other_high - other_low) <= 4096 or depth == 64:
            for i in range(low, high):
                for j in range(i + 1 if low == other_low else other_low, other_high):
                    if bit_count(rows[i] ^ rows[j]) <= within:
                        found += 1
            continue
        bit = np.uint64(63 - depth)
        middle = low + np.searchsorted((rows[low:high] >> bit) & np.uint64(1), np.uint64(1))
        other_middle = other_low + np.searchsorted((rows[other_low:other_high] >> bit) & np.uint64(1), np.uint64(1))
        halves = ((low, middle), (middle, high))
        other_halves = ((other_low, other_middle), (other_middle, other_high))
        for a in range(2):
            for b in range(2):
                one, other = halves[a], other_halves[b]
                if one[0] == one[1] or other[0] == other[1] or (low == other_low and b < a):
                    continue
                mask = ~np.uint64(0) << bit
                if bit_count((rows[one[0]] ^ rows[other[0]]) & mask) <= within:
                    stack.append((one[0], one[1], other[0], other[1], depth + 1))
    return found


def trie(rows: Any, distance: int) -> int:
    return int(_join_tries(np.sort(rows), distance))


SCHEMES: dict[str, Callable[[Any, int], int]] = {"kernel": kernel, "bands": bands, "thresholds": thresholds, "trie": trie}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=300_000)
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 6, 8])
    parser.add_argument("--fingerprints", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    if given.fingerprints:
        column = pq.read_table(given.fingerprints, columns=["fingerprint"]).column(0).drop_null()
        rows = np.unique(column.to_numpy().view(np.uint64))
    else:
        rows = np.unique(np.random.default_rng(1).integers(0, 1 << 64, given.rows, dtype=np.uint64))
    rows = np.random.default_rng(2).permutation(rows)[: given.rows]
    results = []
    for distance in given.distances:
        seconds: dict[str, list[float]] = {name: [] for name in SCHEMES}
        pairs = {name: scheme(rows[:1000], distance) for name, scheme in SCHEMES.items()}
        for _ in range(given.repeat):
            for name, scheme in SCHEMES.items():
                began = time.process_time()
                pairs[name] = scheme(rows, distance)
                seconds[name].append(time.process_time() - began)
        assert len(set(pairs.values())) == 1, pairs
        medians = {name: round(statistics.median(times), 3) for name, times in seconds.items()}
        results.append({"rows": len(rows), "max_distance": distance, "pairs": pairs["kernel"], "median_cpu_seconds": medians})
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    sys.exit(main())
