"""What each kind of input becomes: the rows that are documents, and the rejects."""

import bz2
import codecs
import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simhash_udf.errors import InputError, OutputError, SettingsError
from simhash_udf.intake import look_at, take_in
from simhash_udf.run import Run
from simhash_udf.settings import Settings


class Taken:
    """What was taken in, collected before the run ends."""

    def __init__(self, spark, output, **settings):
        given = {"on_bad_input": "reject", "max_rejected": 1.0, "output": str(output)} | settings
        given["input"] = tuple(map(str, given["input"])) if isinstance(given["input"], (list, tuple)) else str(given["input"])
        with Run(spark, Settings(**given), lambda line: None) as run:
            taken = take_in(spark, run.settings, run)
            self.schema = dict(taken.rows.dtypes)
            self.rows = [row.asDict(recursive=True) for row in taken.rows.collect()]
            self.rejects = [row.asDict() for row in spark.read.parquet(f"{output}/{run.place}/rejects").collect()]
            self.skipped = taken.skipped
            assert taken.rejected == len(self.rejects)

    def of(self, *names):
        return sorted(tuple(row[name] for name in names) for row in self.rows)

    def bad(self):
        """File's name, position and the beginning of the reason of each reject."""
        return sorted((Path(row["file"]).name, row["position"], row["reason"]) for row in self.rejects)


@pytest.fixture
def take(spark, tmp_path, spark_conf):
    spark_conf({"spark.sql.sources.partitionColumnTypeInference.enabled": "false"})
    return lambda **settings: Taken(spark, tmp_path / "out", **settings)


def write(path, content):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


NO_OBJECT = "the line is not one JSON object"
SURROGATE = "the line has half of a surrogate pair, which is no character"


BAD_LINES = [
    (b'{"id": "x", "te', NO_OBJECT),
    (b'{"id": "x"} trailing', NO_OBJECT),
    (b'{"id": "x"}{"id": "y"}', NO_OBJECT),
    (b'{"id": "x"},', NO_OBJECT),
    (b'{"id": "x"},{"id": "y"}', NO_OBJECT),
    (b'[{"id": "x"}]', NO_OBJECT),
    (b"null", NO_OBJECT),
    (b"17", NO_OBJECT),
    (b'"text"', NO_OBJECT),
    (b"[]", NO_OBJECT),
    (b"\x00", NO_OBJECT),
    (b'{"id": "x", "text": "\xff"}', "the line is not valid UTF-8"),
    (b'{"id": "x", "text": "\xed\xa0\x80"}', "the line is not valid UTF-8"),
    (rb'{"id": "x", "text": "\ud800"}', SURROGATE),
    (rb'{"id": "x", "text": "\uDC00 \ud83d\ude00"}', SURROGATE),
    (rb'{"id": "x", "text": "\ud800\ud800"}', SURROGATE),
    (rb'{"id": "x", "text": "\\\ud800"}', SURROGATE),
    (b'{"text": "no id"}', "the id is null"),
    (b'{"id": null, "text": "no id"}', "the id is null"),
    (b"{}", "the id is null"),
]


def test_a_bad_line_is_listed_with_its_number_and_the_others_are_read(take, tmp_path):
    good = b'{"id": "a", "text": "x"}\n \n'
    more = rb'{"id": "b", "text": "\ud83d\ude00 \\ud800"}'
    write(tmp_path / "a.jsonl", good + b"\r\n".join(line for line, _ in BAD_LINES) + b"\n" + more)
    taken = take(input=tmp_path / "a.jsonl")
    assert taken.of("id", "text") == [("a", "x"), ("b", "😀 \\ud800")]
    assert taken.bad() == [("a.jsonl", number, reason) for number, (_, reason) in enumerate(BAD_LINES, 3)]


