"""Time the search of all pairs, Parquet to Parquet, and print JSON with medians, the plan's figures and the recall.

    python benchmarks/search.py [--rows 1000000 3000000] [--distances 3 6 8] [--repeat 3]

Random distinct 64-bit fingerprints, a hundredth of them planted 0 to k+2 bits from another; the runs are interleaved, and the
first of the session is not counted. The exponent p of seconds = a * rows^p is fitted for each distance over the sizes given.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from simhash_udf.core.plan import plan_search
from simhash_udf.session import open_session
from simhash_udf.stages.search import search

PROPERTIES = Path(__file__).parent.parent / "conf" / "spark-local.conf"
PARTS = 8


def write_fingerprints(directory: Path, rows: int, max_distance: int, seed: int = 1) -> set[tuple[int, int]]:
    """Write the fingerprints as Parquet; the planted pairs within the distance, the smaller first."""
    chance = np.random.default_rng(seed)
    base = np.unique(chance.integers(-(2**63), 2**63, rows))
    planted = set()
    near = []
    for original in chance.choice(base, rows // 100, replace=False).tolist():
        distance = int(chance.integers(1, max_distance + 3))
        flips = sum(1 << int(bit) for bit in chance.choice(64, distance, replace=False))
        other = original ^ (flips - (flips >> 63 << 64))
        near.append(other)
        if distance <= max_distance:
            planted.add((min(original, other), max(original, other)))
    everything = np.unique(np.concatenate([base, np.array(near)]))
    chance.shuffle(everything)
    directory.mkdir()
    for part, values in enumerate(np.array_split(everything, PARTS)):
        pq.write_table(pa.table({"fingerprint": values}), directory / f"part-{part}.parquet")
    return planted


def run_once(spark: SparkSession, source: Path, target: Path, max_distance: int) -> float:
    began = time.monotonic()
    search(spark.read.parquet(str(source)), max_distance).write.parquet(str(target))
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 3_000_000])
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 6, 8])
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    spark = open_session("search benchmark", PROPERTIES)
    results: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as scratch:
        cases = [(rows, k) for rows in given.rows for k in given.distances]
        planted = {case: write_fingerprints(Path(scratch) / f"in-{case[0]}-{case[1]}", *case) for case in cases}
        run_once(spark, Path(scratch) / "in-{}-{}".format(*cases[0]), Path(scratch) / "first", cases[0][1])
        seconds: dict[tuple[int, int], list[float]] = {case: [] for case in cases}
        for turn in range(given.repeat):
            for rows, k in cases:
                target = Path(scratch) / f"out-{rows}-{k}-{turn}"
                seconds[rows, k].append(run_once(spark, Path(scratch) / f"in-{rows}-{k}", target, k))
        for (rows, k), times in seconds.items():
            found = pq.read_table(Path(scratch) / f"out-{rows}-{k}-0")
            pairs = set(zip(found["fingerprint_a"].to_pylist(), found["fingerprint_b"].to_pylist(), strict=True))
            plan = plan_search(rows, k)
            results.append(
                {
                    "rows": rows,
                    "max_distance": k,
                    "median_seconds": round(statistics.median(times), 2),
                    "seconds": [round(value, 2) for value in times],
                    "planned_seconds": round(plan.seconds, 2),
                    "bytes_shuffled": plan.bytes_shuffled,
                    "comparisons": round(plan.comparisons),
                    "pairs": found.num_rows,
                    "chance_pairs_expected": plan.chance_pairs,
                    "planted": len(planted[rows, k]),
                    "planted_found": len(planted[rows, k] & pairs),
                }
            )
    exponents = {}
    for k in given.distances:
        points = [(row["rows"], row["median_seconds"]) for row in results if row["max_distance"] == k]
        if len(points) > 1:
            exponents[k] = round(float(np.polyfit(*np.log(np.array(points, float)).T, 1)[0]), 3)
    machine = {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "spark": spark.version,
    }
    print(json.dumps({"machine": machine, "runs": results, "exponent_of_rows": exponents}, indent=2))
    spark.stop()


if __name__ == "__main__":
    sys.exit(main())
