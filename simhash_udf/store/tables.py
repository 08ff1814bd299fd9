"""The tables of a store: their columns, and where their rows are: in Parquet directories, or in tables of a catalog.

Every run appends to them, and none changes a row. What a later run knows better supersedes: see `superseded`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf import storage
from simhash_udf.store.manifest import Version
from simhash_udf.tables import TABLES, TableOf

_STEP = ("bigint", "version of the store that the row came with")
_BATCH = ("string", "batch that the row came with; empty where none was added")

# The state: what a version is read from.
STATE: dict[str, TableOf] = {
    "fingerprints": {
        **TABLES["fingerprints"],
        "keep_0": ("any", "the document's value in the first column of --keep, where that is one of the input; and so on"),
        "batch": ("string", "batch that the document came with"),
        "entered": ("bigint", "version of the store that the document came with"),
        "compared": ("boolean", "whether it is compared with others: false of those near a --reference"),
        "cluster": ("id", "its cluster: the smallest id that was ever in it; NULL where it is not compared"),
        "kept": ("boolean", "whether it is kept"),
        "step": _STEP,
    },
    "superseded": {
        "id": ("id", "document whose earlier rows of fingerprints do not count any more"),
        "gone": ("boolean", "whether the document left the store, so that its earlier pairs do not count either"),
        "step": ("bigint", "version of the store; rows of this step and later ones count"),
    },
    "searched": {"fingerprint": ("bigint", "a fingerprint that new ones are searched against, in one run alone")},
    "pairs": {**TABLES["pairs"], "batch": _BATCH, "step": _STEP},
    "clusters": {
        "cluster": ("id", "a cluster of two or more documents that the run changed"),
        "size": ("bigint", "its documents, of all batches"),
        "first_batch": ("string", "batch of its first document"),
        "last_batch": ("string", "batch of its last document"),
        "keeper": ("id", "the document that is named as kept"),
        "step": _STEP,
    },
    "renames": {
        "cluster": ("id", "the cluster that some documents were in"),
        "into": ("id", "the cluster that they are in now"),
        "change": ("string", "merged with others, or split off"),
        "batch": _BATCH,
        "step": _STEP,
    },
    "decisions": {
        **TABLES["decisions"],
        "reason": ("string", TABLES["decisions"]["reason"][1] + "; or kept before: by a store, beside the keeper"),
        "batch": _BATCH,
        "step": _STEP,
    },
}
# Of one batch each; they have columns of the input.
BY_BATCH: dict[str, TableOf] = {name: TABLES[name] for name in ("kept", "rejects", "sources")}


class StateTables(Protocol):
    """Where the rows of the state are: all that a table format must do for a store."""

    def write(self, run: str, name: str, rows: DataFrame) -> None:
        """Append the rows of a run to a table."""

    def read(self, versions: Sequence[Version], name: str) -> DataFrame | None:
        """The rows that the runs of these versions wrote to a table; None where none wrote any."""

    def remove(self, run: str, names: Sequence[str]) -> None:
        """Remove the rows of a run from tables."""


class DirectoryTables:
    """Parquet below the store, a directory for each run and table."""

    def __init__(self, spark: SparkSession, directory: str) -> None:
        self._spark = spark
        self._directory = directory

    def write(self, run: str, name: str, rows: DataFrame) -> None:
        """As `StateTables`."""
        rows.write.parquet(storage.as_uri(self._place(run, name)))

    def read(self, versions: Sequence[Version], name: str) -> DataFrame | None:
        """As `StateTables`."""
        places = [storage.as_literal_glob(self._place(version.run, name)) for version in versions if name in version.tables]
        return self._spark.read.parquet(*places) if places else None

    def remove(self, run: str, names: Sequence[str]) -> None:
        """As `StateTables`."""
        for name in names:
            storage.remove(self._place(run, name))

    def _place(self, run: str, name: str) -> str:
        return storage.join(self._directory, "runs", run, name)


class CatalogTables:
    """Tables of the session's catalog, each with the rows of all runs and a partition column `run`.

    Rows of runs that the manifest does not name are not seen. Whether the format is Parquet, Iceberg or Delta Lake is the
    catalog's, or that of `spark.sql.sources.default`.
    """

    def __init__(self, spark: SparkSession, begin: str) -> None:
        self._spark = spark
        self._begin = begin

    def write(self, run: str, name: str, rows: DataFrame) -> None:
        """As `StateTables`."""
        rows.withColumn("run", F.lit(run)).write.mode("append").partitionBy("run").saveAsTable(self._begin + name)

    def read(self, versions: Sequence[Version], name: str) -> DataFrame | None:
        """As `StateTables`."""
        runs = [version.run for version in versions if name in version.tables]
        return self._spark.table(self._begin + name).where(F.col("run").isin(runs)).drop("run") if runs else None

    def remove(self, run: str, names: Sequence[str]) -> None:
        """As `StateTables`."""
        for name in names:
            table = self._begin + name
            if not self._spark.catalog.tableExists(table):
                continue
            try:
                self._spark.sql(f"DELETE FROM {table} WHERE run = '{run}'")
            except AnalysisException:
                # Tables of plain Parquet take away whole partitions only.
                self._spark.sql(f"ALTER TABLE {table} DROP IF EXISTS PARTITION (run = '{run}')")


def state_tables(spark: SparkSession, directory: str, catalog: str) -> StateTables:
    """The tables of a store, by what its manifest says of `catalog`."""
    return CatalogTables(spark, catalog) if catalog else DirectoryTables(spark, directory)
