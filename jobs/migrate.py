"""Texts of a store's documents -> the store made anew by other settings: fingerprints, pairs, clusters and decisions."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import log, main
from simhash_udf.settings import INPUT_KNOBS, Settings
from simhash_udf.store.migrate import migrate
from simhash_udf.store.shared import SHARED_KNOBS
from simhash_udf.store.views import Store

_INPUT = [name for name in INPUT_KNOBS if name not in ("labels", "source_column")]
KNOBS = ["store", *_INPUT, "text_column", *SHARED_KNOBS, "max_pairs", "on_bad_input", "max_rejected"]


def migrate_store(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    if dry_run:
        view = Store(spark, settings.store)
        print(f"{view.fingerprints().count():,} documents in {settings.store} would be made {settings.fingerprint_id}")
        return
    figures = migrate(spark, settings, log)
    log(f"{figures['documents']:,} documents made anew; {figures['texts_left_out']:,} texts are of none of them and left out")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, migrate_store))
