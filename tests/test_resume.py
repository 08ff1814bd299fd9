import dataclasses
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simhash_udf import checkpoints, marker
from simhash_udf.errors import OutputError
from simhash_udf.manifest import read_manifest, read_report, table_path
from simhash_udf.run import Run
from simhash_udf.settings import KNOBS, Settings
from simhash_udf.storage import names_in
from tests.corpus import corpus
from tests.test_jobs import dedup

MAIN = ["rejects", "fingerprints", "fingerprint_pairs", "pairs", "clusters", "decisions", "kept"]
# What a knob other than its default decides first; all that follows in MAIN is decided by it, too.
FIRST = {
    "input_format": ("jsonl", "rejects"),
    "encoding": ("latin-1", "rejects"),
    "id_column": ("key", "rejects"),
    "make_ids": ("content", "rejects"),
    "duplicate_ids": ("keep-apart", "rejects"),
    "text_column": ("body", "rejects"),
    "features_column": ("f", "rejects"),
    "on_bad_input": ("reject", "rejects"),
    "max_document_bytes": (1000, "rejects"),
    "fingerprint": ("minhash", "fingerprints"),
    "unit": ("char", "fingerprints"),
    "ngram": (5, "fingerprints"),
    "weighting": ("tf", "fingerprints"),
    "within": ("lang", "fingerprints"),
    "max_distance": (3, "fingerprint_pairs"),
    "reference": (("r",), "fingerprint_pairs"),
    "min_features": (3, "fingerprint_pairs"),
    "verify": ("jaccard", "fingerprint_pairs"),
    "pairs": ("spanning", "fingerprint_pairs"),
    "max_radius": (9, "clusters"),
    "keep": ("id desc", "decisions"),
    # Nothing: a store resumes no run.
    "store": ("s", None),
    "batch": ("b", None),
    "old": ("by-keep-rule", None),
    "store_tables": ("t", None),
    "ids": (("i",), None),
    "keep_versions": (1, None),
    # Nothing, for as long as others have their defaults.
    "min_similarity": (0.5, None),
    "verify_unit": ("char", None),
    "verify_ngram": (5, None),
    "source_column": ("lang", None),
    "also_at": ("3", None),
    "max_pairs": (9, None),
    "max_rejected": (0.5, None),
    "max_removed": (0.5, None),
    "if_exists": ("resume", None),
    "output": ("elsewhere", None),
    "input": ("other", None),
    "truth": ("other", None),
    "fingerprint_format": ("hex", "rejects"),
    "truth_similarity": ("s", None),
    "recall_similarity": (0.9, None),
    "precision_similarity": (0.5, None),
    "labels": (("x",), "rejects"),
}


@pytest.mark.parametrize("knob", KNOBS)
def test_a_knob_changes_the_keys_of_the_tables_that_it_decides_and_of_no_other(knob):
    before = {"input": ("x",)} if knob == "labels" else {}
    value, first = FIRST[knob]
    settings = [Settings(**before), Settings(**before | {knob: value})]
    changed = [name for name in MAIN if len({checkpoints.key_of(name, one, "i") for one in settings}) > 1]
    assert changed == ([] if first is None else MAIN[MAIN.index(first) :])


@pytest.mark.parametrize(
    ("before", "knob", "value", "first"),
    [
        ({"verify": "jaccard"}, "min_similarity", 0.5, "pairs"),
        ({"verify": "jaccard"}, "verify_ngram", 5, "pairs"),
        ({"verify": "sketch"}, "verify_ngram", 5, "fingerprints"),
        ({"verify": "jaccard"}, "verify_unit", "char", "fingerprints"),
        ({"max_radius": 9}, "keep", "id desc", "clusters"),
        ({"pairs": "spanning"}, "also_at", "3", "fingerprint_pairs"),
        ({"labels": ("a",), "input": ("x",)}, "source_column", "from", "rejects"),
    ],
)
def test_what_a_knob_decides_where_others_make_it_matter(before, knob, value, first):
    settings = [Settings(**before), Settings(**before | {knob: value})]
    changed = [name for name in MAIN if len({checkpoints.key_of(name, one, "i") for one in settings}) > 1]
    assert changed == MAIN[MAIN.index(first) :]


def test_inputs_and_versions_decide_every_table(monkeypatch):
    keys = {checkpoints.key_of("fingerprints", Settings(), inputs) for inputs in "ab"}
    monkeypatch.setattr(checkpoints.metadata, "version", lambda name: "9.9")
    assert len(keys | {checkpoints.key_of("fingerprints", Settings(), "a")}) == 3


def write(path):
    path.write_text("".join(json.dumps({"id": identity, "text": text, "lang": "x"}) + "\n" for identity, text in corpus()))
    return str(path)


def tables(output, names=tuple(MAIN)):
    """Where each table is, and the checksum of what is in it."""
    manifest = read_manifest(str(output))["tables"]
    return {name: (manifest[name]["path"], manifest[name]["checksum"]) for name in names}


