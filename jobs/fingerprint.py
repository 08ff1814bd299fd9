"""Documents -> stored fingerprints, which jobs/pairs.py compares without the text."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import describe, log, main
from simhash_udf.pipeline import fingerprint_documents
from simhash_udf.report import fingerprint_figures
from simhash_udf.run import Run, check_output
from simhash_udf.settings import Settings
from simhash_udf.sources import read_documents, source_file
from simhash_udf.stages.documents import check_columns, check_no_rejects, rejects

KNOBS = [
    "input", "output", "input_format", "id_column", "text_column", "features_column", "fingerprint", "unit", "ngram", "weighting",
    "on_bad_input", "if_exists",
]  # fmt: skip
TABLES = ["rejects", "fingerprints"]


def fingerprint(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    check_output(settings)
    source = read_documents(spark, settings)
    check_columns(source, settings)
    if dry_run:
        print(
            describe(
                settings, settings.fingerprint_id, KNOBS, source, TABLES if settings.on_bad_input == "reject" else TABLES[1:]
            )
        )
        return
    rejected = rejects(source, settings, source_file(source))
    if settings.on_bad_input == "fail":
        check_no_rejects(rejected)
    with Run(spark, settings, log) as run:
        number_rejected = 0
        if settings.on_bad_input == "reject":
            run.store("rejects", rejected)
            number_rejected = run.rows("rejects")
        made = fingerprint_documents(source, settings, run.store)
        figures = {"documents": {**fingerprint_figures(made), "rejected": number_rejected}}
        run.publish(figures, KNOBS, settings.fingerprint_id)


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, fingerprint))
