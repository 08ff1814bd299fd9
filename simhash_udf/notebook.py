"""The whole flow in one call, for a notebook."""

from __future__ import annotations

from pyspark.sql import DataFrame

from simhash_udf.pipeline import NearDuplicates, deduplicate
from simhash_udf.settings import Settings
from simhash_udf.stages.documents import check_columns, check_no_rejects, rejects


def near_duplicates(
    corpus: DataFrame,
    *,
    id: str = "id",
    text: str = "text",
    features: str = "",
    max_distance: int = Settings.max_distance,
    fingerprint: str = Settings.fingerprint,
    unit: str = Settings.unit,
    ngram: int = Settings.ngram,
    weighting: str = Settings.weighting,
    pairs: str = Settings.pairs,
    max_pairs: int = Settings.max_pairs,
    keep: str = Settings.keep,
    within: str = Settings.within,
    min_features: int = Settings.min_features,
    verify: str = Settings.verify,
    min_similarity: float = Settings.min_similarity,
    verify_unit: str = Settings.verify_unit,
    verify_ngram: int = Settings.verify_ngram,
    max_radius: int = Settings.max_radius,
    also_at: str = Settings.also_at,
    source_column: str = Settings.source_column,
    max_removed: float = Settings.max_removed,
) -> NearDuplicates:
    """Find the near-duplicates of a DataFrame, for a notebook: one call, six DataFrames.

    Args:
        corpus: one row a document; columns beside id and text are carried into `kept`.
        id, text, features: names of the columns; `features`, where given, takes the place of `text`.
        max_distance and the others: as the flags of jobs/dedup.py.

    Raises:
        SettingsError, InputError, TooManyPairs, TooManyRemoved: as their names say; nothing is dropped quietly.

    The corpus is evaluated once, and held with all its columns by `DataFrame.localCheckpoint` on the executors (in memory, or on
    their disks where that is short), so that all six are of the same rows, even where ids come from a function that gives others
    at each evaluation. So are the tables, which are computed at once; `kept` is taken from the held corpus when it is used.
    Select the columns that you need before, and take jobs/dedup.py for a corpus that the executors cannot hold.
    Use it as ``near_duplicates(df, id="url", text="body", max_distance=8).kept``.
    """
    settings = Settings(
        id_column=id,
        text_column=text,
        features_column=features,
        max_distance=max_distance,
        fingerprint=fingerprint,
        unit=unit,
        ngram=ngram,
        weighting=weighting,
        pairs=pairs,
        max_pairs=max_pairs,
        keep=keep,
        within=within,
        min_features=min_features,
        verify=verify,
        min_similarity=min_similarity,
        verify_unit=verify_unit,
        verify_ngram=verify_ngram,
        max_radius=max_radius,
        also_at=also_at,
        source_column=source_column,
        max_removed=max_removed,
    )
    check_columns(corpus, settings)
    held = corpus.localCheckpoint()
    check_no_rejects(rejects(held, settings))

    def store(name: str, table: DataFrame) -> DataFrame:
        return table if name == "kept" else table.localCheckpoint()

    return deduplicate(held, settings, store)
