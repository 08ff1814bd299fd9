"""Cutting a cluster so that every document is near the one that is kept for it."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit

from simhash_udf.core.compare import bit_count


@njit(cache=True)
def _lead(fingerprints: Any, begins: Any, radius: int, leaders: Any) -> Any:
    heads = np.empty(len(fingerprints), np.uint64)
    places = np.empty(len(fingerprints), np.int64)
    count = 0
    for i in range(len(fingerprints)):
        if begins[i]:
            count = 0
        leader = np.int64(-1)
        for j in range(count):
            if np.int64(bit_count(heads[j] ^ fingerprints[i])) <= radius:
                leader = places[j]
                break
        if leader < 0:
            heads[count], places[count] = fingerprints[i], i
            count += 1
            leader = i
        leaders[i] = leader


def lead(fingerprints: npt.NDArray[np.uint64], begins: npt.NDArray[np.bool_], radius: int) -> npt.NDArray[np.int64]:
    """For each fingerprint the place of its leader, the first one within the radius that is a leader, or its own.

    Args:
        fingerprints: uint64, those of a cluster after one another, the one to be kept first.
        begins: bool, of the same length: where a cluster begins.
        radius: bits, 0 to 64.

    The first of a cluster is a leader, and takes all within the radius with it; of the others the first is the next; and so on
    (the leader algorithm: Hartigan 1975, "Clustering Algorithms", chapter 3). It costs a comparison of each fingerprint with the
    leaders before its own.

    >>> cluster = np.array([0b0000, 0b0001, 0b0011, 0b0111], np.uint64)
    >>> lead(cluster, np.array([True, False, False, False]), 1).tolist()
    [0, 0, 2, 2]
    """
    leaders = np.empty(len(fingerprints), np.int64)
    _lead(fingerprints, begins, radius, leaders)
    return leaders
