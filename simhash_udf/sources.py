"""Reading documents: Parquet and JSON lines, plain or compressed."""

from __future__ import annotations

import itertools
import os
import posixpath
import re
from collections.abc import Iterable
from typing import Any, NamedTuple
from urllib.parse import unquote

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.settings import Settings
from simhash_udf.stages.documents import with_broken_lines
from simhash_udf.storage import (
    as_literal_glob,
    expand,
    join,
    local_path,
)

_ENDINGS = {"parquet": (".parquet", ".pq", ".parq"), "jsonl": (".jsonl", ".json", ".ndjson", ".jsonlines")}
_COMPRESSIONS = (".gz", ".gzip", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
# Where Spark's JSON reader puts a line that it cannot parse; it becomes a column only where there is such a line.
_CORRUPT_RECORD = "_corrupt_record"
_WANTED = {"parquet": "Parquet files", "jsonl": "files of one JSON object a line", "binaryFile": "files"}


def read_documents(spark: SparkSession, settings: Settings) -> DataFrame:
    """The rows of the inputs, with all their columns, and those of partition directories (`crawl=01`).

    Raises:
        InputError: a path is missing, the format cannot be told, a file is not in it, or a file would be left out.
    """
    paths = [path for given in settings.input for path in expand(given)]
    if len(set(paths)) < len(paths):
        twice = sorted({path for path in paths if paths.count(path) > 1})
        raise InputError(f"the input names {twice[0]!r} more than once; name each path once")
    found = data_files(spark, settings.input)
    chosen = settings.input_format if settings.input_format != "auto" else _format_of(paths, found)
    if not found:
        raise InputError(f"the input {', '.join(settings.input)} has no file; it must be {_WANTED[chosen]}")
    reader = spark.read.option("recursiveFileLookup", not is_partitioned(found))
    # Without this, a file without a column that another has would decide the columns of all.
    reader = reader.option("mergeSchema", True) if chosen == "parquet" else reader.option("mode", "PERMISSIVE")
    if chosen == "jsonl":
        reader = reader.option("columnNameOfCorruptRecord", _CORRUPT_RECORD)
    # A remote input is still the glob that was given.
    roots = dict.fromkeys(file.root for file in found)
    files = [root if local_path(root) is None else as_literal_glob(root) for root in roots]
    frame = read_files(reader.parquet if chosen == "parquet" else reader.json, files, chosen)
    if not frame.columns or (chosen == "jsonl" and frame.columns == [_CORRUPT_RECORD]):
        raise InputError(f"the input {', '.join(settings.input)} has no document; it must be {_WANTED[chosen]}")
    return with_broken_lines(frame, _CORRUPT_RECORD) if chosen == "jsonl" and _CORRUPT_RECORD in frame.columns else frame


def read_files(read: Any, files: list[str], chosen: str) -> DataFrame:
    """Files through a reader of Spark.

    Args:
        read: the method of a reader, such as `spark.read.parquet`.
        files: paths that exist.
        chosen: "parquet" or another format.

    Raises:
        InputError: Spark cannot read them.
    """
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


def source_file(frame: DataFrame) -> Column:
    """The column that names the file a row was read from; NULL where a column of the input hides it."""
    hidden = any(name.lower() == "_metadata" for name in frame.columns)
    return F.lit(None) if hidden else F.col("_metadata.file_path")


class _DataFile(NamedTuple):
    """A file to read, the input that it belongs to, and the names of the directories between them."""

    path: str
    root: str
    between: tuple[str, ...]


def data_files(spark: SparkSession, inputs: Iterable[str]) -> list[_DataFile]:
    """The files that Spark reads for these inputs.

    Raises:
        InputError: Spark would leave one out, for its name or that of a directory.
    """
    found: list[_DataFile] = []
    for given in inputs:
        for root in expand(given):
            local = local_path(root)
            found += _listed(spark, root) if local is None else _walked(local, outright=local == local_path(given))
    return found


def _listed(spark: SparkSession, root: str) -> list[_DataFile]:
    # This format needs no look into the files. A glob has as many parts as what it matches.
    listed = read_files(
        spark.read.format("binaryFile").option("recursiveFileLookup", True).load, [root], "binaryFile"
    ).inputFiles()
    parts = root.rstrip("/").count("/") + 1
    files = [unquote(file) for file in listed]
    if not files and _is_left_out(posixpath.basename(root.rstrip("/"))):
        raise InputError(_left_out(root))
    return [_DataFile(file, root, tuple(file.split("/")[parts:-1])) for file in files]


def _cannot_be_read(error: OSError) -> None:
    raise InputError(f"the input {error.filename!r} cannot be read: {error.strerror}; mend it or leave it out") from None


def _walked(root: str, *, outright: bool) -> list[_DataFile]:
    if not os.path.isdir(root):
        name = os.path.basename(root)
        if not _is_left_out(name):
            return [_DataFile(root, root, ())]
        if outright or _format_by_name(name):
            raise InputError(_left_out(root))
        return []
    found = []
    for directory, below, names in os.walk(root, onerror=_cannot_be_read, followlinks=True):
        below.sort()
        for name in below:
            path = os.path.join(directory, name)
            if os.path.islink(path) and f"{os.path.realpath(directory)}/".startswith(f"{os.path.realpath(path)}/"):
                raise InputError(f"{path!r} links to a directory that holds it, so that reading would not end; remove the link")
        between = tuple(os.path.relpath(directory, root).split("/")) if directory != root else ()
        left_out = any(map(_is_left_out, between)) or (not outright and _is_left_out(os.path.basename(root)))
        for name in sorted(names):
            path = os.path.join(directory, name)
            if not left_out and not _is_left_out(name):
                found.append(_DataFile(path, root, between))
            elif _format_by_name(name):
                raise InputError(_left_out(path))
    return found


def _is_left_out(name: str) -> bool:
    """Whether Spark takes a file or directory for one of its own and does not read it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _left_out(path: str) -> str:
    return (
        f"the input {path!r} would be left out, since Spark does not read what has a name that begins with '_' or '.'; rename "
        "it, remove it, or name the inputs by a glob that does not match it"
    )


def is_partitioned(found: list[_DataFile]) -> bool:
    """Whether the files lie in partition directories, such as crawl=01, which Spark makes columns of.

    Raises:
        InputError: some do and some do not, or not in the same ones: Spark would leave files or columns out.
    """
    examples: dict[tuple[str, ...], str] = {}
    for file in found:
        names = [name.partition("=")[0] if "=" in name else "" for name in file.between]
        first = next((at for at, name in enumerate(names) if name), len(names))
        keys = list(itertools.takewhile(bool, names[first:]))
        if any(names[first + len(keys) :]):
            raise InputError(
                f"in {file.path!r} a directory that is no partition is between partition directories; they must follow one "
                "another, such as year=2024/month=01: rename it or move them"
            )
        # What Spark takes for the directory of the table, and the columns.
        shape = (join(file.root, *file.between[:first]), *keys) if keys else ()
        examples.setdefault(shape, file.path)
    if examples.keys() <= {()}:
        return False
    if len(examples) > 1:
        one, other, *_ = examples.values()
        raise InputError(
            f"the inputs {one!r} and {other!r} are not in partition directories of the same names below one directory, so Spark "
            "would leave files out; move one of them, read them in runs of their own, or give the partition directories "
            "themselves as a glob, such as 'corpus/crawl=*', which makes no columns of their names"
        )
    return True


def _format_of(paths: list[str], files: list[_DataFile]) -> str:
    found: dict[str, str] = {}
    for file in files:
        kind = _format_by_name(file.path)
        if kind:
            found.setdefault(kind, file.path)
    if len(found) == 1:
        return next(iter(found))
    known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    problem = f"both {' and '.join(map(repr, found.values()))} are there" if found else f"no file name ends in {known}"
    raise InputError(f"the format of {', '.join(paths)} cannot be told: {problem}; say it with --input-format")


def _format_by_name(name: str) -> str | None:
    plain = name.lower()
    for compression in _COMPRESSIONS:
        plain = plain.removesuffix(compression)
    return next((kind for kind, endings in _ENDINGS.items() if plain.endswith(endings)), None)
