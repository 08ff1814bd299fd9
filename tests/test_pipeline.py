import itertools
import random
import uuid

import pytest
from pyspark.sql import functions as F

from simhash_udf import fingerprint_text, near_duplicates
from simhash_udf.errors import InputError, TooManyPairs, TooManyRemoved
from simhash_udf.pipeline import deduplicate, plan_of_corpus
from simhash_udf.report import report
from simhash_udf.settings import Settings
from simhash_udf.stages.guards import check_removed
from tests.corpus import BODY, brute_force_pairs, components, corpus, edited, random_text
from tests.oracle import sketch

TABLES = ("fingerprints", "pairs", "clusters", "decisions")


@pytest.fixture(scope="module")
def documents(spark):
    return spark.createDataFrame(corpus(), "id string, text string")


def pairs_of(found):
    return {(row["id_a"], row["id_b"]): row["distance"] for row in found.pairs.collect()}


def everything(found):
    return {name: sorted(tuple(map(str, row)) for row in getattr(found, name).collect()) for name in (*TABLES, "kept")}


def test_a_corpus_of_seven_documents_ends_as_written_here(spark):
    other = random_text(9)
    rows = [
        ("1", BODY),
        ("2", BODY.upper() + "!"),
        ("3", other),
        ("4", None),
        ("5", ""),
        ("6", other + " more"),
        ("7", random_text(8)),
    ]
    found = near_duplicates(spark.createDataFrame(rows, "id string, text string"), max_distance=8)
    near = (fingerprint_text(other) ^ fingerprint_text(other + " more")).bit_count()
    assert 0 < near <= 8
    assert pairs_of(found) == {("1", "2"): 0, ("3", "6"): near}
    assert {row["id"]: tuple(row)[1:] for row in found.decisions.collect()} == {
        "1": (False, "1", "2", 0, "same fingerprint"),
        "2": (True, "1", "2", 0, "keeper"),
        "3": (False, "3", "6", near, "within distance"),
        "4": (True, None, None, None, "no features"),
        "5": (True, None, None, None, "no features"),
        "6": (True, "3", "6", 0, "keeper"),
        "7": (True, None, None, None, "unique"),
    }
    assert sorted(row["id"] for row in found.kept.collect()) == ["2", "4", "5", "6", "7"]


@pytest.mark.parametrize("max_distance", [0, 3, 6, 10])
def test_pairs_and_clusters_equal_brute_force(documents, max_distance):
    found = near_duplicates(documents, max_distance=max_distance)
    expected = brute_force_pairs({i: fingerprint_text(text) for i, text in corpus()}, max_distance)
    assert pairs_of(found) == expected
    assert {row["id"]: row["cluster"] for row in found.clusters.collect()} == components(expected)


def test_the_test_corpus_has_pairs_at_many_distances():
    distances = brute_force_pairs({i: fingerprint_text(text) for i, text in corpus()}, 12).values()
    assert len(set(distances)) >= 8


@pytest.mark.parametrize(
    ("partitions", "properties"),
    [
        (1, {"spark.sql.adaptive.enabled": "false"}),
        (2, {"spark.sql.ansi.enabled": "false"}),
        (2, {"spark.sql.codegen.wholeStage": "true", "spark.sql.codegen.factoryMode": "FALLBACK"}),
        (7, {"spark.sql.execution.arrow.maxRecordsPerBatch": "2", "spark.sql.shuffle.partitions": "7"}),
    ],
)
def test_partitions_batches_and_spark_settings_change_nothing(spark, documents, spark_conf, partitions, properties):
    expected = everything(near_duplicates(documents))
    spark_conf(properties)
    assert everything(near_duplicates(documents.repartition(partitions, "text"))) == expected


def test_spanning_pairs_give_the_same_clusters_and_decisions(documents):
    every, few = near_duplicates(documents, max_distance=10), near_duplicates(documents, max_distance=10, pairs="spanning")
    every_pair, few_pairs = pairs_of(every), pairs_of(few)
    assert few_pairs.items() <= every_pair.items()
    assert everything(few)["decisions"] == everything(every)["decisions"]


