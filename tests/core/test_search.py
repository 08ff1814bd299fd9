"""The search of one bucket, and of all buckets of a set of bands, against brute force."""

import numpy as np
import pytest

from simhash_udf.core.blocks import Band, CutTable, cut_table, equal_bands
from simhash_udf.core.cuts import partition
from simhash_udf.core.plan import plan_search
from simhash_udf.core.search import BucketSearch
from simhash_udf.errors import InputError
from tests.oracles_search import brute_force, components, with_neighbours

WHOLE = (Band(0, 0),)


def found(rows, max_distance, bands=WHOLE, *, width=64, shared=0, new=None, parts=1, **options):
    """What a search by bands reports, all buckets together, as a list so that a pair found twice shows."""
    search = BucketSearch(bands, max_distance, width=width, **options)
    rows, pairs = np.asarray(rows, np.uint64), []
    is_new = np.arange(len(rows)) < (len(rows) if new is None else new)
    for index, band in enumerate(bands):
        bits = min(shared, band.width)
        keys = (rows >> np.uint64(width - band.start - bits)) & np.uint64((1 << bits) - 1) if bits else np.zeros(len(rows))
        for key in np.unique(keys):
            bucket = keys == key
            for part in range(parts):
                new_rows = int(is_new[bucket].sum())
                for a, b, distance in search.pairs(rows[bucket], index, bits, new_rows, part, parts):
                    pairs += list(zip(a.tolist(), b.tolist(), distance.tolist(), strict=True))
    return sorted(pairs)


def always_cutting(max_distance, width, choose):
    """A table that cuts every node of at least two rows, by a width that `choose` gives, and then by differing blocks."""
    best = cut_table(max_distance, width)
    widths = np.ones_like(best.widths)
    for bits in range(1, width + 1):
        for budget in range(max_distance + 1):
            widths[budget, bits] = min(bits, choose(), 11)
    return CutTable(widths, np.ones_like(best.limits), best.nanoseconds, best.comparisons)


def with_a_new_one(pairs, rows, new):
    """Those of the pairs that have one of the first `new` rows."""
    chosen = set(np.asarray(rows[:new], np.uint64).view(np.int64).tolist())
    return [(a, b, d) for a, b, d in pairs if a in chosen or b in chosen]


def rows_of_all_kinds(max_distance, seed):
    """Random rows with neighbours, a dense cluster and a hot chunk, in any order."""
    random = np.random.default_rng(seed)
    flips = [random.choice(64, random.integers(0, 4), replace=False) for _ in range(600)]
    dense = np.array(flipped(0x5555555555555555, *flips), np.uint64)
    hot = random.integers(0, 1 << 40, 800, dtype=np.uint64) | np.uint64(0xABCDEF << 40)
    rows = np.unique(np.concatenate([with_neighbours(1500, max_distance, seed), dense, hot]))
    random.shuffle(rows)
    return rows


def flipped(base, *bit_sets):
    return [base] + [base ^ sum(1 << bit for bit in bits) for bits in bit_sets]


@pytest.mark.parametrize("max_distance", range(13))
def test_every_pair_is_found_once_at_64_bits(max_distance):
    rows = with_neighbours(3000, max_distance, seed=max_distance)
    assert found(rows, max_distance) == brute_force(rows, max_distance)


@pytest.mark.parametrize("max_distance", range(1, 13))
@pytest.mark.parametrize("shared", [0, 2, 16])
def test_bands_find_every_pair_once(max_distance, shared):
    rows = with_neighbours(1500, max_distance, seed=max_distance)
    assert found(rows, max_distance, equal_bands(max_distance), shared=shared) == brute_force(rows, max_distance)


@pytest.mark.parametrize("max_distance", range(1, 13))
@pytest.mark.parametrize("planned_rows", [10**6, 10**7, 10**9])
def test_the_planners_bands_find_every_pair_once(max_distance, planned_rows):
    rows = with_neighbours(1000, max_distance, seed=planned_rows + max_distance)
    plan = plan_search(planned_rows, max_distance)
    assert found(rows, max_distance, plan.bands, shared=min(plan.shared_bits)) == brute_force(rows, max_distance)


@pytest.mark.parametrize("width", [1, 2, 5, 8, 10])
def test_all_fingerprints_of_a_small_width(width):
    rows = np.arange(1 << width)
    for max_distance in range(min(width, 6) + 1):
        assert found(rows, max_distance, width=width) == brute_force(rows, max_distance)


