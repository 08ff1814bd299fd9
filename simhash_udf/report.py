"""What a run found, in figures: the content of report.json."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.plan import SearchPlan
from simhash_udf.errors import IncompleteResult
from simhash_udf.pipeline import NearDuplicates
from simhash_udf.stages.decisions import IN_REFERENCE
from simhash_udf.stages.pairs import histogram

LARGEST_CLUSTERS = 20
MOST_SOURCES = 20
_ALONE = ("unique", "no features")
_STAYING = (*_ALONE, "keeper")
_WITHOUT_CLUSTER = (*_ALONE, IN_REFERENCE)


def fingerprint_figures(fingerprints: DataFrame) -> dict[str, int]:
    """Counts of documents, of those without features, and of distinct fingerprints."""
    row = fingerprints.agg(
        F.count("*").alias("documents"),
        F.count_if(F.col("fingerprint").isNull()).alias("without_features"),
        F.count_distinct("fingerprint").alias("distinct_fingerprints"),
        *(F.count_if(name).alias(name) for name in ("low_information", "cut") if name in fingerprints.columns),
    ).first()
    return row.asDict() if row else {}


def contradictions(fingerprints: DataFrame, clusters: DataFrame, decisions: DataFrame) -> dict[str, int]:
    """What in the tables contradicts itself, and how often; one pass by id, one by cluster.

    Of a result that is right every count is 0: each document is in one row of `fingerprints` and of `decisions`, in at most one
    of `clusters`, and in the same cluster in both; each cluster keeps one document, which all documents in it name; and reasons
    agree with both.
    """
    by_table = [
        table.select("id", cluster.alias("cluster"), F.lit(name).alias("table"))
        for name, table, cluster in (
            ("fingerprints", fingerprints, F.lit(None)),
            ("clusters", clusters, F.col("cluster")),
            ("decisions", decisions, F.col("cluster")),
        )
    ]
    ids = by_table[1].unionByName(by_table[2]).unionByName(by_table[0])
    number = {table: F.count_if(F.col("table") == table) for table in ("fingerprints", "clusters", "decisions")}
    by_id = ids.groupBy("id").agg(
        ((number["fingerprints"] != 1) | (number["decisions"] != 1) | (number["clusters"] > 1)).alias("uneven"),
        # As many clusters as rows of the table `clusters` and as decisions with one: none or one of each, and the same.
        ((F.count("cluster") != 2 * number["clusters"]) | ~F.min("cluster").eqNullSafe(F.max("cluster"))).alias("moved"),
    )
    is_keeper = F.col("id").eqNullSafe(F.col("keeper"))
    by_cluster = (
        decisions.where(F.col("cluster").isNotNull())
        .groupBy("cluster")
        .agg(
            (
                (F.count_if("kept") != 1)
                | (F.count_if(F.col("kept") & is_keeper) != 1)
                | (F.count("keeper") != F.count("*"))
                | (F.min("keeper") != F.max("keeper"))
            ).alias("torn")
        )
    )
    stays, alone = F.col("reason").isin(*_STAYING), F.col("reason").isin(*_WITHOUT_CLUSTER)
    unreasoned = (F.col("kept") != stays) | (F.col("cluster").isNull() != alone)
    counted = by_id.agg(F.count_if("uneven"), F.count_if("moved")).first()
    torn = by_cluster.where("torn").count()
    uneven, moved = tuple(counted) if counted else (0, 0)
    return {
        "documents without exactly one row in fingerprints and in decisions, or with several in clusters": uneven,
        "documents whose cluster is not the same in clusters and in decisions": moved,
        "clusters without exactly one kept document that all documents in it name as their keeper": torn,
        "documents kept, dropped or in a cluster against their reason": decisions.where(
            F.coalesce(unreasoned, F.lit(True))
        ).count(),
    }


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


def source_figures(sources: DataFrame) -> dict[str, Any]:
    """How many sources there are, and those that lost the largest share of their documents; the table `sources` has all."""
    share = F.col("dropped") / F.col("documents")
    worst = sources.orderBy(share.desc(), F.col("documents").desc(), "source").limit(MOST_SOURCES).collect()
    return {
        "number": sources.count(),
        "largest_shares_dropped": [
            {**row.asDict(), "dropped_share": round(row["dropped"] / row["documents"], 6)} for row in worst
        ],
    }


def report(found: NearDuplicates, rejected: int, kept: int, skipped: dict[str, int] | None = None) -> dict[str, Any]:
    """Counts at every stage, the histogram of distances and the largest clusters.

    Args:
        found: the tables, written and read back.
        rejected: records that were no documents.
        kept: rows of the table `kept`.
        skipped: how many records of archives were no pages, by why.

    Raises:
        IncompleteResult: counts or rows contradict each other, so a document was lost, or counted or decided twice.
    """
    documents = fingerprint_figures(found.fingerprints)
    reasons = {row["reason"]: row["count"] for row in found.decisions.groupBy("reason").count().collect()}
    clustered = found.clusters.groupBy("cluster").agg(F.max("size").alias("size"), F.count("*").alias("members"))
    largest = clustered.orderBy(F.col("size").desc(), "cluster").limit(LARGEST_CLUSTERS).collect()
    summary = clustered.agg(
        F.count("*"), F.count_if(F.col("size") != F.col("members")), F.sum("members"), F.count_if(F.col("members") == 1)
    ).first()
    clusters, unequal, members, single = tuple(summary) if summary else (0, 0, 0, 0)
    staying = sum(reasons.get(reason, 0) for reason in _STAYING)
    checks = {
        "decisions and documents": (sum(reasons.values()), documents["documents"]),
        "keepers and clusters": (reasons.get("keeper", 0), clusters),
        "kept rows and documents decided to be kept": (kept, staying),
    }
    said = [f"{what} differ, {one:,} and {other:,}" for what, (one, other) in checks.items() if one != other]
    broken = {
        "clusters of another size than their members": unequal,
        **contradictions(found.fingerprints, found.clusters, found.decisions),
    }
    said += [f"there are {number:,} {what}" for what, number in broken.items() if number]
    if said:
        raise IncompleteResult(
            f"the result contradicts itself: {'; '.join(said)}. The input changed while the job read it, or its rows are not the "
            "same at each reading: run again on files that stay as they are"
        )
    return {
        "documents": {**documents, "rejected": rejected, "skipped": skipped or {}},
        "search": plan_figures(found.plan),
        "pairs_by_distance": histogram(found.pairs),
        "clusters": {"number": clusters, "documents": members or 0, "of_one_document": single},
        "decisions": {reason: reasons[reason] for reason in sorted(reasons)},
        "kept": kept,
        "dropped": documents["documents"] - staying,
        "dropped_share": round(1 - staying / documents["documents"], 6),
        **found.counts,
        **({} if found.sources is None else {"sources": source_figures(found.sources)}),
        "largest_clusters": [{"cluster": row["cluster"], "size": row["size"]} for row in largest],
    }
