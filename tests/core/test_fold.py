import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from simhash_udf import fold, hamming, votes
from simhash_udf.core.fold import signed
from simhash_udf.errors import InputError, SettingsError

WORKED = [0b10110010, 0b10011100, 0b01110010]


def test_the_worked_example_folds_to_its_fingerprint():
    assert fold(WORKED, [3, 2, 1], width=8) == 0b10110010


def test_the_worked_example_has_the_totals_of_each_position():
    assert votes(WORKED, [3, 2, 1], width=8).tolist() == [4, -4, 2, 6, -2, -2, 2, -6]


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [(0b10110010, 0b10100011, 2), (0b11001010, 0b11001110, 1), (0b11001010, 0b00110101, 8), (-1, 2**64 - 1, 0), (-1, 0, 64)],
)
def test_hamming_distance_of_two_ints(a, b, distance):
    assert hamming(a, b) == hamming(b, a) == distance


def test_hamming_distance_of_arrays_counts_the_top_bit():
    a = np.array([-1, 0, 1 << 62, -(1 << 63)])
    assert hamming(a, 0).tolist() == [64, 0, 1, 1]
    assert hamming(a.view(np.uint64), np.array([-1, -1, -1, -1])).tolist() == [0, 64, 63, 63]


def test_hamming_distance_to_none_is_none():
    assert hamming(None, 5) is None


def test_narrow_signed_arrays_are_refused():
    with pytest.raises(InputError, match="astype"):
        hamming(np.array([-1], np.int8), 0)


@pytest.mark.parametrize("bad", [1.5, True, "x", 1 << 64, -(1 << 63) - 1])
def test_what_is_no_64_bit_number_is_no_hash(bad):
    with pytest.raises(InputError, match=r"hashes\[1\]"):
        fold([1, bad])


@pytest.mark.parametrize("weight", [-1, float("nan"), float("inf"), "much", "1", b"1", True, np.True_, None, 10**400])
def test_a_weight_must_be_finite_and_not_negative(weight):
    with pytest.raises(InputError, match="finite and not negative"):
        fold([1, 2], [1, weight])


@pytest.mark.parametrize("weights", [np.array(["1", "1"]), np.array([True, False]), ["1", "1"], (True, True)])
def test_weights_that_are_text_or_truth_values_are_refused(weights):
    with pytest.raises(InputError, match=r"weights\[0\] is .* a weight must be a number"):
        fold([1, 2], weights)


@pytest.mark.parametrize("kind", [int, float, Decimal, Fraction, np.int8, np.uint64, np.float16, np.float32])
def test_weights_may_be_numbers_of_any_type(kind):
    hashes = [0b10110010, 0b10011100, 0b01110010]
    assert fold(hashes, [kind(3), kind(2), kind(1)], 8) == fold(hashes, [3, 2, 1], 8)


@pytest.mark.parametrize("width", [0, 65, -1, 8.0, True])
def test_a_width_must_be_from_1_to_64(width):
    with pytest.raises(SettingsError, match="from 1 to 64"):
        fold([1], width=width)


def test_each_hash_needs_a_weight():
    with pytest.raises(InputError, match="2 hashes and 1 weights"):
        fold([1, 2], [1])


@pytest.mark.parametrize(("hashes", "weights"), [([], None), ([5], [0]), ([5, 6], [0, 0.0])])
def test_without_a_feature_there_is_no_fingerprint(hashes, weights):
    assert fold(hashes, weights) is None


def test_a_feature_of_weight_zero_has_no_vote():
    assert fold([0b01, 0b10], [1, 0], width=2) == 0b01


def test_a_tie_gives_zero():
    assert fold([0b11, 0b00], width=2) == 0
    # As floats 0.1 + 0.2 is more than 0.3.
    assert fold([1, 1, 0], [0.1, 0.2, 0.3], width=1) == 0


@pytest.mark.parametrize("width", range(1, 65))
def test_every_width_agrees_with_arithmetic_without_bounds(width):
    chance = random.Random(width)
    hashes = [chance.getrandbits(64) for _ in range(9)]
    weights = [chance.randrange(1, 1 << 30) for _ in hashes]
    totals = [sum(w if h >> j & 1 else -w for h, w in zip(hashes, weights, strict=True)) for j in range(width)]
    assert fold(hashes, weights, width) == sum(1 << j for j in range(width) if totals[j] > 0)


def test_neither_the_order_nor_the_scale_of_weights_matters():
    chance = random.Random(3)
    features = [(chance.getrandbits(64), chance.random()) for _ in range(500)]
    expected = fold(*zip(*features, strict=True))
    chance.shuffle(features)
    hashes, weights = zip(*features, strict=True)
    assert fold(hashes, weights) == expected
    for exponent in (-1000, -30, 40, 900):
        assert fold(hashes, [w * 2.0**exponent for w in weights]) == expected


def test_three_million_features_of_one_kind_do_not_overflow():
    hashes = np.full(3_000_000, 0xF0F0, np.uint64)
    assert fold(hashes, np.full(3_000_000, 1e300).tolist()) == 0xF0F0


def test_signed_and_unsigned_hashes_fold_alike():
    hashes = np.array([-1, 5, -(1 << 63)])
    assert fold(hashes) == fold(hashes.tolist()) == fold(hashes.view(np.uint64)) == (1 << 63) + 5
    assert signed((1 << 63) + 5) == -(1 << 63) + 5
