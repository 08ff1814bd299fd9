"""What a run found, in figures: the content of report.json."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.plan import SearchPlan
from simhash_udf.errors import IncompleteResult
from simhash_udf.pipeline import NearDuplicates

LARGEST_CLUSTERS = 20


def fingerprint_figures(fingerprints: DataFrame) -> dict[str, int]:
    """Counts of documents, of those without features, and of distinct fingerprints."""
    row = fingerprints.agg(
        F.count("*").alias("documents"),
        F.count_if(F.col("fingerprint").isNull()).alias("without_features"),
        F.count_distinct("fingerprint").alias("distinct_fingerprints"),
    ).first()
    return row.asDict() if row else {}


def distance_histogram(pairs: DataFrame) -> dict[str, int]:
    """Number of pairs by Hamming distance."""
    rows = pairs.groupBy("distance").count().orderBy("distance").collect()
    return {str(row["distance"]): row["count"] for row in rows}


def plan_figures(plan: SearchPlan) -> dict[str, Any]:
    """How the search was planned and what it was expected to cost."""
    return {
        "distinct_fingerprints": plan.rows,
        "band_widths": [band.width for band in plan.bands],
        "tasks": plan.tasks,
        "rows_shuffled": plan.rows_shuffled,
        "bytes_shuffled": plan.bytes_shuffled,
        "bytes_a_task": plan.task_bytes,
        "comparisons_expected": round(plan.comparisons),
        "pairs_expected": round(plan.near_pairs),
        "chance_pairs_expected": plan.chance_pairs,
        "hot_chunks": [
            {"band": chunk.band, "chunk": chunk.chunk, "rows_expected": chunk.rows, "fingerprints": list(chunk.examples)}
            for chunk in plan.hot_chunks
        ],
    }


def report(found: NearDuplicates, rejected: int, kept: int) -> dict[str, Any]:
    """Counts at every stage, the histogram of distances and the largest clusters.

    Args:
        found: the tables, written and read back.
        rejected: records that were no documents.
        kept: rows of the table `kept`.

    Raises:
        IncompleteResult: the counts contradict each other, so a document was lost or counted twice.
    """
    documents = fingerprint_figures(found.fingerprints)
    reasons = {row["reason"]: row["count"] for row in found.decisions.groupBy("reason").count().collect()}
    clustered = found.clusters.groupBy("cluster").agg(F.max("size").alias("size"), F.count("*").alias("members"))
    largest = clustered.orderBy(F.col("size").desc(), "cluster").limit(LARGEST_CLUSTERS).collect()
    summary = clustered.agg(F.count("*"), F.count_if(F.col("size") != F.col("members")), F.sum("members")).first()
    clusters, unequal, members = tuple(summary) if summary else (0, 0, 0)
    staying = sum(reasons.get(reason, 0) for reason in ("unique", "no features", "keeper"))
    checks = {
        "decisions and documents": (sum(reasons.values()), documents["documents"]),
        "keepers and clusters": (reasons.get("keeper", 0), clusters),
        "kept rows and documents decided to be kept": (kept, staying),
        "clusters of another size than their members": (unequal, 0),
    }
    for what, (one, other) in checks.items():
        if one != other:
            raise IncompleteResult(
                f"{what} differ: {one:,} and {other:,}; the input changed while the job read it, or its rows are not the same at "
                "each reading: run again on files that stay as they are"
            )
    return {
        "documents": {**documents, "rejected": rejected},
        "search": plan_figures(found.plan),
        "pairs_by_distance": distance_histogram(found.pairs),
        "clusters": {"number": clusters, "documents": members or 0},
        "decisions": {reason: reasons[reason] for reason in sorted(reasons)},
        "kept": kept,
        "dropped": documents["documents"] - staying,
        "largest_clusters": [{"cluster": row["cluster"], "size": row["size"]} for row in largest],
    }
