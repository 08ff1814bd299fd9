"""Fingerprints -> packed shares of buckets, each in the partition of the task that searches it.

A row of a shuffle costs Spark about half a microsecond, whatever is in it, and each fingerprint crosses the shuffle of a search
once for each band. So slices of a million fingerprints are sorted by bucket, and a bucket's share of a slice is sent as one
binary value: the shuffle then moves 8 bytes a copy at the speed of a copy.

A unit of work is a bucket, or a part of one that is too dear for a task; units are numbered by band, bucket and part.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.plan import SearchPlan
from simhash_udf.errors import InputError
from simhash_udf.stages.addresses import keys_of_tasks

SHARE_SCHEMA = "task INT, unit INT, new BOOLEAN, fingerprints BINARY"
_SLICE_ROWS = 1 << 20
_SHARE_BYTES = 1 << 20

Rows = npt.NDArray[np.uint64]


def fingerprint_column(frame: DataFrame) -> DataFrame:
    """The column `fingerprint` without its nulls.

    Raises:
        InputError: there is no BIGINT column of this name.
    """
    types = dict(frame.dtypes)
    if types.get("fingerprint") != "bigint":
        raise InputError(
            f"column fingerprint is {types.get('fingerprint', 'missing')}, among {sorted(types)}; it must be BIGINT, as the "
            "fingerprint stage writes it"
        )
    return frame.select("fingerprint").where(F.col("fingerprint").isNotNull())


def shuffled(new: DataFrame, plan: SearchPlan, old: DataFrame | None = None) -> DataFrame:
    """Packed shares of the rows (a column `fingerprint`), each in the partition of the task that searches its unit.

    Those of `old` have false in `new`.
    """
    keys = np.array(keys_of_tasks(plan.tasks), np.int32)[plan.task_of_unit]
    shares = new.mapInArrow(partial(_to_shares, plan=plan, keys=keys, new=True), SHARE_SCHEMA)
    if old is not None:
        shares = shares.unionAll(old.mapInArrow(partial(_to_shares, plan=plan, keys=keys, new=False), SHARE_SCHEMA))
    # A number and a column: adaptive execution leaves such a shuffle as it is.
    return shares.repartition(plan.tasks, "task")


def first_units_of(plan: SearchPlan) -> list[npt.NDArray[np.int64]]:
    """For each band, the first unit of each of its buckets, and the first after the band."""
    parts = [np.array(band, np.int64) for band in plan.parts]
    before = np.cumsum([0, *(band.sum() for band in parts)])
    return [first + np.concatenate([[0], np.cumsum(band)]) for first, band in zip(before, parts, strict=False)]


def _to_shares(
    batches: Iterator[pa.RecordBatch], *, plan: SearchPlan, keys: npt.NDArray[np.int32], new: bool
) -> Iterator[pa.RecordBatch]:
    """Slices of an input partition, sorted by bucket, each bucket's share packed into binary values of bounded size."""
    units = first_units_of(plan)
    for rows in slices(batches, _SLICE_ROWS):
        for band in range(len(plan.bands)):
            yield from _shares_of_band(rows, new, band, plan, units[band], keys)


def slices(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[Rows]:
    """The fingerprints of batches of any size, in pieces of so many rows, the last of fewer."""
    gathered: list[Rows] = []
    size = 0
    for batch in batches:
        some = fingerprints_of(batch)
        while size + len(some) >= rows:
            yield np.concatenate([*gathered, some[: rows - size]])
            some, gathered, size = some[rows - size :], [], 0
        if len(some):
            gathered.append(some)
            size += len(some)
    if size:
        yield np.concatenate(gathered)


def fingerprints_of(batch: pa.RecordBatch) -> Rows:
    """The first column of a batch."""
    rows: Rows = batch.column(0).to_numpy(zero_copy_only=False).view(np.uint64)
    return rows


def _shares_of_band(
    rows: Rows,
    new: bool,
    index: int,
    plan: SearchPlan,
    first_units: npt.NDArray[np.int64],
    keys: npt.NDArray[np.int32],
) -> Iterator[pa.RecordBatch]:
    from simhash_udf.core.cuts import partition

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
    # Arrow offsets have 32 bits: a slice holds far fewer bytes.
    data = pa.LargeBinaryArray.from_buffers(
        pa.large_binary(), len(starts), [None, pa.py_buffer(offsets.astype(np.int64)), pa.py_buffer(ordered)]
    ).cast(pa.binary())
    # Every part of a bucket gets all its rows: a batch for the first parts, one for the second of those that have one, and so on.
    copies = first_units[bucket + 1] - first_units[bucket]
    for part in range(int(copies.max(initial=0))):
        shares = np.flatnonzero(copies > part)
        unit = first_units[bucket[shares]] + part
        some = data if len(shares) == len(starts) else data.take(pa.array(shares))
        columns = [pa.array(keys[unit]), pa.array(unit.astype(np.int32)), pa.array(np.full(len(unit), new)), some]
        yield pa.RecordBatch.from_arrays(columns, ["task", "unit", "new", "fingerprints"])
