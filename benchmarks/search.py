"""Time the search, Parquet to Parquet, and print JSON: medians, the plan's figures, memory, evenness of tasks and recall.

    python benchmarks/search.py [--cases 1000000:3 3000000:6 ...] [--repeat 3] [--peer DIR]

A case is KIND:ROWS:K, or ROWS:K for the first kind:

    even        random distinct fingerprints, a hundredth of them planted 1 to K + 2 bits from another
    hot         likewise, but a tenth share their first 16 bits
    dense       likewise, with 200,000 more within 4 bits of one centre; all pairs would be billions, so a spanning search
    copies      even, each row twice: documents with equal fingerprints are one row, made so within the time
    originals   the same without the copies
    new         a hundredth of the rows searched against the others, which are not compared with each other
    find_all    even, by simhash-cpp in memory, with K + 3 or K + 2 blocks, on one thread (needs --peer)

Runs are interleaved, and the first of the session is not counted. The exponent p of seconds = a * rows^p is fitted for each K
over the even cases. --peer names the directory `simhash/simhash-cpp` of simhash-py 0.4.0 (its source on PyPI), which is compiled
with g++ -O3.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from memory import Sampler
from pyspark.sql import DataFrame, SparkSession

from simhash_udf.core.plan import SearchPlan, plan_search
from simhash_udf.session import cores_of, open_session
from simhash_udf.settings import Settings
from simhash_udf.stages.nodes import nodes, searched_fingerprints
from simhash_udf.stages.sample import sample
from simhash_udf.stages.search import search, search_new

CONF = Path(__file__).parent.parent / "conf"
PARTS = 8
DENSE_ROWS = 200_000
Rows = npt.NDArray[np.uint64]


def flipped(rows: Rows, bits: npt.NDArray[np.int64], chance: np.random.Generator) -> Rows:
    """Each row with so many of its bits flipped, the bits all different."""
    order = chance.random((len(rows), 64)).argpartition(16, axis=1)[:, :16]
    # The first 16 of a random order of the bits, in random order themselves.
    order = np.take_along_axis(order, chance.random(order.shape).argsort(axis=1), axis=1)
    masks = np.where(np.arange(16) < bits[:, None], np.uint64(1) << order.astype(np.uint64), np.uint64(0))
    return np.asarray(rows ^ np.bitwise_xor.reduce(masks, axis=1), np.uint64)


def fingerprints(kind: str, rows: int, max_distance: int) -> tuple[Rows, pd.DataFrame]:
    """The fingerprints of a case, and the planted pairs that must be found."""
    chance = np.random.default_rng(1)
    base = chance.integers(0, 1 << 64, rows, dtype=np.uint64)
    if kind == "hot":
        base[: rows // 10] &= np.uint64((1 << 48) - 1)
    originals = base[-(rows // 100) :]
    distances = chance.integers(1, max_distance + 3, len(originals))
    near = flipped(originals, distances, chance)
    planted = distances <= max_distance
    ends = np.sort(np.stack([originals[planted], near[planted]]).view(np.int64), axis=0)
    pairs = pd.DataFrame({"fingerprint_a": ends[0], "fingerprint_b": ends[1]})
    added = [near]
    if kind == "dense":
        # Evenly from the ball of 4 bits around the centre, which has 679,121 members.
        sizes = np.array([math.comb(64, bits) for bits in range(5)])
        bits = chance.choice(5, 2 * DENSE_ROWS, p=sizes / sizes.sum())
        centres = np.full(len(bits), chance.integers(0, 1 << 64, dtype=np.uint64))
        added.append(chance.permutation(np.unique(flipped(centres, bits, chance)))[:DENSE_ROWS])
    # So few of 2^64 numbers are all different but for a chance of one in ten thousand.
    return np.concatenate([base, *added]), pairs


def write(rows: Rows, directory: Path) -> None:
    directory.mkdir()
    for part, values in enumerate(np.array_split(rows.view(np.int64), PARTS)):
        # Random numbers have no dictionary and do not compress.
        table = pa.table({"fingerprint": values})
        pq.write_table(table, directory / f"part-{part}.parquet", use_dictionary=False, compression="none")


class Case:
    """One line of the result: what is searched, how often it ran and what that took."""

    def __init__(self, given: str, scratch: Path, peer: Path | None) -> None:
        *kind, rows, distance = given.split(":")
        self.name, self.kind, self.rows, self.max_distance = given, (kind or ["even"])[0], int(float(rows)), int(distance)
        self.spanning = self.kind == "dense"
        self.runs: list[dict[str, Any]] = []
        self.windows: list[tuple[float, float]] = []
        self.plan: SearchPlan | None = None
        self._place, self._peer = scratch / given.replace(":", "-"), peer
        values, self._planted = fingerprints(self.kind, self.rows, self.max_distance)
        self._place.mkdir()
        if self.kind == "new":
            write(values[: self.rows // 100], self._place / "new")
            values = values[self.rows // 100 :]
        elif self.kind == "copies":
            values = np.concatenate([values, values])
        if self.kind == "find_all":
            values.tofile(self._place / "in")
        else:
            write(values, self._place / "in")

    def run(self, spark: SparkSession) -> None:
        """Do it once more, and note what it took."""
        began_at, began = time.time(), time.monotonic()
        found: dict[str, Any] = {}
        with Sampler() as sampler:
            if self.kind == "find_all":
                found = self._run_peer()
            else:
                self._search(spark).write.mode("overwrite").parquet(str(self._place / "out"))
                found["seconds"] = time.monotonic() - began
        found["peak_bytes"] = {"all": sampler.peaks.total, "one_process": sampler.peaks.one}
        self.windows.append((began_at, time.time()))
        self.runs.append(found)

    def _search(self, spark: SparkSession) -> DataFrame:
        given = spark.read.parquet(str(self._place / "in"))
        if self.kind == "new":
            return search_new(spark.read.parquet(str(self._place / "new")), given, self.max_distance)
        if self.kind in ("copies", "originals"):
            groups = self._place / "groups"
            searched_fingerprints(nodes(given, Settings(), lambda _, table: table)).write.mode("overwrite").parquet(str(groups))
            given = spark.read.parquet(str(groups))
        taken = sample(given, self.max_distance)
        self.plan = plan_search(taken.rows, self.max_distance, sample=taken, spanning=self.spanning, cores=cores_of(spark))
        return search(given, self.max_distance, spanning=self.spanning, plan=self.plan)

    def _run_peer(self) -> dict[str, Any]:
        assert self._peer is not None, "find_all needs --peer"
        runs = []
        for blocks in (self.max_distance + 3, self.max_distance + 2):
            words = [str(self._peer), str(self._place / "in"), str(blocks), str(self.max_distance)]
            seconds, pairs = subprocess.run(words, capture_output=True, text=True, check=True).stdout.split()
            runs.append({"seconds": float(seconds), "blocks": blocks, "pairs": int(pairs)})
        return min(runs, key=lambda run: run["seconds"])

    def result(self, tasks: Callable[[float, float], list[float]]) -> dict[str, Any]:
        """The line of this case; `tasks` as from `tasks_in_log`."""
        seconds = [run["seconds"] for run in self.runs]
        shown: dict[str, Any] = {
            "case": self.name,
            "median_seconds": round(statistics.median(seconds), 2),
            "seconds": [round(value, 2) for value in seconds],
            "peak_mb": {
                "all processes": max(run["peak_bytes"]["all"] for run in self.runs) >> 20,
                **{f"one {name}": size >> 20 for name, size in self.runs[-1]["peak_bytes"]["one_process"].items()},
            },
        }
        if self.kind == "find_all":
            return {**shown, "blocks": self.runs[0]["blocks"], "pairs": self.runs[0]["pairs"]}
        found = pq.read_table(self._place / "out").to_pandas()
        shown["pairs"] = len(found)
        if not self.spanning and self.kind != "new":
            shown |= {"planted": len(self._planted), "planted_found": len(found.merge(self._planted))}
        longest = [times for window in self.windows if (times := tasks(*window))]
        if longest:
            shown["tasks"] = len(longest[0])
            shown["slowest_task_to_median"] = round(
                statistics.median(max(times) / statistics.median(times) for times in longest), 2
            )
        if self.plan is not None:
            shown |= {
                "planned_seconds": round(self.plan.seconds, 2),
                "planned_to_measured": round(self.plan.seconds / statistics.median(seconds), 2),
                "planned_pairs": round(self.plan.near_pairs),
                "band_widths": [band.width for band in self.plan.bands],
                "mb_shuffled": round(self.plan.bytes_shuffled / 1e6),
                "comparisons": round(self.plan.comparisons),
                "task_mb": self.plan.task_bytes >> 20,
                "most_parts_of_a_bucket": max(map(max, self.plan.parts)),
            }
        return shown


def tasks_in_log(log: Path) -> Callable[[float, float], list[float]]:
    """From an event log, a function that gives the seconds of the tasks of the last stage in a span of time."""
    ended: list[tuple[int, float, float]] = []
    for line in log.read_text(encoding="utf-8").splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerTaskEnd":
            info = event["Task Info"]
            ended.append((event["Stage ID"], info["Launch Time"] / 1000, info["Finish Time"] / 1000))

    def tasks(began: float, until: float) -> list[float]:
        within = [(stage, end - start) for stage, start, end in ended if began <= start and end <= until]
        last = max((stage for stage, _ in within), default=-1)
        return [seconds for stage, seconds in within if stage == last]

    return tasks


def compiled_peer(source: Path, scratch: Path) -> Path:
    program = scratch / "find_all"
    sources = [Path(__file__).with_name("find_all.cpp"), *sorted((source / "src").glob("*.cpp"))]
    words = ["g++", "-O3", "-march=native", "-std=c++11", f"-I{source / 'include'}", "-o", str(program), *map(str, sources)]
    subprocess.run(words, check=True)
    return program


def session_with_log(scratch: Path) -> SparkSession:
    """A session with the project's own properties, that also keeps a log of its events."""
    properties = scratch / "spark.conf"
    shutil.copy(CONF / "log4j2.properties", scratch)
    logged = {"enabled": "true", "dir": (scratch / "events").as_uri(), "compress": "false", "rolling.enabled": "false"}
    (scratch / "events").mkdir()
    lines = [f"spark.eventLog.{key} {value}" for key, value in logged.items()]
    properties.write_text("\n".join([(CONF / "spark-local.conf").read_text(encoding="utf-8"), *lines, ""]), encoding="utf-8")
    return open_session("search benchmark", properties)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", default=["1000000:3", "3000000:3", "1000000:6", "3000000:6"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        scratch = Path(directory)
        peer = compiled_peer(given.peer, scratch) if given.peer else None
        spark = session_with_log(scratch)
        machine = {
            "cores": os.cpu_count(),
            "machine": platform.machine(),
            "python": platform.python_version(),
            "spark": spark.version,
        }
        cases = [Case(case, scratch, peer) for case in given.cases]
        (scratch / "first").mkdir()
        Case("300000:3", scratch / "first", peer).run(spark)
        for _ in range(given.repeat):
            for case in cases:
                case.run(spark)
                print(case.name, round(case.runs[-1]["seconds"], 2), file=sys.stderr, flush=True)
        spark.stop()
        tasks = tasks_in_log(next((scratch / "events").iterdir()))
        results = [case.result(tasks) for case in cases]
    exponents = {}
    for distance in sorted({case.max_distance for case in cases}):
        points = [
            (case.rows, row["median_seconds"])
            for case, row in zip(cases, results, strict=True)
            if (case.kind, case.max_distance) == ("even", distance)
        ]
        if len(points) > 1:
            exponents[distance] = round(float(np.polyfit(*np.log(np.array(points, float)).T, 1)[0]), 3)
    print(json.dumps({"machine": machine, "cases": results, "exponent_of_rows": exponents}, indent=2))


if __name__ == "__main__":
    sys.exit(main())
