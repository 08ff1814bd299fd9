import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simhash_udf.sources.delimited import records
from simhash_udf.sources.records import Record

FIELD = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


def read(path, content, names=("id", "text"), delimiter=",", encoding="utf-8", limit=1000):
    path.write_bytes(content if isinstance(content, bytes) else content.encode(encoding))
    return list(records(str(path), names=names, delimiter=delimiter, encoding=encoding, limit=limit))


@given(st.lists(st.tuples(FIELD, FIELD, FIELD), min_size=1, max_size=6), st.sampled_from(",\t"))
def test_what_a_csv_writer_wrote_is_read(tmp_path_factory, rows, delimiter):
    written = io.StringIO()
    csv.writer(written, delimiter=delimiter).writerows([("id", "more", "text"), *rows])
    path = tmp_path_factory.mktemp("csv") / "a.csv"
    found = read(path, written.getvalue(), delimiter=delimiter)
    assert [(record.values, record.reason) for record in found] == [([row[0], row[2]], None) for row in rows]


def test_a_record_has_the_number_of_its_first_line_and_an_empty_field_is_null(tmp_path):
    found = read(tmp_path / "a.csv", 'id,text\n1,"two\nlines"\n\n2,\n3,""\r\n"4","a ""b"", c"\n')
    values = [(record.position, list(record.values)) for record in found]
    assert values == [(2, ["1", "two\nlines"]), (5, ["2", None]), (6, ["3", None]), (7, ["4", 'a "b", c'])]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"1", "the record has 1 fields, and the header 2"),
        (b"1,2,3", "the record has 3 fields, and the header 2"),
        (b'"1"x,2', "the record is not valid: ',' expected after '\"'"),
        (b"1,\xff", "the line is not valid utf-8: invalid start byte at byte 3"),
        (b"1," + b"x" * 2000, "the line is longer than 1,000 bytes"),
    ],
)
def test_a_bad_record_is_told_with_its_line_and_the_others_are_read(tmp_path, line, reason):
    good, bad, more = read(tmp_path / "a.csv", b"id,text\n1,a\n" + line + b"\n2,b\n")
    assert (good, more) == (Record(2, ["1", "a"]), Record(4, ["2", "b"]))
    assert (bad.position, bad.values, bad.reason) == (3, None, reason)
    assert bad.beginning


def test_a_bad_line_within_quotes_spoils_its_record_alone(tmp_path):
    found = read(tmp_path / "a.csv", b'id,text\n1,"a\n\xff\nb"\n2,c\n')
    assert [(record.position, record.reason is None) for record in found] == [(3, False), (5, True)]


def test_a_quote_that_is_never_closed_is_told_where_it_begins(tmp_path):
    good, bad = read(tmp_path / "a.csv", 'id,text\n1,a\n2,"b\n3,c\n4,d\n')
    assert (good.values, bad.position, bad.reason) == (["1", "a"], 3, "the record is not valid: unexpected end of data")
    assert bad.beginning == '2,"b\n'


def test_a_quote_that_is_not_closed_for_long_ends_at_the_limit(tmp_path):
    found = read(tmp_path / "a.csv", 'id,text\n1,"a\n' + "2,b\n" * 1000)
    assert "field larger than field limit" in found[0].reason
    assert found[1].values == ["2", "b"]


def test_names_of_the_header_say_where_values_go_and_a_column_may_be_missing(tmp_path):
    assert read(tmp_path / "a.csv", ",text,id\n9,x,1\n", names=("id", "other", "_c0", "text")) == [
        Record(2, ["1", None, "9", "x"])
    ]


@pytest.mark.parametrize("header", [b"id,te\xff", b'"id"x,text', b"x" * 2000])
def test_a_header_that_cannot_be_read_rejects_its_file(tmp_path, header):
    (found,) = read(tmp_path / "a.csv", header + b"\n1,a\n2,b\n")
    assert (found.position, found.values) == (1, None)
    assert found.reason.startswith("no record of the file can be read, since of its header the ")


@pytest.mark.parametrize("content", ["", "id,text\n", "\n\n"])
def test_a_file_without_records_has_none(tmp_path, content):
    assert read(tmp_path / "a.csv", content) == []


def test_other_encodings_are_read(tmp_path):
    assert read(tmp_path / "a.csv", "id,text\n1,ë\n", encoding="utf-16") == [Record(2, ["1", "ë"])]


def test_a_damaged_file_is_told_after_what_can_be_read(tmp_path):
    import gzip

    whole = gzip.compress(b"id,text\n" + b"".join(b"%d,%d\n" % (at, at * at) for at in range(50_000)))
    found = read(tmp_path / "a.csv.gz", whole[: len(whole) // 2])
    assert found[0] == Record(2, ["0", "0"])
    assert found[-1].reason.startswith("the file cannot be read to its end")
    assert len(found) > 1000
