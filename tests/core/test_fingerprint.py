import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings

from simhash_udf import fingerprint_array, fingerprint_features, fingerprint_text
from simhash_udf.core.fingerprint import fingerprint_batch, fingerprint_features_batch
from simhash_udf.core.fold import signed
from simhash_udf.errors import InputError, SettingsError
from tests import oracle
from tests.core.test_text import texts

steady = settings(deadline=None, derandomize=True, max_examples=150)
SETTINGS = [
    ("word", 1, "tf"),
    ("word", 2, "log"),
    ("word", 3, "binary"),
    ("char", 1, "log"),
    ("char", 6, "log"),
    ("char", 4, "tf"),
]


@pytest.mark.parametrize(("unit", "ngram", "weighting"), SETTINGS)
def test_fingerprints_equal_those_of_the_reference(unit, ngram, weighting):
    @steady
    @given(texts)
    def equal(text):
        found = fingerprint_text(text, unit=unit, ngram=ngram, weighting=weighting)
        assert found == oracle.fingerprint(text, unit, ngram, weighting)

    equal()


@pytest.mark.parametrize(("unit", "ngram", "weighting"), SETTINGS)
def test_repeated_features_weigh_as_the_reference_weighs_them(unit, ngram, weighting):
    chance = random.Random(ngram)
    words = ["ab", "cde", "你", "ω", "x1"]
    for length in (1, 5, 60, 700):
        text = " ".join(chance.choices(words, [60, 20, 5, 2, 1], k=length))
        assert fingerprint_text(text, unit=unit, ngram=ngram, weighting=weighting) == oracle.fingerprint(
            text, unit, ngram, weighting
        )


def test_a_document_of_three_million_tokens_is_counted_exactly():
    counts = {"alpha": 1_700_001, "beta": 999_999, "gamma": 300_000}
    text = " ".join(f"{word} " * times for word, times in counts.items())
    for weighting, weigh in (("tf", float), ("log", lambda times: 1 + math.log(times))):
        expected = oracle.elect([(word, weigh(times)) for word, times in counts.items()])
        assert fingerprint_text(text, ngram=1, weighting=weighting) == expected


def test_a_text_of_fewer_tokens_than_n_has_one_feature():
    assert fingerprint_text("Hello", ngram=3) == xxhash.xxh64_intdigest(b"hello", 42)
    assert fingerprint_text("Hello, you", ngram=3) == xxhash.xxh64_intdigest(b"hello you", 42)
    assert fingerprint_text("Hi", unit="char", ngram=6) == xxhash.xxh64_intdigest(b"hi", 42)


@pytest.mark.parametrize("text", [None, "", " \n\t", "... !?", "\u200b\u00ad", "—"])
@pytest.mark.parametrize("unit", ["word", "char"])
def test_a_text_without_a_token_has_no_fingerprint(text, unit):
    assert fingerprint_text(text, unit=unit) is None


def test_batches_give_signed_fingerprints_and_numbers_of_distinct_features():
    values, counts, *_ = fingerprint_batch(pa.array(["a b a b a", None, "", "x"]), ngram=2)
    assert counts.to_pylist() == [2, 0, 0, 1]
    assert values.type == pa.int64()
    assert values.to_pylist() == [signed(fingerprint_text("a b a b a")), None, None, signed(fingerprint_text("x"))]


@pytest.mark.parametrize(
    "convert",
    [
        lambda a: a.cast(pa.large_string()),
        lambda a: a.cast(pa.binary()),
        lambda a: a.dictionary_encode(),
        lambda a: a.cast(pa.string_view()),
        lambda a: pa.concat_arrays([pa.array(["x"]), a, pa.array(["y"])]).slice(1, len(a)),
        lambda a: pa.chunked_array([a.slice(0, 2), a.slice(2)]),
    ],
)
def test_every_layout_of_strings_gives_the_same_fingerprints(convert):
    given_texts = pa.array(["one two", None, "", "три слова тут", "四 字"])
    assert fingerprint_array(convert(given_texts)).to_pylist() == fingerprint_array(given_texts).to_pylist()


