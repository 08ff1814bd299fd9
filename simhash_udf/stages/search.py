"""Distinct fingerprints -> all pairs within a Hamming distance, or edges that connect the same fingerprints.

    fingerprints --mapInArrow--> few rows, each a packed slice of one bucket --shuffle--> one task a group of buckets
                 --mapInArrow--> pairs

The shares of each bucket are joined and searched (core/search.py). Nothing is exchanged between tasks afterwards: a pair has
exactly one bucket that reports it, so there is no global distinct. Buckets, or parts of those that are too dear for a task, are
dealt to tasks by their expected cost (core/plan.py), and sent to them packed (shares.py).

New fingerprints are searched against stored ones in the same way, the new rows of a bucket first. Where the new side is small
it is given to every task instead, and the stored side is searched where it lies, without a shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.blocks import Band, check_distance, cut_table, share_class
from simhash_udf.core.plan import Sample, SearchPlan, plan_search
from simhash_udf.errors import InputError, SettingsError
from simhash_udf.stages.sample import count_of, sample
from simhash_udf.stages.shares import fingerprint_column, fingerprints_of, first_units_of, shuffled, slices

if TYPE_CHECKING:
    from simhash_udf.core.numbering import Numbering

PAIR_SCHEMA = "fingerprint_a BIGINT, fingerprint_b BIGINT, distance INT"
LARGEST_NEW_SIDE = 1 << 22  # rows that are given to every task: 32 MB
_STORED_SLICE_ROWS = 1 << 21
_LEAST_PARTS = 2
_PAIR_ROWS = 1 << 16

Rows = npt.NDArray[np.uint64]


def search(fingerprints: DataFrame, max_distance: int, *, spanning: bool = False, plan: SearchPlan | None = None) -> DataFrame:
    """Every pair of fingerprints that differ in at most `max_distance` bits, each once.

    Args:
        fingerprints: a column `fingerprint` BIGINT (two's complement), distinct; nulls match nothing, other columns are
            ignored. They are counted and sampled first if no plan is given. A fingerprint that comes twice is an InputError in
            the task that compares the two.
        max_distance: 0 to 12. Distinct fingerprints have no pair at distance 0.
        spanning: edges that connect the same fingerprints as all pairs do, fewer than the rows of a task, instead of all
            pairs. Each is a pair within the distance, and comes once; which ones, depends on the plan alone.
        plan: from `plan_search`, for this distance.

    Returns:
        `fingerprint_a` BIGINT < `fingerprint_b` BIGINT (as signed numbers), `distance` INT of at least 1.

    Raises:
        InputError: there is no BIGINT column `fingerprint`.
        SettingsError: the distance is out of range, or the plan is for another one.
    """
    if max_distance == 0:
        return _no_pairs(fingerprints, PAIR_SCHEMA)
    rows, plan = _rows_and_plan(fingerprints, max_distance, spanning, plan)
    return shuffled(rows, plan).mapInArrow(partial(_search_shares, plan=plan, spanning=spanning), PAIR_SCHEMA)


def count_near_pairs(fingerprints: DataFrame, max_distance: int, *, plan: SearchPlan | None = None) -> DataFrame:
    """How many pairs `search` would find: `distance` INT, `pairs` BIGINT, each distance once; none is written anywhere.

    Args and errors are those of `search`.
    """
    if max_distance == 0:
        return _no_pairs(fingerprints, "distance INT, pairs BIGINT")
    rows, plan = _rows_and_plan(fingerprints, max_distance, False, plan)
    counted = shuffled(rows, plan).mapInArrow(partial(_count_shares, plan=plan), "distance INT, pairs BIGINT")
    return counted.groupBy("distance").agg(F.sum("pairs").alias("pairs"))


def search_new(
    new: DataFrame, stored: DataFrame, max_distance: int, *, spanning: bool = False, plan: SearchPlan | None = None
) -> DataFrame:
    """Every pair within the distance of a new fingerprint with a new or a stored one, each once; stored ones are not compared.

    Args:
        new: like `fingerprints` of `search`.
        stored: likewise. A fingerprint of both sides counts as new.
        max_distance, spanning: as for `search`.
        plan: from `plan_search` with `new_rows`, for a search with a shuffle of both sides. Where none is given, both are
            counted, and a new side of at most `LARGEST_NEW_SIDE` rows is given to every task instead if that is cheaper; a
            spanning search always shuffles, so that its edges do not depend on how the stored rows lie.

    Returns:
        As `search`.

    Raises:
        InputError, SettingsError: as `search`.
    """
    check_distance(max_distance)
    fresh, old = fingerprint_column(new), fingerprint_column(stored)
    if max_distance == 0:
        return _no_pairs(new, PAIR_SCHEMA)
    if plan is None:
        counts = count_of(fresh), count_of(old)
        plan = plan_search(sum(counts), max_distance, new_rows=counts[0], spanning=spanning)
        if not spanning and _is_cheaper_everywhere(*counts, plan):
            between = _search_everywhere(_collected(fresh), old, counts[1], max_distance)
            return search(fresh, max_distance, plan=plan_search(counts[0], max_distance)).unionAll(between)
        if plan.tasks > 1:
            taken = sample(fresh.unionAll(old), max_distance)
            # Of the pairs of a sample of both sides, those of two stored fingerprints are none here.
            stored_share = counts[1] / max(1, sum(counts))
            taken = Sample(sum(counts), taken.fingerprints, taken.near_pairs * (1 - stored_share**2))
            plan = plan_search(sum(counts), max_distance, new_rows=counts[0], sample=taken, spanning=spanning)
    _check_plan(plan, max_distance)
    return shuffled(fresh, plan, old).mapInArrow(partial(_search_shares, plan=plan, spanning=spanning), PAIR_SCHEMA)


def search_between(left: DataFrame, right: DataFrame, max_distance: int) -> DataFrame:
    """Every pair within the distance of a fingerprint of one side with one of the other, each once; no others are compared.

    Args:
        left, right: like `fingerprints` of `search`; no fingerprint is on both sides. They are counted, and the smaller is given
            to every task where it has at most `LARGEST_NEW_SIDE` rows; else both are shuffled.
        max_distance: as for `search`.

    Returns, raises:
        As `search`.
    """
    check_distance(max_distance)
    sides = fingerprint_column(left), fingerprint_column(right)
    if max_distance == 0:
        return _no_pairs(left, PAIR_SCHEMA)
    counts = count_of(sides[0]), count_of(sides[1])
    small = int(counts[1] < counts[0])
    if counts[small] > LARGEST_NEW_SIDE:
        plan = plan_search(sum(counts), max_distance, new_rows=counts[small])
        shares = shuffled(sides[small], plan, sides[1 - small])
        return shares.mapInArrow(partial(_search_shares, plan=plan, spanning=False, between=True), PAIR_SCHEMA)
    return _search_everywhere(_collected(sides[small]), sides[1 - small], counts[1 - small], max_distance)


def _search_everywhere(new: Rows, stored: DataFrame, stored_rows: int, max_distance: int) -> DataFrame:
    """Pairs of a new row with a stored one; the new side is given to every task."""
    # Each task prepares the new side, so there are few.
    parts = stored.coalesce(max(_slices_of(stored_rows), _LEAST_PARTS))
    return parts.mapInArrow(partial(_search_stored, new=new, max_distance=max_distance), PAIR_SCHEMA)


def _rows_and_plan(
    fingerprints: DataFrame, max_distance: int, spanning: bool, plan: SearchPlan | None
) -> tuple[DataFrame, SearchPlan]:
    check_distance(max_distance)
    rows = fingerprint_column(fingerprints)
    if plan is None:
        plan = plan_search(count_of(rows), max_distance, spanning=spanning)
        if plan.tasks > 1:
            taken = sample(rows, max_distance)
            plan = plan_search(taken.rows, max_distance, sample=taken, spanning=spanning)
    _check_plan(plan, max_distance)
    return rows, plan


def _check_plan(plan: SearchPlan, max_distance: int) -> None:
    if plan.max_distance != max_distance:
        raise SettingsError(
            f"the plan is for max_distance {plan.max_distance}, but the search is for {max_distance}; make a plan for it"
        )


def _is_cheaper_everywhere(new_rows: int, stored_rows: int, plan: SearchPlan) -> bool:
    """Whether giving the new side to every task is cheaper than shuffling both sides by the plan."""
    if new_rows > LARGEST_NEW_SIDE:
        return False
    rows = new_rows + min(stored_rows, _STORED_SLICE_ROWS)
    table = cut_table(plan.max_distance, 64, share_class(max(new_rows, 1), max(rows, 1)))
    a_slice = float(table.cost(rows, 64, plan.max_distance))
    return _slices_of(stored_rows) * a_slice / 1e9 / plan.cores <= plan.seconds


def _slices_of(stored_rows: int) -> int:
    return max(1, math.ceil(stored_rows / _STORED_SLICE_ROWS))


def _no_pairs(frame: DataFrame, schema: str) -> DataFrame:
    """What a search within distance 0 finds: distinct fingerprints differ."""
    fingerprint_column(frame)
    return frame.sparkSession.createDataFrame([], schema)


def _search_shares(
    batches: Iterator[pa.RecordBatch], *, plan: SearchPlan, spanning: bool, between: bool = False
) -> Iterator[pa.RecordBatch]:
    for found in _found(batches, plan, spanning, between):
        yield from _in_batches(found)


def _count_shares(batches: Iterator[pa.RecordBatch], *, plan: SearchPlan) -> Iterator[pa.RecordBatch]:
    pairs = np.zeros(65, np.int64)
    for found in _found(batches, plan, False):
        for _, _, distance in found:
            pairs += np.bincount(distance, minlength=65)
    distances = np.flatnonzero(pairs)
    columns = [pa.array(distances.astype(np.int32)), pa.array(pairs[distances])]
    yield pa.RecordBatch.from_arrays(columns, ["distance", "pairs"])


def _found(
    batches: Iterator[pa.RecordBatch], plan: SearchPlan, spanning: bool, between: bool = False
) -> Iterator[Iterable[tuple[Any, Any, Any]]]:
    """Join the shares of each unit of this task, and search one unit after the other."""
    from simhash_udf.core.numbering import Numbering
    from simhash_udf.core.search import BucketSearch

    shares: dict[int, dict[bool, list[Rows]]] = {}
    for batch in batches:
        for unit, is_new, packed in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), batch.column(3), strict=True):
            kinds = shares.setdefault(unit, {True: [np.empty(0, np.uint64)], False: []})
            kinds[is_new].append(np.frombuffer(packed.as_buffer(), "<u8"))
    engine = BucketSearch(plan.bands, plan.max_distance, spanning=spanning)
    first_units = first_units_of(plan)
    last_units = [units[-1] for units in first_units]
    for unit in sorted(shares):
        kinds = shares.pop(unit)
        new, old = np.concatenate(kinds[True]), kinds[False]
        del kinds
        band = int(np.searchsorted(last_units, unit, side="right"))
        bucket = int(np.searchsorted(first_units[band], unit, side="right")) - 1
        parts = plan.parts[band][bucket]
        rows, new_rows = new, len(new)
        if spanning or parts > 1:
            # Shares arrive in any order. That of the rows decides which edges are found, and what each part does.
            new.sort()
            _check_distinct(new)
        if old:
            stored = _without(np.concatenate(old), Numbering(new.view(np.int64)))
            if spanning or parts > 1:
                stored.sort()
                _check_distinct(stored)
            rows = np.concatenate([new, stored])
            del stored
        del new, old
        found = engine.pairs(rows, band, plan.shared_bits[band], new_rows, unit - int(first_units[band][bucket]), parts, between)
        # Whoever takes the pairs holds the rows as long as they are needed.
        del rows
        yield found


def _search_stored(batches: Iterator[pa.RecordBatch], *, new: Rows, max_distance: int) -> Iterator[pa.RecordBatch]:
    """Search slices of the stored side against all of the new one; pairs among the new are found elsewhere."""
    from simhash_udf.core.numbering import Numbering
    from simhash_udf.core.search import BucketSearch

    known = None
    engine = BucketSearch((Band(0, 0),), max_distance)
    for stored in slices(batches, _STORED_SLICE_ROWS):
        known = known or Numbering(new.view(np.int64))
        rows = np.concatenate([new, _without(stored, known)])
        yield from _in_batches(engine.pairs(rows, 0, new=len(new), between=True))


def _without(rows: Rows, known: Numbering) -> Rows:
    """The rows that are no keys of the numbering."""
    return rows[known.find(rows.view(np.int64)) < 0]


def _check_distinct(ascending: Rows) -> None:
    repeated = np.flatnonzero(ascending[1:] == ascending[:-1])
    if len(repeated):
        raise InputError(
            f"the fingerprint {ascending.view(np.int64)[repeated[0]]} comes more than once, and its pairs would too; a search "
            "takes distinct ones: use dropDuplicates before"
        )


def _collected(fingerprints: DataFrame) -> Rows:
    """All of a side of bounded size, ascending."""
    packed = fingerprints.mapInArrow(_packed, "fingerprints BINARY").collect()
    rows = np.concatenate([np.empty(0, np.uint64), *(np.frombuffer(row[0], "<u8") for row in packed)])
    return np.unique(rows)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([fingerprints_of(batch).tobytes()], pa.binary())], ["fingerprints"])


def _in_batches(found: Iterable[tuple[Any, Any, Any]]) -> Iterator[pa.RecordBatch]:
    for columns in found:
        for start in range(0, len(columns[0]), _PAIR_ROWS):
            arrays = [pa.array(column[start : start + _PAIR_ROWS]) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, ["fingerprint_a", "fingerprint_b", "distance"])
