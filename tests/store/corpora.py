"""Small corpora with many near-duplicates, and what a store must say of them, told in pure Python."""

import itertools
import json
import random
from pathlib import Path

from simhash_udf import fingerprint_text
from simhash_udf.settings import Settings
from simhash_udf.store.add import add
from simhash_udf.store.views import Store

DISTANCE = 12


def documents(number, seed):
    """Texts by id: families of edited texts, copies, texts alone and without words, in which chains are many."""
    chance = random.Random(seed)
    texts = {}
    for at in range(number):
        kind = chance.random()
        if texts and kind < 0.6:
            words = chance.choice(list(texts.values())).split()
            if kind > 0.1 and words:
                words[chance.randrange(len(words))] = f"new{at}"
            text = " ".join(words)
        else:
            text = "" if kind > 0.97 else " ".join(f"w{chance.randrange(10_000)}" for _ in range(40))
        texts[f"{chance.randrange(10**6):06}"] = text
    return texts


def near(texts, distance=DISTANCE):
    """All pairs of documents within the distance: {(id, id): distance}."""
    told = {name: fingerprint_text(text) for name, text in texts.items()}
    told = {name: value for name, value in told.items() if value is not None}
    found = {}
    for a, b in itertools.combinations(sorted(told), 2):
        differing = ((told[a] ^ told[b]) & (1 << 64) - 1).bit_count()
        if differing <= distance:
            found[a, b] = differing
    return found


def partition(pairs):
    """The connected components of pairs, as a set of sets."""
    component = {}
    for a, b in pairs:
        joined = component.get(a, {a}) | component.get(b, {b})
        component.update(dict.fromkeys(joined, joined))
    return {frozenset(each) for each in component.values()}


def write(path: Path, texts, **more):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps({"id": name, "text": text, **more}) + "\n" for name, text in texts.items()))
    return str(path)


def add_batch(spark, place: Path, name, texts, **knobs):
    """Add a batch to the store in a directory of a test; the figures of its report."""
    path = write(place / "in" / f"{name}.jsonl", texts)
    given = {"max_distance": DISTANCE, "max_removed": 1.0, **knobs}
    return add(spark, Settings(input=(path,), store=str(place / "store"), batch=name, **given), lambda _: None)


def rows(table, *names):
    return [] if table is None else sorted(tuple(row) for row in (table.select(*names) if names else table).collect())


def state(view):
    """All that a store says of its documents, as comparable rows."""
    return {
        "pairs": rows(view.pairs(), "id_a", "id_b", "distance"),
        "clusters": rows(view.clusters()),
        "decisions": sorted(map(repr, view.decisions().collect())),
        "fingerprints": sorted(map(repr, view.fingerprints().drop("step").collect())),
    }


def check(spark, place, texts):
    """Hold a store against the texts that it must have; what it says of clusters, by document."""
    view = Store(spark, str(place / "store"))
    expected = near(texts)
    assert {(a, b): distance for a, b, distance in rows(view.pairs(), "id_a", "id_b", "distance")} == expected
    assert len(rows(view.pairs())) == len(expected)
    clusters = {row["id"]: row for row in view.clusters().collect()}
    by_name = {}
    for name, row in clusters.items():
        by_name.setdefault(row["cluster"], set()).add(name)
    assert {frozenset(each) for each in by_name.values()} == partition(expected)
    assert all(row["size"] == len(by_name[row["cluster"]]) for row in clusters.values())
    told = {row["id"]: row for row in view.decisions().collect()}
    assert told.keys() == texts.keys()
    for name, row in told.items():
        assert row["cluster"] == (clusters[name]["cluster"] if name in clusters else None)
        assert row["kept"] == (row["keeper"] in (name, None))
        if name not in clusters:
            assert (row["kept"], row["reason"]) == (True, "unique" if texts[name] else "no features")
        elif not row["kept"]:
            assert told[row["keeper"]]["kept"]
            assert told[row["keeper"]]["cluster"] == row["cluster"]
            pair = tuple(sorted((name, row["keeper"])))
            assert row["reason"] == (
                "chained" if pair not in expected else "within distance" if expected[pair] else "same fingerprint"
            )
    for members in by_name.values():
        assert sum(told[name]["reason"] == "keeper" for name in members) == 1
    assert {row["id"] for row in view.fingerprints().collect()} == texts.keys()
    return told
