"""Pairs of fingerprints -> clusters of documents: connected components, right for any graph.

The nodes of the graph are fingerprints, so ids of whatever type stay out of it and copies of a document are one node.
Each task first keeps a spanning forest of its own edges; what is left goes to one task, whose union-find needs about 40
bytes an edge.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.components import Int64s, connected_components, spanning_forest
from simhash_udf.errors import GraphTooLarge

LARGEST_GRAPH = 100_000_000
_ROWS = 100_000


def clusters(fingerprints: DataFrame, found: DataFrame) -> DataFrame:
    """The table `clusters`: `id`, `cluster` (the smallest id in it), `size` BIGINT, for documents that are in a pair.

    Args:
        fingerprints: the table `fingerprints`.
        found: `fingerprint_a`, `fingerprint_b`: pairs of fingerprints, or edges that span the same components.

    Raises (when it runs):
        GraphTooLarge: more than 100 million edges are left for the last task.
    """
    forest = found.select("fingerprint_a", "fingerprint_b").mapInArrow(_forest, "fingerprint_a bigint, fingerprint_b bigint")
    components = forest.repartition(1).mapInArrow(_components, "fingerprint bigint, component bigint")
    members = (
        fingerprints.where(F.col("fingerprint").isNotNull())
        .join(components, "fingerprint", "left")
        .select("id", F.coalesce("component", "fingerprint").alias("component"))
    )
    named = members.groupBy("component").agg(F.min("id").alias("cluster"), F.count("*").alias("size")).where(F.col("size") > 1)
    return members.join(named, "component", "inner").select("id", "cluster", "size")


def _edges(batches: Iterator[pa.RecordBatch]) -> tuple[Int64s, Int64s]:
    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        rows += batch.num_rows
        if rows > LARGEST_GRAPH:
            raise GraphTooLarge(
                f"more than {LARGEST_GRAPH:,} edges reached one clustering task; it can hold that many: lower --max-distance, or "
                "use features that fewer documents share, such as longer n-grams"
            )
        held.append(batch)
    ends = [[batch.column(side).to_numpy() for batch in held] or [np.zeros(0, np.int64)] for side in (0, 1)]
    return np.concatenate(ends[0]), np.concatenate(ends[1])


def _forest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    a, b = _edges(batches)
    kept = spanning_forest(a, b)
    yield from _batches(a[kept], b[kept], ["fingerprint_a", "fingerprint_b"])


def _components(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _batches(*connected_components(*_edges(batches)), ["fingerprint", "component"])


def _batches(a: Int64s, b: Int64s, names: list[str]) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(a), _ROWS):
        part = slice(start, start + _ROWS)
        yield pa.RecordBatch.from_arrays([pa.array(a[part]), pa.array(b[part])], names)