@pytest.fixture(scope="module")
def clean(spark, tmp_path_factory):
    """The tables of a run that nothing disturbed, at distance 6 and 3."""
    base = tmp_path_factory.mktemp("clean")
    given = write(base / "in.jsonl")
    for distance in (6, 3):
        dedup(spark, Settings(input=given, output=f"{base}/{distance}", max_distance=distance), False)
    return {distance: {name: told for name, (_, told) in tables(base / str(distance)).items()} for distance in (6, 3)}


def test_a_resumed_run_uses_what_is_finished_and_makes_what_depends_on_the_change(spark, tmp_path, clean):
    given, output = write(tmp_path / "in.jsonl"), tmp_path / "out"
    dedup(spark, Settings(input=given, output=str(output)), False)
    first = tables(output)
    dedup(spark, Settings(input=given, output=str(output), max_distance=3, if_exists="resume"), False)
    second = tables(output)
    assert [name for name in MAIN if second[name][0] == first[name][0]] == ["rejects", "fingerprints"]
    assert {name: told for name, (_, told) in second.items()} == clean[3]
    assert read_report(str(output))["reused"] == ["rejects", "fingerprints"]
    # What the old result had and the new one has not is gone, and nothing else.
    old = first["fingerprints"][0].split("/")[1]
    assert names_in(str(output / "runs" / old)) == ["fingerprints", "rejects"]
    dedup(spark, Settings(input=given, output=str(output), max_distance=3, if_exists="resume"), False)
    assert tables(output) == second
    # A file that was touched is another input.
    os.utime(given, (1, 1))
    dedup(spark, Settings(input=given, output=str(output), max_distance=3, if_exists="resume"), False)
    third = tables(output)
    assert not {path for path, _ in third.values()} & {path for path, _ in second.values()}
    assert {name: told for name, (_, told) in third.items()} == clean[3]
    assert names_in(str(output / "runs")) == [read_manifest(str(output))["run"]]


def ids_of_inputs(spark, tmp_path, **settings):
    run = Run(spark, Settings(output=f"{tmp_path}/out", **settings), print)
    with run:
        return run._inputs_id


def test_what_inputs_are_called_and_which_directories_are_columns_is_part_of_them(spark, tmp_path):
    for name in ("crawl=01/a.txt", "crawl=02/a.txt"):
        (tmp_path / "in" / name).parent.mkdir(parents=True)
        (tmp_path / "in" / name).write_text(json.dumps({"id": name, "text": "x"}))
    parts = [f"{tmp_path}/in/crawl=0{number}" for number in (1, 2)]
    given = [
        {"input": parts, "labels": ("a", "b")},
        {"input": parts[::-1], "labels": ("a", "b")},
        {"input": parts},
        {"input": f"{tmp_path}/in"},
        {"input": f"{tmp_path}/in/crawl=01"},
    ]
    found = [ids_of_inputs(spark, tmp_path, **one) for one in given]
    assert len(set(found)) == len(given)
    assert found[0] == ids_of_inputs(spark, tmp_path, input=parts[::-1], labels=("b", "a"))


