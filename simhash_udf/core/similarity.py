"""How similar two texts are: the exact overlap of their sets of hashed n-grams."""

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
from simhash_udf.errors import InputError, SettingsError

MEASURES = ("jaccard", "containment")
MOST_GRAMS = 1 << 27  # of one text: a set of them is one value of a table, of at most 1 GiB

Hashes = npt.NDArray[np.uint64]
Int64s = npt.NDArray[np.int64]


@njit(cache=True)
def _gram_sets(data: Any, offsets: Any, valid: Any, characters: bool, ngram: int, unicode: Tables) -> Any:
    documents = len(offsets) - 1
    ends = np.zeros(documents, np.int64)
    values = np.empty(4096, np.uint64)
    buffer, starts = np.empty(4096, np.uint8), np.empty(4096, np.int64)
    gap = 0 if characters else 1
    end = np.int64(0)
    for document in range(documents):
        if valid[document]:
            low, high = np.int64(offsets[document]), np.int64(offsets[document + 1])
            count, buffer, starts = split(data, low, high, characters, buffer, starts, unicode)
            if count > 0:
                span = min(ngram, count)
                grams = count - span + 1
                if end + grams > len(values):
                    larger = np.empty(2 * (end + grams), np.uint64)
                    larger[:end] = values[:end]
                    values = larger
                for i in range(grams):
                    values[end + i] = xxh64(buffer, starts[i], starts[i + span] - gap)
                values[end : end + grams].sort()
                kept = end
                for i in range(end, end + grams):
                    if kept == end or values[kept - 1] != values[i]:
                        values[kept] = values[i]
                        kept += 1
                end = kept
        ends[document] = end
    return values[:end].copy(), ends


def gram_sets(texts: pa.Array, *, unit: str, ngram: int) -> tuple[Hashes, Int64s]:
    """The set of n-grams of each text, hashed by XXH64.

    Args:
        texts: as for `fingerprint_batch`.
        unit, ngram: as for `fingerprint_batch`; the text is normalised in the same way.

    Returns:
        hashes, uint64: those of each text after one another, ascending, each once; and where those of each text end, int64. A
        text without tokens has none, one of fewer than `ngram` units has one.

    Raises:
        SettingsError, InputError: as `fingerprint_batch`, and InputError for a text of more than `MOST_GRAMS` different n-grams.

    >>> values, ends = gram_sets(pa.array(["a b a b", None, "c"]), unit="word", ngram=2)
    >>> len(values), ends.tolist()
    (3, [2, 2, 3])
    """
    check_text_settings(unit, ngram, "binary")
    data, offsets, valid = string_buffers(texts)
    values, ends = _gram_sets(data, offsets, valid, unit == "char", ngram, tables())
    largest = int(np.diff(ends, prepend=0).max(initial=0))
    if largest > MOST_GRAMS:
        raise InputError(f"a text has {largest:,} different n-grams; one of at most {MOST_GRAMS:,} can be compared: leave it out")
    return values, ends


@njit(cache=True)
def _overlaps(values: Any, starts: Any, ends: Any, a: Any, b: Any) -> Any:
    overlaps = np.zeros(len(a), np.int64)
    for i in range(len(a)):
        at_a, end_a, at_b, end_b = starts[a[i]], ends[a[i]], starts[b[i]], ends[b[i]]
        shared = np.int64(0)
        while at_a < end_a and at_b < end_b:
            value_a, value_b = values[at_a], values[at_b]
            shared += value_a == value_b
            at_a += value_a <= value_b
            at_b += value_b <= value_a
        overlaps[i] = shared
    return overlaps


def similarities(
    values: Hashes, starts: Int64s, ends: Int64s, a: npt.NDArray[Any], b: npt.NDArray[Any], measure: str
) -> npt.NDArray[np.float64]:
    """The similarity of set a[i] with set b[i], float64 from 0 to 1, for each i.

    Args:
        values: hashes; set s has values[starts[s] : ends[s]], ascending, each once.
        a, b: numbers of sets, one pair for each i.
        measure: "jaccard", |A and B| / |A or B|, or "containment", |A and B| / the smaller of |A| and |B| (Broder 1997, "On the
            resemblance and containment of documents"). 0 where a set is empty.

    Raises:
        SettingsError: the measure is unknown.

    >>> values, ends = gram_sets(pa.array(["a b c d", "a b c e"]), unit="word", ngram=2)
    >>> similarities(values, ends - 3, ends, np.array([0]), np.array([1]), "jaccard").tolist()
    [0.5]
    """
    if measure not in MEASURES:
        raise SettingsError(f"the measure is {measure!r}; it must be one of {', '.join(MEASURES)}")
    overlaps = _overlaps(values, starts, ends, a, b)
    sizes = ends - starts
    whole = sizes[a] + sizes[b] - overlaps if measure == "jaccard" else np.minimum(sizes[a], sizes[b])
    found: npt.NDArray[np.float64] = overlaps / np.maximum(whole, 1)
    return found
