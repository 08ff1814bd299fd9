"""Connected components of a graph in memory, by union-find.

Source: Tarjan 1975, "Efficiency of a good but not linear set union algorithm", with path halving (Tarjan and van Leeuwen
1984). The root of a component is its smallest node, so the result does not depend on the order of the edges.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Int64s = npt.NDArray[np.int64]


@njit(cache=True, forceinline=True)
def find(parents: Any, node: int) -> int:
    """The root of a node, halving the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True)
def _unite_all(parents: Any, left: Any, right: Any, united: Any) -> None:
    for i in range(len(left)):
        a, b = find(parents, left[i]), find(parents, right[i])
        united[i] = a != b
        parents[max(a, b)] = min(a, b)


@njit(cache=True)
def _roots(parents: Any) -> None:
    # A parent is never larger than its child, so one pass upward leaves every node at its root.
    for node in range(len(parents)):
        parents[node] = parents[parents[node]]


def _unite(a: Int64s, b: Int64s) -> tuple[Int64s, Int64s, npt.NDArray[np.bool_]]:
    nodes = np.unique(np.concatenate([a, b]))
    parents = np.arange(len(nodes), dtype=np.int64)
    united = np.zeros(len(a), np.bool_)
    _unite_all(parents, np.searchsorted(nodes, a), np.searchsorted(nodes, b), united)
    return nodes, parents, united


def connected_components(a: Int64s, b: Int64s) -> tuple[Int64s, Int64s]:
    """Nodes that have an edge, ascending, and for each the smallest node of its component.

    Args:
        a, b: the two ends of each edge, int64 arrays of one length; order, direction and repetition do not matter.

    >>> nodes, components = connected_components(np.array([5, 7, 1]), np.array([7, 9, 2]))
    >>> nodes.tolist(), components.tolist()
    ([1, 2, 5, 7, 9], [1, 1, 5, 5, 5])
    """
    nodes, parents, _ = _unite(a, b)
    _roots(parents)
    return nodes, nodes[parents]


def spanning_forest(a: Int64s, b: Int64s) -> npt.NDArray[np.bool_]:
    """Which edges to keep so that the components stay the same and no cycle is left.

    >>> spanning_forest(np.array([1, 2, 1]), np.array([2, 3, 3])).tolist()
    [True, True, False]
    """
    return _unite(a, b)[2]