def test_a_manifest_among_documents_is_one_of_them(spark, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("manifest.json", "a.txt"):
        (tmp_path / "in" / name).write_text("{}")
    before = ids_of_inputs(spark, tmp_path, input=f"{tmp_path}/in")
    (tmp_path / "in" / "a.txt").write_text("changed")
    assert ids_of_inputs(spark, tmp_path, input=f"{tmp_path}/in") != before


class Killed(BaseException):
    """The end of a process, of which its run learns nothing."""


def kill_at(monkeypatch, name, when):
    """Let a run be killed before it writes a table, in the middle of it, or when it is whole."""
    store = Run.store

    def killing(self, table, frame):
        if table != name:
            return store(self, table, frame)
        if when == "middle":
            # Files without a record, and none that says that writing them has ended.
            place = f"{self.output}/{self.place}/{name}"
            frame.limit(3).write.parquet(place)
            os.remove(f"{place}/_SUCCESS")
        elif when == "after":
            store(self, table, frame)
        raise Killed

    monkeypatch.setattr(Run, "store", killing)
    # Nothing is cleared away, and the marker stays; its process is gone.
    monkeypatch.setattr(Run, "__exit__", lambda *_: None)


@pytest.mark.parametrize(
    ("name", "when", "if_exists"),
    [
        *((name, when, "resume") for name in ("fingerprints", "clusters") for when in ("before", "middle", "after")),
        ("kept", "middle", "resume"),
        ("kept", "after", "resume"),
        ("decisions", "middle", "replace"),
    ],
)
def test_a_run_killed_at_any_stage_is_made_good_by_the_next(spark, tmp_path, clean, monkeypatch, name, when, if_exists):
    given, output = write(tmp_path / "in.jsonl"), tmp_path / "out"
    with monkeypatch.context() as killed:
        kill_at(killed, name, when)
        with pytest.raises(Killed):
            dedup(spark, Settings(input=given, output=str(output)), False)
    at_work = marker.run_at_work(str(output))
    monkeypatch.setattr("simhash_udf.output.is_alive", lambda output: False)
    with pytest.raises(OutputError, match="was left by a run that did not finish"):
        dedup(spark, Settings(input=given, output=str(output)), False)
    dedup(spark, Settings(input=given, output=str(output), if_exists=if_exists), False)
    made = tables(output)
    assert {name: told for name, (_, told) in made.items()} == clean[6]
    reused = [table for table in MAIN if at_work in made[table][0]]
    whole = MAIN[: MAIN.index(name) + (when == "after")]
    assert reused == (whole if if_exists == "resume" else [])
    assert sorted(names_in(str(output))) == ["manifest.json", "runs"]
    assert len(names_in(str(output / "runs"))) == (2 if if_exists == "resume" else 1)
    assert all(names_in(table_path(str(output), table)) for table in MAIN)


def test_a_run_that_fails_keeps_its_whole_tables_where_it_may_be_resumed(spark, tmp_path, monkeypatch):
    given, output = write(tmp_path / "in.jsonl"), tmp_path / "out"
    from simhash_udf.errors import TooManyPairs

    for if_exists in ("fail", "resume"):
        with pytest.raises(TooManyPairs):
            dedup(spark, Settings(input=given, output=str(output), max_pairs=1, if_exists=if_exists), False)
        assert output.exists() is (if_exists == "resume")
    (run,) = (output / "runs").iterdir()
    assert {"fingerprints", "fingerprint_pairs"} <= {path.name for path in run.iterdir()}
    dedup(spark, Settings(input=given, output=str(output), if_exists="resume"), False)
    assert read_report(str(output))["reused"][:3] == ["rejects_found", "rejects", "fingerprints"]


@pytest.fixture(scope="module")
def resumed(spark, tmp_path_factory):
    """A finished run, to be resumed again and again."""
    base = tmp_path_factory.mktemp("resumed")
    settings = Settings(input=write(base / "in.jsonl"), output=str(base / "out"), if_exists="resume")
    dedup(spark, settings, False)
    return settings


@pytest.mark.parametrize("damage", ["a file is gone", "a file is shorter", "the record is half", "the path leads out"])
def test_a_table_that_is_not_as_it_was_recorded_is_made_again(spark, clean, resumed, damage):
    output = Path(resumed.output)
    place = output / tables(output)["fingerprints"][0]
    file = next(place.glob("*.parquet"))
    record = output / "runs" / read_manifest(str(output))["run"] / "stages" / "fingerprints.json"
    if damage == "a file is gone":
        file.unlink()
    elif damage == "a file is shorter":
        file.write_bytes(file.read_bytes()[:-1])
    elif damage == "the record is half":
        record.write_text(record.read_text()[:50])
    else:
        record.write_text(record.read_text().replace("runs/", "../out/runs/"))
    dedup(spark, resumed, False)
    assert "fingerprints" not in read_report(str(output))["reused"]
    assert "pairs" in read_report(str(output))["reused"]
    assert {name: told for name, (_, told) in tables(output).items()} == clean[6]


def tell(output, **told):
    (output / "_run.json").write_text(json.dumps({"run": "x", **told}))
    return marker.is_alive(str(output))


def test_a_marker_tells_whether_its_run_is_alive(tmp_path):
    assert not marker.is_alive(str(tmp_path))
    mine = marker.Marker(str(tmp_path), "x")
    mine.write()
    assert marker.is_alive(str(tmp_path))
    assert marker.run_at_work(str(tmp_path)) == "x"
    mine.remove()
    assert marker.run_at_work(str(tmp_path)) is None
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not tell(tmp_path, host=platform.node(), process=ended.pid, began="1", beat=time.time())
    # Its number is that of another process by now.
    assert not tell(tmp_path, host=platform.node(), process=os.getpid(), began="1", beat=time.time())
    assert tell(tmp_path, host="another machine", process=1, began="1", beat=time.time() - 300)
    assert not tell(tmp_path, host="another machine", process=1, began="1", beat=time.time() - 900)
    (tmp_path / "_run.json").write_text("{")
    assert not marker.is_alive(str(tmp_path))


def test_a_marker_is_written_again_and_again_while_it_is_ones_own(tmp_path, monkeypatch):
    monkeypatch.setattr(marker, "BEAT_SECONDS", 0.2)
    mine = marker.Marker(str(tmp_path), "x")
    mine.write()
    (tmp_path / "_run.json").write_text('{"run": "x"}')
    while "beat" not in json.loads((tmp_path / "_run.json").read_text()):
        time.sleep(0.01)
    # Just after a beat, so that none is on its way.
    (tmp_path / "_run.json").write_text('{"run": "other"}')
    time.sleep(0.5)
    mine.remove()
    assert json.loads((tmp_path / "_run.json").read_text()) == {"run": "other"}


def test_every_setting_is_in_the_list_above():
    assert {field.name for field in dataclasses.fields(Settings)} == FIRST.keys()
