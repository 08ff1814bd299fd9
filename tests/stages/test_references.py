import random

import pytest

from simhash_udf.settings import Settings
from simhash_udf.stages import search as module
from simhash_udf.stages.references import near_references
from simhash_udf.stages.search import search_between

DOCUMENTS = "id string, fingerprint bigint, features int, content bigint"
REFERENCES = "reference string, reference_id string, fingerprint bigint, features int, content bigint"


def sides(seed, left, right):
    """Fingerprints of two sides, some of one near some of the other and some near others of their own side."""
    choose = random.Random(seed)
    made = []
    for number in (left, right):
        centres = [choose.getrandbits(64) for _ in range(number // 3)] + [row for side in made for row in side[: number // 3]]
        side = {centre ^ sum(1 << bit for bit in choose.sample(range(64), choose.randrange(1, 8))) for centre in centres * 2}
        made.append(sorted(side)[:number])
    common = set(made[0]) & set(made[1])
    return [[value - (value >> 63 << 64) for value in side if value not in common] for side in made]


def brute_force(left, right, most):
    near = ((a, b, ((a ^ b) & (1 << 64) - 1).bit_count()) for a in left for b in right)
    return sorted((min(a, b), max(a, b), distance) for a, b, distance in near if distance <= most)


@pytest.mark.parametrize("most_given", [1 << 22, 10], ids=["one side given to every task", "both sides shuffled"])
@pytest.mark.parametrize(("left", "right"), [(90, 300), (300, 90), (0, 30)])
@pytest.mark.parametrize("distance", [0, 3, 7])
def test_pairs_between_two_sides_are_those_of_brute_force(spark, monkeypatch, most_given, left, right, distance):
    monkeypatch.setattr(module, "LARGEST_NEW_SIDE", most_given)
    given = sides(left, left, right)
    frames = [spark.createDataFrame([(row,) for row in side], "fingerprint bigint") for side in given]
    found = sorted(map(tuple, search_between(*frames, distance).collect()))
    assert found == brute_force(*given, distance) if distance else found == []
    assert distance < 3 or not left or found


def met(spark, documents, references, **settings):
    frames = spark.createDataFrame(documents, DOCUMENTS), spark.createDataFrame(references, REFERENCES)
    found = near_references(*frames, Settings(**settings), lambda _, table: table.localCheckpoint())
    return sorted(map(tuple, found.collect()))


def test_the_nearest_reference_is_named_and_the_first_of_several_as_near(spark):
    documents = [("a", 0b1, 9, 1), ("b", 0b11, 9, 2), ("c", -1, 9, 3), ("d", None, 0, None), ("e", 0b1, 9, 4)]
    references = [("y", "1", 0b1, 9, 9), ("x", "2", 0b1, 9, 9), ("x", "3", 0b1111, 9, 9), ("x", "4", None, 0, None)]
    wanted = [("a", "x", "2", 0), ("b", "x", "2", 1), ("e", "x", "2", 0)]
    assert met(spark, documents, references, max_distance=2) == wanted
    assert met(spark, documents, references, max_distance=0) == [wanted[0], wanted[2]]


def test_of_few_features_only_those_with_the_same_content_meet_a_reference(spark):
    documents = [("a", 0b1, 2, 7), ("b", 0b1, 2, 8), ("c", 0b1, 3, 7), ("d", 0b11, 3, 7)]
    few, enough = [("x", "1", 0b1, 2, 7)], [("x", "1", 0b1, 3, 7)]
    assert met(spark, documents, few, min_features=3) == [("a", "x", "1", 0)]
    assert met(spark, documents, enough, min_features=3) == [("c", "x", "1", 0), ("d", "x", "1", 1)]
