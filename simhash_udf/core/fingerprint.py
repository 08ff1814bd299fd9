"""Documents -> fingerprints: the public doors to the compiled pass, for Arrow arrays and for a person at a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import xxhash

from simhash_udf.core.election import WEIGHTINGS, fingerprint_texts, fold_features
from simhash_udf.core.fold import checked_weights, fold
from simhash_udf.core.text import encoded
from simhash_udf.core.unicode import tables
from simhash_udf.core.xxh64 import SEED
from simhash_udf.errors import InputError, SettingsError

UNITS = ("word", "char")
DEFAULT_UNIT, DEFAULT_NGRAM, DEFAULT_WEIGHTING = "word", 2, "binary"
LARGEST_NGRAM = 100


class Folded(NamedTuple):
    """What the compiled pass makes of a batch of documents: Arrow arrays of its length.

    fingerprint: int64, two's complement, null where a document has no feature.
    features: int32, how many distinct features it has; 0 for none.
    content: int64, a hash of the normalised text, or of the weighted features: equal where these are equal, and else but for
        a chance of 2^-64. Null without features.
    low_information: bool, whether one feature occurs more often than all others together, or of given features weighs more.
        Null without features.
    sketch: list of int64, of `core.sketch.sketch_batch`; None where nobody asked for it.
    """

    fingerprint: pa.Array
    features: pa.Array
    content: pa.Array
    low_information: pa.Array
    sketch: pa.Array | None = None


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
) -> Folded:
    """Fingerprints of an Arrow array of texts, and what else the pass over them tells.

    Args:
        texts: string, large_string, string_view, binary (UTF-8), dictionary of these, or null; any offset.
        unit: "word" (tokens) or "char" (characters of the normalised text).
        ngram: how many consecutive units make a feature. A text of fewer has one feature: all of it.
        weighting: "tf" (occurrences), "log" (1 + ln occurrences) or "binary" (1).

    A null text, and one without tokens, has no feature.

    Raises:
        SettingsError: unit, ngram or weighting is unknown.
        InputError: `texts` is an array of another type.
    """
    check_text_settings(unit, ngram, weighting)
    data, offsets, valid = string_buffers(texts)
    return _as_arrow(*fingerprint_texts(data, offsets, valid, unit == "char", ngram, WEIGHTINGS.index(weighting), tables()))


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
        chunks = [fingerprint_batch(chunk, unit=unit, ngram=ngram, weighting=weighting).fingerprint for chunk in texts.chunks]
        return pa.chunked_array(chunks, pa.int64())
    return fingerprint_batch(texts, unit=unit, ngram=ngram, weighting=weighting).fingerprint


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
    value = fingerprint_batch(given, unit=unit, ngram=ngram, weighting=weighting).fingerprint[0].as_py()
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


def fingerprint_features_batch(features: pa.Array) -> Folded:
    """Fingerprints of an Arrow array of weighted features, and what else the pass over them tells.

    Args:
        features: list<struct<string, number>> or map<string, number>, the feature first and its weight second.

    A feature of weight 0 is none, and does not count.

    Raises:
        InputError: the type is another one (text such as "1" is no number), a feature or a weight is null, or a weight is
            negative, NaN or infinite.
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
    if not (pa.types.is_integer(weights.type) or pa.types.is_floating(weights.type) or pa.types.is_decimal(weights.type)):
        raise InputError(f"weights are {weights.type}; a weight must be a whole number, a decimal or a float: cast it before")
    numbers = checked_weights(weights.cast(pa.float64()).to_numpy(zero_copy_only=False))
    data, offsets, _ = string_buffers(names)
    fingerprints, counts, contents, outweighed = fold_features(data, offsets, numbers, lists - low)
    # A null list has no entries, though its offsets may span some.
    counts[~_validity(features)] = 0
    return _as_arrow(fingerprints, counts, contents, outweighed)


def _as_arrow(fingerprints: Any, features: Any, contents: Any, outweighed: Any) -> Folded:
    none = features == 0
    return Folded(
        pa.array(fingerprints.view(np.int64), mask=none),
        pa.array(features.astype(np.int32)),
        pa.array(contents.view(np.int64), mask=none),
        pa.array(outweighed, mask=none),
    )


def _is_string(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    )


def _validity(array: pa.Array) -> Any:
    if array.null_count == 0:
        return np.ones(len(array), np.bool_)
    return np.array(array.is_valid().to_numpy(zero_copy_only=False), np.bool_)


def string_buffers(array: pa.Array) -> tuple[Any, Any, Any]:
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
