import unicodedata

import numpy as np
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from simhash_udf.core.text import encoded, tokens
from simhash_udf.core.unicode import CLASS_MASK, SEPARATOR, UNICODE_VERSION, normalise, tables
from simhash_udf.core.xxh64 import xxh64
from tests import oracle

steady = settings(deadline=None, derandomize=True, max_examples=400)


def is_known(code):
    """Whether Unicode 14.0 and the running Python both know a code point."""
    unicode = tables()
    flags = unicode.flags[(int(unicode.index[code >> 7]) << 7) | (code & 127)]
    return unicodedata.category(chr(code)) != "Cn" and (
        unicodedata.unidata_version == UNICODE_VERSION or flags & CLASS_MASK != SEPARATOR
    )


KNOWN = [code for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF and is_known(code)]
DELICATE = (
    "aZ09_ .,\0\n\t\u00ad\u200b\u200d\ufe0f\u0301\u0323\u0345\u3099éÉßİŉǰΐﬁﷺ①½２ＡＢｱﾞ゛你好。ーコ々"
    "กำไทยកាလြནབྱ한글\u1100\u1161\u11a8가𝟘𐐀😀\U000e0041"
)
texts = st.text(st.sampled_from(DELICATE) | st.sampled_from(KNOWN).map(chr), max_size=60)


@steady
@given(texts)
def test_tokens_equal_those_of_the_reference(text):
    assert tokens(text) == oracle.tokens(text)


@steady
@given(texts)
def test_characters_are_those_of_the_normalised_text(text):
    assert "".join(tokens(text, "char")) == (oracle.normalised(text) if oracle.tokens(text) else "")


@steady
@given(st.text(st.sampled_from("a\u0301\u0323\u0345\u05b0\u3099\u0300"), min_size=30, max_size=90))
def test_long_runs_of_combining_marks_are_ordered_as_python_orders_them(text):
    codes = np.array([ord(c) for c in text], np.int32)
    assert "".join(map(chr, normalise(codes, len(codes), tables()))) == unicodedata.normalize("NFKC", text)


@steady
@given(
    st.binary(max_size=40) | st.lists(st.sampled_from([b"\xe4\xbd\xa0", b"\xf0\x9f", b"\xed\xa0", b"a", b"\xc3"])).map(b"".join)
)
def test_bytes_that_are_not_utf8_are_replaced_as_python_replaces_them(raw):
    import pyarrow as pa

    from simhash_udf import fingerprint_array, fingerprint_text

    for unit in ("word", "char"):
        found = fingerprint_array(pa.array([raw], pa.binary()), unit=unit, ngram=1)[0].as_py()
        expected = fingerprint_text(raw.decode(errors="replace"), unit=unit, ngram=1)
        assert (None if found is None else found & (1 << 64) - 1) == expected


def test_every_known_code_point_normalises_and_is_classed_as_the_reference_says():
    if unicodedata.unidata_version != UNICODE_VERSION:
        pytest.skip(f"the reference is Python's Unicode {unicodedata.unidata_version}, and the tables are {UNICODE_VERSION}")
    differing = [code for code in KNOWN if tokens("a" + chr(code) + "b") != oracle.tokens("a" + chr(code) + "b")]
    assert differing == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("你好", ["你", "好"]),
        ("我们明天去。", ["我", "们", "明", "天", "去"]),
        ("Plan exRule 计划", ["plan", "exrule", "计", "划"]),
        ("ébé ebe", ["ébé", "ebe"]),
        ("co\u00adoperate zero\u200bwidth", ["cooperate", "zerowidth"]),
        ("a\u0378b", ["a", "b"]),
        ("กำไร", ["ก\u0e4d", "า", "ไ", "ร"]),
        ("コーヒー", ["コ", "ー", "ヒ", "ー"]),
        ("snake_case-kebab", ["snake_case", "kebab"]),
        ("e\u0301 \u0301x", ["é", "\u0301x"]),
        ("", []),
        (" \t\n... !?", []),
    ],
)
def test_tokens_of(text, expected):
    assert tokens(text) == expected


def test_a_lone_surrogate_separates_tokens():
    assert tokens("a\ud800b") == ["a", "b"]
    assert encoded("a\ud800") == "a\ufffd".encode()


def test_a_token_of_a_million_letters_is_one_token():
    assert [len(token) for token in tokens("X" * 1_000_000)] == [1_000_000]


def test_the_longest_expansions_fit_the_buffer():
    text = "\ufdfa" * 1_000 + "ΐ" * 1_000
    assert tokens(text) == oracle.tokens(text)
    assert "".join(tokens(text, "char")) == oracle.normalised(text)


def test_xxh64_equals_the_xxhash_package_for_every_length_and_place():
    data = np.random.default_rng(1).integers(0, 256, 300).astype(np.uint8)
    for length in range(200):
        for start in (0, 1, 7, 64):
            expected = xxhash.xxh64_intdigest(data[start : start + length].tobytes(), 42)
            assert int(xxh64(data, start, start + length)) == expected
