"""CSV and TSV -> rows of strings, as RFC 4180 has them: a line of names, fields with a delimiter between them, quotes doubled."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.sources.files import DataFile
from simhash_udf.sources.records import Record, read_by_python, rows_of_files
from simhash_udf.sources.streams import SHOWN, Line, lines, pieces


def read_delimited(spark: SparkSession, files: list[DataFile], *, delimiter: str, encoding: str, limit: int) -> DataFrame:
    """The records of files as strings, an empty field as NULL, with the columns of all their headers.

    Args:
        files: of one table; a column that a file lacks is NULL in its records.
        delimiter: between fields.
        encoding: of the text.
        limit: longest line and longest field in bytes.

    Raises:
        InputError: a header has a name twice.
    """
    named = rows_of_files(spark, files).mapInArrow(
        partial(_headers, delimiter=delimiter, encoding=encoding, limit=limit), "file STRING, names ARRAY<STRING>"
    )
    headers = named.groupBy("names").agg(F.min("file").alias("file")).orderBy("file").collect()
    names: list[str] = []
    for header in headers:
        lowered = [name.lower() for name in header["names"]]
        twice = next((name for name in header["names"] if lowered.count(name.lower()) > 1), None)
        if twice is not None:
            raise InputError(
                f"the header of {header['file']!r} has the column {twice!r} twice; give each column a name of its own"
            )
        names += [name for name in header["names"] if name not in names]
    reading = partial(records, names=tuple(names), delimiter=delimiter, encoding=encoding, limit=limit)
    return read_by_python(spark, files, names, reading)


def _headers(batches: Iterator[pa.RecordBatch], *, delimiter: str, encoding: str, limit: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in batch.column("file").to_pylist():
            row = next(_Rows(path, delimiter, encoding, limit), None)
            if row and row.values:
                columns = [pa.array([path]), pa.array([_named(row.values)], pa.list_(pa.string()))]
                yield pa.RecordBatch.from_arrays(columns, ["file", "names"])


def _named(header: list[str]) -> list[str]:
    # An index that pandas wrote has no name; this is what Spark calls such a column.
    return [name or f"_c{at}" for at, name in enumerate(header)]


def records(path: str, *, names: tuple[str, ...], delimiter: str, encoding: str, limit: int) -> Iterator[Record]:
    """The records of a file, its header left out, with values in the order of `names`; the position is a record's first line."""
    rows = _Rows(path, delimiter, encoding, limit)
    header: list[str] | None = None
    for row in rows:
        if row.reason is not None and header is None:
            # The next line must not be taken for the names.
            yield Record(row.line, None, f"no record of the file can be read, since of its header {row.reason}", row.beginning)
            return
        if row.reason is not None:
            yield Record(row.line, None, row.reason, row.beginning)
        elif header is None:
            header = _named(row.values)
            places = [header.index(name) if name in header else None for name in names]
        elif len(row.values) != len(header):
            reason = f"the record has {len(row.values)} fields, and the header {len(header)}"
            yield Record(row.line, None, reason, delimiter.join(row.values)[:SHOWN])
        else:
            yield Record(row.line, [row.values[at] or None if at is not None else None for at in places])


class _Row:
    """The fields of a record and its first line, or why it is none."""

    def __init__(self, line: int, values: list[str], reason: str | None = None, beginning: str | None = None) -> None:
        self.line = line
        self.values = values
        self.reason = reason
        self.beginning = beginning


class _Rows:
    """The records of a file, blank lines left out; one that cannot be read, or a damaged rest, is one with a reason."""

    def __init__(self, path: str, delimiter: str, encoding: str, limit: int) -> None:
        csv.field_size_limit(limit)
        self._lines = lines(pieces(path), encoding, limit, ends=True)
        self._bad: list[Line] = []
        self._damage: Line | None = None
        self._first = ""
        self._reader = csv.reader(self._texts(), delimiter=delimiter, strict=True)

    def __iter__(self) -> Iterator[_Row]:
        return self

    def __next__(self) -> _Row:
        while True:
            began = self._reader.line_num + 1
            self._bad, self._first = [], ""
            reason = None
            try:
                values = next(self._reader)
            except csv.Error as error:
                values, reason = [], f"the record is not valid: {error}"
            except StopIteration:
                if self._damage is None:
                    raise
                damage, self._damage = self._damage, None
                return _Row(damage.number, [], damage.reason)
            if self._bad:
                return _Row(self._bad[0].number, [], self._bad[0].reason, self._bad[0].beginning)
            if reason is not None or values:
                return _Row(began, values, reason, self._first[:SHOWN] if reason else None)

    def _texts(self) -> Iterator[str]:
        for line in self._lines:
            if line.reason is not None and line.text is None and line.beginning is None:
                self._damage = line
                return
            if line.reason is not None:
                self._bad.append(line)
            self._first = self._first or line.text or ""
            yield line.text if line.text is not None else "\n"
