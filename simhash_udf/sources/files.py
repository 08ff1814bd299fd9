"""The files of an input: which there are, what their names tell, and Spark's readers for them."""

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
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from simhash_udf.errors import InputError
from simhash_udf.storage import (
    as_literal_glob,
    expand,
    local_path,
)

_ENDINGS = {
    "parquet": (".parquet", ".pq", ".parq"),
    "jsonl": (".jsonl", ".json", ".ndjson", ".jsonlines"),
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "orc": (".orc",),
    "warc": (".warc", ".wet", ".arc"),
}
_MARKS = (
    "_SUCCESS", "_temporary", "_metadata", "_common_metadata", "_delta_log", "_spark_metadata", ".DS_Store", ".ipynb_checkpoints",
    ".git",
)  # fmt: skip
_NULL_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_COMPRESSIONS = (".gz", ".gzip", ".bz2", ".zst", ".lz4", ".snappy", ".deflate")
WANTED = {
    "parquet": "Parquet files",
    "jsonl": "files of one JSON object a line",
    "csv": "files of fields with commas between them, below a line of their names",
    "tsv": "files of fields with tabs between them, below a line of their names",
    "orc": "ORC files",
    "text": "text files, each a document",
    "lines": "text files, each line a document",
    "warc": "web archives: WARC, WET or ARC",
    "table": "a table or view that the session knows by this name",
    "binaryFile": "files",
}


def literal_paths(files: list[DataFile], *, whole_roots: bool) -> list[str]:
    """What to give to a reader of Spark for these files.

    Args:
        whole_roots: whether these are all files of their inputs; the paths are then those of the inputs.
    """
    if not whole_roots:
        return [as_literal_glob(file.path) for file in files]
    # A remote input is still the glob that was given.
    roots = dict.fromkeys(file.root for file in files)
    return [root if local_path(root) is None else as_literal_glob(root) for root in roots]


def read_files(read: Any, files: list[str], chosen: str) -> DataFrame:
    """Files through a reader of Spark.

    Args:
        read: a reader's method that takes a list of paths, such as `spark.read.json`.
        files: paths that exist.
        chosen: a format.

    Raises:
        InputError: Spark cannot read them.
    """
    try:
        frame: DataFrame = read(files)
    except Exception as error:
        # Spark tells of a file that it cannot read in errors of several classes, some only known to its JVM bridge.
        if not type(error).__module__.startswith(("pyspark.", "py4j.")):
            raise
        text = str(error)
        named = re.search(r"\[[A-Z_.]+\] [^\n]*", text)
        reason = (named[0] if named else text.split("\n", 1)[0]).split("SQLSTATE")[0].strip()
        raise InputError(f"the input cannot be read as {WANTED[chosen]}: {reason}") from error
    return frame


class DataFile(NamedTuple):
    """A file to read: the input that it belongs to, the names of the directories between them, its size in bytes, and when it was
    last changed, in whole microseconds since 1970."""

    path: str
    root: str
    between: tuple[str, ...]
    size: int = 0
    modified: int = 0


def data_files(spark: SparkSession, inputs: Iterable[str], *, format_is_given: bool = False) -> list[DataFile]:
    """The files that Spark reads for these inputs.

    Args:
        format_is_given: whether a file may be one of documents whatever its name, unless it is a mark that programs leave.

    Raises:
        InputError: Spark would leave one out, for its name or that of a directory.
    """
    found: list[DataFile] = []
    for given in inputs:
        for root in expand(given):
            local = local_path(root)
            found += (
                _listed(spark, root)
                if local is None
                else _walked(local, outright=local == local_path(given), format_is_given=format_is_given)
            )
    return found


def _listed(spark: SparkSession, root: str) -> list[DataFile]:
    # This format needs no look into the files. A glob has as many parts as what it matches.
    listed = read_files(spark.read.format("binaryFile").option("recursiveFileLookup", True).load, [root], "binaryFile")
    parts = root.rstrip("/").count("/") + 1
    files = listed.select("path", "length", F.unix_micros("modificationTime").alias("modified")).collect()
    if not files and _is_left_out(posixpath.basename(root.rstrip("/"))):
        raise InputError(_left_out(root))
    told = ((re.sub("^file:/+", "file:///", file["path"]), file["length"], file["modified"]) for file in files)
    return sorted(DataFile(path, root, tuple(path.split("/")[parts:-1]), size, modified) for path, size, modified in told)


def _cannot_be_read(error: OSError) -> None:
    raise InputError(f"the input {error.filename!r} cannot be read: {error.strerror}; mend it or leave it out") from None


def _walked(root: str, *, outright: bool, format_is_given: bool = False) -> list[DataFile]:
    if not os.path.isdir(root):
        name = os.path.basename(root)
        if not _is_left_out(name):
            return [_local_file(root, root, ())]
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
            if not _is_text(path):
                raise InputError(f"the name of the file {path!r} is not valid UTF-8, so that it cannot be listed; rename it")
            if not left_out and not _is_left_out(name):
                found.append(_local_file(path, root, between))
            elif _format_by_name(name) or (format_is_given and not any(map(_is_mark, (*between, name)))):
                raise InputError(_left_out(path))
    return found


