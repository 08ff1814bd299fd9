import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from simhash_udf import (
    fingerprint_array,
    fingerprint_features,
    fingerprint_text,
    hamming,
    near_duplicates,
    simhash,
    simhash_features,
)
from simhash_udf import udf as module
from simhash_udf.core.fingerprint import fingerprint_batch, fingerprint_features_batch
from simhash_udf.core.fold import signed
from simhash_udf.core.sketch import minhash_batch, sketch_batch
from simhash_udf.errors import InputError, SettingsError
from tests.corpus import brute_force_pairs, corpus

TEXTS = ["the quick brown fox", None, "", "...", "你好世界", "a b c d e f g", "Привет мир", None, "x"]
FLAVOURS = [pytest.param(False, id="pandas")]
if module.ARROW_UDF:
    FLAVOURS.append(pytest.param(True, id="arrow"))
FEATURE_TYPES = ["array<struct<feature:string,weight:double>>", "map<string,double>"]


@pytest.fixture(params=FLAVOURS)
def flavour(request, monkeypatch):
    monkeypatch.setattr(module, "ARROW_UDF", request.param)


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(list(enumerate(TEXTS)), "id int, text string").repartition(2)


def collected(frame, column):
    return [row[0] for row in frame.orderBy("id").select(column).collect()]


@pytest.mark.parametrize("rows", ["1", "2", "10000"])
def test_text_udfs_equal_the_kernel_at_every_batch_size(frame, spark_conf, flavour, rows):
    spark_conf({"spark.sql.execution.arrow.maxRecordsPerBatch": rows})
    assert collected(frame, simhash("text")) == fingerprint_array(pa.array(TEXTS)).to_pylist()


def test_udfs_with_the_number_of_features_equal_the_kernel(frame, flavour):
    found = [tuple(row) for row in collected(frame, module.text_fingerprints("text", unit="word", ngram=2, weighting="binary"))]
    columns = fingerprint_batch(pa.array(TEXTS))._asdict()
    assert columns.pop("sketch") is None
    assert found == list(zip(*(column.to_pylist() for column in columns.values()), strict=True))


def test_udfs_with_minhash_and_sketch_equal_the_kernels(frame, flavour):
    column = module.text_fingerprints("text", unit="word", ngram=2, weighting="log", minhash=True, sketch=("char", 4))
    found = [row.asDict() for row in collected(frame, column)]
    texts = pa.array(TEXTS)
    assert [row["fingerprint"] for row in found] == minhash_batch(texts, unit="word", ngram=2).to_pylist()
    assert [row["sketch"] for row in found] == sketch_batch(texts, unit="char", ngram=4).to_pylist()
    assert [row["content"] for row in found] == fingerprint_batch(texts).content.to_pylist()


@pytest.mark.parametrize("kind", FEATURE_TYPES)
@pytest.mark.parametrize("rows", ["1", "10000"])
def test_feature_udfs_equal_the_kernel(spark, spark_conf, flavour, kind, rows):
    spark_conf({"spark.sql.execution.arrow.maxRecordsPerBatch": rows})
    features = [[("a", 1.0), ("b", 2.0)], None, [], [("c", 0.0)], [("é", 0.5)]]
    given = [(i, None if row is None else dict(row) if kind.startswith("map") else row) for i, row in enumerate(features)]
    frame = spark.createDataFrame(given, f"id int, features {kind}")
    expected = fingerprint_features_batch(pa.array(features, pa.map_(pa.string(), pa.float64())))
    assert collected(frame, simhash_features("features")) == expected[0].to_pylist()
    counted = [tuple(row) for row in collected(frame, module.features_fingerprints("features"))]
    assert counted == list(zip(*(column.to_pylist() for column in expected[:4]), strict=True))


@pytest.mark.parametrize("kind", [*FEATURE_TYPES, "map<binary,double>"])
def test_a_batch_of_nothing_but_null_features_gives_nulls(spark, flavour, kind):
    frame = spark.createDataFrame([(0, None), (1, None)], f"id int, features {kind}")
    assert collected(frame, simhash_features("features")) == [None, None]


@pytest.mark.parametrize("kind", FEATURE_TYPES[:1])
@pytest.mark.parametrize(("features", "said"), [([None], "null"), ([("a", None)], "null"), ([("a", float("nan"))], "nan")])
def test_features_that_cannot_vote_fail_the_query(spark, flavour, kind, features, said):
    frame = spark.createDataFrame([(0, features)], f"id int, features {kind}")
    with pytest.raises(Exception, match=rf"InputError: .*{said}"):
        collected(frame, simhash_features("features"))


SHAPES = ["map('a', {}, 'b', {})", "array(struct('a', {}), struct('b', {}))"]
NUMBERS = ["tinyint", "smallint", "int", "bigint", "float", "decimal(9,2)", "decimal(38,18)"]


def test_weights_may_be_numbers_of_any_type(spark, flavour):
    weights = [(shape, f"cast(2 AS {kind})", f"cast(1 AS {kind})") for shape in SHAPES for kind in NUMBERS]
    row = spark.range(1).select(*(simhash_features(F.expr(shape.format(a, b))) for shape, a, b in weights)).first()
    assert set(row) == {signed(fingerprint_features({"a": 2, "b": 1}))}


