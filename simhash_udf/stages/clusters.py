"""Edges between nodes -> clusters of documents: connected components, right for any graph.

Ids of whatever type stay out of the graph, and documents of one node are one in it.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.stages.components import Discard, GraphLimits, Store, connected_components


def clusters(
    members: DataFrame, edges: DataFrame, store: Store, discard: Discard, limits: GraphLimits | None = None
) -> DataFrame:
    """The table `clusters`: `id`, `cluster` (the smallest id in it), `size` BIGINT, for documents that are in a pair.

    Args:
        members: `id`, `node`: the documents of each node.
        edges: `node_a`, `node_b`: all of them, or some that span the same components.
        store, discard, limits: as in `connected_components`, which needs them where the edges do not fit one task.

    Raises:
        NotConverged, IncompleteResult: as in `connected_components`.
    """
    components = connected_components(edges, store, discard, limits)
    joined = members.join(components, "node", "left").select("id", F.coalesce("component", "node").alias("component"))
    named = joined.groupBy("component").agg(F.min("id").alias("cluster"), F.count("*").alias("size")).where(F.col("size") > 1)
    return joined.join(named, "component", "inner").select("id", "cluster", "size")


def count_dropped(nodes: DataFrame, edges: DataFrame, store: Store, discard: Discard) -> int:
    """How many documents are not the one kept of their cluster: what the edges, as they are, would drop.

    Args:
        nodes: `node`, `documents`.
        edges, store, discard: as for `clusters`.
    """
    components = connected_components(edges, store, discard)
    joined = nodes.join(components, "node", "left").select("documents", F.coalesce("component", "node").alias("component"))
    counted = joined.agg(F.sum("documents"), F.count_distinct("component")).first()
    documents, clusters = tuple(counted) if counted else (0, 0)
    return int(documents or 0) - int(clusters)
