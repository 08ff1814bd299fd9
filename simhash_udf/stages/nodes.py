"""Fingerprints -> nodes of the graph of near-duplicates: documents that no rule tells apart are one node.

Where pairs need only be within the distance, documents of one fingerprint are a node, named by it. Other rules tell more
documents apart: --within their groups, --min-features the few-worded by their text, and --verify all by their text, since one of
two documents with the same fingerprint may be like a third and the other not. A node then has a number of its own.

    fingerprints -> nodes, and the node of each document
    pairs of fingerprints -> edges between nodes
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from simhash_udf.settings import Settings
from simhash_udf.stages.components import Store
from simhash_udf.stages.numbers import numbered
from simhash_udf.stages.pairs import count_pairs


def nodes(fingerprints: DataFrame, settings: Settings, store: Store) -> DataFrame:
    """Each node once: `node` BIGINT, and `documents` BIGINT, how many it stands for; written as the table `nodes`.

    Where a node is more than a fingerprint there are also `fingerprint`, the columns that tell nodes of the same one apart, `id`,
    the smallest of its documents, `sketch` where documents have one, and `searched`, false for documents of too few features to
    be near others.

    Args:
        fingerprints: the table `fingerprints`.
        settings: within, min_features and verify are used.
        store: called with a name and a table; gives the table back with its lineage cut.
    """
    told = fingerprints.where(F.col("fingerprint").isNotNull())
    if not settings.tells_nodes_apart:
        return store("nodes", told.groupBy(F.col("fingerprint").alias("node")).agg(F.count("*").alias("documents")))
    keys = _keys(settings)
    few = F.col("features") < settings.min_features
    grouped = told.groupBy("fingerprint", *(key.alias(name) for name, key in keys.items())).agg(
        F.count("*").alias("documents"),
        F.min("id").alias("id"),
        (~F.bool_or(few)).alias("searched"),
        # The same for all documents of one content.
        *([F.min("sketch").alias("sketch")] if settings.sketches else []),
    )
    return numbered(grouped, ["fingerprint", *keys], store, "nodes")


def members(fingerprints: DataFrame, nodes: DataFrame, settings: Settings) -> DataFrame:
    """The node of each document that has a fingerprint: `id`, `node` BIGINT."""
    told = fingerprints.where(F.col("fingerprint").isNotNull())
    if not settings.tells_nodes_apart:
        return told.select("id", F.col("fingerprint").alias("node"))
    keys = _keys(settings)
    documents = told.select("id", "fingerprint", *(key.alias(name) for name, key in keys.items())).alias("document")
    alike = F.col("document.fingerprint") == F.col("node.fingerprint")
    for name in keys:
        alike = alike & F.col(f"document.{name}").eqNullSafe(F.col(f"node.{name}"))
    return documents.join(nodes.alias("node"), alike, "inner").select("document.id", "node.node")


def searched_fingerprints(nodes: DataFrame) -> DataFrame:
    """The distinct fingerprints that may be near others: `fingerprint` BIGINT, `documents` BIGINT."""
    if "fingerprint" not in nodes.columns:
        return nodes.select(F.col("node").alias("fingerprint"), "documents")
    return nodes.where("searched").groupBy("fingerprint").agg(F.sum("documents").alias("documents"))


def count_pairs_of_nodes(found: DataFrame, nodes: DataFrame, settings: Settings) -> DataFrame:
    """How many pairs of documents there are before texts are checked, by `distance`, as `count_pairs` gives them.

    Nothing grows in it that the pairs of nodes would make: documents of one fingerprint, and of one group, are counted as one.

    Args:
        found: `fingerprint_a`, `fingerprint_b`, `distance`, `documents_a`, `documents_b`.
        nodes, settings: as for `edges`.
    """
    if not settings.tells_nodes_apart:
        return count_pairs(nodes, found)
    group = ["group"] if settings.within else []
    searched = nodes.where("searched").groupBy("fingerprint", *group).agg(F.sum("documents").alias("documents"))
    sizes = searched.select("documents").unionAll(nodes.where(~F.col("searched")).select("documents"))
    if not settings.within:
        return count_pairs(sizes, found)
    sides = [searched.select(*(F.col(name).alias(f"{name}_{side}") for name in searched.columns)) for side in "ab"]
    near = found.select("fingerprint_a", "fingerprint_b", "distance")
    near = near.join(sides[0], "fingerprint_a", "inner").join(sides[1], "fingerprint_b", "inner")
    return count_pairs(sizes, near.where(F.col("group_a").eqNullSafe(F.col("group_b"))))


def edges(found: DataFrame, nodes: DataFrame, settings: Settings) -> DataFrame:
    """Which nodes are near each other: `node_a` < `node_b` BIGINT, `distance` INT, each pair once.

    Args:
        found: `fingerprint_a`, `fingerprint_b`, `distance`, as the search gives them.
        nodes: from `nodes`.
        settings: those that the nodes were made with.
    """
    if not settings.tells_nodes_apart:
        return found.select(F.col("fingerprint_a").alias("node_a"), F.col("fingerprint_b").alias("node_b"), "distance")
    group = ["group"] if settings.within else []
    sides = {}
    for side in ("a", "b"):
        columns = [F.col(name).alias(f"{name}_{side}") for name in ("node", "fingerprint", *group)]
        sides[side] = nodes.where("searched").select(*columns)
    same_group = F.col("group_a").eqNullSafe(F.col("group_b")) if group else F.lit(True)
    near = (
        found.select("fingerprint_a", "fingerprint_b", "distance")
        .join(sides["a"], "fingerprint_a", "inner")
        .join(sides["b"], "fingerprint_b", "inner")
        .where(same_group)
    )
    made = near.select(F.least("node_a", "node_b").alias("node_a"), F.greatest("node_a", "node_b").alias("node_b"), "distance")
    if not settings.verifies:
        # Nodes of one fingerprint and one group are then the same.
        return made
    equal = sides["a"].join(sides["b"], (F.col("fingerprint_a") == F.col("fingerprint_b")) & same_group, "inner")
    equal = equal.where(F.col("node_a") < F.col("node_b")).select("node_a", "node_b", F.lit(0).alias("distance"))
    return made.unionByName(equal)


def _keys(settings: Settings) -> dict[str, Column]:
    """What tells nodes of one fingerprint apart, by name."""
    keys: dict[str, Column] = {}
    if settings.within:
        keys["group"] = F.col("group")
    if settings.verifies:
        keys["content"] = F.col("content")
    elif settings.min_features:
        keys["content"] = F.when(F.col("features") < settings.min_features, F.col("content"))
    return keys
