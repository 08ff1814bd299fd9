"""The search on Spark, against the SQL self-join and brute force."""

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import functions as F

from simhash_udf.core.plan import Sample, plan_search
from simhash_udf.errors import InputError, SettingsError
from simhash_udf.stages import sample as sampling
from simhash_udf.stages import search as stage
from simhash_udf.stages import shares as packing
from simhash_udf.stages.addresses import keys_of_tasks
from simhash_udf.stages.sample import sample
from simhash_udf.stages.search import count_near_pairs, search, search_new
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


@pytest.mark.parametrize(("module", "name"), [(packing, "_to_shares"), (stage, "_search_shares")])
def test_a_killed_python_worker_loses_and_repeats_nothing(spark, monkeypatch, tmp_path, module, name):
    work = getattr(module, name)
    killed = tmp_path / "killed"

    def dies_once(batches, **options):
        import os
        import signal

        done = list(work(batches, **options))
        # Half of the result is on its way when the worker dies.
        yield from done[: len(done) // 2]
        try:
            killed.touch(exist_ok=False)
        except FileExistsError:
            yield from done[len(done) // 2 :]
        else:
            os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(module, name, dies_once)
    rows = with_neighbours(1500, 6, seed=13)
    assert collected(search(frame(spark, rows, 3), 6, plan=banded(1500, 6))) == brute_force(rows, 6)
    assert killed.exists()


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
    keys = keys_of_tasks(13)
    rows = spark.createDataFrame([(key,) for key in keys], "key INT")
    assert [row[0] for row in rows.select(F.expr("pmod(hash(key), 13)")).collect()] == list(range(13))


def test_shares_are_bounded(monkeypatch):
    monkeypatch.setattr(packing, "_SHARE_BYTES", 80)
    plan = plan_search(1000, 3, tasks=2, band_widths=(1, 1, 1, 1))
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(100))], ["fingerprint"])
    keys = np.zeros(len(plan.task_of_unit), np.int32)
    shares = list(packing._to_shares(iter([batch, batch]), plan=plan, keys=keys, new=True))
    sizes = [len(value) for share in shares for value in share.column(3).to_pylist()]
    assert max(sizes) == 80
    assert sum(sizes) == 4 * 200 * 8


