"""What a run reads, as it was when it began: files with their sizes and times."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from simhash_udf import storage
from simhash_udf.manifest import MANIFEST
from simhash_udf.settings import Settings
from simhash_udf.sources.files import data_files, plain_path


class InputFile(NamedTuple):
    """A file of the input: its size in bytes, and when it was last changed, in microseconds since 1970; of a finished run its
    manifest, and of a table of the catalog its name, with a hash of what is known of it."""

    path: str
    size: int
    modified: int
    told: str = ""


def listing(spark: SparkSession, settings: Settings) -> list[InputFile]:
    """The files of all inputs and of the truth, in the order of their paths.

    Raises:
        InputError: a path is missing.
    """
    found: list[InputFile] = []
    for given in (*settings.paths, *settings.truth):
        local = storage.local_path(given)
        for path in (storage.expand if local else storage.expand_remote)(given):
            text = storage.read_text(storage.join(path, MANIFEST)) if storage.path_is_directory(path) else None
            if text is not None:
                # It names tables that are never changed.
                found.append(InputFile(storage.join(path, MANIFEST), len(text), 0, _hash(text)))
                continue
            listed = data_files(spark, [path if local else storage.as_literal_glob(path)])
            found += [InputFile(file.path, file.size, file.modified) for file in listed]
    if settings.input_format == "table":
        found += [InputFile(name, 0, 0, _files_of_table(spark, name)) for name in settings.input]
    return sorted(found)


def _files_of_table(spark: SparkSession, name: str) -> str:
    """A hash of the files that a table is read from, with their sizes and times."""
    try:
        files = spark.table(name).inputFiles()
    except (AnalysisException, ParseException):
        # Reading says it better.
        return ""
    told = []
    for path in sorted(map(plain_path, files)):
        told += data_files(spark, [path if storage.local_path(path) else storage.as_literal_glob(path)])
    return _hash(repr(told))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
