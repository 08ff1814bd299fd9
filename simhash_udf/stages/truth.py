"""Texts -> all pairs whose similarity is at least so much, exactly: what fingerprints are measured against.

    sets of hashed n-grams -> the rarest n-grams of each --join on an n-gram--> candidates -> their exact similarity

Of two sets of Jaccard similarity t or more, each has at least ceil(t |A|) of its |A| n-grams in common with the other. With
n-grams in one order for all sets, the first |A| - ceil(t |A|) + 1 of each therefore share one (prefix filtering: Chaudhuri,
Ganti, Kaushik 2006, "A primitive operator for similarity joins in data cleaning"; Bayardo, Ma, Srikant 2007, "Scaling up all
pairs similarity search"). The rarest come first, so few sets meet. It is for samples: each n-gram of each text is a row of a
shuffle.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from simhash_udf.errors import SettingsError
from simhash_udf.stages.components import Discard, Store
from simhash_udf.stages.numbers import numbered
from simhash_udf.stages.verification import SET_SCHEMA, to_sets, with_similarity


def truth(texts: DataFrame, store: Store, discard: Discard, *, min_similarity: float, unit: str, ngram: int) -> DataFrame:
    """The table `truth`: `id_a` < `id_b`, `similarity` DOUBLE, every pair of texts of at least this Jaccard similarity.

    Args:
        texts: `id`, `text`, each id once.
        store, discard: as in `connected_components`.
        min_similarity: above 0, up to 1.
        unit, ngram: what the sets are of. A text without tokens is similar to none.

    Raises:
        SettingsError: the similarity is out of its range.
    """
    if not 0 < min_similarity <= 1:
        raise SettingsError(f"min-similarity is {min_similarity}; it must be above 0, and at most 1: all pairs are similar by 0")
    told = numbered(texts.select("id", "text"), ["id"], store, "numbered")
    sets = told.select("node", "text").mapInArrow(partial(to_sets, unit=unit, ngram=ngram), SET_SCHEMA)
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
    a, b = (prefixes.select(F.col("node").alias(f"node_{x}"), "gram", F.col("size").alias(f"size_{x}")) for x in "ab")
    smaller, larger = F.least("size_a", "size_b"), F.greatest("size_a", "size_b")
    met = a.join(b, "gram", "inner").where((F.col("node_a") < F.col("node_b")) & (smaller >= min_similarity * larger - 1e-9))
    candidates = store("candidates", met.select("node_a", "node_b", F.lit(0).alias("distance")).distinct())
    measured = with_similarity(candidates, told.select("node", "text"), store, discard, measure="jaccard", unit=unit, ngram=ngram)
    ids = told.select("node", "id")
    left = ids.select(F.col("node").alias("node_a"), F.col("id").alias("left"))
    right = ids.select(F.col("node").alias("node_b"), F.col("id").alias("right"))
    found = measured.where(F.col("similarity") >= min_similarity).join(left, "node_a", "inner").join(right, "node_b", "inner")
    return found.select(F.least("left", "right").alias("id_a"), F.greatest("left", "right").alias("id_b"), "similarity")


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
