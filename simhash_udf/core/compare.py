"""Comparing all rows of a small set with each other: where every search ends.

The fields of `state` let a comparison stop when its output is full, and go on in another call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit, types
from numba.extending import intrinsic

# The leaf at hand, rows pool[LOW:HIGH] of which the first NEW are new, how far its comparison is (rows A, A + STEP, ...), what is
# found so far, whether new rows are not to be compared with each other, and a row that came twice, if one did.
LEAF_LOW, LEAF_HIGH, LEAF_NEW, LEAF_A, LEAF_STEP, LEAF_B, LEAF_MASKS, FOUND, BETWEEN, COPY, HAS_COPY = range(11)
LEAF_FIELDS = 11

_DENSE_SHARE = 32  # one pair in so many is near in a dense node: finding these by cuts costs more than comparing all


@intrinsic
def bit_count(_: Any, word: Any) -> Any:
    """The number of ones of a 64-bit word, as the processor counts them."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True)
def next_near(pool: Any, begin: int, last: int, first: int, high: int, distance: int) -> int:
    """The first of the rows pool[begin:last] that is near one behind it in pool[first:high], or the row before it; -1 if none is.

    This is the hot loop of the search: few leaves have a pair, and few rows of these.
    """
    # The sign of any difference survives the OR, so no branch within a row depends on the data. Two rows meet all others at
    # once, which halves the loads; unsigned indices spare the test for negative ones.
    signs, beyond = np.int64(0), np.int64(distance + 1)
    a, end, one, two = np.uint64(begin), np.uint64(high), np.uint64(1), np.uint64(2)
    until, others = np.uint64(last), np.uint64(first)
    while a + one < until:
        upper, lower = pool[a], pool[a + one]
        signs = np.int64(0)
        if a + one >= others:
            signs = np.int64(bit_count(upper ^ lower)) - beyond
        for b in range(max(a + two, others), end):
            other = pool[b]
            signs |= (np.int64(bit_count(upper ^ other)) - beyond) | (np.int64(bit_count(lower ^ other)) - beyond)
        if signs < 0:
            return np.int64(a)
        a += two
    if a < until:
        signs = np.int64(0)
        upper = pool[a]
        for b in range(max(a + one, others), end):
            signs |= np.int64(bit_count(upper ^ pool[b])) - beyond
        if signs < 0:
            return np.int64(a)
    return -1


@njit(cache=True)
def is_dense(pool: Any, low: int, high: int, new: int, distance: int) -> bool:
    """Whether so many pairs of a node are near that comparing all costs less than finding them by cuts; from a sample."""
    size = np.uint64(high - low)
    pairs = 128 if size < 1 << 15 else 512
    near, state = 0, np.uint64(size)
    for _ in range(pairs):
        # A linear congruential generator (Knuth, MMIX): the same nodes are dense in every run.
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        a = (state >> np.uint64(33)) % np.uint64(new)
        state = state * np.uint64(6364136223846793005) + np.uint64(1442695040888963407)
        b = (state >> np.uint64(33)) % size
        if a != b and bit_count(pool[np.uint64(low) + a] ^ pool[np.uint64(low) + b]) <= np.uint64(distance):
            near += 1
    return near * _DENSE_SHARE >= pairs


@njit(cache=True)
def differs_in_all(difference: Any, masks: Any, count: int) -> bool:
    """Whether a pair differs in each of the first `count` masks; else it is found where the one it agrees on is cut off."""
    for i in range(count):
        if difference & masks[i] == 0:
            return False
    return True


@njit(cache=True)
def _owned(difference: Any, agreed: Any, masks: Any, count: int) -> bool:
    """Whether a pair agrees and differs where the node says, so that it is found here and nowhere else."""
    return difference & agreed == 0 and differs_in_all(difference, masks, count)


@njit(cache=True)
def compare_all(pool: Any, agreed: Any, masks: Any, distance: int, state: Any, out_a: Any, out_b: Any, out_d: Any) -> bool:
    """Report the pairs of the leaf that `state` names; False when the output is full before the leaf is done."""
    low, high, step = state[LEAF_LOW], state[LEAF_HIGH], state[LEAF_STEP]
    count, found, within = state[LEAF_MASKS], state[FOUND], np.uint64(distance)
    first_old = low + state[LEAF_NEW]
    last = min(first_old, high - 1)
    row_at, begin = low + state[LEAF_A], state[LEAF_B]
    others = first_old if state[BETWEEN] else low
    pending = 1 if begin > 0 else 0
    while row_at < last:
        if step == 1 and pending == 0:
            row_at = next_near(pool, row_at, last, others, high, distance)
            if row_at < 0:
                break
            # One of two rows is near another.
            pending = 2
        row = pool[row_at]
        for b in range(max(row_at + 1, others, begin), high):
            difference = row ^ pool[b]
            if difference == 0:
                state[COPY], state[HAS_COPY] = np.int64(row), 1
            elif bit_count(difference) <= within and _owned(difference, agreed, masks, count):
                if found == len(out_a):
                    state[FOUND], state[LEAF_A], state[LEAF_B] = found, row_at - low, b
                    return False
                x, y = np.int64(row), np.int64(pool[b])
                out_a[found], out_b[found] = min(x, y), max(x, y)
                out_d[found] = np.int32(bit_count(difference))
                found += 1
        begin = 0
        row_at += step
        pending = max(pending - 1, 0)
    state[FOUND] = found
    state[LEAF_A] = -1
    return True
