"""Connected components: by a union-find where the nodes fit in memory, and by contraction where they do not.

The union-find is that of Tarjan 1975, "Efficiency of a good but not linear set union algorithm", with path halving (Tarjan
and van Leeuwen 1984). Edges come in parts and are not kept, so memory grows with the nodes alone.

The contraction is of the kind of Łącki, Mirrokni and Włodarczyk 2018, "Connected Components at Scale via Local
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
import numpy.typing as npt
from numba import njit

__all__ = ["Contraction", "Lookup", "UnionFind", "connected_components", "contract", "deal", "owners"]

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Bools = npt.NDArray[np.bool_]

_SLICE = 1 << 18


@njit(cache=True, forceinline=True)
def find(parents: Any, node: int) -> int:
    """The root of a node, halving the path to it."""
    while parents[node] != node:
        parents[node] = parents[parents[node]]
        node = parents[node]
    return node


@njit(cache=True, forceinline=True)
def _mix(key: Any, seed: Any) -> Any:
    """SplitMix64's finalizer: each seed permutes the keys in another way, so two keys never get one value."""
    bits = np.uint64(key) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(cache=True)
def _rebuild(slots: Any, keys: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for i in range(len(keys)):
        at = _mix(keys[i], 0) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = i + 1


@njit(cache=True)
def _number(slots: Any, keys: Any, count: int, wanted: Any, numbers: Any) -> int:
    """Numbers of the wanted keys; new ones get the next. Returns how many keys there are then."""
    mask = np.uint64(len(slots) - 1)
    for i in range(len(wanted)):
        at = _mix(wanted[i], 0) & mask
        while slots[at] != 0 and keys[slots[at] - 1] != wanted[i]:
            at = (at + np.uint64(1)) & mask
        if slots[at] == 0:
            keys[count] = wanted[i]
            count += 1
            slots[at] = count
        numbers[i] = slots[at] - 1
    return count


@njit(cache=True)
def _find_numbers(slots: Any, keys: Any, wanted: Any, numbers: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for i in range(len(wanted)):
        at = _mix(wanted[i], 0) & mask
        while slots[at] != 0 and keys[slots[at] - 1] != wanted[i]:
            at = (at + np.uint64(1)) & mask
        numbers[i] = slots[at] - 1


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


class _Numbering:
    """Numbers 0, 1, 2 ... for int64 keys in the order in which they come; at most 2^31 - 1."""

    def __init__(self) -> None:
        self._slots: Int32s = np.zeros(1 << 12, np.int32)
        self._keys: Int64s = np.empty(1 << 11, np.int64)
        self.count = 0

    @property
    def keys(self) -> Int64s:
        return self._keys[: self.count]

    def number(self, wanted: Int64s) -> Int32s:
        """The number of each key, given to it where it has none; `wanted` must be a small part of all."""
        most = self.count + len(wanted)
        if most > len(self._keys):
            # Slots are at least half empty, so that probes stay short.
            size = 1 << (most - 1).bit_length()
            keys = np.empty(size, np.int64)
            keys[: self.count] = self.keys
            self._keys = keys
            self._slots = np.zeros(2 * size, np.int32)
            _rebuild(self._slots, self.keys)
        numbers = np.empty(len(wanted), np.int32)
        self.count = int(_number(self._slots, self._keys, self.count, wanted, numbers))
        return numbers

    def find(self, wanted: Int64s) -> Int32s:
        """The number of each key, -1 where it has none."""
        numbers = np.empty(len(wanted), np.int32)
        _find_numbers(self._slots, self._keys, wanted, numbers)
        return numbers


class UnionFind:
    """Connected components of edges that come in parts; about 40 bytes a node (64 while it grows), none an edge.

    >>> parts = UnionFind()
    >>> parts.add(np.array([5, 7]), np.array([7, 9]))
    >>> parts.add(np.array([1]), np.array([2]))
    >>> parts.nodes.tolist(), parts.roots().tolist()
    ([5, 7, 9, 1, 2], [0, 0, 0, 3, 3])
    """

    def __init__(self) -> None:
        self._numbering = _Numbering()
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
        for start in range(0, len(a), _SLICE):
            part = slice(start, start + _SLICE)
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
        before, size = len(self._parents), len(self._numbering._keys)
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
            rank = _mix(nodes[i], seed)
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


class Lookup:
    """Values by int64 keys; ValueError where a key comes twice.

    >>> Lookup(np.array([5, 7]), np.array([1, 2])).get(np.array([7, 8]), np.array([0, 0])).tolist()
    [2, 0]
    """

    def __init__(self, keys: Int64s, values: Int64s) -> None:
        self._numbering = _Numbering()
        for start in range(0, len(keys), _SLICE):
            self._numbering.number(keys[start : start + _SLICE])
        if self._numbering.count < len(keys):
            raise ValueError(f"of {len(keys):,} keys only {self._numbering.count:,} are distinct")
        self._values = np.append(values, 0)

    def get(self, keys: Int64s, default: Int64s | None = None) -> Int64s:
        """The value of each key, or the default beside it; KeyError where a key is missing and there is no default."""
        at = self._numbering.find(keys)
        missing = at < 0
        if default is None and missing.any():
            raise KeyError(int(keys[missing][0]))
        return self._values[at] if default is None else np.where(missing, default, self._values[at])


@njit(cache=True)
def _owners(nodes: Any, tasks: int, owned_by: Any) -> None:
    for i in range(len(nodes)):
        owned_by[i] = ((_mix(nodes[i], 0) >> np.uint64(32)) * np.uint64(tasks)) >> np.uint64(32)


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
