"""Weighted hashes -> fingerprint, and the Hamming distance of two fingerprints.

SimHash is an election for each bit (Charikar 2002, "Similarity estimation techniques from rounding algorithms",
section 3): feature i votes +w_i where bit j of its hash is 1 and -w_i where it is 0; bit j of the fingerprint is 1 where
the total is positive. A tie gives 0.

Weights become integers before they vote, so neither the order of features nor that of additions can change a bit: all
weights of one document are multiplied by the power of two that brings the largest into [2^30, 2^31), and rounded half
to even. Whole-number weights below 2^31 stay exact, and a corpus may weigh in millionths or in millions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from simhash_udf.errors import InputError, SettingsError

WEIGHT_BITS = 31
_MASK = (1 << 64) - 1


@njit(cache=True)
def weight_shift(largest: float) -> int:
    """The power of two that brings the largest weight of a document into [2^30, 2^31)."""
    return WEIGHT_BITS - math.frexp(largest)[1]


@njit(cache=True)
def fixed_weight(weight: float, shift: int) -> int:
    """A weight as the integer that votes."""
    return np.int64(np.rint(math.ldexp(weight, shift)))


@njit(cache=True)
def _total_votes(hashes: Any, weights: Any, width: int, shift: int) -> Any:
    totals = np.zeros(width, np.int64)
    for i in range(len(hashes)):
        weight = fixed_weight(weights[i], shift)
        for j in range(width):
            bit = np.int64(hashes[i] >> np.uint64(j)) & 1
            totals[j] += weight if bit else -weight
    return totals


def _checked_hashes(hashes: Any, width: int) -> npt.NDArray[np.uint64]:
    if isinstance(width, bool) or not isinstance(width, (int, np.integer)) or not 1 <= width <= 64:
        raise SettingsError(f"width is {width!r}; it must be a whole number of bits from 1 to 64")
    if isinstance(hashes, np.ndarray) and hashes.dtype.kind in "iu" and hashes.ndim == 1:
        return hashes.astype(np.int64).view(np.uint64) if hashes.dtype.kind == "i" else hashes.astype(np.uint64)
    return np.array([_unsigned(value, f"hashes[{at}]") for at, value in enumerate(hashes)], np.uint64)


def _unsigned(value: Any, name: str) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise InputError(f"{name} is {value!r}; it must be a whole number of 64 bits, signed or unsigned")
    if not -(1 << 63) <= int(value) <= _MASK:
        raise InputError(f"{name} is {value}; it must fit 64 bits, signed or unsigned")
    return int(value) & _MASK


def checked_weights(weights: Any) -> npt.NDArray[np.float64]:
    """Weights as float64.

    Raises:
        InputError: a weight is negative, NaN, infinite, or no number; text such as "1" and a truth value are none.
    """
    try:
        if not (isinstance(weights, np.ndarray) and weights.dtype.kind in "iuf"):
            weights = [as_number(weight, f"weights[{at}]") for at, weight in enumerate(weights)]
        numbers = np.asarray(weights, np.float64)
    except (TypeError, OverflowError):
        raise InputError(f"weights are {weights!r}; each must be a number, finite and not negative") from None
    bad = ~(np.isfinite(numbers) & (numbers >= 0))
    if bad.any():
        at = int(np.argmax(bad))
        raise InputError(
            f"weights[{at}] is {numbers[at]}; a weight must be finite and not negative: drop the feature or give it "
            "the weight 0, which leaves it without a vote"
        )
    return numbers


def as_number(weight: Any, name: str) -> float:
    """A weight of any type of numbers as a float.

    Raises:
        InputError: it is no number; text such as "1" and a truth value are none.
    """
    if isinstance(weight, (bool, np.bool_)) or not isinstance(weight, (Real, Decimal)):
        raise InputError(f"{name} is {weight!r}; a weight must be a number, finite and not negative: convert it before")
    return float(weight)


def votes(hashes: Sequence[int], weights: Sequence[float] | None = None, width: int = 64) -> npt.NDArray[np.float64]:
    """The total vote for each bit, most significant bit first: float64 of shape (width,).

    Arguments and errors as for `fold`.

    >>> votes([0b10110010, 0b10011100, 0b01110010], [3, 2, 1], width=8).tolist()
    [4.0, -4.0, 2.0, 6.0, -2.0, -2.0, 2.0, -6.0]
    """
    numbers, given = _checked(hashes, weights, width)
    if not given.any():
        return np.zeros(width)
    shift = weight_shift(float(given.max()))
    totals = _total_votes(numbers, given, width, shift)
    return np.ldexp(totals[::-1].astype(np.float64), -shift)


def _checked(hashes: Any, weights: Any, width: int) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.float64]]:
    numbers = _checked_hashes(hashes, width)
    given = np.ones(len(numbers)) if weights is None else checked_weights(weights)
    if given.shape != numbers.shape:
        raise InputError(f"{len(numbers)} hashes and {given.size} weights were given; each hash needs one weight")
    return numbers, given


def fold(hashes: Sequence[int], weights: Sequence[float] | None = None, width: int = 64) -> int | None:
    """Fold weighted hashes into one fingerprint: a non-negative int below 2^width, or None without any feature.

    Args:
        hashes: whole numbers of up to 64 bits, signed or unsigned (sequence or NumPy array); the low `width` bits vote.
        weights: one for each hash, finite and not negative; 1 each where not given. A weight of 0 has no vote.
        width: bits of the fingerprint, 1 to 64.

    Raises:
        SettingsError: `width` is not from 1 to 64.
        InputError: a hash or a weight is not what it must be, or their numbers differ.

    >>> format(fold([0b10110010, 0b10011100, 0b01110010], [3, 2, 1], width=8), "08b")
    '10110010'
    >>> fold([]) is None
    True
    """
    numbers, given = _checked(hashes, weights, width)
    if not given.any():
        return None
    totals = _total_votes(numbers, given, width, weight_shift(float(given.max())))
    return sum(1 << j for j in range(width) if totals[j] > 0)


def signed(fingerprint: int) -> int:
    """A 64-bit fingerprint as two's complement, the BIGINT that tables hold.

    >>> signed(0xFFFFFFFFFFFFFFFF)
    -1
    """
    return fingerprint - (1 << 64) if fingerprint >> 63 else fingerprint


def hamming(a: Any, b: Any) -> Any:
    """In how many of 64 bits two fingerprints differ.

    Python ints may be signed or unsigned. NumPy arrays (64-bit, or unsigned of any width) give an int64 array. Spark
    columns, or the names of columns, give a Column; they must be BIGINT, as fingerprints are. None gives None.

    Raises:
        InputError: an argument is none of these, or does not fit 64 bits.

    >>> hamming(0b10110010, 0b10100011), hamming(-1, 0xFFFFFFFFFFFFFFFF), hamming(-1, 0)
    (2, 0, 64)
    >>> hamming(np.array([1, 2, 3]), 0).tolist()
    [1, 1, 2]
    """
    if any(isinstance(x, str) or hasattr(x, "bitwiseXOR") for x in (a, b)):
        return _hamming_columns(a, b)
    if a is None or b is None:
        return None
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return _bit_count(_as_uint64(a) ^ _as_uint64(b))
    return (_unsigned(a, "a") ^ _unsigned(b, "b")).bit_count()


def _as_uint64(value: Any) -> npt.NDArray[np.uint64]:
    if not isinstance(value, np.ndarray):
        return np.array(_unsigned(value, "a fingerprint"), np.uint64)
    if value.dtype.kind == "u" or value.dtype == np.int64:
        return value.astype(np.uint64)
    raise InputError(
        f"an array of {value.dtype} was given; fingerprints must be int64 or unsigned, since a narrower signed number "
        "would be sign-extended and its distance counted wrong: convert it with .astype('int64')"
    )


def _bit_count(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.int64]:
    # Bits counted in parallel (Warren, Hacker's Delight, section 5-1): numpy.bitwise_count needs NumPy 2.
    m1, m2, m4 = np.uint64(0x5555555555555555), np.uint64(0x3333333333333333), np.uint64(0x0F0F0F0F0F0F0F0F)
    words = words - ((words >> np.uint64(1)) & m1)
    words = (words & m2) + ((words >> np.uint64(2)) & m2)
    words = (words + (words >> np.uint64(4))) & m4
    with np.errstate(over="ignore"):
        return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


def _hamming_columns(a: Any, b: Any) -> Any:
    from pyspark.sql import functions as F

    def column(value: Any) -> Any:
        if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
            return F.lit(signed(_unsigned(value, "a fingerprint")))
        return F.col(value) if isinstance(value, str) else value

    # Spark's bit_count sign-extends narrower types and then counts wrong, so both sides must be BIGINT.
    return F.bit_count(column(a).cast("bigint").bitwiseXOR(column(b).cast("bigint")))
