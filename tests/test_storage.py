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
        ("s3a://b/c/out", "s3a://b/c/*.parquet", "lies inside"),
        ("s3a://b/cc", "s3a://b/c", None),
    ],
)
def test_object_stores_are_compared_by_their_names(output, given, said):
    meeting = overlap(output, [given])
    assert meeting is None if said is None else said in meeting


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
