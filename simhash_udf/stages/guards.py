"""What ends a run before it does harm: ids that name no document or several, too many pairs, too many documents dropped."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.plan import SearchPlan
from simhash_udf.errors import InputError, TooManyPairs, TooManyRemoved
from simhash_udf.settings import Settings
from simhash_udf.stages.pairs import count_pairs
from simhash_udf.stages.search import count_near_pairs

UNGUARDED_PAIRS = 10_000_000  # pairs of fingerprints that may be written before the pairs of documents are counted


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


def check_expected_pairs(groups: DataFrame, nodes: DataFrame, plan: SearchPlan, settings: Settings) -> None:
    """Raise TooManyPairs before the search writes any pair, if it would find too many.

    They are counted exactly where the plan expects about so many; copies of documents can only make more of them, and groups and
    a check of texts only fewer.
    """
    if 2 * plan.near_pairs > max(settings.max_pairs, UNGUARDED_PAIRS):
        near = count_near_pairs(groups, plan.max_distance, plan=plan)
        if settings.within:
            check_number_of_pairs(near, settings, "fingerprints, of whatever group, make")
        else:
            check_number_of_pairs(count_pairs(nodes).unionByName(near), settings, "the documents make at least")


def check_number_of_pairs(counted: DataFrame, settings: Settings, what: str = "the documents make") -> None:
    """Raise TooManyPairs where there are more pairs than the settings allow.

    Args:
        counted: `distance`, `pairs`: how many pairs there are.
        what: what makes these pairs, for the message.
    """
    rows = counted.groupBy("distance").agg(F.sum("pairs").alias("pairs")).collect()
    total = sum(int(row["pairs"]) for row in rows)
    if total > settings.max_pairs:
        by_distance = ", ".join(f"{int(row['pairs']):,} at distance {row['distance']}" for row in sorted(rows))
        spanning = "--pairs spanning, which gives the same clusters with few pairs"
        if settings.needs_all_pairs:
            spanning += f" (without {', '.join(settings.needs_all_pairs)}, for which all pairs must be searched)"
        raise TooManyPairs(
            f"{what} {total:,} pairs ({by_distance}), more than max-pairs, {settings.max_pairs:,}; use {spanning}, or a larger "
            "--max-pairs, or a smaller --max-distance"
        )


def check_removed(decided: DataFrame, most: float) -> None:
    """Raise TooManyRemoved where a larger share of the documents than `most` would be dropped."""
    rows = decided.groupBy("reason", "kept").count().collect()
    documents, dropped = sum(row["count"] for row in rows), sum(row["count"] for row in rows if not row["kept"])
    # Dividing rounds as the share that was given did; most * documents may round below a whole number.
    if dropped / documents > most:
        reasons = ", ".join(f"{row['count']:,} {row['reason']}" for row in sorted(rows) if not row["kept"])
        raise TooManyRemoved(
            f"{dropped:,} of {documents:,} documents would be dropped ({reasons}), {dropped / documents:.1%}, more than "
            f"max-removed, {most:.1%}; nothing is published. If that is right, say so with a larger --max-removed; else lower "
            "--max-distance, set --max-radius against chains, or ask for a check of the texts with --verify"
        )
