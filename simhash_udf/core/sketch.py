"""One-bit minwise sketches: the overlap of two texts' sets of n-grams, estimated from a few words for each.

Bit i of a sketch is one bit of the n-gram that comes first in the i-th random order of all n-grams. Two sets of Jaccard
similarity J have the same first n-gram with probability J, and else bits that agree by chance, so that a bit differs with
probability (1 - J) / 2 (Li and Koenig 2010, "b-bit minwise hashing", with b = 1). Of n bits of which d differ the estimate is
1 - 2 d / n, with a standard deviation of sqrt((1 - J^2) / n): .037 at J = .8 with 256 bits.

The random orders cost one hash an n-gram rather than one for each bit: an n-gram falls into one bin of a round, and is first in a
bin where no other n-gram of an earlier round, or of the same round with a smaller value, falls into it. Rounds go on until no
bin is empty (Dahlgaard, Knudsen and Thorup 2017, "Fast similarity sketching"); what few n-grams leave empty after `_ROUNDS`
rounds is filled bin by bin, so that a text of one n-gram costs no more than a long one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from simhash_udf.core.fingerprint import check_text_settings, string_buffers
from simhash_udf.core.text import split
from simhash_udf.core.unicode import Tables, tables
from simhash_udf.core.xxh64 import xxh64

SKETCH_WORDS = 4
SKETCH_BITS = 64 * SKETCH_WORDS
_ROUNDS = 16
_EMPTY = np.uint64(0xFFFFFFFFFFFFFFFF)


@njit(cache=True, forceinline=True)
def _mixed(x: Any) -> Any:
    """A bijection of 64 bits in which each bit depends on all: the finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@njit(cache=True)
def _sketch(grams: Any, firsts: Any) -> None:
    """Set `firsts[i]` to the smallest value that an n-gram has in the order of bin i; the last bit of it is the bit."""
    bins = len(firsts)
    firsts[:] = _EMPTY
    empty = bins
    for turn in range(_ROUNDS):
        salt = np.uint64(turn + 1) * np.uint64(0x9E3779B97F4A7C15)
        before = np.uint64(turn) << np.uint64(56)
        for i in range(len(grams)):
            mixed = _mixed(grams[i] + salt)
            at = np.int64(mixed & np.uint64(bins - 1))
            value = before | (mixed >> np.uint64(8))
            if value < firsts[at]:
                empty -= firsts[at] == _EMPTY
                firsts[at] = value
        if empty == 0:
            return
    for at in range(bins):
        if firsts[at] == _EMPTY:
            salt = np.uint64(_ROUNDS + 1 + at) * np.uint64(0x9E3779B97F4A7C15)
            for i in range(len(grams)):
                firsts[at] = min(firsts[at], _mixed(grams[i] + salt) >> np.uint64(8))


@njit(cache=True)
def _sketches(data: Any, offsets: Any, valid: Any, characters: bool, ngram: int, words: int, unicode: Tables) -> Any:
    documents = len(offsets) - 1
    sketches, told = np.zeros((documents, words), np.uint64), np.zeros(documents, np.bool_)
    firsts = np.empty(64 * words, np.uint64)
    buffer, starts = np.empty(4096, np.uint8), np.empty(4096, np.int64)
    hashes = np.empty(4096, np.uint64)
    gap = 0 if characters else 1
    for document in range(documents):
        if not valid[document]:
            continue
        low, high = np.int64(offsets[document]), np.int64(offsets[document + 1])
        count, buffer, starts = split(data, low, high, characters, buffer, starts, unicode)
        if count == 0:
            continue
        span = min(ngram, count)
        grams = count - span + 1
        if grams > len(hashes):
            hashes = np.empty(2 * grams, np.uint64)
        for i in range(grams):
            hashes[i] = xxh64(buffer, starts[i], starts[i + span] - gap)
        _sketch(hashes[:grams], firsts)
        for at in range(len(firsts)):
            sketches[document, at // 64] |= (firsts[at] & np.uint64(1)) << np.uint64(at % 64)
        told[document] = True
    return sketches, told


def sketch_words(texts: pa.Array, *, unit: str, ngram: int, words: int = SKETCH_WORDS) -> tuple[npt.NDArray[np.uint64], Any]:
    """The sketch of each text's set of n-grams.

    Args:
        texts, unit, ngram: as for `fingerprint_batch`; n-grams are hashed as its features are.
        words: how many words of 64 bits a sketch has: 1, 2 or 4.

    Returns:
        uint64 of shape (len(texts), words), bit i of word w for bin 64 w + i, 0 for a text without tokens; and bool of shape
        (len(texts),), whether a text has tokens.

    Raises:
        SettingsError, InputError: as `fingerprint_batch`.

    >>> sketches, told = sketch_words(pa.array(["a b c d e f", "a b c d e f", None]), unit="word", ngram=2)
    >>> sketches.shape, bool((sketches[0] == sketches[1]).all()), told.tolist()
    ((3, 4), True, [True, True, False])
    """
    # The bit of a value must not be one of those that chose its bin.
    assert words in (1, 2, SKETCH_WORDS)
    check_text_settings(unit, ngram, "binary")
    data, offsets, valid = string_buffers(texts)
    sketches, told = _sketches(data, offsets, valid, unit == "char", ngram, words, tables())
    return sketches, told


def sketch_batch(texts: pa.Array, *, unit: str, ngram: int) -> pa.ListArray:
    """As `sketch_words`, as lists of int64 (two's complement), null for a text without tokens."""
    sketches, told = sketch_words(texts, unit=unit, ngram=ngram)
    ends = np.cumsum(told, dtype=np.int32) * np.int32(SKETCH_WORDS)
    offsets = pa.array(np.append(np.int32(0), ends), pa.int32(), mask=np.append(~told, False))
    return pa.ListArray.from_arrays(offsets, pa.array(sketches[told].ravel().view(np.int64)))


def minhash_batch(texts: pa.Array, *, unit: str, ngram: int) -> pa.Array:
    """Sketches of one word, to be fingerprints: int64 (two's complement), null for a text without tokens."""
    sketches, told = sketch_words(texts, unit=unit, ngram=ngram, words=1)
    return pa.array(sketches[:, 0].view(np.int64), mask=~told)