@pytest.mark.parametrize("max_distance", range(5))
@pytest.mark.parametrize("cut", range(1, 9))
def test_every_block_width_at_a_small_width(max_distance, cut):
    table = always_cutting(max_distance, 8, lambda: cut)
    rows = np.arange(256)
    assert found(rows, max_distance, width=8, table=table) == brute_force(rows, max_distance)
    bands = equal_bands(max_distance, 8)
    assert found(rows, max_distance, bands, width=8, shared=1, table=table) == brute_force(rows, max_distance)


@pytest.mark.parametrize("seed", range(20))
def test_any_mixture_of_block_widths_finds_every_pair_once(seed):
    random = np.random.default_rng(seed)
    max_distance = int(random.integers(0, 13))
    table = always_cutting(max_distance, 64, lambda: int(random.integers(1, 12)))
    rows = with_neighbours(400, max_distance, seed)
    assert found(rows, max_distance, table=table) == brute_force(rows, max_distance)


@pytest.mark.parametrize("max_distance", [1, 3, 6, 8, 12])
def test_differences_at_band_edges_in_one_band_and_spread_evenly(max_distance):
    bands = equal_bands(max_distance)
    first_bits = [63 - band.start for band in bands]
    last_bits = [64 - band.end for band in bands]
    rows = []
    for base in (0, (1 << 64) - 1, 1 << 63, 0x0123456789ABCDEF):
        spread = [first_bits[:n] for n in range(1, max_distance + 2)] + [last_bits[-n:] for n in range(1, max_distance + 2)]
        together = [range(start, min(start + max_distance, 64)) for start in (0, 13, 64 - max_distance)]
        rows += flipped(base, *spread, *together)
    rows = np.unique(np.array(rows, np.uint64))
    assert found(rows, max_distance) == brute_force(rows, max_distance)
    assert found(rows, max_distance, bands, shared=1) == brute_force(rows, max_distance)


def test_pairs_are_ordered_as_signed_numbers():
    assert found([0, (1 << 64) - 1 ^ 0b1, (1 << 64) - 1, 1 << 63], 1) == [
        (-(1 << 63), 0, 1),
        (-2, -1, 1),
    ]


def test_a_distance_of_zero_has_no_pairs():
    assert found(np.arange(1000), 0) == []


def test_empty_and_single_rows_have_no_pairs():
    assert found([], 3) == found([7], 3) == []


def test_a_dense_cluster_is_reported_whole():
    random = np.random.default_rng(3)
    flips = [random.choice(64, random.integers(0, 4), replace=False) for _ in range(1600)]
    rows = np.unique(np.array(flipped(0x5555555555555555, *flips), np.uint64))
    expected = brute_force(rows, 6)
    assert len(expected) == len(rows) * (len(rows) - 1) // 2
    assert found(rows, 6) == expected
    assert found(rows, 6, equal_bands(6), shared=4) == expected


def test_a_dense_cluster_among_others_costs_little_more_than_its_pairs():
    random = np.random.default_rng(5)
    flips = [random.choice(64, random.integers(0, 5), replace=False) for _ in range(2500)]
    rows = np.array(flipped(0x5555555555555555, *flips), np.uint64)
    rows = np.unique(np.concatenate([rows, random.integers(0, 1 << 64, 20_000, dtype=np.uint64)]))
    random.shuffle(rows)
    search = BucketSearch(WHOLE, 8)
    pairs = sum(len(a) for a, _, _ in search.pairs(rows, 0))
    assert pairs > 1_000_000
    assert search.comparisons < 100 * pairs


@pytest.mark.parametrize("max_distance", range(4))
def test_every_pair_of_a_small_width_with_any_number_of_new_rows(max_distance):
    rows = np.random.default_rng(max_distance).permutation(256)
    pairs = brute_force(rows, max_distance)
    for new in (0, 1, 3, 100, 255, 256):
        for table in (None, always_cutting(max_distance, 8, lambda: 3)):
            expected = with_a_new_one(pairs, rows, new)
            assert found(rows, max_distance, width=8, new=new, table=table) == expected
            bands = equal_bands(max_distance, 8)
            assert found(rows, max_distance, bands, width=8, shared=1, new=new, table=table) == expected