def test_more_pairs_than_allowed_stop_the_run_with_their_number(documents):
    number = len(brute_force_pairs({i: fingerprint_text(text) for i, text in corpus()}, 6))
    with pytest.raises(TooManyPairs, match=rf"make {number} pairs .*more than max-pairs, 3; use --pairs spanning"):
        near_duplicates(documents, max_pairs=3)
    assert len(pairs_of(near_duplicates(documents, max_pairs=number))) == number


def test_too_many_near_pairs_stop_the_run_before_any_is_written(documents, monkeypatch):
    monkeypatch.setattr("simhash_udf.stages.guards.UNGUARDED_PAIRS", 0)
    stored = []

    def store(name, table):
        stored.append(name)
        return table.localCheckpoint()

    with pytest.raises(TooManyPairs, match=r"make at least \d+ pairs .*more than max-pairs, 3; use --pairs spanning"):
        deduplicate(documents, Settings(max_pairs=3), store)
    assert stored == ["fingerprints", "nodes"]


@pytest.mark.parametrize("more", [{"verify": "sketch"}, {"verify": "jaccard", "within": "half"}, {"within": "half"}])
def test_too_many_pairs_of_one_fingerprint_stop_the_run_before_any_is_written(spark, documents, more):
    # Words in another order: one fingerprint, and many texts.
    rows = [(f"e{i}", " ".join(random.Random(i).sample(BODY.split()[:12], 12)), i % 2) for i in range(60)]
    frame = spark.createDataFrame(rows, "id string, text string, half int")
    stored = []

    def store(name, table):
        stored.append(name)
        return table.localCheckpoint()

    number = 2 * (30 * 29 // 2) if "within" in more else 60 * 59 // 2
    pairs = [frame, Settings(ngram=1, max_pairs=number - 1, **more), store]
    with pytest.raises(
        TooManyPairs, match=rf"the documents make {number:,} pairs .*{number:,} at distance 0.*without {flags_of(more)}"
    ):
        deduplicate(*pairs)
    assert not {"edges", "members", "pairs"} & set(stored)
    assert near_duplicates(frame, ngram=1, max_pairs=number, max_removed=1.0, **more).pairs.count() <= number


def flags_of(more):
    return ", ".join(f"--{name}" for name in ("within", "verify") if name in more)


@pytest.mark.parametrize("within", ["", "half"])
def test_pairs_are_counted_before_texts_are_checked_as_they_are_found_without_a_check(spark, documents, within):
    frame = documents.withColumn("half", F.col("id") < "d060")
    number = near_duplicates(frame, max_distance=10, within=within).pairs.count()
    near_duplicates(frame, max_distance=10, within=within, verify="sketch", min_features=30, max_pairs=number)
    with pytest.raises(TooManyPairs, match=rf"make {number:,} pairs"):
        near_duplicates(frame, max_distance=10, within=within, verify="sketch", max_pairs=number - 1)


def test_a_plan_before_a_run_is_that_of_the_run(spark, documents):
    # Where texts are checked, all pairs are searched.
    for more in ({"pairs": "spanning"}, {"pairs": "spanning", "verify": "sketch"}, {"min_features": 60}):
        planned, _ = plan_of_corpus(documents, Settings(max_distance=8, **more))
        assert planned == near_duplicates(documents, max_distance=8, **more).plan


def test_a_plan_from_a_sample_of_documents_expects_what_there_is(documents, monkeypatch):
    whole, _ = plan_of_corpus(documents, Settings())
    monkeypatch.setattr("simhash_udf.pipeline.SAMPLED_DOCUMENTS", 60)
    planned, made = plan_of_corpus(documents, Settings())
    assert 40 < made.count() < 80
    assert whole.rows <= planned.rows < 1.3 * whole.rows


def test_the_plan_is_shown_before_the_search(documents):
    seen = []
    found = near_duplicates(documents)

    def on_plan(plan, fingerprints):
        seen.append((plan, fingerprints.count()))

    deduplicate(documents, Settings(), lambda name, table: table.localCheckpoint(), on_plan)
    assert seen == [(found.plan, documents.count())]


def test_a_thousand_copies_in_any_script_leave_one_document(spark):
    rows = [(i, "我们明天去看电影。") for i in range(1_000)]
    found = near_duplicates(spark.createDataFrame(rows, "id int, text string"), pairs="spanning", max_removed=1.0)
    assert [row["id"] for row in found.kept.collect()] == [0]
    assert found.pairs.count() == 999


def test_boilerplate_shared_by_short_bodies_needs_no_pair(spark):
    template = random_text("template", 60)
    rows = [(i, f"{random_text(f'body {i}', 100)} {template}") for i in range(40)]
    assert pairs_of(near_duplicates(spark.createDataFrame(rows, "id int, text string"))) == {}


def test_a_larger_distance_finds_heavier_edits(spark):
    rows = [("a", BODY), *((f"b{n}", edited(BODY, n)) for n in (1, 2, 4, 8))]
    frame = spark.createDataFrame(rows, "id string, text string")
    numbers = [len(pairs_of(near_duplicates(frame, max_distance=k))) for k in (0, 6, 12)]
    assert numbers[0] == 0 < numbers[1] < numbers[2]


def test_a_corpus_without_duplicates_is_kept_whole(spark):
    rows = [(i, random_text(i)) for i in range(20)]
    found = near_duplicates(spark.createDataFrame(rows, "id int, text string"))
    assert (found.pairs.count(), found.clusters.count(), found.kept.count()) == (0, 0, 20)


def test_a_corpus_without_any_feature_is_kept_whole(spark):
    found = near_duplicates(spark.createDataFrame([(1, None), (2, "")], "id int, text string"))
    assert {row["reason"] for row in found.decisions.collect()} == {"no features"}


def test_the_keep_rule_may_order_by_columns_of_the_corpus(spark):
    rows = [("a", BODY, 0.1, "b"), ("b", BODY, 0.7, "a"), ("c", BODY, 0.7, "b")]
    frame = spark.createDataFrame(rows, "id string, text string, `page.rank` double, site string")
    found = near_duplicates(frame, keep="page.rank desc, site desc")
    assert [row["id"] for row in found.kept.collect()] == ["c"]
    assert found.kept.columns == frame.columns
    assert report(found, 0, 1)["dropped"] == 2


@pytest.mark.parametrize(
    ("keep", "said"),
    [
        (
            "quality desc",
            "'quality' is not in the input, which has 'id', 'text', 'tags', and --keep may name length, features, id",
        ),
        ("tags", "'tags' is array<string>, which --keep cannot order; it must be numbers"),
    ],
)
def test_a_keep_rule_that_cannot_be_followed_is_refused_at_once(spark, keep, said):
    frame = spark.createDataFrame([("a", "b", ["c"])], "id string, text string, tags array<string>")
    with pytest.raises(InputError, match=said):
        near_duplicates(frame, keep=keep)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([], "no documents"),
        (
            [("a", "x"), ("b", "y"), ("a", "z"), ("a", "z")],
            "'id' must name each document, but 1 of its values.*'a' \\(3 times\\)",
        ),
        ([(None, "x"), ("b", "y")], "1 records of the input are no documents: the id is null"),
    ],
)
def test_a_corpus_that_cannot_be_used_is_refused(spark, rows, said):
    with pytest.raises(InputError, match=said):
        near_duplicates(spark.createDataFrame(rows, "id string, text string"))


