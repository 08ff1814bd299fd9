from datetime import date
from decimal import Decimal

import pytest
from chispa import assert_df_equality

from simhash_udf.knob_values import keep_order
from simhash_udf.stages.decisions import by_source, decisions, in_order, keep_columns, kept

MADE = "id string, fingerprint bigint, features int, length int"
CLUSTERS = "id string, cluster string, size bigint"
COLUMNS = ["id", "kept", "cluster", "keeper", "distance", "reason"]


def decided(spark, made, clustered, max_distance=2):
    documents = spark.createDataFrame(made, MADE)
    frame = decisions(documents, *in_order(documents, spark.createDataFrame(clustered, CLUSTERS)), max_distance)
    assert frame.columns == COLUMNS
    return {row["id"]: tuple(row)[1:] for row in frame.collect()}


def test_each_dropped_document_names_its_keeper_the_distance_and_the_reason(spark):
    made = [
        ("a", 0b0, 9, 50),
        ("b", 0b0, 9, 40),
        ("c", 0b11, 9, 30),
        ("d", 0b1111, 9, 20),
        ("e", 0b1 << 60, 9, 99),
        ("f", None, 0, 1),
    ]
    assert decided(spark, made, [(i, "a", 4) for i in "abcd"]) == {
        "a": (True, "a", "a", 0, "keeper"),
        "b": (False, "a", "a", 0, "same fingerprint"),
        "c": (False, "a", "a", 2, "within distance"),
        "d": (False, "a", "a", 4, "chained"),
        "e": (True, None, None, None, "unique"),
        "f": (True, None, None, None, "no features"),
    }


@pytest.mark.parametrize(
    ("made", "keeper"),
    [
        ([("a", 1, 9, 10), ("b", 1, 1, 11)], "b"),
        ([("a", 1, 8, 10), ("b", 1, 9, 10)], "b"),
        ([("b", 1, 9, 10), ("a", 1, 9, 10)], "a"),
    ],
    ids=["the longest", "then that with most features", "then the smallest id"],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_keeper_is(spark, made, keeper, partitions):
    frame = spark.createDataFrame(made, MADE).repartition(partitions)
    found = decisions(frame, *in_order(frame, spark.createDataFrame([("a", "a", 2), ("b", "a", 2)], CLUSTERS)), 3)
    assert [row["id"] for row in found.where("kept").collect()] == [keeper]


@pytest.mark.parametrize(
    ("order", "keeper"),
    [
        ("quality desc", "b"),
        ("quality asc", "c"),
        ("quality", "c"),
        ("seen desc, quality asc", "d"),
        ("seen desc, quality desc", "b"),
        ("length desc, seen asc, id desc", "e"),
        ("id desc", "e"),
        ("features desc, site desc, seen", "e"),
    ],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_the_keeper_is_the_first_in_the_order_asked_for(spark, order, keeper, partitions):
    made = spark.createDataFrame([(i, 1, 5, 10) for i in "abcde"], MADE).repartition(partitions)
    day = date(2020, 2, 2)
    rows = [
        ("a", Decimal("0.5"), None, "x", 7),
        ("b", Decimal("0.9"), day, "x", 7),
        ("c", Decimal("0.3"), date(2019, 1, 1), "y", 7),
        ("d", Decimal("0.4"), day, "yz", 7),
        ("e", Decimal("0.9"), date(2018, 1, 1), "yz", 7),
    ]
    source = spark.createDataFrame(rows, "doc string, quality decimal(38,2), seen date, site string, length int")
    clustered = spark.createDataFrame([(i, "a", 5) for i in "abcde"], CLUSTERS)
    keys = keep_order(order)
    columns = keep_columns(source.repartition(partitions), "doc", keys)
    found = decisions(made, *in_order(made, clustered, keys, columns), 3)
    assert found.columns == COLUMNS
    assert [row["id"] for row in found.where("kept").collect()] == [keeper]


def test_a_keeper_at_the_far_end_of_64_bits_has_its_true_distance(spark):
    found = decided(spark, [("a", -1, 9, 9), ("b", 0, 9, 1)], [("a", "a", 2), ("b", "a", 2)])
    assert found["b"] == (False, "a", "a", 64, "chained")


def test_kept_documents_keep_all_their_columns_as_they_came(spark):
    schema = (
        "doc string, `a.b` int, `with space` string, fingerprint string, dropped_id int, "
        "nested struct<x:int,y:struct<z:string>>, list array<struct<k:string,v:double>>, map map<string,array<int>>, "
        "number decimal(30,10), raw binary, day date, nothing void"
    )
    row = (
        7,
        "ü",
        "f",
        3,
        (1, ("z",)),
        [("k", 0.1)],
        {"m": [1, None]},
        Decimal("1.0000000001"),
        bytearray(b"\0"),
        date(2020, 2, 2),
        None,
    )
    source = spark.createDataFrame([("x", *row), ("y", *row)], schema)
    decided = spark.createDataFrame([("x", True), ("y", False)], "id string, kept boolean")
    assert_df_equality(kept(source, decided, "doc"), source.limit(1), ignore_nullable=True)


def test_a_document_whose_edge_to_the_keeper_was_left_out_is_chained(spark):
    made = spark.createDataFrame([("a", 0, 9, 50), ("b", 1, 9, 40), ("c", 2, 9, 30), ("d", 0, 9, 20)], MADE)
    clustered = spark.createDataFrame([(i, "a", 4) for i in "abcd"], CLUSTERS)
    members = spark.createDataFrame([("a", 7), ("b", 5), ("c", 3), ("d", 7)], "id string, node bigint")
    edges = spark.createDataFrame([(5, 7), (3, 5)], "node_a bigint, node_b bigint")
    found = decisions(made, *in_order(made, clustered), 3, (members, edges))
    assert {row["id"]: row["reason"] for row in found.collect()} == {
        "a": "keeper",
        "b": "within distance",
        "c": "chained",
        "d": "same fingerprint",
    }


def test_each_source_has_its_documents_and_those_dropped(spark):
    source = spark.createDataFrame([(1, "x"), (2, "x"), (3, None), (4, "y")], "doc int, `a.b` string")
    decided = spark.createDataFrame([(1, True), (2, False), (3, False), (4, True)], "id int, kept boolean")
    found = by_source(source, decided, "doc", "a.b")
    assert sorted(map(tuple, found.collect()), key=str) == [("x", 2, 1), ("y", 1, 0), (None, 1, 1)]
