"""Files that Python reads -> rows: each file by one task, a record at a time, in batches of a few MB."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.credentials import without_credentials
from simhash_udf.sources.files import DataFile, partitions_of
from simhash_udf.stages.documents import origin

BATCH_BYTES = 1 << 22
BATCH_ROWS = 2000
_FILES_A_TASK = 16


class Record(NamedTuple):
    """A record of a file: its number from 1, its values, or why it is no document and how it begins.

    A reason that begins with `SKIPPED` is that of a record which nobody takes for a document, and which is counted alone.
    """

    position: int
    values: Sequence[str | None] | None
    reason: str | None = None
    beginning: str | None = None


SKIPPED = "skipped: "
Reader = Callable[[str], Iterator[Record]]


def rows_of_files(spark: SparkSession, files: list[DataFile]) -> DataFrame:
    """The files as rows: `file` STRING and `partitions` ARRAY<STRING>, the values of the directories that are columns."""
    rows = [(file.path, [value for _, value in partitions_of(file)]) for file in files]
    tasks = min(max(len(rows) // _FILES_A_TASK, min(len(rows), 64)), 10_000)
    return spark.createDataFrame(rows, "file STRING, partitions ARRAY<STRING>").repartition(max(1, tasks))


def read_by_python(spark: SparkSession, files: list[DataFile], names: list[str], read: Reader) -> DataFrame:
    """The records of files: columns of these names, of strings, those of partition directories, and the origin.

    Args:
        names: of the values of a record, in their order.
        read: a function of a module, called with the path of a file in a task; it must not raise.
    """
    partitions = [name for name, _ in partitions_of(files[0])]
    width = len(names) + len(partitions)
    # By place, since names of the data may be any.
    schema = ", ".join([*(f"c{at} STRING" for at in range(width)), "file STRING, position BIGINT, reason STRING, record STRING"])

    rows = rows_of_files(spark, files).mapInArrow(partial(_to_rows, read=read, width=len(names)), schema)
    named = [F.col(f"c{at}").alias(name) for at, name in enumerate([*names, *partitions])]
    told = origin(*(F.col(name) for name in ("file", "position", "reason", "record")))
    return rows.select(*named, told)


def _to_rows(batches: Iterator[pa.RecordBatch], *, read: Reader, width: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path, partitions in zip(batch.column("file").to_pylist(), batch.column("partitions").to_pylist(), strict=True):
            for records in _in_batches(read(path)):
                yield _as_batch(records, width, partitions, without_credentials(path))


def _in_batches(records: Iterator[Record]) -> Iterator[list[Record]]:
    held: list[Record] = []
    held_bytes = 0
    for record in records:
        held.append(record)
        held_bytes += sum(len(value or "") for value in record.values or ())
        if len(held) >= BATCH_ROWS or held_bytes >= BATCH_BYTES:
            yield held
            held, held_bytes = [], 0
    if held:
        yield held


def _as_batch(records: list[Record], width: int, partitions: list[str | None], path: str) -> pa.RecordBatch:
    nothing = (None,) * width
    by_column = list(zip(*(record.values or nothing for record in records), strict=True))
    columns = [pa.array(values, pa.string()) for values in by_column]
    columns += [pa.array([value] * len(records), pa.string()) for value in partitions]
    columns.append(pa.array([path] * len(records), pa.string()))
    columns.append(pa.array([record.position for record in records], pa.int64()))
    columns.append(pa.array([record.reason for record in records], pa.string()))
    columns.append(pa.array([record.beginning for record in records], pa.string()))
    names = [*(f"c{at}" for at in range(width + len(partitions))), "file", "position", "reason", "record"]
    return pa.RecordBatch.from_arrays(columns, names)
