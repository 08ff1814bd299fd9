import pytest

from simhash_udf.errors import IncompleteResult
from simhash_udf.stages import numbers


def made(spark, rows, partitions=1):
    frame = spark.createDataFrame(rows, "a string, b bigint").repartition(partitions)
    return numbers.numbered(frame, ["a", "b"], lambda name, table: table.localCheckpoint(), "numbered")


def test_numbers_are_of_the_rows_alone(spark):
    rows = [("x", 1), ("x", None), (None, 1), (None, None), ("y", 1)]
    found = [{tuple(row)[1:]: row["node"] for row in made(spark, rows[::step], n).collect()} for step, n in ((1, 1), (-1, 4))]
    assert found[0] == found[1]
    assert len(set(found[0].values())) == 5


def test_where_two_rows_share_a_number_all_get_others(spark, monkeypatch):
    hashed = numbers._number
    seeds = []

    def colliding(keys, seed):
        seeds.append(seed)
        return hashed(keys, seed) % 2 if seed < 2 else hashed(keys, seed)

    monkeypatch.setattr(numbers, "_number", colliding)
    assert len({row["node"] for row in made(spark, [(str(i), i) for i in range(50)]).collect()}) == 50
    assert seeds == [0, 1, 2]


def test_rows_that_are_alike_cannot_be_numbered(spark):
    with pytest.raises(IncompleteResult, match="cannot be told apart by a, b"):
        made(spark, [("x", 1), ("x", 1)])
