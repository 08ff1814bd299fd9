import random

import pytest

from simhash_udf.errors import GraphTooLarge
from simhash_udf.job import explain
from simhash_udf.stages import clusters as module
from simhash_udf.stages.clusters import clusters
from tests.corpus import components

FOUND = "fingerprint_a bigint, fingerprint_b bigint"


def documents_of(spark, fingerprints):
    return spark.createDataFrame([(f"d{i}", f) for i, f in enumerate(fingerprints)], "id string, fingerprint bigint")


def found_clusters(made, found):
    rows = clusters(made, found).collect()
    sizes = {row["cluster"]: sum(other["cluster"] == row["cluster"] for other in rows) for row in rows}
    assert all(row["size"] == sizes[row["cluster"]] >= 2 for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["cluster"] for row in rows}


def many_random_graphs(graphs=120):
    """Disjoint random graphs in one edge list, so that one query tests them all."""
    edges = []
    for seed in range(graphs):
        chance = random.Random(seed)
        nodes = [seed * 1_000 - 60_000 + i for i in range(chance.randrange(2, 40))]
        edges += [tuple(sorted(chance.sample(nodes, 2))) for _ in range(chance.randrange(1, 45))]
    return edges


SHAPES = {
    "none": [],
    "one edge": [(-5, 9)],
    "a path of 2,000": [(i, i + 1) for i in range(2_000)],
    "a star": [(-(2**63), i) for i in range(1, 500)],
    "a clique": [(i, j) for i in range(40) for j in range(i + 1, 40)],
    "two giants and a bridge": [(0, i) for i in range(1, 400)] + [(1000, i) for i in range(1001, 1400)] + [(399, 1399)],
    "120 random graphs": many_random_graphs(),
}


@pytest.mark.parametrize("edges", SHAPES.values(), ids=SHAPES)
def test_clusters_are_the_connected_components(spark, edges):
    nodes = [*sorted({node for edge in edges for node in edge}), 2**62]
    ids = {node: f"d{i}" for i, node in enumerate(nodes)}
    expected = components([(ids[a], ids[b]) for a, b in edges])
    assert found_clusters(documents_of(spark, nodes), spark.createDataFrame(edges, FOUND)) == expected


@pytest.mark.parametrize("adaptive", ["true", "false"])
@pytest.mark.parametrize("partitions", [1, 7])
def test_partitions_and_adaptive_execution_change_nothing(spark, spark_conf, adaptive, partitions):
    spark_conf({"spark.sql.adaptive.enabled": adaptive})
    edges = many_random_graphs()
    nodes = sorted({node for edge in edges for node in edge})
    made = documents_of(spark, nodes).repartition(partitions)
    found = spark.createDataFrame(edges, FOUND).repartition(partitions)
    ids = {node: f"d{i}" for i, node in enumerate(nodes)}
    assert found_clusters(made, found) == components([(ids[a], ids[b]) for a, b in edges])


def test_copies_are_a_cluster_and_documents_without_features_are_in_none(spark):
    made = documents_of(spark, [5, 5, None, None, 6])
    assert found_clusters(made, spark.createDataFrame([], FOUND)) == {"d0": "d0", "d1": "d0"}


def test_more_edges_than_a_task_may_hold_are_an_error(spark, monkeypatch):
    monkeypatch.setattr(module, "LARGEST_GRAPH", 3)
    with pytest.raises(GraphTooLarge, match="more than 3 edges"):
        list(module._components(iter(module._batches(*module.np.ones((2, 4), "int64"), ["a", "b"]))))


def test_the_message_of_an_error_in_a_task_is_found_in_what_spark_reports():
    report = "org.apache.spark.SparkException: Job aborted\nPythonException: Traceback\n  File x\n"
    report += "simhash_udf.errors.GraphTooLarge: more than 3 edges\n\n\tat org.apache"
    assert explain(Exception(report)) == (GraphTooLarge.exit_code, "GraphTooLarge: more than 3 edges")
