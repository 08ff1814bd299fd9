"""Open-addressing tables of 64-bit keys: which of them are there, and what belongs to each."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]

SLICE = 1 << 18  # keys that get their numbers at once


@njit(cache=True, forceinline=True)
def mix(key: Any, seed: Any) -> Any:
    """SplitMix64's finalizer: each seed permutes the keys in another way, so two keys never get one value."""
    bits = np.uint64(key) + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))


@njit(cache=True)
def _rebuild(slots: Any, keys: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for i in range(len(keys)):
        at = mix(keys[i], 0) & mask
        while slots[at] != 0:
            at = (at + np.uint64(1)) & mask
        slots[at] = i + 1


@njit(cache=True)
def _number(slots: Any, keys: Any, count: int, wanted: Any, numbers: Any) -> int:
    """Numbers of the wanted keys; new ones get the next. Returns how many keys there are then."""
    mask = np.uint64(len(slots) - 1)
    for i in range(len(wanted)):
        at = mix(wanted[i], 0) & mask
        while slots[at] != 0 and keys[slots[at] - 1] != wanted[i]:
            at = (at + np.uint64(1)) & mask
        if slots[at] == 0:
            keys[count] = wanted[i]
            count += 1
            slots[at] = count
        numbers[i] = slots[at] - 1
    return count


@njit(cache=True)
def _find_numbers(slots: Any, keys: Any, wanted: Any, numbers: Any) -> None:
    mask = np.uint64(len(slots) - 1)
    for i in range(len(wanted)):
        at = mix(wanted[i], 0) & mask
        while slots[at] != 0 and keys[slots[at] - 1] != wanted[i]:
            at = (at + np.uint64(1)) & mask
        numbers[i] = slots[at] - 1


class Numbering:
    """Numbers 0, 1, 2 ... for int64 keys in the order in which they come; at most 2^31 - 1.

    >>> numbering = Numbering(np.array([7, 5, 7]))
    >>> numbering.find(np.array([5, 6, 7])).tolist(), numbering.keys.tolist()
    ([1, -1, 0], [7, 5])
    """

    def __init__(self, keys: Int64s | None = None) -> None:
        self._slots: Int32s = np.zeros(1 << 12, np.int32)
        self._keys: Int64s = np.empty(1 << 11, np.int64)
        self.count = 0
        if keys is not None:
            for start in range(0, len(keys), SLICE):
                self.number(keys[start : start + SLICE])

    @property
    def capacity(self) -> int:
        """Keys that have room before the table grows."""
        return len(self._keys)

    @property
    def keys(self) -> Int64s:
        """All keys, in the order of their numbers."""
        return self._keys[: self.count]

    def number(self, wanted: Int64s) -> Int32s:
        """The number of each key, given to it where it has none; `wanted` must be a small part of all."""
        most = self.count + len(wanted)
        if most > len(self._keys):
            # Slots are at least half empty, so that probes stay short.
            size = 1 << (most - 1).bit_length()
            keys = np.empty(size, np.int64)
            keys[: self.count] = self.keys
            self._keys = keys
            self._slots = np.zeros(2 * size, np.int32)
            _rebuild(self._slots, self.keys)
        numbers = np.empty(len(wanted), np.int32)
        self.count = int(_number(self._slots, self._keys, self.count, wanted, numbers))
        return numbers

    def find(self, wanted: Int64s) -> Int32s:
        """The number of each key, -1 where it has none."""
        numbers = np.empty(len(wanted), np.int32)
        _find_numbers(self._slots, self._keys, wanted, numbers)
        return numbers


class Lookup:
    """Values by int64 keys; ValueError where a key comes twice.

    >>> Lookup(np.array([5, 7]), np.array([1, 2])).get(np.array([7, 8]), np.array([0, 0])).tolist()
    [2, 0]
    """

    def __init__(self, keys: Int64s, values: Int64s) -> None:
        self._numbering = Numbering(keys)
        if self._numbering.count < len(keys):
            raise ValueError(f"of {len(keys):,} keys only {self._numbering.count:,} are distinct")
        self._values = np.append(values, 0)

    def get(self, keys: Int64s, default: Int64s | None = None) -> Int64s:
        """The value of each key, or the default beside it; KeyError where a key is missing and there is no default."""
        at = self._numbering.find(keys)
        missing = at < 0
        if default is None and missing.any():
            raise KeyError(int(keys[missing][0]))
        return self._values[at] if default is None else np.where(missing, default, self._values[at])
