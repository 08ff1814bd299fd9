"""Connected components of a graph whose nodes fit in memory.

The union-find is that of Tarjan 1975, "Efficiency of a good but not linear set union algorithm", with path halving (Tarjan
and van Leeuwen 1984). Edges come in parts and are not kept, so memory grows with the nodes alone.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from simhash_udf.core.numbering import SLICE, Int32s, Int64s, Numbering

Bools = npt.NDArray[np.bool_]


@njit(cache=True, forceinline=True)
def find(parents: Any, node: int) -> int:
    """The root of a node, halving the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True)
def _unite_all(parents: Any, left: Any, right: Any) -> None:
    for i in range(len(left)):
        a, b = find(parents, left[i]), find(parents, right[i])
        parents[max(a, b)] = min(a, b)


@njit(cache=True)
def _to_roots(parents: Any) -> None:
    # A parent is never larger than its child, so one pass upward leaves every node at its root.
    for node in range(len(parents)):
        parents[node] = parents[parents[node]]


@njit(cache=True)
def _smallest(nodes: Any, roots: Any) -> Any:
    smallest = nodes.copy()
    for i in range(len(nodes)):
        smallest[roots[i]] = min(smallest[roots[i]], nodes[i])
    for i in range(len(nodes)):
        smallest[i] = smallest[roots[i]]
    return smallest


class UnionFind:
    """Connected components of edges that come in parts; about 40 bytes a node (64 while it grows), none an edge.

    >>> parts = UnionFind()
    >>> parts.add(np.array([5, 7]), np.array([7, 9]))
    >>> parts.add(np.array([1]), np.array([2]))
    >>> parts.nodes.tolist(), parts.roots().tolist()
    ([5, 7, 9, 1, 2], [0, 0, 0, 3, 3])
    """

    def __init__(self) -> None:
        self._numbering = Numbering()
        self._parents: Int32s = np.empty(0, np.int32)
        self._is_left: Bools = np.empty(0, np.bool_)
        self._is_right: Bools = np.empty(0, np.bool_)

    @property
    def nodes(self) -> Int64s:
        """All nodes, in the order in which they came."""
        return self._numbering.keys

    @property
    def is_left(self) -> Bools:
        """For each node whether it was the first end of an edge."""
        return self._is_left[: len(self.nodes)]

    @property
    def is_right(self) -> Bools:
        """For each node whether it was the second end of an edge."""
        return self._is_right[: len(self.nodes)]

    def add(self, a: Int64s, b: Int64s) -> None:
        """Unite the ends of each edge; two arrays of one length."""
        for start in range(0, len(a), SLICE):
            part = slice(start, start + SLICE)
            left, right = self._numbering.number(a[part]), self._numbering.number(b[part])
            self._grow()
            self._is_left[left] = True
            self._is_right[right] = True
            _unite_all(self._parents, left, right)

    def roots(self) -> Int32s:
        """For each node the number, in the order of `nodes`, of the first node of its component."""
        parents = self._parents[: len(self.nodes)]
        _to_roots(parents)
        return parents

    def smallest(self) -> Int64s:
        """For each node the smallest node of its component."""
        smallest: Int64s = _smallest(self.nodes, self.roots())
        return smallest

    def _grow(self) -> None:
        before, size = len(self._parents), self._numbering.capacity
        if before < size:
            self._parents = np.concatenate([self._parents, np.arange(before, size, dtype=np.int32)])
            self._is_left = np.concatenate([self._is_left, np.zeros(size - before, np.bool_)])
            self._is_right = np.concatenate([self._is_right, np.zeros(size - before, np.bool_)])


def connected_components(a: Int64s, b: Int64s) -> tuple[Int64s, Int64s]:
    """Nodes that have an edge, each once, and for each the smallest node of its component.

    Args:
        a, b: the two ends of each edge, int64 arrays of one length; order, direction and repetition do not matter.

    >>> nodes, components = connected_components(np.array([5, 7, 1]), np.array([7, 9, 2]))
    >>> nodes.tolist(), components.tolist()
    ([5, 7, 1, 9, 2], [5, 5, 1, 5, 1])
    """
    united = UnionFind()
    united.add(a, b)
    return united.nodes, united.smallest()
