"""Cutting a set of rows by a block of bits: a stable counting sort, and which block to cut by."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from simhash_udf.core.blocks import SIZE_OFFSET, SIZE_STEPS, WIDEST_BLOCK
from simhash_udf.core.compare import bit_count


@njit(cache=True)
def count_bins(rows: Any, shift: int, width: int, ends: Any) -> None:
    """Where each of the 2^width bins of the rows begins."""
    low, mask = np.uint64(shift), np.uint64((1 << width) - 1)
    bins = 1 << width
    for i in range(bins + 1):
        ends[i] = 0
    for i in range(len(rows)):
        ends[np.int64((rows[i] >> low) & mask) + 1] += 1
    for i in range(1, bins):
        ends[i] += ends[i - 1]


@njit(cache=True)
def the_only_bin(row: Any, size: int, shift: int, width: int, ends: Any) -> int:
    """The bin that all rows are in, where they are in one, else -1; ends as `count_bins` left them, and any of the rows."""
    key = np.int64((row >> np.uint64(shift)) & np.uint64((1 << width) - 1))
    end = ends[key + 1] if key + 1 < 1 << width else size
    return key if ends[key] == 0 and end == size else np.int64(-1)


@njit(cache=True)
def place(rows: Any, out: Any, shift: int, width: int, ends: Any) -> None:
    """Put each row where its bin goes on, and move that on."""
    low, mask = np.uint64(shift), np.uint64((1 << width) - 1)
    for i in range(len(rows)):
        row = rows[i]
        key = np.int64((row >> low) & mask)
        out[ends[key]] = row
        ends[key] += 1


@njit(cache=True)
def partition(rows: Any, out: Any, shift: int, width: int, ends: Any) -> None:
    """Sort rows by `width` bits from `shift` up into `out`, stably; afterwards bin i ends at ends[i]."""
    count_bins(rows, shift, width, ends)
    place(rows, out, shift, width, ends)


@njit(cache=True)
def partition_with(labels: Any, out: Any, rows: Any, shift: int, width: int, ends: Any) -> None:
    """Bring labels into the order that `partition` gave to the rows; ends as `partition` left them, and again after."""
    low, mask = np.uint64(shift), np.uint64((1 << width) - 1)
    for i in range(len(rows) - 1, -1, -1):
        key = np.int64((rows[i] >> low) & mask)
        ends[key] -= 1
        out[ends[key]] = labels[i]
    # Each end is now its bin's begin, which is the end of the bin before.
    bins = 1 << width
    for i in range(bins - 1):
        ends[i] = ends[i + 1]
    ends[bins - 1] = len(rows)


@njit(cache=True)
def width_of(size: int, remaining: int, budget: int, differing: int, widths: Any, limits: Any) -> int:
    """How many bits to cut a node by; 0 is to compare all its pairs."""
    if size <= limits[budget, remaining, differing]:
        return 0
    step = np.int64(np.rint(SIZE_STEPS * np.log2(np.float64(size)))) + SIZE_OFFSET
    return np.int64(widths[budget, remaining, differing, min(step, widths.shape[3] - 1)])


@njit(cache=True)
def block_mask(at: int, width: int, bits: int) -> Any:
    """The mask of `width` bits that begin `at` bits below the most significant one."""
    return np.uint64((1 << width) - 1) << np.uint64(bits - at - width)


@njit(cache=True)
def halves_of(block: Any) -> Any:
    """The upper and the lower half of a block of at least two bits, as (mask, mask)."""
    lowest = block & (~block + np.uint64(1))
    lower = lowest * ((np.uint64(1) << (bit_count(block) // np.uint64(2))) - np.uint64(1))
    return block & ~lower, lower


@njit(cache=True)
def root_width(size: int, agree: int) -> int:
    """How many bits to cut at once while the band itself is being agreed on."""
    width = 1
    while width < min(agree, WIDEST_BLOCK) and 1 << width < size:
        width += 1
    return width
