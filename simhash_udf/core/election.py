"""The compiled pass from bytes to fingerprints, over all documents of a batch.

For each document: tokens are split into a scratch buffer, each n-gram (a slice of the buffer) is hashed, equal hashes are
counted in an open-addressing table, and the distinct features vote. Features that occur equally often weigh the same, so
those of small counts vote in bit-sliced counters (plane p holds bit p of 64 counters at once): adding one is a carry that
ripples through two planes on average, in place of 64 additions.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from simhash_udf.core.fold import fixed_weight, weight_shift
from simhash_udf.core.text import split
from simhash_udf.core.unicode import Tables
from simhash_udf.core.xxh64 import xxh64

# In the order of the numbers that the kernels know them by.
WEIGHTINGS = ("tf", "log", "binary")
_TF, _LOG, _BINARY = range(3)
# Features that occur less often than this vote in bit-sliced counters, the others one by one.
_SLICED_COUNTS = 8
_PLANES = 34


@njit(cache=True)
def _weight(count: int, weighting: int) -> float:
    if weighting == _LOG:
        return 1.0 + math.log(count)
    return np.float64(count) if weighting == _TF else 1.0


@njit(cache=True, forceinline=True)
def _followed_by(content: Any, hashed: Any) -> Any:
    """The hash of a sequence that goes on with `hashed`: a round of XXH64, without its second multiplication."""
    content = (content ^ hashed) * np.uint64(0x9E3779B185EBCA87)
    return (content << np.uint64(31)) | (content >> np.uint64(33))


@njit(cache=True)
def _count_features(buffer: Any, starts: Any, grams: int, span: int, gap: int, table: Any, hashes: Any, counts: Any) -> Any:
    """Hash each n-gram and count equal hashes.

    Returns the number of distinct ones, in `hashes` and `counts` by first occurrence, and a hash of all in their order.

    `table` is open addressing with linear probing: 0 for an empty slot, else 1 + the place in `hashes`. The low bits of
    XXH64 are good enough to be the slot.
    """
    mask = np.uint64(len(table) - 1)
    table[:] = 0
    distinct = np.int64(0)
    content = np.uint64(grams)
    for i in range(grams):
        hashed = xxh64(buffer, starts[i], starts[i + span] - gap)
        content = _followed_by(content, hashed)
        slot = np.int64(hashed & mask)
        while True:
            place = np.int64(table[slot])
            if place == 0:
                hashes[distinct] = hashed
                counts[distinct] = 1
                distinct += 1
                table[slot] = distinct
                break
            if hashes[place - 1] == hashed:
                counts[place - 1] += 1
                break
            slot = np.int64(np.uint64(slot + 1) & mask)
    return distinct, content


@njit(cache=True)
def _vote(hashed: Any, weight: int, in_favour: Any) -> None:
    for j in range(64):
        in_favour[j] += -np.int64((hashed >> np.uint64(j)) & np.uint64(1)) & weight


@njit(cache=True, forceinline=True)
def _add(a: Any, b: Any, c: Any) -> Any:
    """The carry and the sum of three bits, in 64 places at once."""
    either = a ^ b
    return (a & b) | (either & c), either ^ c


@njit(cache=True, forceinline=True)
def _ripple(planes: Any, plane: int, carry: Any) -> None:
    """Add 2^plane to the counters of the places where `carry` is set."""
    while carry:
        held = planes[plane]
        planes[plane] = held ^ carry
        carry &= held
        plane += 1


@njit(cache=True)
def _count_votes_of_eights(batch: Any, planes: Any) -> None:
    """Add eight hashes to bit-sliced counters by a tree of adders (Harley and Seal; Warren, Hacker's Delight, 5-1)."""
    ones, twos, fours = planes[0], planes[1], planes[2]
    twos_a, ones = _add(ones, batch[0], batch[1])
    twos_b, ones = _add(ones, batch[2], batch[3])
    fours_a, twos = _add(twos, twos_a, twos_b)
    twos_a, ones = _add(ones, batch[4], batch[5])
    twos_b, ones = _add(ones, batch[6], batch[7])
    fours_b, twos = _add(twos, twos_a, twos_b)
    eights, fours = _add(fours, fours_a, fours_b)
    planes[0], planes[1], planes[2] = ones, twos, fours
    _ripple(planes, 3, eights)


@njit(cache=True)
def _elect(hashes: Any, counts: Any, features: int, weighting: int, planes: Any, in_favour: Any, seen: Any) -> Any:
    """Fold the counted features of one document; `planes`, `in_favour` and `seen` are scratch space.

    Returns its fingerprint, and whether one feature has more than half of the weight.
    """
    in_favour[:] = 0
    seen[:] = 0
    batch = np.empty(8, np.uint64)
    largest, waiting, total = np.int64(1), 0, np.int64(0)
    if weighting != _BINARY:
        largest = np.int64(counts[:features].max())
    shift = weight_shift(_weight(largest, weighting))
    planes[: min(largest + 1, _SLICED_COUNTS)] = 0
    for i in range(features):
        count = np.int64(counts[i])
        if count == 1 or weighting == _BINARY:
            batch[waiting] = hashes[i]
            waiting += 1
            if waiting == 8:
                _count_votes_of_eights(batch, planes[1])
                seen[1] += 8
                waiting = 0
        elif count < _SLICED_COUNTS:
            seen[count] += 1
            _ripple(planes[count], 0, hashes[i])
        else:
            weight = fixed_weight(_weight(count, weighting), shift)
            total += weight
            _vote(hashes[i], weight, in_favour)
    for i in range(waiting):
        _ripple(planes[1], 0, batch[i])
    seen[1] += waiting
    for count in range(1, _SLICED_COUNTS):
        rest = seen[count]
        if rest:
            weight = fixed_weight(_weight(count, weighting), shift)
            total += weight * rest
            plane = 0
            while rest:
                _vote(planes[count, plane], weight << plane, in_favour)
                plane += 1
                rest >>= 1
    # The vote for bit j is in_favour - (total - in_favour).
    fingerprint = np.uint64(0)
    for j in range(64):
        if 2 * in_favour[j] > total:
            fingerprint |= np.uint64(1) << np.uint64(j)
    return fingerprint


@njit(cache=True)
def fingerprint_texts(data: Any, offsets: Any, valid: Any, characters: bool, ngram: int, weighting: int, unicode: Tables) -> Any:
    """What `Folded` has, of UTF-8 texts: fingerprints (uint64), numbers of distinct features (int64, 0 for none), hashes of the
    normalised texts (uint64), and whether one feature occurs more often than all others (bool).

    Text i is `data[offsets[i] : offsets[i + 1]]` where `valid[i]`; `weighting` is a place in `WEIGHTINGS`.
    """
    documents = len(offsets) - 1
    fingerprints, contents = np.zeros(documents, np.uint64), np.zeros(documents, np.uint64)
    features, outweighed = np.zeros(documents, np.int64), np.zeros(documents, np.bool_)
    buffer, starts = np.empty(4096, np.uint8), np.empty(4096, np.int64)
    table, hashes, counts = np.empty(4096, np.int32), np.empty(2048, np.uint64), np.empty(2048, np.int32)
    planes, seen = np.zeros((_SLICED_COUNTS, _PLANES), np.uint64), np.zeros(_SLICED_COUNTS, np.int64)
    in_favour = np.zeros(64, np.int64)
    gap = 0 if characters else 1
    for document in range(documents):
        if not valid[document]:
            continue
        start, end = np.int64(offsets[document]), np.int64(offsets[document + 1])
        count, buffer, starts = split(data, start, end, characters, buffer, starts, unicode)
        if count == 0:
            continue
        span = min(ngram, count)
        grams = count - span + 1
        capacity = 64
        while capacity < 2 * grams:
            capacity *= 2
        if capacity > len(table):
            table = np.empty(capacity, np.int32)
        if grams > len(hashes):
            hashes, counts = np.empty(2 * grams, np.uint64), np.empty(2 * grams, np.int32)
        distinct, content = _count_features(buffer, starts, grams, span, gap, table[:capacity], hashes, counts)
        fingerprints[document] = _elect(hashes, counts, distinct, weighting, planes, in_favour, seen)
        features[document], contents[document] = distinct, content
        outweighed[document] = 2 * np.int64(counts[:distinct].max()) > grams
    return fingerprints, features, contents, outweighed


@njit(cache=True)
def fold_features(data: Any, offsets: Any, weights: Any, lists: Any) -> Any:
    """As `fingerprint_texts`, of lists of weighted features; their hashes do not depend on the order of a list.

    Document i has the features `lists[i]` to `lists[i + 1]`; feature f is `data[offsets[f] : offsets[f + 1]]`, of weight
    `weights[f]`, a checked float64.
    """
    documents = len(lists) - 1
    fingerprints, contents = np.zeros(documents, np.uint64), np.zeros(documents, np.uint64)
    features, outweighed = np.zeros(documents, np.int64), np.zeros(documents, np.bool_)
    bits = weights.view(np.uint64)
    for document in range(documents):
        largest = 0.0
        for i in range(lists[document], lists[document + 1]):
            largest = max(largest, weights[i])
        if largest == 0.0:
            continue
        shift = weight_shift(largest)
        in_favour = np.zeros(64, np.int64)
        total = np.int64(0)
        for i in range(lists[document], lists[document + 1]):
            if weights[i] == 0.0:
                continue
            features[document] += 1
            hashed = xxh64(data, offsets[i], offsets[i + 1])
            weight = fixed_weight(weights[i], shift)
            total += weight
            _vote(hashed, weight, in_favour)
            contents[document] += _followed_by(_followed_by(np.uint64(0), bits[i]), hashed)
        for j in range(64):
            if 2 * in_favour[j] > total:
                fingerprints[document] |= np.uint64(1) << np.uint64(j)
        outweighed[document] = 2 * fixed_weight(largest, shift) > total
    return fingerprints, features, contents, outweighed
