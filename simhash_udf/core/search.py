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

which blocks.cut_table solves once for all sizes n, remaining bits R and budgets t; each node looks up its own size, so a hot
chunk is cut further than its neighbours and never compared in n^2/2 steps while bits are left.

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
from numba import njit, types
from numba.extending import intrinsic

from simhash_udf.core.blocks import _OFFSET, _STEPS, WIDEST_BLOCK, Band, CutTable, cut_table

PAIRS_AT_ONCE = 1 << 17
_DEEPEST = 66  # every level but the root uses at least one bit
_SMALL = 32  # rows of a bucket that is compared without cutting its band

# Columns of a frame: a node whose children are being visited.
_LOW, _HIGH, _TOP, _AT, _BUDGET, _AGREE, _WIDTH, _BIN, _MASKS, _ONE_BIN = range(10)
_FRAME = 10
# Fields of the state that lets a full output or a full pool be followed by another call.
_DEPTH, _LEAF_LOW, _LEAF_HIGH, _LEAF_A, _LEAF_B, _LEAF_MASKS, _FOUND, _STATUS = range(8)
_STATE = 8
_DONE, _OUTPUT_FULL, _POOL_FULL = range(3)
_PIVOTS = 16
_QUICK = 256  # rows of a leaf that is first asked whether it has any pair


@intrinsic
def _bit_count(_: Any, word: Any) -> Any:
    """The number of ones of a 64-bit word, as the processor counts them."""

    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


@njit(cache=True)
def partition(rows: Any, out: Any, shift: int, width: int, ends: Any) -> None:
    """Sort rows by `width` bits from `shift` up into `out`, stably; afterwards bin i ends at ends[i]."""
    low, mask = np.uint64(shift), np.uint64((1 << width) - 1)
    bins = 1 << width
    for i in range(bins + 1):
        ends[i] = 0
    for i in range(len(rows)):
        ends[np.int64((rows[i] >> low) & mask) + 1] += 1
    for i in range(1, bins):
        ends[i] += ends[i - 1]
    for i in range(len(rows)):
        row = rows[i]
        key = np.int64((row >> low) & mask)
        out[ends[key]] = row
        ends[key] += 1


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
def _has_pair(pool: Any, low: int, high: int, distance: int) -> bool:
    """Whether any two of pool[low:high] are within the distance: the hot loop, for sets of which few have a pair."""
    # The sign of any difference survives the OR, so no branch depends on the data. Two rows meet all others at once, which
    # halves the loads; unsigned indices spare the test for negative ones.
    signs, beyond = np.int64(0), np.int64(distance + 1)
    a, end, one, two = np.uint64(low), np.uint64(high), np.uint64(1), np.uint64(2)
    while a + one < end:
        first, second = pool[a], pool[a + one]
        signs |= np.int64(_bit_count(first ^ second)) - beyond
        for b in range(a + two, end):
            other = pool[b]
            signs |= (np.int64(_bit_count(first ^ other)) - beyond) | (np.int64(_bit_count(second ^ other)) - beyond)
        a += two
    return signs < 0


@njit(cache=True)
def _owned(difference: Any, agreed: Any, masks: Any, count: int) -> bool:
    """Whether a pair agrees and differs where the node says, so that it is found here and nowhere else."""
    if difference == 0 or difference & agreed:
        return False
    for i in range(count):
        if difference & masks[i] == 0:
            return False
    return True


@njit(cache=True)
def _compare_all(pool: Any, agreed: Any, masks: Any, distance: int, state: Any, out_a: Any, out_b: Any, out_d: Any) -> bool:
    """Report the pairs of the leaf that `state` names; False when the output is full before the leaf is done."""
    rows = pool[state[_LEAF_LOW] : state[_LEAF_HIGH]]
    count = state[_LEAF_MASKS]
    found = state[_FOUND]
    beyond = np.int64(distance + 1)
    within = np.uint64(distance)
    begin = state[_LEAF_B]
    for a in range(state[_LEAF_A], len(rows) - 1):
        row = rows[a]
        others = rows[a + 1 :]
        # The sign of any of these differences survives the OR: one test a row, and the loop stays free of branches.
        signs = np.int64(0)
        for b in range(len(others)):
            signs |= np.int64(_bit_count(row ^ others[b])) - beyond
        if signs < 0:
            for b in range(begin, len(others)):
                difference = row ^ others[b]
                if _bit_count(difference) <= within and _owned(difference, agreed, masks, count):
                    if found == len(out_a):
                        state[_FOUND], state[_LEAF_A], state[_LEAF_B] = found, a, b
                        return False
                    x, y = np.int64(row), np.int64(others[b])
                    out_a[found], out_b[found] = min(x, y), max(x, y)
                    out_d[found] = np.int32(_bit_count(difference))
                    found += 1
        begin = 0
    state[_FOUND] = found
    state[_LEAF_A] = -1
    return True


