"""A store of many batches -> the same store, written as one: it says the same, and is read faster."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import log, main
from simhash_udf.settings import Settings
from simhash_udf.store.compact import compact
from simhash_udf.store.views import Store

KNOBS = ["store", "keep_versions"]


def compact_store(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    if dry_run:
        view = Store(spark, settings.store)
        runs = len(view.manifest.runs_of(view.version))
        print(f"{settings.store} has {len(view.batches):,} batches, in the tables of {runs:,} runs, which would be those of one")
        return
    figures = compact(spark, settings, log)
    log(f"{figures['documents']:,} documents, which were in the tables of {figures['runs_before']:,} runs, are in those of one")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, compact_store))