@pytest.mark.parametrize("max_distance", [1, 3, 8])
@pytest.mark.parametrize("new", [1, 40, 2000])
def test_new_rows_need_not_be_compared_with_each_other(max_distance, new):
    rows = rows_of_all_kinds(max_distance, seed=new)
    chosen = set(rows[:new].view(np.int64).tolist())
    expected = [(a, b, d) for a, b, d in brute_force(rows, max_distance) if (a in chosen) != (b in chosen)]
    pairs = [
        pair
        for batch in BucketSearch(WHOLE, max_distance, pairs_at_once=999).pairs(rows, 0, new=new, between=True)
        for pair in zip(*(column.tolist() for column in batch), strict=True)
    ]
    assert sorted(pairs) == expected


@pytest.mark.parametrize("max_distance", [0, 1, 3, 6, 8, 12])
@pytest.mark.parametrize("new", [1, 30, 1000])
def test_pairs_with_a_new_row_at_64_bits(max_distance, new):
    rows = with_neighbours(3000, max_distance, seed=new)
    expected = with_a_new_one(brute_force(rows, max_distance), rows, new)
    assert found(rows, max_distance, new=new) == expected
    assert found(rows, max_distance, equal_bands(max_distance), shared=2, new=new) == expected


def test_comparisons_of_rows_that_are_not_new_do_not_count():
    rows = np.random.default_rng(6).integers(0, 1 << 20, 5000, dtype=np.uint64)
    rows = np.unique(rows)
    np.random.default_rng(7).shuffle(rows)
    best = cut_table(0)
    never = CutTable(np.zeros_like(best.widths), np.full_like(best.limits, 1 << 40), best.nanoseconds, best.comparisons)
    search = BucketSearch(WHOLE, 0, table=never)
    assert not list(search.pairs(rows, 0, new=7))
    assert search.comparisons == 7 * len(rows) - 7 * 8 // 2


@pytest.mark.parametrize("max_distance", [1, 3, 8])
@pytest.mark.parametrize("new", [1, 40, 900])
def test_spanning_edges_of_new_rows_connect_what_their_pairs_connect(max_distance, new):
    rows = np.concatenate([with_neighbours(1000, max_distance, seed=new), np.arange(1 << 40, (1 << 40) + 300, dtype=np.uint64)])
    rows = np.random.default_rng(new).permutation(rows)
    expected = with_a_new_one(brute_force(rows, max_distance), rows, new)
    edges = found(rows, max_distance, equal_bands(max_distance), shared=1, spanning=True, new=new)
    assert len(set(edges)) == len(edges)
    assert set(edges) <= set(expected)
    assert components(edges) == components(expected)


@pytest.mark.parametrize("max_distance", [1, 2, 4, 8, 12])
def test_bands_that_use_up_all_bits_find_every_pair_once(max_distance):
    # The last band has no bits after it, so its chunks are cut by the blocks in which their pairs differ.
    bands = equal_bands(max_distance)
    cut = always_cutting(max_distance, 64, lambda: 4)
    rows = with_neighbours(2000, max_distance, seed=max_distance)
    assert found(rows, max_distance, bands, shared=1, table=cut) == brute_force(rows, max_distance)


