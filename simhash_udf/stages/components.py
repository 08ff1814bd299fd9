"""Edges between nodes -> the connected component of each node: in one task where they fit, else by contraction.

    edges --mapInArrow--> each task's edges, as links (node, root) of a union-find
          [ --shuffle by node, mapInArrow--> what remains to be linked, and what is settled ]  until the rest fits one task
          --one task--> components of the rest
          [ --two shuffles--> components of what a round settled ]  back to the first round

core/contraction.py says how a round works and why it loses nothing. The way back asks for each distinct root once a task, so a
component of any size gives no task more to do than another. Links travel as packed binary values, as fingerprints do in the
search: a row of a shuffle costs Spark about half a microsecond, whatever is in it.

A table between rounds has rows `kind`, `task`, `pairs`, `data`: so many pairs of 64-bit numbers for a task. Rows without data
are counts, by which each round is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.core.components import UnionFind
from simhash_udf.core.contraction import contract, deal, owners
from simhash_udf.core.numbering import Int32s, Int64s, Lookup
from simhash_udf.errors import IncompleteResult, NotConverged
from simhash_udf.stages.addresses import keys_of_tasks

__all__ = ["Discard", "GraphLimits", "Store", "connected_components"]

Store = Callable[[str, DataFrame], DataFrame]
Discard = Callable[[str], None]

_SCHEMA = "kind STRING, task INT, pairs BIGINT, data BINARY"
_COMPONENTS = "node BIGINT, component BIGINT"
# Links (node, root), for the task of the node.
_LINK = "link"
# (node, root), for the task of the node: the node is settled, and in the component of the root.
_SETTLED = "settled"
# (root, number of a task): that task wants to know the root's component.
_REQUEST = "request"
# (root, component), for a task that asked.
_ANSWER = "answer"
# (node, component), for the task of the node.
_LABEL = "label"
# Counts: links that a task received, nodes that it has the links of, how many of these are not settled, and the links or
# labels that it sent.
_RECEIVED, _NODES, _REMAINING, _SENT = "received", "nodes", "remaining", "sent"

# Spark 3.5 bounds a batch by its 10,000 rows alone, and a batch must stay below 2 GiB.
_SHARE_PAIRS = (128 << 10) // 16
_BATCH_SHARES = 128
_ROWS = 100_000
# Zero is the order in which nodes are dealt to tasks: with it, the roots would all be dealt to the first ones.
_FIRST_SEED = 1
_MOST_TASKS = 2_000


@dataclass(frozen=True)
class GraphLimits:
    """What a task of the clustering may hold, and how often the graph may be contracted.

    Attributes:
        nodes: most of them in the one task that has all that is left. It takes about 64 bytes of memory for each beside
            Spark's own, so 4 GiB for 64 million.
        edges: edges for each task of a round, which holds at most twice as many links: about 100 bytes each, so 0.8 GiB. There
            are at most 2,000 tasks, which hold more where there are more than 8 billion edges.
        rounds: a round leaves at most two thirds of the nodes on the average, so that 32 are enough for 400,000 times as many
            as one task holds.
    """

    nodes: int = 64_000_000
    edges: int = 4_000_000
    rounds: int = 32


def connected_components(edges: DataFrame, store: Store, discard: Discard, limits: GraphLimits | None = None) -> DataFrame:
    """The connected components of a graph: `node` BIGINT, `component` BIGINT, for nodes that have an edge.

    Args:
        edges: `node_a`, `node_b` BIGINT; they are counted, and read once more.
        store: called with a name and a table; gives the table back with its lineage cut.
        discard: called with a name given to `store` once that table is not needed any more.
        limits: other limits than those of GraphLimits.

    Two nodes are in one component where a path of edges joins them, and `component` is then the same node of it for both. A
    node that gives its component the name may itself be missing.

    Raises:
        NotConverged: the rounds ran out before the rest fits one task.
        IncompleteResult: links, nodes or labels were lost or came twice between two rounds.
    """
    limits = limits or GraphLimits()
    edges = edges.select("node_a", "node_b")
    number = edges.count()
    if 2 * number <= limits.nodes:
        links = edges.mapInArrow(partial(_links, tasks=1, nodes=limits.nodes), _SCHEMA)
        return _of_kind(links, _LINK).repartition(1).mapInArrow(_components_of_rest, _COMPONENTS)
    tasks = max(1, min(_MOST_TASKS, -(-number // limits.edges)))
    table = store("graph_0", edges.mapInArrow(partial(_links, tasks=tasks, nodes=2 * limits.edges), _SCHEMA))
    rounds = [table]
    counts = [_counts(table)]
    while counts[-1][_LINK] > limits.nodes:
        done = len(rounds) - 1
        if done == limits.rounds:
            raise NotConverged(
                f"{done} rounds have left {counts[-1][_LINK]:,} links between nodes, and one clustering task holds "
                f"{limits.nodes:,}; lower --max-distance, or use features that fewer documents share, such as longer n-grams"
            )
        contracted = _shuffled(_of_kind(rounds[-1], _LINK), tasks).mapInArrow(
            partial(_round, tasks=tasks, seed=_FIRST_SEED + done + 1), _SCHEMA
        )
        rounds.append(store(f"graph_{done + 1}", contracted))
        counts.append(_counts(rounds[-1]))
        _check_round(done + 1, counts[-2], counts[-1])
        if done == 0:
            # It has links alone; later tables are needed on the way back.
            discard("graph_0")
    rest = _of_kind(rounds[-1], _LINK).repartition(1).mapInArrow(partial(_labels_of_rest, tasks=tasks), _SCHEMA)
    last = len(rounds) - 1
    labels = store(f"graph_labels_{last}", rest)
    labelled = _counts(labels)[_LABEL]
    if last == 0:
        discard("graph_0")
    for done in range(last, 0, -1):
        answered = _shuffled(_of_kind(rounds[done], _REQUEST).unionByName(labels), tasks)
        answered = answered.mapInArrow(partial(_answers, tasks=tasks), _SCHEMA)
        resolved = _shuffled(_of_kind(rounds[done], _SETTLED).unionByName(answered), tasks)
        labels = store(f"graph_labels_{done - 1}", resolved.mapInArrow(partial(_resolved, tasks=tasks), _SCHEMA))
        expected = labelled + counts[done][_SETTLED]
        labelled = _counts(labels)[_LABEL]
        _check(f"labels on the way back from round {done}", expected, labelled)
        discard(f"graph_{done}")
        discard(f"graph_labels_{done}")
    return labels.mapInArrow(_unpacked, _COMPONENTS)


def _counts(table: DataFrame) -> dict[str, int]:
    """Pairs of each kind in a table; there are few kinds, however large the table."""
    counted = dict.fromkeys((_LINK, _SETTLED, _LABEL, _RECEIVED, _NODES, _REMAINING, _SENT), 0)
    rows = table.groupBy("kind").agg(F.sum("pairs").alias("pairs")).collect()
    counted |= {row["kind"]: int(row["pairs"]) for row in rows}
    _check("links or labels written and read back", counted[_SENT], counted[_LINK] + counted[_LABEL])
    return counted


def _check_round(number: int, before: dict[str, int], after: dict[str, int]) -> None:
    _check(f"links sent to round {number} and received", before[_LINK], after[_RECEIVED])
    _check(f"nodes of round {number} and those settled or remaining", after[_NODES], after[_SETTLED] + after[_REMAINING])
    if number > 1:
        # Components that are complete leave the graph; nothing comes into it.
        _check(f"nodes that came into round {number}", 0, max(0, after[_NODES] - before[_REMAINING]))


def _check(what: str, one: int, other: int) -> None:
    if one != other:
        raise IncompleteResult(
            f"the clustering lost or repeated something: {what} differ, {one:,} and {other:,}; a table between stages was "
            "changed while the job read it: run again, and let nothing else write to the output"
        )


def _of_kind(table: DataFrame, kind: str) -> DataFrame:
    return table.where(F.col("kind") == kind)


def _shuffled(table: DataFrame, tasks: int) -> DataFrame:
    # A number and a column: adaptive execution leaves such a shuffle as it is.
    return table.repartition(tasks, "task")


def _links(batches: Iterator[pa.RecordBatch], *, tasks: int, nodes: int) -> Iterator[pa.RecordBatch]:
    """The edges of an input partition as links of its components; a large one's in parts of about so many nodes."""
    united = UnionFind()
    for batch in batches:
        united.add(batch.column(0).to_numpy(), batch.column(1).to_numpy())
        if len(united.nodes) > nodes:
            yield from _packed_links(united, tasks)
            united = UnionFind()
    yield from _packed_links(united, tasks)


