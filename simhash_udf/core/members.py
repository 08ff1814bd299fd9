"""Sets of fingerprints: what is left of some without others."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)  # Knuth's multiplicative hashing: 2^64 over the golden ratio


@njit(cache=True)
def _fill(others: Any, slots: Any, used: Any, shift: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for i in range(len(others)):
        at = (others[i] * _MULTIPLIER) >> shift
        while used[at] and slots[at] != others[i]:
            at = (at + np.uint64(1)) & mask
        slots[at], used[at] = others[i], True


@njit(cache=True)
def _keep(rows: Any, slots: Any, used: Any, shift: Any, out: Any) -> int:
    mask, kept = np.uint64(len(slots) - 1), 0
    for i in range(len(rows)):
        row = rows[i]
        at = (row * _MULTIPLIER) >> shift
        while used[at] and slots[at] != row:
            at = (at + np.uint64(1)) & mask
        if not used[at]:
            out[kept] = row
            kept += 1
    return kept


class Members:
    """A set of fingerprints, in an open-addressing table of at most half its slots.

    Args:
        rows: uint64 of shape (n,); repetitions are nothing new.

    >>> Members(np.array([3, 5], np.uint64)).removed_from(np.array([1, 3, 4, 5, 3], np.uint64))
    array([1, 4], dtype=uint64)
    """

    def __init__(self, rows: npt.NDArray[np.uint64]) -> None:
        bits = max(1, (2 * len(rows)).bit_length())
        self._slots, self._used = np.zeros(1 << bits, np.uint64), np.zeros(1 << bits, np.bool_)
        self._shift = np.uint64(64 - bits)
        _fill(rows, self._slots, self._used, self._shift)

    def removed_from(self, rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """The rows that are no members, in their order."""
        out = np.empty_like(rows)
        return out[: _keep(rows, self._slots, self._used, self._shift, out)]
