"""Contraction of a graph whose nodes do not fit one task's memory, round by round, until they do.

It is of the kind of Łącki, Mirrokni and Włodarczyk 2018, "Connected Components at Scale via Local
Contractions": nodes are renamed to nodes of their component in the order of a random rank, until few are left. Here a graph
is a set of links (node, root), each node's links in one task, and what is not a root of any link has no other edges than
these. A round unites the links of a task, settles such nodes by one of the roots they are united with, and links what
remains anew.

- Nothing is lost or joined wrongly: a settled node has all its edges in this task, and all that they join stays joined.
- A node has at most as many links as there are tasks, so that no node is too large for one.
- The node of the highest rank in a component is never the root of a link that a round makes, so it is settled in the next.
  Ranks are drawn anew in each round, so no graph is in a bad order: of a path a third of the nodes goes in each round.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit

from simhash_udf.core.components import Bools, UnionFind
from simhash_udf.core.numbering import Int32s, Int64s, mix


class Contraction(NamedTuple):
    """What a round makes of a task's links: the links of what remains, and what is settled. Each pair of arrays is of one length.

    `linked` with `roots` are the next links. Each of the nodes `settled` is in the component of that of `settled_by`, which is
    not settled in this round.
    """

    linked: Int64s
    roots: Int64s
    settled: Int64s
    settled_by: Int64s


@njit(cache=True)
def _lowest_ranked(nodes: Any, roots: Any, remains: Any, seed: int, chosen: Any, remaining: Any) -> None:
    ranks = np.empty(len(nodes), np.uint64)
    for i in range(len(nodes)):
        if remains[i]:
            root = roots[i]
            rank = mix(nodes[i], seed)
            if remaining[root] == 0 or rank < ranks[root]:
                chosen[root], ranks[root] = nodes[i], rank
            remaining[root] += 1


def contract(united: UnionFind, remains: Bools, seed: int) -> Contraction:
    """Settle the nodes of which nothing remains, and link the others to the one of lowest rank in their component.

    Args:
        united: the edges of a task.
        remains: for each of its nodes whether it may have edges in other tasks; at least one in each component.
        seed: decides the ranks; the same in all tasks of a round, another in each round.

    >>> parts = UnionFind()
    >>> parts.add(np.array([5, 7]), np.array([7, 9]))
    >>> [part.tolist() for part in contract(parts, np.array([True, False, False]), 1)]
    [[], [], [7, 9], [5, 5]]
    """
    nodes, roots = united.nodes, united.roots()
    chosen, remaining = np.empty(len(nodes), np.int64), np.zeros(len(nodes), np.int32)
    _lowest_ranked(nodes, roots, remains, seed, chosen, remaining)
    # A node that alone remains has no edge left; its links in other tasks, if any, are made there.
    linked = remains & (remaining[roots] > 1)
    return Contraction(nodes[linked], chosen[roots[linked]], nodes[~remains], chosen[roots[~remains]])


@njit(cache=True)
def _owners(nodes: Any, tasks: int, owned_by: Any) -> None:
    for i in range(len(nodes)):
        owned_by[i] = ((mix(nodes[i], 0) >> np.uint64(32)) * np.uint64(tasks)) >> np.uint64(32)


def owners(nodes: Int64s, tasks: int) -> Int32s:
    """For each node the task, 0 to tasks - 1, that has its links."""
    owned_by = np.empty(len(nodes), np.int32)
    _owners(nodes, tasks, owned_by)
    return owned_by


@njit(cache=True)
def _deal(first: Any, second: Any, owned_by: Any, ends: Any, pairs: Any) -> None:
    for i in range(len(first)):
        at = ends[owned_by[i]]
        pairs[at, 0], pairs[at, 1] = first[i], second[i]
        ends[owned_by[i]] = at + 1


def deal(first: Int64s, second: Int64s, owned_by: Int32s, tasks: int) -> tuple[Int64s, Int64s]:
    """The pairs (first, second) in the order of their tasks, as an array (n, 2), and where the pairs of each task end.

    >>> pairs, ends = deal(np.array([1, 2, 3]), np.array([4, 5, 6]), np.array([1, 0, 1], np.int32), 2)
    >>> pairs.tolist(), ends.tolist()
    ([[2, 5], [1, 4], [3, 6]], [1, 3])
    """
    counts = np.bincount(owned_by, minlength=tasks)
    ends = np.cumsum(counts) - counts
    pairs = np.empty((len(first), 2), np.int64)
    _deal(first, second, owned_by, ends, pairs)
    return pairs, ends
