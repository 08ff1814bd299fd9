"""Random bytes and texts against readers, tokenizer, fingerprints and settings; prints JSON, fails where an error is not ours.

Each round makes an input from a seed, so that a failure is found again by --seed. What must hold: no error but those of
`simhash_udf.errors`; readers give each record once, in order, as values or with a reason; and the parts agree with plain code.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import gzip
import io
import json
import random
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from simhash_udf import fingerprint_array, fingerprint_features, fingerprint_text
from simhash_udf.command_line import parse
from simhash_udf.core.text import tokens
from simhash_udf.credentials import without_credentials
from simhash_udf.errors import SimHashError
from simhash_udf.settings import DEDUP_KNOBS, KNOBS, Settings
from simhash_udf.sources import archives, delimited, texts
from simhash_udf.sources.streams import Damage, lines, pieces, raw_lines
from simhash_udf.storage import alternatives

ENCODINGS = ("utf-8", "utf-16", "latin-1", "shift_jis", "gb18030", "utf-32-le", "cp037", "utf-7", "iso2022_jp", "utf-8-sig")
SEEDS = (
    b'{"id": 1, "text": "x"}\n{"id": 2}\r\n', b'id,text\n1,"a ""b"""\n2,"c\nd"\n', b"\xef\xbb\xbfa\n", b"", b"\n\n\r\r\n",
    "déjà vu 你好 \U0001f600 a\u0301 \u1100\u1161 \ufdfa\n".encode(), b"\xff\xfe\x00\xd8a\x00",
)  # fmt: skip
WARC = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: http://a/\r\n"
    b"WARC-Date: 2024-01-01T00:00:00Z\r\nContent-Type: application/http\r\nContent-Length: 73\r\n\r\n"
    b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
    b"<html><p>Hello you</p></html>\r\n\r\n"
)


def changed(random_: random.Random, content: bytes) -> bytes:
    """The content with some bytes removed, repeated, changed or cut off."""
    made = bytearray(content)
    for _ in range(random_.randrange(6)):
        at = random_.randrange(len(made) + 1)
        kind = random_.randrange(5)
        if kind == 0:
            made[at:at] = random_.randbytes(random_.randrange(1, 5))
        elif kind == 1:
            del made[at : at + random_.randrange(1, 9)]
        elif kind == 2:
            made[at:at] = made[at : at + random_.randrange(1, 40)]
        elif kind == 3:
            made[at:at] = random_.choice((b"\n", b"\r", b'"', b",", b"\x00", b"\xc3", b"\xed\xa0\x80", b"{", b"}", b"\\u", b"\t"))
        else:
            del made[at:]
    return bytes(made)


def packed(random_: random.Random, content: bytes) -> tuple[str, bytes]:
    """An ending of a name and what a file with it would hold, whole or not."""
    ending = random_.choice(("", "", ".gz", ".bz2", ".zst"))
    if ending == ".zst":
        sink = pa.BufferOutputStream()
        with pa.CompressedOutputStream(sink, "zstd") as stream:
            stream.write(content)
        content = sink.getvalue().to_pybytes()
    elif ending:
        content = (gzip.compress if ending == ".gz" else bz2.compress)(content)
    return ending, changed(random_, content) if ending and random_.random() < 0.5 else content


def fuzz_lines(random_: random.Random, directory: Path) -> None:
    """Lines in any encoding and compression."""
    ending, content = packed(random_, changed(random_, random_.choice(SEEDS) * random_.randrange(1, 4)))
    path = directory / f"a{ending}"
    path.write_bytes(content)
    limit = random_.choice((3, 20, 1000))
    found = list(lines(pieces(str(path)), random_.choice(ENCODINGS), limit))
    assert [line.number for line in found] == list(range(1, len(found) + 1)), found
    assert all((line.text is not None) or line.reason for line in found)
    if not ending:
        size = random_.randrange(1, 9)
        cut = [content[at : at + size] for at in range(0, len(content), size)]
        whole = [line for line, _ in raw_lines(iter(cut), 1 << 20)]
        assert whole == content.splitlines(keepends=True)


def fuzz_delimited(random_: random.Random, directory: Path) -> None:
    """CSV and TSV, and what the csv module makes of the same where it takes it."""
    content = changed(random_, random_.choice(SEEDS) * random_.randrange(1, 4))
    ending, held = packed(random_, content)
    path = directory / f"a.csv{ending}"
    path.write_bytes(held)
    delimiter, limit = random_.choice((",", "\t")), 1000
    encoding = random_.choice(ENCODINGS)
    found = list(delimited.records(str(path), names=("id", "text"), delimiter=delimiter, encoding=encoding, limit=limit))
    positions = [record.position for record in found]
    assert positions == sorted(positions), found
    assert all((record.values is None) == (record.reason is not None) for record in found)
    if held is content and encoding == "utf-8" and all(record.reason is None for record in found):
        rows = [row for row in csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""), delimiter=delimiter) if row]
        assert len(found) == max(0, len(rows) - 1), (content, found, rows)


