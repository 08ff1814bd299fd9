"""A store as its readers see it: DataFrames of what holds at one version."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf import storage
from simhash_udf.errors import InputError
from simhash_udf.settings import Settings
from simhash_udf.store.changes import DECISION_COLUMNS, REFERENCE_COLUMNS
from simhash_udf.store.groups import decided, settled
from simhash_udf.store.manifest import Version, read_store
from simhash_udf.store.tables import state_tables


class Store:
    """What a store holds at one of its versions.

    Args:
        spark: a session.
        directory: of the store.
        as_of: the name of a batch, for the store as it was when that had been added, or the number of a version; the newest
            where not given.

    Raises:
        InputError: there is no such batch or version, or it has expired.
        OutputError: the directory is no store.
    """

    def __init__(self, spark: SparkSession, directory: str, as_of: str | int | None = None) -> None:
        self.spark = spark
        self.directory = directory
        self.manifest = read_store(directory)
        self.version = self.manifest.at(as_of, directory)
        self._versions: Sequence[Version] = self.manifest.runs_of(self.version)
        self._tables = state_tables(spark, directory, self.manifest.catalog)

    @property
    def batches(self) -> list[str]:
        """The names of the batches, in the order in which they came."""
        versions = self.manifest.versions
        return [version.batch for version in versions if version.batch and version.version <= self.version.version]

    @property
    def settings(self) -> Settings:
        """The settings that all batches share."""
        return settings_of(self.manifest.settings)

    def rows(self, name: str) -> DataFrame | None:
        """All rows of a table of the state that were written up to this version; None where there is none."""
        return self._tables.read(self._versions, name)

    def fingerprints(self) -> DataFrame:
        """The documents: `fingerprints` as `simhash_udf.store.tables` describes it, one row each."""
        rows = self.rows("fingerprints")
        assert rows is not None
        return self._standing(rows, ["id"], only_gone=False)

    def pairs(self) -> DataFrame | None:
        """The pairs of documents: `id_a` < `id_b`, `distance`, maybe `similarity`, `batch`, `step`; None where there is none."""
        rows = self.rows("pairs")
        return rows if rows is None else self._standing(rows, ["id_a", "id_b"], only_gone=True)

    def searched(self) -> DataFrame | None:
        """The distinct fingerprints that new ones are searched against; some may be of documents that are gone."""
        return self.rows("searched")

    def clusters(self) -> DataFrame:
        """The documents of clusters of two or more: `id`, `cluster`, `size` BIGINT, `first_batch`, `last_batch`."""
        joined = self._settled().where(F.col("size") > 1)
        return joined.select("id", "cluster", "size", "first_batch", "last_batch")

    def standing_decisions(self) -> DataFrame | None:
        """What was decided of the documents, and when: all rows of the table `decisions`; None where there is none."""
        rows = self.rows("decisions")
        return rows if rows is None else self._standing(rows, ["id"], only_gone=True)

    def decisions(self) -> DataFrame:
        """What holds of each document: the table `decisions` of a run that had all batches as its input."""
        documents = self.fingerprints()
        outside = documents.where(F.col("cluster").isNull())
        joined = decided(self._settled(), self.settings)
        met = None if (rows := self.standing_decisions()) is None else rows.where(F.col("reference").isNotNull())
        columns = [*DECISION_COLUMNS[:6]]
        types = dict(joined.dtypes)
        nothing = [F.lit(None).cast(types[name]).alias(name) for name in ("cluster", "keeper", "distance")]
        reason = F.when(F.col("compared"), F.lit("no features")).otherwise(F.lit("in a reference"))
        every = joined.select(columns).unionByName(outside.select("id", "kept", *nothing, reason.alias("reason")))
        beside = [*REFERENCE_COLUMNS]
        if met is None:
            return every.withColumns({name: F.lit(None).cast(kind) for name, kind in REFERENCE_COLUMNS.items()})
        return every.join(met.select("id", *beside), "id", "left")

    def kept(self, batch: str) -> DataFrame:
        """The documents of a batch that were kept when it was added, with all their columns as they came.

        Raises:
            InputError: there is no such batch.
        """
        added = self.manifest.batch(batch)
        if added is None:
            raise InputError(f"the store {self.directory!r} has no batch {batch!r}; it has {', '.join(self.batches[-3:])}")
        path = added.tables["kept"]["path"]
        return self.spark.read.parquet(storage.as_literal_glob(storage.join(self.directory, path)))

    def _settled(self) -> DataFrame:
        documents = self.fingerprints().where(F.col("cluster").isNotNull())
        names = documents.withColumns({"component": F.col("cluster"), "name": F.col("cluster"), "is_old": F.lit(True)})
        return settled(names, self.settings)

    def _standing(self, rows: DataFrame, ids: Sequence[str], *, only_gone: bool) -> DataFrame:
        """The rows that no later one of `superseded` takes away, by any of their ids."""
        superseded = self.rows("superseded")
        if superseded is None:
            return rows
        if only_gone:
            superseded = superseded.where("gone")
        last = superseded.groupBy(F.col("id").alias("superseded_id")).agg(F.max("step").alias("superseded_at"))
        for name in ids:
            after: Column = (F.col(name) == F.col("superseded_id")) & (F.col("step") < F.col("superseded_at"))
            rows = rows.join(last, after, "left_anti")
        return rows


def settings_of(shared: dict[str, object]) -> Settings:
    """The settings that a manifest of a store has, by their flags' names."""
    values = {name.replace("-", "_"): tuple(value) if isinstance(value, list) else value for name, value in shared.items()}
    return Settings(**values)  # type: ignore[arg-type]
