"""Parquet, ORC and tables of the catalog -> rows, read by Spark."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial, reduce

import pyarrow as pa
from pyarrow import orc, parquet
from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.sources.files import DataFile, literal_paths, partition_base, partitions_of, read_files, source_file
from simhash_udf.sources.records import rows_of_files
from simhash_udf.sources.streams import Damage, opened
from simhash_udf.stages.documents import ORIGIN, origin
from simhash_udf.storage import read_parquet_schema
from simhash_udf.tables import column


def read_columnar(spark: SparkSession, files: list[DataFile], chosen: str, *, check: bool) -> DataFrame:
    """The rows of Parquet or ORC files, the columns of partition directories, and the origin.

    Args:
        files: of one table; the columns are those of all files.
        chosen: "parquet" or "orc".
        check: whether each file is read to its end before, so that a damaged one becomes a row with the reason, and not an error
            of the job that reads it.

    Raises:
        InputError: the files have columns of different types, or none can be read.
    """
    damaged: dict[str, str] = dict(_damaged(spark, files, chosen).toLocalIterator()) if check else {}
    whole = [file for file in files if file.path not in damaged]
    base = partition_base(files)
    if not whole:
        name, reason = next(iter(damaged.items()))
        raise InputError(f"no file of the input can be read; the first is {name!r}: {reason}")
    # Without this, a file without a column that another has would decide the columns of all.
    reader = spark.read.format(chosen).option("mergeSchema", True).option("recursiveFileLookup", base is None)
    if damaged and base is not None:
        reader = reader.option("basePath", base)
    try:
        read = read_files(reader.load, literal_paths(whole, whole_roots=not damaged), chosen)
    except InputError as error:
        raise InputError(f"{error}{_columns_unknown_to_spark(whole[0].path) if chosen == 'parquet' else ''}") from None
    if base is not None:
        directories = {name.lower() for name, _ in partitions_of(files[0])}
        plain = reader.option("recursiveFileLookup", True).load(literal_paths(whole, whole_roots=not damaged))
        for name in plain.columns:
            if name.lower() in directories:
                raise InputError(f"column {name!r} is both in the documents and in the names of directories; rename one of them")
    hidden = any(name.lower() == "_metadata" for name in read.columns)
    row = F.col("_metadata.row_index") + 1 if chosen == "parquet" else None
    place = origin(F.lit(None)) if hidden else origin(source_file(), row)
    rows = read.select(*map(column, read.columns), place)
    if not damaged:
        return rows
    nothing = [F.lit(None).cast(field.dataType).alias(field.name) for field in read.schema]
    lost = spark.createDataFrame(list(damaged.items()), "file STRING, reason STRING")
    return rows.unionByName(lost.select(*nothing, origin(F.col("file"), None, F.col("reason"))))


def _columns_unknown_to_spark(path: str) -> str:
    """Which columns of a Parquet file have types that Spark does not read, and what to do about it; empty where none is found."""
    try:
        schema = read_parquet_schema(path)
    except (pa.ArrowException, OSError):
        return ""
    named = [
        f"{field.name!r} ({field.type})"
        for field in schema
        if pa.types.is_time(field.type) or (pa.types.is_timestamp(field.type) and field.type.unit == "ns")
    ]
    if not named:
        return ""
    return f"; of {path!r} these are {', '.join(named)}: write timestamps in microseconds, and times as strings or numbers"


def _damaged(spark: SparkSession, files: list[DataFile], chosen: str) -> DataFrame:
    return rows_of_files(spark, files).mapInArrow(partial(_check, chosen=chosen), "file STRING, reason STRING")


def _check(batches: Iterator[pa.RecordBatch], *, chosen: str) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in batch.column("file").to_pylist():
            reason = _reason_of_damage(path, chosen)
            if reason:
                yield pa.RecordBatch.from_arrays([pa.array([path]), pa.array([reason])], ["file", "reason"])


def _reason_of_damage(path: str, chosen: str) -> str | None:
    try:
        with opened(path) as stream:
            if chosen == "parquet":
                for _ in parquet.ParquetFile(stream).iter_batches():
                    pass
            else:
                file = orc.ORCFile(stream)
                for stripe in range(file.nstripes):
                    file.read_stripe(stripe)
    except Damage as damage:
        return str(damage)
    return None


def read_tables(spark: SparkSession, names: list[str]) -> DataFrame:
    """The rows of tables or views that the session's catalog knows, and the origin, which names the table.

    Raises:
        InputError: there is no such table, or two have columns of different types.
    """
    tables = []
    for name in names:
        try:
            table = spark.table(name)
            table.schema  # noqa: B018 - under Connect only this asks the catalog
        except (AnalysisException, ParseException) as error:
            said = str(error).split("SQLSTATE")[0].strip().partition("\n")[0]
            raise InputError(
                f"the table {name!r} cannot be read: {said}; name it as SHOW TABLES does, catalog.database.table"
            ) from None
        tables.append(table.withColumn(ORIGIN, origin(F.lit(name))))
    return reduce(lambda one, other: united(one, other), tables)


def united(one: DataFrame, other: DataFrame) -> DataFrame:
    """The rows of both, with the columns of both.

    Raises:
        InputError: a column is of different types in them; Spark would make numbers of strings, or strings of numbers.
    """
    types = dict(one.dtypes)
    for name, kind in other.dtypes:
        if types.get(name, kind) != kind:
            raise InputError(f"column {name!r} is {types[name]} in one input and {kind} in another; cast it to one type before")
    return one.unionByName(other, allowMissingColumns=True)
