"""Pairs and a truth -> how right the pairs are, at each distance, pair by pair and cluster by cluster."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.stages.components import Discard, Store, connected_components
from simhash_udf.stages.numbers import numbered


@dataclass(frozen=True)
class Quality:
    """How right the pairs within a distance are.

    distance: the largest distance of a pair that counts as found.
    found: pairs within it.
    right: those of them that the truth has at the similarity for precision.
    wanted, missed: pairs that the truth has at the similarity for recall, and those of them that were not found.
    precision, recall, f1: right / found, 1 - missed / wanted, and their harmonic mean; 1 where there was nothing to find.
    dropped: documents that are not the one kept of their cluster.
    dropped_wrongly: how many more documents should have been kept of these clusters: one for each true cluster in it beyond one.
    not_dropped: how many more should have been dropped: one for each cluster that a true cluster lies in beyond one.
    """

    distance: int
    found: int
    right: int
    wanted: int
    missed: int
    precision: float
    recall: float
    f1: float
    dropped: int
    dropped_wrongly: int
    not_dropped: int

    def as_dict(self) -> dict[str, Any]:
        """By name, as JSON types."""
        return asdict(self)


def evaluation(
    pairs: DataFrame,
    truth: DataFrame,
    store: Store,
    discard: Discard,
    *,
    max_distance: int,
    recall_similarity: float,
    precision_similarity: float,
) -> list[Quality]:
    """The quality of the pairs at each distance from 0 to `max_distance`.

    Args:
        pairs: `id_a`, `id_b`, `distance`, each pair once.
        truth: `id_a`, `id_b`, in the same order, each pair once, and maybe `similarity`; without it all pairs are true.
        store, discard: as in `connected_components`.
        max_distance: that of the search.
        recall_similarity: pairs of at least this similarity must be found.
        precision_similarity: pairs of at least this similarity may be found. True clusters are joined by these.
    """
    similarity = F.col("similarity") if "similarity" in truth.columns else F.lit(1.0)
    known = truth.select("id_a", "id_b", similarity.alias("similarity"))
    joined = pairs.select("id_a", "id_b", "distance").join(known, ["id_a", "id_b"], "full")
    counted = joined.groupBy("distance").agg(
        F.count("*").alias("rows"),
        F.count_if(F.col("similarity") >= precision_similarity).alias("right"),
        F.count_if(F.col("similarity") >= recall_similarity).alias("wanted"),
    )
    by_distance = {row["distance"]: (row["rows"], row["right"], row["wanted"]) for row in counted.collect()}
    wanted = sum(row[2] for row in by_distance.values())
    allowed = known.where(F.col("similarity") >= precision_similarity)
    ids = pairs.select(F.col("id_a").alias("id")).union(pairs.select("id_b")).union(allowed.select("id_a"))
    ids = ids.union(allowed.select("id_b")).distinct()
    documents = numbered(ids, ["id"], store, "evaluated")
    true = store("true_clusters", _clusters(allowed, documents, store, discard, "true"))
    made: list[Quality] = []
    found = right = reached = 0
    for distance in range(max_distance + 1):
        rows = by_distance.get(distance, (0, 0, 0))
        found, right, reached = found + rows[0], right + rows[1], reached + rows[2]
        precision = right / found if found else 1.0
        recall = reached / wanted if wanted else 1.0
        near = pairs.where(F.col("distance") <= distance)
        clustered = _clusters(near, documents, store, discard, f"at_{distance}")
        both = clustered.withColumnRenamed("component", "found").join(
            true.withColumnRenamed("component", "true"), "node", "inner"
        )
        row = both.agg(
            F.count("*"), F.count_distinct("found"), F.count_distinct("true"), F.count_distinct("found", "true")
        ).first()
        members, clusters, true_clusters, parts = tuple(row) if row else (0, 0, 0, 0)
        made.append(
            Quality(
                distance=distance,
                found=found,
                right=right,
                wanted=wanted,
                missed=wanted - reached,
                precision=precision,
                recall=recall,
                f1=2 * precision * recall / (precision + recall) if precision + recall else 0.0,
                dropped=members - clusters,
                dropped_wrongly=parts - clusters,
                not_dropped=parts - true_clusters,
            )
        )
    return made


def pairs_among(pairs: DataFrame, documents: DataFrame) -> DataFrame:
    """Those pairs of which both documents are among these.

    Args:
        pairs: `id_a`, `id_b` and others.
        documents: `id`, each once.
    """
    among = pairs
    for end in ("id_a", "id_b"):
        among = among.join(documents.select(F.col("id").alias(end)), end, "left_semi")
    return among.select(*pairs.columns)


def _clusters(pairs: DataFrame, documents: DataFrame, store: Store, discard: Discard, name: str) -> DataFrame:
    """`node`, `component` of all documents documents."""
    a = documents.select(F.col("id").alias("id_a"), F.col("node").alias("node_a"))
    b = documents.select(F.col("id").alias("id_b"), F.col("node").alias("node_b"))
    edges = pairs.select("id_a", "id_b").join(a, "id_a", "inner").join(b, "id_b", "inner").select("node_a", "node_b")

    def keep(table: str, frame: DataFrame) -> DataFrame:
        return store(f"{name}_{table}", frame)

    components = connected_components(edges, keep, lambda table: discard(f"{name}_{table}"))
    return (
        documents.select("node")
        .join(components, "node", "left")
        .select("node", F.coalesce("component", "node").alias("component"))
    )


def as_table(qualities: list[Quality]) -> str:
    """The qualities as lines of text, one for each distance.

    >>> as_table([Quality(3, 10, 9, 12, 3, 0.9, 0.75, 0.8182, 8, 1, 2)]).splitlines()[1].split()
    ['3', '10', '0.9000', '0.7500', '0.8182', '8', '1', '2']
    """
    lines = ["distance      found  precision  recall     f1    dropped    wrongly  not dropped"]
    for quality in qualities:
        lines.append(
            f"{quality.distance:8} {quality.found:10,} {quality.precision:10.4f} {quality.recall:7.4f} {quality.f1:6.4f} "
            f"{quality.dropped:10,} {quality.dropped_wrongly:10,} {quality.not_dropped:12,}"
        )
    return "\n".join(lines)
