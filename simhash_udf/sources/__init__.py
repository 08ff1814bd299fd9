"""Reading: a file a format, each of which gives rows of the input's columns, and says of each row where it came from."""

from __future__ import annotations

from collections import Counter
from functools import reduce
from typing import NamedTuple

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.settings import Settings
from simhash_udf.sources.archives import read_archives
from simhash_udf.sources.columnar import read_columnar, read_tables, united
from simhash_udf.sources.delimited import read_delimited
from simhash_udf.sources.files import WANTED, DataFile, check_names, data_files, format_of
from simhash_udf.sources.ids import kept_apart, with_made_ids
from simhash_udf.sources.lines import documents_of_json, documents_of_lines, read_lines
from simhash_udf.sources.records import SKIPPED
from simhash_udf.sources.texts import read_texts
from simhash_udf.stages.components import Discard, Store
from simhash_udf.stages.documents import ORIGIN
from simhash_udf.storage import expand

_READ_BY_PYTHON = ("csv", "tsv", "text", "warc")
_LINES = ("jsonl", "lines")
_ENCODED = ("jsonl", "lines", "csv", "tsv", "text")
# A text may take more bytes in its record than of its own, where it is escaped.
_RECORD_FACTOR = 2


class Source(NamedTuple):
    """What was read: rows with the input's columns and `ORIGIN`, and how many records of archives were no pages, by why."""

    rows: DataFrame
    skipped: dict[str, int]


def read_documents(spark: SparkSession, settings: Settings, store: Store, discard: Discard) -> Source:
    """The rows of the inputs, with all their columns, those of partition directories (`crawl=01`) and that of the labels.

    Args:
        store, discard: as in `simhash_udf.pipeline`; what Python reads, and rows that ids are made for, are written once.

    Raises:
        InputError: a path is missing, the format cannot be told, a file is not in it, a file would be left out, or inputs have
            columns of one name and different types.
    """
    chosen, groups = _grouped(spark, settings)
    if settings.encoding != "utf-8" and chosen not in _ENCODED:
        raise InputError(
            f"encoding is {settings.encoding!r}, and the input is {chosen}, which says so itself; leave --encoding out"
        )
    rows = _read(spark, chosen, groups, settings)
    check_names(rows.schema)
    if rows.columns == [ORIGIN]:
        raise InputError(f"the input {', '.join(settings.input)} has no document; it must be {WANTED[chosen]}")
    skipped: dict[str, int] = {}
    if chosen in _READ_BY_PYTHON:
        rows = store("rows_read", rows)
        reason = F.col(f"{ORIGIN}.reason")
        if chosen == "warc":
            counted = rows.where(reason.startswith(SKIPPED)).groupBy(reason.alias("reason")).count().collect()
            skipped = {row["reason"].removeprefix(SKIPPED): row["count"] for row in counted}
            rows = rows.where(~F.coalesce(reason.startswith(SKIPPED), F.lit(False)))
    if settings.make_ids == "content":
        rows = with_made_ids(rows, settings.id_column, store, discard)
    elif settings.duplicate_ids == "keep-apart" and settings.id_column in rows.columns:
        rows = kept_apart(rows, settings.id_column, store, discard)
    return Source(rows, skipped)


def record_limit(settings: Settings) -> int:
    """Bytes of the longest line, field or record that is read."""
    return _RECORD_FACTOR * settings.max_document_bytes


def _grouped(spark: SparkSession, settings: Settings) -> tuple[str, dict[str | None, list[DataFile]]]:
    """The format, and the files by their label."""
    labels = settings.labels or (None,) * len(settings.input)
    if settings.input_format == "table":
        tables: dict[str | None, list[DataFile]] = {}
        for label, name in zip(labels, settings.input, strict=True):
            tables.setdefault(label, []).append(DataFile(name, name, ()))
        return "table", tables
    paths = [path for given in settings.input for path in expand(given)]
    if len(set(paths)) < len(paths):
        twice = sorted({path for path in paths if paths.count(path) > 1})
        raise InputError(f"the input names {twice[0]!r} more than once; name each path once")
    groups: dict[str | None, list[DataFile]] = {}
    for label, given in zip(labels, settings.input, strict=True):
        groups.setdefault(label, []).extend(data_files(spark, [given], format_is_given=settings.input_format != "auto"))
    found = [file for files in groups.values() for file in files]
    again = next((path for path, times in Counter(file.path for file in found).items() if times > 1), None)
    if again is not None:
        raise InputError(f"the file {again!r} is in two of the inputs {', '.join(settings.input)}; name each file once")
    chosen = settings.input_format if settings.input_format != "auto" else format_of(paths, found)
    for label, files in groups.items():
        if not files:
            which = ", ".join(settings.input) if label is None else f"labelled {label!r}"
            raise InputError(f"the input {which} has no file; it must be {WANTED[chosen]}")
    return chosen, groups


def _read(spark: SparkSession, chosen: str, groups: dict[str | None, list[DataFile]], settings: Settings) -> DataFrame:
    read = []
    for label, files in groups.items():
        rows = _read_group(spark, chosen, files, settings)
        if label is not None:
            if settings.source_column.lower() in (name.lower() for name in rows.columns):
                raise InputError(
                    f"the input has a column {settings.source_column!r}, and the labels would be one; name another with "
                    "--source-column"
                )
            rows = rows.withColumn(settings.source_column, F.lit(label))
        read.append(rows)
    rows = reduce(united, read)
    if chosen == "jsonl":
        # All lines together, since each column has one type in all files.
        rows = documents_of_json(spark, rows, settings.id_column)
    elif chosen == "lines":
        rows = documents_of_lines(rows, settings.text_column)
    others = [name for name in rows.columns if name != ORIGIN]
    return rows.select(*(F.col("`" + name.replace("`", "``") + "`") for name in others), F.col(ORIGIN))


def _read_group(spark: SparkSession, chosen: str, files: list[DataFile], settings: Settings) -> DataFrame:
    limit, encoding = record_limit(settings), settings.encoding
    if chosen == "table":
        return read_tables(spark, [file.path for file in files])
    if chosen in ("parquet", "orc"):
        return read_columnar(spark, files, chosen, check=settings.on_bad_input == "reject")
    if chosen in _LINES:
        return read_lines(spark, files, encoding=encoding, limit=limit)
    named = {"id_column": settings.id_column, "text_column": settings.text_column}
    if chosen == "text":
        return read_texts(spark, files, **named, encoding=encoding, limit=limit)
    if chosen == "warc":
        return read_archives(spark, files, **named, limit=limit)
    delimiter = "," if chosen == "csv" else "\t"
    return read_delimited(spark, files, delimiter=delimiter, encoding=encoding, limit=limit)
