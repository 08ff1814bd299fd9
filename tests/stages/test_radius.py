import random

import pytest

from simhash_udf.stages.decisions import in_order
from simhash_udf.stages.radius import within_radius

MADE = "id string, fingerprint bigint, features int, length int"
CLUSTERS = "id string, cluster string, size bigint"


def cut(spark, rows, clusters, radius, partitions=3):
    """`rows` are (id, fingerprint, length); the longest leads. Clusters as {id: cluster}."""
    made = spark.createDataFrame([(i, f, 1, n) for i, f, n in rows], MADE).repartition(partitions)
    clustered = spark.createDataFrame([(i, c, 0) for i, c in clusters.items()], CLUSTERS).repartition(partitions)
    found = within_radius(*in_order(made, clustered), radius)
    assert found.dtypes == [("id", "string"), ("cluster", "string"), ("size", "bigint")]
    result = {row["id"]: row["cluster"] for row in found.collect()}
    assert len(result) == found.count() == len(clusters)
    assert all(row["size"] == list(result.values()).count(row["cluster"]) for row in found.collect())
    return result


def led(rows, radius):
    """Each id's leader, one document after the other, the longest first."""
    leaders, kept = {}, []
    for name, fingerprint, _ in sorted(rows, key=lambda row: (-row[2], row[0])):
        near = [leader for leader, other in kept if (fingerprint ^ other).bit_count() <= radius]
        leaders[name] = near[0] if near else name
        if not near:
            kept.append((name, fingerprint))
    return leaders


def test_a_chain_is_cut_where_it_leaves_the_keeper(spark):
    rows = [("a", 0b0, 9), ("b", 0b1, 8), ("c", 0b11, 7), ("d", 0b111, 6), ("e", 0b0, 1)]
    clusters = dict.fromkeys("abcde", "a")
    assert cut(spark, rows, clusters, 1) == {"a": "a", "b": "a", "e": "a", "c": "c", "d": "c"}
    assert cut(spark, rows, clusters, 0) == {"a": "a", "b": "b", "c": "c", "d": "d", "e": "a"}
    assert cut(spark, rows, clusters, 3) == clusters


@pytest.mark.parametrize("partitions", [1, 5])
@pytest.mark.parametrize("batch", ["3", "10000"])
def test_clusters_are_led_as_one_by_one(spark, spark_conf, partitions, batch):
    spark_conf({"spark.sql.execution.arrow.maxRecordsPerBatch": batch})
    chance = random.Random(partitions)
    clusters, rows, expected = {}, [], {}
    for cluster in range(40):
        names = [f"{cluster:02}-{i}" for i in range(chance.randint(2, 12))]
        made = [(name, chance.getrandbits(6) << 40, chance.randint(1, 5)) for name in names]
        leaders = led(made, 2)
        members = {leader: min(name for name in names if leaders[name] == leader) for leader in leaders.values()}
        expected |= {name: members[leaders[name]] for name in names}
        rows += made
        clusters |= dict.fromkeys(names, names[0])
    assert cut(spark, rows, clusters, 2, partitions) == expected
