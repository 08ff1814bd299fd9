"""References as a user has them: results, and documents in the form of the input, such as a set to evaluate models on."""

import json

import pyarrow.parquet as pq
import pytest

from simhash_udf.errors import InputError, OutputError
from simhash_udf.manifest import read_report, table_path
from simhash_udf.settings import Settings
from tests.test_jobs import dedup, fingerprint

WORDS = [f"w{at}" for at in range(60)]
TEXT, EDITED = " ".join(WORDS), " ".join([*WORDS[:-1], "other"])
OTHER, OTHER_EDITED = " ".join(reversed(WORDS)), " ".join(reversed([*WORDS[:-1], "other"]))


def write(path, texts, **more):
    path.write_text("".join(json.dumps({"id": name, "text": text, **more}) + "\n" for name, text in texts.items()))
    return str(path)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    place = tmp_path_factory.mktemp("given")
    corpus = write(place / "corpus.jsonl", {"a": EDITED, "b": EDITED, "c": OTHER, "d": OTHER_EDITED, "e": "nothing alike"})
    return corpus, write(place / "test.jsonl", {1: TEXT, 2: "unheard of"}), write(place / "exam.jsonl", {"a": OTHER})


@pytest.fixture(scope="module")
def reference_result(spark, given, tmp_path_factory):
    output = str(tmp_path_factory.mktemp("result") / "out")
    fingerprint(spark, Settings(input=(given[1],), output=output), False)
    return output


def read(output, table):
    return pq.read_table(table_path(str(output), table)).to_pylist()


@pytest.mark.parametrize("as_result", [False, True], ids=["documents", "result"])
def test_documents_near_a_reference_are_dropped_and_the_others_are_compared(spark, given, reference_result, tmp_path, as_result):
    corpus, test, _ = given
    reference = reference_result if as_result else test
    settings = Settings(input=(corpus,), reference=(reference,), output=str(tmp_path / "out"), max_distance=12)
    dedup(spark, settings, False)
    told = {row["id"]: row for row in read(tmp_path / "out", "decisions")}
    assert {name: row["reason"] for name, row in told.items()} == {
        "a": "in a reference", "b": "in a reference", "c": "within distance", "d": "keeper", "e": "unique",
    }  # fmt: skip
    assert told["c"]["keeper"] == "d"
    for name in "ab":
        row = told[name]
        assert (row["kept"], row["cluster"], row["keeper"], row["distance"]) == (False, None, None, None)
        assert (row["reference"], row["reference_id"]) == (reference, "1")
        assert 0 < row["reference_distance"] <= 12
    assert told["c"]["reference"] is told["c"]["reference_id"] is told["c"]["reference_distance"] is None
    assert {row["id"] for row in read(tmp_path / "out", "kept")} == {"d", "e"}
    assert {row["id"] for row in read(tmp_path / "out", "fingerprints")} == set("abcde")
    assert {row["id_a"] for row in read(tmp_path / "out", "pairs")} == {"c"}
    report = read_report(str(tmp_path / "out"))
    assert (report["kept"], report["dropped"], report["in_references"]) == (2, 3, {reference: 2})


def test_several_references_and_a_corpus_of_nothing_else(spark, given, tmp_path):
    corpus, *references = given
    settings = {"input": (corpus,), "reference": tuple(references), "max_distance": 12}
    dedup(spark, Settings(**settings, output=str(tmp_path / "out")), False)
    told = {row["id"]: (row["reference"], row["reference_id"]) for row in read(tmp_path / "out", "decisions")}
    assert told == {"a": (references[0], "1"), "b": (references[0], "1"), "c": (references[1], "a"), "d": (references[1], "a"),
                    "e": (None, None)}  # fmt: skip
    settings |= {"input": (references[1],), "reference": (corpus,), "max_removed": 1.0}
    dedup(spark, Settings(**settings, output=str(tmp_path / "all")), False)
    assert read(tmp_path / "all", "kept") == []
    assert [row["reason"] for row in read(tmp_path / "all", "decisions")] == ["in a reference"]


def test_a_reference_that_cannot_serve_is_refused_and_nothing_is_written(spark, given, reference_result, tmp_path):
    corpus, test, _ = given
    broken = tmp_path / "broken.jsonl"
    broken.write_text('{"id": 1, "text": "a"}\n{"id": 2, "tex\n')
    for reference, more, error, said in (
        (str(tmp_path / "nowhere"), {}, InputError, "no file or directory is there"),
        (str(broken), {"on_bad_input": "reject"}, InputError, "1 records of the input are no documents"),
        (reference_result, {"ngram": 3}, InputError, "/word/2/binary, and those of the input .*/word/3/binary"),
        (test, {"output": f"{tmp_path}/in/../in"}, OutputError, "in"),
    ):  # fmt: skip
        if error is OutputError:
            (tmp_path / "in").mkdir()
            reference = write(tmp_path / "in" / "test.jsonl", {1: TEXT})
        settings = {"input": (corpus,), "reference": (reference,), "output": str(tmp_path / "out"), **more}
        with pytest.raises(error, match=said):
            dedup(spark, Settings(**settings), False)
        assert not (tmp_path / "out").exists()


def test_other_references_make_the_search_anew_and_the_fingerprints_not(spark, given, tmp_path):
    corpus, *references = given
    settings = {"input": (corpus,), "max_distance": 12, "output": str(tmp_path / "out"), "if_exists": "resume"}
    dedup(spark, Settings(**settings), False)
    dedup(spark, Settings(**settings, reference=(references[0],)), False)
    assert {row["id"] for row in read(tmp_path / "out", "kept")} == {"d", "e"}
