"""A result and the true pairs -> how right the result is, at each distance up to its own: pairs found, precision, recall, F1,
and documents dropped wrongly or not dropped. The input is an output of jobs/dedup.py or jobs/pairs.py with all pairs; of it only
the documents count that jobs/truth.py compared. A truth of other origin must be of all documents of the input."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import log, main
from simhash_udf.manifest import read_manifest
from simhash_udf.output import check_output
from simhash_udf.results import documents_of_truth, read_result_pairs, read_truth
from simhash_udf.run import Run
from simhash_udf.settings import Settings
from simhash_udf.stages.evaluation import as_table, evaluation, pairs_among

KNOBS = [
    "input", "output", "truth", "truth_similarity", "recall_similarity", "precision_similarity", "if_exists",
]  # fmt: skip


def evaluate(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    check_output(settings)
    pairs, max_distance = read_result_pairs(spark, settings)
    compared = documents_of_truth(spark, settings)
    true = read_truth(spark, settings, pairs)
    if compared is not None:
        pairs = pairs_among(pairs, compared)
    if read_manifest(settings.input[0])["settings"].get("max-radius", 64) < 64:
        log("the result was made with --max-radius; dropped documents are counted here as they would be without it")
    if dry_run:
        log(f"{pairs.count():,} pairs within {max_distance} bits would be held against {true.count():,} true ones")
        return
    with Run(spark, settings, log) as run:
        qualities = evaluation(
            pairs,
            true,
            run.store,
            run.discard,
            max_distance=max_distance,
            recall_similarity=settings.recall_similarity,
            precision_similarity=settings.precision_similarity,
        )
        figures = {"quality": [quality.as_dict() for quality in qualities]}
        run.publish(figures, KNOBS, read_manifest(settings.input[0]).get("settings_id"))
    print(as_table(qualities))
    log(f"the same figures are in {settings.output}/{run.place}/report.json")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, evaluate))
