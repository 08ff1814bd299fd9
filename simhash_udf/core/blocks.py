"""Which bits are compared when: bands, blocks, the first-agreement rule, and what a plan costs.

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
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

import numpy as np
import numpy.typing as npt

from simhash_udf.errors import SettingsError

LARGEST_DISTANCE = 12
WIDEST_BLOCK = 11

# What things cost on one core of an x86-64 machine, in nanoseconds; the last four are coarse.
COMPARE_NS = 0.32  # one pair of fingerprints, once a row has begun
BEGIN_NS = 2.3  # one row of a set that is compared with the rest of the set
SET_NS = 7.0  # one set of rows that are compared with each other
ROW_NS = (6.2, 5.0, 4.0, 3.0, 2.4)  # one row of a node that is cut, by 1, 2, 3, 4, more bits: few counters wait for each other
FAR_ROW_NS = 2.0  # in addition, where the node is larger than the cache
CACHED_ROWS = 1 << 19
BIN_NS = 3.5  # one bin of a node that is cut
NODE_NS = 40.0  # one node that is cut
SHUFFLE_NS = 60.0  # one copy of a fingerprint through the shuffle
INPUT_NS = 250.0  # one fingerprint read and handed to Python
TASK_NS = 60e6  # one task
START_NS = 3e9  # starting Python workers

ROWS_PER_TASK = 2_000_000
FEWEST_TASKS = 16
BUCKETS_PER_TASK = 8
MOST_SHARED_BITS = 11  # so that the slices of a bucket are no tiny rows
ONE_BUCKET_NS = 0.4e9  # a search that is shorter than this is not worth a shuffle by bands
LARGEST_CHUNK = 16_000_000

# Costs are tabulated for n = 2^(x/2 - 8): nodes are smaller than one row on average where bins outnumber rows.
_STEPS, _OFFSET = 2, 16
_SIZES = 2.0 ** ((np.arange(0, _STEPS * 44) - _OFFSET) / _STEPS)


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

    widths: int8 (max_distance + 1, width + 1, sizes): by budget, remaining bits and size; 0 is "compare all pairs".
    limits: int64 (max_distance + 1, width + 1): up to this many rows comparing all pairs is cheapest.
    nanoseconds, comparisons: float64, shaped like `widths`.
    """

    widths: npt.NDArray[np.int8]
    limits: npt.NDArray[np.int64]
    nanoseconds: npt.NDArray[np.float64]
    comparisons: npt.NDArray[np.float64]

    def cost(self, size: float, bits: int, budget: int) -> float:
        """Nanoseconds expected for a node of `size` uniform fingerprints."""
        return _at(self.nanoseconds[budget, bits], size)

    def compared(self, size: float, bits: int, budget: int) -> float:
        """Comparisons expected for such a node."""
        return _at(self.comparisons[budget, bits], size)


def _at(row: npt.NDArray[np.float64], size: float) -> float:
    """A tabulated cost at any size, interpolated between powers of two."""
    if size <= 0:
        return 0.0
    return float(np.exp(np.interp(math.log(size), np.log(_SIZES), np.log(np.maximum(row, 1e-12)))))


