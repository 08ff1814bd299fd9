"""All pairs of one bucket of fingerprints that differ in at most k bits.

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

The alternatives. A fixed number of blocks for all chunks (Manku, Jain, Das Sarma 2007) sorts once for each choice of blocks.
Bands of k + 1 equal parts with a Hamming ball probed in each (Norouzi, Punjani, Fleet 2012, "Fast search in Hamming space with
multi-index hashing"), or k/2 + 1 parts, one of which differs in a bit at most (HEngine: Liu, Shen, Torng 2011), need many
probes a row where a self-join sorts once. Unequal parts with thresholds chosen by cost (GPH: Qin et al. 2018) are what the
recursion chooses for each node. Trees of prefixes (HA-index: Tang et al. 2015) prune little, since prefixes of fingerprints are
spread evenly. benchmarks/alternatives.py measures these; DESIGN.md has the figures.

A spanning search reports edges instead of pairs: a union-find over the bucket, an edge only where it unites two
components, and nodes whose members are one component are left out, so dense clusters cost a few passes and not n^2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from simhash_udf.core.blocks import WIDEST_BLOCK, Band, CutTable, cut_table, share_class
from simhash_udf.core.compare import BETWEEN, COPY, FOUND, HAS_COPY, LEAF_A
from simhash_udf.core.walk import (
    AGREE,
    AT,
    BIN,
    BUDGET,
    COMPARED,
    DEEPEST,
    DIFFERING_END,
    DONE,
    FRAME,
    HIGH,
    MASKS,
    NEW,
    PART,
    PARTS,
    POOL_FULL,
    SORTED,
    STATE,
    STATUS,
    TOP,
    UNIT_ROWS,
    UNITS_PER_PART,
    advance,
)
from simhash_udf.errors import InputError

PAIRS_AT_ONCE = 1 << 17


def bytes_to_search(rows: float, spanning: bool) -> float:
    """About how much memory searching a bucket takes beside its rows.

    The pool has three times the rows, and more of a bucket whose chunks are very uneven; a spanning search has as many labels, a
    parent for each row, and room for an edge of each. The rows that are given are a copy as well until the pool has them.
    """
    return rows * (8 + 24 + (12 + 4 + 20 if spanning else 0))


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
        comparisons: pairs of fingerprints that had to be compared so far, by the sizes of the leaves.
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
        self._ends = np.empty((DEEPEST, (1 << WIDEST_BLOCK) + 1), np.int64)
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

        Raises:
            InputError: rows that were compared are the same fingerprint. Not every copy is compared.
        """
        assert not (between and self._spanning)
        n = len(rows)
        new = n if new is None else new
        if n < 2 or new == 0:
            return
        own, before = self._bands[band], self._bands[:band]
        frames = np.zeros((DEEPEST, FRAME), np.int64)
        frames[0, [HIGH, NEW, TOP, AT, BUDGET, AGREE, BIN, MASKS, DIFFERING_END]] = (
            n, new, n, own.start + shared, self._distance - band, own.width - shared, -1, band, -1,
        )  # fmt: skip
        agreed, masks = np.zeros(DEEPEST + 2, np.uint64), np.zeros(DEEPEST, np.uint64)
        agreed[1] = own.mask(self._width)
        masks[:band] = [other.mask(self._width) for other in before]
        state = np.zeros(STATE, np.int64)
        state[LEAF_A] = -1
        state[BETWEEN], state[PART], state[PARTS] = between, part, parts
        state[UNIT_ROWS] = n // (UNITS_PER_PART * parts) if parts > 1 else n
        self._reserve(3 * n, 0)
        self._pool[:n] = rows
        # The pool has them now, and a bucket may be most of a task's memory.
        del rows
        parents = None
        if self._spanning:
            self._labels[:n] = np.arange(n, dtype=np.int32)
            parents = np.arange(n, dtype=np.int32)
        # A spanning set has fewer edges than rows, so its output is never full.
        room = max(n, 1) if self._spanning else self._pairs_at_once
        out_a, out_b, out_d = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.int32)
        table = self._table or cut_table(self._distance, self._width, share_class(new, n))
        while True:
            advance(
                self._pool, self._labels if self._spanning else None, parents, self._ends, self._new_ends, frames, agreed, masks,
                state, self._distance, self._width, table.widths, table.limits, out_a, out_b, out_d,
            )  # fmt: skip
            if state[STATUS] == POOL_FULL:
                self._reserve(2 * len(self._pool), len(self._pool))
                continue
            if state[HAS_COPY]:
                raise InputError(
                    f"the fingerprint {state[COPY]} comes more than once, and its pairs would too; a search takes distinct ones: "
                    "use dropDuplicates before"
                )
            found = int(state[FOUND])
            if found:
                yield out_a[:found].copy(), out_b[:found].copy(), out_d[:found].copy()
            state[FOUND] = 0
            if state[STATUS] == DONE:
                self.comparisons += int(state[COMPARED])
                self.rows_sorted += int(state[SORTED])
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
