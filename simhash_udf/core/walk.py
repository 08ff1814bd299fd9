"""The walk over the nodes of a search (see blocks.py): cut the node, visit what agrees on the block, go on with what differs.

It is one compiled loop with a stack of its own, so that it can stop when its output is full, and go on in another call.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from simhash_udf.core.blocks import MOST_DIFFERING, WIDEST_BLOCK
from simhash_udf.core.compare import (
    BETWEEN,
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
from simhash_udf.core.cuts import block_mask, count_bins, halves_of, partition_with, place, root_width, the_only_bin, width_of
from simhash_udf.core.spanning import is_settled, span_all

DEEPEST = 96  # a level uses at least one bit, or a block that differs
SMALL = 32  # rows of a bucket that is compared without cutting its band

# Columns of a frame: a node whose children are being visited. It has rows pool[LOW:HIGH], of which the first NEW are new. Those
# of its children begin at BASE, and from TOP on the pool was free before the cut.
LOW, HIGH, NEW, TOP, BASE, AT, BUDGET, AGREE, WIDTH, BIN, MASKS, ONE_BIN, HALF, DIFFERING, DIFFERING_END = range(15)
FRAME = 15
# Fields of the state beyond those of the leaf.
DEPTH, STATUS, COMPARED, SORTED, PART, PARTS, UNIT_ROWS, UNITS = range(LEAF_FIELDS, LEAF_FIELDS + 8)
STATE = LEAF_FIELDS + 8
DONE, OUTPUT_FULL, POOL_FULL = range(3)
QUICK = 256  # rows of a leaf that is first asked whether it has any pair
LARGE = 1024  # rows of a node that is first asked whether it is dense
UNITS_PER_PART = 8  # a bucket is shared out in nodes that are smaller than it by so much, at least


@njit(cache=True)
def _next_differing(frame: Any, masks: Any) -> bool:
    """Move on to the next differing block that has halves; whether there is one."""
    if frame[DIFFERING_END] < 0:
        frame[DIFFERING_END] = frame[MASKS]
    while frame[DIFFERING] < frame[DIFFERING_END]:
        block = masks[frame[DIFFERING]]
        if block & (block - np.uint64(1)):
            return True
        frame[DIFFERING] += 1
    return False


@njit(cache=True)
def _begin_leaf(state: Any, low: int, high: int, new: int, masks: int, spanning: bool) -> None:
    """Make pool[low:high] the leaf to be compared; of a leaf larger than a unit this part's share of the rows, or none."""
    size = high - low
    state[LEAF_LOW], state[LEAF_HIGH], state[LEAF_NEW], state[LEAF_MASKS] = low, high, new, masks
    state[LEAF_A], state[LEAF_STEP], state[LEAF_B] = 0, 1, 0
    compared = new * (size - new) if state[BETWEEN] else new * size - new * (new + 1) // 2
    if size > state[UNIT_ROWS]:
        if not spanning:
            state[LEAF_A], state[LEAF_STEP] = state[PART], state[PARTS]
            compared //= state[PARTS]
        elif state[PART] > 0:
            state[LEAF_A] = -1
            return
    state[COMPARED] += compared


