"""Documents of a batch -> the store's next version: fingerprinted, compared with each other and with all stored ones, decided."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.checksums import checksum_of
from simhash_udf.errors import IncompleteResult, OutputError
from simhash_udf.intake import Intake, take_in
from simhash_udf.pipeline import apart, fingerprint_documents
from simhash_udf.references import read_references
from simhash_udf.settings import Settings
from simhash_udf.stages.components import Store as StoreFunction
from simhash_udf.stages.decisions import by_source, keep_columns, kept
from simhash_udf.stages.guards import check_removed
from simhash_udf.stages.pairs import histogram
from simhash_udf.stages.references import near_references
from simhash_udf.store.changes import REFERENCE_COLUMNS, cluster_changes, decisions_of, decisions_outside
from simhash_udf.store.groups import Growth, changed, flipped, small
from simhash_udf.store.manifest import StoreManifest, Version
from simhash_udf.store.run import StoreRun
from simhash_udf.store.shared import check_columns_of_store, check_shared, columns_of, shared_settings
from simhash_udf.store.update import updated
from simhash_udf.store.views import Store


def add(spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> dict[str, Any] | None:
    """Add the input to the store that the settings name, as a batch.

    Returns:
        The figures of the report; None where the store has the batch already, and nothing was done.

    Raises:
        SettingsError: the store was made with other settings.
        OutputError: a batch of this name has other content; or as `StoreRun`.
        InputError, TooManyPairs, NotConverged, TooManyRemoved: as for a run without a store.
        IncompleteResult: a check of the result failed; nothing is published.
    """
    with StoreRun(spark, settings, log) as run:
        before = run.before
        check_shared(before, settings)
        earlier = before.batch(settings.batch) if before else None
        if earlier and earlier.listing == run.listing_hash:
            return None
        taken = take_in(spark, settings, run)
        content = checksum_of(taken.rows)
        if earlier:
            if earlier.content == content:
                return None
            raise OutputError(
                f"the store {settings.store!r} has a batch {settings.batch!r} already, and of other content; give this one "
                "another name: documents of known ids and other texts replace those that the store has"
            )
        figures = _added(spark, settings, run, taken)
        version = Version(
            0,
            "",
            "add",
            before is None,
            batch=settings.batch,
            id_column=settings.id_column,
            listing=run.listing_hash,
            content=content,
            counts=figures["documents"],
        )
        manifest = before or StoreManifest(
            shared_settings(settings),
            settings.fingerprint_id,
            settings.store_tables,
            columns_of(run.tables["fingerprints"]["schema"]),
            {},
        )
        run.publish_version(version, figures, manifest)
        return figures


def _added(spark: SparkSession, settings: Settings, run: StoreRun, taken: Intake) -> dict[str, Any]:
    store, discard = run.store, run.discard
    view = Store(spark, settings.store) if run.before else None
    made = fingerprint_documents(taken.rows, settings, apart("batch", store, discard)[0])
    beside = keep_columns(taken.rows, settings.id_column, settings.keep_order)
    if beside is not None:
        made = store("batch_documents", made.join(beside, "id", "inner"))
    check_columns_of_store(run.before, made, settings)
    references = read_references(spark, settings, run)
    met = None if references is None else store("near_references", near_references(made, references, settings, store))

    here = {"batch": F.lit(settings.batch), "step": F.lit(run.version).cast("bigint")}
    unchanged, gone = _known(made, view, store)
    fresh = store("fresh", _fresh(made.join(unchanged, "id", "left_anti"), met, here))
    is_compared = F.col("compared") & F.col("fingerprint").isNotNull()
    new = fresh.where(is_compared).drop(*REFERENCE_COLUMNS)
    update = updated(new, fresh.select("id"), gone, view, settings, store, discard)

    outside = fresh.where(~is_compared).withColumn("kept", F.col("compared"))
    rows = changed(update.documents).withColumns({"step": here["step"]})
    store("fingerprints", rows.select(new.columns).unionByName(outside.select(new.columns)))
    again = rows.where("is_old").select("id", F.lit(False).alias("gone"))
    store("superseded", gone.select("id", F.lit(True).alias("gone")).unionByName(again).withColumn("step", here["step"]))
    store("searched", update.searched)
    pairs = store("pairs", update.growth.pairs.withColumns(here))
    for name, table in cluster_changes(update.documents, here).items():
        store(name, table)
    judged = decisions_of(update.documents.where(~F.col("is_old") | flipped()), settings, here, "is_old")
    judged = store("decided", judged.unionByName(decisions_outside(outside, here, is_old=F.lit(False))))
    store("decisions", judged.drop("is_old"))
    of_batch = judged.where("not is_old")
    if not of_batch.isEmpty():
        check_removed(of_batch, settings.max_removed)
    dropped = of_batch.select("id", "kept").unionByName(unchanged.withColumn("kept", F.lit(False)))
    staying = store("kept", kept(taken.rows, dropped, settings.id_column))
    if settings.source_column:
        store("sources", by_source(taken.rows, of_batch, settings.id_column, settings.source_column))
    numbers = {"fingerprinted": made.count(), "unchanged": unchanged.count(), "left": gone.count(), "kept": staying.count()}
    return _figures(numbers, judged, pairs, update.growth, taken)


def _known(made: DataFrame, view: Store | None, store: StoreFunction) -> tuple[DataFrame, DataFrame]:
    """The ids of documents that the store has as they are, and of those that it has otherwise."""
    if view is None:
        return made.select("id").limit(0), made.select("id").limit(0)
    known = store("known", view.fingerprints().join(small(made.select("id")), "id", "left_semi"))
    told = [name for name in made.columns if name != "id"]
    was = known.select("id", *(F.col(name).alias(f"was_{name}") for name in told))
    alike = reduce(Column.__and__, (F.col(name).eqNullSafe(F.col(f"was_{name}")) for name in told))
    unchanged = store("unchanged", made.join(was, "id", "inner").where(alike).select("id"))
    return unchanged, store("replaced", known.select("id").join(unchanged, "id", "left_anti"))


def _fresh(made: DataFrame, met: DataFrame | None, here: dict[str, Column]) -> DataFrame:
    """Documents as the table `fingerprints` has them, undecided, with what is known of references near them."""
    if met is None:
        fresh = made.withColumns({name: F.lit(None).cast(kind) for name, kind in REFERENCE_COLUMNS.items()})
    else:
        fresh = made.join(met, "id", "left")
    undecided = {"cluster": F.lit(None).cast(dict(made.dtypes)["id"]), "kept": F.lit(None).cast("boolean")}
    return fresh.withColumns({**here, "entered": here["step"], "compared": F.col("reference").isNull(), **undecided})


def _figures(numbers: dict[str, int], judged: DataFrame, pairs: DataFrame, growth: Growth, taken: Intake) -> dict[str, Any]:
    counted = judged.groupBy("is_old", "kept", "reason").count().collect()
    reasons = {row["reason"]: row["count"] for row in counted if not row["is_old"]}
    dropped = sum(row["count"] for row in counted if not row["is_old"] and not row["kept"])
    flips = {kept: sum(row["count"] for row in counted if row["is_old"] and row["kept"] == kept) for kept in (True, False)}
    added = sum(reasons.values())
    if added + numbers["unchanged"] != numbers["fingerprinted"] or numbers["kept"] + dropped != added:
        raise IncompleteResult(
            f"the result contradicts itself: of {numbers['fingerprinted']:,} documents {numbers['unchanged']:,} are unchanged "
            f"and {added:,} decided, {numbers['kept']:,} of them kept and {dropped:,} dropped. The input changed while the job "
            "read it, or its rows are not the same at each reading: run again on files that stay as they are"
        )
    told = {"added": added, "rejected": taken.rejected, "skipped": taken.skipped}
    return {
        "documents": {name: numbers[name] for name in ("fingerprinted", "unchanged", "left")} | told,
        "search": {"new_fingerprints": growth.searched.count(), "pairs_of_stored_with_stored": growth.between_stored},
        "pairs_by_distance": histogram(pairs),
        "decisions": {reason: reasons[reason] for reason in sorted(reasons)},
        "kept": numbers["kept"],
        "dropped": dropped,
        "stored_documents_now_kept": flips[True],
        "stored_documents_now_dropped": flips[False],
    }
