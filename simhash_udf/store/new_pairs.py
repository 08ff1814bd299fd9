"""Edges between nodes, some of whose documents are new -> the pairs that have a new document."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def new_pairs(members: DataFrame, edges: DataFrame, *, spanning: bool) -> DataFrame:
    """The pairs with a new document: `id_a` < `id_b`, `distance` INT, `similarity` DOUBLE where the edges have it, each once.

    Args:
        members: `id`, `node`, and `cluster`, NULL of new documents. Two documents of one node are at distance 0, and of
            similarity 1.
        edges: `node_a`, `node_b`, `distance`, each once, and maybe `similarity`.
        spanning: not every pair, but for each node its smallest stored id, or new one where none is stored, with each new id, and
            for each edge the same of its two nodes unless both have stored ones, which earlier pairs join: the same clusters.
    """
    measured = ["similarity"] if "similarity" in edges.columns else []
    told = members.select("node", "id", F.col("cluster").isNull().alias("new"))
    firsts = told
    if spanning:
        first = F.min(F.struct("new", "id")).alias("first")
        firsts = told.groupBy("node").agg(first).select("node", "first.id", "first.new")
    ends = {side: firsts.select(*(F.col(name).alias(f"{name}_{side}") for name in firsts.columns)) for side in "ab"}
    # Never all stored documents of one node with all of another.
    near = [
        edges.join(ends["a"].where(a), "node_a", "inner").join(ends["b"].where(b), "node_b", "inner")
        for a, b in (("new_a", "true"), ("not new_a", "new_b"))
    ]
    between = (
        near[0]
        .unionByName(near[1])
        .select(
            F.least("id_a", "id_b").alias("id_a"),
            F.greatest("id_a", "id_b").alias("id_b"),
            F.col("distance").cast("int").alias("distance"),
            *measured,
        )
    )
    fresh = told.where("new").select("node", F.col("id").alias("fresh"))
    once = ~F.col("new") | (F.col("id") < F.col("fresh"))
    within = firsts.join(fresh, "node", "inner").where(once if not spanning else F.col("id") != F.col("fresh"))
    equal = within.select(
        F.least("id", "fresh").alias("id_a"),
        F.greatest("id", "fresh").alias("id_b"),
        F.lit(0).alias("distance"),
        *(F.lit(1.0).alias(name) for name in measured),
    )
    return between.unionByName(equal)


def count_new_pairs(members: DataFrame, edges: DataFrame) -> DataFrame:
    """How many pairs `new_pairs` makes without `spanning`, by `distance`: `distance` INT and `pairs` DECIMAL."""
    sizes = members.groupBy("node").agg(
        F.count_if(F.col("cluster").isNull()).cast("decimal(19,0)").alias("new"),
        F.count("cluster").cast("decimal(19,0)").alias("old"),
    )
    ends = [sizes.select(*(F.col(name).alias(f"{name}_{side}") for name in sizes.columns)) for side in "ab"]
    near = edges.join(ends[0], "node_a", "inner").join(ends[1], "node_b", "inner")
    made = F.expr("new_a * new_b + new_a * old_b + old_a * new_b")
    equal = sizes.select(F.lit(0).alias("distance"), F.expr("new * (new - 1) / 2 + new * old").alias("pairs"))
    counted = near.select("distance", made.alias("pairs")).unionByName(equal).where(F.col("pairs") > 0)
    return counted.groupBy("distance").agg(F.sum("pairs").cast("decimal(38,0)").alias("pairs"))