@pytest.mark.parametrize("last", [2, 3, 8, 11, 12, 13, 16, 23, 24, 25, 32])
@pytest.mark.parametrize("first", [12, 23, 24, 25, 32])
@pytest.mark.parametrize("way", [{}, {"parts": 3}, {"spanning": True}, {"new": 300}])
def test_rows_that_share_the_last_band_are_cut_by_halves_of_the_first(first, last, way):
    # Those rows differ in the first band alone, where cutting by the lower bits of a half may put all of them in one bin.
    bands, width = (Band(0, first), Band(first, last)), first + last
    random = np.random.default_rng(first)
    in_half = random.integers(0, 1 << min(11, first // 2), 400, dtype=np.uint64) << np.uint64(first - first // 2)
    top = random.integers(0, 2, 400, dtype=np.uint64) << np.uint64(first - 1)
    anywhere = random.integers(0, 1 << first, 400, dtype=np.uint64)
    parts = [in_half | top, in_half >> np.uint64(1), anywhere, anywhere ^ np.uint64(1 << (first // 2))]
    rows = random.permutation(np.unique(np.concatenate(parts))) << np.uint64(last) | np.uint64(1)
    expected = brute_force(rows, 1)
    if "new" in way:
        expected = with_a_new_one(expected, rows, way["new"])
    for table in (None, always_cutting(1, width, lambda: 4)):
        pairs = found(rows, 1, bands, width=width, shared=1, table=table, **way)
        if "spanning" in way:
            assert len(set(pairs)) == len(pairs)
            assert components(pairs) == components(expected)
        else:
            assert pairs == expected


def test_a_half_that_no_cut_tells_apart_still_has_its_pairs():
    # 4,096 pairs differ in the most significant bit alone, of a half whose lower bits are the same in all rows.
    upper, lower = np.meshgrid(np.arange(2, dtype=np.uint64), np.arange(4096, dtype=np.uint64))
    rows = (upper << np.uint64(63) | lower << np.uint64(40) | np.uint64(5)).ravel()
    plan = plan_search(8192, 1, band_widths=(24, 24))
    assert len(found(rows, 1, plan.bands)) == 4096 + 2 * 4096 * 12 // 2
    assert len(found(rows, 1, plan.bands, parts=3)) == 4096 + 2 * 4096 * 12 // 2
    assert len(found(rows, 1, plan.bands, spanning=True)) == 8191


@pytest.mark.parametrize("way", [{}, {"parts": 2}])
def test_a_fingerprint_that_comes_twice_is_an_error(way):
    with pytest.raises(InputError, match=r"the fingerprint 7 comes more than once.*dropDuplicates"):
        found([7, 1, 7], 1, **way)


@pytest.mark.parametrize("spanning", [False, True])
def test_a_hot_chunk_needs_no_more_memory_for_each_block_that_it_agrees_on(spanning):
    rows = np.random.default_rng(10).integers(0, 1 << 24, 100_000, dtype=np.uint64)
    rows = np.unique(rows) | np.uint64(0xABCDEF0123 << 24)
    search = BucketSearch(WHOLE, 2, spanning=spanning)
    list(search.pairs(rows, 0))
    assert len(search._pool) == 3 * len(rows)


def test_a_large_chunk_without_bits_left_is_not_compared_whole():
    random = np.random.default_rng(8)
    rows = random.integers(0, 1 << 56, 60_000, dtype=np.uint64) << np.uint64(8)
    search = BucketSearch([Band(7 * i, 7) for i in range(8)] + [Band(56, 8)], 8)
    found = sum(len(a) for a, _, _ in search.pairs(rows, 8))
    assert found < 10
    assert search.comparisons < len(rows) * 1000


def test_a_hot_chunk_is_searched_by_its_other_bits():
    random = np.random.default_rng(4)
    rows = with_neighbours(4000, 3, seed=4) >> np.uint64(16)
    rows = np.unique(rows | random.integers(0, 2, len(rows), dtype=np.uint64) << np.uint64(63))
    assert found(rows, 3, equal_bands(3), shared=16) == brute_force(rows, 3)


@pytest.mark.parametrize("pairs_at_once", [1, 2, 7, 1000])
def test_a_full_output_loses_and_repeats_nothing(pairs_at_once):
    rows = np.arange(300)
    assert found(rows, 4, pairs_at_once=pairs_at_once) == brute_force(rows, 4)


def test_batches_are_bounded():
    search = BucketSearch(WHOLE, 8, pairs_at_once=50)
    sizes = [len(a) for a, _, _ in search.pairs(np.arange(200, dtype=np.uint64), 0)]
    assert sum(sizes) == 200 * 199 // 2
    assert max(sizes) <= 50


def test_one_search_serves_many_buckets():
    search = BucketSearch(WHOLE, 5)
    for rows in (with_neighbours(2000, 5, 1), np.arange(10, dtype=np.uint64), with_neighbours(5000, 5, 2)):
        pairs = sorted(p for batch in search.pairs(rows, 0) for p in zip(*(x.tolist() for x in batch), strict=True))
        assert pairs == brute_force(rows, 5)


@pytest.mark.parametrize("max_distance", [1, 3, 8, 12])
@pytest.mark.parametrize("bands", ["whole", "equal"])
def test_spanning_edges_are_true_pairs_with_the_same_components(max_distance, bands):
    bands = WHOLE if bands == "whole" else equal_bands(max_distance)
    rows = with_neighbours(2000, max_distance, seed=max_distance)
    edges, expected = found(rows, max_distance, bands, shared=1, spanning=True), brute_force(rows, max_distance)
    assert len(set(edges)) == len(edges)
    assert set(edges) <= set(expected)
    assert components(edges) == components(expected)


@pytest.mark.parametrize("radius", [2, 4, 7])
def test_spanning_a_dense_cluster_takes_fewer_edges_than_rows(radius):
    random = np.random.default_rng(radius)
    flips = [random.choice(64, radius, replace=False) for _ in range(1500)]
    rows = np.unique(np.array(flipped(0x5555555555555555, *flips)[1:], np.uint64))
    edges, expected = found(rows, 4, spanning=True), brute_force(rows, 4)
    assert len(edges) < len(rows)
    assert len(set(edges)) == len(edges)
    assert set(edges) <= set(expected)
    assert components(edges) == components(expected)


@pytest.mark.parametrize("parts", [2, 3, 17])
@pytest.mark.parametrize("max_distance", [1, 4, 8])
@pytest.mark.parametrize("bands", ["whole", "equal"])
def test_the_parts_of_a_bucket_together_find_every_pair_once(parts, max_distance, bands):
    rows = rows_of_all_kinds(max_distance, seed=parts)
    bands = WHOLE if bands == "whole" else equal_bands(max_distance)
    for new in (len(rows), 50):
        expected = with_a_new_one(brute_force(rows, max_distance), rows, new)
        assert found(rows, max_distance, bands, shared=1, new=new, parts=parts) == expected
        edges = found(rows, max_distance, bands, shared=1, new=new, parts=parts, spanning=True)
        assert len(set(edges)) == len(edges)
        assert set(edges) <= set(expected)
        assert components(edges) == components(expected)


def test_each_part_of_a_bucket_does_a_share_of_the_work():
    rows = np.random.default_rng(9).integers(0, 1 << 64, 200_000, dtype=np.uint64)
    compared = []
    for part in range(4):
        search = BucketSearch(WHOLE, 6)
        list(search.pairs(rows, 0, part=part, parts=4))
        compared.append(search.comparisons)
    whole = BucketSearch(WHOLE, 6)
    list(whole.pairs(rows, 0))
    assert sum(compared) == pytest.approx(whole.comparisons, rel=0.01)
    assert max(compared) < 1.2 * min(compared)


@pytest.mark.parametrize("max_distance", [4, 8])
def test_bands_report_no_spanning_edge_twice(max_distance):
    rows = rows_of_all_kinds(max_distance, seed=0)
    edges, expected = (
        found(rows, max_distance, equal_bands(max_distance), shared=3, spanning=True),
        brute_force(rows, max_distance),
    )
    assert len(set(edges)) == len(edges)
    assert components(edges) == components(expected)


@pytest.mark.parametrize("seed", range(10))
def test_spanning_by_any_mixture_of_block_widths(seed):
    random = np.random.default_rng(seed)
    max_distance = int(random.integers(1, 9))
    table = always_cutting(max_distance, 64, lambda: int(random.integers(1, 12)))
    rows = np.unique(np.concatenate([with_neighbours(800, max_distance, seed), np.arange(300, dtype=np.uint64)]))
    edges, expected = found(rows, max_distance, table=table, spanning=True), brute_force(rows, max_distance)
    assert len(set(edges)) == len(edges)
    assert set(edges) <= set(expected)
    assert components(edges) == components(expected)


def test_a_chain_is_spanned_from_end_to_end():
    chain = np.array([(1 << 60) - 1 >> i for i in range(60)], np.uint64)
    assert len(components(found(chain, 1, spanning=True))) == 1


def test_partition_sorts_by_the_given_bits_and_keeps_the_order_of_equals():
    rows = np.random.default_rng(0).integers(0, 1 << 64, 5000, dtype=np.uint64)
    out, ends = np.empty_like(rows), np.empty(17, np.int64)
    partition(rows, out, 20, 4, ends)
    keys = (rows >> np.uint64(20)) & np.uint64(15)
    assert out.tolist() == rows[np.argsort(keys, kind="stable")].tolist()
    assert ends[:16].tolist() == np.cumsum(np.bincount(keys.astype(int), minlength=16)).tolist()