def _packed_links(united: UnionFind, tasks: int) -> Iterator[pa.RecordBatch]:
    everything = np.ones(len(united.nodes), np.bool_)
    made = contract(united, everything, _FIRST_SEED)
    yield _count_rows({_SENT: len(made.linked)})
    yield from _packed(_LINK, made.linked, made.roots, owners(made.linked, tasks), tasks)


def _round(batches: Iterator[pa.RecordBatch], *, tasks: int, seed: int) -> Iterator[pa.RecordBatch]:
    """The links of this task's nodes -> links of what remains, what is settled, and requests for its roots."""
    united = UnionFind()
    received = 0
    for _, pairs in _unpacked_pairs(batches):
        united.add(pairs[:, 0], pairs[:, 1])
        received += len(pairs)
    # A node that is the root of a link may have links in other tasks too; then it is linked to itself here.
    made = contract(united, united.is_right, seed)
    counts = {_RECEIVED: received, _NODES: int(united.is_left.sum()), _REMAINING: int((united.is_left & united.is_right).sum())}
    yield _count_rows(counts | {_SENT: len(made.linked)})
    yield from _packed(_LINK, made.linked, made.roots, owners(made.linked, tasks), tasks)
    homes = owners(made.settled, tasks)
    yield from _packed(_SETTLED, made.settled, made.settled_by, homes, tasks)
    for home in np.unique(homes):
        roots = np.unique(made.settled_by[homes == home])
        yield from _packed(_REQUEST, roots, np.full(len(roots), home, np.int64), owners(roots, tasks), tasks)


