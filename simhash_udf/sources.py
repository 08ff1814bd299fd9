"""Reading documents: Parquet and JSON lines, plain or compressed."""

from __future__ import annotations

import os
import re
from functools import reduce
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.run import MANIFEST, table_path
from simhash_udf.settings import Settings
from simhash_udf.stages.documents import CORRUPT_RECORD
from simhash_udf.stages.fingerprints import SETTINGS_KEY
from simhash_udf.storage import as_literal_glob, expand, local_path, names_in, path_is_directory
from simhash_udf.tables import column

_ENDINGS = {"parquet": (".parquet", ".pq", ".parq"), "jsonl": (".jsonl", ".json", ".ndjson", ".jsonlines")}
_COMPRESSIONS = (".gz", ".gzip", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
_WANTED = {"parquet": "Parquet files", "jsonl": "files of one JSON object a line"}


def read_documents(spark: SparkSession, settings: Settings) -> DataFrame:
    """The rows of the inputs, with all their columns.

    Raises:
        InputError: a path is missing, the format cannot be told, or a file is not in it.
    """
    paths = [path for given in settings.input for path in expand(given)]
    if len(set(paths)) < len(paths):
        twice = sorted({path for path in paths if paths.count(path) > 1})
        raise InputError(f"the input names {twice[0]!r} more than once; name each path once")
    chosen = settings.input_format if settings.input_format != "auto" else _format_of(paths)
    reader = spark.read
    # Without this, a file without a column that another has would decide the columns of all.
    reader = reader.option("mergeSchema", True) if chosen == "parquet" else reader.option("mode", "PERMISSIVE")
    if chosen == "jsonl":
        reader = reader.option("columnNameOfCorruptRecord", CORRUPT_RECORD)
    files = [as_literal_glob(path) for path in paths]
    frame = _read(reader.parquet if chosen == "parquet" else reader.json, files, chosen)
    if frame.columns == [CORRUPT_RECORD] or not frame.columns:
        raise InputError(f"the input {', '.join(settings.input)} has no document; it must be {_WANTED[chosen]}")
    return frame


def _read(read: Any, files: list[str], chosen: str) -> DataFrame:
    try:
        # Parquet takes several paths, JSON a list of them.
        frame: DataFrame = read(*files) if chosen == "parquet" else read(files)
    except Exception as error:
        # Spark tells of a file that it cannot read in errors of several classes, some only known to its JVM bridge.
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        text = str(error)
        named = re.search(r"\[[A-Z_.]+\] [^\n]*", text)
        reason = (named[0] if named else text.split("\n", 1)[0]).split("SQLSTATE")[0].strip()
        raise InputError(f"the input cannot be read as {_WANTED[chosen]}: {reason}") from error
    return frame


def read_fingerprints(spark: SparkSession, settings: Settings) -> DataFrame:
    """Stored fingerprints as `id` and `fingerprint` BIGINT: of finished runs, or of any Parquet with such columns.

    Raises:
        InputError: a path is missing or unreadable, a column is missing or of another type, or the inputs were made with
            different fingerprint settings.
    """
    tables = []
    for path in (path for given in settings.input for path in expand(given)):
        run = MANIFEST in (names_in(path) or []) if path_is_directory(path) else False
        name = "id" if run else settings.id_column
        frame = _read(spark.read.parquet, [as_literal_glob(table_path(path, "fingerprints") if run else path)], "parquet")
        types = dict(frame.dtypes)
        for column_name in (name, "fingerprint"):
            if column_name not in types:
                raise InputError(
                    f"{path!r} has no column {column_name!r}, but {sorted(types)}; stored fingerprints have a column of "
                    "ids, named by --id-column, and a BIGINT column 'fingerprint'"
                )
        if types["fingerprint"] != "bigint":
            raise InputError(f"column 'fingerprint' of {path!r} is {types['fingerprint']}; it must be BIGINT, two's complement")
        tables.append((path, frame.select(column(name).alias("id"), "fingerprint")))
    made_with = {frame.schema["fingerprint"].metadata.get(SETTINGS_KEY): path for path, frame in reversed(tables)}
    if len(made_with) > 1:
        listed = "; ".join(f"{path!r}: {made or 'unknown'}" for made, path in made_with.items())
        raise InputError(f"fingerprints of different settings cannot be compared: {listed}; make them again with one of these")
    if len({dict(frame.dtypes)["id"] for _, frame in tables}) > 1:
        listed = "; ".join(f"{path!r}: {dict(frame.dtypes)['id']}" for path, frame in tables)
        raise InputError(f"the ids are of different types: {listed}; cast them to one")
    return reduce(DataFrame.unionByName, [frame for _, frame in tables])


def source_file(frame: DataFrame) -> Column:
    """The column that names the file a row was read from; NULL where a column of the input hides it."""
    hidden = any(name.lower() == "_metadata" for name in frame.columns)
    return F.lit(None) if hidden else F.col("_metadata.file_path")


def _format_of(paths: list[str]) -> str:
    found: dict[str, str] = {}
    for path in paths:
        for name in _file_names(path):
            plain = name.lower()
            for compression in _COMPRESSIONS:
                plain = plain.removesuffix(compression)
            for kind, endings in _ENDINGS.items():
                if plain.endswith(endings):
                    found.setdefault(kind, name)
    if len(found) == 1:
        return next(iter(found))
    known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    problem = f"both {' and '.join(map(repr, found.values()))} are there" if found else f"no file name ends in {known}"
    raise InputError(f"the format of {', '.join(paths)} cannot be told: {problem}; say it with --input-format")


def _file_names(path: str) -> list[str]:
    local = local_path(path)
    if local is None:
        return [path.rstrip("/")]
    if not os.path.isdir(local):
        return [local]
    found = []
    for directory, below, names in os.walk(local):
        # Spark leaves out what begins so.
        below[:] = sorted(name for name in below if not name.startswith(("_", ".")))
        found += [os.path.join(directory, name) for name in sorted(names) if not name.startswith(("_", "."))]
    return found