@lru_cache(maxsize=32)
def cut_table(max_distance: int, width: int = 64) -> CutTable:
    """The cheapest cuts of all nodes of a search within `max_distance`, by dynamic programming over the recursion above."""
    n, sizes = _SIZES, len(_SIZES)
    widths = np.zeros((max_distance + 1, width + 1, sizes), np.int8)
    # Rows that begin a comparison: all but the first of each set, the sets being Poisson distributed.
    compare = SET_NS * (1 - np.exp(-n) * (1 + n)) + BEGIN_NS * (n + np.expm1(-n)) + COMPARE_NS * n * n / 2
    nanoseconds = np.broadcast_to(compare, widths.shape).copy()
    comparisons = np.broadcast_to(n * n / 2, widths.shape).copy()
    for bits in range(1, width + 1):
        for budget in range(max_distance + 1):
            for w in range(1, min(bits, WIDEST_BLOCK) + 1):
                cost = _cut_ns(n, w) + _children(nanoseconds[budget, bits - w], w)
                compared = _children(comparisons[budget, bits - w], w)
                if budget:
                    cost += nanoseconds[budget - 1, bits - w]
                    compared += comparisons[budget - 1, bits - w]
                better = cost < nanoseconds[budget, bits]
                widths[budget, bits][better] = w
                nanoseconds[budget, bits][better] = cost[better]
                comparisons[budget, bits][better] = compared[better]
    first = np.where(widths.any(axis=2), (widths > 0).argmax(axis=2), sizes - 1)
    return CutTable(widths, np.floor(n[first]).astype(np.int64), nanoseconds, comparisons)


def _cut_ns(n: npt.NDArray[np.float64], w: int) -> npt.NDArray[np.float64]:
    """What cutting n rows by w bits costs."""
    a_row = ROW_NS[min(w, len(ROW_NS)) - 1] + np.where(n > CACHED_ROWS, FAR_ROW_NS, 0.0)
    return np.asarray(n * a_row + BIN_NS * 2**w + NODE_NS, np.float64)


def _children(row: npt.NDArray[np.float64], w: int) -> npt.NDArray[np.float64]:
    """The cost of 2^w nodes, each 2^w times smaller than the sizes of the table."""
    shift = _STEPS * w
    moved = np.empty_like(row)
    moved[shift:] = row[:-shift] * 2**w
    # Below the table only pairs matter, whose number falls with the square of the size.
    moved[:shift] = row[0] * 2.0**w * (_SIZES[:shift] / 2.0**w / _SIZES[0]) ** 2
    return moved