def _components_of_rest(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from _rows(*_rest(batches))


def _labels_of_rest(batches: Iterator[pa.RecordBatch], *, tasks: int) -> Iterator[pa.RecordBatch]:
    nodes, components = _rest(batches)
    yield _count_rows({_SENT: len(nodes)})
    yield from _packed(_LABEL, nodes, components, owners(nodes, tasks), tasks)


def _rest(batches: Iterator[pa.RecordBatch]) -> tuple[Int64s, Int64s]:
    united = UnionFind()
    for _, pairs in _unpacked_pairs(batches):
        united.add(pairs[:, 0], pairs[:, 1])
    return united.nodes, united.smallest()


def _answers(batches: Iterator[pa.RecordBatch], *, tasks: int) -> Iterator[pa.RecordBatch]:
    """Requests for the components of this task's nodes, and their labels -> answers, and the labels as they came."""
    held = _gathered(batches)
    labels, requests = held[_LABEL], held[_REQUEST]
    # Without a label the root's component was complete, and it gives it the name.
    components = _values(labels, requests[:, 0], default=True)
    yield from _packed(_ANSWER, requests[:, 0], components, requests[:, 1].astype(np.int32), tasks)
    yield from _packed(_LABEL, labels[:, 0], labels[:, 1], owners(labels[:, 0], tasks), tasks)


def _resolved(batches: Iterator[pa.RecordBatch], *, tasks: int) -> Iterator[pa.RecordBatch]:
    """What this task settled, and the components of the roots -> labels, and those there are already."""
    held = _gathered(batches)
    labels, answers, settled = held[_LABEL], held[_ANSWER], held[_SETTLED]
    nodes, roots = settled[:, 0], settled[:, 1]
    components = _values(answers, roots, default=False)
    yield _count_rows({_SENT: len(labels) + len(nodes)})
    for first, second in ((labels[:, 0], labels[:, 1]), (nodes, components)):
        yield from _packed(_LABEL, first, second, owners(first, tasks), tasks)


def _values(known: Int64s, keys: Int64s, *, default: bool) -> Int64s:
    try:
        return Lookup(known[:, 0], known[:, 1]).get(keys, keys if default else None)
    except (KeyError, ValueError) as error:
        raise IncompleteResult(
            f"the clustering lost or repeated something ({error!r}); a table between stages was changed while the job read it: "
            "run again, and let nothing else write to the output"
        ) from None


def _unpacked(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _, pairs in _unpacked_pairs(batches):
        yield from _rows(pairs[:, 0], pairs[:, 1])


def _rows(nodes: Int64s, components: Int64s) -> Iterator[pa.RecordBatch]:
    for start in range(0, len(nodes), _ROWS):
        part = slice(start, start + _ROWS)
        yield pa.RecordBatch.from_arrays([pa.array(nodes[part]), pa.array(components[part])], ["node", "component"])


def _count_rows(counts: dict[str, int]) -> pa.RecordBatch:
    columns = [pa.array([*counts]), pa.array([0] * len(counts), pa.int32()), pa.array([*counts.values()], pa.int64())]
    return pa.RecordBatch.from_arrays([*columns, pa.nulls(len(counts), pa.binary())], ["kind", "task", "pairs", "data"])


@lru_cache
def _keys(tasks: int) -> Int32s:
    return np.array(keys_of_tasks(tasks), np.int32)


def _packed(kind: str, first: Int64s, second: Int64s, owned_by: Int32s, tasks: int) -> Iterator[pa.RecordBatch]:
    """The pairs of each task packed into binary values of bounded size, in batches of bounded size."""
    pairs, ends = deal(first, second, owned_by, tasks)
    keys = _keys(tasks)
    starts = [
        np.arange(low, high, _SHARE_PAIRS) for low, high in zip(np.concatenate([[0], ends[:-1]]), ends, strict=True) if low < high
    ]
    shares = np.concatenate([*starts, np.zeros(0, np.int64)]).astype(np.int64)
    bounds = np.append(shares, len(pairs))
    task = np.searchsorted(ends, shares, side="right")
    for at in range(0, len(shares), _BATCH_SHARES):
        cut = bounds[at : at + _BATCH_SHARES + 1]
        offsets = ((cut - cut[0]) * 16).astype(np.int32)
        data = pa.Array.from_buffers(
            pa.binary(), len(cut) - 1, [None, pa.py_buffer(offsets), pa.py_buffer(pairs[cut[0] : cut[-1]])]
        )
        columns = [
            pa.array([kind] * len(data)),
            pa.array(keys[task[at : at + _BATCH_SHARES]]),
            pa.array(np.diff(cut)),
            data,
        ]
        yield pa.RecordBatch.from_arrays(columns, ["kind", "task", "pairs", "data"])


def _unpacked_pairs(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, Int64s]]:
    for batch in batches:
        for kind, data in zip(batch.column(0).to_pylist(), batch.column(3), strict=True):
            if data.is_valid:
                yield kind, np.frombuffer(data.as_buffer(), np.int64).reshape(-1, 2)


def _gathered(batches: Iterator[pa.RecordBatch]) -> dict[str, Int64s]:
    held: dict[str, list[Int64s]] = {kind: [] for kind in (_LABEL, _REQUEST, _ANSWER, _SETTLED)}
    for kind, pairs in _unpacked_pairs(batches):
        held[kind].append(pairs)
    nothing = np.zeros((0, 2), np.int64)
    return {kind: np.concatenate([nothing, *parts]) for kind, parts in held.items()}
