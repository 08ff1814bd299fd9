"""What a plan promises, counts and refuses."""

import math

import numpy as np
import pytest

from simhash_udf.core.blocks import Band
from simhash_udf.core.plan import Sample, plan_search
from simhash_udf.errors import SettingsError


@pytest.mark.parametrize("max_distance", range(13))
@pytest.mark.parametrize("rows", [0, 1, 1000, 10**6, 10**7, 10**9, 10**10])
def test_a_plan_has_a_band_more_than_bits_may_differ(rows, max_distance):
    plan = plan_search(rows, max_distance)
    assert plan.bands == (Band(0, 0),) or len(plan.bands) == max_distance + 1
    assert [band.start for band in plan.bands[1:]] == [band.end for band in plan.bands[:-1]]
    assert plan.bands[0].start == 0
    assert plan.bands[-1].end <= 64
    assert all(bits <= band.width for bits, band in zip(plan.shared_bits, plan.bands, strict=True))


def test_no_search_is_planned_at_distance_zero():
    plan = plan_search(10**10, 0)
    assert (plan.rows_shuffled, plan.task_bytes, plan.tasks, plan.comparisons) == (0, 0, 1, 0)


def test_more_rows_than_any_band_tells_apart_are_planned_all_the_same():
    assert len(plan_search(10**15, 1).bands) == 2


def test_a_small_set_is_searched_by_one_task():
    assert plan_search(1000, 8).tasks == 1


def test_a_plan_counts_what_it_shuffles():
    plan = plan_search(10**7, 6)
    assert (plan.rows_shuffled, plan.bytes_shuffled) == (7 * 10**7, 56 * 10**7)
    assert plan.tasks == math.ceil(plan.rows_shuffled / 2_000_000)


def test_comparisons_of_one_bucket_without_cuts_are_all_pairs():
    assert plan_search(20, 3).comparisons == pytest.approx(20 * 20 / 2, rel=0.01)


@pytest.mark.parametrize(("max_distance", "a_pair"), [(3, 2.4e-15), (6, 4.5e-12), (8, 2.8e-10), (10, 1.0e-8)])
def test_chance_pairs_follow_the_binomial_distribution(max_distance, a_pair):
    assert plan_search(10**6, max_distance).chance_pairs == pytest.approx(10**12 / 2 * a_pair, rel=0.05)


def test_more_rows_and_a_larger_distance_take_longer():
    seconds = [plan_search(rows, k).seconds for rows, k in [(10**6, 3), (10**7, 3), (10**7, 8), (10**7, 10)]]
    assert seconds == sorted(seconds)


@pytest.mark.parametrize("max_distance", [-1, 13, 3.0, "3", None, True])
def test_a_distance_out_of_range_is_refused(max_distance):
    with pytest.raises(SettingsError, match="from 0 to 12"):
        plan_search(1000, max_distance)


@pytest.mark.parametrize("widths", [(16, 16, 16), (16, 16, 16, 17), (0, 16, 16, 16), (), (16.9, 16, 16, 15), 16])
def test_bands_that_could_lose_a_pair_are_refused(widths):
    with pytest.raises(SettingsError, match="4 bands"):
        plan_search(1000, 3, band_widths=widths)


@pytest.mark.parametrize("bad", [{"rows": -1}, {"tasks": 0}, {"cores": 0}, {"rows": 1.5}])
def test_counts_out_of_range_are_refused(bad):
    with pytest.raises(SettingsError, match="whole number"):
        plan_search(**{"rows": 10, "max_distance": 3, **bad})


def sampled(rows, fingerprints):
    return Sample(rows, np.unique(fingerprints))


def evenly(count, bits=64, seed=0):
    return np.random.default_rng(seed).integers(0, 1 << bits, count, dtype=np.uint64)


def around_a_centre(count, differing, seed=0):
    random = np.random.default_rng(seed)
    flips = np.zeros(count, np.uint64)
    for _ in range(differing):
        flips |= np.uint64(1) << random.integers(0, 64, count, dtype=np.uint64)
    return flips ^ np.uint64(0x0123456789ABCDEF)


