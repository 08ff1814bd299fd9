"""Fingerprints -> what a plan of their search needs to know: how many there are, a sample, and how many pairs to expect."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.blocks import Band
from simhash_udf.core.plan import Sample
from simhash_udf.stages.shares import fingerprint_column, fingerprints_of

SAMPLE_ROWS = 1 << 18
_COMPARED_ROWS = 1 << 16
_MOST_PAIRS = 1 << 20


def sample(fingerprints: DataFrame, max_distance: int, *, rows: int = SAMPLE_ROWS) -> Sample:
    """What `plan_search` needs to know of a table: its size, about `rows` of its fingerprints and how many pairs to expect.

    Args:
        fingerprints: a column `fingerprint` BIGINT; nulls are ignored, a repeated fingerprint counts once.
        max_distance: of the pairs.
        rows: of the sample. It is chosen by a hash of the fingerprint, so it is the same however the table is partitioned.

    Raises:
        InputError: there is no BIGINT column `fingerprint`.
    """
    whole = fingerprint_column(fingerprints)
    number = count_of(whole)
    if number > rows:
        whole = whole.where(F.xxhash64("fingerprint") < F.lit(round(rows / number * 2**64) - 2**63))
    schema = "fingerprints BINARY, compared BIGINT, pairs BIGINT"
    # Distinct before they come together: the copies of one fingerprint may be most of the table.
    whole = whole.distinct()
    found = whole.repartition(1).mapInArrow(partial(_measured, max_distance=max_distance), schema).collect()
    if not found:
        return Sample(0, np.empty(0, np.uint64))
    packed, compared, pairs = found[0]
    distinct = np.frombuffer(packed, "<u8")
    # A fingerprint is taken by its hash, with all its copies or not at all. So many say nothing of a table of distinct ones.
    estimate = len(distinct) * max(1.0, number / rows)
    is_distinct = estimate > number - 8 * math.sqrt(estimate * max(1.0, number / rows))
    size = len(distinct) if number <= rows else number if is_distinct else round(estimate)
    scale = size * (size - 1) / max(1, compared * (compared - 1))
    return Sample(size, distinct, pairs * scale)


def count_of(fingerprints: DataFrame) -> int:
    """How many fingerprints there are, without nulls."""
    return int(fingerprints.agg(F.count("fingerprint")).collect()[0][0])


def _measured(batches: Iterator[pa.RecordBatch], *, max_distance: int) -> Iterator[pa.RecordBatch]:
    """The sample in one row, with the number of pairs within the distance among the first of its rows by hash."""
    from simhash_udf.core.search import BucketSearch

    gathered = [fingerprints_of(batch) for batch in batches]
    if not gathered:
        return
    rows = np.unique(np.concatenate(gathered))
    # As good as random: fingerprints in the order of other bits than those that lie first.
    compared = rows[np.argsort(rows * np.uint64(0x9E3779B97F4A7C15), kind="stable")][:_COMPARED_ROWS]
    engine = BucketSearch((Band(0, 0),), max_distance)
    while True:
        pairs = 0
        for a, _, _ in engine.pairs(compared, 0):
            pairs += len(a)
            if pairs > _MOST_PAIRS:
                break
        else:
            break
        # So many pairs among a quarter of the rows are a sixteenth of so many, and tell as much.
        compared = compared[: len(compared) // 4]
    columns = [pa.array([rows.tobytes()], pa.binary()), pa.array([len(compared)]), pa.array([pairs])]
    yield pa.RecordBatch.from_arrays(columns, ["fingerprints", "compared", "pairs"])
