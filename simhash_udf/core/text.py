"""Text -> tokens or characters, normalised, as spans of one buffer of UTF-8 bytes.

The normalised text is NFKC, then case folding, then without default-ignorable and format characters, in that order.
A token is a run of letters, marks, digits and '_'; in scripts written without spaces each character with its marks is
a token. Tokens are written joined by one space, so a word n-gram is a slice of the buffer; for character n-grams the
whole normalised text is written. Everything happens in one pass; only a character that may change under NFKC, together
with its neighbours up to the next boundary, takes the slow way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from simhash_udf.core.unicode import (
    BOUNDARY,
    CLASS_MASK,
    DROPPED,
    FOLDS,
    MARK,
    SEPARATOR,
    SIMPLE,
    SOLO,
    WORD,
    Tables,
    normalise,
    row_of,
    tables,
)
from simhash_udf.core.xxh64 import load64

REPLACEMENT = 0xFFFD
# A letter or digit that is written as it stands.
_PLAIN_WORD = WORD | BOUNDARY | SIMPLE
_HIGH_BITS = np.uint64(0x8080808080808080)

# What is open at the end of the buffer.
_NOTHING, _WORD, _SOLO = 0, 1, 2


def _ascii_tokens() -> Any:
    table = np.full(128, _SPACE, np.uint8)
    for character in "abcdefghijklmnopqrstuvwxyz0123456789_":
        table[ord(character)] = table[ord(character.upper())] = ord(character)
    return table


_SPACE = 32
# What an ASCII character is written as: in a token (a space: it separates tokens), and in the normalised text.
_ASCII_TOKENS = _ascii_tokens()
_ASCII_FOLDED = np.array([ord(chr(code).lower()) for code in range(128)], np.uint8)


@njit(cache=True, forceinline=True)
def decode(data: Any, at: int, end: int) -> Any:
    """The code point that starts at `at`, and where the next one starts.

    Bytes that are not UTF-8 count as U+FFFD, one for each maximal part of a sequence (Unicode 14.0, section 3.9), as
    Python's `bytes.decode(errors="replace")` does.
    """
    first = np.int64(data[at])
    if first < 0x80:
        return first, at + 1
    if 0xC2 <= first < 0xE0:
        if at + 1 < end and data[at + 1] & 0xC0 == 0x80:
            return (first & 0x1F) << 6 | (np.int64(data[at + 1]) & 0x3F), at + 2
    elif 0xE0 < first < 0xF0 and first != 0xED:
        if at + 2 < end and data[at + 1] & 0xC0 == 0x80 and data[at + 2] & 0xC0 == 0x80:
            code = (first & 0x0F) << 12 | (np.int64(data[at + 1]) & 0x3F) << 6 | (np.int64(data[at + 2]) & 0x3F)
            return code, at + 3
    return _decode_rare(data, at, end)


@njit(cache=True)
def _decode_rare(data: Any, at: int, end: int) -> Any:
    """`decode` for what begins with E0 or ED, has four bytes, or is not UTF-8."""
    first = np.int64(data[at])
    low, high, more, code = 0x80, 0xBF, 0, np.int64(0)
    if 0xC2 <= first <= 0xDF:
        more, code = 1, first & 0x1F
    elif 0xE0 <= first <= 0xEF:
        more, code = 2, first & 0x0F
        low = 0xA0 if first == 0xE0 else 0x80
        high = 0x9F if first == 0xED else 0xBF
    elif 0xF0 <= first <= 0xF4:
        more, code = 3, first & 0x07
        low = 0x90 if first == 0xF0 else 0x80
        high = 0x8F if first == 0xF4 else 0xBF
    else:
        return np.int64(REPLACEMENT), at + 1
    at += 1
    for _ in range(more):
        if at >= end or data[at] < low or data[at] > high:
            return np.int64(REPLACEMENT), at
        code = code << 6 | (np.int64(data[at]) & 0x3F)
        low, high = 0x80, 0xBF
        at += 1
    return code, at


@njit(cache=True, forceinline=True)
def _write(code: int, buffer: Any, size: int) -> Any:
    """Append a code point to the buffer as UTF-8; the new size."""
    if code < 0x80:
        buffer[size] = code
        return size + 1
    if code < 0x800:
        buffer[size] = 0xC0 | code >> 6
        buffer[size + 1] = 0x80 | code & 0x3F
        return size + 2
    if code < 0x10000:
        buffer[size] = 0xE0 | code >> 12
        buffer[size + 1] = 0x80 | code >> 6 & 0x3F
        buffer[size + 2] = 0x80 | code & 0x3F
        return size + 3
    buffer[size] = 0xF0 | code >> 18
    buffer[size + 1] = 0x80 | code >> 12 & 0x3F
    buffer[size + 2] = 0x80 | code >> 6 & 0x3F
    buffer[size + 3] = 0x80 | code & 0x3F
    return size + 4


@njit(cache=True, forceinline=True)
def _append(code: int, kind: int, characters: bool, buffer: Any, size: int, starts: Any, count: int, opened: int) -> Any:
    """Append one folded character of a class; the new (size, count, opened)."""
    if kind == DROPPED:
        return size, count, opened
    if characters:
        starts[count] = size
        return _write(code, buffer, size), count + 1, opened if kind == SEPARATOR else _WORD
    if kind == SEPARATOR:
        if opened != _NOTHING:
            buffer[size] = _SPACE
            size += 1
        return size, count, _NOTHING
    if kind == SOLO or opened == _NOTHING or (opened == _SOLO and kind != MARK):
        if opened != _NOTHING:
            buffer[size] = _SPACE
            size += 1
        starts[count] = size
        count += 1
        opened = _SOLO if kind == SOLO else _WORD
    return _write(code, buffer, size), count, opened


@njit(cache=True, forceinline=True)
def _append_folded(
    code: int, row: int, characters: bool, buffer: Any, size: int, starts: Any, count: int, opened: int, unicode: Tables
) -> Any:
    flags = unicode.flags[row]
    if flags & FOLDS == 0:
        return _append(code, flags & CLASS_MASK, characters, buffer, size, starts, count, opened)
    folded = np.int64(unicode.folding[row])
    length = 1 if folded > 0 else np.int64(unicode.fold_data[-folded])
    for i in range(length):
        part = folded if folded > 0 else np.int64(unicode.fold_data[1 + i - folded])
        kind = unicode.flags[row_of(part, unicode)] & CLASS_MASK
        size, count, opened = _append(part, kind, characters, buffer, size, starts, count, opened)
    return size, count, opened


@njit(cache=True)
def _grown(array: Any, used: int, needed: int) -> Any:
    larger = np.empty(used + needed + len(array) // 2, array.dtype)
    larger[:used] = array[:used]
    return larger


@njit(cache=True, forceinline=True)
def _next_beyond_ascii(data: Any, at: int, end: int) -> int:
    while at + 8 <= end and load64(data, at) & _HIGH_BITS == 0:
        at += 8
    while at < end and data[at] < 0x80:
        at += 1
    return at


@njit(cache=True)
def _split_ascii(data: Any, at: int, end: int, buffer: Any, size: int, starts: Any, count: int, opened: int) -> Any:
    """Tokens of an ASCII stretch; without branches, since they would be mispredicted at every token's end."""
    if opened == _SOLO:
        if _ASCII_TOKENS[data[at]] != _SPACE:
            buffer[size] = _SPACE
            size += 1
            opened = _NOTHING
    within = np.int64(opened != _NOTHING)
    while at < end:
        written = _ASCII_TOKENS[data[at]]
        token = np.int64(written != _SPACE)
        buffer[size] = written
        starts[count] = size
        count += token & (within ^ 1)
        size += token | within
        within = token
        at += 1
    return size, count, _WORD if within else _NOTHING


