import pyarrow as pa

from simhash_udf import fingerprint_array
from simhash_udf.settings import Settings
from simhash_udf.stages.documents import documents
from simhash_udf.stages.fingerprints import SETTINGS_KEY, fingerprints

TEXTS = ["one two three two three", None, "", "文字 ab", " . "]


def test_each_document_has_its_fingerprint_number_of_features_and_length(spark):
    source = spark.createDataFrame(list(enumerate(TEXTS)), "id int, text string")
    made = fingerprints(documents(source, Settings(ngram=1)), Settings(ngram=1)).select("id", "fingerprint", "features", "length")
    rows = sorted(tuple(row) for row in made.collect())
    values = fingerprint_array(pa.array(TEXTS), ngram=1).to_pylist()
    assert rows == list(zip(range(5), values, [3, 0, 0, 3, 0], [23, 0, 0, 5, 3], strict=True))


def test_the_table_carries_the_id_of_its_settings(spark, tmp_path):
    source = spark.createDataFrame([(1, "x")], "id int, text string")
    settings = Settings(unit="char", ngram=5)
    fingerprints(documents(source, settings), settings).write.parquet(f"{tmp_path}/t")
    field = spark.read.parquet(f"{tmp_path}/t").schema["fingerprint"]
    assert field.metadata[SETTINGS_KEY] == "simhash64-v1/char/5/binary"


def test_given_features_have_no_length(spark):
    source = spark.createDataFrame([(1, {"a": 1.0, "b": 0.0}), (2, None)], "id int, features map<string,double>")
    rows = fingerprints(source, Settings(features_column="features")).orderBy("id").collect()
    assert [(row["features"], row["length"]) for row in rows] == [(1, 0), (0, 0)]
