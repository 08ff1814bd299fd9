import os

import pytest

from simhash_udf.errors import InputError, OutputError
from simhash_udf.storage import as_literal_glob, as_uri, expand, names_in, overlap, read_text, remove, write_text


@pytest.fixture
def corpus(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.jsonl").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "data")
    return tmp_path / "data"


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("{data}", "is the input"),
        ("{data}/", "is the input"),
        ("{data}/../data", "is the input"),
        ("file:{data}", "is the input"),
        ("file://{data}", "is the input"),
        ("{link}", "is the input"),
        ("{data}/out", "lies inside the input"),
        ("{link}/out/deep", "lies inside the input"),
        ("{parent}", "contains the input"),
    ],
)
def test_an_output_that_meets_an_input_is_told(corpus, output, said):
    place = output.format(data=corpus, link=corpus.parent / "link", parent=corpus.parent)
    assert said in overlap(place, [str(corpus)])


@pytest.mark.parametrize("output", ["{data}2", "{parent}/out", "{data}.out"])
def test_an_output_beside_the_input_is_apart(corpus, output):
    assert overlap(output.format(data=corpus, parent=corpus.parent), [str(corpus)]) is None


@pytest.mark.parametrize(
    ("output", "given", "said"),
    [
        ("s3a://b/c", "s3://b/c/", "is the input"),
        ("s3a://b/c/out", "s3a://b/c", "lies inside"),
        ("s3a://b", "s3a://b/c", "contains"),
        ("s3a://b/c/out", "s3a://b/c/*", "is the input"),
        ("s3a://b/c/out/deep", "s3a://b/c/*", "lies inside"),
        ("s3a://b/c", "s3a://b/c/*.parquet", "contains"),
        ("s3a://b/c/out", "s3a://b/c/*.parquet", None),
        ("s3a://b/c/part-1/out", "s3a://b/c/part-*", "lies inside"),
        ("s3a://b/c/part-1/out", "s3a://b/*/part-[^0]/", "lies inside"),
        ("s3a://b/c/part-1/out", "s3a://b/c/{part,data}-{1,2}", "lies inside"),
        ("s3a://b/c/part-3/out", "s3a://b/c/{part,data}-{1,2}", None),
        ("s3a://b/c/part-1/out", "s3a://b/c/part-?", "lies inside"),
        ("s3a://b/c/result", "s3a://b/c/part-*", None),
        ("s3a://b/cc", "s3a://b/c", None),
    ],
)
def test_object_stores_are_compared_by_their_names(output, given, said):
    meeting = overlap(output, [given])
    assert meeting is None if said is None else said in meeting


@pytest.mark.parametrize(
    ("given", "said"),
    [("data/*/x", "lies inside"), ("data/**", "lies inside"), ("{data,none}/o*", "is the input"), ("data/p*", None)],
)
def test_an_output_that_a_glob_could_match_meets_it(corpus, given, said):
    place = f"{corpus}/out" if "x" not in given else f"{corpus}/out/x/y"
    meeting = overlap(place, [f"{corpus.parent}/{given}"])
    assert meeting is None if said is None else said in meeting


def test_an_output_that_a_link_within_the_input_leads_to_is_told(corpus):
    for name in ("out", "between", "apart"):
        (corpus.parent / name).mkdir()
    out = str(corpus.parent / "out")
    (corpus / "apart").symlink_to(corpus.parent / "apart")
    assert overlap(out, [str(corpus)]) is None
    (corpus.parent / "between" / "x").symlink_to(out)
    (corpus.parent / "between" / "back").symlink_to(corpus)
    (corpus / "link").symlink_to(corpus.parent / "between")
    assert overlap(out, [str(corpus)]) == f"is what '{corpus.parent}/between/x' in the input '{corpus}' links to"
    (corpus.parent / "out" / "deep").mkdir()
    assert "lies inside what" in overlap(f"{out}/deep", [str(corpus)])
    (corpus / "link").unlink()
    (corpus / "link").symlink_to(corpus.parent / "out" / "deep")
    assert "contains what" in overlap(out, [str(corpus)])


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("{a,b}.jsonl", ["a.jsonl", "b.jsonl"]),
        ("[^b].jsonl", ["a.jsonl"]),
        ("{a,n{o,0}ne}.{jsonl,json}", ["a.jsonl"]),
        ("{[ab],*}.jsonl", ["a.jsonl", "b.jsonl"]),
        ("{*", ["{c.jsonl"]),
    ],
)
def test_a_glob_matches_what_it_matches_for_spark(spark, corpus, pattern, names):
    for name in ("b.jsonl", *(["{c.jsonl"] if pattern == "{*" else [])):
        (corpus / name).write_text("{}")
    assert expand(f"{corpus}/{pattern}") == [f"{corpus}/{name}" for name in names]
    if pattern != "{*":
        listed = spark.read.format("binaryFile").load(f"{corpus}/{pattern}").inputFiles()
        assert sorted(listed) == [f"file://{corpus}/{name}" for name in names]


def test_a_glob_names_what_it_matches_and_a_file_with_glob_signs_itself(corpus):
    (corpus / "b[1].jsonl").write_text("{}")
    assert expand(f"{corpus}/*.jsonl") == [f"{corpus}/a.jsonl", f"{corpus}/b[1].jsonl"]
    assert expand(f"{corpus}/b[1].jsonl") == [f"{corpus}/b[1].jsonl"]
    assert as_literal_glob(f"{corpus}/b[1].jsonl") == f"file://{corpus}/b\\[1\\].jsonl"
    assert as_uri(f"{corpus}/b[1].jsonl") == f"file://{corpus}/b[1].jsonl"


@pytest.mark.parametrize(("path", "said"), [("{data}/*.csv", "glob matches nothing"), ("{data}/none", "no file or directory")])
def test_an_input_that_is_not_there_is_told(corpus, path, said):
    with pytest.raises(InputError, match=said):
        expand(path.format(data=corpus))


def test_a_small_file_is_replaced_whole_and_leaves_nothing_beside_it(tmp_path):
    path = str(tmp_path / "m.json")
    assert read_text(path) is None
    write_text(path, "old")
    write_text(path, "new ü")
    assert read_text(path) == "new ü"
    assert os.listdir(tmp_path) == ["m.json"]


def test_names_in_a_directory_and_in_none(tmp_path):
    (tmp_path / "x").mkdir()
    assert names_in(str(tmp_path)) == ["x"]
    assert names_in(str(tmp_path / "none")) is None
    write_text(str(tmp_path / "file"), "")
    with pytest.raises(OutputError, match="is a file"):
        names_in(str(tmp_path / "file"))
    remove(str(tmp_path / "x"))
    remove(str(tmp_path / "none"))
    assert names_in(str(tmp_path)) == ["file"]
