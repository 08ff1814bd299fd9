"""Reading what runs wrote, or what has the same columns: fingerprints, pairs and true pairs."""

from __future__ import annotations

import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyarrow import ArrowException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.checksums import checksum_of
from simhash_udf.errors import InputError, OutputError
from simhash_udf.manifest import MANIFEST, read_manifest, table_path
from simhash_udf.settings import Settings
from simhash_udf.sources.files import data_files, is_partitioned, read_files
from simhash_udf.stages.documents import check_id_type
from simhash_udf.stages.fingerprints import SETTINGS_KEY
from simhash_udf.storage import (
    as_literal_glob,
    expand,
    expand_remote,
    join,
    local_path,
    names_in,
    path_is_directory,
    read_parquet_schema,
)
from simhash_udf.stored import as_bigint
from simhash_udf.tables import column

_SCHEMA_OF_SPARK = b"org.apache.spark.sql.parquet.row.metadata"
_FOOTERS_AT_ONCE = 16


def read_fingerprints(spark: SparkSession, settings: Settings) -> DataFrame:
    """Stored fingerprints as `id` and `fingerprint` BIGINT: of finished runs, or of any Parquet with such columns.

    The column `fingerprint` says what it was made with, where all files do (`settings_id_of`).

    Raises:
        InputError: a path is missing or unreadable, a column is missing or of another type, or two files were made with
            different fingerprint settings.
    """
    tables = []
    made_with: dict[str | None, str] = {}
    named = ((expand if local_path(given) else expand_remote)(given) for given in settings.input)
    for path in itertools.chain.from_iterable(named):
        try:
            run = MANIFEST in (names_in(path) or []) if path_is_directory(path) else False
            place = table_path(path, "fingerprints") if run else path
        except OutputError as error:
            raise InputError(f"the input {path!r} cannot be read: {error}") from None
        name = "id" if run else settings.id_column
        files = data_files(spark, [place if local_path(place) else as_literal_glob(place)])
        reader = spark.read.option("recursiveFileLookup", not is_partitioned(files))
        frame = read_files(reader.format("parquet").load, [as_literal_glob(place)], "parquet")
        types = dict(frame.dtypes)
        for column_name in (name, "fingerprint"):
            if column_name not in types:
                raise InputError(
                    f"{path!r} has no column {column_name!r}, but {sorted(types)}; stored fingerprints have a column of "
                    "ids, named by --id-column, and a column 'fingerprint'"
                )
        check_id_type(name, frame.schema[name].dataType)
        given = frame.select(column(name).alias("id"), "fingerprint")
        stored = as_bigint(given, "fingerprint", settings.fingerprint_format, path)
        tables.append((path, stored))
        # Spark takes the metadata of a column from any one of the files.
        for made, file in _settings_ids([file.path for file in files]):
            made_with.setdefault(made, file)
    if len(made_with) > 1:
        listed = "; ".join(f"{path!r}: {made or 'unknown'}" for made, path in made_with.items())
        raise InputError(f"fingerprints of different settings cannot be compared: {listed}; make them again with one of these")
    if len({dict(frame.dtypes)["id"] for _, frame in tables}) > 1:
        listed = "; ".join(f"{path!r}: {dict(frame.dtypes)['id']}" for path, frame in tables)
        raise InputError(f"the ids are of different types: {listed}; cast them to one")
    stored = reduce(DataFrame.unionByName, [frame for _, frame in tables])
    made = next(iter(made_with), None)
    return stored.withMetadata("fingerprint", {SETTINGS_KEY: made} if made else {})


def read_fingerprints_of_run(spark: SparkSession, path: str) -> DataFrame:
    """The table `fingerprints` of a finished run, with all its columns.

    Raises:
        InputError: there is no finished run, it has no such table, or the table is gone.
    """
    try:
        place = table_path(path, "fingerprints")
    except OutputError as error:
        raise InputError(f"the input {path!r} cannot be read: {error}") from None
    return read_files(spark.read.format("parquet").load, [as_literal_glob(place)], "parquet")


def read_result_pairs(spark: SparkSession, settings: Settings) -> tuple[DataFrame, int]:
    """The table `pairs` of the finished run that the input names, and the largest distance it was searched for.

    Raises:
        InputError: the input is not one finished run that wrote all pairs.
    """
    if len(settings.input) != 1:
        raise InputError(f"the input names {len(settings.input)} results; it must be the output of one finished run")
    path = settings.input[0]
    try:
        place = table_path(path, "pairs")
        searched = read_manifest(path)["settings"]
    except OutputError as error:
        raise InputError(f"the input {path!r} cannot be read: {error}") from None
    if searched.get("pairs") != "all":
        raise InputError(f"the result {path!r} has spanning pairs, which tell nothing of recall; make it with --pairs all")
    return read_files(spark.read.format("parquet").load, [as_literal_glob(place)], "parquet"), int(searched["max-distance"])


