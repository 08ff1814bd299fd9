"""Settled documents -> the rows that tell of it: decisions, clusters and renames."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from simhash_udf.settings import Settings
from simhash_udf.stages.decisions import IN_REFERENCE
from simhash_udf.store.groups import decided

REFERENCE_COLUMNS = {"reference": "string", "reference_id": "string", "reference_distance": "int"}
DECISION_COLUMNS = ("id", "kept", "cluster", "keeper", "distance", "reason", *REFERENCE_COLUMNS, "batch", "step")


def decisions_of(documents: DataFrame, settings: Settings, here: dict[str, Column], *more: str) -> DataFrame:
    """Rows of the table `decisions`, of documents that are near no reference.

    Args:
        documents: from `settled`.
        settings: those of the store.
        here: the columns `batch` and `step`, which say what came with the run.
        more: other columns of the documents to have.
    """
    nothing = {name: F.lit(None).cast(kind) for name, kind in REFERENCE_COLUMNS.items()}
    return decided(documents, settings).withColumns({**nothing, **here}).select(*DECISION_COLUMNS, *more)


def cluster_changes(documents: DataFrame, here: dict[str, Column]) -> dict[str, DataFrame]:
    """Rows of the tables `clusters` and `renames`, by name.

    Args:
        documents: whole clusters that a run changed, from `settled`, with `split`: whether a document left its cluster as that
            fell apart.
        here: as for `decisions_of`.
    """
    told = ["cluster", "size", "first_batch", "last_batch", "keeper"]
    clusters = documents.where("size > 1").select(told).distinct().withColumn("step", here["step"])
    change = F.when(F.col("split"), "split off").otherwise("merged").alias("change")
    renamed = documents.where("is_old and was_cluster <> cluster")
    renames = renamed.select(F.col("was_cluster").alias("cluster"), F.col("cluster").alias("into"), change).distinct()
    return {"clusters": clusters, "renames": renames.withColumns(here)}


def decisions_outside(documents: DataFrame, here: dict[str, Column], **more: Column) -> DataFrame:
    """Rows of the table `decisions` of documents that are not compared with others.

    Args:
        documents: the columns of the table `fingerprints` of a store, and those that tell of references.
        here: as for `decisions_of`.
        more: other columns to have.
    """
    reason = F.when(F.col("compared"), "no features").otherwise(IN_REFERENCE)
    told = {"keeper": F.col("cluster"), "distance": F.lit(None).cast("int"), "reason": reason, **more}
    return documents.withColumns({**told, **here}).select(*DECISION_COLUMNS, *more)
