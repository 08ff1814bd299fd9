import random

import pytest

from simhash_udf.errors import NotConverged
from simhash_udf.job import explain
from simhash_udf.stages.clusters import clusters
from simhash_udf.stages.components import GraphLimits
from tests.corpus import components

FOUND = "node_a bigint, node_b bigint"


def documents_of(spark, fingerprints):
    return spark.createDataFrame([(f"d{i}", f) for i, f in enumerate(fingerprints)], "id string, node bigint")


def found_clusters(made, found, limits=None):
    table = clusters(made, found, lambda name, table: table.localCheckpoint(), lambda name: None, limits)
    rows = table.collect()
    sizes = {row["cluster"]: sum(other["cluster"] == row["cluster"] for other in rows) for row in rows}
    assert all(row["size"] == sizes[row["cluster"]] >= 2 for row in rows)
    assert len({row["id"] for row in rows}) == len(rows)
    return {row["id"]: row["cluster"] for row in rows}


@pytest.mark.parametrize("limits", [None, GraphLimits(nodes=100, edges=500)], ids=["one task", "rounds"])
def test_clusters_are_the_connected_components_by_their_smallest_ids(spark, limits):
    chance = random.Random(1)
    edges = [tuple(sorted(chance.sample(range(1_000), 2))) for _ in range(700)]
    nodes = chance.sample(range(1_000), 1_000)
    ids = {node: f"d{i}" for i, node in enumerate(nodes)}
    expected = components([(ids[a], ids[b]) for a, b in edges])
    assert found_clusters(documents_of(spark, nodes), spark.createDataFrame(edges, FOUND), limits) == expected


def test_copies_are_a_cluster_and_documents_without_features_are_in_none(spark):
    made = documents_of(spark, [5, 5, None, None, 6])
    assert found_clusters(made, spark.createDataFrame([], FOUND)) == {"d0": "d0", "d1": "d0"}


def test_the_message_of_an_error_in_a_task_is_found_in_what_spark_reports():
    report = "org.apache.spark.SparkException: Job aborted\nPythonException: Traceback\n  File x\n"
    report += "simhash_udf.errors.NotConverged: 2 rounds\n\n\tat org.apache"
    assert explain(Exception(report)) == (NotConverged.exit_code, "NotConverged: 2 rounds")
