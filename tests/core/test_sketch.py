import random

import numpy as np
import pyarrow as pa
import pytest

from simhash_udf.core.fold import hamming, signed
from simhash_udf.core.sketch import (
    minhash_batch,
    sketch_batch,
    sketch_words,
)
from simhash_udf.errors import InputError, SettingsError
from tests.oracle import sketch

TEXTS = [
    "the quick brown fox jumps over the lazy dog, and the lazy dog does not mind",
    "x",
    "",
    None,
    " . ",
    "你好世界 ab",
    "a b a b a b",
    " ".join(f"w{i}" for i in range(700)),
]


@pytest.mark.parametrize("words", [1, 2, 4])
@pytest.mark.parametrize(("unit", "ngram"), [("word", 1), ("word", 3), ("char", 5)])
def test_sketches_equal_those_of_plain_python(words, unit, ngram):
    sketches, told = sketch_words(pa.array(TEXTS), unit=unit, ngram=ngram, words=words)
    expected = [None if text is None else sketch(text, unit, ngram, words) for text in TEXTS]
    assert told.tolist() == [row is not None for row in expected]
    assert sketches.tolist() == [row or [0] * words for row in expected]


def test_batches_are_arrow_arrays_with_nulls_for_texts_without_tokens():
    expected = [None if text is None else sketch(text, "word", 2) for text in TEXTS]
    made = sketch_batch(pa.array(TEXTS), unit="word", ngram=2)
    assert made.type == pa.list_(pa.int64())
    assert made.to_pylist() == [None if row is None else [signed(word) for word in row] for row in expected]
    one = minhash_batch(pa.array(TEXTS), unit="word", ngram=2)
    assert one.type == pa.int64()
    of_one = [None if text is None else sketch(text, "word", 2, words=1) for text in TEXTS]
    assert one.to_pylist() == [None if row is None else signed(row[0]) for row in of_one]


@pytest.mark.parametrize("texts", [pa.array([], pa.string()), pa.array([None, None], pa.string()), pa.array(TEXTS)[3:5]])
def test_batches_without_any_token_are_all_null(texts):
    assert sketch_batch(texts, unit="word", ngram=2).to_pylist() == [None] * len(texts)
    assert minhash_batch(texts, unit="word", ngram=2).to_pylist() == [None] * len(texts)


def test_a_slice_of_a_batch_is_sketched_as_the_batch():
    whole = sketch_batch(pa.array(TEXTS), unit="word", ngram=2).to_pylist()
    assert sketch_batch(pa.array(TEXTS)[2:7], unit="word", ngram=2).to_pylist() == whole[2:7]


def test_only_the_set_of_grams_counts():
    words = [f"w{i}" for i in range(50)]
    texts = pa.array([" ".join(words), " ".join(reversed(words)), " ".join(words * 3)])
    first, second, third = sketch_batch(texts, unit="word", ngram=1).to_pylist()
    assert first == second == third


@pytest.mark.parametrize("bits", [64, 256])
@pytest.mark.parametrize("size", [10, 40, 400, 4000])
@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.9])
def test_the_estimate_is_unbiased_and_as_exact_as_its_bits_allow(bits, size, overlap):
    chance = random.Random(f"{size} {overlap}")
    shared = round(size * overlap)
    texts, jaccard, trials = [], shared / (2 * size - shared), 400
    for _ in range(trials):
        words = [f"{chance.getrandbits(60):x}" for _ in range(2 * size - shared)]
        texts += [" ".join(words[:size]), " ".join(words[:shared] + words[size:])]
    sketches, _ = sketch_words(pa.array(texts), unit="word", ngram=1, words=bits // 64)
    differing = hamming(sketches[::2], sketches[1::2]).sum(axis=1)
    estimates = 1 - 2 * differing / bits
    expected_deviation = np.sqrt((1 - jaccard**2) / bits)
    assert abs(estimates.mean() - jaccard) < 4 * expected_deviation / np.sqrt(trials)
    assert estimates.std() < 1.15 * expected_deviation


def test_wrong_settings_and_types_are_refused():
    with pytest.raises(SettingsError, match="ngram is 0"):
        sketch_batch(pa.array(["a"]), unit="word", ngram=0)
    with pytest.raises(InputError, match="they must be strings"):
        minhash_batch(pa.array([1]), unit="word", ngram=1)
