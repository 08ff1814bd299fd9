"""Build `simhash_udf/core/unicode_tables.npz`: the character tables of fingerprint version 1.

The tables are frozen with the fingerprint version: they are built once, from the Unicode data of one Python
release, and shipped, so that every Python release gives the same fingerprint. Rebuilding with other data would be
another fingerprint version. Needs Python 3.11 (Unicode 14.0) and fontTools for the script property:

    pip install fonttools && python tools/build_unicode_tables.py
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

import numpy as np
from fontTools import unicodedata as scripts

UNICODE_VERSION = "14.0.0"
BLOCK = 128
CODE_POINTS = 0x110000

SEPARATOR, WORD, MARK, SOLO, DROPPED = range(5)
BOUNDARY, SIMPLE, FOLDS = 8, 16, 32

# Scripts written without spaces: each of their letters and digits is a token of its own.
SPACELESS_SCRIPTS = {"Hani", "Hira", "Kana", "Thai", "Laoo", "Khmr", "Mymr", "Tibt"}
# Marks of repetition and length that Unicode counts to several of these scripts at once.
SPACELESS_SHARED = {0x3006, *range(0x3031, 0x3036), 0x303C, 0x30FC}
# Default_Ignorable_Code_Point of DerivedCoreProperties.txt, Unicode 14.0.
DEFAULT_IGNORABLE = (
    (0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
    (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF),
)  # fmt: skip


def character_class(code: int) -> int:
    category = unicodedata.category(chr(code))
    if category == "Cf" or any(low <= code <= high for low, high in DEFAULT_IGNORABLE):
        return DROPPED
    if category[0] == "M":
        return MARK
    if category[0] in "LN":
        return SOLO if scripts.script(chr(code)) in SPACELESS_SCRIPTS or code in SPACELESS_SHARED else WORD
    return WORD if code == ord("_") else SEPARATOR


def main() -> None:
    if unicodedata.unidata_version != UNICODE_VERSION:
        sys.exit(f"the tables are frozen at Unicode {UNICODE_VERSION}; this Python has {unicodedata.unidata_version}")
    known = [c for c in range(CODE_POINTS) if not 0xD800 <= c <= 0xDFFF and unicodedata.category(chr(c)) != "Cn"]

    composites = {}
    for code in known:
        parts = unicodedata.decomposition(chr(code)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            first, second = (int(part, 16) for part in parts)
            if unicodedata.normalize("NFC", chr(first) + chr(second)) == chr(code):
                composites[first << 21 | second] = code
    # The second half of a composite (and a conjoining vowel or final consonant) may join what stands before it.
    joins_previous = {key & 0x1FFFFF for key in composites} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}

    flags = np.full(CODE_POINTS, SEPARATOR | BOUNDARY | SIMPLE, np.uint8)
    combining = np.zeros(CODE_POINTS, np.uint8)
    folding = np.zeros(CODE_POINTS, np.int32)
    decomposition = np.zeros(CODE_POINTS, np.int32)
    fold_data, decomposition_data = [0], [0]
    for low, high in DEFAULT_IGNORABLE:
        flags[low : high + 1] = DROPPED | BOUNDARY | SIMPLE
    for code in known:
        character = chr(code)
        decomposed = [ord(c) for c in unicodedata.normalize("NFKD", character)]
        boundary = unicodedata.combining(chr(decomposed[0])) == 0 and decomposed[0] not in joins_previous
        simple = boundary and unicodedata.normalize("NFKC", character) == character
        folded = [ord(c) for c in character.casefold()]
        flags[code] = character_class(code) | boundary * BOUNDARY | simple * SIMPLE | (folded != [code]) * FOLDS
        combining[code] = unicodedata.combining(character)
        if decomposed != [code] and not 0xAC00 <= code <= 0xD7A3:  # Hangul syllables decompose by arithmetic
            decomposition[code] = len(decomposition_data)
            decomposition_data += [len(decomposed), *decomposed]
        if len(folded) > 1:
            folding[code] = -len(fold_data)
            fold_data += [len(folded), *folded]
        elif folded != [code]:
            folding[code] = folded[0]

    blocks: dict[bytes, int] = {}
    index = np.zeros(CODE_POINTS // BLOCK, np.uint16)
    kept: list[slice] = []
    for block in range(len(index)):
        part = slice(block * BLOCK, (block + 1) * BLOCK)
        content = b"".join(table[part].tobytes() for table in (flags, combining, folding, decomposition))
        if content not in blocks:
            blocks[content] = len(kept)
            kept.append(part)
        index[block] = blocks[content]
    keys = np.array(sorted(composites), np.int64)
    target = Path(__file__).parent.parent / "simhash_udf" / "core" / "unicode_tables.npz"
    np.savez_compressed(
        target,
        index=index,
        flags=np.concatenate([flags[part] for part in kept]),
        combining=np.concatenate([combining[part] for part in kept]),
        folding=np.concatenate([folding[part] for part in kept]),
        decomposition=np.concatenate([decomposition[part] for part in kept]),
        fold_data=np.array(fold_data, np.int32),
        decomposition_data=np.array(decomposition_data, np.int32),
        composite_keys=keys,
        composite_values=np.array([composites[key] for key in keys.tolist()], np.int32),
    )
    print(f"{target}: {target.stat().st_size} bytes, {len(kept)} blocks")


if __name__ == "__main__":
    main()
