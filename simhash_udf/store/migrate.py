"""The texts of a store's documents and other settings -> the store fingerprinted, compared and decided anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.intake import take_in
from simhash_udf.pipeline import apart, fingerprint_documents
from simhash_udf.settings import Settings
from simhash_udf.stages.decisions import keep_columns
from simhash_udf.store.changes import REFERENCE_COLUMNS, cluster_changes, decisions_of, decisions_outside
from simhash_udf.store.groups import grown
from simhash_udf.store.manifest import Version
from simhash_udf.store.run import StoreRun
from simhash_udf.store.shared import columns_of, shared_settings
from simhash_udf.store.views import Store

SHOWN_IDS = 10


def migrate(spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> dict[str, Any]:
    """Make the state of a store anew by other settings, from texts of all its documents.

    Each document keeps its batch, and what was kept stays kept where `settings.old` says so. Clusters are found and named anew.
    Documents that a reference dropped stay dropped. Earlier versions, which are of the earlier settings, expire.

    Args:
        spark: a session.
        settings: input has the texts; rows of documents that the store does not have are left out, and counted.
        log: called with each line of progress.

    Returns:
        The figures of the report.

    Raises:
        InputError: a document of the store has no text in the input; or as for a run without a store.
        OutputError: there is no store; or as `StoreRun`.
        TooManyPairs, NotConverged: as for a run without a store.
    """
    with StoreRun(spark, settings, log) as run:
        before = run.existing()
        view = Store(spark, settings.store)
        taken = take_in(spark, settings, run)
        made = fingerprint_documents(taken.rows, settings, apart("texts", run.store, run.discard)[0])
        beside = keep_columns(taken.rows, settings.id_column, settings.keep_order)
        if beside is not None:
            made = made.join(beside, "id", "inner")
        stored = view.fingerprints().select("id", "batch", "entered", "compared", "kept")
        _check_texts(stored, made, settings)
        kept = F.col("kept") if settings.old == "never-dropped" else F.lit(None).cast("boolean")
        step = F.lit(run.version).cast("bigint")
        told = {"kept": kept, "step": step, "cluster": F.lit(None).cast(dict(made.dtypes)["id"])}
        documents = run.store("documents", made.join(stored, "id", "inner").withColumns(told))
        is_compared = F.col("compared") & F.col("fingerprint").isNotNull()
        new = documents.where(is_compared)
        growth = grown(new, new.limit(0), None, settings, run.store, run.discard)
        settled = growth.settled.withColumn("split", F.lit(False))
        outside = documents.where(~is_compared).withColumn("kept", F.col("compared"))
        run.store("fingerprints", settled.select(documents.columns).unionByName(outside))
        run.store("searched", growth.searched)
        here = {"batch": F.lit(""), "step": step}
        run.store("pairs", growth.pairs.withColumns(here))
        for name, table in cluster_changes(settled, here).items():
            run.store(name, table)
        met = view.decisions().select("id", *REFERENCE_COLUMNS)
        judged = decisions_of(settled, settings, here).unionByName(decisions_outside(outside.join(met, "id", "left"), here))
        run.store("decisions", judged)
        number = run.rows("fingerprints")
        figures = {"documents": number, "texts_left_out": made.count() - number}
        manifest = replace(
            before,
            settings=shared_settings(settings),
            settings_id=settings.fingerprint_id,
            columns=columns_of(run.tables["fingerprints"]["schema"]),
        )
        run.publish_version(Version(0, "", "migration", base=True, counts={"left": 0}), figures, manifest, keep_versions=1)
        return figures


def _check_texts(stored: DataFrame, made: DataFrame, settings: Settings) -> None:
    types = dict(stored.dtypes)["id"], dict(made.dtypes)["id"]
    if types[0] != types[1]:
        raise InputError(f"column {settings.id_column!r} of the input is {types[1]}, and the ids of the store are {types[0]}")
    missing = stored.join(made.select("id"), "id", "left_anti").select("id")
    number = missing.count()
    if number:
        shown = ", ".join(repr(row["id"]) for row in missing.orderBy("id").limit(SHOWN_IDS).collect())
        raise InputError(
            f"{number:,} documents of the store {settings.store!r} have no text in the input, such as {shown}; give the texts of "
            "all of them, or take those out of the store with jobs/forget.py"
        )