@njit(cache=True)
def _split_simple(
    data: Any, at: int, end: int, characters: bool, buffer: Any, size: int, starts: Any, count: int, opened: int,
    unicode: Tables,
) -> Any:  # fmt: skip
    """Split `data[at:end]` up to the first character that NFKC may change; the new (at, size, count, opened)."""
    while at < end:
        stop = _next_beyond_ascii(data, at, end)
        # The last ASCII character may combine with what follows it.
        plain = stop if stop == end else stop - 1
        if characters:
            while at < plain:
                starts[count] = size
                count += 1
                buffer[size] = _ASCII_FOLDED[data[at]]
                size += 1
                if _ASCII_TOKENS[data[at]] != _SPACE:
                    opened = _WORD
                at += 1
        elif at < plain:
            size, count, opened = _split_ascii(data, at, plain, buffer, size, starts, count, opened)
            at = plain
        if at == end:
            break
        code, after = decode(data, at, end)
        row = row_of(code, unicode)
        while True:
            following, beyond, following_row = np.int64(32), after, np.int64(0)
            boundary = True
            if after < end and data[after] >= 0x80:
                following, beyond = decode(data, after, end)
                following_row = row_of(following, unicode)
                boundary = unicode.flags[following_row] & BOUNDARY != 0
            if not (boundary and unicode.flags[row] & SIMPLE):
                return at, size, count, opened
            if opened == _WORD and not characters and unicode.flags[row] == _PLAIN_WORD:
                while at < after:
                    buffer[size] = data[at]
                    size += 1
                    at += 1
            else:
                size, count, opened = _append_folded(code, row, characters, buffer, size, starts, count, opened, unicode)
                at = after
            if beyond == after:
                break
            code, after, row = following, beyond, following_row
    return at, size, count, opened


