"""Distinct fingerprints -> all pairs within a Hamming distance, or edges that connect the same fingerprints.

    fingerprints --mapInArrow--> few rows, each a packed slice of one bucket --shuffle--> one task a group of buckets
                 --mapInArrow--> pairs

A row of the shuffle costs Spark about half a microsecond, whatever is in it, and each fingerprint crosses the shuffle k + 1
times. So the first pass sorts slices of a million fingerprints by bucket and sends a bucket's share of a slice as one
binary value: the shuffle then moves 8 bytes a copy at the speed of a copy. The second pass joins the shares of each bucket
and searches it (core/search.py). Nothing is exchanged between tasks afterwards: a pair has exactly one bucket that
reports it, so there is no global distinct.

A bucket is a band's index and the first bits of its chunk. Buckets are dealt to tasks by their expected cost, and a task is
addressed by a number that Spark's own hash partitioning sends there; were that hash ever to change, tasks would be less even,
and the result the same.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.blocks import check_distance
from simhash_udf.core.plan import SearchPlan, plan_search
from simhash_udf.errors import InputError, SettingsError

__all__ = ["PAIR_SCHEMA", "search"]

PAIR_SCHEMA = "fingerprint_a BIGINT, fingerprint_b BIGINT, distance INT"
_SHARE_SCHEMA = "task INT, bucket INT, fingerprints BINARY"
_SLICE_ROWS = 1 << 20
_SHARE_BYTES = 1 << 20
_PAIR_ROWS = 1 << 16


def search(fingerprints: DataFrame, max_distance: int, *, spanning: bool = False, plan: SearchPlan | None = None) -> DataFrame:
    """Every pair of fingerprints that differ in at most `max_distance` bits, each once.

    Args:
        fingerprints: a column `fingerprint` BIGINT (two's complement), distinct; nulls match nothing, other columns are
            ignored. They are counted first if no plan is given.
        max_distance: 0 to 12. Distinct fingerprints have no pair at distance 0.
        spanning: edges that connect the same fingerprints as all pairs do, fewer than the rows of a task, instead of all
            pairs. Each is a pair within the distance; which ones, depends on the plan alone.
        plan: from `plan_search`, for this distance.

    Returns:
        `fingerprint_a` BIGINT < `fingerprint_b` BIGINT (as signed numbers), `distance` INT of at least 1.

    Raises:
        InputError: there is no BIGINT column `fingerprint`.
        SettingsError: the distance is out of range, or the plan is for another one.
    """
    check_distance(max_distance)
    rows = _fingerprint_column(fingerprints)
    if plan is None:
        plan = plan_search(rows.count(), max_distance)
    if plan.max_distance != max_distance:
        raise SettingsError(
            f"the plan is for max_distance {plan.max_distance}, but the search is for {max_distance}; make a plan for it"
        )
    shares = rows.mapInArrow(partial(_to_shares, plan=plan, addresses=_addresses(plan)), _SHARE_SCHEMA)
    # A number and a column: adaptive execution leaves such a shuffle as it is.
    return shares.repartition(plan.tasks, "task").mapInArrow(partial(_search_shares, plan=plan, spanning=spanning), PAIR_SCHEMA)


def _fingerprint_column(frame: DataFrame) -> DataFrame:
    types = dict(frame.dtypes)
    if types.get("fingerprint") != "bigint":
        raise InputError(
            f"column fingerprint is {types.get('fingerprint', 'missing')}, among {sorted(types)}; it must be BIGINT, as the "
            "fingerprint stage writes it"
        )
    return frame.select("fingerprint").where(F.col("fingerprint").isNotNull())


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


def _addresses(plan: SearchPlan) -> list[npt.NDArray[np.int32]]:
    """For each band and each of its buckets, the key of the task that searches it: dealt out, the dearest buckets first."""
    keys = _keys_of_tasks(plan.tasks)
    loads = [(0.0, task) for task in range(plan.tasks)]
    addresses = [np.empty(1 << bits, np.int32) for bits in plan.shared_bits]
    for cost, band in sorted(((cost, band) for band, cost in enumerate(plan.bucket_nanoseconds)), reverse=True):
        for bucket in range(len(addresses[band])):
            load, task = heapq.heappop(loads)
            addresses[band][bucket] = keys[task]
            heapq.heappush(loads, (load + cost, task))
    return addresses


def _to_shares(
    batches: Iterator[pa.RecordBatch], *, plan: SearchPlan, addresses: list[npt.NDArray[np.int32]]
) -> Iterator[pa.RecordBatch]:
    """Slices of an input partition, sorted by bucket, each bucket's share packed into binary values of bounded size."""
    for rows in _slices(batches):
        for band in range(len(plan.bands)):
            yield from _shares_of_band(rows, band, plan, addresses[band])


def _slices(batches: Iterator[pa.RecordBatch]) -> Iterator[npt.NDArray[np.uint64]]:
    gathered: list[npt.NDArray[np.uint64]] = []
    size = 0
    for batch in batches:
        gathered.append(batch.column(0).to_numpy(zero_copy_only=False).view(np.uint64))
        size += batch.num_rows
        if size >= _SLICE_ROWS:
            yield np.concatenate(gathered)
            gathered, size = [], 0
    if size:
        yield np.concatenate(gathered)


def _shares_of_band(
    rows: npt.NDArray[np.uint64], index: int, plan: SearchPlan, keys: npt.NDArray[np.int32]
) -> Iterator[pa.RecordBatch]:
    from simhash_udf.core.search import partition

    bits = plan.shared_bits[index]
    first = sum(1 << before for before in plan.shared_bits[:index])
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
    )
    columns = [pa.array(keys[bucket]), pa.array((first + bucket).astype(np.int32)), data.cast(pa.binary())]
    yield pa.RecordBatch.from_arrays(columns, ["task", "bucket", "fingerprints"])


def _search_shares(batches: Iterator[pa.RecordBatch], *, plan: SearchPlan, spanning: bool) -> Iterator[pa.RecordBatch]:
    """Join the shares of each bucket of this task, and search one bucket after the other."""
    from simhash_udf.core.search import BucketSearch

    shares: dict[int, list[Any]] = {}
    for batch in batches:
        for bucket, packed in zip(batch.column(1).to_pylist(), batch.column(2), strict=True):
            shares.setdefault(bucket, []).append(np.frombuffer(packed.as_buffer(), "<u8"))
    engine = BucketSearch(plan.bands, plan.max_distance, spanning=spanning)
    firsts = np.concatenate([[0], np.cumsum([1 << bits for bits in plan.shared_bits])])
    for bucket in sorted(shares):
        rows = np.concatenate(shares.pop(bucket))
        if spanning:
            # Shares arrive in any order, and the order of rows decides which edges are found.
            rows.sort()
        band = int(np.searchsorted(firsts, bucket, side="right")) - 1
        yield from _in_batches(engine.pairs(rows, band, plan.shared_bits[band]))


def _in_batches(found: Iterable[tuple[Any, Any, Any]]) -> Iterator[pa.RecordBatch]:
    for columns in found:
        for start in range(0, len(columns[0]), _PAIR_ROWS):
            arrays = [pa.array(column[start : start + _PAIR_ROWS]) for column in columns]
            yield pa.RecordBatch.from_arrays(arrays, ["fingerprint_a", "fingerprint_b", "distance"])
