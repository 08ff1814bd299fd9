"""How a search will run: its bands, buckets and tasks, and what it is expected to cost, before it runs.

Buckets are priced by the rows that a sample shows in each (spread.py). They are dealt to tasks by price, and one that is dearer
than a task should be is shared by several. The result is complete whatever the sample says; only its cost depends on it.
"""

from __future__ import annotations

import heapq
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from simhash_udf.core.blocks import Band, check_distance, cut_table, share_class
from simhash_udf.core.search import bytes_to_search
from simhash_udf.core.spread import MOST_HOT_CHUNKS, Floats, HotChunk, PricedBand, Rows, Spread
from simhash_udf.errors import SettingsError

# What a search costs beside the comparing and cutting that blocks.py prices, between what benchmarks/search.py measured on two
# cores of a machine at two times at which its speed differed by up to two.
SHUFFLE_NS = 200.0  # one copy of a fingerprint, sorted by bucket, packed, shuffled and joined
INPUT_NS = 160.0  # one fingerprint read, counted, sampled and handed to Python
PAIR_NS = 800.0  # one pair, met in several nodes, handed back and written
TASK_NS = 24e6  # one task
START_NS = 1.8e9  # the jobs of a search, whatever they do

ROWS_PER_TASK = 2_000_000
TASK_SEARCH_NS = 2e9  # a task need not search longer, where there are buckets enough
FEWEST_TASKS, MOST_TASKS = 16, 50_000
BUCKETS_PER_TASK = 8
MOST_SHARED_BITS = 11  # so that the slices of a bucket are no tiny rows
ONE_BUCKET_NS = 0.4e9  # a search that is shorter than this is not worth a shuffle by bands
LARGEST_CHUNK = 16_000_000
WIDEST_BAND = 24
MOST_PARTS = 64  # of one bucket
PART_NS = 0.2e9  # a part that is shorter than this is not worth the trouble
MOST_COPIES = 2.0  # rows that parts may add to the shuffle, for each that is there without


@dataclass(frozen=True, eq=False)
class Sample:
    """Some of a set of distinct fingerprints, each taken with the same chance, and what was found among them.

    rows: distinct fingerprints of the whole set.
    fingerprints: uint64 of shape (n,), the sample.
    near_pairs: pairs within the distance to be expected in the whole set, from those in the sample.
    """

    rows: int
    fingerprints: Rows
    near_pairs: float = 0.0


