"""How fingerprints are spread over chunks, by a sample of them, and what searching each bucket costs.

The cost is that of the recursion in blocks.py, for the rows of each bucket. Fingerprints of real documents are not spread
evenly: a *hot chunk* holds many more rows than others of its band, and bits that go together leave fewer different chunks than
they could. So each bucket is priced by its own rows, its hottest chunks one by one, and bits count for what they tell: by their
collision entropy, -log2 of the chance that two rows agree on them (Renyi 1961, "On measures of entropy and information"; GPH,
Qin et al. 2018, section 5, prices parts of skewed data likewise).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from simhash_udf.core.blocks import COMPARE_NS, FAR_ROW_NS, ROW_NS, Band, CutTable

MOST_HOT_CHUNKS = 32  # of a band that are looked at one by one

Rows = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]


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
class PricedBand:
    """Expected rows and nanoseconds of each bucket of a band, which may not be shared, its comparisons and its hot chunks."""

    rows: Floats
    nanoseconds: Floats
    whole: npt.NDArray[np.bool_]
    comparisons: float
    hot: list[HotChunk]


class Spread:
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

    def priced(self, index: int, band: Band, shared: int) -> PricedBand:
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
        return PricedBand(np.asarray(rows, np.float64), nanoseconds, whole, comparisons, hot)

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
