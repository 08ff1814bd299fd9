"""Clusters -> decisions: which document of each cluster is kept, and why each other one goes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.fold import hamming
from simhash_udf.knob_values import keep_order
from simhash_udf.settings import OWN_KEEP_COLUMNS, Settings
from simhash_udf.stages.order import order_fields
from simhash_udf.tables import column

DEFAULT_ORDER = keep_order(Settings.keep)
IN_REFERENCE = "in a reference"


def in_order(
    fingerprints: DataFrame,
    clusters: DataFrame,
    order: Sequence[tuple[str, bool]] = DEFAULT_ORDER,
    columns: DataFrame | None = None,
) -> tuple[DataFrame, Column]:
    """Documents with `id`, `fingerprint`, `cluster`, and a struct by which the one to be kept is the smallest of its cluster.

    Args:
        fingerprints: the table `fingerprints`.
        clusters: `id`, `cluster`.
        order: columns and whether each is descending; nulls are last in both. Documents that it leaves equal are ordered by id.
        columns: from `keep_columns`, where the order names columns of the input.
    """
    clustered = fingerprints.join(clusters.select("id", "cluster"), "id", "inner")
    if columns is not None:
        clustered = clustered.join(columns, "id", "inner")
    return clustered, order_of(clustered, order)


def order_of(documents: DataFrame, order: Sequence[tuple[str, bool]]) -> Column:
    """The struct by which the document to be kept is the smallest; its last fields are `id` and `fingerprint`.

    Args:
        documents: with the columns of the table `fingerprints`, and those of `keep_columns`.
        order: as for `in_order`.
    """
    fields: list[Column] = []
    for at, (name, descending) in enumerate(order):
        held = name if name in OWN_KEEP_COLUMNS else _held_as(at)
        fields += order_fields(F.col(held), documents.schema[held].dataType, descending=descending)
    return F.struct(*(field.alias(f"field_{at}") for at, field in enumerate(fields)), "id", "fingerprint")


def decisions(
    fingerprints: DataFrame,
    clustered: DataFrame,
    order: Column,
    max_distance: int,
    verified: tuple[DataFrame, DataFrame] | None = None,
) -> DataFrame:
    """The table `decisions`: `id`, `kept`, `cluster`, `keeper`, `distance` INT, `reason`; one row a document.

    Of each cluster the first document in the order is kept: the order is total, so the choice depends on nothing else. A dropped
    document need not be near the keeper where others between them join the two; its reason is then `chained`.

    Args:
        fingerprints: the table `fingerprints`.
        clustered, order: from `in_order`.
        max_distance: that of the search.
        verified: where not all documents within the distance are pairs, `id`, `node` of the documents, and the edges `node_a`,
            `node_b` that are left.
    """
    keepers = (
        clustered.groupBy("cluster")
        .agg(F.min(order).alias("best"))
        .select("cluster", F.col("best.id").alias("keeper"), F.col("best.fingerprint").alias("keeper_fingerprint"))
    )
    distance = hamming("fingerprint", "keeper_fingerprint").cast("int")
    within = clustered.join(keepers, "cluster", "inner").select("id", "cluster", "keeper", distance.alias("distance"))
    is_near = F.col("distance") <= max_distance
    if verified is not None:
        within = _with_edges(within, *verified)
        is_near = F.col("edge")
    is_keeper = F.col("id") == F.col("keeper")
    reason = (
        F.when(F.col("fingerprint").isNull(), "no features")
        .when(F.col("cluster").isNull(), "unique")
        .when(is_keeper, "keeper")
        .when(~is_near, "chained")
        .when(F.col("distance") == 0, "same fingerprint")
        .otherwise("within distance")
    )
    return (
        fingerprints.select("id", "fingerprint")
        .join(within, "id", "left")
        .select(
            "id",
            (F.col("cluster").isNull() | is_keeper).alias("kept"),
            "cluster",
            "keeper",
            "distance",
            reason.alias("reason"),
        )
    )


def with_references(decided: DataFrame, met: DataFrame) -> DataFrame:
    """The table `decisions` with the documents that are near a reference: they are dropped, and are in no cluster.

    Args:
        decided: the table `decisions` of all other documents.
        met: from `near_references`.
    """
    types = dict(decided.dtypes)
    nothing = {name: F.lit(None).cast(types[name]) for name in ("cluster", "keeper", "distance")}
    told = {"kept": F.lit(False), **nothing, "reason": F.lit(IN_REFERENCE)}
    dropped = met.withColumns(told)
    return decided.unionByName(dropped, allowMissingColumns=True).select(*decided.columns, *met.columns[1:])


def _with_edges(within: DataFrame, members: DataFrame, edges: DataFrame) -> DataFrame:
    """Decisions with `edge`: whether a document and its keeper are of one node, or of two with an edge."""
    ends = members.select("id", "node"), members.select(F.col("id").alias("keeper"), F.col("node").alias("keeper_node"))
    low, high = F.least("node", "keeper_node").alias("node_a"), F.greatest("node", "keeper_node").alias("node_b")
    told = within.join(ends[0], "id", "inner").join(ends[1], "keeper", "inner").select(*within.columns, low, high)
    known = edges.select("node_a", "node_b", F.lit(True).alias("known"))
    edge = F.col("known").isNotNull() | (F.col("node_a") == F.col("node_b"))
    return told.join(known, ["node_a", "node_b"], "left").select(*within.columns, edge.alias("edge"))


def keep_columns(source: DataFrame, id_column: str, order: Sequence[tuple[str, bool]]) -> DataFrame | None:
    """The columns of the input that an order names, with `id`, under names that nothing else has; None where it names none."""
    named = [column(name).alias(_held_as(at)) for at, (name, _) in enumerate(order) if name not in OWN_KEEP_COLUMNS]
    return source.select(column(id_column).alias("id"), *named) if named else None


def by_source(source: DataFrame, decided: DataFrame, id_column: str, source_column: str) -> DataFrame:
    """The table `sources`: for each value of a column of the input, `documents` and how many of them are `dropped`.

    Args:
        source: the rows that documents were made of.
        decided: the table `decisions`.
        id_column, source_column: columns of `source`.
    """
    told = source.select(column(id_column).alias("id"), column(source_column).alias("source"))
    joined = told.join(decided.select("id", "kept"), "id", "inner")
    return joined.groupBy("source").agg(F.count("*").alias("documents"), F.count_if(~F.col("kept")).alias("dropped"))


def _held_as(at: int) -> str:
    return f"keep_{at}"


def kept(source: DataFrame, decided: DataFrame, id_column: str) -> DataFrame:
    """The documents that stay, with all their columns as they came.

    Args:
        source: the rows that documents were made of.
        decided: the table `decisions`.
        id_column: the column of `source` that holds the ids.
    """
    taken = {name.lower() for name in source.columns}
    name = next(name for name in ("dropped_id" + "_" * n for n in range(len(taken) + 1)) if name not in taken)
    dropped = decided.where(~F.col("kept")).select(F.col("id").alias(name))
    return source.join(dropped, column(id_column) == F.col(name), "left_anti")
