"""What a plan promises, counts and refuses."""

import math

import pytest

from simhash_udf.core.blocks import Band
from simhash_udf.core.plan import plan_search
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


@pytest.mark.parametrize("widths", [(16, 16, 16), (16, 16, 16, 17), (0, 16, 16, 16), ()])
def test_bands_that_could_lose_a_pair_are_refused(widths):
    with pytest.raises(SettingsError, match="4 bands"):
        plan_search(1000, 3, band_widths=widths)


@pytest.mark.parametrize("bad", [{"rows": -1}, {"tasks": 0}, {"cores": 0}, {"rows": 1.5}])
def test_counts_out_of_range_are_refused(bad):
    with pytest.raises(SettingsError, match="whole number"):
        plan_search(**{"rows": 10, "max_distance": 3, **bad})
