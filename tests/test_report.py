import dataclasses

import pytest

from simhash_udf import near_duplicates
from simhash_udf.errors import IncompleteResult
from simhash_udf.report import contradictions, report

FINGERPRINTS = [
    ("a", 5, 3, 9),
    ("b", 5, 3, 8),
    ("c", 5, 3, 7),
    ("d", 64, 3, 9),
    ("e", 64, 3, 8),
    ("f", 9, 3, 9),
    ("g", None, 0, 0),
]
CLUSTERS = [("a", "a", 3), ("b", "a", 3), ("c", "a", 3), ("d", "d", 2), ("e", "d", 2)]
DECISIONS = [
    ("a", True, "a", "a", 0, "keeper"),
    ("b", False, "a", "a", 0, "same fingerprint"),
    ("c", False, "a", "a", 0, "same fingerprint"),
    ("d", True, "d", "d", 0, "keeper"),
    ("e", False, "d", "d", 0, "same fingerprint"),
    ("f", True, None, None, None, "unique"),
    ("g", True, None, None, None, "no features"),
]


@pytest.fixture(scope="module")
def tables(spark):
    return {
        "fingerprints": spark.createDataFrame(FINGERPRINTS, "id string, fingerprint bigint, features int, length int"),
        "clusters": spark.createDataFrame(CLUSTERS, "id string, cluster string, size bigint"),
        "decisions": spark.createDataFrame(
            DECISIONS, "id string, kept boolean, cluster string, keeper string, distance int, reason string"
        ),
    }


def changed(table, where, **columns):
    """The table with other values, given as SQL, in the rows of a condition."""
    return table.selectExpr(
        *(f"if({where}, {columns[name]}, {name}) as {name}" if name in columns else name for name in table.columns)
    )


def without(table, where):
    return table.where(f"not ({where})")


def twice(table, where):
    return table.unionByName(table.where(where))


BREAKS = {
    "a document without a decision": ("decisions", lambda t: without(t, "id = 'b'"), [1, 1, 0, 0]),
    "a document decided twice": ("decisions", lambda t: twice(t, "id = 'b'"), [1, 1, 0, 0]),
    "a decision of no document": ("fingerprints", lambda t: without(t, "id = 'b'"), [1, 0, 0, 0]),
    "a document in two clusters": (
        "clusters",
        lambda t: t.unionByName(changed(t.where("id = 'b'"), "true", cluster="'d'")),
        [1, 1, 0, 0],
    ),
    "a document moved to another cluster": ("clusters", lambda t: changed(t, "id = 'b'", cluster="'d'"), [0, 1, 0, 0]),
    "a clustered document decided to be alone": (
        "decisions",
        lambda t: changed(t, "id = 'b'", cluster="null", keeper="null", kept="true", reason="'unique'"),
        [0, 1, 0, 0],
    ),
    "a cluster without a keeper": (
        "decisions",
        lambda t: changed(t, "id = 'a'", kept="false", reason="'same fingerprint'"),
        [0, 0, 1, 0],
    ),
    "a keeper too many in one cluster, and none in another": (
        "decisions",
        lambda t: changed(
            changed(t, "id = 'b'", kept="true", keeper="id", reason="'keeper'"), "id = 'd'", kept="false", reason="'chained'"
        ),
        [0, 0, 2, 0],
    ),
    "a keeper that is dropped": ("decisions", lambda t: changed(t, "cluster = 'a'", keeper="'b'"), [0, 0, 1, 0]),
    "a keeper of another cluster": ("decisions", lambda t: changed(t, "id = 'c'", keeper="'d'"), [0, 0, 1, 0]),
    "a dropped document without a keeper": ("decisions", lambda t: changed(t, "id = 'c'", keeper="null"), [0, 0, 1, 0]),
    "a document dropped as unique": ("decisions", lambda t: changed(t, "id = 'f'", kept="false"), [0, 0, 0, 1]),
    "a document kept as chained": (
        "decisions",
        lambda t: changed(t, "id = 'f'", reason="'chained'"),
        [0, 0, 0, 1],
    ),
}


def test_a_right_result_has_no_contradiction(tables):
    assert set(contradictions(**tables).values()) == {0}


@pytest.mark.parametrize(("table", "change", "numbers"), BREAKS.values(), ids=BREAKS)
def test_contradictions_are_counted(tables, table, change, numbers):
    assert [*contradictions(**{**tables, table: change(tables[table])}).values()] == numbers


def test_a_result_that_contradicts_itself_is_refused(spark):
    found = near_duplicates(spark.createDataFrame([("a", "one text"), ("b", "one text"), ("c", "")], "id string, text string"))
    assert report(found, 0, 2)["dropped"] == 1
    broken = dataclasses.replace(found, decisions=changed(found.decisions, "id = 'b'", keeper="'c'"))
    with pytest.raises(IncompleteResult, match=r"itself: kept rows .* differ, 1 and 2; there are 1 clusters without .*run again"):
        report(broken, 0, 1)
