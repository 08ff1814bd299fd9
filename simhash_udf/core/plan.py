"""How a search will run: its bands, buckets and tasks, and what it is expected to cost, before it runs.

The cost is that of the recursion in blocks.py, for the numbers of rows that a sample shows in each bucket. Fingerprints of real
documents are not spread evenly: a *hot chunk* holds many more rows than others of its band, and bits that go together leave
fewer different chunks than they could. So each bucket is priced by its own rows, its hot chunks one by one, and bits count for
what they tell: by their collision entropy, -log2 of the chance that two rows agree on them (Renyi 1961; GPH, Qin et al. 2018,
section 5, prices parts of skewed data likewise). Buckets are dealt to tasks by price, and one that is dearer than a task
should be is shared by several. The result is complete whatever the sample says; only its cost depends on it.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import numpy.typing as npt

from simhash_udf.core.blocks import COMPARE_NS, FAR_ROW_NS, ROW_NS, Band, CutTable, check_distance, cut_table, share_class
from simhash_udf.errors import SettingsError

# What a search costs beside the comparing and cutting that blocks.py prices, fitted to benchmarks/search.py on two cores.
SHUFFLE_NS = 250.0  # one copy of a fingerprint, sorted by bucket, packed, shuffled and joined
INPUT_NS = 200.0  # one fingerprint read, counted, sampled and handed to Python
PAIR_NS = 1000.0  # one pair, met in several nodes, handed back and written
TASK_NS = 30e6  # one task
START_NS = 3.3e9  # the jobs of a search, whatever they do
BUSY = 1.25  # how much longer the kernel takes while all cores work than alone

ROWS_PER_TASK = 2_000_000
FEWEST_TASKS = 16
BUCKETS_PER_TASK = 8
MOST_SHARED_BITS = 11  # so that the slices of a bucket are no tiny rows
ONE_BUCKET_NS = 0.4e9  # a search that is shorter than this is not worth a shuffle by bands
LARGEST_CHUNK = 16_000_000
MOST_PARTS = 64  # of one bucket
PART_NS = 0.2e9  # a part that is shorter than this is not worth the trouble
MOST_COPIES = 2.0  # rows that parts may add to the shuffle, for each that is there without
MOST_HOT_CHUNKS = 32  # of a band that are looked at one by one

Rows = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


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
class HotChunk:
    """A chunk with many more rows than others of its band.

    band: index of the band.
    chunk: the value of the band's bits.
    rows: how many distinct fingerprints have it, estimated.
    examples: some of them, signed.
    """

    band: int
    chunk: int
    rows: int
    examples: tuple[int, ...]


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
        """Copies of fingerprints that are shuffled."""
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
        """The memory that a task needs for fingerprints: all of its own, and four times its largest bucket to work in."""
        largest = max((max(rows, default=0.0) for rows in self.bucket_rows), default=0.0)
        return round(8 * max(self.rows_shuffled / self.tasks, largest) + 32 * largest)

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
        return (BUSY * float(self.task_nanoseconds.sum()) + self._moving_ns) / 1e9

    @property
    def seconds(self) -> float:
        """Expected seconds of the whole search on `cores` such cores, none of which can do more than one task at once."""
        searching = max(float(self.task_nanoseconds.sum()) / self.cores, float(self.task_nanoseconds.max()))
        return (START_NS + BUSY * searching + self._moving_ns / min(self.cores, self.tasks)) / 1e9


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
    spread = _Spread(rows, max_distance, None if sample is None else sample.fingerprints, table, spanning)
    widths = _band_widths(spread) if band_widths is None else _checked_widths(band_widths, max_distance)
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    bands = tuple(Band(int(start), int(w)) for start, w in zip(starts, widths, strict=True))
    if tasks is None:
        tasks = 1 if widths == (0,) else max(FEWEST_TASKS, math.ceil(rows * len(bands) / ROWS_PER_TASK))
    bits = math.ceil(math.log2(max(1.0, BUCKETS_PER_TASK * tasks / len(bands))))
    shared = tuple(min(bits, w, MOST_SHARED_BITS) for w in widths)
    priced = [spread.priced(i, band, bits) for i, (band, bits) in enumerate(zip(bands, shared, strict=True))]
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


@dataclass(frozen=True)
class _PricedBand:
    """Expected rows and nanoseconds of each bucket of a band, which may not be shared, its comparisons and its hot chunks."""

    rows: Floats
    nanoseconds: Floats
    whole: npt.NDArray[np.bool_]
    comparisons: float
    hot: list[HotChunk]


def _parts(priced: Sequence[_PricedBand], tasks: int) -> list[npt.NDArray[np.int64]]:
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


class _Spread:
    """How fingerprints are spread over chunks, by a sample, and what searching them costs."""

    def __init__(self, rows: int, max_distance: int, sample: Rows | None, table: CutTable, spanning: bool) -> None:
        self.rows, self.max_distance, self.table, self.spanning = rows, max_distance, table, spanning
        self._sample = np.empty(0, np.uint64) if sample is None else sample
        self._scale = rows / max(1, len(self._sample))
        self._information = _information(self._sample, 0) if len(self._sample) else 1.0

    def band_ns(self, band: Band, budget: int) -> float:
        """What a band costs if no chunk of it is hot."""
        chunks = math.pow(2, self._information * band.width)
        grouping = self.rows * (ROW_NS[-1] + FAR_ROW_NS) if band.width else 0.0
        differing = self.max_distance - budget
        return grouping + chunks * float(self.table.cost(self.rows / chunks, self._telling(64 - band.end), budget, differing))

    def _telling(self, bits: int) -> int:
        """As many evenly spread bits tell as much as these."""
        return round(self._information * bits)

    def priced(self, index: int, band: Band, shared: int) -> _PricedBand:
        """Each bucket of the band that is named by its first `shared` bits."""
        budget, buckets, after = self.max_distance - index, 1 << shared, self._telling(64 - band.end)
        chunk_of = _chunks(self._sample, band)
        values, counts, chunks = _hot_chunks(chunk_of, band.width)
        sizes = counts * self._scale
        if len(self._sample):
            rows = np.bincount(_first_bits(chunk_of, band.width, shared), minlength=buckets) * self._scale
        else:
            rows = np.full(buckets, self.rows / buckets)
        # The rows of each bucket that are in no hot chunk, and over how many chunks they are spread.
        rest = rows - np.bincount(_first_bits(values, band.width, shared), sizes, buckets)
        chunks = max(chunks / buckets, 1.0)
        nanoseconds: Floats = chunks * self.table.cost(rest / chunks, after, budget, index)
        comparisons = float((chunks * self.table.compared(rest / chunks, after, budget, index)).sum())
        if band.width:
            nanoseconds = nanoseconds + rows * (ROW_NS[-1] + FAR_ROW_NS)
        hot, whole = [], np.zeros(buckets, np.bool_)
        for value, size in zip(values[:MOST_HOT_CHUNKS], sizes[:MOST_HOT_CHUNKS], strict=True):
            members = self._sample[chunk_of == value]
            spent, compared, is_dense = self._hot_chunk(members, float(size), band, budget)
            bucket = _first_bits(value, band.width, shared)
            nanoseconds[bucket] += spent
            comparisons += compared
            # A dense node of a spanning search is settled at once, which only a task with the whole bucket can see.
            whole[bucket] |= is_dense and self.spanning
            hot.append(HotChunk(index, int(value), round(size), tuple(members[:3].view(np.int64).tolist())))
        values, sizes = values[MOST_HOT_CHUNKS:], sizes[MOST_HOT_CHUNKS:]
        costs = self.table.cost(sizes, after, budget, index)
        nanoseconds += np.bincount(_first_bits(values, band.width, shared), costs, buckets).astype(np.float64)
        comparisons += float(self.table.compared(sizes, after, budget, index).sum())
        return _PricedBand(np.asarray(rows, np.float64), nanoseconds, whole, comparisons, hot)

    def _hot_chunk(self, members: Rows, rows: float, band: Band, budget: int) -> tuple[float, float, bool]:
        """Nanoseconds and comparisons of one chunk, and whether its fingerprints are near each other."""
        near = _share_of_near_pairs(members, self.max_distance)
        if near >= 1 / 32:
            # Such a node is compared whole, or settled by a few of its rows.
            compared = rows * 64 if self.spanning else rows * rows / 2
            return compared * COMPARE_NS, compared, True
        information = _information(members, band.end) if len(members) >= 256 and band.end <= 56 else self._information
        bits, differing = round(information * (64 - band.end)), self.max_distance - budget
        node = (rows, bits, budget, differing)
        return float(self.table.cost(*node)), float(self.table.compared(*node)), False


def _chunks(fingerprints: Rows, band: Band) -> Rows:
    """The chunk of each fingerprint in the band."""
    if not band.width:
        return np.zeros_like(fingerprints)
    return (fingerprints >> np.uint64(64 - band.end)) & np.uint64((1 << band.width) - 1)


def _first_bits(chunks: Rows, width: int, shared: int) -> npt.NDArray[np.int64]:
    return np.asarray(chunks >> np.uint64(width - shared), np.int64)


def _information(sample: Rows, start: int) -> float:
    """The share of evenly spread bits that the bits from `start` on are worth: their collision entropy by bytes."""
    entropy, bits = 0.0, 0
    for shift in range(64 - start - 8, -1, -8):
        counts = np.bincount(((sample >> np.uint64(shift)) & np.uint64(255)).astype(np.int64), minlength=256).astype(np.float64)
        pairs, agreeing = len(sample) * (len(sample) - 1.0), float((counts * (counts - 1)).sum())
        entropy += min(8.0, math.log2(pairs / agreeing)) if agreeing else 8.0
        bits += 8
    return entropy / bits if bits else 1.0


def _hot_chunks(chunk_of: Rows, width: int) -> tuple[Rows, npt.NDArray[np.int64], float]:
    """Values and sampled rows of the hot chunks, the hottest first, and over how many even chunks the others are spread."""
    if not width or not len(chunk_of):
        return np.empty(0, np.uint64), np.empty(0, np.int64), 2.0**width
    values, counts = np.unique(chunk_of, return_counts=True)
    even = len(chunk_of) / 2.0**width
    # Eight standard deviations of a Poisson distribution, and more than a handful.
    is_hot = counts > even + 8 * math.sqrt(even) + 8
    others = counts[~is_hot].astype(np.float64)
    agreeing = float((others * (others - 1)).sum())
    spread = float(others.sum() * (others.sum() - 1) / agreeing) if agreeing else 2.0**width
    hottest = np.argsort(-counts[is_hot], kind="stable")
    return values[is_hot][hottest], counts[is_hot][hottest], min(max(spread, 1.0), 2.0**width)


def _share_of_near_pairs(members: Rows, max_distance: int) -> float:
    """The share of pairs of some fingerprints that are within the distance, by up to 512 of them."""
    some = np.ascontiguousarray(members[:: max(1, len(members) // 512)][:512])
    if len(some) < 16:
        return 0.0
    bits = np.unpackbits(some.view(np.uint8).reshape(-1, 8), axis=1).astype(np.float32)
    apart = bits.sum(1)[:, None] + bits.sum(1)[None, :] - 2 * bits @ bits.T
    return float((np.count_nonzero(apart <= max_distance + 0.5) - len(some)) / (len(some) * (len(some) - 1)))


def _checked_widths(widths: Sequence[int], max_distance: int) -> tuple[int, ...]:
    cut = tuple(int(w) for w in widths)
    if cut != (0,) and (len(cut) != max_distance + 1 or min(cut) < 1 or sum(cut) > 64):
        raise SettingsError(
            f"band_widths are {cut}; within {max_distance} bits there must be {max_distance + 1} bands of at least one bit, "
            "of at most 64 bits together, or (0,) for no bands"
        )
    return cut


def _band_widths(spread: _Spread) -> tuple[int, ...]:
    """The widths with the least expected cost, by the recursion at the head of blocks.py with the shuffle as its cut."""
    rows, max_distance = spread.rows, spread.max_distance
    if max_distance == 0 or (rows <= ROWS_PER_TASK and spread.band_ns(Band(0, 0), max_distance) <= ONE_BUCKET_NS):
        return (0,)
    least = min(64 // (max_distance + 1), max(4, math.ceil(math.log2(rows / LARGEST_CHUNK))))

    @cache
    def best(bits: int, budget: int) -> tuple[float, tuple[int, ...]]:
        if budget < 0:
            return 0.0, ()
        choices = []
        for w in range(least, min(24, bits - least * budget) + 1):
            rest, widths = best(bits - w, budget - 1)
            choices.append((spread.band_ns(Band(64 - bits, w), budget) + rest, (w, *widths)))
        return min(choices)

    return best(64, max_distance)[1]
