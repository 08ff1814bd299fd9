"""Files of lines -> rows: JSON lines, or a line a document.

Spark reads the files, and Python those alone that Spark would read wrongly or not at all: in another encoding than UTF-8, with a
damaged end, or with a line that is too long for the memory of a worker. JSON is parsed by Spark, all of it alike.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import pyarrow as pa
import xxhash
from pyspark.errors import PySparkTypeError
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DoubleType, StringType, StructField, StructType

from simhash_udf.errors import InputError, OutputError
from simhash_udf.sources.files import (
    WANTED,
    DataFile,
    can_be_opened,
    check_names,
    literal_paths,
    partition_base,
    partitions_of,
    read_files,
    source_file,
)
from simhash_udf.sources.records import Record, read_by_python, rows_of_files
from simhash_udf.sources.streams import (
    Damage,
    compression_of,
    has_long_line,
    lines,
    pieces,
    raw_lines,
    spark_knows_compression_of,
)
from simhash_udf.stages.documents import ORIGIN, is_valid_utf8, origin
from simhash_udf.tables import column

VALUE = "__simhash_line__"
_PARSED = "__simhash_parsed__"
_CORRUPT = "__simhash_corrupt__"  # no field of a document is called so, as some are _corrupt_record
# The longest string that Spark's JSON parser takes is 20 million characters where this does not say otherwise.
_CASE_SENSITIVE = "spark.sql.caseSensitive"
_PARSER = {"maxStringLen": str(2**31 - 1)}
# An escape of half a surrogate pair without its other half, where no backslash escapes the one before "u".
_LONE_SURROGATE = (
    r"(?<!\\)(?:\\\\)*\\u[dD]"
    r"(?:[89abAB][0-9a-fA-F]{2}(?!\\u[dD][c-fC-F])|[c-fC-F](?<!\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD].))"
)
SPARK_SEED = 42  # of the function xxhash64


def read_lines(spark: SparkSession, files: list[DataFile], *, encoding: str, limit: int) -> DataFrame:
    """The lines of files: `value` STRING, the columns of partition directories, and the origin, with the reason why a line has no
    value.

    Args:
        files: of one table.
        encoding: of their text.
        limit: longest line in bytes.
    """
    careful = files if encoding != "utf-8" else needing_care(spark, files, limit)
    clean = [file for file in files if file not in set(careful)]
    base = partition_base(files)
    if any(name.lower() == "value" for name, _ in partitions_of(files[0])):
        # So Spark calls a line.
        raise InputError("a column named by directories is 'value', which lines of text cannot have; rename the directories")
    frames = []
    if clean:
        reader = spark.read.option("recursiveFileLookup", base is None)
        if careful and base is not None:
            reader = reader.option("basePath", base)
        read = read_files(reader.text, literal_paths(clean, whole_roots=not careful), "lines")
        told = origin(source_file(), line_hash=F.xxhash64("value"))
        partitions = [column(name) for name in read.columns if name != "value"]
        frames.append(read.select(F.col("value").alias(VALUE), *partitions, told))
    if careful:
        reading = partial(_records, encoding=encoding, limit=limit)
        frames.append(read_by_python(spark, careful, [VALUE], reading))
    return frames[0] if len(frames) == 1 else frames[0].unionByName(frames[1])


def _records(path: str, *, encoding: str, limit: int) -> Iterator[Record]:
    for line in lines(pieces(path), encoding, limit):
        yield Record(line.number, (line.text,) if line.reason is None else None, line.reason, line.beginning)


def needing_care(spark: SparkSession, files: list[DataFile], limit: int) -> list[DataFile]:
    """The files that Spark must not read: those that are damaged or gone, or have a line of more than `limit` bytes.

    Compressed files are read for this, and of others that are larger than the limit about one piece in each half of it.
    """
    paths = {file.path for file in files if not can_be_opened(file) or not spark_knows_compression_of(file.path)}
    doubted = [file for file in files if file.path not in paths and (file.size > limit or compression_of(file.path))]
    if doubted:
        found = rows_of_files(spark, doubted).mapInArrow(partial(_in_need, limit=limit), "file STRING").collect()
        paths |= {row["file"] for row in found}
    return [file for file in files if file.path in paths]


def _in_need(batches: Iterator[pa.RecordBatch], *, limit: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for path in batch.column("file").to_pylist():
            if _needs_care(path, limit):
                yield pa.RecordBatch.from_arrays([pa.array([path])], ["file"])


def _needs_care(path: str, limit: int) -> bool:
    try:
        if not compression_of(path):
            return has_long_line(path, limit)
        since = 0
        for piece in pieces(path):
            last = max(piece.rfind(b"\n"), piece.rfind(b"\r"))
            first = next((at for at in (piece.find(b"\n"), piece.find(b"\r")) if at >= 0), len(piece))
            if since + first > limit:
                return True
            since = since + len(piece) if last < 0 else len(piece) - last - 1
    except Damage:
        return True
    except OutputError:
        # Of a file system that Python cannot open here; what Spark reads of it, Spark tells of.
        return False
    return False


def documents_of_lines(read: DataFrame, text_column: str) -> DataFrame:
    """Each line a document: its text in a column of this name."""
    bad = F.when(~is_valid_utf8(F.col(VALUE)), F.lit("the line is not valid UTF-8"))
    return _with_reason(read, bad, F.col(VALUE)).withColumnRenamed(VALUE, text_column)


def documents_of_json(spark: SparkSession, read: DataFrame, id_column: str) -> DataFrame:
    """Each line a JSON object: its fields as columns. Blank lines are none.

    A line is parsed as an array of one, since the parser takes the first object of a line and passes over what follows it.

    Raises:
        InputError: no line is a JSON object, or a field has a name that is not free.
    """
    written = read.where(F.col(VALUE).isNull() | F.col(VALUE).rlike(r"\S"))
    schema = StructType([_exact(field, id_column) for field in _inferred(spark, written) if field.name != _CORRUPT])
    check_names(StructType([*schema, StructField(ORIGIN, StringType())]))
    names = [field.name for field in schema]
    others = [name for name in read.columns if name not in (VALUE, ORIGIN)]
    for name in others:
        if name.lower() in (known.lower() for known in names):
            raise InputError(f"column {name!r} is both in the documents and in the names of directories; rename one of them")
    if not names:
        first = written.select(F.substring(VALUE, 1, 80)).head()
        begins = f", but one begins {first[0]!r}" if first and first[0] else ""
        raise InputError(f"the input has no document; it must be {WANTED['jsonl']}{begins}")
    value = F.col(VALUE)
    parsed = F.from_json(F.concat(F.lit("["), value, F.lit("]")), ArrayType(schema), _PARSER)
    bad = (
        F.when(~is_valid_utf8(value), F.lit("the line is not valid UTF-8"))
        .when(
            F.contains(value, F.lit("\\u")) & value.rlike(_LONE_SURROGATE),
            F.lit("the line has half of a surrogate pair, which is no character"),
        )
        .when(F.col(_PARSED).isNull() | (F.size(_PARSED) != 1) | F.get(_PARSED, F.lit(0)).isNull(), _no_object())
    )
    held = _with_reason(written.select(VALUE, parsed.alias(_PARSED), *map(column, others), ORIGIN), bad, value)
    document = F.get(_PARSED, F.lit(0))
    return held.select(*(document.getField(name).alias(name) for name in names), *map(column, others), ORIGIN)


def _no_object() -> Column:
    return F.lit("the line is not one JSON object")


def _exact(field: StructField, id_column: str) -> StructField:
    # Whole numbers beside a fraction, or of more than 38 digits, would be rounded to doubles.
    return StructField(field.name, StringType()) if field.name == id_column and field.dataType == DoubleType() else field


def _inferred(spark: SparkSession, read: DataFrame) -> StructType:
    before = spark.conf.get(_CASE_SENSITIVE)
    # Else of fields whose names differ in case only one is found, and the others are lost.
    spark.conf.set(_CASE_SENSITIVE, "true")
    reader = spark.read.options(columnNameOfCorruptRecord=_CORRUPT, **_PARSER)
    try:
        return reader.json(read.select(VALUE)).schema
    except (PySparkTypeError, TypeError, AttributeError):
        # Spark before 4.2 finds the columns of files alone.
        if not read.where(F.col(f"{ORIGIN}.position").isNotNull()).isEmpty():
            raise InputError(
                "some files of JSON lines are damaged, of another encoding or with very long lines, which needs Spark 4.2 or "
                "newer; leave them out, or give the corpus as Parquet"
            ) from None
        return reader.json(read.inputFiles()).schema
    finally:
        spark.conf.set(_CASE_SENSITIVE, before or "false")


def _with_reason(rows: DataFrame, bad: Column, record: Column) -> DataFrame:
    """The rows with why one is no document added to their origin, where that does not say so yet."""
    reason = F.coalesce(F.col(f"{ORIGIN}.reason"), bad)
    shown = F.coalesce(F.col(f"{ORIGIN}.record"), F.when(bad.isNotNull(), record))
    return rows.withColumn(ORIGIN, F.col(ORIGIN).withField("reason", reason).withField("record", shown))


def with_line_numbers(rejected: DataFrame, *, limit: int) -> DataFrame:
    """Rejects with the number of their line where only their file and the hash of the line are known.

    Only the files that have such rejects are read again.

    Args:
        rejected: `file`, `position`, `reason`, `record` and `line_hash`.
    """
    unplaced = rejected.where(F.col("position").isNull() & F.col("line_hash").isNotNull())
    placed = rejected.where(F.col("position").isNotNull() | F.col("line_hash").isNull()).drop("line_hash")
    distinct = unplaced.groupBy("file", "line_hash").agg(
        F.min("reason").alias("reason"), F.min("record").alias("record"), F.count("*").cast("int").alias("times")
    )
    by_file = distinct.groupBy("file").agg(F.collect_list("line_hash").alias("hashes"))
    finding = partial(_numbered, limit=limit)
    found = by_file.mapInArrow(finding, "file STRING, line_hash BIGINT, positions ARRAY<BIGINT>")
    joined = distinct.join(found, ["file", "line_hash"], "left")
    unknown = F.array_repeat(F.lit(None).cast("bigint"), F.col("times"))
    position = F.explode(F.coalesce("positions", unknown)).alias("position")
    return placed.unionByName(joined.select("file", position, "reason", "record"))


def _numbered(batches: Iterator[pa.RecordBatch], *, limit: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for file, hashes in zip(batch.column("file").to_pylist(), batch.column("hashes").to_pylist(), strict=True):
            found: dict[int, list[int]] = {number: [] for number in hashes}
            # Where the file cannot be read here, or not any more, the numbers stay unknown.
            with suppress(Damage, OutputError):
                for number, (raw, _) in enumerate(raw_lines(pieces(file), limit), 1):
                    line = (raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw).rstrip(b"\r\n")
                    hashed = xxhash.xxh64_intdigest(line, SPARK_SEED)
                    at = hashed - (1 << 64) * (hashed >> 63)
                    if at in found:
                        found[at].append(number)
            found = {at: numbers for at, numbers in found.items() if numbers}
            columns = [pa.array([file] * len(found)), pa.array(list(found), pa.int64())]
            columns.append(pa.array(list(found.values()), pa.list_(pa.int64())))
            yield pa.RecordBatch.from_arrays(columns, ["file", "line_hash", "positions"])
