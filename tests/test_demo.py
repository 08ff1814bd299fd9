import gzip
import importlib.util
import itertools
import json
from collections import Counter
from pathlib import Path

import pytest

from simhash_udf.demo import KINDS, compare_with_planted, generate, write_corpus
from simhash_udf.errors import OutputError, SettingsError


@pytest.fixture(scope="module")
def job():
    spec = importlib.util.spec_from_file_location("job_demo", Path(__file__).parent.parent / "jobs" / "demo.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_kind_of_document_is_planted():
    kinds = Counter(document.kind for document in generate(2_000))
    assert set(kinds) == set(KINDS)
    assert (kinds["exact copy"], kinds["light edit"], kinds["no text"]) == (200, 240, 20)


def test_a_seed_makes_one_corpus_and_another_seed_another(tmp_path):
    files = [write_corpus(tmp_path / name, 1_000, seed).read_bytes() for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    assert files[0] == files[1] != files[2]


def test_ids_are_distinct_and_originals_are_there():
    documents = {document.id: document for document in generate(1_000)}
    assert len(documents) == 1_000
    made_from = [d.original for d in documents.values() if d.kind in KINDS[:3]]
    assert set(made_from) <= documents.keys()


def test_exact_copies_are_exact_and_light_edits_are_light():
    documents = {document.id: document for document in generate(1_000)}
    for document in documents.values():
        if document.kind == "exact copy":
            assert document.text == documents[document.original].text
        elif document.kind == "light edit" and document.language == "latin":
            words, before = document.text.replace(".", "").split(), documents[document.original].text.replace(".", "").split()
            assert 1 <= sum(map(str.__ne__, words, before)) <= 0.04 * len(words) + 1


def test_texts_come_in_ten_languages():
    assert len({document.language for document in generate(1_000)}) == 10


def test_the_corpus_does_not_tell_the_answer(tmp_path):
    with gzip.open(write_corpus(tmp_path / "corpus", 1_000), "rt", encoding="utf-8") as lines:
        assert {tuple(json.loads(line)) for line in itertools.islice(lines, 50)} == {("id", "text", "language", "source")}


def test_a_directory_that_holds_something_is_refused(tmp_path):
    (tmp_path / "mine").write_text("")
    with pytest.raises(OutputError, match="not empty"):
        write_corpus(tmp_path, 1_000)


@pytest.mark.parametrize("count", [10, 1_000])
def test_a_demo_begins_anew_where_one_was_killed(job, tmp_path, monkeypatch, count):
    def killed(document, **options):
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr("simhash_udf.demo.json.dumps", killed)
        with pytest.raises((KeyboardInterrupt, SettingsError)):
            job.make_corpus(tmp_path / "demo", count, 7)
    assert any((tmp_path / "demo" / "corpus").iterdir())
    made = job.make_corpus(tmp_path / "demo", 1_000, 7)
    assert made.read_bytes() == write_corpus(tmp_path / "other", 1_000, 7).read_bytes()
    assert job.make_corpus(tmp_path / "demo", 1_000, 7) == made


@pytest.mark.parametrize("earlier", [False, True])
def test_a_demo_removes_nothing_that_no_demo_wrote(job, tmp_path, earlier):
    if earlier:
        job.make_corpus(tmp_path, 1_000, 7)
    (tmp_path / "corpus").mkdir(exist_ok=True)
    (tmp_path / "corpus" / "mine").write_text("")
    for _ in range(2):
        with pytest.raises(OutputError, match="not empty"):
            job.make_corpus(tmp_path, 1_000, 7)
    assert (tmp_path / "corpus" / "mine").exists()


def test_a_corpus_too_small_for_all_kinds_is_refused():
    with pytest.raises(SettingsError, match="at least 1,000"):
        next(generate(10))


def test_found_wrong_and_kept_are_counted_by_kind():
    planted = [
        ("a", "unrelated", None),
        ("b", "exact copy", "a"),
        ("c", "light edit", "b"),
        ("d", "unrelated", None),
        ("e", "unrelated", None),
    ]
    decided = [("a", True, "a"), ("b", False, "a"), ("c", True, None), ("d", True, "d"), ("e", False, "d")]
    rows = compare_with_planted(
        [dict(zip(("id", "kind", "original"), row, strict=True)) for row in planted],
        [dict(zip(("id", "kept", "cluster"), row, strict=True)) for row in decided],
    )
    assert {row["kind"]: tuple(row.values())[1:] for row in rows if row["planted"]} == {
        "exact copy": (1, 1, 0, 0),
        "light edit": (1, 0, 0, 1),
        "unrelated": (3, None, 2, 2),
    }
