import bz2
import gzip
import io

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simhash_udf.sources.streams import Damage, Line, has_long_line, lines, pieces, raw_lines

LINES = "".join(f"line {number} of some\n" for number in range(20_000)).encode()


def packed(content, ending):
    if ending == "zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(content)
        return sink.getvalue().to_pybytes()
    return {"gz": gzip.compress, "bz2": bz2.compress, "txt": bytes}[ending](content)


def written(path, content):
    path.write_bytes(content)
    return str(path)


@pytest.mark.parametrize("ending", ["txt", "gz", "bz2", "zst"])
@pytest.mark.parametrize("members", [1, 2])
def test_files_of_any_compression_and_number_of_members_are_read_to_their_end(tmp_path, ending, members):
    path = written(tmp_path / f"a.{ending}", packed(LINES, ending) * members)
    assert b"".join(pieces(path)) == LINES * members


@pytest.mark.parametrize("ending", ["gz", "bz2", "zst"])
@pytest.mark.parametrize("spoil", ["cut", "changed", "followed"])
def test_of_a_damaged_file_what_precedes_the_damage_is_read_and_the_damage_told(tmp_path, ending, spoil):
    whole = packed(LINES, ending)
    if spoil == "changed":
        if ending == "zst":
            pytest.skip("zstd finds no change without a checksum, which writers need not add")
        content = whole[: len(whole) // 2] + bytes(byte ^ 255 for byte in whole[len(whole) // 2 : len(whole) // 2 + 9])
        content += whole[len(content) :]
    else:
        content = whole[: len(whole) * 2 // 3] if spoil == "cut" else whole + b"something else"
    path = written(tmp_path / f"a.{ending}", content)
    read = list(lines(pieces(path), "utf-8", 100))
    assert read[-1].text is None
    assert read[-1].reason.startswith("the file cannot be read to its end: ")
    good = [line.text for line in read if line.reason is None]
    if spoil == "changed" and ending == "gz":
        # What is read before its checksum shows the change may be wrong.
        good = good[:5]
    # The last may have lost its end.
    assert good[:-1] == LINES.decode().splitlines()[: max(0, len(good) - 1)]


def test_zeros_after_the_last_member_are_no_damage(tmp_path):
    assert b"".join(pieces(written(tmp_path / "a.gz", gzip.compress(b"x\n") + bytes(512)))) == b"x\n"


@pytest.mark.parametrize("name", ["gone.txt", "gone.gz", "."])
def test_a_file_that_is_gone_is_told(tmp_path, name):
    with pytest.raises(Damage, match=r"No such file|Is a directory"):
        list(pieces(f"{tmp_path}/{name}"))


@given(st.binary(max_size=60), st.integers(1, 7))
def test_lines_are_those_of_bytes_however_they_come_in_pieces(content, size):
    cut = iter([content[at : at + size] for at in range(0, len(content), size)])
    assert list(raw_lines(cut, 1000)) == [(line, True) for line in content.splitlines(keepends=True)]


@given(st.lists(st.text("ab\r", max_size=9).map(str.encode), max_size=8), st.integers(1, 5), st.integers(1, 6))
def test_of_lines_longer_than_the_limit_the_beginning_is_given_and_the_others_stay(rows, size, limit):
    content = b"\n".join(rows)
    found = list(raw_lines(iter([content[at : at + size] for at in range(0, len(content), size)]), limit))
    expected = content.splitlines(keepends=True)
    assert [whole for _, whole in found] == [len(line.rstrip(b"\r\n")) <= limit for line in expected]
    for (line, whole), right in zip(found, expected, strict=True):
        assert line == right if whole else right.startswith(line.rstrip(b"\r\n"))


def test_a_line_that_is_too_long_is_not_held():
    held = []

    def endless():
        for _ in range(10_000):
            held.append(1)
            yield bytes(1 << 16)
        yield b"\nnext\n"

    one, other = lines(endless(), "utf-8", 1 << 20)
    assert (one.number, one.text, one.reason) == (1, None, "the line is longer than 1,048,576 bytes")
    assert other == Line(2, "next")
    assert len(one.beginning) <= 1000


@pytest.mark.parametrize(
    "encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32", "iso8859-1", "cp1252", "shift_jis", "gb18030", "cp037", "utf-8-sig"]
)
def test_lines_in_any_encoding_are_read(encoding):
    texts = ["first", "sécond" if encoding not in ("shift_jis",) else "二", "", "last"]
    content = "\r\n".join(texts).encode(encoding)
    found = list(lines(iter([content[at : at + 3] for at in range(0, len(content), 3)]), encoding, 1000))
    assert found == [Line(number, text) for number, text in enumerate(texts, 1)]


def test_a_byte_order_mark_is_no_part_of_the_first_line():
    assert list(lines(iter([b"\xef\xbb\xbfa\n\xef\xbb\xbfb"]), "utf-8", 10)) == [Line(1, "a"), Line(2, "\ufeffb")]


@pytest.mark.parametrize(
    ("encoding", "bad"), [("utf-8", b"\xff"), ("utf-8", b"\xed\xa0\x80"), ("ascii", b"\xe9"), ("gb18030", b"\xff")]
)
def test_a_line_that_is_not_in_its_encoding_is_told_and_the_others_read(encoding, bad):
    one, two, three = lines(iter([b"good\nx" + bad + b"y\nmore"]), encoding, 100)
    assert (one.text, three) == ("good", Line(3, "more"))
    assert two.number == 2
    assert two.reason.startswith(f"the line is not valid {encoding}: ")


def test_what_follows_a_byte_that_is_not_utf16_is_told_once():
    content = "good\nmore\n".encode("utf-16-le") + b"\x00\xd8x\x00" + "lost\n".encode("utf-16-le")
    *good, last = lines(iter([content]), "utf-16-le", 100)
    assert last.reason.startswith("the file is not valid utf-16-le after byte 0: ")
    assert good == []


@pytest.mark.parametrize("size", [0, 1, 99, 100, 101, 149, 150, 151, 399, 400, 401, 1000])
@pytest.mark.parametrize("before", [0, 1, 130, 777])
def test_every_line_above_the_limit_is_noticed_without_reading_the_file(tmp_path, size, before):
    content = b"ab\n" * before + b"x" * size + b"\n" + b"cd\n" * 300
    found = has_long_line(written(tmp_path / "a", content), 400)
    assert found or size <= 400
    # It may take a line of half the limit for a long one, and no shorter.
    assert not found or size >= 200


def test_few_pieces_are_read_of_a_file_without_long_lines(tmp_path, monkeypatch):
    path = written(tmp_path / "a", b"a line\n" * 1_000_000)
    from simhash_udf.sources import streams

    read = []

    class Counting(io.FileIO):
        def read(self, size=-1):
            read.append(size)
            return super().read(size)

    monkeypatch.setattr(streams, "open_stream", lambda path: Counting(path))
    assert not has_long_line(path, 1 << 20)
    assert len(read) <= 15
