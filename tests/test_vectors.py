import json
import unicodedata
from pathlib import Path

import pyarrow as pa
import pytest

from simhash_udf import fingerprint_array, fingerprint_features, fingerprint_text
from tools.make_test_vectors import vectors

TABLE = json.loads((Path(__file__).parent.parent / "docs" / "test_vectors.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "row", TABLE, ids=lambda row: str(row.get("text", row.get("features")))[:20].encode("unicode-escape").decode()
)
def test_the_published_fingerprint_is_ours(row):
    if "features" in row:
        found = fingerprint_features([tuple(pair) for pair in row["features"]])
    else:
        found = fingerprint_text(row["text"], unit=row["unit"], ngram=row["ngram"], weighting=row["weighting"])
        array = fingerprint_array(pa.array([row["text"]]), unit=row["unit"], ngram=row["ngram"], weighting=row["weighting"])
        assert array[0].as_py() == row["bigint"]
    assert (None if found is None else f"{found:016x}") == row["hex"]


@pytest.mark.skipif(unicodedata.unidata_version != "14.0.0", reason="the reference needs the Unicode data of Python 3.11")
def test_the_published_table_is_what_the_reference_gives():
    assert vectors() == TABLE


def test_the_published_table_has_fingerprints_with_and_without_the_top_bit_and_none():
    assert {row["bigint"] is None or row["bigint"] < 0 for row in TABLE} == {True, False}
    assert any(row["hex"] is None for row in TABLE)
