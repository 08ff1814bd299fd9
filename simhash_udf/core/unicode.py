"""The frozen character tables of fingerprint version 1 (Unicode 14.0).

Python releases carry different Unicode data, so the tables are shipped (`tools/build_unicode_tables.py` made them)
and a fingerprint does not depend on the Python that computes it. A code point that Unicode 14.0 does not know
separates tokens.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

UNICODE_VERSION = "14.0.0"

# Character classes, the low three bits of `Tables.flags`.
SEPARATOR, WORD, MARK, SOLO, DROPPED = range(5)
CLASS_MASK = 7
# A character that no earlier character can combine with: normalisation may start afresh at it.
BOUNDARY = 8
# A BOUNDARY that NFKC leaves as it is, unless a combining character follows.
SIMPLE = 16
# Case folding changes the character.
FOLDS = 32

_BLOCK_SHIFT, _BLOCK_MASK = 7, 127

HANGUL_FIRST, HANGUL_LAST = 0xAC00, 0xD7A3
_L, _V, _T, _L_COUNT, _V_COUNT, _T_COUNT = 0x1100, 0x1161, 0x11A7, 19, 21, 28


class Tables(NamedTuple):
    """Two-stage tables: `x[index[c >> 7] << 7 | c & 127]` is property `x` of code point `c`."""

    index: npt.NDArray[np.uint16]
    flags: npt.NDArray[np.uint8]
    combining: npt.NDArray[np.uint8]
    folding: npt.NDArray[np.int32]
    decomposition: npt.NDArray[np.int32]
    fold_data: npt.NDArray[np.int32]
    decomposition_data: npt.NDArray[np.int32]
    composite_keys: npt.NDArray[np.int64]
    composite_values: npt.NDArray[np.int32]


@cache
def tables() -> Tables:
    """The tables, read once a process.

    >>> row = tables()
    >>> int(row.flags[row.index[ord("a") >> 7] << 7 | ord("a") & 127]) & CLASS_MASK == WORD
    True
    """
    with files("simhash_udf.core").joinpath("unicode_tables.npz").open("rb") as file, np.load(file) as stored:
        return Tables(**{name: stored[name] for name in Tables._fields})


@njit(cache=True, forceinline=True)
def row_of(code: int, unicode: Tables) -> Any:
    """Where in the second stage of the tables the properties of a code point stand."""
    return (np.int64(unicode.index[code >> _BLOCK_SHIFT]) << _BLOCK_SHIFT) | (code & _BLOCK_MASK)


@njit(cache=True)
def _composite(first: int, second: int, unicode: Tables) -> int:
    """The code point that two others compose to, or -1."""
    if _L <= first < _L + _L_COUNT and _V <= second < _V + _V_COUNT:
        return HANGUL_FIRST + ((first - _L) * _V_COUNT + second - _V) * _T_COUNT
    if HANGUL_FIRST <= first <= HANGUL_LAST and _T < second < _T + _T_COUNT:
        return first + second - _T if (first - HANGUL_FIRST) % _T_COUNT == 0 else -1
    key = (np.int64(first) << 21) | second
    at = np.searchsorted(unicode.composite_keys, key)
    if at < len(unicode.composite_keys) and unicode.composite_keys[at] == key:
        return np.int64(unicode.composite_values[at])
    return -1


@njit(cache=True)
def _decompose(codes: Any, count: int, unicode: Tables) -> Any:
    """Full compatibility decomposition of `codes[:count]`, not yet in canonical order."""
    out = np.empty(4 * count + 32, np.int32)
    size = 0
    for i in range(count):
        code = codes[i]
        at = np.int64(unicode.decomposition[row_of(code, unicode)])
        length = np.int64(unicode.decomposition_data[at]) if at else 3
        if size + length > len(out):
            grown = np.empty(2 * len(out) + length, np.int32)
            grown[:size] = out[:size]
            out = grown
        if HANGUL_FIRST <= code <= HANGUL_LAST:
            offset = code - HANGUL_FIRST
            out[size] = _L + offset // (_V_COUNT * _T_COUNT)
            out[size + 1] = _V + offset // _T_COUNT % _V_COUNT
            size += 2
            if offset % _T_COUNT:
                out[size] = _T + offset % _T_COUNT
                size += 1
        elif at:
            out[size : size + length] = unicode.decomposition_data[at + 1 : at + 1 + length]
            size += length
        else:
            out[size] = code
            size += 1
    return out[:size]


@njit(cache=True)
def _order_canonically(codes: Any, unicode: Tables) -> None:
    """Sort each run of combining characters by combining class, stable, in place.

    A counting sort for long runs, since a document of combining characters alone must not cost its square.
    """
    start = 0
    while start < len(codes):
        if unicode.combining[row_of(codes[start], unicode)] == 0:
            start += 1
            continue
        end = start
        while end < len(codes) and unicode.combining[row_of(codes[end], unicode)] != 0:
            end += 1
        if end - start <= 16:
            for i in range(start + 1, end):
                code, rank, j = codes[i], unicode.combining[row_of(codes[i], unicode)], i
                while j > start and unicode.combining[row_of(codes[j - 1], unicode)] > rank:
                    codes[j] = codes[j - 1]
                    j -= 1
                codes[j] = code
        else:
            run = codes[start:end].copy()
            place = np.zeros(257, np.int64)
            for code in run:
                place[np.int64(unicode.combining[row_of(code, unicode)]) + 1] += 1
            place = np.cumsum(place)
            for code in run:
                rank = unicode.combining[row_of(code, unicode)]
                codes[start + place[rank]] = code
                place[rank] += 1
        start = end


@njit(cache=True)
def normalise(codes: Any, count: int, unicode: Tables) -> Any:
    """NFKC of `codes[:count]` (int32 code points), for any text that starts at a BOUNDARY.

    Unicode Standard Annex 15, normalization form KC: decompose, order canonically, compose.
    """
    decomposed = _decompose(codes, count, unicode)
    _order_canonically(decomposed, unicode)
    size = 0
    starter = -1
    last_combining = 0
    for code in decomposed:
        combining = np.int64(unicode.combining[row_of(code, unicode)])
        adjacent = starter == size - 1
        if starter >= 0 and (adjacent or (last_combining != 0 and last_combining < combining)):
            composite = _composite(decomposed[starter], code, unicode)
            if composite >= 0:
                decomposed[starter] = composite
                continue
        if combining == 0:
            starter = size
        last_combining = combining
        decomposed[size] = code
        size += 1
    return decomposed[:size]
