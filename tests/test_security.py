"""Nothing of the data is anything but data, and nothing secret is shown."""

import json
import logging
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simhash_udf import job
from simhash_udf.credentials import cleaned, without_credentials
from simhash_udf.errors import InputError
from simhash_udf.inputs import InputFile
from simhash_udf.intake import take_in
from simhash_udf.manifest import read_manifest, read_report, table_path
from simhash_udf.run import Run
from simhash_udf.settings import Settings
from tests.test_jobs import dedup

HOSTILE = [
    "quote'\"", "back`tick", "new\nline", "../up", "<script>alert(1)</script>", "a.b", "a b", "$(id)", "{x}", "%s%n",
    "'; DROP TABLE t; --", "*", "${env:HOME}", "\\", "名", "\x1b[31m", "=1+1",
]  # fmt: skip


def test_names_and_values_of_any_kind_are_data(spark, tmp_path):
    directory = tmp_path / "quote'\" $(id) <script>"
    directory.mkdir()
    columns = {f"{number}{hostile}": [hostile] * len(HOSTILE) for number, hostile in enumerate(HOSTILE)}
    table = pa.table({"i'`d": HOSTILE, "t`e.x": ["same words here"] * len(HOSTILE), **columns})
    pq.write_table(table, directory / "in.parquet")
    settings = Settings(
        input=str(directory / "in.parquet"), output=str(directory / "out"), id_column="i'`d", text_column="t`e.x",
        source_column=f"0{HOSTILE[0]}", keep=f"1{HOSTILE[1]} desc, i'`d", max_removed=1.0,
    )  # fmt: skip
    dedup(spark, settings, False)
    (kept,) = pq.read_table(table_path(str(directory / "out"), "kept")).to_pylist()
    first = min(HOSTILE, key=lambda value: value.encode())
    assert kept == {"i'`d": first, "t`e.x": "same words here", **{name: values[0] for name, values in columns.items()}}
    assert read_manifest(str(directory / "out"))["settings"]["id-column"] == "i'`d"


@pytest.mark.parametrize("kind", ["jsonl", "csv", "text"])
def test_files_of_any_name_are_read(spark, tmp_path, kind):
    for hostile in HOSTILE:
        # Hadoop knows no name with both of these.
        name = hostile.replace("../", "up_").replace("/", "_").replace("${env:", "${env_")
        (tmp_path / "in" / name).mkdir(parents=True)
        content = {"jsonl": json.dumps({"id": name, "text": "x"}) + "\nbad\n", "csv": "id,text\nx,y\n", "text": "x"}[kind]
        (tmp_path / "in" / name / f"{name}.x").write_text(content)
    settings = Settings(
        input=f"{tmp_path}/in", output=f"{tmp_path}/out", input_format=kind, on_bad_input="reject", max_rejected=1.0
    )
    with Run(spark, settings, job.log) as run:
        taken = take_in(spark, settings, run)
        assert taken.rows.count() == len(HOSTILE)
        files = {row["file"] for row in spark.read.parquet(f"{tmp_path}/out/{run.place}/rejects").collect()}
        assert len(files) == (len(HOSTILE) if kind == "jsonl" else 0)
        assert all(Path(file).is_file() for file in files)


@pytest.mark.parametrize("hostile", HOSTILE)
def test_an_error_shows_what_it_is_about_on_one_line(spark, tmp_path, hostile, caplog):
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": hostile, "text": "x"}) * 2 + "\n" + json.dumps({"a": hostile}))
    settings = Settings(input=f"{tmp_path}/in.jsonl", output=f"{tmp_path}/out", id_column=hostile)
    with pytest.raises(InputError) as wrong, Run(spark, settings, job.log) as run:
        take_in(spark, settings, run)
    assert len(str(wrong.value).splitlines()) == 1
    assert "\x1b" not in str(wrong.value)


SECRETS = {
    "s3://KEY:SECRET@bucket/in": "s3://***@bucket/in",
    "https://user:SECRET@host/a?b=c": "https://***@host/a?b=c",
    "s3://b/in?access_key=SECRET&secret_key=SECRET&region=eu": "s3://b/in?access_key=***&secret_key=***&region=eu",
    "abfss://c@h/in?sv=1&sig=SECRET": "abfss://***@h/in?sv=1&sig=***",
    "https://h/a?X-Amz-Signature=SECRET&X-Amz-Credential=SECRET": "https://h/a?X-Amz-Signature=***&X-Amz-Credential=***",
    "https://h/a?token=SECRET": "https://h/a?token=***",
    "s3://KEY:SECR%2FET@b/x and hdfs://u:SECRET@n/y": "s3://***@b/x and hdfs://***@n/y",
}


@pytest.mark.parametrize("address", SECRETS)
def test_credentials_are_left_out_of_addresses(address):
    assert without_credentials(address) == SECRETS[address]
    assert cleaned({"a": [address, {"b": (address,)}], "n": 1}) == {"a": [SECRETS[address], {"b": [SECRETS[address]]}], "n": 1}


@pytest.mark.parametrize("text", ["a@b.example", "/local/path@2/x", "file:///in/a@b?key", "x = y & key=1", "s3://bucket/a@b"])
def test_what_is_no_credential_stays(text):
    assert without_credentials(text) == text


def test_credentials_reach_no_log_report_or_manifest(spark, tmp_path, caplog, monkeypatch):
    address = "s3://KEY:SECRET@bucket/in"
    settings = Settings(output=f"{tmp_path}/out", input=(address,))
    monkeypatch.setattr("simhash_udf.run.check_output", lambda settings: None)
    monkeypatch.setattr("simhash_udf.run.listing", lambda spark, settings: [InputFile(address, 1, 2)])
    with caplog.at_level(logging.INFO), Run(spark, settings, job.log) as run:
        job.log(f"reading {address}")
        run.publish({"at": [address]}, ["input"], None)
    assert "s3://***@bucket/in" in caplog.text
    written = [path.read_text() for path in (tmp_path / "out").rglob("*.json")]
    assert len(written) == 3
    assert not any("SECRET" in text for text in (caplog.text, *written))
    assert read_report(f"{tmp_path}/out")["at"] == ["s3://***@bucket/in"]
