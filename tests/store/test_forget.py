"""Documents that leave a store, and a store written anew: what is left says what it would had they never come."""

import shutil

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simhash_udf.errors import InputError, OutputError
from simhash_udf.settings import Settings
from simhash_udf.store.compact import compact
from simhash_udf.store.forget import forget
from simhash_udf.store.manifest import read_store
from simhash_udf.store.views import Store
from tests.store.corpora import add_batch, check, documents, near, partition, rows, state


@pytest.fixture(scope="module")
def filled(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("filled")
    texts = documents(40, seed=11)
    names = list(texts)
    add_batch(spark, place, "one", {name: texts[name] for name in names[:20]})
    add_batch(spark, place, "two", {name: texts[name] for name in names[20:]})
    return place, texts


@pytest.fixture
def store(filled, tmp_path):
    shutil.copytree(filled[0], tmp_path, dirs_exist_ok=True)
    return tmp_path, filled[1]


def forget_ids(spark, place, *ids, **knobs):
    (place / "ids.txt").write_text("".join(f"{name}\n" for name in ids))
    return forget(spark, Settings(store=str(place / "store"), ids=(str(place / "ids.txt"),), **knobs), lambda _: None)


def test_documents_leave_every_table_and_come_back(spark, store):
    place, texts = store
    told = check(spark, place, texts)
    largest = max(partition(near(texts)), key=len)
    name = told[next(iter(largest))]["cluster"]
    keeper = next(id for id in largest if told[id]["reason"] == "keeper")
    leaving = {name, keeper, sorted(largest)[1], next(id for id in texts if told[id]["reason"] == "unique")}
    figures = forget_ids(spark, place, *leaving, "nobody")
    assert (figures["documents"]["left"], figures["documents"]["not_found"], figures["not_found"]) == (
        len(leaving),
        1,
        ["nobody"],
    )
    rest = {id: text for id, text in texts.items() if id not in leaving}
    after = check(spark, place, rest)
    # What takes the place of the keeper is listed.
    now_kept = {id for id in rest if after[id]["kept"] and not told[id]["kept"]}
    assert set(figures["now_kept"]) == now_kept
    listed = Store(spark, str(place / "store")).rows("decisions").where("step = 3").collect()
    assert {row["id"] for row in listed} == now_kept
    # No file has an id that left, but as the name of a cluster, nor the text of one.
    for file in (place / "store" / "runs").rglob("*.parquet"):
        for column in set(pq.read_schema(file).names) & {"id", "id_a", "id_b", "keeper"}:
            assert not leaving & set(pq.read_table(file, columns=[column])[column].to_pylist()), file
    with pytest.raises(InputError, match="has expired"):
        Store(spark, str(place / "store"), "two")
    # The cluster that was named by one that left keeps its name, until that one comes back as something else.
    part = next((id for id in sorted(largest - leaving) if after[id]["cluster"] == name), None)
    comes = {name: "a text that is like no other here", keeper: texts[keeper]}
    add_batch(spark, place, "three", comes)
    again = check(spark, place, rest | comes)
    assert again[name]["cluster"] is None
    assert part is None or again[part]["cluster"] != name
    add_batch(spark, place, "four", {name: texts[name]})
    check(spark, place, rest | comes | {name: texts[name]})


def test_a_cluster_that_loses_its_bridge_falls_apart(spark, tmp_path):
    words = [f"w{at}" for at in range(40)]
    texts = {"b": " ".join(words), "z": " ".join(words)}
    # A chain, each text of it near the next.
    for at in range(1, 12):
        words[at * 3] = f"v{at}"
        texts[f"c{at:02}"] = " ".join(words)
    add_batch(spark, tmp_path, "one", texts)
    told = check(spark, tmp_path, texts)
    assert len({row["cluster"] for row in told.values()}) == 1
    leaving = {"b", *(f"c{at:02}" for at in range(3, 8))}
    forget_ids(spark, tmp_path, *leaving)
    rest = {id: text for id, text in texts.items() if id not in leaving}
    after = check(spark, tmp_path, rest)
    assert {id: row["cluster"] for id, row in after.items()} == {
        **dict.fromkeys(("c01", "c02", "z"), "b"), **dict.fromkeys(("c08", "c09", "c10", "c11"), "c08"),
    }  # fmt: skip
    renames = rows(Store(spark, str(tmp_path / "store")).rows("renames"), "cluster", "change")
    assert set(renames) == {("b", "split off")}


def test_ids_of_a_file_that_cannot_serve_are_refused(spark, store):
    place, texts = store
    pq.write_table(pa.table({"key": sorted(texts)[:2]}), place / "ids.parquet")
    settings = {"store": str(place / "store"), "ids": (str(place / "ids.parquet"),)}
    with pytest.raises(InputError, match=r"has no column .id.*--id-column"):
        forget(spark, Settings(**settings), lambda _: None)
    with pytest.raises(InputError, match=r"none\.txt"):
        forget(spark, Settings(store=settings["store"], ids=(str(place / "none.txt"),)), lambda _: None)
    with pytest.raises(OutputError, match="is no store"):
        forget(spark, Settings(store=str(place / "elsewhere"), ids=settings["ids"]), lambda _: None)
    assert not (place / "elsewhere").exists()
    figures = forget(spark, Settings(**settings, id_column="key"), lambda _: None)
    assert figures["documents"]["left"] == 2


def test_a_store_written_anew_says_the_same_and_readers_are_not_disturbed(spark, store):
    place, texts = store
    directory = str(place / "store")
    reader = Store(spark, directory)
    before, first = state(reader), state(Store(spark, directory, "one"))
    figures = compact(spark, Settings(store=directory), lambda _: None)
    assert (figures["documents"], figures["runs_before"], figures["runs_after"]) == (40, 2, 1)
    assert state(reader) == before
    view = Store(spark, directory)
    assert len(view.manifest.runs_of(view.version)) == 1
    assert state(view) == before
    assert state(Store(spark, directory, "one")) == first
    more = documents(10, seed=12)
    more |= {f"{name}x": text for name, text in list(texts.items())[:5]}
    add_batch(spark, place, "three", more)
    check(spark, place, texts | more)
    compact(spark, Settings(store=directory, keep_versions=1), lambda _: None)
    check(spark, place, texts | more)
    with pytest.raises(InputError, match="has expired"):
        Store(spark, directory, "one")
    manifest = read_store(directory)
    kept = {path.name for path in (place / "store" / "runs").glob("*/fingerprints")}
    assert len(list((place / "store" / "runs").glob("*/fingerprints"))) == 1, kept
    # What was kept of each batch stays.
    assert sum(Store(spark, directory).kept(batch).count() for batch in ("one", "two", "three")) > 0
    assert [version.kind for version in manifest.versions] == ["add", "add", "compaction", "add", "compaction"]


def test_the_state_can_be_in_tables_of_the_catalog(spark, tmp_path):
    texts = documents(20, seed=5)
    names = list(texts)
    spark.sql("CREATE DATABASE IF NOT EXISTS lake")
    add_batch(spark, tmp_path, "one", {name: texts[name] for name in names[:10]}, store_tables="lake.t_")
    add_batch(spark, tmp_path, "two", {name: texts[name] for name in names[10:]})
    check(spark, tmp_path, texts)
    assert not list((tmp_path / "store" / "runs").glob("*/fingerprints"))
    assert spark.table("lake.t_fingerprints").count() >= 20
    forget_ids(spark, tmp_path, names[0], names[3])
    rest = {name: text for name, text in texts.items() if name not in (names[0], names[3])}
    check(spark, tmp_path, rest)
    assert spark.table("lake.t_fingerprints").select("run").distinct().count() == 1
    spark.sql("DROP DATABASE lake CASCADE")
