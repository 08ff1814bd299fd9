import json
import os

import pytest

from simhash_udf.errors import InputError
from simhash_udf.results import read_fingerprints
from simhash_udf.settings import Settings
from simhash_udf.sources import read_documents
from simhash_udf.sources.files import _listed, _walked
from simhash_udf.stages.documents import ORIGIN


@pytest.fixture(autouse=True)
def strings_of_partitions(spark_conf):
    spark_conf({"spark.sql.sources.partitionColumnTypeInference.enabled": "false"})


def write(base, *names):
    """One document a file; its id is the number of the name."""
    for number, name in enumerate(names):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_text(json.dumps({"id": number, "text": "x"}) + "\n")


def read(spark, *inputs):
    settings = Settings(input=tuple(map(str, inputs)), output="o")
    return read_documents(spark, settings, lambda _, table: table, lambda _: None).rows.drop(ORIGIN)


def rows(frame):
    return sorted(tuple(row) for row in frame.collect())


def test_a_directory_that_may_not_be_read_is_not_left_out(spark, tmp_path, monkeypatch):
    write(tmp_path, "a.jsonl", "b/c.jsonl")
    listed = os.scandir

    def refused(path):
        if str(path).endswith("/b"):
            raise PermissionError(13, "Permission denied", path)
        return listed(path)

    monkeypatch.setattr(os, "scandir", refused)
    with pytest.raises(InputError, match="b' cannot be read: Permission denied"):
        read(spark, tmp_path)


def test_files_of_directories_within_an_input_are_read(spark, tmp_path):
    write(tmp_path, "a.jsonl", "x/b.jsonl", "x/y z/100%.jsonl", "w/w/w/d.jsonl")
    assert rows(read(spark, tmp_path)) == [(number, "x") for number in range(4)]


def test_parquet_of_directories_within_an_input_is_read(spark, tmp_path):
    for number in range(3):
        spark.range(number, number + 1).selectExpr("id", "id fingerprint").write.parquet(f"{tmp_path}/in/{'d/' * number}t")
    assert [row["id"] for row in read(spark, tmp_path / "in").orderBy("id").collect()] == [0, 1, 2]
    stored = read_fingerprints(spark, Settings(input=str(tmp_path / "in"), output="o"))
    assert [row["id"] for row in stored.orderBy("id").collect()] == [0, 1, 2]


def test_partition_directories_are_columns_of_strings(spark, tmp_path):
    write(tmp_path, "crawl=01/a.jsonl", "crawl=02/b.jsonl", "crawl=02/more/c.jsonl")
    assert rows(read(spark, tmp_path)) == [(0, "x", "01"), (1, "x", "02"), (2, "x", "02")]


def test_partition_directories_given_themselves_are_none(spark, tmp_path):
    write(tmp_path, "crawl=01/a.jsonl", "crawl=02/deep/b.jsonl")
    assert rows(read(spark, f"{tmp_path}/crawl=*")) == [(0, "x"), (1, "x")]


@pytest.mark.parametrize(
    "names",
    [
        ["crawl=01/a.jsonl", "b.jsonl"],
        ["crawl=01/a.jsonl", "plain/b.jsonl"],
        ["crawl=01/a.jsonl", "fetch=02/b.jsonl"],
        ["x/crawl=01/a.jsonl", "y/crawl=01/b.jsonl"],
        ["crawl=01/part=1/a.jsonl", "crawl=01/b.jsonl"],
    ],
)
def test_partition_directories_beside_anything_else_are_refused(spark, tmp_path, names):
    write(tmp_path, *names)
    with pytest.raises(InputError, match=r"a\.jsonl.*not in partition directories of the same names.*glob"):
        read(spark, tmp_path)


def test_partition_directories_of_several_inputs_are_refused(spark, tmp_path):
    write(tmp_path, "p/crawl=01/a.jsonl", "q/crawl=02/b.jsonl", "q/c.jsonl")
    for inputs in (["p", "q"], ["p", "q/c.jsonl"]):
        with pytest.raises(InputError, match="not in partition directories of the same names"):
            read(spark, *(tmp_path / name for name in inputs))


