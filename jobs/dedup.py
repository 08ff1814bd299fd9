"""Documents -> near-duplicate pairs, clusters, decisions and the corpus without its near-duplicates."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.intake import look_at, take_in
from simhash_udf.job import describe, describe_search, log, main, plan_logger
from simhash_udf.output import check_output
from simhash_udf.pipeline import deduplicate, plan_of_corpus
from simhash_udf.references import read_references
from simhash_udf.report import report
from simhash_udf.run import Run
from simhash_udf.session import cores_of
from simhash_udf.settings import DEDUP_KNOBS, Settings
from simhash_udf.store.add import add
from simhash_udf.store.run import check_store_place
from simhash_udf.store.tables import BY_BATCH, STATE

KNOBS = DEDUP_KNOBS
TABLES = ["rejects", "fingerprints", "fingerprint_pairs", "pairs", "clusters", "decisions", "sources", "kept"]


def dedup(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    if dry_run:
        (check_store_place if settings.store else check_output)(settings)
        source = look_at(spark, settings)
        search = describe_search(*plan_of_corpus(source, settings), cores_of(spark))
        written = [*STATE, *BY_BATCH] if settings.store else TABLES
        tables = [name for name in written if name != "sources" or settings.source_column]
        print(describe(settings, settings.fingerprint_id, KNOBS, source, tables, search))
        return
    if settings.store:
        add_to_store(spark, settings)
        return
    with Run(spark, settings, log) as run:
        taken = take_in(spark, settings, run)
        places = {"discard": run.discard, "finished": run.finished}
        references = read_references(spark, settings, run)
        found = deduplicate(taken.rows, settings, run.store, plan_logger(spark), references=references, **places)
        figures = report(found, taken.rejected, run.rows("kept"), taken.skipped)
        run.publish(figures, KNOBS, settings.fingerprint_id)
    documents, clusters = figures["documents"], figures["clusters"]
    several = clusters["number"] - clusters["of_one_document"]
    log(f"{documents['documents']:,} documents, {run.rows('pairs'):,} pairs, {several:,} clusters of two or more")
    log(f"{figures['kept']:,} kept, {figures['dropped']:,} dropped, {taken.rejected:,} rejected")
    log(f"the result is in {settings.output}, where manifest.json says; its figures are in {run.place}/report.json")


def add_to_store(spark: SparkSession, settings: Settings) -> None:
    figures = add(spark, settings, log)
    if figures is None:
        log(f"the store {settings.store} has the batch {settings.batch!r} already, and with this content; nothing was done")
        return
    documents = figures["documents"]
    log(f"{documents['added']:,} documents added, {documents['unchanged']:,} were there, {documents['left']:,} replaced")
    log(f"{figures['kept']:,} kept, {figures['dropped']:,} dropped, {documents['rejected']:,} rejected")
    log(f"the batch {settings.batch!r} is in {settings.store}, where store.json says")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, dedup))
