"""Which bits are compared when: bands, blocks, the first-agreement rule, and the cheapest cuts.

The whole search is one recursion. Let a *node* be a set of n fingerprints, R of whose bits are still to be looked at, and
t the *budget*: how many of those R bits two members may differ in. A node is done by comparing all pairs, or by cutting
its next block of w bits:

    search(n, R, t):   w = 0:  compare all pairs                                   n^2/2 comparisons
                       w > 0:  pairs that agree on the block:    2^w nodes         (n/2^w, R - w, t)
                               pairs that differ in the block:   the same rows in  (n,     R - w, t - 1)

A pair that differs in the block has spent at least one bit of its budget there; when the budget falls below zero nobody is
left. So every pair within the budget ends in a comparison (recall 1), and in exactly one, since it either agrees on a
block or does not: nothing is ever found twice. Unrolled, this is the choice of blocks of Manku, Jain and Das Sarma (2007,
"Detecting near-duplicates for web crawling", section 3), where b blocks of 64/b bits need C(b, k) tables: but here tables
share their sorting, each node picks the width that its own size deserves, and hot chunks are cut further than others.

The first cuts of the root are the *bands*: k + 1 of them are made by the shuffle, one copy of a fingerprint for each. The
pair belongs to its first agreeing band i, has differed in the i bands before, and so has a budget of k - i in the bits
after: the general pigeonhole principle of GPH (Qin et al. 2018, "GPH: similarity search in Hamming space", section 3).

    bits     63 ........... 54 53 ......... 45 44 ......... 36 35 ........................ 0
             [    band 0     ] [   band 1    ] [   band 2    ] [  blocks inside the chunks ]   k = 2
    budget           2                1               0

When no bits remain and the node is still large (the last bands of a billion fingerprints), the d blocks in which its pairs
are known to differ are cut once more, by halves. The bit that a pair must differ in there is paid for already, so it is
free to lie in either half; only a pair that differs in both has spent another one:

    search(n, 0, t, d):        pairs that agree on the first half:    2^h nodes         (n/2^h, 0, t,     d - 1)
                               pairs that agree on the second half:   2^h nodes         (n/2^h, 0, t,     d - 1)
                               pairs that differ in both:             the same rows in  (n,     0, t - 1, d - 1)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from simhash_udf.errors import SettingsError

LARGEST_DISTANCE = 12
WIDEST_BLOCK = 11

# What things cost on one core of an x86-64 machine, in nanoseconds.
COMPARE_NS = 0.32  # one pair of fingerprints, once a row has begun
BEGIN_NS = 2.3  # one row of a set that is compared with the rest of the set
SET_NS = 7.0  # one set of rows that are compared with each other
ROW_NS = (6.2, 5.0, 4.0, 3.0, 2.4)  # one row of a node that is cut, by 1, 2, 3, 4, more bits: few counters wait for each other
FAR_ROW_NS = 2.0  # in addition, where the node is larger than the cache
CACHED_ROWS = 1 << 19
BIN_NS = 3.5  # one bin of a node that is cut
NODE_NS = 40.0  # one node that is cut
HALF_BITS = 3  # of a block that differs, where its own width is not at hand
MOST_DIFFERING = 12

# Costs are tabulated for n = 2^(x/2 - 8): nodes are smaller than one row on average where bins outnumber rows.
SIZE_STEPS, SIZE_OFFSET = 2, 16
_SIZES = 2.0 ** ((np.arange(0, SIZE_STEPS * 44) - SIZE_OFFSET) / SIZE_STEPS)


@dataclass(frozen=True)
class Band:
    """`width` bits of a fingerprint, beginning `start` bits below the most significant one."""

    start: int
    width: int

    @property
    def end(self) -> int:
        """The first bit after the band, counted like `start`."""
        return self.start + self.width

    def mask(self, width: int = 64) -> int:
        """The bits of the band, in a fingerprint of `width` bits.

        >>> format(Band(1, 2).mask(8), "08b")
        '01100000'
        """
        return ((1 << self.width) - 1) << (width - self.end)

    def chunk(self, fingerprint: int, width: int = 64) -> int:
        """The value of the band's bits."""
        return (fingerprint & self.mask(width)) >> (width - self.end)


