"""The search on Spark, against the SQL self-join and brute force."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from simhash_udf.core.plan import plan_search
from simhash_udf.errors import InputError, SettingsError
from simhash_udf.stages.search import _addresses, _keys_of_tasks, search
from tests.oracles_search import banded_self_join, brute_force, components, with_neighbours

BANDS = {3: (16, 16, 16, 16), 6: (9,) * 7, 8: (7,) * 9}


def frame(spark, rows, partitions=2):
    rows = [(int(row),) for row in np.asarray(rows, np.uint64).view(np.int64)]
    return spark.createDataFrame(rows, "fingerprint BIGINT").repartition(partitions)


def collected(pairs):
    return sorted(tuple(row) for row in pairs.collect())


def banded(rows, max_distance, tasks=3):
    """A plan with bands, which so few rows would not get."""
    return plan_search(rows, max_distance, tasks=tasks, band_widths=BANDS[max_distance])


@pytest.fixture
def setting(spark):
    before = {}

    def change(name, value):
        before.setdefault(name, spark.conf.get(name, None))
        spark.conf.set(name, value)

    yield change
    for name, value in before.items():
        spark.conf.unset(name) if value is None else spark.conf.set(name, value)


@pytest.mark.parametrize("max_distance", [3, 8])
def test_pairs_equal_the_sql_self_join(spark, max_distance):
    fingerprints = frame(spark, with_neighbours(600, max_distance, seed=1))
    expected = collected(banded_self_join(spark, fingerprints, max_distance))
    assert len(expected) > 100
    assert collected(search(fingerprints, max_distance)) == expected
    assert collected(search(fingerprints, max_distance, plan=banded(600, max_distance))) == expected


@pytest.mark.parametrize("partitions", [1, 2, 7])
def test_pairs_do_not_depend_on_input_partitions(spark, partitions):
    rows = with_neighbours(2000, 6, seed=2)
    fingerprints = frame(spark, rows, partitions)
    assert collected(search(fingerprints, 6, plan=banded(2000, 6))) == brute_force(rows, 6)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("spark.sql.adaptive.enabled", "true"),
        ("spark.sql.adaptive.enabled", "false"),
        ("spark.sql.ansi.enabled", "true"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.execution.arrow.maxRecordsPerBatch", "2"),
        ("spark.sql.shuffle.partitions", "1"),
    ],
)
def test_pairs_do_not_depend_on_settings_of_spark(spark, setting, name, value):
    setting(name, value)
    rows = with_neighbours(500, 8, seed=3)
    assert collected(search(frame(spark, rows), 8, plan=banded(500, 8))) == brute_force(rows, 8)


@pytest.mark.parametrize("tasks", [1, 2, 40])
def test_pairs_do_not_depend_on_tasks(spark, tasks):
    rows = with_neighbours(1000, 3, seed=4)
    assert collected(search(frame(spark, rows), 3, plan=banded(1000, 3, tasks))) == brute_force(rows, 3)


def test_spanning_edges_do_not_depend_on_partitions_and_order(spark):
    rows = np.concatenate([with_neighbours(800, 8, seed=5), np.arange(200, dtype=np.uint64)])
    plan = banded(1000, 8)
    edges = [
        collected(search(frame(spark, order, parts), 8, spanning=True, plan=plan))
        for order, parts in [(rows, 1), (rows[::-1], 7)]
    ]
    expected = brute_force(rows, 8)
    assert edges[0] == edges[1]
    assert set(edges[0]) <= set(expected)
    assert components(edges[0]) == components(expected)


def test_columns_and_types(spark):
    fields = search(frame(spark, [1, 3]), 1).dtypes
    assert fields == [("fingerprint_a", "bigint"), ("fingerprint_b", "bigint"), ("distance", "int")]


def test_other_columns_and_nulls_are_ignored(spark):
    rows = spark.createDataFrame([("x", None), ("y", 1), ("z", 3), ("w", None)], "id STRING, fingerprint BIGINT")
    assert collected(search(rows, 1)) == [(1, 3, 1)]


def test_extreme_fingerprints(spark):
    rows = [0, (1 << 64) - 1, 1 << 63, (1 << 63) - 1]
    assert collected(search(frame(spark, rows), 1)) == [(-(1 << 63), 0, 1), (-1, (1 << 63) - 1, 1)]


def test_no_fingerprints_and_a_distance_of_zero_have_no_pairs(spark):
    assert collected(search(frame(spark, []), 3)) == []
    assert collected(search(frame(spark, [], 1), 3, plan=banded(0, 3))) == []
    assert collected(search(frame(spark, range(100)), 0)) == []


def test_a_dense_cluster_crosses_many_batches(spark):
    pairs = search(frame(spark, range(1024)), 10)
    assert pairs.count() == 1024 * 1023 // 2
    assert pairs.where(F.expr("bit_count(fingerprint_a ^ fingerprint_b) != distance")).count() == 0


def test_a_table_without_fingerprints_is_refused(spark):
    with pytest.raises(InputError, match="must be BIGINT"):
        search(spark.createDataFrame([(1,)], "fingerprint INT"), 3)


def test_a_plan_for_another_distance_is_refused(spark):
    with pytest.raises(SettingsError, match="max_distance 3"):
        search(frame(spark, [1]), 4, plan=banded(10, 3))


def test_every_task_gets_its_key_from_sparks_own_hash(spark):
    keys = _keys_of_tasks(13)
    rows = spark.createDataFrame([(key,) for key in keys], "key INT")
    assert [row[0] for row in rows.select(F.expr("pmod(hash(key), 13)")).collect()] == list(range(13))


def test_buckets_are_dealt_evenly():
    plan = plan_search(10**7, 6)
    keys = _keys_of_tasks(plan.tasks)
    loads = dict.fromkeys(keys, 0.0)
    for cost, addresses in zip(plan.bucket_nanoseconds, _addresses(plan), strict=True):
        for key in addresses:
            loads[int(key)] += cost
    assert max(loads.values()) < 1.2 * sum(loads.values()) / plan.tasks


def test_shares_are_bounded(monkeypatch):
    from simhash_udf.stages import search as stage

    monkeypatch.setattr(stage, "_SHARE_BYTES", 80)
    plan = plan_search(1000, 3, tasks=2, band_widths=(1, 1, 1, 1))
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(100))], ["fingerprint"])
    shares = list(stage._to_shares(iter([batch, batch]), plan=plan, addresses=_addresses(plan)))
    sizes = [len(value) for share in shares for value in share.column(2).to_pylist()]
    assert max(sizes) == 80
    assert sum(sizes) == 4 * 200 * 8
