"""Batches one after the other say what one run over all of them says, whatever the order and the rules."""

import json

import pyarrow.parquet as pq
import pytest

from simhash_udf.errors import InputError, OutputError, SettingsError, TooManyPairs, TooManyRemoved
from simhash_udf.manifest import table_path
from simhash_udf.settings import Settings
from simhash_udf.store.manifest import read_store
from simhash_udf.store.run import StoreRun
from simhash_udf.store.views import Store
from tests.store.corpora import DISTANCE, add_batch, check, documents, rows, state, write
from tests.test_jobs import dedup


def thirds(texts):
    names = list(texts)
    cut = len(names) // 3
    return [{name: texts[name] for name in names[at : at + cut]} for at in (0, cut, 2 * cut)]


def files_of(place):
    return {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("order", "knobs"),
    [
        ((0, 1, 2), {}),
        ((2, 0, 1), {"old": "by-keep-rule"}),
        ((1, 2, 0), {"within": "lang", "min_features": 9, "old": "by-keep-rule", "keep": "rank desc, id"}),
        ((2, 1, 0), {"verify": "sketch", "min_similarity": 0.7, "old": "by-keep-rule"}),
        ((0, 2, 1), {"pairs": "spanning", "old": "by-keep-rule"}),
    ],
    ids=["never-dropped", "by-keep-rule", "within", "verify", "spanning"],
)
def test_batches_in_any_order_are_as_one_run(spark, tmp_path, order, knobs):
    texts = documents(60, seed=len(knobs))
    # Documents of few words, which are near their copies alone.
    texts |= {"s1": "a b", "s2": "a b", "s3": "a c"} if "min_features" in knobs else {}
    languages = {name: {"lang": "en" if name < "7" else None, "rank": hash_of(name) % 5} for name in texts}

    def put(path, part):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps({"id": n, "text": t, **languages[n]}) + "\n" for n, t in part.items()))
        return str(path)

    from simhash_udf.store.add import add

    parts = thirds(texts)
    texts = {name: text for part in parts for name, text in part.items()}
    common = {"max_distance": DISTANCE, "max_removed": 1.0, **knobs}
    for at in order:
        path = put(tmp_path / f"{at}.jsonl", parts[at])
        figures = add(spark, Settings(input=(path,), store=str(tmp_path / "store"), batch=str(at), **common), lambda _: None)
        assert figures["documents"]["fingerprinted"] == len(parts[at])
        assert figures["search"]["pairs_of_stored_with_stored"] == 0
    common.pop("old", None)
    dedup(spark, Settings(input=(put(tmp_path / "all.jsonl", texts),), output=str(tmp_path / "out"), **common), False)
    full = {name: spark.read.parquet(table_path(str(tmp_path / "out"), name)) for name in ("pairs", "clusters", "decisions")}
    view = Store(spark, str(tmp_path / "store"))
    assert rows(view.clusters(), "id", "cluster", "size") == rows(full["clusters"])
    assert rows(full["clusters"])
    if knobs.get("pairs") != "spanning":
        assert rows(view.pairs(), *full["pairs"].columns) == rows(full["pairs"])
    if "old" in knobs:
        told = full["decisions"].columns
        assert sorted(map(repr, view.decisions().select(told).collect())) == sorted(map(repr, full["decisions"].collect()))
    else:
        told = check(spark, tmp_path, texts)
        # What a batch kept is kept for ever.
        for batch in view.batches:
            assert all(told[row["id"]]["kept"] for row in view.kept(batch).collect())
        assert {row["reason"] for row in told.values()} >= {"keeper", "unique", "within distance"}


def hash_of(name):
    return sum(map(ord, name))


