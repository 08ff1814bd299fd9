import random
import re

import pytest

from simhash_udf.core.fold import signed
from simhash_udf.core.sketch import SKETCH_BITS, SKETCH_WORDS
from simhash_udf.stages.verification import with_estimated_similarity, with_similarity

EDGES = "node_a bigint, node_b bigint, distance int"


def grams(text, n=2):
    words = text.lower().split()
    return {tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))}


def jaccard(a, b):
    return len(grams(a) & grams(b)) / len(grams(a) | grams(b))


def containment(a, b):
    return len(grams(a) & grams(b)) / min(len(grams(a)), len(grams(b)))


@pytest.fixture(scope="module")
def corpus():
    chance = random.Random(4)
    base = [chance.choices("abcdefgh", k=30) for _ in range(6)]
    texts = {}
    for node in range(60):
        words = list(base[node % 6])
        for _ in range(chance.randint(0, 8)):
            words[chance.randrange(len(words))] = chance.choice("abcdefgh")
        texts[node * 7 - 100] = " ".join(words[: chance.randint(5, 30)])
    nodes = sorted(texts)
    # One component that is large, and small ones.
    edges = [(a, b, 1) for i, a in enumerate(nodes[:40]) for b in nodes[i + 1 : 40]]
    edges += [(nodes[i], nodes[i + 1], 2) for i in range(40, 60, 2)]
    return texts, edges


def measured(spark, texts, edges, **options):
    stored = []

    def store(name, table):
        stored.append(name)
        return table.localCheckpoint()

    edges = spark.createDataFrame(edges, EDGES).repartition(3)
    table = spark.createDataFrame(list(texts.items()), "node bigint, text string").repartition(2)
    options = {"measure": "jaccard", "unit": "word", "ngram": 2, **options}
    found = with_similarity(edges, table, store, lambda name: None, **options)
    assert found.dtypes == [("node_a", "bigint"), ("node_b", "bigint"), ("distance", "int"), ("similarity", "double")]
    return sorted(tuple(row) for row in found.collect())


@pytest.mark.parametrize("limits", [{}, {"task_bytes": 1000}, {"task_edges": 50}, {"task_bytes": 600, "task_edges": 20}])
@pytest.mark.parametrize(("measure", "similar"), [("jaccard", jaccard), ("containment", containment)])
def test_every_edge_has_its_exact_similarity_however_components_are_cut(spark, corpus, limits, measure, similar):
    texts, edges = corpus
    expected = sorted((a, b, d, similar(texts[a], texts[b])) for a, b, d in edges)
    assert len({row[3] for row in expected}) > 20
    assert measured(spark, texts, edges, measure=measure, **limits) == expected


def test_a_text_that_is_gone_is_an_error(spark, corpus):
    texts, edges = corpus
    fewer = {node: text for node, text in texts.items() if node != edges[0][0]}
    with pytest.raises(Exception, match=r"IncompleteResult: the texts of \d+ documents of pairs were not found .* run again"):
        measured(spark, fewer, edges)


def test_no_edges_have_no_similarity(spark):
    assert measured(spark, {1: "a b"}, []) == []


def test_texts_without_tokens_are_similar_to_none(spark):
    assert measured(spark, {1: "a b", 2: None, 3: "!"}, [(1, 2, 0), (2, 3, 0)]) == [(1, 2, 0, 0.0), (2, 3, 0, 0.0)]


def test_the_similarity_of_sketches_is_that_of_their_differing_bits(spark):
    chance = random.Random(2)
    sketches, edges = {0: [0] * SKETCH_WORDS}, []
    for node, differing in enumerate([0, 1, 26, 64, 127, 128, 129, 200, SKETCH_BITS], start=1):
        bits = sum(1 << bit for bit in chance.sample(range(SKETCH_BITS), differing))
        sketches[node] = [signed(bits >> 64 * word & (1 << 64) - 1) for word in range(SKETCH_WORDS)]
        edges.append((0, node, 3, max(0.0, 1 - 2 * differing / SKETCH_BITS)))
    nodes = spark.createDataFrame(list(sketches.items()), "node bigint, sketch array<bigint>")
    found = with_estimated_similarity(spark.createDataFrame([edge[:3] for edge in edges], EDGES), nodes)
    assert found.dtypes == [("node_a", "bigint"), ("node_b", "bigint"), ("distance", "int"), ("similarity", "double")]
    assert sorted(tuple(row) for row in found.collect()) == edges


def test_a_long_chain_takes_as_many_tasks_as_it_has_bytes(spark, capsys):
    # A component of so many blocks that there is a cell for each edge, but far fewer edges than two blocks might have.
    texts = {node: " ".join(f"w{node + i}" for i in range(40)) for node in range(200)}
    edges = spark.createDataFrame([(node, node + 1, 1) for node in range(199)], EDGES)
    table = spark.createDataFrame(list(texts.items()), "node bigint, text string")
    found = with_similarity(
        edges, table, lambda name, frame: frame.localCheckpoint(), lambda name: None, measure="jaccard", unit="word", ngram=1,
        task_bytes=4000,
    )  # fmt: skip
    found.explain()
    tasks = int(re.search(r"hashpartitioning\(component[^)]*, (\d+)\), REPARTITION_BY_NUM", capsys.readouterr().out)[1])
    assert 16 <= tasks <= 40
    assert {row["similarity"] for row in found.collect()} == {39 / 41}
