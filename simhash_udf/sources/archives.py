"""Web archives -> rows: the text of each page of WARC and ARC files, and of each conversion record of WET files.

Records are read one by one by warcio; HTML is made text by resiliparse.
"""

from __future__ import annotations

import importlib.util
import zlib
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from simhash_udf.credentials import without_credentials
from simhash_udf.errors import InputError, SettingsError
from simhash_udf.knob_values import check_encoding
from simhash_udf.sources.files import DataFile
from simhash_udf.sources.records import SKIPPED, Record, read_by_python
from simhash_udf.sources.streams import SHOWN, Damage, opened

_HTML = ("text/html", "application/xhtml+xml")
_SNIFFED = 1024


def read_archives(spark: SparkSession, files: list[DataFile], *, id_column: str, text_column: str, limit: int) -> DataFrame:
    """The pages of archives: `id_column` (WARC-Record-ID; path and number in ARC files, which have none), `url`, `date`,
    `content_type` and `text_column`. Records that are no pages are skipped, with the reason.

    Args:
        limit: longest record in bytes, once its transfer encoding is undone.

    Raises:
        InputError: a package that reads archives is missing.
    """
    missing = [name for name in ("warcio", "resiliparse") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"web archives are read by {' and '.join(missing)}, not installed here: pip install 'simhash-udf[archives]'"
        )
    names = [id_column, "url", "date", "content_type", text_column]
    return read_by_python(spark, files, names, partial(records, limit=limit))


def records(path: str, *, limit: int) -> Iterator[Record]:
    """The records of an archive, each a page, skipped or unreadable; the position is that of the record from 1."""
    from warcio.archiveiterator import ArchiveIterator

    number = 0
    try:
        with opened(path, sniff=True) as stream:
            watched = _Watched(stream)
            archive = ArchiveIterator(watched, arc2warc=True)
            whole = True
            for number, record in enumerate(archive, 1):
                # Those of ARC files have no names, and would get ones that are others at each reading.
                name = (
                    f"{without_credentials(path)}#{number}" if watched.is_arc else record.rec_headers.get_header("WARC-Record-ID")
                )
                page = _page(record, number, name, limit)
                whole = record.raw_stream.limit == 0
                watched.forget(archive.reader.rem_length() if archive.reader else 0)
                yield page
            number += 1
            # warcio takes an error of its stream, and half a header, for the end.
            if whole and watched.error:
                raise watched.error
            if whole and watched.held.strip():
                raise Damage("the archive ends within the header of a record, or has something else at its end")
    except Damage as damage:
        yield Record(max(1, number), None, str(damage))
    except Exception as error:
        # warcio hands on the errors of all that it reads by: chunks, headers, encodings, its own.
        said = str(error).strip().partition("\n")[0]
        yield Record(max(1, number), None, f"the archive cannot be read to its end: {type(error).__name__}: {said}"[:SHOWN])


class _Watched:
    """A stream that ends where it is damaged, and remembers why, what it began with, and what it gave since it last forgot."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._begins: bytes | None = None
        self.held = b""
        self.error: Exception | None = None

    @property
    def is_arc(self) -> bool:
        return (self._begins or b"").startswith(b"filedesc://")

    def read(self, size: int = -1) -> bytes:
        try:
            piece = self._stream.read(size)
        except (EOFError, OSError, zlib.error, pa.ArrowException) as error:
            self.error = error
            return b""
        self._begins = piece[:16] if self._begins is None else self._begins
        self.held += piece
        return piece

    def tell(self) -> int:
        return self._stream.tell()

    def forget(self, unread: int) -> None:
        """All but the last bytes, which have not been looked at."""
        self.held = self.held[len(self.held) - unread :]


def _page(record: Any, number: int, name: str | None, limit: int) -> Record:
    url = record.rec_headers.get_header("WARC-Target-URI")
    content = record.content_stream().read(limit + 1)
    long = len(content) > limit
    # What follows the record is found at its end.
    while record.raw_stream.read(1 << 20):
        pass
    if record.raw_stream.limit > 0:
        return Record(number, None, f"the archive ends {record.raw_stream.limit:,} bytes before this record does", url)
    content_type = _content_type(record)
    plain = (content_type or "").partition(";")[0].strip().lower()
    if not plain and b"<html" in content[:_SNIFFED].lower():
        plain = "text/html"
    skipped = _reason_to_skip(record, url, plain)
    if skipped:
        return Record(number, None, SKIPPED + skipped, url)
    if long:
        return Record(number, None, f"the record is longer than {limit:,} bytes", url)
    return Record(
        number, (name, url, record.rec_headers.get_header("WARC-Date"), content_type, _text(content, plain, content_type))
    )


def _content_type(record: Any) -> str | None:
    if record.rec_type == "response":
        return record.http_headers.get_header("Content-Type") if record.http_headers else None
    told: str | None = record.rec_headers.get_header("Content-Type")
    return told


def _reason_to_skip(record: Any, url: str | None, plain: str) -> str | None:
    if record.rec_type == "response" and ":" not in (url or ""):
        raise Damage("the file is no archive")
    if record.rec_type not in ("response", "conversion", "resource") or (url or "").startswith("metadata:"):
        return f"a {record.rec_type} record" if record.rec_type != "resource" else "a record of how the crawl was made"
    status = record.http_headers.get_statuscode() if record.rec_type == "response" and record.http_headers else "200"
    if not str(status).startswith("2"):
        return f"HTTP status {status}"
    return None if plain in _HTML or plain.startswith("text/") else f"content of type {plain or 'unknown'}"


def _text(content: bytes, plain: str, content_type: str | None) -> str:
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.encoding import bytes_to_str, detect_encoding

    charset = (content_type or "").lower().partition("charset=")[2].split(";")[0].strip(" \"'")
    try:
        text = content.decode(check_encoding(charset or "utf-8"))
        text.encode("utf-8")
    except (UnicodeError, SettingsError):
        text = bytes_to_str(content, detect_encoding(content) or "utf-8", fallback_encodings=("utf-8", "windows-1252"))
    return str(extract_plain_text(text)) if plain in _HTML else text
