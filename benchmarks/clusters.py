"""Time connected components of large graphs, Parquet to Parquet, in one task and by contraction; print JSON.

    python benchmarks/clusters.py [--edges 20000000] [--shapes random paths giant small] [--task-nodes 2000000]
        [--round-edges 1000000] [--repeat 1]

Shapes: `random`, as many nodes as edges, drawn at random, so a large component and small ones; `paths`, of 100,000 nodes each;
`giant`, one tree of all nodes, half of them leaves of 1,000 stars; `small`, cliques of five. Nodes are random 64-bit numbers
and edges are shuffled. With --task-nodes one task holds so few nodes that rounds of contraction are needed, each with a task
for so many of all edges as --round-edges says. Each result is compared with a union-find of the whole graph in memory. The peak
memory is that of the JVM and of the Python workers (Linux), sampled five times a second; pages that forked workers share are
counted for each.
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
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from memory import Sampler
from pyspark.sql import DataFrame, SparkSession

from simhash_udf import storage
from simhash_udf.core.components import UnionFind
from simhash_udf.core.numbering import Lookup
from simhash_udf.session import open_session
from simhash_udf.stages.components import GraphLimits, connected_components

PROPERTIES = Path(__file__).parent.parent / "conf" / "spark-local.conf"
PARTS = 16
Int64s = npt.NDArray[np.int64]


def numbered_edges(shape: str, edges: int, chance: np.random.Generator) -> tuple[Int64s, Int64s]:
    """The edges of a graph whose nodes are 0, 1, 2 ..."""
    if shape == "random":
        return chance.integers(0, edges, edges), chance.integers(0, edges, edges)
    if shape == "paths":
        left = np.arange(edges) + np.arange(edges) // 99_999
        return left, left + 1
    if shape == "giant":
        # A path of 1,000 centres with stars, and a random tree.
        child = np.arange(1, edges + 1)
        parent = (chance.random(edges) * child).astype(np.int64)
        parent[child < 1_000] = child[child < 1_000] - 1
        leaves = (child >= 1_000) & (child % 2 == 0)
        parent[leaves] = chance.integers(0, 1_000, int(leaves.sum()))
        return child, parent
    cliques = np.arange(edges // 10)[:, None] * 5
    left, right = np.triu_indices(5, 1)
    return (cliques + left).ravel(), (cliques + right).ravel()


def write_graph(directory: Path, shape: str, edges: int) -> UnionFind:
    """Write the graph as Parquet; its components."""
    chance = np.random.default_rng(1)
    a, b = numbered_edges(shape, edges, chance)
    names = np.unique(chance.integers(-(2**63), 2**63, max(a.max(), b.max()) + 1_000))
    chance.shuffle(names)
    order = chance.permutation(len(a))
    a, b = names[a[order]], names[b[order]]
    directory.mkdir()
    for part, rows in enumerate(np.array_split(np.arange(len(a)), PARTS)):
        table = pa.table({"node_a": np.minimum(a[rows], b[rows]), "node_b": np.maximum(a[rows], b[rows])})
        pq.write_table(table, directory / f"part-{part}.parquet")
    united = UnionFind()
    united.add(a, b)
    return united


def is_right(expected: UnionFind, result: Path) -> bool:
    """Whether two nodes have one component in the result where they have one in fact."""
    table = pq.read_table(result)
    found = Lookup(table["node"].to_numpy(), table["component"].to_numpy()).get(expected.nodes, expected.nodes)
    # Both names of a component must say the same: as many pairs of names as names of either kind.
    true = expected.smallest()
    both = len(np.unique(np.stack([found, true], 1).view([("found", "i8"), ("true", "i8")])))
    return bool(len(np.unique(found)) == len(np.unique(true)) == both)


def run_once(spark: SparkSession, source: Path, scratch: Path, limits: GraphLimits) -> dict[str, Any]:
    names: list[str] = []
    work = 0

    def store(name: str, table: DataFrame) -> DataFrame:
        names.append(name)
        table.write.parquet(str(scratch / name))
        return spark.read.schema(table.schema).parquet(str(scratch / name))

    def discard(name: str) -> None:
        nonlocal work
        work = max(work, sum(file.stat().st_size for file in scratch.rglob("*.parquet")))
        storage.remove(str(scratch / name))

    began = time.monotonic()
    with Sampler() as sampler:
        connected_components(spark.read.parquet(str(source)), store, discard, limits).write.parquet(str(scratch / "result"))
    return {
        "seconds": round(time.monotonic() - began, 1),
        "rounds": max(0, sum("labels" not in name for name in names) - 1),
        "work_mib": round(work / 2**20),
        "peak_mib": sampler.peaks.total >> 20,
        "peak_mib_by_program": {name: size >> 20 for name, size in sorted(sampler.peaks.sums.items())},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edges", type=int, default=20_000_000)
    parser.add_argument("--shapes", nargs="+", default=["random", "paths", "giant", "small"])
    parser.add_argument("--task-nodes", type=int, default=2_000_000)
    parser.add_argument("--round-edges", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=1)
    given = parser.parse_args()
    spark = open_session("clusters benchmark", PROPERTIES)
    results = []
    with tempfile.TemporaryDirectory() as scratch:
        for shape in given.shapes:
            graph = Path(scratch) / shape
            expected = write_graph(graph, shape, given.edges)
            contracted = GraphLimits(nodes=given.task_nodes, edges=given.round_edges)
            for way, limits in {"one task": GraphLimits(), "rounds": contracted}.items():
                runs = []
                for turn in range(given.repeat):
                    place = Path(scratch) / f"{shape}-{way}-{turn}"
                    place.mkdir()
                    runs.append(run_once(spark, graph, place, limits))
                    right = is_right(expected, place / "result")
                    storage.remove(str(place))
                median = statistics.median(run["seconds"] for run in runs)
                found = {"shape": shape, "way": way, "edges": given.edges, "nodes": len(expected.nodes), "right": right}
                results.append({**found, **runs[-1], "seconds": median})
                print(json.dumps(results[-1]), file=sys.stderr)
            storage.remove(str(graph))
    machine = {
        "cores": os.cpu_count(),
        "machine": platform.machine(),
        "python": platform.python_version(),
        "spark": spark.version,
    }
    print(
        json.dumps(
            {"machine": machine, "task_nodes": given.task_nodes, "round_edges": given.round_edges, "runs": results}, indent=2
        )
    )
    spark.stop()


if __name__ == "__main__":
    main()
