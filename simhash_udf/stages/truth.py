"""Texts -> all pairs whose similarity is at least so much, exactly: what fingerprints are measured against.

    texts -> distinct sets of hashed n-grams -> the rarest of each --join on an n-gram--> candidates -> their exact similarity

Of two sets of Jaccard similarity t or more, each has at least ceil(t |A|) of its |A| n-grams in common with the other. With
n-grams in one order for all sets, the first |A| - ceil(t |A|) + 1 of each therefore share one (prefix filtering: Chaudhuri,
Ganti, Kaushik 2006, "A primitive operator for similarity joins in data cleaning"; Bayardo, Ma, Srikant 2007, "Scaling up all
pairs similarity search"). The rarest come first, so few sets meet, and copies of one text are one set. It is for samples: each
n-gram of each text is a row of a shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from simhash_udf.errors import SettingsError, TooManyPairs
from simhash_udf.stages.components import Discard, Store
from simhash_udf.stages.numbers import numbered
from simhash_udf.stages.pairs import pairs
from simhash_udf.stages.verification import SET_SCHEMA, to_sets, with_similarity

MOST_MEETINGS = 10**10


def truth(texts: DataFrame, store: Store, discard: Discard, *, min_similarity: float, unit: str, ngram: int) -> DataFrame:
    """The table `truth`: `id_a` < `id_b`, `similarity` DOUBLE, every pair of texts of at least this Jaccard similarity.

    Args:
        texts: `id`, `text`, each id once.
        store, discard: as in `connected_components`.
        min_similarity: above 0, up to 1.
        unit, ngram: what the sets are of. A text without tokens is similar to none.

    Raises:
        SettingsError: the similarity is out of its range.
        TooManyPairs: so many sets share their rarest n-grams that comparing them would not end.
    """
    check_min_similarity(min_similarity)
    told = numbered(texts.select("id", "text"), ["id"], store, "numbered")
    made = told.select("node", "text").mapInArrow(partial(to_sets, unit=unit, ngram=ngram), SET_SCHEMA)
    alike = store("digests", made.where("bytes > 0").select("node", F.sha2("grams", 256).alias("digest")))
    firsts = alike.groupBy("digest").agg(F.min("node").alias("first"))
    members = alike.join(firsts, "digest", "inner").select("node", "first")
    members = store(
        "members", members.join(told.select("node", "id"), "node", "inner").select("id", F.col("first").alias("node"))
    )
    distinct = store("distinct", told.select("node", "text").join(members.select("node").distinct(), "node", "inner"))
    sets = distinct.mapInArrow(partial(to_sets, unit=unit, ngram=ngram), SET_SCHEMA)
    grams = store("grams", sets.mapInArrow(_rows, "node BIGINT, gram BIGINT, size BIGINT"))
    shared = grams.groupBy("gram").agg(F.count("*").alias("texts"))
    in_order = Window.partitionBy("node").orderBy("texts", "gram")
    # A small tolerance, so that a product that rounding raised above a whole number asks for no gram more.
    needed = F.ceil(F.lit(min_similarity) * F.col("size") - 1e-9)
    prefixes = (
        grams.join(shared, "gram", "inner")
        .withColumn("place", F.row_number().over(in_order))
        .where((F.col("place") <= F.col("size") - needed + 1) & (F.col("texts") > 1))
        .select("node", "gram", "size")
    )
    prefixes = store("prefixes", prefixes)
    _check_meetings(prefixes)
    a, b = (prefixes.select(F.col("node").alias(f"node_{x}"), "gram", F.col("size").alias(f"size_{x}")) for x in "ab")
    smaller, larger = F.least("size_a", "size_b"), F.greatest("size_a", "size_b")
    met = a.join(b, "gram", "inner").where((F.col("node_a") < F.col("node_b")) & (smaller >= min_similarity * larger - 1e-9))
    candidates = store("candidates", met.select("node_a", "node_b", F.lit(0).alias("distance")).distinct())
    measured = with_similarity(candidates, distinct, store, discard, measure="jaccard", unit=unit, ngram=ngram)
    similar = measured.where(F.col("similarity") >= min_similarity)
    return pairs(members, similar).select("id_a", "id_b", "similarity")


def check_min_similarity(min_similarity: float) -> None:
    """Raise SettingsError unless fewer than all pairs are as similar."""
    if not 0 < min_similarity <= 1:
        raise SettingsError(f"min-similarity is {min_similarity}; it must be above 0, and at most 1: all pairs are similar by 0")


def _check_meetings(prefixes: DataFrame) -> None:
    """Raise TooManyPairs where more sets would meet on an n-gram than can be compared."""
    met = prefixes.groupBy("gram").agg(F.count("*").cast("decimal(19,0)").alias("sets"))
    counted = met.agg(F.sum(F.col("sets") * (F.col("sets") - 1) / 2)).first()
    meetings = int(counted[0] or 0) if counted else 0
    if meetings > MOST_MEETINGS:
        raise TooManyPairs(
            f"{meetings:,} times two texts share one of their rarest n-grams, more than {MOST_MEETINGS:,} that can be compared; "
            "take a smaller sample of the documents, or a larger --min-similarity"
        )


def _rows(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row for each hash of each set."""
    for batch in batches:
        nodes, grams, lengths = batch.columns
        sizes = np.asarray(lengths, np.int64) // 8
        values = np.frombuffer(grams.buffers()[2] or b"", np.uint8)
        first = int(np.frombuffer(grams.buffers()[1], np.int32)[grams.offset])
        values = values[first : first + int(sizes.sum()) * 8].copy().view("<i8")
        columns = [np.repeat(np.asarray(nodes, np.int64), sizes), values, np.repeat(sizes, sizes)]
        yield pa.RecordBatch.from_arrays([pa.array(column) for column in columns], ["node", "gram", "size"])