def test_a_plain_directory_between_partition_directories_is_refused(spark, tmp_path):
    write(tmp_path, "year=2024/x/month=01/a.jsonl")
    with pytest.raises(InputError, match="a directory that is no partition is between"):
        read(spark, tmp_path)


@pytest.mark.parametrize("hidden", ["_b.jsonl", ".b.jsonl.gz", "_old/b.jsonl", "x/.old/deep/b.parquet"])
def test_data_that_spark_would_leave_out_is_refused(spark, tmp_path, hidden):
    write(tmp_path, "a.jsonl", hidden)
    with pytest.raises(InputError, match=r"/b\.|_b\.|\.b\.") as refused:
        read(spark, tmp_path)
    assert "would be left out" in str(refused.value)


@pytest.mark.parametrize("hidden", ["_index.md", ".hidden", "x/_y/a", "x/.y/a.txt"])
def test_any_file_that_would_be_left_out_is_refused_where_its_format_is_given(spark, tmp_path, hidden):
    write(tmp_path, "a", hidden, "_SUCCESS", ".a.crc", "_temporary/0/x", ".git/config", "_committed_12")
    settings = Settings(input=str(tmp_path), output="o", input_format="text")
    with pytest.raises(InputError, match="would be left out"):
        read_documents(spark, settings, lambda _, table: table, lambda _: None)
    (tmp_path / hidden).unlink()
    assert read_documents(spark, settings, lambda _, table: table, lambda _: None).rows.count() == 1


@pytest.mark.parametrize("hidden", ["_a.jsonl", ".a.jsonl", "_a"])
def test_a_file_given_that_spark_would_leave_out_is_refused(spark, tmp_path, hidden):
    write(tmp_path, "a.jsonl", hidden)
    with pytest.raises(InputError, match=f"{hidden}' would be left out"):
        read(spark, tmp_path / "a.jsonl", tmp_path / hidden)


def test_marks_of_other_programs_beside_the_data_do_no_harm(spark, tmp_path):
    write(tmp_path, "a.jsonl", "_SUCCESS", ".a.jsonl.crc", "_temporary/0/x")
    assert rows(read(spark, tmp_path)) == rows(read(spark, f"{tmp_path}/*")) == [(0, "x")]


def test_a_link_to_a_directory_above_it_is_refused(spark, tmp_path):
    write(tmp_path, "x/a.jsonl")
    (tmp_path / "x" / "round").symlink_to(tmp_path)
    with pytest.raises(InputError, match=r"x/round' links to a directory that holds it"):
        read(spark, tmp_path)


def test_a_name_that_is_no_text_is_refused(spark, tmp_path):
    write(tmp_path, "a.jsonl")
    try:
        open(os.fsencode(tmp_path) + b"/b\xff.jsonl", "wb").close()
    except OSError:
        pytest.skip("this file system takes no such name")
    with pytest.raises(InputError, match="is not valid UTF-8"):
        read(spark, tmp_path)


def test_files_behind_a_link_are_read(spark, tmp_path):
    write(tmp_path, "in/a.jsonl", "other/b.jsonl")
    (tmp_path / "in" / "link").symlink_to(tmp_path / "other")
    assert rows(read(spark, tmp_path / "in")) == [(0, "x"), (1, "x")]


def test_our_listing_of_a_local_directory_is_that_of_spark(spark, tmp_path):
    write(tmp_path, "a.jsonl", "x/b é%20.jsonl", "_k=1/c.jsonl", "k=2/_d=x", "_x/e", ".y/f", "x/_g", "x/.h", "x/i._COPYING_")
    ours, sparks = _walked(str(tmp_path), outright=True), _listed(spark, f"file://{tmp_path}")
    assert {(file.path, file.between) for file in ours} == {(file.path.removeprefix("file://"), file.between) for file in sparks}
    assert len(ours) == 4


def test_a_place_that_only_spark_can_list_is_treated_alike(spark, tmp_path):
    write(tmp_path, "in/_b.jsonl")
    with pytest.raises(InputError, match="would be left out"):
        _listed(spark, f"file://{tmp_path}/in/_b.jsonl")
    with pytest.raises(InputError, match="cannot be read as files"):
        _listed(spark, f"file://{tmp_path}/none")