@njit(cache=True)
def advance(
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
    depth, parts, unit_rows = state[DEPTH], state[PARTS], state[UNIT_ROWS]
    while True:
        if state[LEAF_A] >= 0:
            if label_pool is None:
                if not compare_all(pool, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d):
                    state[DEPTH], state[STATUS] = depth, OUTPUT_FULL
                    return
            else:
                span_all(pool, label_pool, parents, agreed[depth + 2], masks, distance, state, out_a, out_b, out_d)
        if depth < 0:
            state[DEPTH], state[STATUS] = depth, DONE
            return
        frame = frames[depth]
        low, high, new = frame[LOW], frame[HIGH], frame[NEW]
        size = high - low
        if frame[BIN] < 0:
            # A new node, or one of whose pairs some have been found: cut the next block.
            remaining = bits - frame[AT]
            if frame[AGREE] > 0:
                width = root_width(size, frame[AGREE]) if size > SMALL else 0
            elif frame[HALF] == 1:
                width = 1
            elif label_pool is None and size >= LARGE and is_dense(pool, low, high, new, distance):
                width = 0
            elif remaining > 0:
                differing = min(frame[MASKS], MOST_DIFFERING)
                width = width_of(size, remaining, frame[BUDGET], differing, widths, limits)
            elif _next_differing(frame, masks):
                differing = min(frame[DIFFERING_END] - frame[DIFFERING], MOST_DIFFERING)
                width = width_of(size, remaining, frame[BUDGET], differing, widths, limits)
            else:
                width = 0
            if width == 0:
                _begin_leaf(state, low, high, new, frame[MASKS], label_pool is not None)
                depth -= 1
                continue
            whole_block = True
            if frame[AGREE] > 0 or remaining > 0:
                block = block_mask(frame[AT], width, bits)
                shift = bits - frame[AT] - width
            else:
                halves = halves_of(masks[frame[DIFFERING]])
                block = halves[frame[HALF]]
                shift = np.int64(bit_count((block & (~block + np.uint64(1))) - np.uint64(1)))
                # Cutting by some of its bits is enough: the mask of agreed bits has them all.
                width = min(np.int64(bit_count(block)), WIDEST_BLOCK)
                whole_block = width == np.int64(bit_count(block))
            count_bins(pool[low:high], shift, width, ends[depth])
            only = the_only_bin(pool[low], size, shift, width, ends[depth])
            top = frame[TOP]
            if only < 0 and top + size > len(pool):
                state[DEPTH], state[STATUS] = depth, POOL_FULL
                return
            settled = False
            if label_pool is not None:
                if size > 64 and size <= unit_rows:
                    state[LEAF_MASKS] = frame[MASKS]
                    settled = is_settled(
                        pool[low:high], new, label_pool[low:high], parents, agreed[depth + 1], masks, distance, state,
                        out_a, out_b, out_d,
                    )  # fmt: skip
            if settled:
                depth -= 1
                continue
            if only >= 0:
                # The rows are in order where they lie: a hot chunk takes no more memory for each block that it agrees on.
                ends[depth, :only], ends[depth, only : 1 << width] = 0, size
                new_ends[depth, :only], new_ends[depth, only : 1 << width] = 0, new
                frame[BASE] = low
            else:
                place(pool[low : low + new], pool[top:], shift, width, ends[depth])
                if new < size:
                    # A stable cut, so the new rows of each bin come first.
                    new_ends[depth, : 1 << width] = ends[depth, : 1 << width]
                    place(pool[low + new : high], pool[top:], shift, width, ends[depth])
                if label_pool is not None:
                    partition_with(label_pool[low:high], label_pool[top:], pool[low:high], shift, width, ends[depth])
                state[SORTED] += size
                frame[BASE] = top
            # Rows in one bin agree on the block, if the bin says all of it.
            frame[WIDTH], frame[BIN], frame[ONE_BIN] = width, 0, only >= 0 and whole_block
            agreed[depth + 2] = agreed[depth + 1] | block
        width = frame[WIDTH]
        bins = 1 << width
        fresh = frame[AGREE] > 0 or frame[AT] < bits
        at = frame[AT] + width if fresh else bits
        budget = frame[BUDGET]
        agree = max(frame[AGREE] - width, 0)
        differing_at, differing_end = frame[DIFFERING], frame[DIFFERING_END]
        if not fresh:
            differing_at += 1
        differing = min(frame[MASKS] if differing_end < 0 else differing_end - differing_at, MOST_DIFFERING)
        limit = limits[budget, bits - at, differing] if agree == 0 else SMALL
        base = frame[BASE]
        child_top = frame[TOP] if base == low else frame[TOP] + size
        child_ends = ends[depth]
        child_new_ends = new_ends[depth]
        current = frame[BIN]
        begin = child_ends[current - 1] if current > 0 else 0
        pushed = False
        full = False
        while current < bins:
            end = child_ends[current]
            child_size = end - begin
            child_new = child_size if new == size else child_new_ends[current] - begin
            current += 1
            if child_size < 2 or child_new == 0 or (state[BETWEEN] and child_new == child_size):
                begin = end
                continue
            if parts > 1 and size > unit_rows and child_size <= unit_rows:
                state[UNITS] += 1
                if state[UNITS] % parts != state[PART]:
                    begin = end
                    continue
            if child_size > limit:
                frame[BIN] = current
                depth += 1
                child = frames[depth]
                child[LOW], child[HIGH], child[NEW] = base + begin, base + end, child_new
                child[TOP] = child_top
                child[AT], child[BUDGET], child[AGREE] = at, budget, agree
                child[BIN], child[MASKS] = -1, frame[MASKS]
                child[HALF], child[DIFFERING], child[DIFFERING_END] = 0, differing_at, differing_end
                pushed = True
                break
            _begin_leaf(state, base + begin, base + end, child_new, frame[MASKS], label_pool is not None)
            if state[LEAF_A] >= 0 and child_size <= min(QUICK, unit_rows):
                # Most leaves end here; where one does not, nothing is near the rows before.
                first = base + begin
                last = first + min(child_new, child_size - 1)
                near = next_near(pool, first, last, first + child_new if state[BETWEEN] else first, base + end, distance)
                state[LEAF_A] = near - first if near >= 0 else -1
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
            frame[BIN] = current
            state[DEPTH], state[STATUS] = depth, OUTPUT_FULL
            return
        if frame[AGREE] > 0 or frame[ONE_BIN]:
            # Nobody may differ in the block, or nobody does.
            depth -= 1
            continue
        frame[BIN] = -1
        if not fresh and frame[HALF] == 0:
            frame[HALF] = 1
            continue
        if budget == 0:
            depth -= 1
            continue
        # Nobody who agrees on the block is left: the others have spent a bit on it.
        if fresh:
            masks[frame[MASKS]] = block_mask(frame[AT], width, bits)
            frame[MASKS] += 1
        else:
            halves = halves_of(masks[frame[DIFFERING]])
            masks[frame[MASKS]], masks[frame[MASKS] + 1] = halves[0], halves[1]
            frame[MASKS] += 2
            frame[HALF], frame[DIFFERING] = 0, differing_at
        frame[AT] = at
        frame[BUDGET] = budget - 1