@dataclass(frozen=True)
class SearchPlan:
    """How a search will run, and what it is expected to cost on uniform fingerprints.

    rows: distinct fingerprints.
    max_distance: pairs differ in at most so many bits.
    bands: one copy of each fingerprint is shuffled for each. A single `Band(0, 0)` means one bucket with all rows.
    shared_bits: for each band, how many of its first bits name the bucket.
    tasks: of the shuffle.
    cores: that work at the same time, for `seconds`.
    """

    rows: int
    max_distance: int
    bands: tuple[Band, ...]
    shared_bits: tuple[int, ...]
    tasks: int
    cores: int = 2

    @property
    def buckets(self) -> int:
        """Buckets of all bands; each is searched by one task."""
        return sum(1 << bits for bits in self.shared_bits)

    @property
    def rows_shuffled(self) -> int:
        """Copies of fingerprints that are shuffled."""
        return self.rows * len(self.bands)

    @property
    def bytes_shuffled(self) -> int:
        """Bytes of these copies; the rows that carry them add less than a hundredth."""
        return 8 * self.rows_shuffled

    @property
    def comparisons(self) -> float:
        """Expected comparisons of two fingerprints."""
        return math.fsum(
            (1 << band.width) * table.compared(self.rows / (1 << band.width), 64 - band.end, self.max_distance - i)
            for table in [cut_table(self.max_distance)]
            for i, band in enumerate(self.bands)
        )

    @property
    def chance_pairs(self) -> float:
        """Pairs of unrelated fingerprints expected within the distance: rows^2 / 2 * P(Binomial(64, 1/2) <= distance)."""
        near = sum(math.comb(64, d) for d in range(self.max_distance + 1)) / 2.0**64
        return self.rows * (self.rows - 1) / 2 * near

    @property
    def bucket_nanoseconds(self) -> tuple[float, ...]:
        """For each band, the expected nanoseconds that one of its buckets takes."""
        return tuple(
            _band_ns(self.rows, band, 64 - band.end, self.max_distance - i, self.max_distance) / (1 << shared)
            for i, (band, shared) in enumerate(zip(self.bands, self.shared_bits, strict=True))
        )

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole search, on `cores` cores like those the constants were measured on."""
        searching = sum(ns * (1 << shared) for ns, shared in zip(self.bucket_nanoseconds, self.shared_bits, strict=True))
        moving = self.rows * INPUT_NS + self.rows_shuffled * SHUFFLE_NS + self.tasks * TASK_NS
        return (START_NS + (searching + moving) / min(self.cores, self.tasks)) / 1e9


def _band_ns(rows: float, band: Band, bits: int, budget: int, max_distance: int) -> float:
    chunks = 1 << band.width
    grouping = rows * (ROW_NS[-1] + FAR_ROW_NS) if band.width else 0.0
    return grouping + chunks * cut_table(max_distance).cost(rows / chunks, bits, budget)


def plan_search(
    rows: int, max_distance: int, *, cores: int = 2, tasks: int | None = None, band_widths: Sequence[int] | None = None
) -> SearchPlan:
    """Choose bands, buckets and tasks for `rows` distinct fingerprints.

    Args:
        rows: distinct fingerprints, or an estimate: the result is complete whatever it is.
        max_distance: pairs differ in at most so many bits, 0 to 12.
        cores: that the job has.
        tasks: of the shuffle; chosen where not given.
        band_widths: max_distance + 1 widths of at most 64 bits together, or (0,) for one bucket; chosen where not given.

    Raises:
        SettingsError: an argument is out of its range.

    >>> plan = plan_search(10_000_000, 3)
    >>> len(plan.bands), plan.rows_shuffled, plan.bytes_shuffled
    (4, 40000000, 320000000)
    """
    check_distance(max_distance)
    for name, value, least in (("rows", rows, 0), ("cores", cores, 1), ("tasks", 1 if tasks is None else tasks, 1)):
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise SettingsError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    widths = _band_widths(rows, max_distance) if band_widths is None else _checked_widths(band_widths, max_distance)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    bands = tuple(Band(int(start), int(w)) for start, w in zip(starts, widths, strict=True))
    if tasks is None:
        tasks = 1 if widths == (0,) else max(FEWEST_TASKS, math.ceil(rows * len(bands) / ROWS_PER_TASK))
    bits = math.ceil(math.log2(max(1.0, BUCKETS_PER_TASK * tasks / len(bands))))
    shared = tuple(min(bits, w, MOST_SHARED_BITS) for w in widths)
    return SearchPlan(int(rows), int(max_distance), bands, shared, int(tasks), int(cores))


def _checked_widths(widths: Sequence[int], max_distance: int) -> tuple[int, ...]:
    cut = tuple(int(w) for w in widths)
    if cut != (0,) and (len(cut) != max_distance + 1 or min(cut) < 1 or sum(cut) > 64):
        raise SettingsError(
            f"band_widths are {cut}; within {max_distance} bits there must be {max_distance + 1} bands of at least one bit, "
            "of at most 64 bits together, or (0,) for no bands"
        )
    return cut


def _band_widths(rows: int, max_distance: int) -> tuple[int, ...]:
    """The widths with the least expected cost, by the recursion at the head with the shuffle as its cut."""
    table = cut_table(max_distance)
    if max_distance == 0 or (rows <= ROWS_PER_TASK and table.cost(rows, 64, max_distance) <= ONE_BUCKET_NS):
        return (0,)
    least = min(64 // (max_distance + 1), max(4, math.ceil(math.log2(rows / LARGEST_CHUNK))))

    @cache
    def best(bits: int, budget: int) -> tuple[float, tuple[int, ...]]:
        if budget < 0:
            return 0.0, ()
        choices = []
        for w in range(least, min(24, bits - least * budget) + 1):
            rest, widths = best(bits - w, budget - 1)
            choices.append((_band_ns(rows, Band(64 - bits, w), bits - w, budget, max_distance) + rest, (w, *widths)))
        return min(choices)

    return best(64, max_distance)[1]
