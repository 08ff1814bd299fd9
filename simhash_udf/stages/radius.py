"""Clusters -> clusters in which every document is within a radius of the one that is kept.

distinct fingerprints of each cluster, in the order of the keep rule --mapInArrow--> the leader of each
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F


def within_radius(clustered: DataFrame, order: Column, radius: int) -> DataFrame:
    """The table `clusters`, in which no document is further from its keeper than the radius; some clusters have one document.

    Args:
        clustered: `id`, `fingerprint` BIGINT, `cluster`, and what the order needs.
        order: a struct that is smallest for the document of a cluster that is to be kept, and different for any two.
        radius: bits, 0 to 64.

    Of each cluster the keeper takes those within the radius with it, and the others are cut again in the same way: see
    `simhash_udf.core.radius`. A task holds the distinct fingerprints of its largest cluster, 32 bytes each.
    """
    best = clustered.groupBy("cluster", "fingerprint").agg(F.min(order).alias("best"))
    ranked = best.select(
        "cluster", "fingerprint", F.row_number().over(Window.partitionBy("cluster").orderBy("best")).alias("rank")
    )
    kind = clustered.schema["cluster"].dataType.simpleString()
    led = (
        ranked.repartition("cluster")
        .sortWithinPartitions("cluster", "rank")
        .mapInArrow(partial(_led, radius=radius), f"cluster {kind}, fingerprint BIGINT, leader BIGINT")
    )
    cut = clustered.select("id", "cluster", "fingerprint").join(led, ["cluster", "fingerprint"], "inner")
    named = cut.groupBy("cluster", "leader").agg(F.min("id").alias("name"), F.count("*").alias("size"))
    return cut.join(named, ["cluster", "leader"], "inner").select("id", F.col("name").alias("cluster"), "size")


def _led(batches: Iterator[pa.RecordBatch], *, radius: int) -> Iterator[pa.RecordBatch]:
    held: list[pa.RecordBatch] = []
    for batch in batches:
        begins = np.flatnonzero(np.asarray(batch.column(2)) == 1)
        if len(begins) and held:
            yield from _led_clusters([*held, batch.slice(0, begins[-1])], radius)
            held = []
        elif len(begins):
            yield from _led_clusters([batch.slice(0, begins[-1])], radius)
        held.append(batch.slice(begins[-1]) if len(begins) else batch)
    yield from _led_clusters(held, radius)


def _led_clusters(batches: list[pa.RecordBatch], radius: int) -> Iterator[pa.RecordBatch]:
    """The leaders of whole clusters."""
    from simhash_udf.core.radius import lead

    if not sum(len(batch) for batch in batches):
        return
    fingerprints = np.concatenate([np.asarray(batch.column(1), np.int64) for batch in batches])
    begins = np.concatenate([np.asarray(batch.column(2)) == 1 for batch in batches])
    leaders = fingerprints[lead(fingerprints.view(np.uint64), begins, radius)]
    first = 0
    for batch in batches:
        if len(batch):
            columns = [batch.column(0), batch.column(1), pa.array(leaders[first : first + len(batch)])]
            yield pa.RecordBatch.from_arrays(columns, ["cluster", "fingerprint", "leader"])
        first += len(batch)