def test_features_of_ones_own_take_the_place_of_text(spark):
    rows = [(1, [("a", 1.0), ("b", 2.0)]), (2, [("b", 4.0), ("a", 2.0)]), (3, [("z", 1.0)]), (4, [])]
    frame = spark.createDataFrame(rows, "key int, words array<struct<feature:string,weight:double>>")
    assert pairs_of(near_duplicates(frame, id="key", features="words", max_distance=0)) == {(1, 2): 0}


def test_ids_that_are_others_each_time_they_are_made_are_made_once(spark):
    new_id = F.udf(lambda: str(uuid.uuid4())).asNondeterministic()
    found = near_duplicates(spark.createDataFrame([(BODY,), (BODY,), ("other words",)], "text string").withColumn("id", new_id()))
    kept = {row["id"] for row in found.kept.collect()}
    assert len(kept) == 2
    assert kept == {row["id"] for row in found.decisions.where("kept").collect()}
    assert kept == {row["id"] for row in found.kept.collect()}


def test_columns_of_the_corpus_named_like_ours_survive(spark):
    schema = "id string, text string, fingerprint string, cluster int, distance int, keeper string, _metadata int"
    frame = spark.createDataFrame([("a", BODY, "f", 1, 2, "k", 3), ("b", BODY, "f", 1, 2, "k", 3)], schema)
    kept = near_duplicates(frame).kept
    assert kept.columns == frame.columns
    assert [tuple(row) for row in kept.collect()] == [("a", BODY, "f", 1, 2, "k", 3)]


