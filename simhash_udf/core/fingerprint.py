"""Documents -> fingerprints: one compiled pass over an Arrow array of texts, or of weighted features.

For each document: tokens are split into a scratch buffer, each n-gram (a slice of the buffer) is hashed, equal hashes are
counted in an open-addressing table, and the distinct features vote. Features that occur equally often weigh the same, so
those of small counts vote in bit-sliced counters (plane p holds bit p of 64 counters at once): adding one is a carry that
ripples through two planes on average, in place of 64 additions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash
from numba import njit

from simhash_udf.core.fold import checked_weights, fixed_weight, fold, weight_shift
from simhash_udf.core.text import encoded, split
from simhash_udf.core.unicode import Tables, tables
from simhash_udf.core.xxh64 import SEED, xxh64
from simhash_udf.errors import InputError, SettingsError

UNITS = ("word", "char")
WEIGHTINGS = ("tf", "log", "binary")
DEFAULT_UNIT, DEFAULT_NGRAM, DEFAULT_WEIGHTING = "word", 2, "log"
LARGEST_NGRAM = 100

_TF, _LOG, _BINARY = range(3)
# Features that occur less often than this vote in bit-sliced counters, the others one by one.
_SLICED_COUNTS = 8
_PLANES = 34


@njit(cache=True)
def _weight(count: int, weighting: int) -> float:
    if weighting == _LOG:
        return 1.0 + math.log(count)
    return np.float64(count) if weighting == _TF else 1.0


@njit(cache=True)
def _count_features(buffer: Any, starts: Any, grams: int, span: int, gap: int, table: Any, hashes: Any, counts: Any) -> int:
    """Hash each n-gram and count equal hashes; the number of distinct ones, in `hashes` and `counts` by first occurrence.

    `table` is open addressing with linear probing: 0 for an empty slot, else 1 + the place in `hashes`. The low bits of
    XXH64 are good enough to be the slot.
    """
    mask = np.uint64(len(table) - 1)
    table[:] = 0
    distinct = np.int64(0)
    for i in range(grams):
        hashed = xxh64(buffer, starts[i], starts[i + span] - gap)
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
    return distinct


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
    """Fold the counted features of one document; `planes`, `in_favour` and `seen` are scratch space."""
    in_favour[:] = 0
    seen[:] = 0
    batch = np.empty(8, np.uint64)
    largest, waiting, total = np.int64(1), 0, np.int64(0)
    if weighting != _BINARY:
        for i in range(features):
            largest = max(largest, np.int64(counts[i]))
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
def _fingerprint_texts(data: Any, offsets: Any, valid: Any, characters: bool, ngram: int, weighting: int, unicode: Tables) -> Any:
    documents = len(offsets) - 1
    fingerprints = np.zeros(documents, np.uint64)
    features = np.zeros(documents, np.int64)
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
        distinct = _count_features(buffer, starts, grams, span, gap, table[:capacity], hashes, counts)
        fingerprints[document] = _elect(hashes, counts, distinct, weighting, planes, in_favour, seen)
        features[document] = distinct
    return fingerprints, features


@njit(cache=True)
def _fingerprint_features(data: Any, offsets: Any, weights: Any, lists: Any) -> Any:
    documents = len(lists) - 1
    fingerprints = np.zeros(documents, np.uint64)
    features = np.zeros(documents, np.int64)
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
        for j in range(64):
            if 2 * in_favour[j] > total:
                fingerprints[document] |= np.uint64(1) << np.uint64(j)
    return fingerprints, features


def check_text_settings(unit: str, ngram: int, weighting: str) -> None:
    """Raise SettingsError unless the settings name features that exist."""
    if unit not in UNITS:
        raise SettingsError(f"unit is {unit!r}; it must be one of {', '.join(UNITS)}")
    if weighting not in WEIGHTINGS:
        raise SettingsError(f"weighting is {weighting!r}; it must be one of {', '.join(WEIGHTINGS)}")
    if isinstance(ngram, bool) or not isinstance(ngram, int) or not 1 <= ngram <= LARGEST_NGRAM:
        raise SettingsError(f"ngram is {ngram!r}; it must be a whole number from 1 to {LARGEST_NGRAM}")


def fingerprint_batch(
    texts: pa.Array, *, unit: str = DEFAULT_UNIT, ngram: int = DEFAULT_NGRAM, weighting: str = DEFAULT_WEIGHTING
) -> tuple[pa.Array, pa.Array]:
    """Fingerprints and numbers of distinct features of an Arrow array of texts.

    Args:
        texts: string, large_string, string_view, binary (UTF-8), dictionary of these, or null; any offset.
        unit: "word" (tokens) or "char" (characters of the normalised text).
        ngram: how many consecutive units make a feature. A text of fewer has one feature: all of it.
        weighting: "tf" (occurrences), "log" (1 + ln occurrences) or "binary" (1).

    Returns:
        int64 array, two's complement, null for null texts and texts without tokens; int32 array, 0 for those.

    Raises:
        SettingsError: unit, ngram or weighting is unknown.
        InputError: `texts` is an array of another type.
    """
    check_text_settings(unit, ngram, weighting)
    data, offsets, valid = _string_buffers(texts)
    fingerprints, features = _fingerprint_texts(
        data, offsets, valid, unit == "char", ngram, WEIGHTINGS.index(weighting), tables()
    )
    return _as_arrow(fingerprints, features)


def fingerprint_array(
    texts: pa.Array | pa.ChunkedArray,
    *,
    unit: str = DEFAULT_UNIT,
    ngram: int = DEFAULT_NGRAM,
    weighting: str = DEFAULT_WEIGHTING,
) -> pa.Array | pa.ChunkedArray:
    """Fingerprints of an Arrow array of texts: int64 of the same length, null where a document has no feature.

    Arguments and errors as for `fingerprint_batch`; a ChunkedArray gives a ChunkedArray.

    >>> fingerprint_array(pa.array(["a small text", None, "..."])).to_pylist()
    [-4581849670827566640, None, None]
    """
    if isinstance(texts, pa.ChunkedArray):
        chunks = [fingerprint_batch(chunk, unit=unit, ngram=ngram, weighting=weighting)[0] for chunk in texts.chunks]
        return pa.chunked_array(chunks, pa.int64())
    return fingerprint_batch(texts, unit=unit, ngram=ngram, weighting=weighting)[0]


def fingerprint_text(
    text: str | None, *, unit: str = DEFAULT_UNIT, ngram: int = DEFAULT_NGRAM, weighting: str = DEFAULT_WEIGHTING
) -> int | None:
    """The 64-bit fingerprint of one text: a non-negative int, or None for a text without tokens (or for None).

    Arguments and errors as for `fingerprint_batch`.

    >>> format(fingerprint_text("The quick brown fox"), "016x")
    'd8e4e337ac2568b5'
    >>> fingerprint_text("THE  quick, brown fox!") == fingerprint_text("the quick brown fox")
    True
    """
    if text is not None and not isinstance(text, str):
        raise InputError(f"a {type(text).__name__} was given; a text must be a str: decode bytes first")
    given = pa.array([None if text is None else encoded(text)], pa.binary())
    value = fingerprint_batch(given, unit=unit, ngram=ngram, weighting=weighting)[0][0].as_py()
    return None if value is None else value & ((1 << 64) - 1)


def fingerprint_features(features: Mapping[str, float] | Iterable[tuple[str, float]] | None) -> int | None:
    """The 64-bit fingerprint of weighted features: a non-negative int, or None where no weight is above 0.

    Args:
        features: feature -> weight, or pairs of them. A feature given twice votes twice.

    Raises:
        InputError: a feature is no str, or a weight is negative, NaN, infinite or no number.

    >>> fingerprint_features({"red": 2, "green": 1}) == fingerprint_features([("green", 0.5), ("red", 1.0)])
    True
    """
    if features is None:
        return None
    pairs = list(features.items() if isinstance(features, Mapping) else features)
    for feature, _ in pairs:
        if not isinstance(feature, str):
            raise InputError(f"a feature is {feature!r}; it must be a str")
    weights = checked_weights([weight for _, weight in pairs])
    return fold([xxhash.xxh64_intdigest(encoded(feature), SEED) for feature, _ in pairs], weights.tolist())


def fingerprint_features_batch(features: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Fingerprints and numbers of features of an Arrow array of weighted features.

    Args:
        features: list<struct<string, number>> or map<string, number>, the feature first and its weight second.

    Returns:
        int64 array, two's complement, null for null rows and rows without a weight above 0; int32 array of the
        numbers of features with a weight above 0.

    Raises:
        InputError: the type is another one, a feature or a weight is null, or a weight is negative, NaN or infinite.
    """
    if not (pa.types.is_list(features.type) or pa.types.is_large_list(features.type) or pa.types.is_map(features.type)):
        raise InputError(f"features are {features.type}; they must be array<struct<feature, weight>> or map<feature, weight>")
    lists = np.asarray(features.offsets, np.int64)
    entries = features.values if not pa.types.is_map(features.type) else None
    if entries is None:
        names, weights = features.keys, features.items
        low, high = int(lists[0]), int(lists[-1])
        names, weights = names.slice(low, high - low), weights.slice(low, high - low)
    elif pa.types.is_struct(entries.type) and entries.type.num_fields == 2:
        low, high = int(lists[0]), int(lists[-1])
        entries = entries.slice(low, high - low)
        if entries.null_count:
            raise InputError("a feature is null; drop it before")
        names, weights = entries.flatten()
    else:
        raise InputError(f"features are arrays of {entries.type}; each must be a struct of a feature and its weight")
    if not _is_string(names.type):
        raise InputError(f"features are {names.type}; a feature must be a string")
    if names.null_count or weights.null_count:
        raise InputError("a feature or a weight is null; drop it, or give the feature the weight 0")
    numbers = checked_weights(weights.cast(pa.float64()).to_numpy(zero_copy_only=False))
    data, offsets, _ = _string_buffers(names)
    fingerprints, counts = _fingerprint_features(data, offsets, numbers, lists - low)
    # A null list has no entries, though its offsets may span some.
    counts[~_validity(features)] = 0
    return _as_arrow(fingerprints, counts)


