"""Bytes of a file -> lines, with what is damaged, too long or not in its encoding told apart from what is whole. No Spark."""

from __future__ import annotations

import codecs
import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO, NamedTuple

import pyarrow as pa

from simhash_udf.storage import open_stream

PIECE = 1 << 16
SHOWN = 1000
# Those that are read here; Hadoop's own (.lz4, .snappy, .deflate) only Spark reads.
COMPRESSIONS = {".gz": "gzip", ".gzip": "gzip", ".bz2": "bz2", ".zst": "zstd"}


class Damage(Exception):
    """The rest of a file cannot be read; the text says why."""


class Line(NamedTuple):
    """A line of a text: its number from 1, its text, or why it is none, how it begins, and the text with what could not be read
    replaced; None where the line was too long, or the file damaged."""

    number: int
    text: str | None
    reason: str | None = None
    beginning: str | None = None


def compression_of(path: str) -> str | None:
    """The compression that a file's name tells of, if it is one that is read here.

    >>> compression_of("a.jsonl.GZ"), compression_of("a.jsonl")
    ('gzip', None)
    """
    return next((codec for ending, codec in COMPRESSIONS.items() if path.lower().endswith(ending)), None)


def spark_knows_compression_of(path: str) -> bool:
    """Whether Spark decompresses a file that is decompressed here: it tells by few endings, in small letters."""
    return compression_of(path) is None or path.endswith((".gz", ".bz2", ".zst"))


class _Gzip(gzip.GzipFile):
    """Gives what it has, where `read` of its base loses what precedes damage by as little as it was asked to read."""

    def read(self, size: int | None = -1) -> bytes:
        return self.read1(-1 if size is None else size)


@contextmanager
def opened(path: str, *, sniff: bool = False) -> Iterator[BinaryIO]:
    """The content of a file, uncompressed, as a stream.

    Args:
        sniff: whether a file that begins as gzip does is gzip, whatever its name.

    Raises:
        Damage: the file is gone, may not be read, or its compressed content is damaged, then or at a later read.
    """
    try:
        with open_stream(path) as stream:
            codec = compression_of(path)
            if sniff and not codec:
                codec = "gzip" if stream.read(2) == b"\x1f\x8b" else None
                stream.seek(0)
            if codec == "gzip":
                # Not Arrow's, which takes zeros after the last member, as tapes and some writers pad, for damage.
                yield _Gzip(fileobj=stream)  # type: ignore[misc]
            else:
                yield pa.CompressedInputStream(stream, codec) if codec else stream
    except (OSError, EOFError, zlib.error, pa.ArrowException) as error:
        reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Damage(f"the file cannot be read to its end: {reason.splitlines()[0]}") from None


def pieces(path: str) -> Iterator[bytes]:
    """The content of a file, uncompressed, in pieces of about 64 KiB.

    Raises:
        Damage: as `opened`; what precedes the damage has been given.
    """
    with opened(path) as stream:
        while piece := stream.read(PIECE):
            yield piece


def raw_lines(content: Iterator[bytes], limit: int) -> Iterator[tuple[bytes, bool]]:
    r"""The lines of a file with their ends, which are \n, \r or \r\n, and whether each is whole: of a line of more than `limit`
    bytes only its beginning is given, and no more than `limit` bytes and a piece are held.

    >>> list(raw_lines(iter([b"a\r", b"\nbcd", b"ef\ng"]), limit=4))
    [(b'a\r\n', True), (b'bcd', False), (b'g', True)]
    """
    kept: list[bytes] = []
    held = 0
    long = False
    carry = b""
    for piece in content:
        piece = carry + piece
        # Whether \n follows this \r, the next piece tells.
        carry = piece[-1:] if piece.endswith(b"\r") else b""
        parts = piece[: len(piece) - len(carry)].splitlines(keepends=True)
        for part in parts:
            if not long and held + len(part.rstrip(b"\r\n")) > limit:
                long = True
                # All that is shown of it.
                kept = [(kept[0] if kept else part)[:SHOWN]]
            if not long:
                kept.append(part)
                held += len(part)
            if part.endswith((b"\n", b"\r")):
                yield b"".join(kept), not long
                kept, held, long = [], 0, False
    if carry:
        kept.append(carry)
    if kept:
        yield b"".join(kept), not long


def lines(content: Iterator[bytes], encoding: str, limit: int, *, ends: bool = False) -> Iterator[Line]:
    """The lines of a text in an encoding, each of at most `limit` bytes, with their ends or without. A mark of the byte order at
    the beginning is left out.

    What cannot be read becomes a line without a text: a line that is too long or not in its encoding, and, where the file is
    damaged or its encoding does not tell lines apart by the bytes of their ends (as UTF-16), all that follows.
    """
    number = 0
    by_line = _ends_lines_as_ascii(encoding)
    source = content if by_line else _as_utf8(content, encoding)
    codec = encoding if by_line else "utf-8"
    try:
        for raw, whole in raw_lines(source, limit):
            number += 1
            if number == 1 and codecs.lookup(codec).name == "utf-8":
                raw = raw.removeprefix(codecs.BOM_UTF8)
            shown = raw[:SHOWN].decode(codec, "replace")
            if not whole:
                yield Line(number, None, f"the line is longer than {limit:,} bytes", shown)
                continue
            if not ends:
                raw = raw.rstrip(b"\r\n")
            try:
                yield Line(number, raw.decode(codec))
            except UnicodeDecodeError as error:
                reason = f"the line is not valid {encoding}: {error.reason} at byte {error.start + 1}"
                yield Line(number, raw.decode(codec, "replace"), reason, shown)
    except Damage as damage:
        yield Line(number + 1, None, str(damage))


def _as_utf8(content: Iterator[bytes], encoding: str) -> Iterator[bytes]:
    decoder = codecs.getincrementaldecoder(encoding)()
    done = 0
    try:
        for piece in content:
            yield decoder.decode(piece).encode("utf-8")
            done += len(piece)
        yield decoder.decode(b"", True).encode("utf-8")
    except UnicodeError as error:
        reason = error.reason if isinstance(error, UnicodeDecodeError) else str(error)
        raise Damage(f"the file is not valid {encoding} after byte {done:,}: {reason}") from None


def _ends_lines_as_ascii(encoding: str) -> bool:
    return "\r\n".encode(encoding) == b"\r\n" and "a".encode(encoding) == b"a"


def has_long_line(path: str, limit: int) -> bool:
    """Whether an uncompressed file may have a line of more than `limit` bytes; nearly nothing of the file is read.

    A line that long has all of one of the stretches of half its length, which begin at multiples of that: it is enough to find an
    end of a line in each of them. The answer may be yes for a line of more than half the limit.

    Raises:
        Damage: the file is gone or may not be read.
    """
    stretch = max(1, limit // 2)
    with opened(path) as stream:
        size = stream.seek(0, 2)
        for start in range(0, max(1, size), stretch):
            stream.seek(start)
            left = stretch
            while left > 0:
                piece = stream.read(min(PIECE, left))
                if not piece or b"\n" in piece or b"\r" in piece:
                    break
                left -= len(piece)
            else:
                return True
    return False
