import random

import networkx as nx
import pytest

from simhash_udf.errors import IncompleteResult, NotConverged
from simhash_udf.job import explain
from simhash_udf.stages.components import GraphLimits, connected_components

EDGES = "node_a bigint, node_b bigint"
ONE_TASK = GraphLimits()
ROUNDS = GraphLimits(nodes=3, edges=1_000)


class Stored:
    """A store that keeps the names and the plans of its tables, and may change a table."""

    def __init__(self, changes=None):
        self.tables, self.discarded, self.plans, self.changes = {}, [], {}, changes or {}

    def store(self, name, table):
        self.plans[name] = table._jdf.queryExecution().optimizedPlan().toString()
        self.tables[name] = self.changes.get(name, lambda same: same)(table.localCheckpoint())
        return self.tables[name]

    def discard(self, name):
        assert name in self.tables
        self.discarded.append(name)


def found_components(edges, limits, stored=None):
    stored = stored or Stored()
    rows = connected_components(edges, stored.store, stored.discard, limits).collect()
    found = {row["node"]: row["component"] for row in rows}
    assert len(found) == len(rows)
    return found


def check(edges, found):
    """Each true component has one name, which is one of its nodes; a node without a row is its own."""
    for component in nx.connected_components(nx.Graph(edges)):
        names = {found.get(node, node) for node in component}
        assert len(names) == 1
        assert names <= component
    assert found.keys() <= {node for edge in edges for node in edge}


def many_random_graphs(graphs=200):
    """Disjoint random graphs in one edge list, so that one query tests them all."""
    edges = []
    for seed in range(graphs):
        chance = random.Random(seed)
        nodes = [seed * 1_000 - 60_000 + i for i in range(chance.randrange(2, 40))]
        edges += [tuple(sorted(chance.sample(nodes, 2))) for _ in range(chance.randrange(1, 45))]
    return edges


def random_names(edges):
    chance = random.Random(1)
    names = {node: chance.randrange(-(2**63), 2**63) for node in sorted({node for edge in edges for node in edge})}
    return [(names[a], names[b]) for a, b in edges]


PATH = random_names([(i, i + 1) for i in range(5_000)])
SHAPES = {
    "none": [],
    "one edge": [(-5, 9)],
    "an edge twice, back, and to itself": [(1, 2), (1, 2), (2, 1), (3, 3)],
    "a path of 5,000": [(i, i + 1) for i in range(5_000)],
    "a star": [(-(2**63), i) for i in range(1, 3_000)],
    "two giants and a bridge": [(0, i) for i in range(1, 1500)] + [(5000, i) for i in range(5001, 6500)] + [(1499, 6499)],
}


def many_shapes():
    """200 random graphs, and a path, a star, a clique, two giants and a larger random graph beside them, in one edge list."""
    edges = many_random_graphs()
    shapes = [*SHAPES.values(), [(i, j) for i in range(60) for j in range(i)]]
    shapes.append([tuple(random.Random(i).sample(range(2_500), 2)) for i in range(3_000)])
    for number, shape in enumerate(shapes, 1):
        edges += [(max(a, -1) + number * 10**6, b + number * 10**6) for a, b in shape]
    return edges


@pytest.mark.parametrize("limits", [ONE_TASK, ROUNDS], ids=["one task", "rounds"])
@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_components_are_those_of_networkx(spark, edges, limits):
    if limits is ROUNDS and len(edges) > 4_000:
        limits = GraphLimits(nodes=500, edges=1_000)
    check(edges, found_components(spark.createDataFrame(edges, EDGES), limits))


@pytest.mark.parametrize("limits", [ONE_TASK, GraphLimits(nodes=5_000, edges=4_000)], ids=["one task", "rounds"])
@pytest.mark.parametrize(("adaptive", "partitions"), [("true", 1), ("true", 7), ("false", 1), ("false", 7)])
def test_partitions_and_adaptive_execution_change_nothing(spark, spark_conf, adaptive, partitions, limits):
    spark_conf({"spark.sql.adaptive.enabled": adaptive})
    edges = many_shapes()
    check(edges, found_components(spark.createDataFrame(edges, EDGES).repartition(partitions), limits))


@pytest.fixture(scope="module")
def path(spark):
    return spark.createDataFrame(PATH, EDGES).repartition(4).localCheckpoint()


def test_a_round_takes_a_third_of_a_path_plans_do_not_grow_and_work_tables_are_discarded(path):
    stored = Stored()
    found_components(path, GraphLimits(nodes=1_000, edges=1_000), stored)
    rounds = [name for name in stored.tables if "labels" not in name]
    assert 4 <= len(rounds) <= 7
    assert {len(stored.plans[name].splitlines()) for name in rounds[1:]} == {len(stored.plans[rounds[1]].splitlines())}
    back = [name for name in stored.tables if "labels" in name][1:]
    assert len({len(stored.plans[name].splitlines()) for name in back}) == 1
    assert sorted(stored.discarded) == sorted(stored.tables.keys() - {"graph_labels_0"})


def test_a_forest_that_fits_one_task_needs_no_round(path):
    stored = Stored()
    found_components(path, GraphLimits(nodes=9_000, edges=1_000), stored)
    assert [*stored.tables] == ["graph_0", "graph_labels_0"]
    assert stored.discarded == ["graph_0"]


def test_rounds_that_run_out_are_an_error(path):
    limits = GraphLimits(nodes=500, edges=1_000, rounds=1)
    with pytest.raises(NotConverged, match=r"1 rounds have left [\d,]+ links .* holds 500; lower --max-distance"):
        found_components(path, limits)


@pytest.mark.parametrize(
    ("name", "kind", "times"),
    [
        ("graph_0", "link", 0),
        ("graph_1", "link", 2),
        ("graph_1", "settled", 0),
        ("graph_1", "request", 0),
        ("graph_1", "request", 2),
        ("graph_1", "nodes", 0),
        ("graph_labels_1", "label", 0),
        ("graph_labels_0", "label", 2),
    ],
)
def test_what_is_lost_or_repeated_between_rounds_is_an_error(spark, path, name, kind, times):
    def change(table):
        rows = table.collect()
        at = next(i for i, row in enumerate(rows) if row["kind"] == kind)
        return spark.createDataFrame(rows[:at] + rows[at : at + 1] * times + rows[at + 1 :], table.schema)

    with pytest.raises(Exception, match="the clustering lost or repeated something") as failed:
        found_components(path, GraphLimits(nodes=5_500, edges=2_000), Stored({name: change}))
    said = failed.value
    assert isinstance(said, IncompleteResult) or explain(said)[0] == IncompleteResult.exit_code
