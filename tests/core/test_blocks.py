"""Bands, the first-agreement rule and the table of cuts."""

import itertools

import pytest

from simhash_udf.core.blocks import cut_table, equal_bands, first_agreement


@pytest.mark.parametrize("max_distance", range(13))
def test_equal_bands_cover_all_bits_and_differ_by_at_most_one(max_distance):
    bands = equal_bands(max_distance)
    assert len(bands) == max_distance + 1
    assert sum(band.mask() for band in bands) == (1 << 64) - 1
    assert max(band.width for band in bands) - min(band.width for band in bands) <= 1


@pytest.mark.parametrize("max_distance", range(4))
def test_every_pair_within_the_distance_has_an_owner(max_distance):
    bands = equal_bands(max_distance, 8)
    for bits in itertools.combinations(range(8), max_distance):
        assert first_agreement(0, sum(1 << bit for bit in bits), bands, 8) is not None


def test_a_pair_that_agrees_on_no_band_has_no_owner():
    assert first_agreement(0b0000, 0b0101, equal_bands(1, 4), 4) is None


def test_a_chunk_is_the_value_of_the_bands_bits():
    assert [band.chunk(0xABCD, 16) for band in equal_bands(3, 16)] == [0xA, 0xB, 0xC, 0xD]


@pytest.mark.parametrize("max_distance", [1, 3, 8, 12])
def test_a_table_compares_small_nodes_and_cuts_large_ones(max_distance):
    table = cut_table(max_distance)
    assert (table.limits[:, 0, 0] > 2**32).all()
    assert 8 <= table.limits[max_distance, 64, 0] < 5000
    assert table.cost(10**6, 64, max_distance) < 10**6 * 10**6 / 2 * 0.3 / 10


def test_a_table_is_cheaper_with_less_budget_and_fewer_rows():
    table = cut_table(8)
    assert table.cost(10**6, 50, 3) < table.cost(10**6, 50, 4) < table.cost(4 * 10**6, 50, 4)