def _local_file(path: str, root: str, between: tuple[str, ...]) -> DataFile:
    try:
        status = os.stat(path)
    except OSError:
        # A link to nothing, or gone since it was listed; who reads it says so.
        return DataFile(path, root, between)
    return DataFile(path, root, between, status.st_size, status.st_mtime_ns // 1000)


def can_be_opened(file: DataFile) -> bool:
    """Whether a local file is there and may be read; those of other file systems are taken to be."""
    local = local_path(file.path)
    return local is None or os.access(local, os.R_OK)


def _is_left_out(name: str) -> bool:
    """Whether Spark takes a file or directory for one of its own and does not read it."""
    return name.startswith(".") or (name.startswith("_") and "=" not in name) or name.endswith("._COPYING_")


def _is_text(name: str) -> bool:
    # Python has half surrogate pairs for what is not.
    return not any("\ud800" <= character <= "\udfff" for character in name)


def _is_mark(name: str) -> bool:
    """Whether programs leave a file or directory of this name beside data, which is none itself."""
    return name in _MARKS or name.startswith(("_committed_", "_started_")) or name.endswith((".crc", "._COPYING_"))


def _left_out(path: str) -> str:
    return (
        f"the input {path!r} would be left out, since Spark does not read what has a name that begins with '_' or '.'; rename "
        "it, remove it, or name the inputs by a glob that does not match it"
    )


def is_partitioned(found: list[DataFile]) -> bool:
    """Whether the files lie in partition directories, such as crawl=01, which are columns.

    Raises:
        InputError: as `partition_base`.
    """
    return partition_base(found) is not None


def partitions_of(file: DataFile) -> list[tuple[str, str | None]]:
    """The columns that the directories of a file stand for, and its values: strings as they are written.

    >>> partitions_of(DataFile("/in/crawl=01/a.csv", "/in", ("crawl=01",)))
    [('crawl', '01')]
    """
    named = [name.partition("=") for name in file.between if name.find("=") > 0]
    return [(unquote(key), None if value == _NULL_PARTITION else unquote(value)) for key, _, value in named]


def plain_path(name: str) -> str:
    """A file as people name it, by the name that Spark has for it.

    >>> plain_path("file:///in/a%20b%25.jsonl")
    '/in/a b%.jsonl'
    """
    return re.sub(r"^file:/*(?=/)", "", unquote(name)) if name.startswith("file:") else unquote(name)


def check_names(kind: DataType, within: str = "the input") -> None:
    """Raise InputError where two columns, or two fields in a column, have names that Spark does not tell apart."""
    if isinstance(kind, ArrayType):
        check_names(kind.elementType, within)
    elif isinstance(kind, MapType):
        check_names(kind.keyType, within)
        check_names(kind.valueType, within)
    elif isinstance(kind, StructType):
        seen: dict[str, str] = {}
        for field in kind:
            if field.name.lower() in seen:
                raise InputError(
                    f"{within} has two columns or fields {seen[field.name.lower()]!r} and {field.name!r}, which Spark does not "
                    "tell apart (they may be in one document, or in several, or a directory or label): rename one of them"
                )
            seen[field.name.lower()] = field.name
            check_names(field.dataType, f"column {field.name!r}")


def source_file() -> Column:
    """The file that a row was read from, as people name it; `plain_path` in Spark's terms."""
    name = F.url_decode(F.replace("_metadata.file_path", F.lit("+"), F.lit("%2B")))
    return F.regexp_replace(name, "^file:/*(?=/)", "")


def partition_base(found: list[DataFile]) -> str | None:
    """The directory of the table whose partition directories, such as crawl=01, the files lie in; None where they lie in none.

    Raises:
        InputError: some do and some do not, or not in the same ones: files or columns would be left out.
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
        shape = (file.path.rsplit("/", len(names) - first + 1)[0], *keys) if keys else ()
        examples.setdefault(shape, file.path)
    if examples.keys() <= {()}:
        return None
    if len(examples) > 1:
        one, other, *_ = examples.values()
        raise InputError(
            f"the inputs {one!r} and {other!r} are not in partition directories of the same names below one directory, so Spark "
            "would leave files out; move one of them, read them in runs of their own, or give the partition directories "
            "themselves as a glob, such as 'corpus/crawl=*', which makes no columns of their names"
        )
    return next(iter(examples))[0]


def format_of(paths: list[str], files: list[DataFile]) -> str:
    """The format that the names of files tell.

    Raises:
        InputError: they tell none, or several.
    """
    found: dict[str, str] = {}
    for file in files:
        kind = _format_by_name(file.path)
        if kind:
            found.setdefault(kind, file.path)
    if len(found) == 1:
        return next(iter(found))
    known = ", ".join(ending for endings in _ENDINGS.values() for ending in endings)
    problem = f"both {' and '.join(map(repr, found.values()))} are there" if found else f"no file name ends in {known}"
    raise InputError(
        f"the format of {', '.join(paths[:10])} cannot be told: {problem}; say it with --input-format, for plain text text (each "
        "file a document) or lines (each line a document)"
    )


def _format_by_name(name: str) -> str | None:
    plain = name.lower()
    for compression in _COMPRESSIONS:
        plain = plain.removesuffix(compression)
    return next((kind for kind, endings in _ENDINGS.items() if plain.endswith(endings)), None)
