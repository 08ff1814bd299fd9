"""How a search will run: its bands, buckets and tasks, and what it is expected to cost, before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from simhash_udf.core.blocks import FAR_ROW_NS, ROW_NS, Band, check_distance, cut_table
from simhash_udf.errors import SettingsError

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
            (1 << band.width) * table.compared(self.rows / (1 << band.width), 64 - band.end, self.max_distance - i, i)
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
            _band_ns(self.rows, band, self.max_distance - i, self.max_distance) / (1 << shared)
            for i, (band, shared) in enumerate(zip(self.bands, self.shared_bits, strict=True))
        )

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole search, on `cores` cores like those the constants were measured on."""
        searching = sum(ns * (1 << shared) for ns, shared in zip(self.bucket_nanoseconds, self.shared_bits, strict=True))
        moving = self.rows * INPUT_NS + self.rows_shuffled * SHUFFLE_NS + self.tasks * TASK_NS
        return (START_NS + (searching + moving) / min(self.cores, self.tasks)) / 1e9


def _band_ns(rows: float, band: Band, budget: int, max_distance: int) -> float:
    chunks = 1 << band.width
    grouping = rows * (ROW_NS[-1] + FAR_ROW_NS) if band.width else 0.0
    return grouping + chunks * cut_table(max_distance).cost(rows / chunks, 64 - band.end, budget, max_distance - budget)


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
            choices.append((_band_ns(rows, Band(64 - bits, w), budget, max_distance) + rest, (w, *widths)))
        return min(choices)

    return best(64, max_distance)[1]
