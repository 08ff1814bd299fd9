import pytest

from simhash_udf.stages.pairs import count_pairs, histogram, pairs, with_sizes

SCHEMA = "id string, node bigint"
FOUND = "node_a bigint, node_b bigint, distance int"


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_documents_of_near_and_of_equal_fingerprints_are_pairs_once(spark):
    made = spark.createDataFrame([("c", 1), ("a", 1), ("b", 3), ("d", None), ("e", None)], SCHEMA)
    found = spark.createDataFrame([(1, 3, 1)], FOUND)
    assert rows(pairs(made, found)) == [("a", "b", 1), ("a", "c", 0), ("b", "c", 1)]


def test_a_copy_group_of_n_makes_n_times_n_minus_one_half_pairs(spark):
    made = spark.createDataFrame([(f"{i:02d}", 7) for i in range(20)], SCHEMA)
    found = rows(pairs(made, spark.createDataFrame([], FOUND)))
    assert len(found) == 190
    assert all(a < b and distance == 0 for a, b, distance in found)


def test_two_documents_without_features_are_no_pair(spark):
    made = spark.createDataFrame([("a", None), ("b", None)], SCHEMA)
    assert rows(pairs(made, spark.createDataFrame([], FOUND))) == []


def test_spanning_pairs_join_the_smallest_ids(spark):
    made = spark.createDataFrame([("c", 1), ("a", 1), ("x", 3), ("b", 3), ("d", 1)], SCHEMA)
    found = spark.createDataFrame([(1, 3, 1)], FOUND)
    assert rows(pairs(made, found, spanning=True)) == [("a", "b", 1), ("a", "c", 0), ("a", "d", 0), ("b", "x", 0)]


def test_ids_keep_their_own_order_and_type(spark):
    made = spark.createDataFrame([(10, 1), (9, 1), (2**53 + 1, 1)], "id bigint, node bigint")
    found = pairs(made, spark.createDataFrame([], FOUND))
    assert rows(found) == [(9, 10, 0), (9, 2**53 + 1, 0), (10, 2**53 + 1, 0)]
    assert found.dtypes == [("id_a", "bigint"), ("id_b", "bigint"), ("distance", "int")]


def test_the_count_is_the_number_of_rows_that_pairs_would_write(spark):
    made = spark.createDataFrame([(str(i), f) for i, f in enumerate([1, 1, 1, 3, 3, 7, None])], SCHEMA)
    groups = made.where("node is not null").groupBy("node").count().withColumnRenamed("count", "documents")
    found = with_sizes(spark.createDataFrame([(1, 3, 1), (3, 7, 1), (1, 7, 2)], FOUND), groups, "node")
    counted = {row["distance"]: int(row["pairs"]) for row in count_pairs(groups, found).collect()}
    written = [distance for _, _, distance in rows(pairs(made, found))]
    assert counted == {d: written.count(d) for d in set(written)} == {0: 4, 1: 8, 2: 3}
    assert histogram(pairs(made, found)) == counted


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_the_count_of_a_huge_group_does_not_overflow(spark, spark_conf, ansi):
    spark_conf({"spark.sql.ansi.enabled": ansi})
    groups = spark.createDataFrame([(1, 5 * 10**9), (3, 6 * 10**9)], "node bigint, documents bigint")
    found = with_sizes(spark.createDataFrame([(1, 3, 2)], FOUND), groups, "node")
    counted = {row["distance"]: int(row["pairs"]) for row in count_pairs(groups, found).collect()}
    assert counted == {0: 5 * 10**9 * (5 * 10**9 - 1) // 2 + 6 * 10**9 * (6 * 10**9 - 1) // 2, 2: 30 * 10**18}
