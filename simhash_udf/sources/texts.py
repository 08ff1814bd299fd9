"""Text files -> rows: each file a document, its path the id."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from simhash_udf.credentials import without_credentials
from simhash_udf.sources.files import DataFile
from simhash_udf.sources.records import Record, read_by_python
from simhash_udf.sources.streams import SHOWN, Damage, pieces


def read_texts(
    spark: SparkSession, files: list[DataFile], *, id_column: str, text_column: str, encoding: str, limit: int
) -> DataFrame:
    """The text of each file, of at most `limit` bytes, in columns of these names."""
    return read_by_python(spark, files, [id_column, text_column], partial(records, encoding=encoding, limit=limit))


def records(path: str, *, encoding: str, limit: int) -> Iterator[Record]:
    """One record: the path and the text of a file."""
    content = bytearray()
    try:
        for piece in pieces(path):
            content += piece
            if len(content) > limit:
                shown = bytes(content[:SHOWN]).decode(encoding, "replace")
                yield Record(1, None, f"the file is longer than {limit:,} bytes", shown)
                return
        text = bytes(content).decode(encoding)
        if codecs.lookup(encoding).name.startswith("utf"):
            text = text.removeprefix("\ufeff")
        yield Record(1, (without_credentials(path), text))
    except Damage as damage:
        yield Record(1, None, str(damage))
    except UnicodeError as error:
        where = f": {error.reason} at byte {error.start + 1:,}" if isinstance(error, UnicodeDecodeError) else f": {error}"
        yield Record(1, None, f"the file is not valid {encoding}{where}", bytes(content[:SHOWN]).decode(encoding, "replace"))