def _as_arrow(fingerprints: Any, features: Any) -> tuple[pa.Array, pa.Array]:
    return pa.array(fingerprints.view(np.int64), mask=features == 0), pa.array(features.astype(np.int32))


def _is_string(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _validity(array: pa.Array) -> Any:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def _string_buffers(array: pa.Array) -> tuple[Any, Any, Any]:
    """The bytes, the int64 offsets into them and the validity of a string array, without copying the bytes."""
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if pa.types.is_null(array.type):
        array = array.cast(pa.string())
    if not _is_string(array.type):
        if "view" not in str(array.type):
            raise InputError(f"texts are {array.type}; they must be strings: cast the column first")
        array = array.cast(pa.large_string())
    large = pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)
    _, offset_buffer, data_buffer = array.buffers()
    if len(array) == 0 or offset_buffer is None:
        return _read_only(np.zeros(1, np.uint8)), np.zeros(len(array) + 1, np.int64), _validity(array)
    offsets = np.frombuffer(offset_buffer, np.int64 if large else np.int32)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None and data_buffer.size else np.zeros(1, np.uint8)
    return _read_only(data), offsets.astype(np.int64), _validity(array)


def _read_only(data: Any) -> Any:
    """Whatever the buffer is, so that Numba compiles for one kind of array."""
    view = data.view()
    view.flags.writeable = False
    return view