def test_equal_bad_lines_are_listed_each_with_its_number(take, tmp_path):
    write(tmp_path / "a.jsonl", b'{"id": 1, "text": ""}\nbad\n{"id": 2, "text": ""}\nbad\rbad\n')
    write(tmp_path / "b c%+.jsonl", codecs.BOM_UTF8 + b"bad\n")
    taken = take(input=[tmp_path / "a.jsonl", tmp_path / "b c%+.jsonl"])
    assert taken.bad() == [*(("a.jsonl", number, NO_OBJECT) for number in (2, 4, 5)), ("b c%+.jsonl", 1, NO_OBJECT)]
    assert {row["record"] for row in taken.rejects} == {"bad"}


def test_a_byte_order_mark_before_json_does_no_harm(take, tmp_path):
    write(tmp_path / "a.jsonl", codecs.BOM_UTF8 + b'{"id": 1, "text": "x"}\n')
    assert take(input=tmp_path / "a.jsonl").of("id", "text") == [(1, "x")]


@pytest.mark.parametrize(
    ("values", "kind", "kept"),
    [
        (["1", '"01"'], "string", ["01", "1"]),
        ([str(2**53 + 1), "1"], "bigint", [1, 2**53 + 1]),
        ([str(2**53 + 1), "1.5"], "string", ["1.5", str(2**53 + 1)]),
        (["1" * 45, "1" * 44 + "2"], "string", ["1" * 45, "1" * 44 + "2"]),
        ([str(2**64), "-1"], "decimal(20,0)", [-1, 2**64]),
        (["true", "false"], "boolean", [False, True]),
    ],
)
def test_ids_in_json_stay_what_they_are(take, tmp_path, values, kind, kept):
    write(tmp_path / "a.jsonl", "".join(f'{{"id": {value}, "text": "x"}}\n' for value in values))
    taken = take(input=tmp_path / "a.jsonl")
    assert (taken.schema["id"], [row[0] for row in taken.of("id")]) == (kind, kept)


def test_a_text_of_more_than_20_million_characters_is_read(take, tmp_path):
    write(tmp_path / "a.jsonl", json.dumps({"id": 1, "text": "x" * 20_500_000}))
    assert [len(row["text"]) for row in take(input=tmp_path / "a.jsonl").rows] == [20_500_000]


