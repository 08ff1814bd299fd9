import gzip
import io
import re

import pytest
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from simhash_udf.sources.archives import records

HTML = "<html><head><title>T</title><script>x = 1</script></head><body><p>Words of é page</p></body></html>".encode()
NAME = "<urn:uuid:00000000-0000-0000-0000-000000000001>"


def archive(*given, packed=True):
    """An archive with a record for each (type, url, HTTP status and type, or None, and content)."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=packed)
    for number, (kind, url, http, content) in enumerate(given, 1):
        told = StatusAndHeaders(http[0], [("Content-Type", http[1])] if http[1] else [], protocol="HTTP/1.1") if http else None
        headers = {"WARC-Record-ID": NAME.replace("1>", f"{number}>"), "WARC-Date": "2024-01-02T03:04:05Z"}
        record = writer.create_warc_record(
            url, kind, payload=io.BytesIO(content), http_headers=told, warc_headers_dict=headers,
            **({"warc_content_type": "text/plain"} if http is None else {}),
        )  # fmt: skip
        writer.write_record(record)
    return out.getvalue()


def read(path, content, limit=1 << 20):
    path.write_bytes(content)
    return list(records(str(path), limit=limit))


PAGE = ("response", "http://a.example/", ("200 OK", "text/html; charset=utf-8"), HTML)


@pytest.mark.parametrize("name", ["a.warc", "a.warc.gz"])
def test_a_page_is_its_text_with_its_name_address_and_date(tmp_path, name):
    (record,) = read(tmp_path / name, archive(PAGE, packed=name.endswith("gz")))
    assert record.position == 1
    assert record.values[:4] == (NAME, "http://a.example/", "2024-01-02T03:04:05Z", "text/html; charset=utf-8")
    assert record.values[4].split() == ["Words", "of", "é", "page"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (("conversion", "http://a.example/", None, "Thé text\n".encode()), "Thé text\n"),
        (("response", "http://a.example/", ("200 OK", "text/plain; charset=iso-8859-1"), b"th\xe9"), "thé"),
        (("response", "http://a.example/", ("200 OK", "text/plain; charset=no-such"), b"plain"), "plain"),
        (("response", "http://a.example/", ("200 OK", "text/plain; charset=unicode_escape"), rb"\ud800"), r"\ud800"),
        (("response", "http://a.example/", ("200 OK", "text/plain; charset=utf-7"), b"+2AA-"), "+2AA-"),
        (("response", "http://a.example/", ("200 OK", None), b"<html><p>Some"), "Some"),
        (("response", "http://a.example/", ("200 OK", "text/html"), b""), ""),
    ],
)
def test_texts_are_read_by_what_is_told_of_them(tmp_path, given, text):
    (record,) = read(tmp_path / "a.warc.gz", archive(given))
    assert record.values[4] == text


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (("request", "http://a.example/", ("GET / HTTP/1.1", None), b""), "skipped: a request record"),
        (("metadata", "http://a.example/", None, b"x: y"), "skipped: a metadata record"),
        (("resource", "metadata://wget/log", None, b"x"), "skipped: a record of how the crawl was made"),
        (("response", "http://a.example/", ("404 Not Found", "text/html"), HTML), "skipped: HTTP status 404"),
        (("response", "http://a.example/", ("200 OK", "image/png"), b"\x89PNG"), "skipped: content of type image/png"),
        (("response", "http://a.example/", ("200 OK", None), b"?"), "skipped: content of type unknown"),
    ],
)
def test_records_that_are_no_pages_are_skipped_with_the_reason(tmp_path, given, reason):
    skipped, page = read(tmp_path / "a.warc", archive(given, PAGE, packed=False))
    assert (skipped.values, skipped.reason, page.reason) == (None, reason, None)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("share", [0.55, 0.75, 0.95])
def test_half_a_record_is_told_and_those_before_it_are_read(tmp_path, packed, share):
    content = archive(PAGE, PAGE, packed=packed)
    first, *rest = read(tmp_path / "a", content[: int(len(content) * share)])
    assert first.reason is None
    assert [record.values for record in rest] == [None]
    assert "the archive ends" in rest[0].reason or "cannot be read to its end" in rest[0].reason


def test_what_is_no_archive_is_told(tmp_path):
    for content in (b"hello\nworld\n", gzip.compress(b"hello\nworld\n"), b"WARC/1.0\r\nrubbish\r\n\r\n", HTML):
        assert re.search("cannot be read to its end|is no archive", read(tmp_path / "a", content)[-1].reason)
    assert read(tmp_path / "a", b"") == []


def test_a_record_that_is_too_long_is_told_and_the_next_is_read(tmp_path):
    long = ("response", "http://a.example/", ("200 OK", "text/plain"), b"x" * 5000)
    found = read(tmp_path / "a.warc", archive(long, PAGE, packed=False), limit=1000)
    assert [record.reason for record in found] == ["the record is longer than 1,000 bytes", None]


@pytest.mark.parametrize("name", ["a.arc", "a.arc.gz"])
def test_records_of_arc_files_have_ids_that_stay_the_same(tmp_path, name):
    page = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + HTML
    content = b"filedesc://a.arc 0.0.0.0 20240102030405 text/plain 76\n1 0 InternetArchive\nURL IP-address Archive-date "
    content += (
        b"Content-type Archive-length\n\nhttp://a.example/ 1.2.3.4 20240102030405 text/html %d\n" % len(page) + page + b"\n"
    )
    path = tmp_path / name
    for _ in range(2):
        skipped, found = read(path, gzip.compress(content) if name.endswith("gz") else content)
        assert skipped.reason == "skipped: a warcinfo record"
        assert found.values[:3] == (f"{path}#2", "http://a.example/", "2024-01-02T03:04:05Z")
        assert found.values[4].split() == ["Words", "of", "é", "page"]
