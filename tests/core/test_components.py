import random

import networkx as nx
import numpy as np
import pytest

from simhash_udf.core.components import connected_components, spanning_forest


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


@pytest.mark.parametrize("seed", range(50))
def test_a_spanning_forest_has_the_same_components_and_no_cycle(seed):
    edges = random_edges(seed)
    kept = [edge for edge, keep in zip(edges, spanning_forest(*as_arrays(edges)), strict=True) if keep]
    expected = components_of(edges)
    assert components_of(kept) == {node: c for node, c in expected.items() if list(expected.values()).count(c) > 1}
    assert len(kept) == len(expected) - len(set(expected.values()))
