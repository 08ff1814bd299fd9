"""Ids -> a store without these documents: no table names them, and clusters that lose their keeper keep another document."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.job import log, main
from simhash_udf.settings import Settings
from simhash_udf.store.forget import forget
from simhash_udf.store.views import Store

KNOBS = ["store", "ids", "id_column"]


def forget_documents(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    if dry_run:
        view = Store(spark, settings.store)
        print(f"{view.fingerprints().count():,} documents in {settings.store}; those of {', '.join(settings.ids)} would leave")
        return
    figures = forget(spark, settings, log)
    documents = figures["documents"]
    log(f"{documents['left']:,} documents left the store, {documents['not_found']:,} were not in it")
    if documents["not_found"]:
        log(
            f"not found: {', '.join(figures['not_found'])}{', ...' if documents['not_found'] > len(figures['not_found']) else ''}"
        )
    log(f"{figures['stored_documents_now_kept']:,} documents are kept in their stead; the table decisions has them")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, forget_documents))