@njit(cache=True)
def _root(parents: Any, i: int) -> int:
    while parents[i] != i:
        parents[i] = parents[parents[i]]
        i = parents[i]
    return np.int64(i)


@njit(cache=True)
def _unite(parents: Any, i: int, j: int) -> bool:
    """Whether i and j were in two components, which are now one."""
    i, j = _root(parents, i), _root(parents, j)
    if i == j:
        return False
    parents[max(i, j)] = min(i, j)
    return True


@njit(cache=True)
def _connected(labels: Any, parents: Any) -> bool:
    """Whether all are one component already."""
    first = _root(parents, labels[0])
    for i in range(1, len(labels)):
        if parents[labels[i]] != first and _root(parents, labels[i]) != first:
            return False
    return True


@njit(cache=True)
def _report_edge(x: Any, y: Any, distance: Any, state: Any, out_a: Any, out_b: Any, out_d: Any) -> None:
    found = state[_FOUND]
    a, b = np.int64(x), np.int64(y)
    out_a[found], out_b[found] = min(a, b), max(a, b)
    out_d[found] = np.int32(distance)
    state[_FOUND] = found + 1


@njit(cache=True)
def _unite_with(
    at: int, begin: int, rows: Any, labels: Any, parents: Any, distance: int, state: Any, out_a: Any, out_b: Any, out_d: Any
) -> int:
    """Unite rows[at] with each of rows[begin:] within the distance; how many edges that took."""
    within, united = np.uint64(distance), 0
    row, label = rows[at], labels[at]
    others = rows[begin:]
    beyond = np.int64(distance + 1)
    signs = np.int64(0)
    for b in range(len(others)):
        signs |= np.int64(_bit_count(row ^ others[b])) - beyond
    if signs < 0:
        for b in range(len(others)):
            apart = _bit_count(row ^ others[b])
            if apart <= within and _unite(parents, label, labels[begin + b]):
                _report_edge(row, others[b], apart, state, out_a, out_b, out_d)
                united += 1
    return united


