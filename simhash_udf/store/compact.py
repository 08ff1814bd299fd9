"""The state of a store -> the same state written anew by one run, so that readers need not read those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.settings import Settings
from simhash_udf.store.manifest import Version
from simhash_udf.store.run import StoreRun
from simhash_udf.store.views import Store


def compact(spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> dict[str, Any]:
    """Write the state of the store that the settings name as one run's. It says the same, and is read faster.

    Readers of earlier versions are not disturbed: their tables stay, unless `settings.keep_versions` says how many versions to
    keep.

    Returns:
        The figures of the report.

    Raises:
        OutputError: there is no store; or as `StoreRun`.
    """
    with StoreRun(spark, settings, log) as run:
        before = run.existing()
        view = Store(spark, settings.store)
        runs = len(before.runs_of(view.version))
        rewrite(view, view.fingerprints(), None, {}, run)
        figures = {"documents": run.rows("fingerprints"), "runs_before": runs, "runs_after": 1}
        version = Version(0, "", "compaction", base=True, counts={"left": 0})
        run.publish_version(version, figures, before, keep_versions=settings.keep_versions)
        return figures


def rewrite(view: Store, documents: DataFrame, gone: DataFrame | None, more: dict[str, DataFrame], run: StoreRun) -> None:
    """Write all tables of the state.

    Args:
        view: the store as it was.
        documents: the table `fingerprints` as it is to be.
        gone: `id` of documents that no row may name any more, but as the name of a cluster.
        more: rows to write beside those that there are, by table.
        run: what writes.
    """
    run.store("fingerprints", documents)
    enough = documents.where(F.col("compared") & (F.col("features") >= view.settings.min_features))
    run.store("searched", enough.where(F.col("fingerprint").isNotNull()).select("fingerprint").distinct())
    tables = {"pairs": view.pairs(), "decisions": view.standing_decisions(), **{n: view.rows(n) for n in ("clusters", "renames")}}
    for name, rows in tables.items():
        if rows is not None and gone is not None:
            for column in {"pairs": ("id_a", "id_b"), "decisions": ("id",), "clusters": ("keeper",)}.get(name, ()):
                rows = rows.join(gone.select(F.col("id").alias("gone_id")), F.col(column) == F.col("gone_id"), "left_anti")
            if name == "decisions":
                rows = rows.join(gone.select(F.col("id").alias("gone_id")), F.col("keeper") == F.col("gone_id"), "left")
                told = rows.columns[:-1]
                rows = rows.withColumn("keeper", F.when(F.col("gone_id").isNull(), F.col("keeper"))).select(told)
        parts = [part for part in (rows, more.get(name)) if part is not None]
        if parts:
            run.store(name, parts[0] if len(parts) == 1 else parts[0].unionByName(parts[1]))