@pytest.mark.parametrize("max_distance", [3, 6, 8, 12])
def test_an_even_sample_changes_no_price(max_distance):
    even, measured = (plan_search(10**7, max_distance, sample=s) for s in (None, sampled(10**7, evenly(200_000))))
    assert measured.seconds == pytest.approx(even.seconds, rel=0.02)
    assert measured.comparisons == pytest.approx(even.comparisons, rel=0.05)
    assert measured.hot_chunks == ()
    # How many parts a bucket has is rounded up, so noise may add or take a copy.
    assert measured.rows_shuffled == pytest.approx(even.rows_shuffled, rel=0.05)


def test_buckets_are_dealt_evenly():
    plan = plan_search(10**7, 6)
    assert plan.task_nanoseconds.max() < 1.2 * plan.task_nanoseconds.mean()
    costs = np.concatenate(plan.bucket_nanoseconds)
    assert plan.task_nanoseconds.tolist() == pytest.approx(np.bincount(plan.task_of_unit, costs, plan.tasks).tolist())


SKEWED = {
    "a tenth shares 16 bits": np.concatenate([evenly(180_000), evenly(20_000, 48)]),
    "half shares 16 bits": np.concatenate([evenly(100_000), evenly(100_000, 48)]),
    "a fiftieth lies around a centre": np.concatenate([evenly(196_000), around_a_centre(4_000, 4)]),
}


@pytest.mark.parametrize("fingerprints", SKEWED.values(), ids=SKEWED)
@pytest.mark.parametrize("max_distance", [6, 8])
def test_a_skewed_sample_is_dealt_evenly_too(fingerprints, max_distance):
    plan = plan_search(10**7, max_distance, sample=sampled(10**7, fingerprints))
    assert plan.task_nanoseconds.max() < 5 * np.median(plan.task_nanoseconds)
    assert plan.seconds > plan_search(10**7, max_distance).seconds
    assert plan.hot_chunks
    # Each part of a bucket gets a copy of its rows.
    assert plan.rows_shuffled > 10**7 * len(plan.bands)


def test_the_hottest_chunk_is_named_with_examples():
    plan = plan_search(10**7, 6, sample=sampled(10**7, SKEWED["a tenth shares 16 bits"]))
    hottest = plan.hot_chunks[0]
    assert hottest.chunk == 0
    assert hottest.rows == pytest.approx(10**6, rel=0.1)
    band = plan.bands[hottest.band]
    assert hottest.examples
    assert all(band.chunk(example % 2**64) == 0 for example in hottest.examples)


def test_a_dense_chunk_of_a_spanning_search_is_not_shared():
    taken = sampled(10**7, np.concatenate([evenly(100_000), around_a_centre(100_000, 4)]))
    assert max(max(band) for band in plan_search(10**7, 6, sample=taken).parts) > 1
    assert max(max(band) for band in plan_search(10**7, 6, sample=taken, spanning=True).parts) == 1


def test_new_rows_cost_less_than_all():
    assert plan_search(10**7, 6, new_rows=10**5).comparisons < plan_search(10**7, 6).comparisons / 5
    assert plan_search(10**7, 6, new_rows=10**5).chance_pairs == pytest.approx(10**7 * 10**5 * 4.5e-12, rel=0.05)


def test_a_task_holds_its_own_rows_and_room_for_its_largest_bucket():
    for rows in (10**7, 10**8, 10**9):
        assert plan_search(rows, 6).task_bytes < 40 * 2_000_000 + 40 * rows / 2**5


def test_a_dear_search_of_few_rows_has_more_tasks_than_its_rows_need():
    plan = plan_search(10**7, 12)
    assert plan.tasks > plan.rows_shuffled / 2_000_000
    assert plan.task_nanoseconds.max() < 2 * plan.task_nanoseconds.mean()
