"""Inputs -> rows to take documents from, with those that are none listed or refused: what the jobs that read texts begin with."""

from __future__ import annotations

from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession

from simhash_udf.errors import OutputError
from simhash_udf.run import Run
from simhash_udf.settings import Settings
from simhash_udf.sources import read_documents, record_limit
from simhash_udf.sources.files import plain_path
from simhash_udf.sources.lines import with_line_numbers
from simhash_udf.stages.documents import ORIGIN, check_columns, check_no_rejects, check_share_rejected, rejects, usable_rows
from simhash_udf.storage import overlap


class Intake(NamedTuple):
    """The rows that are documents, how many records were rejected, and how many of archives were no pages, by why."""

    rows: DataFrame
    rejected: int
    skipped: dict[str, int]


def take_in(spark: SparkSession, settings: Settings, run: Run) -> Intake:
    """Read the inputs, and write the table `rejects`.

    Raises:
        InputError: as `read_documents` and `check_columns`; or a record is no document and the settings say to fail, or more are
            than they allow.
    """
    source = read_documents(spark, settings, run.store, run.discard)
    check_columns(source.rows, settings)
    if settings.input_format == "table":
        _check_apart(source.rows, settings)
    found = run.store("rejects_found", rejects(source.rows, settings))
    # Files are looked into again for those alone that there are.
    placed = found.drop("line_hash") if found.isEmpty() else with_line_numbers(found, limit=record_limit(settings))
    rejected = run.store("rejects", placed)
    number = run.rows("rejects")
    if not number:
        # Without a look at each row once more.
        return Intake(source.rows.drop(ORIGIN), 0, source.skipped)
    if settings.on_bad_input == "fail":
        check_no_rejects(rejected, number)
    usable = usable_rows(source.rows, settings)
    check_share_rejected(number, usable.count(), settings.max_rejected)
    return Intake(usable, number, source.skipped)


def look_at(spark: SparkSession, settings: Settings) -> DataFrame:
    """The rows of the inputs for a dry run, in which nothing is written: what `take_in` writes is read each time anew.

    Raises:
        InputError: as `read_documents` and `check_columns`.
    """
    rows = read_documents(spark, settings, lambda _, table: table, lambda _: None).rows
    check_columns(rows, settings)
    return usable_rows(rows, settings)


def _check_apart(rows: DataFrame, settings: Settings) -> None:
    places = sorted({plain_path(file).rpartition("/")[0] for file in rows.inputFiles()})
    meeting = overlap(settings.destination, places)
    if meeting:
        raise OutputError(
            f"the output {settings.destination!r} {meeting}; nothing was written: choose a directory apart from all inputs"
        )
