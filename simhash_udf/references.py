"""Reading references: what earlier runs fingerprinted, or documents in the form of the input."""

from __future__ import annotations

import dataclasses
from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.inputs import is_result
from simhash_udf.pipeline import apart
from simhash_udf.results import read_fingerprints_of_run
from simhash_udf.run import Run
from simhash_udf.settings import Settings
from simhash_udf.sources import read_documents
from simhash_udf.stages.documents import check_columns, check_no_rejects, documents, rejects, usable_rows
from simhash_udf.stages.fingerprints import fingerprints, settings_id_of
from simhash_udf.stages.references import REFERENCE_COLUMNS
from simhash_udf.store.manifest import is_store
from simhash_udf.store.views import Store


def read_references(spark: SparkSession, settings: Settings, run: Run) -> DataFrame | None:
    """The documents of all references, as `near_references` takes them; None where the settings name no reference.

    A result or a store is read as it was written, any other reference as the input is. Its records must all be
    documents, whatever is to happen to bad ones of the input: of a part of a reference nobody would know what it let pass.

    Raises:
        InputError: a reference is missing or unreadable, has a record that is no document, or was fingerprinted by
            other settings.
    """
    tables = []
    for at, path in enumerate(settings.reference):
        if is_result(path) or is_store(path):
            view = Store(spark, path) if is_store(path) else None
            made = view.fingerprints() if view else read_fingerprints_of_run(spark, path)
            made_with = view.manifest.settings_id if view else settings_id_of(made)
            if made_with != settings.fingerprint_id:
                raise InputError(
                    f"the reference {path!r} has fingerprints of {made_with or 'settings that it does not tell'}, and those of "
                    f"the input are to be {settings.fingerprint_id}; give its documents, or run with its settings"
                )
        else:
            made = run.store(f"reference_{at}", _fingerprints_of_documents(spark, settings, path, at, run))
        tables.append(made.withColumn("reference", F.lit(path)).withColumn("reference_id", F.col("id").cast("string")))
    return reduce(DataFrame.unionByName, [table.select(*REFERENCE_COLUMNS) for table in tables]) if tables else None


def _fingerprints_of_documents(spark: SparkSession, settings: Settings, path: str, at: int, run: Run) -> DataFrame:
    alone = dataclasses.replace(
        settings, input=(path,), reference=(), labels=(), source_column="", within="", keep=Settings.keep, verify="none"
    )
    rows = read_documents(spark, alone, *apart(f"reference_{at}", run.store, run.discard)).rows
    check_columns(rows, alone)
    check_no_rejects(rejects(rows, alone))
    return fingerprints(documents(usable_rows(rows, alone), alone), alone)
