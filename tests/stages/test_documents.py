from datetime import date, datetime
from decimal import Decimal

import pytest
from pyspark.sql import functions as F

from simhash_udf.errors import InputError
from simhash_udf.settings import Settings
from simhash_udf.stages.documents import (
    check_columns,
    check_no_rejects,
    documents,
    origin,
    rejects,
    usable_rows,
)

FEATURES = "array<struct<feature:string,weight:double>>"


@pytest.mark.parametrize(
    ("kind", "ids"),
    [
        ("string", ["1", "01", "1 ", "é"]),
        ("bigint", [2**53 + 1, 2**53, -(2**63)]),
        ("decimal(20,0)", [Decimal(2**64 - 1), Decimal(1)]),
        ("binary", [bytearray(b"\x00\xff"), bytearray(b"")]),
        ("date", [date(2024, 2, 29)]),
        ("timestamp", [datetime(2024, 2, 29, 1, 2, 3, 456789)]),
        ("boolean", [True, False]),
        ("smallint", [1, -1]),
    ],
)
def test_ids_of_every_atomic_type_stay_as_they_are(spark, kind, ids):
    source = spark.createDataFrame([(i, "a text") for i in ids], f"id {kind}, text string")
    made = documents(source, Settings())
    assert dict(made.dtypes)["id"] == kind
    assert [row["id"] for row in made.collect()] == ids


def test_columns_with_odd_names_are_found(spark):
    source = spark.createDataFrame([(1, "x")], "`my.id` int, `the ``text` string")
    made = documents(source, Settings(id_column="my.id", text_column="the `text"))
    assert [tuple(row) for row in made.collect()] == [(1, "x", 1, False)]


@pytest.mark.parametrize(
    ("schema", "settings", "said"),
    [
        ("name int, text string", {}, "column 'id' is not in the input, which has 'name', 'text'.*--id-column"),
        ("id int, body string", {}, "column 'text' is not.*--text-column"),
        ("id int, text bigint", {}, "must be a string"),
        ("id array<int>, text string", {}, "atomic"),
        ("id struct<a:int>, text string", {}, "atomic"),
        ("id map<int,int>, text string", {}, "atomic"),
        ("id int, words array<string>", {"features_column": "words"}, "array<struct"),
        ("id int, words map<int,double>", {"features_column": "words"}, "array<struct"),
        ("id int, text string", {"features_column": "none"}, "--features-column"),
    ],
)
def test_columns_that_cannot_serve_are_named_with_the_cure(spark, schema, settings, said):
    with pytest.raises(InputError, match=said):
        check_columns(spark.createDataFrame([], schema), Settings(**settings))


def test_an_id_of_an_atomic_type_without_an_order_is_refused(spark):
    if spark.version < "4":
        pytest.skip("this Spark has no VARIANT")
    with pytest.raises(InputError, match="column 'id' is variant; an id must be of an atomic type that has an order"):
        check_columns(spark.sql("SELECT parse_json('1') AS id, 'x' AS text"), Settings())


@pytest.mark.parametrize("names", [("id", "id", "text"), ("id", "ID", "text"), ("id", "Text", "text")])
def test_a_column_that_is_there_twice_is_refused(spark, names):
    source = spark.createDataFrame([(1, "y", "x")], "a int, b string, c string").toDF(*names)
    with pytest.raises(InputError, match="more than once"):
        documents(source, Settings())


def test_rows_without_an_id_are_rejects_and_no_documents(spark):
    source = spark.createDataFrame([(1, "x"), (None, "y")], "id int, text string")
    assert [row["id"] for row in documents(source, Settings()).collect()] == [1]
    assert [tuple(row) for row in rejects(source, Settings()).collect()] == [(None, None, "the id is null", '{"text":"y"}', None)]
    with pytest.raises(InputError, match=r"1 records .* the id is null.*--on-bad-input reject"):
        check_no_rejects(rejects(source, Settings()))