@pytest.mark.parametrize("ending", ["gz", "bz2"])
def test_of_a_truncated_file_the_lines_before_the_cut_are_read(take, tmp_path, ending):
    whole = b"".join(b'{"id": %d, "text": "some %d"}\n' % (at, at * at) for at in range(40_000))
    packed = {"gz": gzip.compress, "bz2": lambda content: bz2.compress(content, 1)}[ending](whole)
    write(tmp_path / "in" / f"a.jsonl.{ending}", packed[: len(packed) * 3 // 4])
    write(tmp_path / "in" / f"b.jsonl.{ending}", {"gz": gzip.compress, "bz2": bz2.compress}[ending](b'{"id": -1, "text": "x"}\n'))
    taken = take(input=tmp_path / "in")
    ids = [row["id"] for row in sorted(taken.rows, key=lambda row: row["id"])]
    assert ids[0] == -1
    assert ids[1:] == list(range(len(ids) - 1))
    assert len(ids) > 5000
    assert "cannot be read to its end" in taken.bad()[-1][2]
    # The cut line, and the cut itself.
    assert len(taken.rejects) <= 2
    assert all(position >= len(ids) for _, position, _ in taken.bad())


def test_a_line_that_is_too_long_is_listed_and_the_others_are_read(take, tmp_path):
    rows = [json.dumps({"id": number, "text": "y" * size}) for number, size in ((1, 1), (2, 5000), (3, 2))]
    write(tmp_path / "a.jsonl", "\n".join(rows))
    taken = take(input=tmp_path / "a.jsonl", max_document_bytes=1000)
    assert taken.of("id", "text") == [(1, "y"), (3, "yy")]
    assert taken.bad() == [("a.jsonl", 2, "the line is longer than 2,000 bytes")]


@pytest.mark.parametrize("kind", ["jsonl", "lines", "csv", "tsv", "text"])
@pytest.mark.parametrize("encoding", ["utf-16", "cp1252"])
def test_texts_in_other_encodings_are_read(take, tmp_path, kind, encoding):
    content = {
        "jsonl": '{"id": "1", "text": "déjà"}\n', "lines": "déjà\n", "csv": "id,text\n1,déjà\n", "tsv": "id\ttext\n1\tdéjà\n",
        "text": "déjà",
    }[kind]  # fmt: skip
    write(tmp_path / "in" / "a", content.encode(encoding))
    made = {"make_ids": "content"} if kind == "lines" else {}
    taken = take(input=tmp_path / "in", input_format=kind, encoding=encoding, **made)
    assert taken.of("text") == [("déjà",)]
    assert taken.rejects == []


def test_an_encoding_for_what_has_its_own_is_refused(take, tmp_path):
    pq.write_table(pa.table({"id": [1], "text": ["x"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="'utf-16', and the input is parquet, which says so itself"):
        take(input=tmp_path / "a.parquet", encoding="utf-16")
    with pytest.raises(SettingsError, match="encoding is 'rot13'"):
        take(input=tmp_path / "a.parquet", encoding="rot13")


def test_lines_are_documents_and_empty_ones_too(take, tmp_path):
    write(tmp_path / "a.txt", b"one\n\ntwo \r\n\xff\nthree")
    taken = take(input=tmp_path / "a.txt", input_format="lines", make_ids="content")
    assert taken.of("text") == [("",), ("one",), ("three",), ("two ",)]
    assert taken.bad() == [("a.txt", 4, "the line is not valid UTF-8")]
    assert len({row["id"] for row in taken.rows}) == 4


def test_files_are_documents_with_their_paths_as_ids(take, tmp_path):
    write(tmp_path / "in" / "a.txt", "one\r\ntwo")
    write(tmp_path / "in" / "b%20 é" / "c.txt.gz", gzip.compress(b"three"))
    write(tmp_path / "in" / "bad.txt", b"\xff\xfe\xfd")
    write(tmp_path / "in" / "empty.txt", "")
    write(tmp_path / "in" / "long.txt", "x" * 3000)
    taken = take(input=tmp_path / "in", input_format="text", max_document_bytes=1000)
    assert taken.of("id", "text") == [
        (f"{tmp_path}/in/a.txt", "one\r\ntwo"),
        (f"{tmp_path}/in/b%20 é/c.txt.gz", "three"),
        (f"{tmp_path}/in/empty.txt", ""),
    ]
    assert [(name, reason[:23]) for name, _, reason in taken.bad()] == [
        ("bad.txt", "the file is not valid u"), ("long.txt", "the file is longer than"),
    ]  # fmt: skip


def test_csv_and_tsv_files_of_several_headers_are_one_corpus(take, tmp_path):
    write(tmp_path / "in" / "crawl=01" / "a.csv", 'id,text,more\n01,"a, ""b""\nc",\n1 ,x,y\nbroken\n')
    write(tmp_path / "in" / "crawl=02" / "b.csv", "text,id\nz,3\n")
    taken = take(input=tmp_path / "in")
    assert taken.schema == {"id": "string", "text": "string", "more": "string", "crawl": "string"}
    rows = {row["id"]: (row["text"], row["more"], row["crawl"]) for row in taken.rows}
    assert rows == {"01": ('a, "b"\nc', None, "01"), "1 ": ("x", "y", "01"), "3": ("z", None, "02")}
    assert taken.bad() == [("a.csv", 5, "the record has 1 fields, and the header 3")]


def test_a_header_with_a_name_twice_is_refused(take, tmp_path):
    write(tmp_path / "a.csv", "id,text,Text\n1,a,b\n")
    with pytest.raises(InputError, match=r"header of .*a\.csv' has the column 'text' twice"):
        take(input=tmp_path / "a.csv")


def test_orc_is_read_with_all_types(spark, take, tmp_path):
    spark.sql("SELECT 1L AS id, 'x' AS text, map('a', array(1)) AS m").write.orc(f"{tmp_path}/in")
    taken = take(input=f"{tmp_path}/in", input_format="orc")
    assert taken.rows == [{"id": 1, "text": "x", "m": {"a": [1]}}]


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_damaged_columnar_files_are_listed_and_the_others_read(spark, take, tmp_path, kind):
    for name in "abc":
        frame = spark.range(1).selectExpr("id", f"'{name}' AS text").coalesce(1)
        getattr(frame.write, kind)(f"{tmp_path}/in/part={name}")
    (file,) = (tmp_path / "in" / "part=b").glob(f"*.{kind}")
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    # Spark keeps checksums beside what it writes.
    (file.parent / f".{file.name}.crc").unlink()
    taken = take(input=f"{tmp_path}/in", duplicate_ids="keep-apart")
    assert taken.of("text", "part") == [("a", "a"), ("c", "c")]
    assert [(name, reason[:35]) for name, _, reason in taken.bad()] == [(file.name, "the file cannot be read to its end:")]


def test_a_file_that_may_not_be_read_or_is_gone_is_listed(take, tmp_path):
    write(tmp_path / "in" / "a.jsonl", '{"id": 1, "text": "x"}\n')
    (tmp_path / "in" / "b.jsonl").symlink_to(tmp_path / "gone.jsonl")
    taken = take(input=tmp_path / "in")
    assert taken.of("id") == [(1,)]
    assert taken.bad() == [("b.jsonl", 1, "the file cannot be read to its end: No such file or directory")]


def test_archives_are_read_and_what_is_no_page_is_counted(take, tmp_path):
    from tests.sources.test_archives import PAGE, archive

    image = ("response", "http://a.example/i", ("200 OK", "image/png"), b"?")
    content = archive(PAGE, image, image)
    write(tmp_path / "in" / "a.warc.gz", content)
    write(tmp_path / "in" / "b.warc.gz", content[: len(content) // 8])
    taken = take(input=tmp_path / "in")
    assert taken.of("url", "content_type") == [("http://a.example/", "text/html; charset=utf-8")]
    assert taken.skipped == {"content of type image/png": 2}
    assert [name for name, _, _ in taken.bad()] == ["b.warc.gz"]


def test_tables_are_read_by_their_names(spark, take, tmp_path):
    spark.sql("SELECT 1 AS id, 'x' AS text").createOrReplaceTempView("some_documents")
    assert take(input="some_documents", input_format="table").rows == [{"id": 1, "text": "x"}]
    for name in ("no_such_table", "a b", "x; DROP TABLE y", "`"):
        with pytest.raises(InputError, match="cannot be read: "):
            take(input=name, input_format="table")


def test_an_output_over_the_files_of_a_table_is_refused(spark, take, tmp_path):
    spark.sql("SELECT 1 AS id, 'x' AS text").write.parquet(f"{tmp_path}/out/in")
    spark.read.parquet(f"{tmp_path}/out/in").createOrReplaceTempView("over")
    with pytest.raises(OutputError):
        take(input="over", input_format="table")
    assert spark.table("over").count() == 1


def test_labels_become_a_column(take, tmp_path):
    for name in "abc":
        write(tmp_path / f"{name}.jsonl", f'{{"id": "{name}", "text": "x"}}\n')
    inputs = [tmp_path / f"{name}.jsonl" for name in "abc"]
    taken = take(input=inputs, labels=("web", "books", "web"))
    assert taken.of("id", "source") == [("a", "web"), ("b", "books"), ("c", "web")]
    with pytest.raises(SettingsError, match="labels are 1 and the paths of input 3"):
        take(input=inputs, labels=("web",))


def test_types_are_found_over_all_labelled_inputs(take, tmp_path):
    write(tmp_path / "a.jsonl", '{"id": 1, "text": "x"}\n')
    write(tmp_path / "b.jsonl", '{"id": "01", "text": "x", "more": 1}\n')
    taken = take(input=[tmp_path / "a.jsonl", tmp_path / "b.jsonl"], labels=("a", "b"), source_column="from")
    assert sorted(map(str, taken.of("id", "more", "from"))) == ["('01', 1, 'b')", "('1', None, 'a')"]


def test_parquet_of_two_labels_with_other_types_is_refused(take, tmp_path):
    for name, value in (("a", 1), ("b", "01")):
        pq.write_table(pa.table({"id": [value], "text": ["x"]}), tmp_path / f"{name}.parquet")
    with pytest.raises(InputError, match="column 'id' is bigint in one input and string in another"):
        take(input=[tmp_path / "a.parquet", tmp_path / "b.parquet"], labels=("a", "b"))


@pytest.mark.parametrize("column", ["value", "parsed", "file", "reason", "told", "n"])
def test_a_label_column_of_any_name_is_made(take, tmp_path, column):
    write(tmp_path / "a.jsonl", '{"id": "x", "text": "x"}\n{"id": "x", "text": "y"}\n')
    taken = take(input=tmp_path / "a.jsonl", labels=("web",), source_column=column, duplicate_ids="keep-apart")
    assert taken.of("id", column) == [("x", "web"), ("x-2", "web")]


def test_a_file_in_two_inputs_is_refused(take, tmp_path):
    write(tmp_path / "in" / "a.jsonl", '{"text": "x"}\n')
    with pytest.raises(InputError, match=r"a\.jsonl' is in two of the inputs"):
        take(input=[tmp_path / "in", tmp_path / "in" / "a.jsonl"], make_ids="content")


def test_compressed_files_are_known_by_endings_in_any_case(take, tmp_path):
    for name, pack in (("a.jsonl.GZ", gzip.compress), ("b.jsonl.gzip", gzip.compress), ("c.JSONL.Bz2", bz2.compress)):
        write(tmp_path / "in" / name, pack(f'{{"id": "{name}", "text": "x"}}\n'.encode()))
    taken = take(input=tmp_path / "in")
    assert (len(taken.rows), taken.rejects) == (3, [])


@pytest.mark.parametrize("kind", ["parquet", "orc"])
def test_a_column_of_a_table_and_of_its_directories_is_refused(spark, take, tmp_path, kind):
    getattr(spark.sql("SELECT 1 AS id, 'x' AS text, 'de' AS Lang").write, kind)(f"{tmp_path}/in/lang=en")
    with pytest.raises(InputError, match="'Lang' is both in the documents and in the names of directories"):
        take(input=f"{tmp_path}/in", input_format=kind)


@pytest.mark.parametrize("column", ["source", "SOURCE"])
def test_a_label_column_that_is_there_already_is_refused(take, tmp_path, column):
    pq.write_table(pa.table({"id": [1], "text": ["x"], column: ["y"]}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="has a column 'source', and the labels would be one"):
        take(input=tmp_path / "a.parquet", labels=("web",))


def test_a_column_of_the_documents_and_of_directories_is_refused(take, tmp_path):
    write(tmp_path / "in" / "crawl=01" / "a.jsonl", '{"id": 1, "text": "x", "Crawl": 2}\n')
    with pytest.raises(InputError, match="'crawl' is both in the documents and in the names of directories"):
        take(input=tmp_path / "in")


@pytest.mark.parametrize(
    "lines",
    [
        '{"id": 1, "text": "a", "text": "b"}',
        '{"id": 1, "text": "a", "Text": "b"}',
        '{"id": 1, "text": "a"}\n{"id": 2, "TEXT": "b"}',
        '{"id": 1, "text": "a", "m": {"k": 1, "K": 2}}',
        '{"id": 1, "text": "a", "m": [{"k": 1}, {"K": 2}]}',
        '{"id": 1, "text": "a", "__simhash_origin__": 1}',
    ],
)
def test_fields_whose_names_are_not_told_apart_are_refused(take, tmp_path, lines):
    write(tmp_path / "a.jsonl", lines)
    with pytest.raises(InputError, match="which Spark does not tell apart"):
        take(input=tmp_path / "a.jsonl")


def test_fields_of_any_name_are_kept(take, tmp_path):
    row = {"id": 1, "text": "a", "value": 2, "parsed": 3, "reason": 4, "_corrupt_record": "x", "a.b": [{"c d": 5, "`": 1}]}
    write(tmp_path / "a.jsonl", json.dumps(row))
    assert take(input=tmp_path / "a.jsonl").rows == [row]


def test_columns_of_types_that_spark_does_not_read_are_named_with_the_cure(take, tmp_path):
    columns = {"t": pa.array([0], pa.timestamp("ns")), "u": pa.array([0], pa.uint64()), "id": [1], "text": ["x"]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"these are 't' \(timestamp\[ns\]\): write timestamps in microseconds"):
        take(input=tmp_path / "a.parquet")


def test_made_ids_depend_on_the_content_alone(take, tmp_path):
    rows = [{"text": "one"}, {"text": "two"}, {"text": "one"}, {"text": "one"}, {"text": None, "n": 1}]
    write(tmp_path / "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    for number, row in enumerate(reversed(rows)):
        write(tmp_path / "b" / f"{number}.jsonl", json.dumps(row) + "\n")
    ids = {}
    for given in ("a.jsonl", "b"):
        taken = take(input=tmp_path / given, make_ids="content", id_column="key")
        ids[given] = taken.of("key")
        first = min(row["key"] for row in taken.rows if row["text"] == "one")
        assert sorted(row["key"] for row in taken.rows if row["text"] == "one") == [first, f"{first}-2", f"{first}-3"]
        assert len(first) == 32
    assert ids["a.jsonl"] == ids["b"]
    assert len(set(ids["b"])) == 5


def test_ids_are_not_made_over_those_that_are_there(take, tmp_path):
    write(tmp_path / "a.jsonl", '{"ID": 1, "text": "x"}\n')
    with pytest.raises(InputError, match="has a column 'id', and --make-ids would make one"):
        take(input=tmp_path / "a.jsonl", make_ids="content")


def test_rows_that_share_an_id_are_kept_apart_by_their_content(take, tmp_path):
    rows = [(1, "b"), (2, "x"), (1, "a"), (1, "b")]
    lines = [json.dumps({"id": identity, "text": text}) + "\n" for identity, text in rows]
    found = []
    for order in (lines, lines[::-1]):
        write(tmp_path / "a.jsonl", "".join(order))
        taken = take(input=tmp_path / "a.jsonl", duplicate_ids="keep-apart")
        found.append(taken.of("id", "text"))
        assert taken.schema["id"] == "string"
    assert found[0] == found[1]
    assert sorted(identity for identity, _ in found[0]) == ["1", "1-2", "1-3", "2"]


def test_too_many_rejects_stop_the_run(take, tmp_path):
    write(tmp_path / "a.jsonl", '{"id": 1, "text": "x"}\nbad\n')
    with pytest.raises(InputError, match=r"1 of 2 records .* 50\.0%, more than max-rejected, 10\.0%"):
        take(input=tmp_path / "a.jsonl", max_rejected=0.1)
    assert len(take(input=tmp_path / "a.jsonl", max_rejected=0.5).rows) == 1


def test_a_bad_record_stops_a_run_that_may_not_reject(take, tmp_path):
    write(tmp_path / "a.jsonl", '{"id": 1, "text": "x"}\nbad\nworse\n')
    with pytest.raises(InputError, match=r"2 records .* not one JSON object in .*a\.jsonl, 2: 'bad'; .*, 3: 'worse'"):
        take(input=tmp_path / "a.jsonl", on_bad_input="fail")
    assert not (tmp_path / "out").exists()


def test_a_look_at_the_input_writes_nothing_and_gives_the_same_rows(spark, tmp_path):
    write(tmp_path / "in" / "a.csv", "text\nx\nx\n")
    before = sorted(tmp_path.rglob("*"))
    looked = look_at(spark, Settings(input=f"{tmp_path}/in", output=f"{tmp_path}/out", make_ids="content"))
    assert looked.count() == 2
    assert sorted(tmp_path.rglob("*")) == before
