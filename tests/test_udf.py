import pyarrow as pa
import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import LongType

from simhash_udf import fingerprint_array, hamming, simhash, simhash_features
from simhash_udf import udf as module
from simhash_udf.core.fingerprint import fingerprint_batch, fingerprint_features_batch
from simhash_udf.errors import SettingsError

TEXTS = ["the quick brown fox", None, "", "...", "你好世界", "a b c d e f g", "Привет мир", None, "x"]
FLAVOURS = [pytest.param(module._pandas, id="pandas")]
if module.ARROW_UDF:
    FLAVOURS.append(pytest.param(module._arrow, id="arrow"))


@pytest.fixture(scope="module")
def frame(spark):
    return spark.createDataFrame(list(enumerate(TEXTS)), "id int, text string").repartition(2)


def collected(frame, column):
    return [row[0] for row in frame.orderBy("id").select(column).collect()]


@pytest.mark.parametrize("make", FLAVOURS)
@pytest.mark.parametrize("rows", ["1", "2", "10000"])
def test_text_udfs_equal_the_kernel_at_every_batch_size(frame, spark_conf, make, rows):
    spark_conf({"spark.sql.execution.arrow.maxRecordsPerBatch": rows})
    found = collected(frame, make(fingerprint_batch, LongType())("text"))
    assert found == fingerprint_array(pa.array(TEXTS)).to_pylist()


@pytest.mark.parametrize("make", FLAVOURS)
def test_udfs_with_the_number_of_features_equal_the_kernel(frame, make):
    found = [tuple(row) for row in collected(frame, make(fingerprint_batch, module._WITH_COUNT)("text"))]
    assert found == list(zip(*(column.to_pylist() for column in fingerprint_batch(pa.array(TEXTS))), strict=True))


@pytest.mark.parametrize("make", FLAVOURS)
@pytest.mark.parametrize("kind", ["array<struct<feature:string,weight:double>>", "map<string,double>"])
def test_feature_udfs_equal_the_kernel(spark, make, kind):
    rows = [[("a", 1.0), ("b", 2.0)], None, [], [("c", 0.0)], [("d", 0.5)]]
    given = [(i, None if row is None else dict(row) if kind.startswith("map") else row) for i, row in enumerate(rows)]
    frame = spark.createDataFrame(given, f"id int, features {kind}")
    expected = fingerprint_features_batch(pa.array(rows, pa.map_(pa.string(), pa.float64())))[0].to_pylist()
    assert collected(frame, make(fingerprint_features_batch, LongType())("features")) == expected


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