@pytest.mark.parametrize("empty", [pa.array([], pa.string()), pa.array([None, None], pa.null()), pa.array([None], pa.string())])
def test_arrays_without_text_give_nulls(empty):
    assert fingerprint_array(empty).to_pylist() == [None] * len(empty)


def test_an_array_of_numbers_is_refused():
    with pytest.raises(InputError, match="must be strings"):
        fingerprint_array(pa.array([1, 2]))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"unit": "line"}, "word, char"),
        ({"weighting": "idf"}, "tf, log, binary"),
        ({"ngram": 0}, "1 to 100"),
        ({"ngram": True}, "1 to"),
    ],
)
def test_settings_that_do_not_exist_are_refused(wrong, said):
    with pytest.raises(SettingsError, match=said):
        fingerprint_text("a", **wrong)


def test_bytes_are_no_text():
    with pytest.raises(InputError, match="decode"):
        fingerprint_text(b"bytes")


@pytest.mark.parametrize("weight", ["1", True, None])
def test_a_weight_that_is_no_number_is_refused(weight):
    with pytest.raises(InputError, match=r"weights\[1\] is .*; a weight must be a number"):
        fingerprint_features([("a", 1), ("b", weight)])


def test_features_with_the_weights_of_a_text_give_its_fingerprint():
    text = "to be or not to be that is the question to be"
    counted = Counter(oracle.features(text, "word", 1))
    logarithmic = {feature: 1 + math.log(times) for feature, times in counted.items()}
    assert fingerprint_features(logarithmic) == fingerprint_text(text, ngram=1, weighting="log")
    assert fingerprint_features(counted.items()) == fingerprint_text(text, ngram=1, weighting="tf")


def test_arrays_of_features_agree_with_single_ones():
    rows = [[("a", 1.0), ("b", 0.5)], None, [], [("c", 0.0)], [("d", 3.0), ("e", 0.0)]]
    expected = [None if not row else fingerprint_features(row) for row in rows]
    expected = [None if value is None else signed(value) for value in expected]
    kind = pa.list_(pa.struct([("feature", pa.string()), ("weight", pa.float64())]))
    lists = pa.array([None if row is None else [{"feature": f, "weight": w} for f, w in row] for row in rows], kind)
    maps = pa.array(rows, pa.map_(pa.string(), pa.float64()))
    for array in (lists, maps):
        values, counts, *_ = fingerprint_features_batch(array)
        assert values.to_pylist() == expected
        assert counts.to_pylist() == [2, 0, 0, 0, 1]
        assert fingerprint_features_batch(array.slice(3))[0].to_pylist() == expected[3:]


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), None])
def test_bad_weights_in_arrays_are_refused(weight):
    with pytest.raises(InputError, match="weight"):
        fingerprint_features_batch(pa.array([[("a", weight)]], pa.map_(pa.string(), pa.float64())))


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.bool_(), pa.date32()])
def test_weights_that_are_no_numbers_are_refused(kind):
    values = {pa.bool_(): [True], pa.date32(): [1]}.get(kind, ["1"])
    given = pa.MapArray.from_arrays([0, 1], ["a"], pa.array(values, kind))
    with pytest.raises(InputError, match=r"weights are .*; a weight must be a whole number, a decimal or a float"):
        fingerprint_features_batch(given)


