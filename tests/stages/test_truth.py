import itertools
import random

import pytest

from simhash_udf.errors import SettingsError, TooManyPairs
from simhash_udf.stages import truth as module
from simhash_udf.stages.evaluation import evaluation, pairs_among
from simhash_udf.stages.truth import truth
from tests.stages.test_verification import jaccard


def texts_of(seed):
    chance = random.Random(seed)
    base = [chance.choices("abcdefghijklmnop", k=25) for _ in range(8)]
    texts = {"empty": "", "null": None, "marks": "!?"}
    for i in range(80):
        words = list(base[i % 8])
        for _ in range(chance.randint(0, 5)):
            words[chance.randrange(25)] = chance.choice("abcdefgh")
        texts[f"d{i:02}"] = " ".join(words[: chance.choice([1, 2, 5, 24, 25])])
    return texts


def found_truth(spark, texts, similarity, stored=None):
    frame = spark.createDataFrame(list(texts.items()), "id string, text string").repartition(3)

    def store(name, table):
        table = table.localCheckpoint()
        if stored is not None:
            stored[name] = table
        return table

    found = truth(frame, store, lambda name: None, min_similarity=similarity, unit="word", ngram=2)
    return sorted(tuple(row) for row in found.collect())


@pytest.mark.parametrize("similarity", [0.05, 0.7, 1.0])
def test_every_pair_as_similar_as_asked_is_found_once(spark, similarity):
    texts = texts_of(1)
    told = [name for name in sorted(texts) if name.startswith("d")]
    every = [(a, b, jaccard(texts[a], texts[b])) for i, a in enumerate(told) for b in told[i + 1 :]]
    expected = sorted(pair for pair in every if pair[2] >= similarity)
    assert 10 < len(expected) < len(every)
    assert found_truth(spark, texts, similarity) == expected


def test_copies_are_compared_once(spark):
    # Of n-grams in another order, or more often, the set is the same.
    copies = {f"c{i}": "a b c d e f g h i" + " a b" * (i % 2) + "!" * i for i in range(30)}
    stored = {}
    found = found_truth(spark, {**copies, "near": "a b c d e f g h j"}, 0.7, stored)
    odd = {name for name in copies if int(name[1:]) % 2}
    expected = {tuple(sorted(pair)) for pair in itertools.combinations([*copies, "near"], 2)}
    similar = {pair for pair in expected if jaccard_of_marked(*pair, odd) >= 0.7}
    assert {row[:2] for row in found} == similar
    assert {row[:2]: row[2] for row in found}["c0", "c2"] == 1.0
    assert stored["candidates"].count() == 3


def jaccard_of_marked(a, b, odd):
    sets = {"even": set("abcdefgh"), "odd": set("abcdefgh") | {"ia"}, "near": set("abcdefg") | {"hj"}}
    x, y = (sets["near" if name == "near" else "odd" if name in odd else "even"] for name in (a, b))
    return len(x & y) / len(x | y)


def test_texts_that_share_too_much_are_refused_before_they_are_compared(spark, monkeypatch):
    monkeypatch.setattr(module, "MOST_MEETINGS", 100)
    texts = {f"d{i}": f"a b c d {i}" for i in range(40)}
    stored = {}
    with pytest.raises(TooManyPairs, match=r"[\d,]+ times two texts share .* more than 100 .* smaller sample"):
        found_truth(spark, texts, 0.5, stored)
    assert "candidates" not in stored


def test_all_pairs_are_similar_by_nothing_which_is_refused(spark):
    with pytest.raises(SettingsError, match="min-similarity is 0; it must be above 0"):
        found_truth(spark, {"a": "b"}, 0)


def evaluated(spark, pairs, true, **options):
    found = spark.createDataFrame(pairs, "id_a string, id_b string, distance int")
    known = spark.createDataFrame(true, "id_a string, id_b string" + (", similarity double" if true and len(true[0]) > 2 else ""))
    options = {"max_distance": 2, "recall_similarity": 0.8, "precision_similarity": 0.7, **options}
    return evaluation(found, known, lambda name, table: table.localCheckpoint(), lambda name: None, **options)


def test_pairs_are_counted_at_each_distance(spark):
    pairs = [("a", "b", 0), ("a", "c", 1), ("b", "c", 1), ("d", "e", 2), ("c", "d", 2)]
    true = [("a", "b", 1.0), ("a", "c", 0.75), ("d", "e", 0.9), ("f", "g", 0.85), ("x", "y", 0.6)]
    at = evaluated(spark, pairs, true)
    assert [(q.distance, q.found, q.right, q.wanted, q.missed) for q in at] == [(0, 1, 1, 3, 2), (1, 3, 2, 3, 2), (2, 5, 3, 3, 1)]
    assert [q.precision for q in at] == [1.0, 2 / 3, 0.6]
    assert [q.recall for q in at] == pytest.approx([1 / 3, 1 / 3, 2 / 3])
    assert at[2].f1 == pytest.approx(2 * 0.6 * (2 / 3) / (0.6 + 2 / 3))
    # True clusters are abc, de and fg. At 2 abcde is one cluster, of which two should have been kept; fg is not dropped.
    assert [(q.dropped, q.dropped_wrongly, q.not_dropped) for q in at] == [(1, 0, 3), (2, 0, 2), (4, 1, 1)]


def test_a_truth_without_similarity_wants_all_its_pairs(spark):
    (quality,) = evaluated(spark, [("a", "b", 0)], [("a", "b"), ("b", "c")], max_distance=0)
    assert (quality.right, quality.wanted, quality.recall) == (1, 2, 0.5)


def test_nothing_found_of_nothing_true_is_all_right(spark):
    (quality,) = evaluated(spark, [], [("a", "b", 0.1)], max_distance=0)
    assert (quality.precision, quality.recall, quality.dropped) == (1.0, 1.0, 0)


def test_only_pairs_among_documents_that_were_compared_count(spark):
    pairs = spark.createDataFrame(
        [("a", "b", 0), ("a", "x", 1), ("x", "y", 2), ("b", "c", 3)], "id_a string, id_b string, distance int"
    )
    documents = spark.createDataFrame([(name,) for name in "abc"], "id string")
    found = pairs_among(pairs, documents)
    assert found.columns == pairs.columns
    assert sorted(tuple(row) for row in found.collect()) == [("a", "b", 0), ("b", "c", 3)]