@njit(cache=True)
def split(data: Any, start: int, end: int, characters: bool, buffer: Any, starts: Any, unicode: Tables) -> Any:
    """Tokens (or, with `characters`, characters) of the UTF-8 text `data[start:end]`.

    Returns (count, buffer, starts): token i is `buffer[starts[i] : starts[i + 1] - 1]`, followed by a space unless it
    is the last; character i is `buffer[starts[i] : starts[i + 1]]`. `count` is 0 for a text without tokens, in both
    units. `buffer` (uint8) and `starts` (int64) are scratch space, returned because they grow when a text needs more.
    """
    # Folding makes at most three characters, of six bytes and a space, of one of two bytes. Only what normalisation
    # expands can need more, and grows the space where it is met; pages that are never written cost no memory.
    if len(buffer) < 4 * (end - start) + 64:
        buffer = np.empty(4 * (end - start) + 64, np.uint8)
    if len(starts) < 2 * (end - start) + 64:
        starts = np.empty(2 * (end - start) + 64, np.int64)
    size, count, opened = np.int64(0), np.int64(0), np.int64(_NOTHING)
    segment = np.empty(16, np.int32)
    at = np.int64(start)
    while True:
        at, size, count, opened = _split_simple(data, at, end, characters, buffer, size, starts, count, opened, unicode)
        if at == end:
            break
        length = 0
        while at < end:
            code, after = decode(data, at, end)
            if length and unicode.flags[row_of(code, unicode)] & BOUNDARY:
                break
            if length == len(segment):
                segment = _grown(segment, length, length)
            segment[length] = code
            length += 1
            at = after
        normalised = normalise(segment, length, unicode)
        if size + 15 * len(normalised) + 4 * (end - at) + 64 > len(buffer):
            buffer = _grown(buffer, size, 15 * len(normalised) + 4 * (end - at) + 64)
        if count + 3 * len(normalised) + 2 * (end - at) + 64 > len(starts):
            starts = _grown(starts, count, 3 * len(normalised) + 2 * (end - at) + 64)
        for i in range(len(normalised)):
            part = np.int64(normalised[i])
            size, count, opened = _append_folded(
                part, row_of(part, unicode), characters, buffer, size, starts, count, opened, unicode
            )
    if characters:
        if opened == _NOTHING:
            count = 0
        starts[count] = size
    else:
        starts[count] = size if opened == _NOTHING else size + 1
    return count, buffer, starts


def tokens(text: str, unit: str = "word") -> list[str]:
    """The tokens of a text (`unit="word"`) or the characters of its normalised form (`unit="char"`), as features see them.

    >>> tokens("Straße, the naïve_Way: 你好!")
    ['strasse', 'the', 'naïve_way', '你', '好']
    """
    raw_text = encoded(text)
    data = np.frombuffer(raw_text + b"\0", np.uint8)
    scratch = np.empty(0, np.uint8), np.empty(0, np.int64)
    gap = 1 if unit == "word" else 0
    count, buffer, starts = split(data, 0, len(raw_text), unit == "char", scratch[0], scratch[1], tables())
    raw = buffer.tobytes()
    return [raw[starts[i] : starts[i + 1] - gap].decode() for i in range(count)]


def encoded(text: str) -> bytes:
    """UTF-8 bytes of a text; a lone surrogate, which UTF-8 cannot hold, becomes U+FFFD and so separates tokens."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace").encode()