@pytest.fixture(scope="module")
def two_days(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("days")
    texts = documents(30, seed=7)
    first, second = dict(list(texts.items())[:15]), dict(list(texts.items())[15:])
    add_batch(spark, place, "monday", first)
    before = state(Store(spark, str(place / "store")))
    files = files_of(place / "store" / "runs")
    add_batch(spark, place, "tuesday", second)
    return place, first, second, before, files


def test_a_day_leaves_the_files_of_other_days_as_they_are(two_days):
    place, _, _, _, files = two_days
    after = files_of(place / "store")
    assert files
    assert {path: after[path] for path in files} == files


def test_a_store_is_read_as_it_was(spark, two_days):
    place, first, second, before, _ = two_days
    directory = str(place / "store")
    assert state(Store(spark, directory, "monday")) == state(Store(spark, directory, 1)) == before
    assert state(Store(spark, directory)) == state(Store(spark, directory, "tuesday")) != before
    assert Store(spark, directory, "monday").batches == ["monday"]
    check(spark, place, first | second)
    with pytest.raises(InputError, match="has no batch 'sunday'; it has versions 1 to 2 and 2 batches"):
        Store(spark, directory, "sunday")


def test_a_batch_twice_changes_nothing_and_other_content_is_refused(spark, two_days):
    place, first, _, _, _ = two_days
    before = files_of(place / "store")
    assert add_batch(spark, place, "monday", first) is None
    # The same rows in another file and order.
    assert add_batch(spark, place, "monday", dict(reversed(first.items()))) is None
    with pytest.raises(OutputError, match="has a batch 'monday' already, and of other content"):
        add_batch(spark, place, "monday", first | {"other": "text"})
    write(place / "in" / "monday.jsonl", first)
    assert files_of(place / "store") == before


@pytest.mark.parametrize(
    ("knobs", "error", "said"),
    [
        (
            {"max_distance": 3},
            SettingsError,
            "max-distance is 3 and the store's 12; .*jobs/migrate.py --store .*distance 3",
        ),
        ({"old": "by-keep-rule"}, SettingsError, "old is 'by-keep-rule' and the store's 'never-dropped'"),
        ({"ngram": 5}, SettingsError, "ngram is 5 and the store's 2"),
        ({"store_tables": "x_"}, SettingsError, "leave out --store-tables"),
        ({"max_pairs": 0}, TooManyPairs, "the new documents make, with each other and stored ones, .* pairs"),
        ({"max_removed": 0.0}, TooManyRemoved, "would be dropped"),
    ],
)
def test_what_cannot_be_added_is_refused_and_the_store_stays(spark, two_days, knobs, error, said):
    place, first, _, _, _ = two_days
    before = files_of(place / "store")
    with pytest.raises(error, match=said):
        add_batch(spark, place, "wednesday", {f"{name}w": text for name, text in first.items()}, **knobs)
    assert files_of(place / "store") == before


def test_ids_of_another_type_are_refused(spark, two_days):
    place = two_days[0]
    with pytest.raises(InputError, match=r"column 'id' of the input is bigint, and in the store .* string; cast it"):
        add_batch(spark, place, "numbers", {1: "a text"})


@pytest.mark.parametrize("stage", ["batch_fingerprints", "settled", "fingerprints", "decisions", "kept"])
def test_a_run_that_fails_leaves_the_store_as_it_was(spark, two_days, monkeypatch, stage):
    place, first, _, _, _ = two_days
    before = files_of(place / "store")
    write_table = StoreRun._write

    def fail(run, name, table, where):
        written = write_table(run, name, table, where)
        if name == stage:
            raise OSError("no space left")
        return written

    monkeypatch.setattr(StoreRun, "_write", fail)
    with pytest.raises(OSError, match="no space left"):
        add_batch(spark, place, "wednesday", {f"{name}w": text for name, text in first.items()})
    assert files_of(place / "store") == before


def test_what_a_killed_run_left_is_removed_and_seen_by_nobody(spark, two_days, tmp_path):
    import shutil

    place, first, second, _, _ = two_days
    shutil.copytree(place, tmp_path / "copy")
    left = tmp_path / "copy" / "store" / "runs" / "20200101T000000Z-abcdef" / "fingerprints"
    left.mkdir(parents=True)
    (left / "part.parquet").write_text("half")
    check(spark, tmp_path / "copy", first | second)
    add_batch(spark, tmp_path / "copy", "wednesday", {"zz": "a text of its own"})
    assert not left.parent.exists()
    check(spark, tmp_path / "copy", first | second | {"zz": "a text of its own"})


def test_a_place_that_is_no_store_is_refused(spark, two_days, tmp_path):
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "letter.txt").write_text("mine")
    with pytest.raises(OutputError, match=r"holds what no store has, such as 'letter.txt'"):
        add_batch(spark, tmp_path, "monday", {"a": "text"})
    place = two_days[0]
    with pytest.raises(OutputError, match="holds what no run of ours wrote"):
        dedup(spark, Settings(input=(str(place / "in" / "monday.jsonl"),), output=str(place / "store")), False)