def fuzz_texts(random_: random.Random, directory: Path) -> None:
    """A file a document."""
    ending, content = packed(random_, changed(random_, random_.choice(SEEDS)))
    path = directory / f"a.txt{ending}"
    path.write_bytes(content)
    (record,) = texts.records(str(path), encoding=random_.choice(ENCODINGS), limit=random_.choice((5, 1000)))
    assert (record.values is None) == (record.reason is not None)
    if record.values:
        str(record.values[1]).encode("utf-8")


def fuzz_archives(random_: random.Random, directory: Path) -> None:
    """Web archives."""
    ending, content = packed(random_, changed(random_, WARC * random_.randrange(1, 4)))
    path = directory / f"a.warc{ending}"
    path.write_bytes(content)
    found = list(archives.records(str(path), limit=random_.choice((10, 1000))))
    assert all((record.values is None) == (record.reason is not None) for record in found)


def fuzz_texts_of_documents(random_: random.Random, _: Path) -> None:
    """Tokens and fingerprints of any text, alone and in a batch."""
    points = random_.choice((0x80, 0x800, 0x3000, 0x10000, 0x110000))
    text = "".join(chr(random_.randrange(points)) for _ in range(random_.randrange(30)))
    text = "".join(" " if 0xD800 <= ord(character) < 0xE000 else character for character in text)
    unit, ngram = random_.choice((("word", 1), ("word", 2), ("word", 7), ("char", 5), ("char", 1)))
    weighting = random_.choice(("tf", "log", "binary"))
    tokens(text, unit)
    alone = fingerprint_text(text, unit=unit, ngram=ngram, weighting=weighting)
    batch = fingerprint_array(pa.array([text, None, text + text, text]), unit=unit, ngram=ngram, weighting=weighting).to_pylist()
    assert batch[0] == batch[3]
    assert (alone is None) == (batch[0] is None)
    assert alone is None or alone % 2**64 == batch[0] % 2**64
    weights = {token: random_.choice((0.0, 1.5, 3, -1.0, float("nan"), 1e300)) for token in text[:5]}
    fingerprint_features(weights)


def fuzz_settings(random_: random.Random, directory: Path) -> None:
    """Settings from values of any type, from a settings file, and from addresses."""
    values = [
        "",
        "x",
        "a,b desc",
        0,
        -1,
        13,
        1.5,
        float("nan"),
        True,
        None,
        ["x"],
        (),
        b"x",
        "tf",
        "char",
        "1,2",
        2**70,
        "\x00",
        "é",
    ]
    chosen = {name: random_.choice(values) for name in random_.sample(list(KNOBS), random_.randrange(1, 4))}
    Settings(**chosen)
    path = directory / "s.toml"
    keys = [random_.choice([*KNOBS, "no-such"]).replace("_", "-") for _ in range(2)]
    toml = "\n".join(f"{key} = {random_.choice(['1', 'true', '[]', chr(34) * 2, '1.5', 'x', '[1]'])}" for key in keys)
    path.write_bytes(changed(random_, toml.encode()))
    parse("", DEDUP_KNOBS, ["--input", "a", "--output", "b", "--config", str(path)])


def fuzz_addresses(random_: random.Random, _: Path) -> None:
    """Globs and addresses of any form."""
    text = "".join(random_.choice("{},[]*?/:@.ab&=s3key ") for _ in range(random_.randrange(24)))
    alternatives(text)
    without_credentials(text)


PARTS: tuple[Callable[[random.Random, Path], None], ...] = (
    fuzz_lines, fuzz_delimited, fuzz_texts, fuzz_archives, fuzz_texts_of_documents, fuzz_settings, fuzz_addresses,
)  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seconds", type=float, default=120, metavar="S", help="How long. Default: 120.")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="First seed; each round has the next. Default: 0.")
    parser.add_argument("--rounds", type=int, default=2**62, metavar="N", help="At most so many rounds.")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    done: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    seed = given.seed
    with tempfile.TemporaryDirectory() as directory:
        while time.monotonic() < end and seed < given.seed + given.rounds:
            part = PARTS[seed % len(PARTS)]
            try:
                part(random.Random(seed), Path(directory))
            except (SimHashError, Damage):
                refused[part.__name__] += 1
            except Exception:
                traceback.print_exc()
                print(json.dumps({"failed": part.__name__, "seed": seed, "command": f"tools/fuzz.py --seed {seed} --rounds 1"}))
                return 1
            done[part.__name__] += 1
            seed += 1
    print(json.dumps({"rounds": dict(done), "refused": dict(refused), "first_seed": given.seed, "next_seed": seed, "failed": 0}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
