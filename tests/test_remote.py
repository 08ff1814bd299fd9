"""Paths with a scheme: Spark reads and writes them through a mount of Hadoop's viewfs, the library through a pyarrow file system
that is not the local one; both lead to one directory."""

import json
import uuid
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from simhash_udf import storage
from simhash_udf.errors import InputError, OutputError
from simhash_udf.manifest import read_manifest, read_report, table_path
from simhash_udf.settings import Settings
from simhash_udf.sources import read_documents
from simhash_udf.stages.documents import ORIGIN
from tests.test_jobs import dedup, fingerprint, pairs


class Remote(SimpleNamespace):
    """A file system at `uri`, whose files are below the local directory `inside`."""

    uri: str
    inside: Path


@pytest.fixture
def remote(spark, spark_conf, tmp_path, monkeypatch):
    # Hadoop keeps a file system by its authority, with the mounts that it had first.
    authority = f"store-{uuid.uuid4().hex}"
    (tmp_path / "store" / "bucket").mkdir(parents=True)
    spark_conf({f"fs.viewfs.mounttable.{authority}.link./bucket": f"file://{tmp_path}/store/bucket"})

    def opened(uri):
        # As pyarrow does: what is not a URI is refused, a query is cut off, escapes are resolved.
        fs.FileSystem.from_uri(uri.replace("viewfs://", "file:///", 1))
        parts = urlsplit(uri)
        assert (parts.scheme, parts.netloc) == ("viewfs", authority)
        return fs.SubTreeFileSystem(f"{tmp_path}/store", fs.LocalFileSystem()), unquote(parts.path).strip("/")

    monkeypatch.setattr(storage, "fs", SimpleNamespace(**(vars(fs) | {"FileSystem": SimpleNamespace(from_uri=opened)})))
    return Remote(uri=f"viewfs://{authority}/bucket", inside=tmp_path / "store" / "bucket")


def write_lines(path, ids, text="the same few words"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": i, "text": text}) + "\n" for i in ids))


def ids_of(frame):
    return sorted(row["id"] for row in frame.collect())


def test_a_result_is_written_to_another_file_system_and_replaced(spark, remote):
    write_lines(remote.inside / "in" / "a.jsonl", ["a", "b"])
    output = f"{remote.uri}/out [1] 5%"
    dedup(spark, Settings(input=f"{remote.uri}/in", output=output), False)
    first = read_manifest(output)
    with pytest.raises(OutputError, match="holds a finished result"):
        dedup(spark, Settings(input=f"{remote.uri}/in", output=output), False)
    write_lines(remote.inside / "in" / "deep" / "b.jsonl", ["c"])
    dedup(spark, Settings(input=f"{remote.uri}/in", output=output, if_exists="replace"), False)
    second = read_manifest(output)
    assert read_report(output)["documents"]["documents"] == 3
    assert ids_of(spark.read.parquet(storage.as_literal_glob(table_path(output, "kept")))) == ["a"]
    assert [path.name for path in (remote.inside / "out [1] 5%" / "runs").iterdir()] == [second["run"]] != [first["run"]]
    assert sorted(path.name for path in (remote.inside / "out [1] 5%").iterdir()) == ["manifest.json", "runs"]


def test_a_run_that_fails_leaves_nothing_on_another_file_system(spark, remote):
    write_lines(remote.inside / "in" / "a.jsonl", ["a", "a"])
    with pytest.raises(InputError, match=r"'a' \(2 times\)"):
        dedup(spark, Settings(input=f"{remote.uri}/in", output=f"{remote.uri}/out"), False)
    assert [path.name for path in remote.inside.iterdir()] == ["in"]


def read(spark, settings):
    return read_documents(spark, settings, lambda _, table: table, lambda _: None).rows.drop(ORIGIN)


@pytest.mark.parametrize("given", ["in/*", "in/{a,b}.jsonl", "in/[ab].jsonl", "in/?.jsonl", "in", "in/"])
def test_remote_files_are_read_by_globs_and_directories(spark, remote, given):
    write_lines(remote.inside / "in" / "a.jsonl", ["a"])
    write_lines(remote.inside / "in" / "b.jsonl", ["b"])
    assert ids_of(read(spark, Settings(input=f"{remote.uri}/{given}"))) == ["a", "b"]


def test_remote_partition_directories_become_columns(spark, spark_conf, remote):
    spark_conf({"spark.sql.sources.partitionColumnTypeInference.enabled": "false"})
    for crawl in ("01", "02"):
        write_lines(remote.inside / "in" / f"crawl={crawl}" / "a b.jsonl", [crawl])
    rows = read(spark, Settings(input=f"{remote.uri}/in")).collect()
    assert sorted((row["id"], row["crawl"]) for row in rows) == [("01", "01"), ("02", "02")]
    write_lines(remote.inside / "in" / "c.jsonl", ["c"])
    with pytest.raises(InputError, match="not in partition directories of the same names"):
        read(spark, Settings(input=f"{remote.uri}/in"))


@pytest.mark.parametrize("given", ["none", "none/*.jsonl", "in/_a.jsonl"])
def test_a_remote_input_that_is_not_there_or_not_read_is_an_error(spark, remote, given):
    write_lines(remote.inside / "in" / "_a.jsonl", ["a"])
    with pytest.raises(InputError, match=r"cannot be read|would be left out"):
        read(spark, Settings(input=f"{remote.uri}/{given}"))


@pytest.mark.parametrize(("output", "given"), [("in/out", "in"), ("in", "in/*.jsonl"), ("in/a.jsonl", "in/[ab].jsonl")])
def test_a_remote_output_that_meets_an_input_is_refused(spark, remote, output, given):
    write_lines(remote.inside / "in" / "a.jsonl", ["a"])
    with pytest.raises(OutputError, match="nothing was written"):
        dedup(spark, Settings(input=f"{remote.uri}/{given}", output=f"{remote.uri}/{output}"), False)


@pytest.mark.parametrize("given", ["prints*", "prints{1,2}", "prints[12]", "prints?", "prints 1"])
def test_remote_fingerprints_of_finished_runs_are_compared(spark, remote, given):
    names = ["prints1", "prints2"] if given != "prints 1" else ["prints 1"]
    for name in names:
        write_lines(remote.inside / f"{name}.jsonl", [f"{name} a", f"{name} b"])
        fingerprint(spark, Settings(input=f"{remote.uri}/{name}.jsonl", output=f"{remote.uri}/{name}"), False)
        (remote.inside / f"{name}.jsonl").unlink()
    pairs(spark, Settings(input=f"{remote.uri}/{given}", output=f"{remote.uri}/out"), False)
    assert read_manifest(f"{remote.uri}/out")["settings_id"] == "simhash64-v1/word/2/binary"
    assert read_manifest(f"{remote.uri}/out")["tables"]["pairs"]["rows"] == len(names) * (2 * len(names) - 1)


def test_remote_fingerprints_from_elsewhere_are_compared(spark, remote):
    for name in ("a", "b c"):
        pq.write_table(pa.table({"id": [name], "fingerprint": [5]}), remote.inside / f"{name}.parquet")
    pairs(spark, Settings(input=f"{remote.uri}/*.parquet", output=f"{remote.uri}/out"), False)
    assert read_manifest(f"{remote.uri}/out")["tables"]["pairs"]["rows"] == 1
