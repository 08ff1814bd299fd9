"""All pairs of one bucket of fingerprints that differ in at most k bits, and the cut into buckets before it.

The promise: every pair within k bits, each exactly once, whatever the data; memory in proportion to the bucket.

Why it holds, in three lines: cut a block off the bits. A pair agrees on the block, and is found among the rows with the
same block value; or it differs there, and has one bit less to spend on the remaining bits. With no bit left to spend
nothing differs any more; so no pair is lost, and the masks of agreed and differing blocks name the only place of each.

    a    1011 0010 1101 ... 0110      blocks 0 and 2 agree: sorted by block 0 (budget k), the pair lies in one bin;
    b    1011 0110 1101 ... 0111      sorted by block 2 it does too, but block 0 agrees, so there it is not reported
    a^b  0000 0100 0000 ... 0001

What it costs: a cut of n rows by w bits costs ROW_NS n + BIN_NS 2^w (a counting sort), a comparison COMPARE_NS, and

    cost(n, R, t) = min( n^2/2 comparisons,  min over w of cut(n, w) + 2^w cost(n/2^w, R-w, t) + cost(n, R-w, t-1) )

which blocks.cut_table solves once for all sizes n, remaining bits R and budgets t (and, for nodes without bits left, by how
many blocks their pairs differ in: see there). Each node looks up its own size, so a hot chunk is cut further than its
neighbours. Only a dense node, with about one near pair in 32 or more, is compared in n^2/2 steps whatever its size.

The alternatives: a fixed number of blocks for all chunks (Manku, Jain, Das Sarma 2007) sorts once for each choice of blocks;
bands of k + 1 equal parts with a Hamming ball probed in each (Norouzi, Punjani, Fleet 2012, "Fast search in Hamming space
with multi-index hashing") need many probes a row where a self-join sorts once.

A spanning search reports edges instead of pairs: a union-find over the bucket, an edge only where it unites two
components, and nodes whose members are one component are left out, so dense clusters cost a few passes and not n^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from simhash_udf.core.blocks import _OFFSET, _STEPS, MOST_DIFFERING, WIDEST_BLOCK, Band, CutTable, cut_table, share_class
from simhash_udf.core.compare import (
    BETWEEN,
    FOUND,
    LEAF_A,
    LEAF_B,
    LEAF_FIELDS,
    LEAF_HIGH,
    LEAF_LOW,
    LEAF_MASKS,
    LEAF_NEW,
    LEAF_STEP,
    bit_count,
    compare_all,
    is_dense,
    next_near,
)
from simhash_udf.core.spanning import is_settled, span_all

PAIRS_AT_ONCE = 1 << 17
_DEEPEST = 96  # a level uses at least one bit, or a block that differs
_SMALL = 32  # rows of a bucket that is compared without cutting its band

# Columns of a frame: a node whose children are being visited. It has rows pool[LOW:HIGH], of which the first NEW are new.
_LOW, _HIGH, _NEW, _TOP, _AT, _BUDGET, _AGREE, _WIDTH, _BIN, _MASKS, _ONE_BIN, _HALF, _DIFFERING, _DIFFERING_END = range(14)
_FRAME = 14
# Fields of the state beyond those of the leaf.
_DEPTH, _STATUS, _COMPARED, _SORTED, _PART, _PARTS, _UNIT_ROWS, _UNITS = range(LEAF_FIELDS, LEAF_FIELDS + 8)
_STATE = LEAF_FIELDS + 8
_DONE, _OUTPUT_FULL, _POOL_FULL = range(3)
_QUICK = 256  # rows of a leaf that is first asked whether it has any pair
_LARGE = 1024  # rows of a node that is first asked whether it is dense
_UNITS_PER_PART = 8  # a bucket is shared out in nodes that are smaller than it by so much, at least


@njit(cache=True)
def _count(rows: Any, shift: int, width: int, ends: Any) -> None:
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
def _place(rows: Any, out: Any, shift: int, width: int, ends: Any) -> None:
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
    _count(rows, shift, width, ends)
    _place(rows, out, shift, width, ends)


@njit(cache=True)
def _partition_with(labels: Any, out: Any, rows: Any, shift: int, width: int, ends: Any) -> None:
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
def _width_of(size: int, remaining: int, budget: int, differing: int, widths: Any, limits: Any) -> int:
    """How many bits to cut a node by; 0 is to compare all its pairs."""
    if size <= limits[budget, remaining, differing]:
        return 0
    step = np.int64(np.rint(_STEPS * np.log2(np.float64(size)))) + _OFFSET
    return np.int64(widths[budget, remaining, differing, min(step, widths.shape[3] - 1)])


@njit(cache=True)
def _block(at: int, width: int, bits: int) -> Any:
    """The mask of `width` bits that begin `at` bits below the most significant one."""
    return np.uint64((1 << width) - 1) << np.uint64(bits - at - width)


@njit(cache=True)
def _halves(block: Any) -> Any:
    """The upper and the lower half of a block of at least two bits, as (mask, mask)."""
    lowest = block & (~block + np.uint64(1))
    lower = lowest * ((np.uint64(1) << (bit_count(block) // np.uint64(2))) - np.uint64(1))
    return block & ~lower, lower


@njit(cache=True)
def _root_width(size: int, agree: int) -> int:
    """How many bits to cut at once while the band itself is being agreed on."""
    width = 1
    while width < min(agree, WIDEST_BLOCK) and 1 << width < size:
        width += 1
    return width


@njit(cache=True)
def _next_differing(frame: Any, masks: Any) -> bool:
    """Move on to the next differing block that has halves; whether there is one."""
    if frame[_DIFFERING_END] < 0:
        frame[_DIFFERING_END] = frame[_MASKS]
    while frame[_DIFFERING] < frame[_DIFFERING_END]:
        block = masks[frame[_DIFFERING]]
        if block & (block - np.uint64(1)):
            return True
        frame[_DIFFERING] += 1
    return False


@njit(cache=True)
def _begin_leaf(state: Any, low: int, high: int, new: int, masks: int, spanning: bool) -> None:
    """Make pool[low:high] the leaf to be compared; of a leaf larger than a unit this part's share of the rows, or none."""
    size = high - low
    state[LEAF_LOW], state[LEAF_HIGH], state[LEAF_NEW], state[LEAF_MASKS] = low, high, new, masks
    state[LEAF_A], state[LEAF_STEP], state[LEAF_B] = 0, 1, 0
    compared = new * (size - new) if state[BETWEEN] else new * size - new * (new + 1) // 2
    if size > state[_UNIT_ROWS]:
        if not spanning:
            state[LEAF_A], state[LEAF_STEP] = state[_PART], state[_PARTS]
            compared //= state[_PARTS]
        elif state[_PART] > 0:
            state[LEAF_A] = -1
            return
    state[_COMPARED] += compared


