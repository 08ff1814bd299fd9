"""The output of a finished run -> whether its tables are as they were written: rows, checksums and columns of each."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from simhash_udf.errors import IncompleteResult
from simhash_udf.job import log, main
from simhash_udf.manifest import read_manifest
from simhash_udf.results import changes
from simhash_udf.settings import Settings

KNOBS = ["input"]


def verify(spark: SparkSession, settings: Settings, dry_run: bool) -> None:
    wrong = []
    for output in settings.input:
        tables = read_manifest(output)["tables"]
        log(f"{output}: " + ", ".join(f"{name} ({table['rows']:,} rows)" for name, table in tables.items()))
        wrong += [] if dry_run else [f"{output}: {said}" for said in changes(spark, output)]
    if wrong:
        raise IncompleteResult(f"the result is not as it was written: {'; '.join(wrong)}. Something else changed it: run again")
    if not dry_run:
        log("all tables are as they were written")


if __name__ == "__main__":
    sys.exit(main(str(__doc__), KNOBS, verify))
