"""Fingerprints of documents and of references -> which documents are near a reference, such as a set to evaluate models on.

Equal fingerprints meet in a join, all others in a search between the two sides, in which neither is compared with itself.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.settings import Settings
from simhash_udf.stages.components import Store
from simhash_udf.stages.search import search_between

REFERENCE_COLUMNS = ("reference", "reference_id", "fingerprint", "features", "content")


def near_references(fingerprints: DataFrame, references: DataFrame, settings: Settings, store: Store) -> DataFrame:
    """The nearest reference of each document that is near one: `id`, `reference`, `reference_id`, `reference_distance` INT.

    Of several at one distance it is the first by name and id. Documents and references of too few features are near those alone
    that have the same units in the same order.

    Args:
        fingerprints: the table `fingerprints`.
        references: `REFERENCE_COLUMNS`: the name of the reference, the id in it, and what the table `fingerprints` has.
        settings: max_distance and min_features are used; groups and a check of texts tell no reference apart.
        store: called with a name and a table; gives the table back with its lineage cut.
    """
    enough = F.col("features") >= settings.min_features
    documents = fingerprints.where(F.col("fingerprint").isNotNull()).select("id", "fingerprint", "features", "content")
    held = references.where(F.col("fingerprint").isNotNull())
    # One of each fingerprint is enough: the first by name and id.
    first = F.min(F.struct("reference", "reference_id")).alias("first")
    by_fingerprint = store("reference_fingerprints", held.where(enough).groupBy("fingerprint").agg(first))
    known = by_fingerprint.select("fingerprint")
    equal = documents.where(enough).join(by_fingerprint, "fingerprint", "inner").select("id", "first", F.lit(0).alias("distance"))
    others = documents.where(enough).select("fingerprint").distinct().join(known, "fingerprint", "left_anti")
    between = store("reference_pairs", search_between(store("searched_for_references", others), known, settings.max_distance))
    # No fingerprint is on both sides, so that one of the two ways round alone meets documents and references.
    ends = F.col("fingerprint_a"), F.col("fingerprint_b")
    ways = [between.select(one.alias("fingerprint"), other.alias("near"), "distance") for one, other in (ends, reversed(ends))]
    near = (
        documents.where(enough)
        .join(ways[0].unionAll(ways[1]), "fingerprint", "inner")
        .join(by_fingerprint.withColumnRenamed("fingerprint", "near"), "near", "inner")
        .select("id", "first", "distance")
    )
    found = equal.unionAll(near)
    if settings.min_features:
        same = held.where(~enough).groupBy("fingerprint", "content").agg(first)
        few = documents.where(~enough).join(same, ["fingerprint", "content"], "inner")
        found = found.unionAll(few.select("id", "first", F.lit(0).alias("distance")))
    nearest = found.groupBy("id").agg(F.min(F.struct("distance", "first")).alias("nearest"))
    return nearest.select(
        "id", "nearest.first.reference", "nearest.first.reference_id", F.col("nearest.distance").alias("reference_distance")
    )