@njit(cache=True)
def _advance(
    pool: Any,
    label_pool: Any,
    parents: Any,
    ends: Any,
    new_ends: Any,
    frames: Any,
    agreed: Any,
    masks: Any,
    state: Any,
    distance: int,
    bits: int,
    widths: Any,
    limits: Any,
    out_a: Any,
    out_b: Any,
    out_d: Any,
) -> None:
    """Continue the search until it is done, the output is full, or the pool is."""
    depth, parts, unit_rows = state[_DEPTH], state[_PARTS], state[_UNIT_ROWS]
    while True:
        if state[LEAF_A] >= 0:
            if label_pool is None:
                if not compare_all(pool, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d):
                    state[_DEPTH], state[_STATUS] = depth, _OUTPUT_FULL
                    return
            else:
                span_all(pool, label_pool, parents, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d)
        if depth < 0:
            state[_DEPTH], state[_STATUS] = depth, _DONE
            return
        frame = frames[depth]
        low, high, new = frame[_LOW], frame[_HIGH], frame[_NEW]
        size = high - low
        if frame[_BIN] < 0:
            # A new node, or one of whose pairs some have been found: cut the next block.
            remaining = bits - frame[_AT]
            if frame[_AGREE] > 0:
                width = _root_width(size, frame[_AGREE]) if size > _SMALL else 0
            elif frame[_HALF] == 1:
                width = 1
            elif label_pool is None and size >= _LARGE and is_dense(pool, low, high, new, distance):
                width = 0
            elif remaining > 0:
                differing = min(frame[_MASKS], MOST_DIFFERING)
                width = _width_of(size, remaining, frame[_BUDGET], differing, widths, limits)
            elif _next_differing(frame, masks):
                differing = min(frame[_DIFFERING_END] - frame[_DIFFERING], MOST_DIFFERING)
                width = _width_of(size, remaining, frame[_BUDGET], differing, widths, limits)
            else:
                width = 0
            if width == 0:
                _begin_leaf(state, low, high, new, frame[_MASKS], label_pool is not None)
                depth -= 1
                continue
            top = frame[_TOP]
            if top + size > len(pool):
                state[_DEPTH], state[_STATUS] = depth, _POOL_FULL
                return
            settled = False
            if label_pool is not None:
                if size > 64 and size <= unit_rows:
                    state[LEAF_MASKS] = frame[_MASKS]
                    settled = is_settled(
                        pool[low:high], new, label_pool[low:high], parents, agreed[depth + 1], masks, distance, state,
                        out_a, out_b, out_d,
                    )  # fmt: skip
            if settled:
                depth -= 1
                continue
            if frame[_AGREE] > 0 or remaining > 0:
                block = _block(frame[_AT], width, bits)
                shift = bits - frame[_AT] - width
            else:
                halves = _halves(masks[frame[_DIFFERING]])
                block = halves[frame[_HALF]]
                shift = np.int64(bit_count((block & (~block + np.uint64(1))) - np.uint64(1)))
                # Cutting by some of its bits is enough: the mask of agreed bits has them all.
                width = min(np.int64(bit_count(block)), WIDEST_BLOCK)
            _count(pool[low:high], shift, width, ends[depth])
            _place(pool[low : low + new], pool[top:], shift, width, ends[depth])
            if new < size:
                # A stable cut, so the new rows of each bin come first.
                new_ends[depth, : 1 << width] = ends[depth, : 1 << width]
                _place(pool[low + new : high], pool[top:], shift, width, ends[depth])
            if label_pool is not None:
                _partition_with(label_pool[low:high], label_pool[top:], pool[low:high], shift, width, ends[depth])
            state[_SORTED] += size
            frame[_WIDTH], frame[_BIN], frame[_ONE_BIN] = width, 0, 0
            agreed[depth + 2] = agreed[depth + 1] | block
        width = frame[_WIDTH]
        bins = 1 << width
        fresh = frame[_AGREE] > 0 or frame[_AT] < bits
        at = frame[_AT] + width if fresh else bits
        budget = frame[_BUDGET]
        agree = max(frame[_AGREE] - width, 0)
        differing_at, differing_end = frame[_DIFFERING], frame[_DIFFERING_END]
        if not fresh:
            differing_at += 1
        differing = min(frame[_MASKS] if differing_end < 0 else differing_end - differing_at, MOST_DIFFERING)
        limit = limits[budget, bits - at, differing] if agree == 0 else _SMALL
        top = frame[_TOP]
        child_ends = ends[depth]
        child_new_ends = new_ends[depth]
        current = frame[_BIN]
        begin = child_ends[current - 1] if current > 0 else 0
        pushed = False
        full = False
        while current < bins:
            end = child_ends[current]
            child_size = end - begin
            child_new = child_size if new == size else child_new_ends[current] - begin
            current += 1
            if child_size == size:
                frame[_ONE_BIN] = 1
            if child_size < 2 or child_new == 0 or (state[BETWEEN] and child_new == child_size):
                begin = end
                continue
            if parts > 1 and size > unit_rows and child_size <= unit_rows:
                state[_UNITS] += 1
                if state[_UNITS] % parts != state[_PART]:
                    begin = end
                    continue
            if child_size > limit:
                frame[_BIN] = current
                depth += 1
                child = frames[depth]
                child[_LOW], child[_HIGH], child[_NEW] = top + begin, top + end, child_new
                child[_TOP] = top + size
                child[_AT], child[_BUDGET], child[_AGREE] = at, budget, agree
                child[_BIN], child[_MASKS] = -1, frame[_MASKS]
                child[_HALF], child[_DIFFERING], child[_DIFFERING_END] = 0, differing_at, differing_end
                pushed = True
                break
            _begin_leaf(state, top + begin, top + end, child_new, frame[_MASKS], label_pool is not None)
            if state[LEAF_A] >= 0 and child_size <= min(_QUICK, unit_rows):
                # Most leaves end here; where one does not, nothing is near the rows before.
                last = top + begin + min(child_new, child_size - 1)
                near = next_near(pool, top + begin, last, top + end, distance)
                state[LEAF_A] = near - top - begin if near >= 0 else -1
            if state[LEAF_A] < 0:
                begin = end
                continue
            if label_pool is None:
                if not compare_all(pool, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d):
                    full = True
                    break
            else:
                span_all(pool, label_pool, parents, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d)
            begin = end
        if pushed:
            continue
        if full:
            frame[_BIN] = current
            state[_DEPTH], state[_STATUS] = depth, _OUTPUT_FULL
            return
        if frame[_AGREE] > 0 or frame[_ONE_BIN]:
            # Nobody may differ in the block, or nobody does.
            depth -= 1
            continue
        frame[_BIN] = -1
        if not fresh and frame[_HALF] == 0:
            frame[_HALF] = 1
            continue
        if budget == 0:
            depth -= 1
            continue
        # Nobody who agrees on the block is left: the others have spent a bit on it.
        if fresh:
            masks[frame[_MASKS]] = _block(frame[_AT], width, bits)
            frame[_MASKS] += 1
        else:
            halves = _halves(masks[frame[_DIFFERING]])
            masks[frame[_MASKS]], masks[frame[_MASKS] + 1] = halves[0], halves[1]
            frame[_MASKS] += 2
            frame[_HALF], frame[_DIFFERING] = 0, differing_at
        frame[_AT] = at
        frame[_BUDGET] = budget - 1