NUMBERS = [
    pa.int8(),
    pa.uint8(),
    pa.int16(),
    pa.int32(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.decimal128(9, 2),
]


@pytest.mark.parametrize("kind", NUMBERS, ids=str)
def test_weights_in_arrays_may_be_numbers_of_any_type(kind):
    given = pa.MapArray.from_arrays([0, 2], ["a", "b"], pa.array([2, 1], pa.int8()).cast(kind))
    assert fingerprint_features_batch(given)[0].to_pylist() == [signed(fingerprint_features({"a": 2, "b": 1}))]


def test_a_null_feature_is_refused():
    kind = pa.list_(pa.struct([("feature", pa.string()), ("weight", pa.float64())]))
    with pytest.raises(InputError, match="null"):
        fingerprint_features_batch(pa.array([[{"feature": None, "weight": 1.0}]], kind))


@pytest.mark.parametrize(("cosine", "mean"), [(0.99, 2.9), (0.95, 6.5), (0.9, 9.2), (0.5, 21.3)])
def test_the_mean_distance_of_documents_follows_the_angle_between_their_features(cosine, mean):
    # Of 400 features each, so many are shared; one share for all pairs, so that their cosine is the same.
    chance, shared = random.Random(5), round(400 * cosine)
    distances = []
    for _ in range(300):
        names = [f"{chance.getrandbits(60):x}" for _ in range(800 - shared)]
        a = fingerprint_features((name, 1.0) for name in names[:400])
        b = fingerprint_features((name, 1.0) for name in names[400 - shared :])
        distances.append((a ^ b).bit_count())
    assert np.mean(distances) == pytest.approx(mean, rel=0.1)


@pytest.mark.parametrize("name", ["README.md", "DESIGN.md", "LICENSE", "docs/test_vectors.json"])
def test_fingerprints_of_real_text_equal_those_of_the_reference(name):
    text = (Path(__file__).parent.parent.parent / name).read_text(encoding="utf-8")
    parts = [text, *text.split("\n\n")]
    for unit, ngram, weighting in SETTINGS:
        found = fingerprint_array(pa.array(parts), unit=unit, ngram=ngram, weighting=weighting).to_pylist()
        expected = [oracle.fingerprint(part, unit, ngram, weighting) for part in parts]
        assert found == [None if value is None else signed(value) for value in expected]


def test_content_is_equal_where_the_normalised_text_is_and_only_there():
    texts = [
        "one two three two",
        "ONE TWO three TWO",
        "two one three two",
        "one two three",
        "one two three two two",
        "x",
        None,
        "!",
    ]
    for unit in ("word", "char"):
        content = fingerprint_batch(pa.array(texts), unit=unit, ngram=2).content.to_pylist()
        assert content[0] == content[1]
        assert len(set(content[:6])) == 5
        assert content[6:] == [None, None]


def test_content_of_features_does_not_depend_on_their_order_but_on_their_weights():
    kind = pa.map_(pa.string(), pa.float64())
    given = [
        [("a", 1.0), ("b", 2.0)],
        [("b", 2.0), ("a", 1.0), ("c", 0.0)],
        [("a", 2.0), ("b", 1.0)],
        [("a", 1.0)],
        [("c", 0.0)],
        None,
    ]
    content = fingerprint_features_batch(pa.array(given, kind)).content.to_pylist()
    assert content[0] == content[1]
    assert len(set(content[:4])) == 3
    assert content[4:] == [None, None]


@pytest.mark.parametrize(
    ("text", "weighting", "expected"),
    [("a", "tf", True), ("a b", "tf", False), ("a a b", "tf", True), ("a a b b", "tf", False), ("a a b c", "tf", False),
     ("a a a b", "log", True), ("a a a b", "binary", True), ("a " * 20 + "b", "log", True), ("a " * 20 + "b c", "binary", True),
     ("", "tf", None)],
)  # fmt: skip
def test_a_document_is_of_low_information_if_one_feature_occurs_more_than_all_others(text, weighting, expected):
    assert fingerprint_batch(pa.array([text]), ngram=1, weighting=weighting).low_information.to_pylist() == [expected]


def test_features_are_of_low_information_if_one_outweighs_all_others():
    given = pa.array([[("a", 2.0), ("b", 1.0)], [("a", 2.0), ("b", 2.0)], []], pa.map_(pa.string(), pa.float64()))
    assert fingerprint_features_batch(given).low_information.to_pylist() == [True, False, None]
