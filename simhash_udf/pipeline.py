"""The flow on one page: documents -> fingerprints -> pairs -> clusters -> decisions -> kept documents.

No session, no reading and no writing here: `store` is called with each finished table and gives it back in a form whose
lineage is cut (a written table, or a checkpoint), so that no stage runs twice. `discard` is called with the name of a table
between stages once it is not needed any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.plan import Sample, SearchPlan, plan_search
from simhash_udf.errors import InputError, TooManyPairs
from simhash_udf.settings import Settings
from simhash_udf.stages.clusters import clusters
from simhash_udf.stages.components import Discard, Store
from simhash_udf.stages.decisions import decisions, kept
from simhash_udf.stages.documents import check_columns, check_no_rejects, documents, rejects, usable_rows
from simhash_udf.stages.fingerprints import fingerprints
from simhash_udf.stages.pairs import count_pairs, identical_groups, pairs, with_sizes
from simhash_udf.stages.sample import sample
from simhash_udf.stages.search import count_near_pairs, search

OnPlan = Callable[[SearchPlan, DataFrame], None]

SAMPLED_DOCUMENTS = 1 << 16
UNGUARDED_PAIRS = 10_000_000  # pairs of fingerprints that may be written before the pairs of documents are counted


@dataclass(frozen=True)
class NearDuplicates:
    """What was found in a corpus; each field but `plan` is a DataFrame in the schema of `simhash_udf.tables`.

    `kept` has the columns of the corpus; `plan` is how the search was to run.
    """

    fingerprints: DataFrame
    fingerprint_pairs: DataFrame
    pairs: DataFrame
    clusters: DataFrame
    decisions: DataFrame
    kept: DataFrame
    plan: SearchPlan


def no_watch(_plan: SearchPlan, _fingerprints: DataFrame) -> None:
    """Nobody looks at the plan before the search runs."""


def keep(name: str) -> None:
    """Discard nothing."""


def deduplicate(
    source: DataFrame, settings: Settings, store: Store, on_plan: OnPlan = no_watch, *, discard: Discard = keep
) -> NearDuplicates:
    """Find the near-duplicates of a corpus and decide which documents stay.

    Raises:
        InputError: a column cannot serve, there is no document, or two documents have one id.
        TooManyPairs: more pairs than `settings.max_pairs`.
        NotConverged: the graph of the pairs is larger than the rounds of clustering could make small enough.
    """
    made = fingerprint_documents(source, settings, store)
    plan, found, paired = find_pairs(made, settings, store, on_plan)
    clustered = store("clusters", clusters(made, found, store, discard))
    decided = store("decisions", decisions(made, clustered, settings.max_distance))
    staying = store("kept", kept(usable_rows(source, settings), decided, settings.id_column))
    return NearDuplicates(made, found, paired, clustered, decided, staying, plan)


def fingerprint_documents(source: DataFrame, settings: Settings, store: Store) -> DataFrame:
    """The table `fingerprints` of a corpus, each id once."""
    made = store("fingerprints", fingerprints(documents(source, settings), settings))
    check_ids(made, settings.id_column)
    return made


def find_pairs(
    made: DataFrame, settings: Settings, store: Store, on_plan: OnPlan = no_watch
) -> tuple[SearchPlan, DataFrame, DataFrame]:
    """How the search was planned, pairs of fingerprints, and the table `pairs` of documents.

    `on_plan` is called with the plan and the table `fingerprints` before the search.
    """
    spanning = settings.pairs == "spanning"
    groups = store("groups", identical_groups(made))
    plan = plan_of(groups, settings)
    on_plan(plan, made)
    if not spanning:
        check_expected_pairs(groups, plan, settings.max_pairs)
    near = search(groups, settings.max_distance, spanning=spanning, plan=plan)
    found = store("fingerprint_pairs", with_sizes(near, groups))
    if not spanning:
        check_number_of_pairs(count_pairs(groups, found), settings.max_pairs)
    return plan, found, store("pairs", pairs(made, found, spanning=spanning))


def plan_of(fingerprints: DataFrame, settings: Settings) -> SearchPlan:
    """How the search of the fingerprints of a table will run, by a sample of them."""
    taken = sample(fingerprints, settings.max_distance)
    return plan_search(taken.rows, settings.max_distance, sample=taken, spanning=settings.pairs == "spanning")


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


def plan_of_corpus(source: DataFrame, settings: Settings) -> tuple[SearchPlan, DataFrame]:
    """How the search of a corpus would run, from about 65,000 of its documents, and their table `fingerprints`.

    Which documents these are depends on their ids alone. Copies are rarer among them than in the whole corpus, so the number of
    distinct fingerprints is an upper bound.
    """
    every = documents(source, settings)
    number = every.count()
    some = every
    if number > SAMPLED_DOCUMENTS:
        some = every.where(F.xxhash64("id") < F.lit(round(SAMPLED_DOCUMENTS / number * 2**64) - 2**63))
    made = fingerprints(some, settings).localCheckpoint()
    taken = sample(made, settings.max_distance)
    growth = number / max(1, made.count())
    rows = round(taken.rows * growth)
    whole = Sample(rows, taken.fingerprints, taken.near_pairs * growth**2)
    return plan_search(rows, settings.max_distance, sample=whole, spanning=settings.pairs == "spanning"), made


def check_expected_pairs(groups: DataFrame, plan: SearchPlan, limit: int) -> None:
    """Raise TooManyPairs before the search writes any pair, if it would find too many.

    They are counted exactly where the plan expects about so many; copies of documents can only make more of them.
    """
    if 2 * plan.near_pairs > max(limit, UNGUARDED_PAIRS):
        near = count_near_pairs(groups, plan.max_distance, plan=plan)
        check_number_of_pairs(count_pairs(groups).unionByName(near), limit, "at least ")


def check_number_of_pairs(counted: DataFrame, limit: int, least: str = "") -> None:
    """Raise TooManyPairs where there are more pairs than the limit.

    Args:
        counted: `distance`, `pairs`: how many pairs there are.
        limit: the most pairs that are written.
        least: "at least " where documents with copies make more pairs than were counted.
    """
    rows = counted.collect()
    total = sum(int(row["pairs"]) for row in rows)
    if total > limit:
        by_distance = ", ".join(f"{int(row['pairs']):,} at distance {row['distance']}" for row in sorted(rows))
        raise TooManyPairs(
            f"the documents make {least}{total:,} pairs ({by_distance}), more than max-pairs, {limit:,}; use --pairs spanning, "
            "which gives the same clusters with few pairs, or a larger --max-pairs, or a smaller --max-distance"
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
