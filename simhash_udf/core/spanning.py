"""Connecting the rows of a set instead of listing its pairs: a union-find, and an edge only where it unites two components.

A dense cluster of n rows is connected by a few rows that are compared with all others, in n steps and not in n^2.

Only an edge that belongs to the node is reported. One that agrees on a block which was cut off before belongs to another node,
maybe of another task; it unites here as well, unreported, since its ends are connected there: by that node's own edges or, in
turn, by those of nodes before it. The first nodes own all their pairs, so by induction nothing stays unconnected, and no edge
is reported twice. An edge that differs where the node must agree belongs to a later node, and does not unite here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from simhash_udf.core.compare import FOUND, LEAF_A, LEAF_HIGH, LEAF_LOW, LEAF_MASKS, LEAF_NEW, bit_count, differs_in_all
from simhash_udf.core.components import find

_PIVOTS = 16


@njit(cache=True)
def _unite(parents: Any, i: int, j: int) -> bool:
    """Whether i and j were in two components, which are now one."""
    i, j = find(parents, i), find(parents, j)
    if i == j:
        return False
    parents[max(i, j)] = min(i, j)
    return True


@njit(cache=True)
def _connected(labels: Any, parents: Any) -> bool:
    """Whether all are one component already."""
    first = find(parents, labels[0])
    for i in range(1, len(labels)):
        if parents[labels[i]] != first and find(parents, labels[i]) != first:
            return False
    return True


@njit(cache=True)
def _report_edge(x: Any, y: Any, distance: Any, state: Any, out_a: Any, out_b: Any, out_d: Any) -> None:
    found = state[FOUND]
    a, b = np.int64(x), np.int64(y)
    out_a[found], out_b[found] = min(a, b), max(a, b)
    out_d[found] = np.int32(distance)
    state[FOUND] = found + 1


@njit(cache=True)
def _unite_with(
    at: int,
    begin: int,
    rows: Any,
    labels: Any,
    parents: Any,
    agreed: Any,
    masks: Any,
    distance: int,
    state: Any,
    out_a: Any,
    out_b: Any,
    out_d: Any,
) -> int:
    """Unite rows[at] with each of rows[begin:] within the distance; how many edges that took."""
    within, united, count = np.uint64(distance), 0, state[LEAF_MASKS]
    row, label = rows[at], labels[at]
    others = rows[begin:]
    beyond = np.int64(distance + 1)
    signs = np.int64(0)
    for b in range(len(others)):
        signs |= np.int64(bit_count(row ^ others[b])) - beyond
    if signs < 0:
        for b in range(len(others)):
            difference = row ^ others[b]
            near = difference != 0 and bit_count(difference) <= within and difference & agreed == 0
            if near and _unite(parents, label, labels[begin + b]):
                united += 1
                if differs_in_all(difference, masks, count):
                    _report_edge(row, others[b], bit_count(difference), state, out_a, out_b, out_d)
    return united


@njit(cache=True)
def is_settled(
    rows: Any,
    new: int,
    labels: Any,
    parents: Any,
    agreed: Any,
    masks: Any,
    distance: int,
    state: Any,
    out_a: Any,
    out_b: Any,
    out_d: Any,
) -> bool:
    """Whether a large node needs no search any more: it is one component, perhaps after uniting it around a few pivots."""
    if _connected(labels, parents):
        return True
    # Few pairs: the pivots cost little beside the cut that follows. Many pairs: they unite most of a dense cluster.
    step = max(1, new // _PIVOTS)
    for i in range(_PIVOTS):
        at = (i * step + step // 2) % new
        united = _unite_with(at, 0, rows, labels, parents, agreed, masks, distance, state, out_a, out_b, out_d)
        if united and _connected(labels, parents):
            return True
        if i >= 1 and united < len(rows) // 16:
            break
    return _connected(labels, parents)


@njit(cache=True)
def span_all(
    pool: Any,
    label_pool: Any,
    parents: Any,
    agreed: Any,
    masks: Any,
    distance: int,
    state: Any,
    out_a: Any,
    out_b: Any,
    out_d: Any,
) -> None:
    """Connect the leaf that `state` names."""
    low, high = state[LEAF_LOW], state[LEAF_HIGH]
    rows, labels = pool[low:high], label_pool[low:high]
    state[LEAF_A] = -1
    n = len(rows)
    if _connected(labels, parents):
        return
    new = state[LEAF_NEW]
    if n > 64 and is_settled(rows, new, labels, parents, agreed, masks, distance, state, out_a, out_b, out_d):
        return
    if n <= 64 or new < n:
        for a in range(min(new, n - 1)):
            _unite_with(a, a + 1, rows, labels, parents, agreed, masks, distance, state, out_a, out_b, out_d)
        return
    # Rows of the largest component need no comparison among themselves: move them to the end, and compare the others.
    roots = np.empty(n, np.int64)
    for i in range(n):
        roots[i] = find(parents, labels[i])
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
                _unite_with(a, end, sorted_rows, sorted_labels, parents, agreed, masks, distance, state, out_a, out_b, out_d)
        begin = end
