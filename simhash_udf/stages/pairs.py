"""Edges between nodes -> pairs of documents.

A node stands for documents; here they come back. How many pairs that makes is known before any is made.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def pairs(members: DataFrame, edges: DataFrame, *, spanning: bool = False) -> DataFrame:
    """The table `pairs`: `id_a` < `id_b`, `distance` INT, `similarity` DOUBLE where the edges have it, each pair once.

    Args:
        members: `id`, `node`: the documents of each node. Two documents of one node are at distance 0, and of similarity 1.
        edges: `node_a`, `node_b`, `distance`, each once, and maybe `similarity`.
        spanning: not every pair, but for each node its smallest id with each other id, and for each edge the smallest ids of its
            nodes: the same clusters, in at most as many rows as documents and edges.
    """
    measured = ["similarity"] if "similarity" in edges.columns else []
    members = members.select("node", "id")
    smallest = members.groupBy("node").agg(F.min("id").alias("id"))
    firsts = smallest if spanning else members
    left = firsts.select(F.col("node").alias("node_a"), F.col("id").alias("left"))
    right = firsts.select(F.col("node").alias("node_b"), F.col("id").alias("right"))
    near = edges.join(left, "node_a", "inner").join(right, "node_b", "inner")
    a = firsts.select("node", F.col("id").alias("id_a"))
    b = members.select("node", F.col("id").alias("id_b"))
    equal = a.join(b, "node", "inner").where(F.col("id_a") < F.col("id_b"))
    return near.select(
        F.least("left", "right").alias("id_a"),
        F.greatest("left", "right").alias("id_b"),
        F.col("distance").cast("int"),
        *measured,
    ).unionByName(equal.select("id_a", "id_b", F.lit(0).alias("distance"), *(F.lit(1.0).alias(name) for name in measured)))


def with_sizes(found: DataFrame, sizes: DataFrame, what: str = "fingerprint") -> DataFrame:
    """Pairs of fingerprints, or of nodes, and how many documents each of the two stands for.

    Args:
        found: `fingerprint_a`, `fingerprint_b`, `distance`, as the search gives them; or `node_a` and so on.
        sizes: `fingerprint`, or `node`, and `documents`.
        what: "fingerprint" or "node".
    """
    for side in ("a", "b"):
        beside = sizes.select(F.col(what).alias(f"{what}_{side}"), F.col("documents").alias(f"documents_{side}"))
        found = found.join(beside, f"{what}_{side}", "inner")
    return found.select(f"{what}_a", f"{what}_b", "distance", "documents_a", "documents_b")


def count_pairs(sizes: DataFrame, found: DataFrame | None = None) -> DataFrame:
    """How many pairs of documents there are, by `distance`: one row a distance, `distance` INT and `pairs` DECIMAL.

    Args:
        sizes: `documents`, one row a node.
        found: from `with_sizes`, with all pairs; where not given only pairs of documents of one node are counted.
    """
    # Decimal, since the pairs of a large group of copies alone may pass 2^63.
    equal = sizes.where(F.col("documents") > 1).select(
        F.lit(0).alias("distance"), F.expr("cast(documents as decimal(19,0)) * (documents - 1) / 2").alias("pairs")
    )
    counted = equal if found is None else _pairs_between(found).unionByName(equal)
    return counted.groupBy("distance").agg(F.sum("pairs").cast("decimal(38,0)").alias("pairs"))


def count_pairs_between(found: DataFrame) -> dict[int, int]:
    """How many pairs of documents the pairs of nodes stand for, by distance.

    Args:
        found: from `with_sizes`.
    """
    rows = _pairs_between(found).groupBy("distance").agg(F.sum("pairs").cast("decimal(38,0)").alias("pairs")).collect()
    return {row["distance"]: int(row["pairs"]) for row in sorted(rows)}


def _pairs_between(found: DataFrame) -> DataFrame:
    return found.select("distance", F.expr("cast(documents_a as decimal(19,0)) * documents_b").alias("pairs"))


def histogram(pairs: DataFrame) -> dict[int, int]:
    """How many rows there are of each `distance`, ascending; distances without a row are left out."""
    return {row["distance"]: row["count"] for row in pairs.groupBy("distance").count().orderBy("distance").collect()}
