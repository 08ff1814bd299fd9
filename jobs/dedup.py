"""Documents -> near-duplicate pairs, clusters, decisions and the corpus without its near-duplicates."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import describe, describe_search, log, main, plan_logger
from simhash_udf.pipeline import deduplicate, plan_of_corpus
from simhash_udf.report import report
from simhash_udf.run import Run, check_output
from simhash_udf.session import cores_of
from simhash_udf.settings import DEDUP_KNOBS, Settings
from simhash_udf.sources import read_documents, source_file
from simhash_udf.stages.documents import check_columns, check_no_rejects, rejects

KNOBS = DEDUP_KNOBS
TABLES = ["rejects", "fingerprints", "fingerprint_pairs", "pairs", "clusters", "decisions", "sources", "kept"]


def dedup(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    check_output(settings)
    source = read_documents(spark, settings)
    check_columns(source, settings)
    if dry_run:
        search = describe_search(*plan_of_corpus(source, settings), cores_of(spark))
        left_out = {"rejects": settings.on_bad_input == "fail", "sources": not settings.source_column}
        tables = [name for name in TABLES if not left_out.get(name)]
        print(describe(settings, settings.fingerprint_id, KNOBS, source, tables, search))
        return
    rejected = rejects(source, settings, source_file(source))
    if settings.on_bad_input == "fail":
        check_no_rejects(rejected)
    with Run(spark, settings, log) as run:
        if settings.on_bad_input == "reject":
            run.store("rejects", rejected)
        found = deduplicate(source, settings, run.store, plan_logger(spark), discard=run.discard)
        number_rejected = run.rows("rejects") if "rejects" in run.tables else 0
        figures = report(found, number_rejected, run.rows("kept"))
        run.publish(figures, KNOBS, settings.fingerprint_id)
    documents, clusters = figures["documents"], figures["clusters"]
    several = clusters["number"] - clusters["of_one_document"]
    log(f"{documents['documents']:,} documents, {run.rows('pairs'):,} pairs, {several:,} clusters of two or more")
    log(f"{figures['kept']:,} kept, {figures['dropped']:,} dropped, {number_rejected:,} rejected")
    log(f"the result is in {settings.output}, where manifest.json says; its figures are in {run.place}/report.json")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, dedup))