@pytest.mark.parametrize("kind", ["tinyint", "float", "decimal(38,18)"])
@pytest.mark.parametrize("shape", SHAPES)
def test_the_whole_flow_takes_weights_that_are_numbers_of_any_type(spark, kind, shape):
    frame = spark.range(1).selectExpr("id", shape.format(f"cast(2 AS {kind})", f"cast(1 AS {kind})") + " AS features")
    found = near_duplicates(frame, features="features").fingerprints.collect()
    assert [row["fingerprint"] for row in found] == [signed(fingerprint_features({"a": 2, "b": 1}))]


@pytest.mark.parametrize("weight", ["'1'", "true"])
@pytest.mark.parametrize("shape", ["map('a', {})", "array(struct('a', {}))"])
def test_weights_that_are_no_numbers_are_refused(spark, flavour, weight, shape):
    frame = spark.range(1).selectExpr("id", f"{shape.format(weight)} AS features")
    with pytest.raises(Exception, match=r"InputError: .* a weight must be a "):
        collected(frame, simhash_features("features"))
    with pytest.raises(InputError, match=r"column 'features' is .*; features must be .* a number"):
        near_duplicates(frame, features="features")


def test_numbers_are_no_text(spark, spark_conf, flavour):
    # Else Spark itself refuses to make bytes of a number, before the query runs.
    spark_conf({"spark.sql.ansi.enabled": "false"})
    with pytest.raises(Exception, match=r"InputError: texts are .*int.*; they must be strings"):
        collected(spark.range(1), simhash("id"))


def test_text_that_is_not_utf_8_gives_what_the_kernel_gives(spark, flavour):
    raw = [b"a \xff b c", b"\xe4\xbd", b"plain words"]
    frame = spark.createDataFrame(list(enumerate(map(bytearray, raw))), "id int, raw binary")
    # The one way to such a string that every Spark takes: reading it from a file, or this cast.
    found = collected(frame.selectExpr("id", "cast(raw AS string) AS text"), simhash("text"))
    assert found == fingerprint_array(pa.array(raw)).to_pylist()


def test_the_whole_flow_finds_the_same_with_either_flavour(spark, flavour):
    found = near_duplicates(spark.createDataFrame(corpus(), "id string, text string"), max_distance=8)
    pairs = {(row["id_a"], row["id_b"]): row["distance"] for row in found.pairs.collect()}
    assert pairs == brute_force_pairs({i: fingerprint_text(text) for i, text in corpus()}, 8)


@pytest.mark.parametrize("kind", ["array", "map"])
def test_the_whole_flow_takes_features_that_are_not_utf_8_with_either_flavour(spark, flavour, kind):
    made = "array(struct(word, 1D))" if kind == "array" else "map(word, 1D)"
    rows = spark.sql(
        "SELECT id, cast(raw AS string) word FROM VALUES (1, X'61FF'), (2, X'61FF'), (3, X'61'), (4, X'61FE') AS t(id, raw)"
    )
    frame = rows.selectExpr("id", f"CASE WHEN id < 4 THEN {made} END AS features")
    found = near_duplicates(frame, features="features", max_distance=0)
    assert [tuple(row) for row in found.pairs.collect()] == [(1, 2, 0)]


@pytest.mark.parametrize("ansi", ["true", "false"])
def test_simhash_is_a_column_like_any_other(frame, spark_conf, ansi):
    spark_conf({"spark.sql.ansi.enabled": ansi})
    found = frame.withColumn("fingerprint", simhash("text", ngram=1)).orderBy("id")
    assert [row["fingerprint"] for row in found.collect()] == fingerprint_array(pa.array(TEXTS), ngram=1).to_pylist()
    assert dict(found.dtypes)["fingerprint"] == "bigint"


def test_simhash_of_features_is_a_column(spark):
    frame = spark.createDataFrame([(0, {"a": 1.0})], "id int, features map<string,double>")
    expected = fingerprint_features_batch(pa.array([[("a", 1.0)]], pa.map_(pa.string(), pa.float64())))[0].to_pylist()
    assert collected(frame, simhash_features("features")) == expected


def test_simhash_is_known_to_sql_under_a_name(spark, frame):
    module.register(spark, "simhash_words", ngram=1)
    frame.createOrReplaceTempView("documents")
    found = spark.sql("SELECT simhash_words(text) FROM documents ORDER BY id").collect()
    assert [row[0] for row in found] == fingerprint_array(pa.array(TEXTS), ngram=1).to_pylist()


def test_simhash_of_unknown_settings_is_refused_before_any_task_runs():
    with pytest.raises(SettingsError, match="word, char"):
        simhash("text", unit="line")


def test_a_column_of_nulls_gives_nulls(spark):
    frame = spark.createDataFrame([(0, None), (1, None)], "id int, text string")
    assert collected(frame, simhash("text")) == [None, None]


def test_spark_hashes_a_feature_as_the_kernel_does(spark):
    import xxhash

    words = ["", "a", "hello world", "你好", "x" * 100]
    found = spark.createDataFrame([(w,) for w in words], "word string").select("word", F.xxhash64("word").alias("hash")).collect()
    assert {row["word"]: row["hash"] & (1 << 64) - 1 for row in found} == {
        w: xxhash.xxh64_intdigest(w.encode(), 42) for w in words
    }


def test_hamming_of_columns_counts_all_64_bits(spark):
    rows = [(0, -1, 0), (1, -(2**63), 0), (2, 5, 5), (3, None, 1), (4, 0xFFFF << 48 ^ -(2**64), 0)]
    frame = spark.createDataFrame(rows, "id int, a bigint, b bigint")
    assert collected(frame, hamming("a", "b")) == [64, 1, 0, None, 16]
    assert collected(frame, hamming(F.col("a"), 2**64 - 1)) == [0, 63, 62, None, 48]