def test_text_is_gone_below_the_fingerprints_and_no_join_is_a_product(documents, capsys):
    plans = {}

    def store(name, table):
        table.explain()
        plans[name] = capsys.readouterr().out
        return table.localCheckpoint()

    found = deduplicate(documents, Settings(), store)
    report(found, 0, found.kept.count())
    assert {"fingerprints", "nodes", "fingerprint_pairs", "pairs", "clusters", "decisions", "kept"} == plans.keys()
    assert not any("NestedLoop" in plan or "Cartesian" in plan for plan in plans.values())
    assert not any("text#" in plan for name, plan in plans.items() if name not in ("fingerprints", "kept"))


def rows_of(frame, *columns):
    return {row[0]: tuple(row)[1:] for row in frame.select(*columns).collect()}


def test_only_documents_of_one_group_are_compared(spark):
    rows = [
        ("a", BODY, "x"),
        ("b", BODY, "y"),
        ("c", BODY + " more", "x"),
        ("d", BODY, None),
        ("e", BODY, None),
        ("f", BODY, "y"),
    ]
    rows += [("g", BODY + " more", "z")]
    frame = spark.createDataFrame(rows, "id string, text string, `the site` string")
    for pairs in ("all", "spanning"):
        found = near_duplicates(frame, within="the site", max_distance=8, pairs=pairs)
        assert set(pairs_of(found)) == {("a", "c"), ("d", "e"), ("b", "f")}
        assert sorted(row["id"] for row in found.kept.collect()) == ["b", "c", "d", "g"]
        assert report(found, 0, 4)["dropped"] == 3
    assert len(pairs_of(near_duplicates(frame, max_distance=8))) == 21


@pytest.mark.parametrize("verify", ["none", "sketch", "jaccard"])
def test_documents_of_few_features_are_duplicates_of_the_same_text_alone(spark, verify):
    rows = [("a", "Yes no"), ("b", "yes NO!"), ("c", "yes"), ("d", "Yes."), ("e", BODY), ("f", BODY + " x"), ("g", "yes yes yes")]
    frame = spark.createDataFrame(rows, "id string, text string")
    found = near_duplicates(frame, unit="word", ngram=1, min_features=3, max_distance=12, verify=verify)
    assert set(pairs_of(found)) == {("a", "b"), ("c", "d"), ("e", "f")}
    # Without the rule, one that only repeats a word is the same as one that says it once.
    assert ("c", "g") in pairs_of(near_duplicates(frame, unit="word", ngram=1, max_distance=12))
    assert found.counts["documents_of_few_features"] == 5
    assert report(found, 0, found.kept.count())["documents"]["low_information"] == 3


def jaccard_of(a, b, n=3):
    sets = []
    for text in (a, b):
        words = text.lower().split()
        sets.append({tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))})
    return len(sets[0] & sets[1]) / len(sets[0] | sets[1])


