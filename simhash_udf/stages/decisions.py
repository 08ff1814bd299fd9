"""Clusters -> decisions: which document of each cluster is kept, and why each other one goes."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.fold import hamming
from simhash_udf.tables import column


def decisions(fingerprints: DataFrame, clusters: DataFrame, max_distance: int) -> DataFrame:
    """The table `decisions`: `id`, `kept`, `cluster`, `keeper`, `distance` INT, `reason`; one row a document.

    Of each cluster the longest document is kept; of those of equal length the one with most features, then the smallest
    id: a total order, so the choice depends on nothing else. A dropped document's distance to the keeper may exceed
    `max_distance` where others between them join the two; its reason is then `chained`.
    """
    clustered = fingerprints.join(clusters.select("id", "cluster"), "id", "inner")
    best = F.struct((-F.col("length")).alias("length"), (-F.col("features")).alias("features"), "id", "fingerprint")
    keepers = (
        clustered.groupBy("cluster")
        .agg(F.min(best).alias("best"))
        .select("cluster", F.col("best.id").alias("keeper"), F.col("best.fingerprint").alias("keeper_fingerprint"))
    )
    distance = hamming("fingerprint", "keeper_fingerprint").cast("int")
    within = clustered.join(keepers, "cluster", "inner").select("id", "cluster", "keeper", distance.alias("distance"))
    is_keeper = F.col("id") == F.col("keeper")
    reason = (
        F.when(F.col("fingerprint").isNull(), "no features")
        .when(F.col("cluster").isNull(), "unique")
        .when(is_keeper, "keeper")
        .when(F.col("distance") == 0, "same fingerprint")
        .when(F.col("distance") <= max_distance, "within distance")
        .otherwise("chained")
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
