"""Ids of documents -> the store without them: no table has a row of theirs, and what they held together is settled anew."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf import storage
from simhash_udf.errors import InputError
from simhash_udf.settings import Settings
from simhash_udf.sources.files import read_files
from simhash_udf.store.changes import cluster_changes, decisions_of
from simhash_udf.store.compact import rewrite
from simhash_udf.store.groups import changed, flipped, regrouped, small
from simhash_udf.store.manifest import StoreManifest, Version
from simhash_udf.store.run import KEPT_OF, StoreRun
from simhash_udf.store.views import Store
from simhash_udf.tables import column

SHOWN_IDS = 20


def forget(spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> dict[str, Any]:
    """Take documents out of the store that the settings name, by the ids in files.

    The whole state is written anew without them, and so is `kept` of each batch that has one of them; then all that earlier runs
    wrote of the state is removed, so that earlier versions cannot be read any more. A cluster that loses its keeper keeps another
    of its documents, by the keep rule; one that falls apart becomes several. The names of clusters stay, though one may be the id
    of a document that is gone.

    Returns:
        The figures of the report.

    Raises:
        InputError: a file of ids cannot be read, or what it has is no id of the store's type.
        OutputError: there is no store; or as `StoreRun`.
    """
    with StoreRun(spark, settings, log) as run:
        before = run.existing()
        view = Store(spark, settings.store)
        own = replace(view.settings, store=settings.store)
        ids = run.store("ids", _read_ids(spark, settings, before.columns["id"]))
        stored = view.fingerprints()
        gone = run.store("gone", stored.select("id").join(small(ids), "id", "left_semi"))
        unknown = ids.join(gone, "id", "left_anti")
        after = regrouped(gone, None, stored, own, run.store, run.discard).withColumn("split", F.lit(True))
        step = F.lit(run.version).cast("bigint")
        again = changed(after).withColumn("step", step).select(stored.columns)
        rest = stored.join(small(ids), "id", "left_anti").join(small(again.select("id")), "id", "left_anti")
        here = {"batch": F.lit(""), "step": step}
        more = {"decisions": decisions_of(after.where(flipped()), own, here), **cluster_changes(after, here)}
        rewrite(view, rest.unionByName(again), small(ids), more, run)
        promoted = after.where(flipped()).select("id").orderBy("id")
        figures: dict[str, Any] = {
            "documents": {"left": gone.count(), "not_found": unknown.count(), "documents": run.rows("fingerprints")},
            "not_found": [str(row["id"]) for row in unknown.orderBy("id").limit(SHOWN_IDS).collect()],
            "stored_documents_now_kept": promoted.count(),
            "now_kept": [str(row["id"]) for row in promoted.limit(SHOWN_IDS).collect()],
        }
        rewritten, old_paths = _without(ids, before, run)
        run.publish_version(Version(0, "", "forget", base=True, counts=figures["documents"]), figures, rewritten, keep_versions=1)
        run.remove_paths(old_paths)
        return figures


def _read_ids(spark: SparkSession, settings: Settings, kind: str) -> DataFrame:
    """The ids in the files, as the type that ids of the store have: `id`, each once."""
    tables = []
    for given in settings.ids:
        named = (storage.expand if storage.local_path(given) else storage.expand_remote)(given)
        places = [storage.as_literal_glob(path) for path in named]
        if all(path.rstrip("/").endswith(".parquet") for path in named):
            frame = read_files(spark.read.format("parquet").load, places, "parquet")
            if settings.id_column not in frame.columns:
                raise InputError(f"{given!r} has no column {settings.id_column!r}, but {frame.columns}; name it with --id-column")
            tables.append(frame.select(column(settings.id_column).cast("string").alias("given")))
        else:
            lines = read_files(spark.read.format("text").load, places, "lines")
            tables.append(lines.select(F.trim("value").alias("given")).where("given <> ''"))
    ids = reduce(DataFrame.unionByName, tables).distinct().select("given", F.col("given").try_cast(kind).alias("id"))
    wrong = ids.where("id is null").head(3)
    if wrong:
        shown = ", ".join(repr(row["given"]) for row in wrong)
        raise InputError(f"the ids of the store are {kind}, and some that are given are none, such as {shown}; mend the files")
    return ids.select("id").distinct()


def _without(ids: DataFrame, manifest: StoreManifest, run: StoreRun) -> tuple[StoreManifest, list[str]]:
    """The manifest with `kept` of each batch without the documents, and the paths of those that had some."""
    versions, old_paths = [], []
    for version in manifest.versions:
        table = version.tables.get("kept")
        if table:
            place = storage.as_literal_glob(storage.join(run.output, table["path"]))
            rows = run.spark.read.parquet(place)
            name = version.id_column
            theirs = small(ids.select(F.col("id").alias("forgotten_id")))
            hit = column(name) == F.col("forgotten_id")
            if not rows.select(column(name)).join(theirs, hit, "left_semi").isEmpty():
                called = f"{KEPT_OF}{version.version}"
                run.store(called, rows.join(theirs, hit, "left_anti"))
                old_paths.append(table["path"])
                version = replace(version, tables={**version.tables, "kept": run.tables[called]})
        versions.append(version)
    return replace(manifest, versions=tuple(versions)), old_paths