def test_a_batch_of_any_size_is_searched_in_slices_and_parts_are_batches_of_their_own(monkeypatch):
    monkeypatch.setattr(packing, "_SLICE_ROWS", 64)
    monkeypatch.setattr("simhash_udf.core.plan.PART_NS", 1.0)
    rows = np.arange(150) << 30
    plan = plan_search(10**6, 3, sample=Sample(10**6, rows.astype(np.uint64)), tasks=40, band_widths=(16, 16, 16, 16))
    parts = max(max(band) for band in plan.parts)
    assert parts > 2
    keys = np.zeros(len(plan.task_of_unit), np.int32)
    batch = pa.RecordBatch.from_arrays([pa.array(rows)], ["fingerprint"])
    shares = list(packing._to_shares(iter([batch]), plan=plan, keys=keys, new=True))
    assert max(sum(len(value) for value in share.column(3).to_pylist()) for share in shares) == 64 * 8
    # Each unit gets all rows of its bucket, once.
    units = np.concatenate([share.column(1) for share in shares])
    sizes = np.concatenate([[len(value) // 8 for value in share.column(3).to_pylist()] for share in shares])
    held = np.bincount(units, sizes, len(plan.task_of_unit))
    first_units = packing.first_units_of(plan)
    for band, firsts in zip(plan.bands, first_units, strict=True):
        bucket_bits = plan.shared_bits[0]
        buckets = (rows.astype(np.uint64) >> np.uint64(64 - band.start - bucket_bits)) & np.uint64((1 << bucket_bits) - 1)
        expected = np.bincount(buckets.astype(np.int64), minlength=len(firsts) - 1)
        assert held[firsts[0] : firsts[-1]].tolist() == np.repeat(expected, np.diff(firsts)).tolist()


@pytest.mark.parametrize("spanning", [False, True])
def test_a_fingerprint_that_comes_twice_is_an_error(spark, spanning):
    with pytest.raises(Exception, match=r"InputError: the fingerprint -?\d+ comes more than once"):
        search(frame(spark, [1, 1, 3]), 1, spanning=spanning).collect()


def hot_and_dense(seed=7):
    """Fingerprints of which many share their first bits, and many lie around one centre."""
    random = np.random.default_rng(seed)
    dense = np.zeros(400, np.uint64)
    for _ in range(3):
        dense |= np.uint64(1) << random.integers(0, 64, 400, dtype=np.uint64)
    hot = random.integers(0, 1 << 48, 2000, dtype=np.uint64)
    rows = np.unique(np.concatenate([with_neighbours(1500, 6, seed), dense ^ np.uint64(0x5A5A5A5A5A5A5A5A), hot]))
    random.shuffle(rows)
    return rows


@pytest.mark.parametrize("spanning", [False, True])
def test_a_hot_bucket_is_shared_by_tasks_and_loses_nothing(spark, monkeypatch, spanning):
    monkeypatch.setattr("simhash_udf.core.plan.PART_NS", 1.0)
    rows = hot_and_dense()
    fingerprints = frame(spark, rows, 3)
    plan = plan_search(len(rows), 6, sample=sample(fingerprints, 6), tasks=12, band_widths=BANDS[6], spanning=spanning)
    assert max(max(band) for band in plan.parts) > 2
    found, expected = collected(search(fingerprints, 6, plan=plan, spanning=spanning)), brute_force(rows, 6)
    if spanning:
        assert len(set(found)) == len(found)
        assert set(found) <= set(expected)
        assert components(found) == components(expected)
    else:
        assert found == expected


def test_near_pairs_are_counted_by_distance(spark):
    rows = with_neighbours(2000, 6, seed=8)
    expected = brute_force(rows, 6)
    counted = count_near_pairs(frame(spark, rows), 6, plan=banded(2000, 6)).collect()
    assert {row["distance"]: row["pairs"] for row in counted} == {
        d: sum(pair[2] == d for pair in expected) for d in {pair[2] for pair in expected}
    }


def new_and_stored(max_distance, new, seed):
    rows = with_neighbours(1500, max_distance, seed)
    chosen = set(rows[:new].view(np.int64).tolist())
    # Some fingerprints are on both sides.
    stored = np.concatenate([rows[new:], rows[: new // 3]])
    return rows[:new], stored, [pair for pair in brute_force(rows, max_distance) if pair[0] in chosen or pair[1] in chosen]


@pytest.mark.parametrize("max_distance", [0, 3, 8])
@pytest.mark.parametrize("new", [1, 200, 1400])
def test_new_fingerprints_are_searched_among_stored_ones(spark, monkeypatch, max_distance, new):
    monkeypatch.setattr(stage, "_STORED_SLICE_ROWS", 100)
    fresh, stored, expected = new_and_stored(max_distance, new, seed=new)
    assert collected(search_new(frame(spark, fresh, 2), frame(spark, stored, 3), max_distance)) == expected


@pytest.mark.parametrize("max_distance", [3, 8])
def test_a_large_new_side_is_shuffled_with_the_stored_one(spark, max_distance):
    fresh, stored, expected = new_and_stored(max_distance, 300, seed=9)
    widths = BANDS[max_distance]
    plan = plan_search(1500, max_distance, new_rows=300, tasks=3, band_widths=widths)
    assert collected(search_new(frame(spark, fresh), frame(spark, stored), max_distance, plan=plan)) == expected
    edges = collected(search_new(frame(spark, fresh), frame(spark, stored), max_distance, plan=plan, spanning=True))
    assert len(set(edges)) == len(edges)
    assert set(edges) <= set(expected)
    assert components(edges) == components(expected)


def test_spanning_edges_of_new_fingerprints_do_not_depend_on_partitions(spark):
    fresh, stored, expected = new_and_stored(8, 300, seed=10)
    once, again = (
        collected(search_new(frame(spark, fresh, parts), frame(spark, stored[::step], parts), 8, spanning=True))
        for parts, step in ((1, 1), (5, -1))
    )
    assert once == again
    assert components(once) == components(expected)


def test_nothing_new_and_nothing_stored(spark):
    some = frame(spark, [1, 3, 7])
    assert collected(search_new(frame(spark, []), some, 3)) == []
    assert collected(search_new(some, frame(spark, []), 1)) == [(1, 3, 1), (3, 7, 1)]


def test_a_sample_is_the_same_for_any_partitions_and_tells_the_size(spark):
    rows = with_neighbours(4000, 6, seed=11)
    once, again = (sample(frame(spark, order, parts), 6, rows=1000) for order, parts in ((rows, 1), (rows[::-1], 5)))
    assert once.fingerprints.tolist() == again.fingerprints.tolist()
    assert 900 < len(once.fingerprints) < 1100
    assert once.rows == again.rows == len(rows)
    assert set(once.fingerprints.tolist()) <= set(rows.tolist())


def test_a_sample_counts_copies_once_and_expects_the_pairs_there_are(spark):
    rows = np.unique(np.concatenate([with_neighbours(3000, 6, seed=12), np.arange(1024, dtype=np.uint64)]))
    twice = frame(spark, np.concatenate([rows, rows, rows[:7]]))
    assert sample(twice, 6).rows == len(rows)
    pairs = len(brute_force(rows, 6))
    assert sample(twice, 6).near_pairs == pytest.approx(pairs)
    assert sample(twice, 6, rows=2500).near_pairs == pytest.approx(pairs, rel=0.3)


def test_the_size_of_a_table_is_told_by_a_sample_whatever_its_copies(spark):
    rows = np.random.default_rng(5).integers(0, 1 << 64, 40_000, dtype=np.uint64)
    for copied in rows[:3]:
        # Whether the one with all the copies is in the sample or not.
        table = np.concatenate([rows, np.full(40_000, copied)])
        assert sample(frame(spark, table), 3, rows=20_000).rows == pytest.approx(40_000, rel=0.05)
    assert sample(frame(spark, rows), 3, rows=5_000).rows == 40_000


def test_a_sample_with_very_many_pairs_is_thinned(spark, monkeypatch):
    monkeypatch.setattr(sampling, "_MOST_PAIRS", 1000)
    assert sample(frame(spark, range(2048)), 12).near_pairs == pytest.approx(2048 * 2047 / 2, rel=0.1)


def test_a_sample_of_nothing(spark):
    assert sample(frame(spark, []), 3).rows == 0
