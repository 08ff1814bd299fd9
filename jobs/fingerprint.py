"""Documents -> stored fingerprints, which jobs/pairs.py compares without the text."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.intake import look_at, take_in
from simhash_udf.job import describe, log, main
from simhash_udf.output import check_output
from simhash_udf.pipeline import fingerprint_documents
from simhash_udf.report import fingerprint_figures
from simhash_udf.run import Run
from simhash_udf.settings import INPUT_KNOBS, Settings

KNOBS = [
    *INPUT_KNOBS, "output", "text_column", "features_column", "fingerprint", "unit", "ngram", "weighting", "on_bad_input",
    "max_rejected", "if_exists",
]  # fmt: skip
TABLES = ["rejects", "fingerprints"]


def fingerprint(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    if dry_run:
        check_output(settings)
        print(describe(settings, settings.fingerprint_id, KNOBS, look_at(spark, settings), TABLES))
        return
    with Run(spark, settings, log) as run:
        taken = take_in(spark, settings, run)
        made = fingerprint_documents(taken.rows, settings, run.store)
        figures = {"documents": {**fingerprint_figures(made), "rejected": taken.rejected, "skipped": taken.skipped}}
        run.publish(figures, KNOBS, settings.fingerprint_id)


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, fingerprint))
