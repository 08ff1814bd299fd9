"""A store made anew by other settings, and the jobs for stores as a user starts them."""

import shutil

import pytest

from simhash_udf.errors import InputError
from simhash_udf.settings import Settings
from simhash_udf.store.migrate import migrate
from simhash_udf.store.views import Store
from tests.store.corpora import DISTANCE, add_batch, check, documents, rows, write
from tests.test_jobs import command


@pytest.fixture(scope="module")
def narrow(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("narrow")
    texts = documents(24, seed=21) | {"none": ""}
    names = list(texts)
    for batch, part in (("one", names[:12]), ("two", names[12:])):
        add_batch(spark, place, batch, {name: texts[name] for name in part}, max_distance=1)
    return place, texts


def test_a_store_is_made_anew_by_other_settings(spark, narrow, tmp_path):
    shutil.copytree(narrow[0], tmp_path, dirs_exist_ok=True)
    texts = narrow[1]
    directory = str(tmp_path / "store")
    before = {row["id"]: row for row in Store(spark, directory).decisions().collect()}
    path = write(tmp_path / "texts.jsonl", texts | {"extra": "no document of the store"})
    figures = migrate(spark, Settings(input=(path,), store=directory, max_distance=DISTANCE), lambda _: None)
    assert figures == {"documents": 25, "texts_left_out": 1}
    told = check(spark, tmp_path, texts)
    assert all(told[name]["kept"] for name, row in before.items() if row["kept"])
    assert {row["reason"] for row in told.values()} >= {"kept before"}
    assert {row["batch"] for row in Store(spark, directory).fingerprints().collect()} == {"one", "two"}
    with pytest.raises(InputError, match="has expired"):
        Store(spark, directory, "two")
    add_batch(spark, tmp_path, "three", {"again": max(texts.values(), key=len)})
    check(spark, tmp_path, texts | {"again": max(texts.values(), key=len)})


def test_texts_must_be_there_for_all_documents(spark, narrow, tmp_path):
    place, texts = narrow
    path = write(tmp_path / "texts.jsonl", dict(list(texts.items())[1:]))
    with pytest.raises(InputError, match=r"1 documents of the store .* have no text in the input, such as"):
        migrate(spark, Settings(input=(path,), store=str(place / "store"), max_distance=3), lambda _: None)
    assert len(rows(Store(spark, str(place / "store")).fingerprints())) == 25


def test_the_jobs_of_a_store_as_a_user_starts_them(spark, tmp_path):
    texts = {"a": "one two three four", "b": "one two three four", "c": "five six seven"}
    path, store = write(tmp_path / "in.jsonl", texts), tmp_path / "store"
    added = command("dedup", "--input", path, "--store", store, "--batch", "monday")
    assert (added.returncode, "2 kept, 1 dropped" in added.stderr) == (0, True), added.stderr
    again = command("dedup", "--input", path, "--store", store, "--batch", "monday")
    assert (again.returncode, "nothing was done" in again.stderr) == (0, True), again.stderr
    other = command("dedup", "--input", path, "--store", store, "--batch", "tuesday", "--max-distance", "3")
    assert (other.returncode, "jobs/migrate.py --store" in other.stderr) == (2, True), other.stderr
    (tmp_path / "ids.txt").write_text("a\nz\n")
    left = command("forget", "--store", store, "--ids", tmp_path / "ids.txt")
    assert (left.returncode, "not found: z" in left.stderr) == (0, True), left.stderr
    nothing = command("compact", "--store", tmp_path / "none")
    assert (nothing.returncode, "is no store" in nothing.stderr) == (4, True), nothing.stderr
    assert {row["id"] for row in Store(spark, str(store)).fingerprints().collect()} == {"b", "c"}


@pytest.mark.parametrize(
    "arguments",
    [
        ["--store", "s"],
        ["--batch", "b"],
        ["--output", "o", "--store-tables", "t"],
        [],
    ],
)
def test_a_store_and_a_batch_go_together(arguments):
    from simhash_udf.command_line import parse
    from simhash_udf.settings import DEDUP_KNOBS

    with pytest.raises(SystemExit):
        parse("", DEDUP_KNOBS, ["--input", "i", *arguments])
    settings, _ = parse("", DEDUP_KNOBS, ["--input", "i", "--store", "s", "--batch", "b"])
    assert settings.destination == "s"


@pytest.mark.parametrize(
    "knobs",
    [{"if_exists": "replace"}, {"max_radius": 5}, {"also_at": "3"}, {"verify": "jaccard"}, {"output": "o"}],
    ids=lambda knobs: next(iter(knobs)),
)
def test_what_cannot_go_with_a_store_is_refused(knobs):
    from simhash_udf.errors import SettingsError

    with pytest.raises(SettingsError, match="store"):
        Settings(store="s", batch="b", **knobs)