def first_agreement(a: int, b: int, bands: Sequence[Band], width: int = 64) -> int | None:
    """The band that owns a pair: the first in which the two agree, or None.

    >>> first_agreement(0b11110000, 0b01110000, equal_bands(1, 8), 8)
    1
    """
    return next((i for i, band in enumerate(bands) if (a ^ b) & band.mask(width) == 0), None)


def equal_bands(max_distance: int, width: int = 64) -> tuple[Band, ...]:
    """max_distance + 1 bands over all bits, whose widths differ by at most one.

    >>> [band.width for band in equal_bands(3, 64)], [band.width for band in equal_bands(2, 8)]
    ([16, 16, 16, 16], [2, 3, 3])
    """
    edges = [width * i // (max_distance + 1) for i in range(max_distance + 2)]
    return tuple(Band(start, end - start) for start, end in zip(edges, edges[1:], strict=False))


def check_distance(max_distance: int) -> None:
    """Raise SettingsError unless the search can promise every pair within `max_distance`."""
    whole = isinstance(max_distance, (int, np.integer)) and not isinstance(max_distance, bool)
    if not whole or not 0 <= max_distance <= LARGEST_DISTANCE:
        raise SettingsError(
            f"max_distance is {max_distance!r}; it must be a whole number of bits from 0 to {LARGEST_DISTANCE}: unrelated "
            "documents differ in about 32 bits, near-duplicates in fewer than 10"
        )


@dataclass(frozen=True)
class CutTable:
    """The cheapest cut of every node, and what it costs.

    Axes: budget (0 to max_distance), remaining bits (0 to width), differing (0 to MOST_DIFFERING, beyond is the same), and size.

    widths: int8 (budget, bits, differing, size): how many bits to cut; 0 is "compare all pairs". With no bits remaining, 1 cuts
        by halves of a block that differs.
    limits: int64 (budget, bits, differing): up to this many rows comparing all pairs is cheapest.
    nanoseconds, comparisons: float64, shaped like `widths`.
    """

    widths: npt.NDArray[np.int8]
    limits: npt.NDArray[np.int64]
    nanoseconds: npt.NDArray[np.float64]
    comparisons: npt.NDArray[np.float64]

    def cost(self, size: npt.ArrayLike, bits: int, budget: int, differing: int = 0) -> npt.NDArray[np.float64]:
        """Nanoseconds expected for a node of `size` uniform fingerprints, or for each of several sizes."""
        return _at(self.nanoseconds[budget, bits, min(differing, MOST_DIFFERING)], size)

    def compared(self, size: npt.ArrayLike, bits: int, budget: int, differing: int = 0) -> npt.NDArray[np.float64]:
        """Comparisons expected for such a node."""
        return _at(self.comparisons[budget, bits, min(differing, MOST_DIFFERING)], size)


def _at(row: npt.NDArray[np.float64], sizes: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A tabulated cost at any sizes, interpolated between powers of two."""
    n = np.asarray(sizes, np.float64)
    logs = np.interp(np.log(np.maximum(n, _SIZES[0])), np.log(_SIZES), np.log(np.maximum(row, 1e-12)))
    return np.where(n > 0, np.exp(logs), 0.0)


@lru_cache(maxsize=32)
def cut_table(max_distance: int, width: int = 64, new_share: float = 1.0) -> CutTable:
    """The cheapest cuts of all nodes of a search within `max_distance`, by dynamic programming over the recursion above.

    Args:
        max_distance: the largest budget.
        width: bits of a fingerprint.
        new_share: the share of rows, above 0, that are compared with all; the others only with these.
    """
    n, new = _SIZES, _SIZES * new_share
    shape = (max_distance + 1, width + 1, MOST_DIFFERING + 1, len(n))
    # Rows that begin a comparison: all new ones but the first of each set, the sets being Poisson distributed.
    begun = new * -np.expm1(-n) if new_share < 1 else n + np.expm1(-n)
    pairs = new * (n - new / 2)
    compare = SET_NS * (1 - np.exp(-n) * (1 + n)) * -np.expm1(-new) + BEGIN_NS * begun + COMPARE_NS * pairs
    reached = np.ones_like(n) if new_share == 1 else -np.expm1(-new)
    widths = np.zeros(shape, np.int8)
    nanoseconds, comparisons = np.broadcast_to(compare, shape).copy(), np.broadcast_to(pairs, shape).copy()

    def offer(bits: int, differing: slice | int, w: int, cost: npt.NDArray[Any], compared: npt.NDArray[Any]) -> None:
        better = cost < nanoseconds[:, bits, differing]
        widths[:, bits, differing][better] = w
        nanoseconds[:, bits, differing][better] = cost[better]
        comparisons[:, bits, differing][better] = compared[better]

    for differing in range(1, MOST_DIFFERING + 1):
        # A block that must differ: one half of it agrees, or the other, or both differ.
        halves, after = reached * _cut_ns(n, HALF_BITS), (slice(None), 0, differing - 1)
        cost = 2 * (halves + reached * _children(nanoseconds[after], HALF_BITS))
        compared = 2 * _children(comparisons[after], HALF_BITS)
        cost[1:] += nanoseconds[:-1, 0, differing - 1]
        compared[1:] += comparisons[:-1, 0, differing - 1]
        offer(0, differing, 1, cost, compared)
    more = [min(differing + 1, MOST_DIFFERING) for differing in range(MOST_DIFFERING + 1)]
    for bits in range(1, width + 1):
        for w in range(1, min(bits, WIDEST_BLOCK) + 1):
            cost = reached * (_cut_ns(n, w) + _children(nanoseconds[:, bits - w], w))
            compared = _children(comparisons[:, bits - w], w)
            cost[1:] += nanoseconds[:-1, bits - w][:, more]
            compared[1:] += comparisons[:-1, bits - w][:, more]
            offer(bits, slice(None), w, cost, compared)
    first = np.where(widths.any(axis=-1), (widths > 0).argmax(axis=-1), len(n) - 1)
    return CutTable(widths, np.floor(n[first]).astype(np.int64), nanoseconds, comparisons)


def share_class(new: int, rows: int) -> float:
    """The share of new rows rounded to a power of two, for which a table is made: no less than 2^-16.

    >>> share_class(1000, 1000), share_class(90, 10_000)
    (1.0, 0.0078125)
    """
    return 1.0 if new >= rows else 2.0 ** max(round(math.log2(new / rows)), -16)


def _cut_ns(n: npt.NDArray[np.float64], w: int) -> npt.NDArray[np.float64]:
    """What cutting n rows by w bits costs."""
    a_row = ROW_NS[min(w, len(ROW_NS)) - 1] + np.where(n > CACHED_ROWS, FAR_ROW_NS, 0.0)
    return np.asarray(n * a_row + BIN_NS * 2**w + NODE_NS, np.float64)


def _children(costs: npt.NDArray[np.float64], w: int) -> npt.NDArray[np.float64]:
    """The cost of 2^w nodes, each 2^w times smaller than the sizes of the table, along the last axis."""
    shift = SIZE_STEPS * w
    moved = np.empty_like(costs)
    moved[..., shift:] = costs[..., :-shift] * 2**w
    # Below the table only pairs matter, whose number falls with the square of the size.
    moved[..., :shift] = costs[..., :1] * 2.0**w * (_SIZES[:shift] / 2.0**w / _SIZES[0]) ** 2
    return moved