def test_pairs_that_are_not_similar_in_their_texts_are_left_out(spark):
    chance = random.Random(3)
    base = [f"w{chance.randrange(300)}" for _ in range(80)]
    rows = []
    for i in range(30):
        words = list(base)
        for _ in range(i // 2):
            words[chance.randrange(80)] = f"x{chance.randrange(50)}"
        rows.append((f"d{i:02}", " ".join(words)))
    frame = spark.createDataFrame(rows, "id string, text string")
    texts = dict(rows)
    unchecked = near_duplicates(frame, max_distance=12)
    checked = near_duplicates(frame, max_distance=12, verify="jaccard", min_similarity=0.6)
    similar = {pair: jaccard_of(texts[pair[0]], texts[pair[1]]) for pair in pairs_of(unchecked)}
    expected = {pair: value for pair, value in similar.items() if value >= 0.6}
    assert 10 < len(expected) < len(similar)
    assert {(row["id_a"], row["id_b"]): row["similarity"] for row in checked.pairs.collect()} == pytest.approx(expected)
    assert rows_of(checked.clusters, "id", "cluster") == {i: (c,) for i, c in components(expected).items()}
    assert sum(checked.counts["failed_verification"].values()) == len(similar) - len(expected)
    for row in checked.decisions.where("not kept").collect():
        near = tuple(sorted((row["id"], row["keeper"]))) in expected
        assert (row["reason"] == "chained") == (not near)
    of_characters = near_duplicates(frame, unit="char", ngram=6, max_distance=12, verify="jaccard", min_similarity=0.6).pairs
    by_pair = {(row["id_a"], row["id_b"]): row["similarity"] for row in of_characters.collect()}
    # What is checked does not depend on what fingerprints are made of.
    assert by_pair == pytest.approx({pair: jaccard_of(texts[pair[0]], texts[pair[1]]) for pair in by_pair})
    spanning = near_duplicates(frame, max_distance=12, verify="jaccard", min_similarity=0.6, pairs="spanning")
    assert everything(spanning)["decisions"] == everything(checked)["decisions"]


def test_equal_fingerprints_are_no_pair_where_the_texts_differ(spark):
    # Features in another order have the same fingerprint, but other n-grams for the check.
    rows = [("a", "one two three four five"), ("b", "five four three two one"), ("c", "One two three four five.")]
    frame = spark.createDataFrame(rows, "id string, text string")
    assert len(pairs_of(near_duplicates(frame, ngram=1))) == 3
    found = near_duplicates(frame, ngram=1, verify="containment", verify_ngram=2, min_similarity=0.5)
    assert pairs_of(found) == {("a", "c"): 0}
    assert found.counts["failed_verification"] == {0: 2}


@pytest.mark.parametrize("verify", ["jaccard", "sketch"])
def test_a_check_of_characters_tells_texts_of_the_same_words_apart(spark, verify):
    words = BODY.split()
    texts = {
        "a": " ".join(words),
        "b": "!!, ".join(words),
        "c": " ".join(words) + " ",
        "d": " ".join(words).upper(),
        "e": "-" + BODY,
    }
    frame = spark.createDataFrame(list(texts.items()), "id string, text string")
    assert len(pairs_of(near_duplicates(frame))) == 10
    found = near_duplicates(frame, verify=verify, verify_unit="char", verify_ngram=4, min_similarity=0.8)
    assert set(pairs_of(found)) == {pair for pair in itertools.combinations("abcde", 2) if "b" not in pair}
    similar = {(row["id_a"], row["id_b"]): row["similarity"] for row in found.pairs.collect()}
    if verify == "jaccard":
        grams = {name: {text[i : i + 4] for i in range(len(text) - 3)} for name, text in texts.items()}
        assert similar["a", "c"] == len(grams["a"] & grams["c"]) / len(grams["a"] | grams["c"])
    assert similar["a", "d"] == 1.0
    assert found.kept.count() == 2


def test_sketches_leave_out_the_pairs_that_they_tell_apart_and_read_no_text(spark, documents, capsys):
    within = documents.withColumn("half", F.col("id") < "d030")
    plans = []

    def store(name, table):
        if name not in ("fingerprints", "kept"):
            table.explain()
            plans.append(capsys.readouterr().out)
        return table.localCheckpoint()

    settings = {"max_distance": 12, "within": "half"}
    every = near_duplicates(within, **settings)
    found = deduplicate(within, Settings(**settings, verify="sketch", min_similarity=0.85), store)
    sketches = {i: sketch(text or "", "word", 3) for i, text in corpus()}
    expected = {}
    for a, b in pairs_of(every):
        differing = sum((x ^ y).bit_count() for x, y in zip(sketches[a], sketches[b], strict=True))
        expected[a, b] = max(0.0, 1 - differing / 128)
    similar = {pair: value for pair, value in expected.items() if value >= 0.85}
    assert 5 < len(similar) < len(expected) - 5
    assert {(row["id_a"], row["id_b"]): row["similarity"] for row in found.pairs.collect()} == similar
    assert sum(found.counts["failed_verification"].values()) == len(expected) - len(similar)
    assert plans
    assert not any("text#" in plan for plan in plans)


def test_minhash_fingerprints_are_searched_like_simhash_ones(documents):
    found = near_duplicates(documents, fingerprint="minhash", ngram=3, max_distance=8)
    prints = {i: sketch(text or "", "word", 3, words=1) for i, text in corpus()}
    expected = brute_force_pairs({i: words and words[0] for i, words in prints.items()}, 8)
    assert pairs_of(found) == expected
    assert set(expected.values()) >= {0, 2, 4, 6}
    assert pairs_of(near_duplicates(documents, ngram=3, max_distance=8)) != expected


def test_a_radius_keeps_what_only_a_chain_would_drop(spark, documents):
    found = near_duplicates(documents, max_distance=10)
    cut = near_duplicates(documents, max_distance=10, max_radius=4)
    prints = {i: fingerprint_text(text) for i, text in corpus()}
    dropped = cut.decisions.where("not kept").collect()
    assert dropped
    assert all((prints[row["id"]] ^ prints[row["keeper"]]).bit_count() == row["distance"] <= 4 for row in dropped)
    figures = report(cut, 0, cut.kept.count())
    assert figures["dropped_without_max_radius"] == found.decisions.where("not kept").count() > len(dropped) == figures["dropped"]
    single = [row["cluster"] for row in cut.clusters.groupBy("cluster").count().where("count = 1").collect()]
    assert figures["clusters"]["of_one_document"] == len(single) > 0
    assert report(near_duplicates(documents, max_distance=10, max_radius=0), 0, _kept_at(documents, 0))["dropped"] > 0


def _kept_at(documents, distance):
    return near_duplicates(documents, max_distance=distance).kept.count()


def test_smaller_distances_are_told_from_one_search(documents):
    found = near_duplicates(documents, max_distance=10, also_at="0,3,10")
    expected = {k: documents.count() - _kept_at(documents, k) for k in (0, 3, 10)}
    assert found.counts["dropped_at"] == expected
    assert len(set(expected.values())) == 3


def decided_of(spark, dropped, documents):
    return spark.range(documents).select((F.col("id") >= dropped).alias("kept"), F.lit("unique").alias("reason"))


def test_a_run_that_would_drop_more_than_allowed_stops_before_the_kept_documents(spark, documents):
    stored = []

    def store(name, table):
        stored.append(name)
        return table.localCheckpoint()

    dropped = documents.count() - _kept_at(documents, 6)
    with pytest.raises(
        TooManyRemoved, match=rf"{dropped} of {documents.count()} documents would be dropped \(.*max-removed, 1.0%"
    ):
        deduplicate(documents, Settings(max_removed=0.01), store)
    assert "kept" not in stored
    share = dropped / documents.count()
    check_removed(decided_of(spark, 57, 100), 0.57)
    check_removed(decided_of(spark, 29, 100), 0.29)
    with pytest.raises(TooManyRemoved, match=r"57 of 100 .*57.0%, more than max-removed, 56.9%"):
        check_removed(decided_of(spark, 57, 100), 0.569)
    assert near_duplicates(documents, max_removed=share).kept.count() == documents.count() - dropped


@pytest.mark.parametrize("more", [{"within": "none"}, {"within": "tags"}])
def test_a_group_that_is_no_column_of_plain_values_is_refused(spark, more):
    frame = spark.createDataFrame([("a", "b", ["c"])], "id string, text string, tags array<string>")
    with pytest.raises(InputError, match=r"--within"):
        near_duplicates(frame, **more)