@njit(cache=True)
def _is_settled(rows: Any, labels: Any, parents: Any, distance: int, state: Any, out_a: Any, out_b: Any, out_d: Any) -> bool:
    """Whether a large node needs no search any more: it is one component, perhaps after uniting it around a few pivots."""
    if _connected(labels, parents):
        return True
    # Few pairs: the pivots cost little beside the cut that follows. Many pairs: they unite most of a dense cluster.
    step = max(1, len(rows) // _PIVOTS)
    for i in range(_PIVOTS):
        at = (i * step + step // 2) % len(rows)
        united = _unite_with(at, 0, rows, labels, parents, distance, state, out_a, out_b, out_d)
        if united and _connected(labels, parents):
            return True
        if i >= 1 and united < len(rows) // 16:
            break
    return _connected(labels, parents)


@njit(cache=True)
def _span_all(pool: Any, label_pool: Any, parents: Any, distance: int, state: Any, out_a: Any, out_b: Any, out_d: Any) -> None:
    """Connect the leaf that `state` names."""
    low, high = state[_LEAF_LOW], state[_LEAF_HIGH]
    rows, labels = pool[low:high], label_pool[low:high]
    state[_LEAF_A] = -1
    n = len(rows)
    if _connected(labels, parents):
        return
    if n <= 64:
        for a in range(n - 1):
            _unite_with(a, a + 1, rows, labels, parents, distance, state, out_a, out_b, out_d)
        return
    # Rows of the largest component need no comparison among themselves: move them to the end, and compare the others.
    if _is_settled(rows, labels, parents, distance, state, out_a, out_b, out_d):
        return
    roots = np.empty(n, np.int64)
    for i in range(n):
        roots[i] = _root(parents, labels[i])
    order = np.argsort(roots, kind="mergesort")
    sorted_rows, sorted_labels = rows[order], labels[order]
    roots = roots[order]
    begin = 0
    while begin < n:
        end = begin + 1
        while end < n and roots[end] == roots[begin]:
            end += 1
        if end < n:
            for a in range(begin, end):
                _unite_with(a, end, sorted_rows, sorted_labels, parents, distance, state, out_a, out_b, out_d)
        begin = end


@njit(cache=True)
def _width_of(size: int, at: int, budget: int, widths: Any, limits: Any, bits: int) -> int:
    """How many bits to cut a node by; 0 is to compare all its pairs."""
    if size <= limits[budget, bits - at]:
        return 0
    step = np.int64(np.rint(_STEPS * np.log2(np.float64(size)))) + _OFFSET
    return np.int64(widths[budget, bits - at, min(step, widths.shape[2] - 1)])


@njit(cache=True)
def _block(at: int, width: int, bits: int) -> Any:
    """The mask of `width` bits that begin `at` bits below the most significant one."""
    return np.uint64((1 << width) - 1) << np.uint64(bits - at - width)


@njit(cache=True)
def _root_width(size: int, agree: int) -> int:
    """How many bits to cut at once while the band itself is being agreed on."""
    width = 1
    while width < min(agree, WIDEST_BLOCK) and 1 << width < size:
        width += 1
    return width


@njit(cache=True)
def _advance(
    pool: Any,
    label_pool: Any,
    parents: Any,
    ends: Any,
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
    depth = state[_DEPTH]
    while True:
        if state[_LEAF_A] >= 0:
            if label_pool is None:
                if not _compare_all(pool, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d):
                    state[_DEPTH], state[_STATUS] = depth, _OUTPUT_FULL
                    return
            else:
                _span_all(pool, label_pool, parents, distance, state, out_a, out_b, out_d)
        if depth < 0:
            state[_DEPTH], state[_STATUS] = depth, _DONE
            return
        frame = frames[depth]
        if frame[_BIN] < 0:
            # A new node, or one whose pairs that agree on the block before have been found: cut the next block.
            low, high = frame[_LOW], frame[_HIGH]
            size = high - low
            if frame[_AGREE] > 0:
                width = _root_width(size, frame[_AGREE]) if size > _SMALL else 0
            else:
                width = _width_of(size, frame[_AT], frame[_BUDGET], widths, limits, bits)
            if width == 0:
                state[_LEAF_LOW], state[_LEAF_HIGH], state[_LEAF_A], state[_LEAF_B] = low, high, 0, 0
                state[_LEAF_MASKS] = frame[_MASKS]
                depth -= 1
                continue
            top = frame[_TOP]
            if top + size > len(pool):
                state[_DEPTH], state[_STATUS] = depth, _POOL_FULL
                return
            settled = False
            if label_pool is not None:
                if size > 64:
                    settled = _is_settled(pool[low:high], label_pool[low:high], parents, distance, state, out_a, out_b, out_d)
            if settled:
                depth -= 1
                continue
            shift = bits - frame[_AT] - width
            partition(pool[low:high], pool[top:], shift, width, ends[depth])
            if label_pool is not None:
                _partition_with(label_pool[low:high], label_pool[top:], pool[low:high], shift, width, ends[depth])
            frame[_WIDTH], frame[_BIN], frame[_ONE_BIN] = width, 0, 0
            agreed[depth + 2] = agreed[depth + 1] | _block(frame[_AT], width, bits)
        width = frame[_WIDTH]
        bins = 1 << width
        at = frame[_AT] + width
        budget = frame[_BUDGET]
        agree = max(frame[_AGREE] - width, 0)
        limit = limits[budget, bits - at] if agree == 0 else _SMALL
        top = frame[_TOP]
        child_ends = ends[depth]
        current = frame[_BIN]
        begin = child_ends[current - 1] if current > 0 else 0
        pushed = False
        full = False
        while current < bins:
            end = child_ends[current]
            size = end - begin
            current += 1
            if size < 2:
                begin = end
                continue
            if size == frame[_HIGH] - frame[_LOW]:
                frame[_ONE_BIN] = 1
            if size > limit:
                frame[_BIN] = current
                depth += 1
                child = frames[depth]
                child[_LOW], child[_HIGH] = top + begin, top + end
                child[_TOP] = top + frame[_HIGH] - frame[_LOW]
                child[_AT], child[_BUDGET], child[_AGREE] = at, budget, agree
                child[_BIN], child[_MASKS] = -1, frame[_MASKS]
                pushed = True
                break
            if size <= _QUICK and not _has_pair(pool, top + begin, top + end, distance):
                begin = end
                continue
            state[_LEAF_LOW], state[_LEAF_HIGH], state[_LEAF_A], state[_LEAF_B] = top + begin, top + end, 0, 0
            state[_LEAF_MASKS] = frame[_MASKS]
            if label_pool is None:
                if not _compare_all(pool, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d):
                    full = True
                    break
            else:
                _span_all(pool, label_pool, parents, distance, state, out_a, out_b, out_d)
            begin = end
        if pushed:
            continue
        if full:
            frame[_BIN] = current
            state[_DEPTH], state[_STATUS] = depth, _OUTPUT_FULL
            return
        if frame[_AGREE] > 0 or budget == 0 or frame[_ONE_BIN]:
            # Nobody may differ in the block, or nobody does.
            depth -= 1
            continue
        # Nobody who agrees on the block is left: the others have spent a bit on it.
        masks[frame[_MASKS]] = _block(frame[_AT], width, bits)
        frame[_MASKS] += 1
        frame[_AT] = at
        frame[_BUDGET] = budget - 1
        frame[_BIN] = -1


class BucketSearch:
    """All pairs of buckets of fingerprints within `max_distance` bits, one bucket after another with the same buffers.

    Args:
        bands: the bands that made the buckets, adjoining from the most significant bit. A pair belongs to the first band
            in which it agrees, so it is reported only from a bucket of that band.
        max_distance: at most this many differing bits; one less than the number of bands, or anything if the only band
            is `Band(0, 0)`, on which all agree.
        width: bits of a fingerprint, 1 to 64.
        spanning: report edges that connect the same components instead of all pairs.

    >>> search = BucketSearch([Band(0, 0)], max_distance=1, width=8)
    >>> rows = np.array([0b11110000, 0b11110001, 0b11110011, 0b00000000], np.uint64)
    >>> sorted((int(a), int(b), int(d)) for batch in search.pairs(rows, 0) for a, b, d in zip(*batch))
    [(240, 241, 1), (241, 243, 1)]
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
        self._bands, self._distance, self._width = tuple(bands), max_distance, width
        self._table = cut_table(max_distance, width) if table is None else table
        self._spanning, self._pairs_at_once = spanning, pairs_at_once
        self._pool, self._labels = np.empty(0, np.uint64), np.empty(0, np.int32)
        self._ends = np.empty((_DEEPEST, (1 << WIDEST_BLOCK) + 1), np.int64)

    def pairs(self, rows: npt.NDArray[np.uint64], band: int, shared: int = 0) -> Iterator[tuple[Any, Any, Any]]:
        """The pairs of one bucket, in bounded batches: int64 smaller, int64 larger (as signed numbers), int32 distance.

        Args:
            rows: distinct fingerprints, uint64 of shape (n,). For a spanning search their order decides which edges come.
            band: the index of the band whose bucket this is.
            shared: the first bits of the band which all rows are known to share.
        """
        n = len(rows)
        if n < 2:
            return
        own, before = self._bands[band], self._bands[:band]
        frames = np.zeros((_DEEPEST, _FRAME), np.int64)
        frames[0, [_HIGH, _TOP, _AT, _BUDGET, _AGREE, _BIN, _MASKS]] = (
            n, n, own.start + shared, self._distance - band, own.width - shared, -1, band,
        )  # fmt: skip
        agreed, masks = np.zeros(_DEEPEST + 2, np.uint64), np.zeros(_DEEPEST, np.uint64)
        agreed[1] = own.mask(self._width)
        masks[:band] = [other.mask(self._width) for other in before]
        state = np.zeros(_STATE, np.int64)
        state[_LEAF_A] = -1
        self._reserve(3 * n, 0)
        self._pool[:n] = rows
        parents = None
        if self._spanning:
            self._labels[:n] = np.arange(n, dtype=np.int32)
            parents = np.arange(n, dtype=np.int32)
        # A spanning set has fewer edges than rows, so its output is never full.
        room = max(n, 1) if self._spanning else self._pairs_at_once
        out_a, out_b, out_d = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
        while True:
            _advance(
                self._pool, self._labels if self._spanning else None, parents, self._ends, frames, agreed, masks, state,
                self._distance, self._width, self._table.widths, self._table.limits, out_a, out_b, out_d,
            )  # fmt: skip
            if state[_STATUS] == _POOL_FULL:
                self._reserve(2 * len(self._pool), len(self._pool))
                continue
            found = int(state[_FOUND])
            if found:
                yield out_a[:found].copy(), out_b[:found].copy(), out_d[:found].copy()
            state[_FOUND] = 0
            if state[_STATUS] == _DONE:
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