@dataclass(frozen=True)
class SearchPlan:
    """How a search will run, and what it is expected to cost.

    rows: distinct fingerprints.
    new_rows: how many of them are compared with all; the others only with these.
    max_distance: pairs differ in at most so many bits.
    bands: one copy of each fingerprint is shuffled for each. A single `Band(0, 0)` means one bucket with all rows.
    shared_bits: for each band, how many of its first bits name the bucket.
    parts: for each band, how many tasks share each of its buckets.
    bucket_rows, bucket_nanoseconds: for each band, the expected rows of its buckets, and what searching them takes.
    tasks: of the shuffle.
    cores: that work at the same time, for `seconds`.
    comparisons: expected comparisons of two fingerprints.
    near_pairs: expected pairs, of the sample's kind and by chance.
    spanning: edges that connect are searched, not all pairs.
    hot_chunks: the hottest first.
    """

    rows: int
    new_rows: int
    max_distance: int
    bands: tuple[Band, ...]
    shared_bits: tuple[int, ...]
    parts: tuple[tuple[int, ...], ...]
    bucket_rows: tuple[tuple[float, ...], ...]
    bucket_nanoseconds: tuple[tuple[float, ...], ...]
    tasks: int
    cores: int
    comparisons: float
    near_pairs: float
    spanning: bool
    hot_chunks: tuple[HotChunk, ...]

    @cached_property
    def task_of_unit(self) -> npt.NDArray[np.int64]:
        """The task that does each unit; units are numbered by band, bucket and part. Dealt out, the dearest first."""
        return self._dealt[0]

    @property
    def task_nanoseconds(self) -> Floats:
        """What the units of each task are expected to take."""
        return self._dealt[1]

    @cached_property
    def _dealt(self) -> tuple[npt.NDArray[np.int64], Floats]:
        parts = np.concatenate([np.array(band, np.int64) for band in self.parts])
        costs = np.repeat(np.concatenate([np.array(band) for band in self.bucket_nanoseconds]) / parts, parts)
        loads = [(0.0, task) for task in range(self.tasks)]
        tasks, nanoseconds = np.empty(len(costs), np.int64), np.zeros(self.tasks)
        for unit in np.argsort(-costs, kind="stable"):
            load, task = heapq.heappop(loads)
            tasks[unit], nanoseconds[task] = task, load + costs[unit]
            heapq.heappush(loads, (load + costs[unit], task))
        return tasks, nanoseconds

    @property
    def rows_shuffled(self) -> int:
        """Copies of fingerprints that are shuffled; none at distance 0, since distinct fingerprints have no pair there."""
        if self.max_distance == 0:
            return 0
        shared = sum(
            rows * (parts - 1)
            for band_rows, band_parts in zip(self.bucket_rows, self.parts, strict=True)
            for rows, parts in zip(band_rows, band_parts, strict=True)
        )
        return self.rows * len(self.bands) + round(shared)

    @property
    def bytes_shuffled(self) -> int:
        """Bytes of these copies; the rows that carry them add less than a hundredth."""
        return 8 * self.rows_shuffled

    @property
    def task_bytes(self) -> int:
        """The memory that a task needs for fingerprints: all of its own, and room to search its largest bucket."""
        if self.max_distance == 0:
            return 0
        largest = max((max(rows, default=0.0) for rows in self.bucket_rows), default=0.0)
        return round(8 * max(self.rows_shuffled / self.tasks, largest) + bytes_to_search(largest, self.spanning))

    @property
    def chance_pairs(self) -> float:
        """Pairs of unrelated fingerprints expected within the distance: rows^2 / 2 * P(Binomial(64, 1/2) <= distance)."""
        near = sum(math.comb(64, d) for d in range(self.max_distance + 1)) / 2.0**64
        old = self.rows - self.new_rows
        return (self.rows * (self.rows - 1) / 2 - old * (old - 1) / 2) * near

    @property
    def _moving_ns(self) -> float:
        pairs = min(self.near_pairs, self.rows_shuffled) if self.spanning else self.near_pairs
        return self.rows * INPUT_NS + self.rows_shuffled * SHUFFLE_NS + pairs * PAIR_NS + self.tasks * TASK_NS

    @property
    def core_seconds(self) -> float:
        """Expected seconds of work on one core like those the constants were measured on."""
        return (float(self.task_nanoseconds.sum()) + self._moving_ns) / 1e9

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole search on `cores` such cores, none of which can do more than one task at once."""
        searching = max(float(self.task_nanoseconds.sum()) / self.cores, float(self.task_nanoseconds.max()))
        return (START_NS + searching + self._moving_ns / min(self.cores, self.tasks)) / 1e9


def plan_search(
    rows: int,
    max_distance: int,
    *,
    new_rows: int | None = None,
    sample: Sample | None = None,
    spanning: bool = False,
    cores: int = 2,
    tasks: int | None = None,
    band_widths: Sequence[int] | None = None,
) -> SearchPlan:
    """Choose bands, buckets and tasks for `rows` distinct fingerprints.

    Args:
        rows: distinct fingerprints, or an estimate: the result is complete whatever it is.
        max_distance: pairs differ in at most so many bits, 0 to 12.
        new_rows: how many of the rows are compared with all, the others only with these; all of them where not given.
        sample: of the rows; where not given they count as evenly spread.
        spanning: the search is for edges that connect, not for all pairs.
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
    new = rows if new_rows is None else new_rows
    given = (("rows", rows, 0), ("new_rows", new, 0), ("cores", cores, 1), ("tasks", 1 if tasks is None else tasks, 1))
    for name, value, least in given:
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
            raise SettingsError(f"{name} is {value!r}; it must be a whole number of at least {least}")
    table = cut_table(max_distance, 64, share_class(max(new, 1), max(rows, 1)))
    spread = Spread(rows, max_distance, None if sample is None else sample.fingerprints, table, spanning)
    widths = _band_widths(spread) if band_widths is None else _checked_widths(band_widths, max_distance)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    bands = tuple(Band(int(start), int(w)) for start, w in zip(starts, widths, strict=True))
    if tasks is None:
        searching = sum(spread.band_ns(band, max_distance - i) for i, band in enumerate(bands))
        wanted = max(FEWEST_TASKS, math.ceil(rows * len(bands) / ROWS_PER_TASK), math.ceil(searching / TASK_SEARCH_NS))
        tasks = 1 if widths == (0,) else min(wanted, MOST_TASKS)
    bits = math.ceil(math.log2(max(1.0, BUCKETS_PER_TASK * tasks / len(bands))))
    shared = tuple(min(bits, w, MOST_SHARED_BITS) for w in widths)
    priced = [spread.priced(i, band, bits) for i, (band, bits) in enumerate(zip(bands, shared, strict=True))]
    if max_distance == 0:
        # Distinct fingerprints have no pair at this distance, so nothing is searched.
        priced = [PricedBand(np.zeros(1), np.zeros(1), np.zeros(1, np.bool_), 0.0, [])]
    parts = _parts(priced, tasks)
    near_pairs = 0.0 if sample is None else sample.near_pairs
    plan = SearchPlan(
        rows=int(rows),
        new_rows=int(new),
        max_distance=int(max_distance),
        bands=bands,
        shared_bits=shared,
        parts=tuple(tuple(band.tolist()) for band in parts),
        bucket_rows=tuple(tuple(band.rows.tolist()) for band in priced),
        bucket_nanoseconds=tuple(tuple(band.nanoseconds.tolist()) for band in priced),
        tasks=min(int(tasks), sum(int(band.sum()) for band in parts)),
        cores=int(cores),
        comparisons=math.fsum(band.comparisons for band in priced),
        near_pairs=near_pairs,
        spanning=spanning,
        hot_chunks=tuple(sorted((hot for band in priced for hot in band.hot), key=lambda hot: -hot.rows)[:MOST_HOT_CHUNKS]),
    )
    return plan


