"""Pairs of fingerprints -> clusters of documents: connected components, right for any graph.

The nodes of the graph are fingerprints, so ids of whatever type stay out of it and copies of a document are one node.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.stages.components import Discard, GraphLimits, Store, connected_components


def clusters(
    fingerprints: DataFrame, found: DataFrame, store: Store, discard: Discard, limits: GraphLimits | None = None
) -> DataFrame:
    """The table `clusters`: `id`, `cluster` (the smallest id in it), `size` BIGINT, for documents that are in a pair.

    Args:
        fingerprints: the table `fingerprints`.
        found: `fingerprint_a`, `fingerprint_b`: pairs of fingerprints, or edges that span the same components.
        store, discard, limits: as in `connected_components`, which needs them where the edges do not fit one task.

    Raises:
        NotConverged, IncompleteResult: as in `connected_components`.
    """
    components = connected_components(found, store, discard, limits)
    members = (
        fingerprints.where(F.col("fingerprint").isNotNull())
        .join(components, "fingerprint", "left")
        .select("id", F.coalesce("component", "fingerprint").alias("component"))
    )
    named = members.groupBy("component").agg(F.min("id").alias("cluster"), F.count("*").alias("size")).where(F.col("size") > 1)
    return members.join(named, "component", "inner").select("id", "cluster", "size")