def changes(spark: SparkSession, output: str) -> list[str]:
    """What in the tables of a finished run is not as its manifest says, a phrase for each table; all of them are read.

    Raises:
        OutputError: there is no finished run.
    """
    said = []
    for name, told in read_manifest(output)["tables"].items():
        try:
            table = spark.read.parquet(as_literal_glob(join(output, told["path"])))
            rows, checksum = table.count(), checksum_of(table)
        except Exception as error:
            if not type(error).__module__.startswith(("pyspark.", "py4j.")):
                raise
            named = re.search(r"\[[A-Z_.]+\]", str(error))
            said.append(f"{name} cannot be read" + (f" {named[0]}" if named else ""))
            continue
        schema = {field.name: field.dataType.simpleString() for field in table.schema}
        for what, found, wanted in (
            ("rows", rows, told["rows"]),
            ("columns", schema, told["schema"]),
            ("the checksum", checksum, told.get("checksum")),
        ):
            if found != wanted:
                said.append(f"{name}: {what}, {found} in place of {wanted}")
                break
    return said


def read_truth(spark: SparkSession, settings: Settings, pairs: DataFrame) -> DataFrame:
    """The true pairs as `id_a` < `id_b`, each once, and `similarity` where they have one.

    Args:
        spark, settings: truth and truth_similarity are used.
        pairs: what they are to be held against; their ids must be of the same type.

    Raises:
        InputError: a path is missing or unreadable, a column is missing, ids are of another type, a similarity is not
            from 0 to 1, or a pair comes twice.
    """
    frame = read_files(
        spark.read.format("parquet").load, [as_literal_glob(path) for path, _ in _truth_paths(settings)], "parquet"
    )
    types = dict(frame.dtypes)
    wanted = dict(pairs.dtypes)
    for name in ("id_a", "id_b"):
        if types.get(name) != wanted[name]:
            raise InputError(
                f"column {name!r} of the truth is {types.get(name, 'missing')}, and that of the result {wanted[name]}; the true "
                "pairs must have columns id_a and id_b of the result's type"
            )
    chosen = settings.truth_similarity
    if chosen not in types and chosen != Settings.truth_similarity:
        raise InputError(f"the truth has no column {chosen!r}, but {sorted(types)}; name the right one with --truth-similarity")
    similarity = [column(chosen).cast("double").alias("similarity")] if chosen in types else []
    if similarity:
        value = F.col("similarity")
        odd = frame.select(*similarity).where(value.isNull() | F.isnan(value) | ~value.between(0, 1))
        number = odd.count()
        if number:
            raise InputError(
                f"the truth has {number:,} pairs whose {chosen!r} is null, NaN or not from 0 to 1; mend or drop them, or name "
                "another column with --truth-similarity"
            )
    ends = F.least("id_a", "id_b").alias("id_a"), F.greatest("id_a", "id_b").alias("id_b")
    true = frame.select(*ends, *similarity)
    twice = true.groupBy("id_a", "id_b").count().where(F.col("count") > 1).limit(1).collect()
    if twice:
        raise InputError(f"the truth has the pair of {twice[0]['id_a']!r} and {twice[0]['id_b']!r} more than once; name it once")
    return true


def documents_of_truth(spark: SparkSession, settings: Settings) -> DataFrame | None:
    """The documents that all true pairs are known of: `id`; None where the truth does not say.

    Raises:
        InputError: the truth is that of a run which left out pairs that the settings call true, or of several runs.
    """
    paths = _truth_paths(settings)
    run = paths[0][1]
    if len(paths) > 1 and any(run for _, run in paths):
        raise InputError(
            f"the truth is that of {len(paths)} runs, and which documents of two of them are similar is not known; give one"
        )
    if run is None:
        return None
    least = read_manifest(run)["settings"]["min-similarity"]
    asked = min(settings.recall_similarity, settings.precision_similarity)
    if least > asked:
        raise InputError(
            f"the truth {run!r} has only pairs of similarity {least} or more, and those of {asked} or more are asked for; "
            f"make it with --min-similarity {asked}, or raise --recall-similarity and --precision-similarity"
        )
    return read_files(spark.read.format("parquet").load, [as_literal_glob(table_path(run, "compared"))], "parquet")


def _truth_paths(settings: Settings) -> list[tuple[str, str | None]]:
    """Where the true pairs are, and the run that found them, if one did."""
    paths: list[tuple[str, str | None]] = []
    for given in settings.truth:
        for path in (expand if local_path(given) else expand_remote)(given):
            is_run = path_is_directory(path) and MANIFEST in (names_in(path) or [])
            paths.append((table_path(path, "truth"), path) if is_run else (path, None))
    return paths


def _settings_ids(files: list[str]) -> list[tuple[str | None, str]]:
    """The settings that the column `fingerprint` of each Parquet file was made with, and the file; None where it does not say."""

    def settings_id(file: str) -> str | None:
        try:
            written = read_parquet_schema(file).metadata or {}
        except (ArrowException, OSError) as error:
            raise InputError(f"the input {file!r} cannot be read as Parquet files: {error}; mend it or leave it out") from None
        schema = json.loads(written.get(_SCHEMA_OF_SPARK, "{}"))
        made = (
            field.get("metadata", {}).get(SETTINGS_KEY) for field in schema.get("fields", []) if field["name"] == "fingerprint"
        )
        return next(made, None)

    with ThreadPoolExecutor(_FOOTERS_AT_ONCE) as pool:
        return list(zip(pool.map(settings_id, files), files, strict=True))