def test_what_reading_rejected_is_listed_and_leaves_no_column_behind(spark):
    rows = spark.createDataFrame([(1, "x", None), (None, None, "damaged")], "id int, text string, why string")
    told = origin(F.lit("a file"), F.lit(7), F.col("why"), F.lit("it begins so"), line_hash=F.lit(5))
    source = rows.select("id", "text", told)
    assert [tuple(row) for row in rejects(source, Settings()).collect()] == [("a file", 7, "damaged", "it begins so", 5)]
    assert [tuple(row) for row in usable_rows(source, Settings()).collect()] == [(1, "x")]


@pytest.mark.parametrize("bad", ["id", "text"])
def test_strings_that_are_not_utf8_are_rejects(spark, bad):
    values = {"id": "'a'", "text": "'x'"} | {bad: "cast(X'61ff' AS string)"}
    source = spark.sql(f"SELECT {values['id']} AS id, {values['text']} AS text UNION ALL SELECT 'b', 'é'")
    assert [row["reason"] for row in rejects(source, Settings()).collect()] == [f"column '{bad}' is not valid UTF-8"]
    assert [row["id"] for row in documents(source, Settings()).collect()] == ["b"]


@pytest.mark.parametrize(
    "text", ["x" * 40, "é" * 20, "文" * 14, "𝒳" * 10, "a" + "𝒳" * 10, "ab" + "𝒳é" * 8, "x" * 16, "x", "", None]
)
def test_of_a_long_text_the_whole_characters_in_its_first_bytes_are_compared(spark, text):
    source = spark.createDataFrame([(1, text)], "id int, text string")
    ((_, taken, length, cut),) = documents(source, Settings(max_document_bytes=16)).collect()
    assert taken == (None if text is None else text.encode()[:16].decode(errors="ignore"))
    assert (length, cut) == (len(text or ""), len((text or "").encode()) > 16)


def test_a_row_without_an_id_is_shown_with_columns_of_any_type(spark):
    columns = {
        "`a b``c`": "1", "b": "X'ff'", "d": "date'2024-02-03'", "t": "timestamp_ntz'2024-02-03 04:05:06'", "n": "1.50BD",
        "i": "interval 1 month", "c": "make_interval(1, 2)", "m": "map(1, 'x', 2, NULL)", "k": "map(struct(1), map(X'00', 2))",
        "s": "array(struct(1 AS a), NULL)", "z": "cast(X'61ff' AS string)", "f": "double('NaN')", "v": "NULL",
    }  # fmt: skip
    if spark.version >= "4":
        columns["w"] = """parse_json('{"a": [1]}')"""
    listed = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    source = spark.sql(f"SELECT cast(NULL AS int) AS id, {listed}, 'long' AS text")
    ((_, _, reason, record, _),) = rejects(source, Settings()).collect()
    assert reason == "the id is null"
    for part in ('{"a b`c":1,"b":"/w==","d":"2024-02-03"', '"n":1.50', '"s":[{"a":1},null]', '"f":"NaN"', '"text":"long"}'):
        assert part in record, record


def test_of_a_long_row_without_an_id_the_beginning_is_shown(spark):
    source = spark.createDataFrame([(None, "x" * 5000)], "id int, text string")
    assert rejects(source, Settings()).collect()[0]["record"] == ('{"text":"' + "x" * 5000)[:1000]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), float("-inf"), None])
@pytest.mark.parametrize("kind", [FEATURES, "map<string,double>"])
def test_rows_with_a_bad_weight_are_rejects(spark, kind, weight):
    bad, good = ({"a": weight}, {"a": 1.0}) if kind.startswith("map") else ([("a", weight)], [("a", 1.0)])
    source = spark.createDataFrame([(1, good), (2, bad), (3, None)], f"id int, words {kind}")
    settings = Settings(features_column="words")
    assert [(row["record"], "weight" in row["reason"]) for row in rejects(source, settings).collect()] == [("2", True)]
    assert [row["id"] for row in documents(source, settings).orderBy("id").collect()] == [1, 3]


def test_features_of_other_names_and_number_types_are_taken(spark):
    source = spark.createDataFrame([(1, [("a", 2)])], "id int, words array<struct<w:string,n:int>>")
    made = documents(source, Settings(features_column="words"))
    assert dict(made.dtypes)["features"] == "array<struct<feature:binary,weight:double>>"