class BucketSearch:
    """All pairs of buckets of fingerprints within `max_distance` bits, one bucket after another with the same buffers.

    Args:
        bands: the bands that made the buckets, adjoining from the most significant bit. A pair belongs to the first band
            in which it agrees, so it is reported only from a bucket of that band.
        max_distance: at most this many differing bits; one less than the number of bands, or anything if the only band
            is `Band(0, 0)`, on which all agree.
        width: bits of a fingerprint, 1 to 64.
        spanning: report edges that connect the same components instead of all pairs.
        table: of the cheapest cuts; any table finds the same pairs.
        pairs_at_once: the largest batch of pairs.

    Attributes:
        comparisons: pairs of fingerprints compared so far.
        rows_sorted: rows of all nodes cut so far.

    >>> search = BucketSearch([Band(0, 0)], max_distance=1, width=8)
    >>> rows = np.array([0b11110000, 0b11110001, 0b11110011, 0b00000000], np.uint64)
    >>> sorted((int(a), int(b), int(d)) for batch in search.pairs(rows, 0) for a, b, d in zip(*batch))
    [(240, 241, 1), (241, 243, 1)]
    >>> sorted((int(a), int(b), int(d)) for batch in search.pairs(rows, 0, new=1) for a, b, d in zip(*batch))
    [(240, 241, 1)]
    """

    def __init__(
        self,
        bands: Sequence[Band],
        max_distance: int,
        *,
        width: int = 64,
        spanning: bool = False,
        table: CutTable | None = None,
        pairs_at_once: int = PAIRS_AT_ONCE,
    ) -> None:
        self.comparisons, self.rows_sorted = 0, 0
        self._bands, self._distance, self._width = tuple(bands), max_distance, width
        self._table = table
        self._spanning, self._pairs_at_once = spanning, pairs_at_once
        self._pool, self._labels = np.empty(0, np.uint64), np.empty(0, np.int32)
        self._ends = np.empty((_DEEPEST, (1 << WIDEST_BLOCK) + 1), np.int64)
        self._new_ends = np.empty_like(self._ends)

    def pairs(
        self,
        rows: npt.NDArray[np.uint64],
        band: int,
        shared: int = 0,
        new: int | None = None,
        part: int = 0,
        parts: int = 1,
        between: bool = False,
    ) -> Iterator[tuple[Any, Any, Any]]:
        """The pairs of one bucket, in bounded batches: int64 smaller, int64 larger (as signed numbers), int32 distance.

        Args:
            rows: distinct fingerprints, uint64 of shape (n,). For a spanning search their order decides which edges come.
            band: the index of the band whose bucket this is.
            shared: the first bits of the band which all rows are known to share.
            new: only pairs with at least one of the first `new` rows; pairs of the others are not even compared.
            part, parts: only the part, from 0 up, of the work of the bucket. The parts share nothing and together find what one
                would, if each is given the rows in the same order; each sorts the largest nodes for itself.
            between: only pairs of a new row with one that is not new; not for a spanning search.
        """
        assert not (between and self._spanning)
        n = len(rows)
        new = n if new is None else new
        if n < 2 or new == 0:
            return
        own, before = self._bands[band], self._bands[:band]
        frames = np.zeros((_DEEPEST, _FRAME), np.int64)
        frames[0, [_HIGH, _NEW, _TOP, _AT, _BUDGET, _AGREE, _BIN, _MASKS, _DIFFERING_END]] = (
            n, new, n, own.start + shared, self._distance - band, own.width - shared, -1, band, -1,
        )  # fmt: skip
        agreed, masks = np.zeros(_DEEPEST + 2, np.uint64), np.zeros(_DEEPEST, np.uint64)
        agreed[1] = own.mask(self._width)
        masks[:band] = [other.mask(self._width) for other in before]
        state = np.zeros(_STATE, np.int64)
        state[LEAF_A] = -1
        state[BETWEEN], state[_PART], state[_PARTS] = between, part, parts
        state[_UNIT_ROWS] = n // (_UNITS_PER_PART * parts) if parts > 1 else n
        self._reserve(3 * n, 0)
        self._pool[:n] = rows
        parents = None
        if self._spanning:
            self._labels[:n] = np.arange(n, dtype=np.int32)
            parents = np.arange(n, dtype=np.int32)
        # A spanning set has fewer edges than rows, so its output is never full.
        room = max(n, 1) if self._spanning else self._pairs_at_once
        out_a, out_b, out_d = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
        table = self._table or cut_table(self._distance, self._width, share_class(new, n))
        while True:
            _advance(
                self._pool, self._labels if self._spanning else None, parents, self._ends, self._new_ends, frames, agreed, masks,
                state, self._distance, self._width, table.widths, table.limits, out_a, out_b, out_d,
            )  # fmt: skip
            if state[_STATUS] == _POOL_FULL:
                self._reserve(2 * len(self._pool), len(self._pool))
                continue
            found = int(state[FOUND])
            if found:
                yield out_a[:found].copy(), out_b[:found].copy(), out_d[:found].copy()
            state[FOUND] = 0
            if state[_STATUS] == _DONE:
                self.comparisons += int(state[_COMPARED])
                self.rows_sorted += int(state[_SORTED])
                return

    def _reserve(self, size: int, keep: int) -> None:
        """Make the pool at least `size` rows large, keeping its first `keep` rows."""
        if size <= len(self._pool):
            return
        pool = np.empty(size, np.uint64)
        pool[:keep] = self._pool[:keep]
        self._pool = pool
        if self._spanning:
            labels = np.empty(size, np.int32)
            labels[:keep] = self._labels[:keep]
            self._labels = labels
