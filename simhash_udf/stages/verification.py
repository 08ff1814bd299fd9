"""Edges -> edges with the similarity of their texts: an exact check of what the fingerprints say.

    texts of the nodes that have an edge --mapInArrow--> sets of hashed n-grams, written once
    edges, each in a cell of its component --+
    sets, in each cell that needs them     --+--shuffle by cell, mapInArrow--> edges with their similarity

A component is one cell, so a set travels once, however many edges its node has. A component that is too large for a task is cut:
its nodes into blocks, and a cell for each two blocks, so that a set travels once for each block at most. The texts are read once
more, and those of the nodes that have an edge are taken, by a join that shuffles none where these are few (`pipeline.py`); what
the check costs beyond that grows with these nodes and with the edges.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.sketch import SKETCH_BITS, SKETCH_WORDS
from simhash_udf.errors import IncompleteResult
from simhash_udf.stages.components import Discard, Store, connected_components

TASK_BYTES = 1 << 25  # of sets that one cell has at most, and one task on the average
TASK_EDGES = 1 << 19
_EDGE_ROWS = 1 << 16
_SET_BYTES = 1 << 28
SET_SCHEMA = "node BIGINT, grams BINARY, bytes BIGINT"
_COMPARED = "node_a BIGINT, node_b BIGINT, distance INT, similarity DOUBLE"


def with_similarity(
    edges: DataFrame,
    texts: DataFrame,
    store: Store,
    discard: Discard,
    *,
    measure: str,
    unit: str,
    ngram: int,
    task_bytes: int = TASK_BYTES,
    task_edges: int = TASK_EDGES,
) -> DataFrame:
    """Each edge with the similarity of its two texts: `node_a`, `node_b`, `distance`, `similarity` DOUBLE from 0 to 1.

    Args:
        edges: `node_a`, `node_b` BIGINT, `distance` INT; written, since they are read several times.
        texts: `node` BIGINT, `text`: that of each node that has an edge, once; those of others do no harm.
        store, discard: as in `connected_components`.
        measure: "jaccard" or "containment".
        unit, ngram: what the sets are of.
        task_bytes, task_edges: what a cell may hold.

    Raises:
        IncompleteResult: the text of a node is missing; raised in a task.
        NotConverged, IncompleteResult: as in `connected_components`.
    """
    made_sets = partial(to_sets, unit=unit, ngram=ngram)
    sets = store("gram_sets", texts.mapInArrow(made_sets, SET_SCHEMA))
    components = store("verified_components", connected_components(edges, store, discard))
    placed = edges.join(components.withColumnRenamed("node", "node_a"), "node_a", "left").select(
        "node_a", "node_b", "distance", F.coalesce("component", "node_a").alias("component")
    )
    loads = (
        sets.select("node", "bytes")
        .join(components, "node", "left")
        .groupBy(F.coalesce("component", "node").alias("component"))
        .agg(F.sum("bytes").alias("bytes"), F.count("*").alias("nodes"))
        .join(placed.groupBy("component").agg(F.count("*").alias("edges")), "component", "inner")
        # Two blocks are in a cell, and of the edges of a component each cell has about one in blocks^2 / 2.
        .withColumn(
            "blocks",
            F.when((F.col("bytes") <= task_bytes) & (F.col("edges") <= task_edges), 1).otherwise(
                F.greatest(F.ceil(2 * F.col("bytes") / task_bytes), F.ceil(F.sqrt(2 * F.col("edges") / task_edges)))
            ),
        )
    )
    loads = store("component_loads", loads)
    # A set goes to each block at most, and for each edge at most.
    shipped = F.least(F.col("bytes") * F.col("blocks"), F.col("bytes") * 2.0 * F.col("edges") / F.col("nodes"))
    summed = loads.agg(F.sum(shipped), F.sum("edges")).first()
    number_of_bytes, number = tuple(summed) if summed else (0, 0)
    tasks = max(1, -(-int(number_of_bytes or 0) // task_bytes), -(-int(number or 0) // task_edges))

    def block(node: str) -> Column:
        return F.pmod(F.xxhash64(node), F.col("blocks"))

    celled = (
        placed.join(loads.select("component", "blocks"), "component", "inner")
        .withColumn("low", F.least(block("node_a"), block("node_b")))
        .withColumn("high", F.greatest(block("node_a"), block("node_b")))
    )
    cell = ["component", "low", "high"]
    wanted = celled.select("node_a", *cell).unionAll(celled.select("node_b", *cell)).toDF("node", *cell).distinct()
    shipped_sets = wanted.join(sets.select("node", "grams"), "node", "inner").select(
        *cell, F.col("node").alias("node_a"), F.lit(None).cast("bigint").alias("node_b"), F.lit(0).alias("distance"), "grams"
    )
    shipped_edges = celled.select(*cell, "node_a", "node_b", "distance", F.lit(None).cast("binary").alias("grams"))
    rows = shipped_sets.unionByName(shipped_edges).repartition(tasks, *cell).select("node_a", "node_b", "distance", "grams")
    return rows.mapInArrow(partial(_compared, measure=measure), _COMPARED)


def with_estimated_similarity(edges: DataFrame, nodes: DataFrame) -> DataFrame:
    """As `with_similarity`, but estimated from the sketches of the nodes: no text is read, and nothing leaves Spark.

    Args:
        edges: `node_a`, `node_b` BIGINT, `distance` INT.
        nodes: `node` BIGINT, `sketch` ARRAY<BIGINT>, each node once.
    """
    a, b = (nodes.select(F.col("node").alias(f"node_{end}"), F.col("sketch").alias(f"sketch_{end}")) for end in "ab")
    joined = edges.join(a, "node_a", "inner").join(b, "node_b", "inner")
    return joined.select("node_a", "node_b", "distance", estimated_similarity("sketch_a", "sketch_b").alias("similarity"))


def estimated_similarity(sketch_a: str, sketch_b: str) -> Column:
    """The similarity that two columns of sketches tell, DOUBLE from 0 to 1."""
    words = [F.bit_count(F.col(sketch_a)[word].bitwiseXOR(F.col(sketch_b)[word])) for word in range(SKETCH_WORDS)]
    differing = reduce(Column.__add__, words)
    return F.greatest(F.lit(0.0), 1 - 2 * differing / F.lit(float(SKETCH_BITS)))


def to_sets(batches: Iterator[pa.RecordBatch], *, unit: str, ngram: int) -> Iterator[pa.RecordBatch]:
    """Rows (node, text) -> rows of SET_SCHEMA: the hashes of a set as one value, 8 bytes each, and how many bytes that is."""
    from simhash_udf.core.similarity import gram_sets

    for batch in batches:
        values, ends = gram_sets(batch.column(1), unit=unit, ngram=ngram)
        starts = np.append(0, ends[:-1]).astype(np.int64)
        # Batches of at most so many bytes, or of one set.
        first = 0
        while first < len(ends):
            after = max(first + 1, int(np.searchsorted(ends, starts[first] + _SET_BYTES // 8, side="right")))
            low, high = starts[first], ends[after - 1]
            offsets = np.append(0, ends[first:after] - low) * 8
            sets = pa.Array.from_buffers(
                pa.binary(), after - first, [None, pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(values[low:high])]
            )
            sizes = pa.array((ends - starts)[first:after] * 8)
            yield pa.RecordBatch.from_arrays(
                [batch.column(0).slice(first, after - first), sets, sizes], ["node", "grams", "bytes"]
            )
            first = after


def _compared(batches: Iterator[pa.RecordBatch], *, measure: str) -> Iterator[pa.RecordBatch]:
    from simhash_udf.core.numbering import Numbering
    from simhash_udf.core.similarity import similarities

    nodes, values, sizes = [np.empty(0, np.int64)], [np.empty(0, np.uint64)], [np.empty(0, np.int64)]
    edges = [np.empty((3, 0), np.int64)]
    for batch in batches:
        a, b, distance, grams = batch.columns
        is_edge = np.asarray(b.is_valid())
        kept = pa.array(is_edge)
        edges.append(np.stack([np.asarray(column.filter(kept), np.int64) for column in (a, b, distance)]))
        grams = grams.filter(pa.array(~is_edge))
        nodes.append(np.asarray(a.filter(pa.array(~is_edge)), np.int64))
        offsets = np.frombuffer(grams.buffers()[1], np.int32)[grams.offset : grams.offset + len(grams) + 1].astype(np.int64)
        sizes.append(np.diff(offsets) // 8)
        count = int(sizes[-1].sum())
        if count:
            values.append(np.frombuffer(grams.buffers()[2], "<u8", count, int(offsets[0])))
    # A set may be here for several cells.
    numbering = Numbering(np.concatenate(nodes))
    numbers = numbering.find(np.concatenate(nodes))
    ends = np.cumsum(np.concatenate(sizes))
    end_of, start_of = np.zeros(numbering.count, np.int64), np.zeros(numbering.count, np.int64)
    end_of[numbers], start_of[numbers] = ends, ends - np.concatenate(sizes)
    whole = np.concatenate(values)
    for some in edges:
        for start in range(0, some.shape[1], _EDGE_ROWS):
            a, b, distance = some[:, start : start + _EDGE_ROWS]
            first, second = numbering.find(a), numbering.find(b)
            missing = np.concatenate([a[first < 0], b[second < 0]])
            if len(missing):
                raise IncompleteResult(
                    f"the texts of {len(missing):,} documents of pairs were not found when the input was read again; it changed "
                    "while the job read it: run again on files that stay as they are"
                )
            similarity = similarities(whole, start_of, end_of, first, second, measure)
            columns = [pa.array(a), pa.array(b), pa.array(distance.astype(np.int32)), pa.array(similarity)]
            yield pa.RecordBatch.from_arrays(columns, ["node_a", "node_b", "distance", "similarity"])
