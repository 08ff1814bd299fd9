"""Write `docs/test_vectors.json` from the plain-Python reference `tests/oracle.py`, never from the compiled code.

Run it from the root of the project, with Python 3.11 (Unicode 14.0): `python -m tools.make_test_vectors`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests import oracle

TARGET = Path(__file__).parent.parent / "docs" / "test_vectors.json"
FOX = "The quick brown fox jumps over the lazy dog. The quick brown fox sleeps."
TEXTS = [
    FOX,
    "",
    " \n\t",
    "... !?",
    "a",
    "A",
    "word",
    "two words",
    "Straße STRASSE straße",
    "ébé ebe e\u0301be\u0301",
    "co\u00adoperate",
    "ﬁne ﬂow ①½",
    "ＦＵＬＬ width",
    "İstanbul ŉ ǰ",
    "你好,世界。你好!",
    "私はコーヒーを飲む。",
    "ｱｲｳ ﾊﾞ",
    "ภาษาไทยกำไร",
    "ພາສາລາວ",
    "ភាសាខ្មែរ",
    "မြန်မာ",
    "བོད་སྐད།",
    "한국어 \u1112\u1161\u11ab",
    "Привет, мир! ПРИВЕТ",
    "Γειά σου Κόσμε ΐ",
    "مُرحبا بالعالم",
    "नमस्ते दुनिया",
    "שלום עולם",
    "😀 👍🏽 emoji",
    "snake_case x_1 2nd",
    "\u200bzero\u200bwidth\u200d",
    "a\u0378b",
    "tab\tand\0nul",
    "x " * 50,
    "\ufdfa",
    "\U00010400\U00020000",
]
FEATURES: list[list[tuple[str, float]]] = [
    [("red", 3.0), ("green", 2.0), ("blue", 1.0)],
    [("red", 0.1), ("green", 0.2), ("blue", 0.3)],
    [("red", 1e300), ("green", 1e-300)],
    [("red", 0.0)],
    [],
    [("", 1.0)],
    [("red", 1.0), ("red", 1.0), ("green", 1.5)],
]
ALL_SETTINGS = [("word", 1, "tf"), ("word", 2, "log"), ("word", 3, "binary"), ("char", 6, "log")]


def vectors() -> list[dict[str, Any]]:
    rows = []
    for text in TEXTS:
        for unit, ngram, weighting in ALL_SETTINGS if text == FOX else ALL_SETTINGS[1::2]:
            fingerprint = oracle.fingerprint(text, unit, ngram, weighting)
            rows.append({"text": text, "unit": unit, "ngram": ngram, "weighting": weighting, **both_forms(fingerprint)})
    rows += [{"features": [list(pair) for pair in given], **both_forms(oracle.elect(given))} for given in FEATURES]
    return rows


def both_forms(fingerprint: int | None) -> dict[str, Any]:
    if fingerprint is None:
        return {"hex": None, "bigint": None}
    return {"hex": f"{fingerprint:016x}", "bigint": fingerprint - (fingerprint >> 63 << 64)}


if __name__ == "__main__":
    rows = ",\n".join(json.dumps(row, ensure_ascii=True) for row in vectors())
    TARGET.write_text(f"[\n{rows}\n]\n", encoding="utf-8")
