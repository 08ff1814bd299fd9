import json
from pathlib import Path

import duckdb
import polars
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from simhash_udf.checksums import Checked, checksum_of
from simhash_udf.errors import IncompleteResult
from simhash_udf.manifest import read_manifest, table_path
from simhash_udf.settings import Settings
from simhash_udf.tables import TABLES
from tests.test_jobs import dedup, load

verify = load("verify")
COLUMNS = """1 AS a, 'x' AS s, map('k', array(1)) AS m, struct(map(1, 2) AS n, NULL AS z) AS t, 1.50BD AS d, X'00ff' AS b,
    array(named_struct('f', double('NaN'))) AS f, date'2024-02-29' AS e, true AS o"""


def test_a_checksum_is_of_rows_in_any_order_and_of_all_their_columns(spark):
    frame = spark.range(1000).selectExpr("id", "cast(id AS string) AS s", "map('k', id) AS m")
    whole = checksum_of(frame)
    assert len(whole) == 16
    assert checksum_of(frame.repartition(7).orderBy(F.desc("id"))) == whole
    assert checksum_of(frame.limit(999)) != whole
    for name in frame.columns:
        changed = {"id": "id + (id = 500)::int", "s": "if(id = 500, 'x', s)", "m": "if(id = 500, map('k', 0L), m)"}[name]
        assert checksum_of(frame.withColumn(name, F.expr(changed))) != whole, name


def test_the_checksum_while_writing_is_that_of_what_was_written(spark, tmp_path):
    frame = spark.sql(f"SELECT {COLUMNS}")
    for number, table in enumerate((frame, frame.limit(0), frame.where("a > 1"), frame.unionAll(frame).repartition(3))):
        checked = Checked(table)
        checked.frame.write.parquet(f"{tmp_path}/{number}")
        written = spark.read.parquet(f"{tmp_path}/{number}")
        assert checked.checksum(written.count(), written) == checksum_of(written)


@pytest.fixture(scope="module")
def output(spark, tmp_path_factory):
    base = tmp_path_factory.mktemp("out")
    rows = [{"id": f"{at}", "text": text, "more": [at]} for at, text in enumerate(["a b c d", "a b c d", "x y z", None])]
    (base / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dedup(spark, Settings(input=f"{base}/in.jsonl", output=f"{base}/out"), False)
    return base / "out"


def test_tables_are_read_by_other_tools(output):
    for name, told in read_manifest(str(output))["tables"].items():
        files = f"{table_path(str(output), name)}/*.parquet"
        by_duckdb = duckdb.sql(f"SELECT * FROM '{files}'").fetchall()
        by_polars = polars.read_parquet(files)
        assert len(by_duckdb) == by_polars.height == told["rows"], name
        assert by_polars.columns == list(told["schema"])
    decided = duckdb.sql(
        f"SELECT id, kept, reason FROM '{table_path(str(output), 'decisions')}/*.parquet' ORDER BY id"
    ).fetchall()
    assert decided == [("0", True, "keeper"), ("1", False, "same fingerprint"), ("2", True, "unique"), ("3", True, "no features")]
    prints = polars.read_parquet(f"{table_path(str(output), 'fingerprints')}/*.parquet").sort("id")["fingerprint"].to_list()
    assert prints[0] == prints[1]
    assert prints[3] is None


def test_columns_have_their_meaning_as_a_comment(spark, output):
    for name in read_manifest(str(output))["tables"]:
        comments = {told: comment for told, (_, comment) in TABLES[name].items()}
        schema = spark.read.parquet(table_path(str(output), name)).schema
        assert not comments or {field.name: field.metadata["comment"] for field in schema}.items() <= comments.items()


def test_an_untouched_result_is_as_it_was_written(spark, output):
    verify(spark, Settings(input=str(output)), False)


@pytest.mark.parametrize("damage", ["a row less", "another value", "a file gone", "no Parquet", "all gone"])
def test_a_changed_table_is_told(spark, output, damage):
    place = Path(table_path(str(output), "decisions"))
    content = {file: file.read_bytes() for file in place.iterdir()}
    file = next(file for file in content if file.suffix == ".parquet" and pq.read_metadata(file).num_rows)
    table = pq.read_table(file)
    for path in content:
        if damage == "all gone" or path.suffix == ".crc" or (path == file and damage == "a file gone"):
            path.unlink()
    if damage == "a row less":
        pq.write_table(table.slice(1), file)
    elif damage == "another value":
        reasons = table.column("reason").to_pylist()
        at = table.column_names.index("reason")
        pq.write_table(table.set_column(at, table.schema.field("reason"), [["x", *reasons[1:]]]), file)
    elif damage == "no Parquet":
        file.write_bytes(b"PAR1 not PAR1")
    try:
        with pytest.raises(IncompleteResult, match=r"not as it was written: .*decisions"):
            verify(spark, Settings(input=str(output)), False)
    finally:
        for path, whole in content.items():
            path.write_bytes(whole)
