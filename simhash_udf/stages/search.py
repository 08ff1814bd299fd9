"""Distinct fingerprints -> all pairs within a Hamming distance, or edges that connect the same fingerprints.

    fingerprints --mapInArrow--> few rows, each a packed slice of one bucket --shuffle--> one task a group of buckets
                 --mapInArrow--> pairs

A row of the shuffle costs Spark about half a microsecond, whatever is in it, and each fingerprint crosses the shuffle k + 1
times. So the first pass sorts slices of a million fingerprints by bucket and sends a bucket's share of a slice as one
binary value: the shuffle then moves 8 bytes a copy at the speed of a copy. The second pass joins the shares of each bucket
and searches it (core/search.py). Nothing is exchanged between tasks afterwards: a pair has exactly one bucket that
reports it, so there is no global distinct.

A bucket is a band's index and the first bits of its chunk. A unit of work is a bucket, or a part of one that is too dear for a
task. Units are dealt to tasks by their expected cost, and a task is addressed by a number that Spark's own hash partitioning
sends there; were that hash ever to change, tasks would be less even, and the result the same.

New fingerprints are searched against stored ones in the same way, the new rows of a bucket first. Where the new side is small
it is given to every task instead, and the stored side is searched where it lies, without a shuffle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.blocks import Band, check_distance, cut_table, share_class
from simhash_udf.core.plan import Sample, SearchPlan, plan_search
from simhash_udf.errors import InputError, SettingsError

__all__ = ["PAIR_SCHEMA", "count_near_pairs", "sample", "search", "search_new"]

PAIR_SCHEMA = "fingerprint_a BIGINT, fingerprint_b BIGINT, distance INT"
SAMPLE_ROWS = 1 << 18
LARGEST_NEW_SIDE = 1 << 22  # rows that are given to every task: 32 MB
_COMPARED_SAMPLE_ROWS = 1 << 16
_SAMPLE_PAIRS = 1 << 20
_SHARE_SCHEMA = "task INT, unit INT, new BOOLEAN, fingerprints BINARY"
_SLICE_ROWS = 1 << 20
_STORED_SLICE_ROWS = 1 << 21
_SHARE_BYTES = 1 << 20
_PAIR_ROWS = 1 << 16

Rows = npt.NDArray[np.uint64]


def search(fingerprints: DataFrame, max_distance: int, *, spanning: bool = False, plan: SearchPlan | None = None) -> DataFrame:
    """Every pair of fingerprints that differ in at most `max_distance` bits, each once.

    Args:
        fingerprints: a column `fingerprint` BIGINT (two's complement), distinct; nulls match nothing, other columns are
            ignored. They are counted and sampled first if no plan is given.
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
    rows, plan = _rows_and_plan(fingerprints, max_distance, spanning, plan)
    return _shuffled(rows, plan).mapInArrow(partial(_search_shares, plan=plan, spanning=spanning), PAIR_SCHEMA)


def count_near_pairs(fingerprints: DataFrame, max_distance: int, *, plan: SearchPlan | None = None) -> DataFrame:
    """How many pairs `search` would find: `distance` INT, `pairs` BIGINT, each distance once; none is written anywhere.

    Args and errors are those of `search`.
    """
    rows, plan = _rows_and_plan(fingerprints, max_distance, False, plan)
    counted = _shuffled(rows, plan).mapInArrow(partial(_count_shares, plan=plan), "distance INT, pairs BIGINT")
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
    fresh, old = _fingerprint_column(new), _fingerprint_column(stored)
    if plan is None:
        counts = _count(fresh), _count(old)
        if not spanning and _is_small(*counts, max_distance):
            rows = _collected(fresh)
            between = old.mapInArrow(partial(_search_stored, new=rows, max_distance=max_distance), PAIR_SCHEMA)
            return search(fresh, max_distance, plan=plan_search(counts[0], max_distance)).unionAll(between)
        plan = plan_search(sum(counts), max_distance, new_rows=counts[0], spanning=spanning)
    _check_plan(plan, max_distance)
    return _shuffled(fresh, plan, old).mapInArrow(partial(_search_shares, plan=plan, spanning=spanning), PAIR_SCHEMA)


def sample(fingerprints: DataFrame, max_distance: int, *, rows: int = SAMPLE_ROWS) -> Sample:
    """What `plan_search` needs to know of a table: its size, about `rows` of its fingerprints and how many pairs to expect.

    Args:
        fingerprints: a column `fingerprint` BIGINT; nulls are ignored, a repeated fingerprint counts once.
        max_distance: of the pairs.
        rows: of the sample. It is chosen by a hash of the fingerprint, so it is the same however the table is partitioned.

    Raises:
        InputError: there is no BIGINT column `fingerprint`.
    """
    whole = _fingerprint_column(fingerprints)
    number = _count(whole)
    if number > rows:
        whole = whole.where(F.xxhash64("fingerprint") < F.lit(round(rows / number * 2**64) - 2**63))
    schema = "rows BIGINT, fingerprints BINARY, compared BIGINT, pairs BIGINT"
    found = whole.repartition(1).mapInArrow(partial(_measured, max_distance=max_distance), schema).collect()
    if not found:
        return Sample(0, np.empty(0, np.uint64))
    taken, packed, compared, pairs = found[0]
    distinct = np.frombuffer(packed, "<u8")
    # All copies of a fingerprint are in the sample, or none is.
    size = len(distinct) if number <= rows else max(len(distinct), round(number * len(distinct) / taken))
    scale = size * (size - 1) / max(1, compared * (compared - 1))
    return Sample(size, distinct, pairs * scale)


def _rows_and_plan(
    fingerprints: DataFrame, max_distance: int, spanning: bool, plan: SearchPlan | None
) -> tuple[DataFrame, SearchPlan]:
    check_distance(max_distance)
    rows = _fingerprint_column(fingerprints)
    if plan is None:
        plan = plan_search(_count(rows), max_distance, spanning=spanning)
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


def _fingerprint_column(frame: DataFrame) -> DataFrame:
    types = dict(frame.dtypes)
    if types.get("fingerprint") != "bigint":
        raise InputError(
            f"column fingerprint is {types.get('fingerprint', 'missing')}, among {sorted(types)}; it must be BIGINT, as the "
            "fingerprint stage writes it"
        )
    return frame.select("fingerprint").where(F.col("fingerprint").isNotNull())


def _count(fingerprints: DataFrame) -> int:
    return int(fingerprints.agg(F.count("fingerprint")).collect()[0][0])


def _is_small(new_rows: int, stored_rows: int, max_distance: int) -> bool:
    """Whether giving the new side to every task is cheaper than shuffling both sides."""
    if new_rows > LARGEST_NEW_SIDE:
        return False
    slices = max(1, math.ceil(stored_rows / _STORED_SLICE_ROWS))
    rows = new_rows + min(stored_rows, _STORED_SLICE_ROWS)
    a_slice = float(cut_table(max_distance, 64, share_class(max(new_rows, 1), max(rows, 1))).cost(rows, 64, max_distance))
    plan = plan_search(new_rows + stored_rows, max_distance, new_rows=new_rows)
    return slices * a_slice / 1e9 / plan.cores <= plan.seconds


def _shuffled(new: DataFrame, plan: SearchPlan, old: DataFrame | None = None) -> DataFrame:
    """Packed shares of the rows, each in the partition of the task that searches its unit."""
    keys = np.array(_keys_of_tasks(plan.tasks), np.int32)[plan.task_of_unit]
    shares = new.mapInArrow(partial(_to_shares, plan=plan, keys=keys, new=True), _SHARE_SCHEMA)
    if old is not None:
        shares = shares.unionAll(old.mapInArrow(partial(_to_shares, plan=plan, keys=keys, new=False), _SHARE_SCHEMA))
    # A number and a column: adaptive execution leaves such a shuffle as it is.
    return shares.repartition(plan.tasks, "task")


def _murmur3(number: int) -> int:
    """Spark's hash of an INT: Murmur3 x86 32 bit of its four bytes, seed 42 (signed)."""
    mask = 0xFFFFFFFF

    def rotated(word: int, by: int) -> int:
        return (word << by | word >> (32 - by)) & mask

    word = rotated(number * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    word = (rotated(42 ^ word, 13) * 5 + 0xE6546B64) & mask
    word ^= 4
    word = (word ^ word >> 16) * 0x85EBCA6B & mask
    word = (word ^ word >> 13) * 0xC2B2AE35 & mask
    word ^= word >> 16
    return word - (1 << 32) if word >> 31 else word


def _keys_of_tasks(tasks: int) -> list[int]:
    """For each task, a number that hash partitioning into so many tasks sends there."""
    keys: dict[int, int] = {}
    number = 0
    while len(keys) < tasks:
        keys.setdefault(_murmur3(number) % tasks, number)
        number += 1
    return [keys[task] for task in range(tasks)]


def _first_units(plan: SearchPlan) -> list[npt.NDArray[np.int64]]:
    """For each band, the first unit of each of its buckets, and the first after the band."""
    parts = [np.array(band, np.int64) for band in plan.parts]
    before = np.cumsum([0, *(band.sum() for band in parts)])
    return [first + np.concatenate([[0], np.cumsum(band)]) for first, band in zip(before, parts, strict=False)]


def _to_shares(
    batches: Iterator[pa.RecordBatch], *, plan: SearchPlan, keys: npt.NDArray[np.int32], new: bool
) -> Iterator[pa.RecordBatch]:
    """Slices of an input partition, sorted by bucket, each bucket's share packed into binary values of bounded size."""
    units = _first_units(plan)
    for rows in _slices(batches, _SLICE_ROWS):
        for band in range(len(plan.bands)):
            yield _shares_of_band(rows, new, band, plan, units[band], keys)


def _slices(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Rows]:
    """The fingerprints of many small batches, in pieces of at least so many rows but for the last."""
    gathered: list[Rows] = []
    size = 0
    for batch in batches:
        gathered.append(_fingerprints_of(batch))
        size += batch.num_rows
        if size >= rows:
            yield np.concatenate(gathered)
            gathered, size = [], 0
    if size:
        yield np.concatenate(gathered)


def _fingerprints_of(batch: pa.RecordBatch) -> Rows:
    rows: Rows = batch.column(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return rows


def _shares_of_band(
    rows: Rows,
    new: bool,
    index: int,
    plan: SearchPlan,
    first_units: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int32],
) -> pa.RecordBatch:
    from simhash_udf.core.search import partition

    bits = plan.shared_bits[index]
    ends = np.zeros((1 << bits) + 1, np.int64)
    ordered = rows
    if bits:
        ordered = np.empty_like(rows)
        partition(rows, ordered, 64 - plan.bands[index].start - bits, bits, ends)
    else:
        ends[0] = len(rows)
    ends = np.concatenate([[0], ends[: 1 << bits]])
    # Boundaries of the shares: those of the buckets, and within a large bucket every _SHARE_BYTES.
    step = _SHARE_BYTES // 8
    starts = np.concatenate([np.arange(low, high, step) for low, high in zip(ends, ends[1:], strict=False)])
    bucket = np.searchsorted(ends[1:], starts, side="right")
    offsets = np.append(starts, len(rows)) * 8
    # Arrow offsets have 32 bits: a slice holds far fewer bytes, however large a batch that came in was.
    data = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(starts), [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(ordered)]
    ).cast(pa.binary())
    # Every part of a bucket gets all its rows.
    copies = first_units[bucket + 1] - first_units[bucket]
    share = np.repeat(np.arange(len(starts)), copies)
    unit = first_units[bucket[share]] + np.arange(len(share)) - np.repeat(np.cumsum(copies) - copies, copies)
    if len(share) > len(starts):
        data = data.take(pa.array(share))
    columns = [pa.array(keys[unit]), pa.array(unit.astype(np.int32)), pa.array(np.full(len(unit), new)), data]
    return pa.RecordBatch.from_arrays(columns, ["task", "unit", "new", "fingerprints"])


def _search_shares(batches: Iterator[pa.RecordBatch], *, plan: SearchPlan, spanning: bool) -> Iterator[pa.RecordBatch]:
    for found in _found(batches, plan, spanning):
        yield from _in_batches(found)


def _count_shares(batches: Iterator[pa.RecordBatch], *, plan: SearchPlan) -> Iterator[pa.RecordBatch]:
    pairs = np.zeros(65, np.int64)
    for found in _found(batches, plan, False):
        for _, _, distance in found:
            pairs += np.bincount(distance, minlength=65)
    distances = np.flatnonzero(pairs)
    columns = [pa.array(distances.astype(np.int32)), pa.array(pairs[distances])]
    yield pa.RecordBatch.from_arrays(columns, ["distance", "pairs"])


def _found(batches: Iterator[pa.RecordBatch], plan: SearchPlan, spanning: bool) -> Iterator[Iterable[tuple[Any, Any, Any]]]:
    """Join the shares of each unit of this task, and search one unit after the other."""
    from simhash_udf.core.members import Members
    from simhash_udf.core.search import BucketSearch

    shares: dict[int, dict[bool, list[Rows]]] = {}
    for batch in batches:
        for unit, is_new, packed in zip(batch.column(1).to_pylist(), batch.column(2).to_pylist(), batch.column(3), strict=True):
            kinds = shares.setdefault(unit, {True: [np.empty(0, np.uint64)], False: []})
            kinds[is_new].append(np.frombuffer(packed.as_buffer(), "<u8"))
    engine = BucketSearch(plan.bands, plan.max_distance, spanning=spanning)
    first_units = _first_units(plan)
    last_units = [units[-1] for units in first_units]
    for unit in sorted(shares):
        kinds = shares.pop(unit)
        new = np.concatenate(kinds[True])
        band = int(np.searchsorted(last_units, unit, side="right"))
        bucket = int(np.searchsorted(first_units[band], unit, side="right")) - 1
        parts = plan.parts[band][bucket]
        rows = [new]
        if kinds[False]:
            rows.append(Members(new).removed_from(np.concatenate(kinds[False])))
        if spanning or parts > 1:
            # Shares arrive in any order. That of the rows decides which edges are found, and what each part does.
            for some in rows:
                some.sort()
        yield engine.pairs(
            np.concatenate(rows), band, plan.shared_bits[band], len(new), unit - int(first_units[band][bucket]), parts
        )


def _search_stored(batches: Iterator[pa.RecordBatch], *, new: Rows, max_distance: int) -> Iterator[pa.RecordBatch]:
    """Search slices of the stored side against all of the new one; pairs among the new are found elsewhere."""
    from simhash_udf.core.members import Members
    from simhash_udf.core.search import BucketSearch

    members = Members(new)
    engine = BucketSearch((Band(0, 0),), max_distance)
    for stored in _slices(batches, _STORED_SLICE_ROWS):
        rows = np.concatenate([new, members.removed_from(stored)])
        yield from _in_batches(engine.pairs(rows, 0, new=len(new), between=True))


def _collected(fingerprints: DataFrame) -> Rows:
    """All of a side of bounded size, ascending."""
    packed = fingerprints.mapInArrow(_packed, "fingerprints BINARY").collect()
    rows = np.concatenate([np.empty(0, np.uint64), *(np.frombuffer(row[0], "<u8") for row in packed)])
    return np.unique(rows)


def _packed(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([pa.array([_fingerprints_of(batch).tobytes()], pa.binary())], ["fingerprints"])


def _measured(batches: Iterator[pa.RecordBatch], *, max_distance: int) -> Iterator[pa.RecordBatch]:
    """The sample in one row, with the number of pairs within the distance among the first of its rows by hash."""
    from simhash_udf.core.search import BucketSearch

    gathered = [_fingerprints_of(batch) for batch in batches]
    if not gathered:
        return
    rows = np.unique(np.concatenate(gathered))
    # As good as random: fingerprints in the order of other bits than those that lie first.
    compared = rows[np.argsort(rows * np.uint64(0x9E3779B97F4A7C15), kind="stable")][:_COMPARED_SAMPLE_ROWS]
    engine = BucketSearch((Band(0, 0),), max_distance)
    while True:
        pairs = 0
        for a, _, _ in engine.pairs(compared, 0):
            pairs += len(a)
            if pairs > _SAMPLE_PAIRS:
                break
        else:
            break
        # So many pairs among a quarter of the rows are a sixteenth of so many, and tell as much.
        compared = compared[: len(compared) // 4]
    values = [sum(len(some) for some in gathered), rows.tobytes(), len(compared), pairs]
    columns = [
        pa.array([value], kind) for value, kind in zip(values, (pa.int64(), pa.binary(), pa.int64(), pa.int64()), strict=True)
    ]
    yield pa.RecordBatch.from_arrays(columns, ["rows", "fingerprints", "compared", "pairs"])


def _in_batches(found: Iterable[tuple[Any, Any, Any]]) -> Iterator[pa.RecordBatch]:
    for columns in found:
        for start in range(0, len(columns[0]), _PAIR_ROWS):
            arrays = [pa.array(column[start : start + _PAIR_ROWS]) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, ["fingerprint_a", "fingerprint_b", "distance"])
