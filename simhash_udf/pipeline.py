"""The flow on one page: documents -> fingerprints -> pairs -> clusters -> decisions -> kept documents.

No session, no reading and no writing here: `store` is called with each finished table and gives it back in a form whose
lineage is cut (a written table, or a checkpoint), so that no stage runs twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.errors import InputError, TooManyPairs
from simhash_udf.settings import Settings
from simhash_udf.stages.clusters import clusters
from simhash_udf.stages.decisions import decisions, kept
from simhash_udf.stages.documents import check_columns, check_no_rejects, documents, rejects, usable_rows
from simhash_udf.stages.fingerprints import fingerprints
from simhash_udf.stages.pairs import count_pairs, identical_groups, pairs, with_sizes
from simhash_udf.stages.search import search

Store = Callable[[str, DataFrame], DataFrame]


@dataclass(frozen=True)
class NearDuplicates:
    """What was found in a corpus; each field is a DataFrame in the schema of `simhash_udf.tables`.

    `kept` has the columns of the corpus.
    """

    fingerprints: DataFrame
    fingerprint_pairs: DataFrame
    pairs: DataFrame
    clusters: DataFrame
    decisions: DataFrame
    kept: DataFrame


def deduplicate(source: DataFrame, settings: Settings, store: Store) -> NearDuplicates:
    """Find the near-duplicates of a corpus and decide which documents stay.

    Raises:
        InputError: a column cannot serve, there is no document, or two documents have one id.
        TooManyPairs: more pairs than `settings.max_pairs`.
    """
    made = fingerprint_documents(source, settings, store)
    found, paired = find_pairs(made, settings, store)
    clustered = store("clusters", clusters(made, found))
    decided = store("decisions", decisions(made, clustered, settings.max_distance))
    staying = store("kept", kept(usable_rows(source, settings), decided, settings.id_column))
    return NearDuplicates(made, found, paired, clustered, decided, staying)


def fingerprint_documents(source: DataFrame, settings: Settings, store: Store) -> DataFrame:
    """The table `fingerprints` of a corpus, each id once."""
    made = store("fingerprints", fingerprints(documents(source, settings), settings))
    check_ids(made, settings.id_column)
    return made


def find_pairs(made: DataFrame, settings: Settings, store: Store) -> tuple[DataFrame, DataFrame]:
    """Pairs of fingerprints, and the table `pairs` of documents."""
    spanning = settings.pairs == "spanning"
    groups = store("groups", identical_groups(made))
    found = store("fingerprint_pairs", with_sizes(search(groups, settings.max_distance, spanning=spanning), groups))
    if not spanning:
        check_number_of_pairs(groups, found, settings.max_pairs)
    return found, store("pairs", pairs(made, found, spanning=spanning))


def check_ids(made: DataFrame, id_column: str) -> None:
    """Raise InputError where there is no document, an id is null, or an id names several documents; ten are shown."""
    if made.isEmpty():
        raise InputError("the input has no documents; check the paths given with --input")
    repeated = made.groupBy("id").agg(F.count("*").alias("times")).where(F.col("id").isNull() | (F.col("times") > 1))
    worst = repeated.orderBy(F.col("id").isNotNull(), F.col("times").desc(), "id").limit(10).collect()
    if worst and worst[0]["id"] is None:
        raise InputError(
            f"column {id_column!r} must name each document, but it is null in {worst[0]['times']:,} rows; give them ids, or drop "
            "them, and run again"
        )
    if worst:
        shown = ", ".join(f"{row['id']!r} ({row['times']:,} times)" for row in worst)
        raise InputError(
            f"column {id_column!r} must name each document, but {repeated.count():,} of its values name several, such as "
            f"{shown}; make them distinct, or drop the repeated rows, and run again"
        )


def check_number_of_pairs(groups: DataFrame, found: DataFrame, limit: int) -> None:
    """Raise TooManyPairs where the documents make more pairs than the limit; counted exactly, before any is written."""
    rows = count_pairs(groups, found).collect()
    total = sum(int(row["pairs"]) for row in rows)
    if total > limit:
        by_distance = ", ".join(f"{int(row['pairs']):,} at distance {row['distance']}" for row in sorted(rows))
        raise TooManyPairs(
            f"the documents make {total:,} pairs ({by_distance}), more than max-pairs, {limit:,}; use --pairs spanning, which "
            "gives the same clusters with few pairs, or a larger --max-pairs, or a smaller --max-distance"
        )


def near_duplicates(
    corpus: DataFrame,
    *,
    id: str = "id",
    text: str = "text",
    features: str = "",
    max_distance: int = Settings.max_distance,
    unit: str = Settings.unit,
    ngram: int = Settings.ngram,
    weighting: str = Settings.weighting,
    pairs: str = Settings.pairs,
    max_pairs: int = Settings.max_pairs,
) -> NearDuplicates:
    """Find the near-duplicates of a DataFrame, for a notebook: one call, six DataFrames.

    Args:
        corpus: one row a document; columns beside id and text are carried into `kept`.
        id, text, features: names of the columns; `features`, where given, takes the place of `text`.
        max_distance, unit, ngram, weighting, pairs, max_pairs: as the flags of jobs/dedup.py.

    Raises:
        SettingsError, InputError, TooManyPairs: as their names say; nothing is dropped quietly.

    The corpus is evaluated once, and held with all its columns by `DataFrame.localCheckpoint` on the executors (in memory, or on
    their disks where that is short), so that all six are of the same rows: ids may come from uuid() or
    monotonically_increasing_id(). So are the tables, which are computed at once; `kept` is taken from the held corpus when it is
    used. Select the columns that you need before, and take jobs/dedup.py for a corpus that the executors cannot hold.
    Use it as ``near_duplicates(df, id="url", text="body", max_distance=8).kept``.
    """
    settings = Settings(
        id_column=id,
        text_column=text,
        features_column=features,
        max_distance=max_distance,
        unit=unit,
        ngram=ngram,
        weighting=weighting,
        pairs=pairs,
        max_pairs=max_pairs,
    )
    check_columns(corpus, settings)
    held = corpus.localCheckpoint()
    check_no_rejects(rejects(held, settings))

    def store(name: str, table: DataFrame) -> DataFrame:
        return table if name == "kept" else table.localCheckpoint()

    return deduplicate(held, settings, store)
