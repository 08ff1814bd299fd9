import random

import networkx as nx
import numpy as np
import pytest

from simhash_udf.core.components import UnionFind, connected_components
from simhash_udf.core.contraction import contract, deal, owners
from simhash_udf.core.numbering import Lookup, Numbering


def as_arrays(edges):
    return np.array([a for a, _ in edges], np.int64), np.array([b for _, b in edges], np.int64)


def components_of(edges):
    return {node: min(group) for group in nx.connected_components(nx.Graph(edges)) for node in group}


def random_edges(seed):
    chance = random.Random(seed)
    nodes = [chance.randrange(-(2**63), 2**63) for _ in range(chance.randrange(2, 80))]
    return [(chance.choice(nodes), chance.choice(nodes)) for _ in range(chance.randrange(1, 90))]


SHAPES = {
    "none": [],
    "one edge": [(5, -9)],
    "a path of 5,000": [(i, i + 1) for i in range(5_000)],
    "a path backwards": [(i + 1, i) for i in reversed(range(5_000))],
    "a star": [(0, i) for i in range(1, 2_000)],
    "a clique": [(i, j) for i in range(60) for j in range(i)],
    "two giants and a bridge": [(0, i) for i in range(1, 999)] + [(1000, i) for i in range(1001, 1999)] + [(998, 1998)],
    "the same edge often": [(1, 2), (2, 1), (1, 2), (1, 1)],
}


@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_components_of_known_shapes(edges):
    nodes, components = connected_components(*as_arrays(edges))
    assert dict(zip(nodes.tolist(), components.tolist(), strict=True)) == components_of(edges)


@pytest.mark.parametrize("seed", range(200))
def test_components_of_random_graphs(seed):
    edges = random_edges(seed)
    nodes, components = connected_components(*as_arrays(edges))
    assert dict(zip(nodes.tolist(), components.tolist(), strict=True)) == components_of(edges)


def test_edges_in_parts_and_many_nodes_give_the_same_components():
    edges = [(i * 7, i * 7 + 7) for i in range(20_000) if i % 100]
    a, b = as_arrays(random.Random(1).sample(edges, len(edges)))
    united = UnionFind()
    for part in np.array_split(np.arange(len(a)), 9):
        united.add(a[part], b[part])
    found = dict(zip(united.nodes.tolist(), united.smallest().tolist(), strict=True))
    assert found == components_of(edges)
    assert united.is_left.sum() == len(set(a.tolist()))
    assert united.is_right.sum() == len(set(b.tolist()))


@pytest.mark.parametrize("seed", range(50))
def test_a_contraction_keeps_the_components_of_what_remains(seed):
    edges, chance = random_edges(seed), random.Random(seed)
    united = UnionFind()
    united.add(*as_arrays(edges))
    expected = components_of(edges)
    nodes = united.nodes.tolist()
    # At least one node of each component remains.
    remaining = {chance.choice([n for n in nodes if expected[n] == c]) for c in expected.values()}
    remaining |= {node for node in nodes if chance.random() < 0.4}
    made = contract(united, np.array([node in remaining for node in nodes]), seed)
    links = list(zip(made.linked.tolist(), made.roots.tolist(), strict=True))
    settled = dict(zip(made.settled.tolist(), made.settled_by.tolist(), strict=True))
    assert settled.keys() == set(nodes) - remaining
    assert set(settled.values()) <= remaining
    assert all(expected[node] == expected[root] for node, root in settled.items())
    left = {node: [other for other in remaining if expected[other] == expected[node]] for node in remaining}
    assert {node for node, _ in links} == {node for node in remaining if len(left[node]) > 1}
    assert all(min(left[node]) == component for node, component in components_of(links).items())


def test_contractions_of_a_long_path_settle_a_third_of_its_nodes():
    chance = np.random.default_rng(1)
    names = chance.permutation(10_000)
    united = [UnionFind() for _ in range(9)]
    a, b = names[:-1], names[1:]
    owned_by = chance.integers(0, 9, len(a))
    parts = []
    for task, part in enumerate(united):
        part.add(a[owned_by == task], b[owned_by == task])
        parts.append(contract(part, np.ones(len(part.nodes), bool), 1))
    linked = np.concatenate([part.linked for part in parts])
    roots = np.concatenate([part.roots for part in parts])
    left = len(set(roots.tolist()))
    assert set(linked.tolist()) == set(range(10_000))
    assert 0.6 < left / 10_000 < 0.7


def test_pairs_are_dealt_to_their_tasks_and_tasks_have_even_shares():
    nodes = np.arange(-5_000, 5_000)
    owned_by = owners(nodes, 8)
    pairs, ends = deal(nodes, -nodes, owned_by, 8)
    assert ends[-1] == len(nodes)
    assert all(len(part) > 1_000 for part in np.split(pairs, ends[:-1]))
    for task, part in enumerate(np.split(pairs, ends[:-1])):
        assert part[:, 0].tolist() == nodes[owned_by == task].tolist()
        assert (part[:, 1] == -part[:, 0]).all()


def test_a_lookup_refuses_keys_that_are_missing_or_come_twice():
    keys = np.arange(3_000) * 10
    known = Lookup(keys, keys + 1)
    assert known.get(keys[::-1]).tolist() == (keys[::-1] + 1).tolist()
    with pytest.raises(KeyError, match="5"):
        known.get(np.array([0, 5]))
    with pytest.raises(ValueError, match="only 2 are distinct"):
        Lookup(np.array([1, 2, 1]), np.array([1, 2, 3]))


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5000, 600_000])
def test_a_numbering_knows_its_keys_and_no_others(count):
    chance = np.random.default_rng(count)
    keys = chance.integers(-(2**63), 2**63, count) >> int(chance.integers(0, 20))
    others = np.concatenate([chance.integers(-(2**63), 2**63, 1000), [0, -1, 2**63 - 1, -(2**63)]])
    numbering = Numbering(np.concatenate([keys, keys[: count // 3]]))
    assert numbering.keys.tolist() == list(dict.fromkeys(keys.tolist()))
    assert (numbering.keys[numbering.find(keys)] == keys).all()
    present = set(keys.tolist())
    assert (numbering.find(others) >= 0).tolist() == [key in present for key in others.tolist()]
