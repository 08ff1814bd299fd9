"""What a run reads, as it was when it began: files with their sizes and times."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import SparkSession

from simhash_udf import storage
from simhash_udf.manifest import MANIFEST, RUNS
from simhash_udf.settings import Settings
from simhash_udf.sources.files import data_files, partitions_of, plain_path
from simhash_udf.store.manifest import STORE, is_store


class InputFile(NamedTuple):
    """A file of the input: its size in bytes, when it was last changed, in microseconds since 1970, and its label and the columns
    that its directories stand for; of a finished run or
    a store its manifest, and of a table of the catalog its name, with a hash of what is
    known of it."""

    path: str
    size: int
    modified: int
    told: str = ""


def listing(spark: SparkSession, settings: Settings) -> list[InputFile]:
    """The files of all inputs, of the references and of the truth, in the order of their paths.

    Raises:
        InputError: a path is missing.
    """
    found: list[InputFile] = []
    labels = settings.labels or ("",) * len(settings.input)
    compared = [*settings.truth, *(path for path in settings.reference if settings.paths or is_written(path))]
    named = [*zip(labels, settings.paths, strict=False), *(("", path) for path in compared)]
    for label, given in named:
        local = storage.local_path(given)
        for path in (storage.expand if local else storage.expand_remote)(given):
            if is_written(path):
                # Its manifest names tables that are never changed.
                manifest = storage.join(path, MANIFEST if is_result(path) else STORE)
                text = storage.read_text(manifest) or ""
                found.append(InputFile(manifest, len(text), 0, _hash(text)))
                continue
            listed = data_files(spark, [path if local else storage.as_literal_glob(path)])
            # What a path makes of a file: its label, and the columns that directories below it stand for.
            found += [InputFile(file.path, file.size, file.modified, repr((label, partitions_of(file)))) for file in listed]
    if settings.input_format == "table":
        found += [
            InputFile(name, 0, 0, label + _files_of_table(spark, name))
            for label, name in zip(labels, settings.input, strict=True)
        ]
        found += [InputFile(name, 0, 0, _files_of_table(spark, name)) for name in settings.reference if not is_written(name)]
    return sorted(found)


def is_result(path: str) -> bool:
    """Whether a directory is the output of a finished run, and none of documents one of which is called as a manifest is."""
    return storage.path_is_directory(path) and {MANIFEST, RUNS} <= set(storage.names_in(path) or [])


def is_written(path: str) -> bool:
    """Whether a path is a result or a store, and no documents."""
    return is_result(path) or is_store(path)


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