def test_documents_that_come_again_are_counted_and_changed_ones_replace(spark, tmp_path):
    texts = documents(20, seed=3)
    add_batch(spark, tmp_path, "one", texts)
    names = sorted(texts)
    changed = {names[0]: "an entirely other text now", names[1]: texts[names[2]], names[3]: texts[names[3]]}
    figures = add_batch(spark, tmp_path, "two", changed | {"fresh": texts[names[0]]})
    assert {name: figures["documents"][name] for name in ("fingerprinted", "unchanged", "left", "added")} == {
        "fingerprinted": 4, "unchanged": 1, "left": 2, "added": 3,
    }  # fmt: skip
    check(spark, tmp_path, texts | changed | {"fresh": texts[names[0]]})
    view = Store(spark, str(tmp_path / "store"))
    assert names[3] not in {row["id"] for row in view.kept("two").collect()}
    # A batch of nothing new.
    figures = add_batch(spark, tmp_path, "three", {names[3]: texts[names[3]]})
    assert (figures["documents"]["unchanged"], figures["documents"]["added"], figures["kept"]) == (1, 0, 0)


def test_sizes_first_and_last_batch_and_merges_across_batches(spark, tmp_path):
    words = [f"w{at}" for at in range(60)]
    left, right = " ".join(words), " ".join([*words[:20], *(f"v{at}" for at in range(20, 60))])
    add_batch(spark, tmp_path, "a", {"5": left, "6": left}, max_distance=0)
    add_batch(spark, tmp_path, "b", {"7": left, "8": left, "4": left, "9": right}, max_distance=0)
    add_batch(spark, tmp_path, "c", {"1": left}, max_distance=0)
    view = Store(spark, str(tmp_path / "store"))
    assert rows(view.clusters()) == [(name, "1", 6, "a", "c") for name in "145678"]
    assert rows(view.rows("renames"), "cluster", "into", "change", "batch") == [
        ("4", "1", "merged", "c"),
        ("5", "4", "merged", "b"),
    ]
    assert rows(view.rows("clusters"), "cluster", "size", "first_batch", "last_batch", "keeper") == [
        ("1", 6, "a", "c", "5"), ("4", 5, "a", "b", "5"), ("5", 2, "a", "a", "5"),
    ]  # fmt: skip


def test_a_store_serves_as_a_reference(spark, two_days, tmp_path):
    place, first, _, _, _ = two_days
    text = max(first.values(), key=len)
    path = write(tmp_path / "in.jsonl", {"copy": text, "own": "words that nobody else has written"})
    settings = {"input": (path,), "reference": (str(place / "store"),), "max_distance": 12}
    dedup(spark, Settings(**settings, output=str(tmp_path / "out")), False)
    told = {row["id"]: row for row in pq.read_table(table_path(str(tmp_path / "out"), "decisions")).to_pylist()}
    assert (told["copy"]["reason"], told["own"]["reason"]) == ("in a reference", "unique")
    assert told["copy"]["reference_distance"] == 0
    figures = add_batch(spark, tmp_path, "one", {"copy": text, "near": text, "own": "words"}, reference=(str(place / "store"),))
    assert (figures["kept"], figures["dropped"]) == (1, 2)
    # What was dropped for a reference is compared with nothing later.
    figures = add_batch(spark, tmp_path, "two", {"again": text})
    assert figures["decisions"] == {"unique": 1}
    decisions = {row["id"]: row for row in Store(spark, str(tmp_path / "store")).decisions().collect()}
    assert decisions["copy"]["reference"] == str(place / "store")
    assert (decisions["copy"]["reason"], decisions["again"]["reason"]) == ("in a reference", "unique")


def test_a_manifest_that_is_not_whole_is_refused(two_days, tmp_path):
    text = (two_days[0] / "store" / "store.json").read_text()
    for broken, said in (
        (text[:-30], "not whole"),
        (text.replace('"format": 1', '"format": 9'), "of format 9"),
        (text.replace("runs/", "../runs/"), "outside of the store"),
        (text.replace('"base": true', '"base": false'), "not whole"),
    ):
        (tmp_path / "store.json").write_text(broken)
        with pytest.raises(OutputError, match=said):
            read_store(str(tmp_path))
    with pytest.raises(OutputError, match="it must be a store"):
        read_store(str(tmp_path / "none"))
