"""Stored fingerprints -> pairs of documents, without the text. The inputs are outputs of jobs/fingerprint.py or jobs/dedup.py,
or Parquet with a column of ids and a column 'fingerprint' of 64 bits, as signed or unsigned numbers, or strings of digits."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import describe, describe_search, log, main, plan_logger
from simhash_udf.output import check_output
from simhash_udf.pipeline import find_pairs, plan_of
from simhash_udf.report import plan_figures
from simhash_udf.results import read_fingerprints
from simhash_udf.run import Run
from simhash_udf.session import cores_of
from simhash_udf.settings import Settings
from simhash_udf.stages.fingerprints import settings_id_of
from simhash_udf.stages.guards import check_ids
from simhash_udf.stages.pairs import histogram

KNOBS = ["input", "output", "id_column", "fingerprint_format", "max_distance", "pairs", "max_pairs", "if_exists"]
TABLES = ["fingerprint_pairs", "pairs"]


def pairs(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    check_output(settings)
    stored = read_fingerprints(spark, settings)
    if dry_run:
        search = describe_search(plan_of(stored, settings), stored, cores_of(spark))
        print(describe(settings, settings_id_of(stored), KNOBS, stored, TABLES, search))
        return
    check_ids(stored, settings.id_column)
    with Run(spark, settings, log) as run:
        found = find_pairs(stored, settings, run.store, plan_logger(spark), discard=run.discard, finished=run.finished)
        figures = {"pairs_by_distance": histogram(found.pairs), "search": plan_figures(found.plan)}
        run.publish(figures, KNOBS, settings_id_of(stored))


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, pairs))
