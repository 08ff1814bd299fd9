"""Documents -> all pairs of similar texts, exactly and without fingerprints: what jobs/evaluate.py measures a result against.
It is for samples, of up to some hundred thousand documents."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from simhash_udf.intake import look_at, take_in
from simhash_udf.job import describe, log, main
from simhash_udf.output import check_output
from simhash_udf.run import Run
from simhash_udf.settings import INPUT_KNOBS, Settings
from simhash_udf.stages.documents import documents
from simhash_udf.stages.guards import check_ids
from simhash_udf.stages.truth import check_min_similarity, truth

KNOBS = [
    *INPUT_KNOBS, "output", "text_column", "verify_unit", "verify_ngram", "min_similarity", "if_exists",
]  # fmt: skip
TABLES = ["rejects", "truth", "compared"]


def find_truth(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    check_min_similarity(settings.min_similarity)
    if dry_run:
        check_output(settings)
        print(describe(settings, None, KNOBS, look_at(spark, settings), TABLES))
        return
    with Run(spark, settings, log) as run:
        taken = take_in(spark, settings, run)
        texts = run.store("texts", documents(taken.rows, settings).select("id", "text"))
        check_ids(texts, settings.id_column)
        similarity, ngram = settings.min_similarity, settings.verify_ngram
        found = truth(texts, run.store, run.discard, min_similarity=similarity, unit=settings.verify_unit, ngram=ngram)
        run.store("truth", found)
        run.store("compared", texts.select("id"))
        number = texts.agg(F.count("*")).first()
        figures = {"documents": number[0] if number else 0, "pairs": run.rows("truth")}
        run.publish(figures, KNOBS, None)
    log(f"{figures['documents']:,} documents, {figures['pairs']:,} pairs of similarity {similarity} or more")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, find_truth))