def _parts(priced: Sequence[PricedBand], tasks: int) -> list[npt.NDArray[np.int64]]:
    """For each band, how many tasks share each bucket: one, unless it is dearer than two tasks should be."""
    if tasks == 1:
        return [np.ones(len(band.rows), np.int64) for band in priced]
    a_part = max(sum(float(band.nanoseconds.sum()) for band in priced) / tasks, PART_NS)
    while True:
        parts = [
            np.where(
                ~band.whole & (band.nanoseconds > 2 * a_part), np.clip(np.ceil(band.nanoseconds / a_part), 1, MOST_PARTS), 1
            ).astype(np.int64)
            for band in priced
        ]
        copies = sum(float((band.rows * (of_band - 1)).sum()) for band, of_band in zip(priced, parts, strict=True))
        if copies <= MOST_COPIES * sum(float(band.rows.sum()) for band in priced):
            return parts
        # Each part is a copy of the bucket's rows: fewer, longer ones.
        a_part *= 1.5


def _checked_widths(widths: Sequence[int], max_distance: int) -> tuple[int, ...]:
    try:
        cut = tuple(operator.index(w) for w in widths)
    except TypeError:
        cut = ()
    if cut != (0,) and (len(cut) != max_distance + 1 or min(cut) < 1 or sum(cut) > 64):
        raise SettingsError(
            f"band_widths are {widths!r}; within {max_distance} bits there must be {max_distance + 1} bands of at least one bit, "
            "of at most 64 bits together, or (0,) for no bands"
        )
    return cut


def _band_widths(spread: Spread) -> tuple[int, ...]:
    """The widths with the least expected cost, by the recursion at the head of blocks.py with the shuffle as its cut."""
    rows, max_distance = spread.rows, spread.max_distance
    if max_distance == 0 or (rows <= ROWS_PER_TASK and spread.band_ns(Band(0, 0), max_distance) <= ONE_BUCKET_NS):
        return (0,)
    least = min(64 // (max_distance + 1), WIDEST_BAND, max(4, math.ceil(math.log2(rows / LARGEST_CHUNK))))

    @cache
    def best(bits: int, budget: int) -> tuple[float, tuple[int, ...]]:
        if budget < 0:
            return 0.0, ()
        choices = []
        for w in range(least, min(WIDEST_BAND, bits - least * budget) + 1):
            rest, widths = best(bits - w, budget - 1)
            choices.append((spread.band_ns(Band(64 - bits, w), budget) + rest, (w, *widths)))
        return min(choices)

    return best(64, max_distance)[1]
