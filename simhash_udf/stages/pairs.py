"""Pairs of fingerprints -> pairs of documents.

Documents of equal fingerprints are one row in the search; here its members come back. How many pairs that makes is known
before any is made.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


def pairs(fingerprints: DataFrame, found: DataFrame, *, spanning: bool = False) -> DataFrame:
    """The table `pairs`: `id_a` < `id_b`, `distance` INT, each pair of documents once.

    Args:
        fingerprints: the table `fingerprints`.
        found: `fingerprint_a`, `fingerprint_b`, `distance`, as the search gives them.
        spanning: not every pair, but for each fingerprint its smallest id with each other id, and for each found pair of
            fingerprints their smallest ids: the same clusters, in at most as many rows as documents and found pairs.
    """
    members = fingerprints.where(F.col("fingerprint").isNotNull()).select("fingerprint", "id")
    smallest = members.groupBy("fingerprint").agg(F.min("id").alias("id"))
    firsts = smallest if spanning else members
    left = firsts.select(F.col("fingerprint").alias("fingerprint_a"), F.col("id").alias("left"))
    right = firsts.select(F.col("fingerprint").alias("fingerprint_b"), F.col("id").alias("right"))
    near = found.join(left, "fingerprint_a", "inner").join(right, "fingerprint_b", "inner")
    a = firsts.select("fingerprint", F.col("id").alias("id_a"))
    b = members.select("fingerprint", F.col("id").alias("id_b"))
    equal = a.join(b, "fingerprint", "inner").where(F.col("id_a") < F.col("id_b"))
    return near.select(
        F.least("left", "right").alias("id_a"), F.greatest("left", "right").alias("id_b"), F.col("distance").cast("int")
    ).unionByName(equal.select("id_a", "id_b", F.lit(0).alias("distance")))


def identical_groups(fingerprints: DataFrame) -> DataFrame:
    """Each distinct fingerprint once, with the number of documents that have it: `fingerprint` BIGINT, `documents` BIGINT."""
    return fingerprints.where(F.col("fingerprint").isNotNull()).groupBy("fingerprint").agg(F.count("*").alias("documents"))


def with_sizes(found: DataFrame, groups: DataFrame) -> DataFrame:
    """The table `fingerprint_pairs`: what the search found, and how many documents have each of the two fingerprints.

    Args:
        found: `fingerprint_a`, `fingerprint_b`, `distance`, as the search gives them.
        groups: from `identical_groups`.
    """
    for side in ("a", "b"):
        sizes = groups.select(F.col("fingerprint").alias(f"fingerprint_{side}"), F.col("documents").alias(f"documents_{side}"))
        found = found.join(sizes, f"fingerprint_{side}", "inner")
    return found.select("fingerprint_a", "fingerprint_b", "distance", "documents_a", "documents_b")


def count_pairs(groups: DataFrame, found: DataFrame | None = None) -> DataFrame:
    """How many pairs of documents there are, by `distance`: one row a distance, `distance` INT and `pairs` DECIMAL.

    Args:
        groups: from `identical_groups`.
        found: the table `fingerprint_pairs`, with all pairs; where not given only pairs of equal fingerprints are counted.
    """
    # Decimal, since the pairs of a large group of copies alone may pass 2^63.
    equal = groups.where(F.col("documents") > 1).select(
        F.lit(0).alias("distance"), F.expr("cast(documents as decimal(19,0)) * (documents - 1) / 2").alias("pairs")
    )
    counted = equal
    if found is not None:
        near = found.select("distance", F.expr("cast(documents_a as decimal(19,0)) * documents_b").alias("pairs"))
        counted = near.unionByName(equal)
    return counted.groupBy("distance").agg(F.sum("pairs").cast("decimal(38,0)").alias("pairs"))
