"""Numbers that send a row to a given task: what Spark's hash partitioning makes of them is known."""

from __future__ import annotations


def keys_of_tasks(tasks: int) -> list[int]:
    """For each task, an INT that `DataFrame.repartition(tasks, column)` sends there.

    >>> keys_of_tasks(4)
    [12, 6, 2, 0]
    """
    keys: dict[int, int] = {}
    number = 0
    while len(keys) < tasks:
        keys.setdefault(_murmur3(number) % tasks, number)
        number += 1
    return [keys[task] for task in range(tasks)]


def _murmur3(number: int) -> int:
    """Spark's hash of an INT: Murmur3 x86 32 bit of its four bytes, seed 42 (signed)."""
    mask = 0xFFFFFFFF

    def rotated(word: int, by: int) -> int:
        return (word << by | word >> (32 - by)) & mask

    word = rotated(number * 0xCC9E2D51 & mask, 15) * 0x1B873593 & mask
    word = (rotated(42 ^ word, 13) * 5 + 0xE6546B64) & mask
    word ^= 4
    word = (word ^ word >> 16) * 0x85EBCA6B & mask
    word = (word ^ word >> 13) * 0xC2B2AE35 & mask
    word ^= word >> 16
    return word - (1 << 32) if word >> 31 else word
