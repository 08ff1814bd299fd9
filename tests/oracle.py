"""Fingerprint version 1 in plain Python: the reference that the compiled code must equal.

It reads the Unicode data of the Python that runs it, which must be that of Unicode 14.0 to agree on every code point; on
code points that older and newer releases share it agrees everywhere.
"""

import math
import unicodedata
from collections import Counter

import xxhash

IGNORABLE = [(0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F),
             (0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF),
             (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)]  # fmt: skip
# Blocks of Thai, Lao, Tibetan, Myanmar, Khmer, Han, kana; only their letters and digits are looked up here.
SPACELESS = [(0xE01, 0xE5B), (0xE81, 0xEDF), (0xF00, 0xFFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x2E80, 0x2FDF),
             (0x3005, 0x3007), (0x3021, 0x3029), (0x3031, 0x30FF), (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF),
             (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F), (0xF900, 0xFAFF), (0x16FE2, 0x16FE3), (0x16FF0, 0x16FF1),
             (0x1AFF0, 0x1B167), (0x20000, 0x3134F)]  # fmt: skip


def within(character, ranges):
    return any(low <= ord(character) <= high for low, high in ranges)


def kind(character):
    category = unicodedata.category(character)
    if category == "Cf" or within(character, IGNORABLE):
        return "dropped"
    if category[0] in "LN" or character == "_":
        return "solo" if within(character, SPACELESS) else "word"
    return "mark" if category[0] == "M" else "separator"


def normalised(text):
    return "".join(c for c in unicodedata.normalize("NFKC", text).casefold() if kind(c) != "dropped")


def tokens(text):
    found, opened = [], "separator"
    for character in normalised(text):
        this = kind(character)
        if this == "solo" or (this != "separator" and (opened == "separator" or (opened == "solo" and this != "mark"))):
            found.append(character)
            opened = "solo" if this == "solo" else "word"
        elif this == "separator":
            opened = "separator"
        else:
            found[-1] += character
    return found


def features(text, unit, ngram):
    units = tokens(text)
    if unit == "char" and units:
        units = list(normalised(text))
    span = min(ngram, len(units))
    joiner = " " if unit == "word" else ""
    return [joiner.join(units[i : i + span]) for i in range(len(units) - span + 1)] if units else []


def elect(weighted):
    """Fold (feature, weight) pairs: each weight is rounded once, to 31 bits below the largest, and votes as an integer."""
    weighted = [(feature, weight) for feature, weight in weighted if weight]
    if not weighted:
        return None
    shift = 31 - math.frexp(max(weight for _, weight in weighted))[1]
    totals = [0] * 64
    for feature, weight in weighted:
        hashed = xxhash.xxh64_intdigest(feature.encode(), 42)
        for j in range(64):
            totals[j] += round(math.ldexp(weight, shift)) * (1 if hashed >> j & 1 else -1)
    return sum(1 << j for j in range(64) if totals[j] > 0)


def fingerprint(text, unit="word", ngram=2, weighting="binary"):
    weigh = {"tf": float, "log": lambda count: 1 + math.log(count), "binary": lambda count: 1.0}[weighting]
    return elect([(feature, weigh(count)) for feature, count in Counter(features(text, unit, ngram)).items()])


MASK = (1 << 64) - 1


def mixed(x):
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 & MASK
    x = (x ^ x >> 27) * 0x94D049BB133111EB & MASK
    return x ^ x >> 31


def sketch(text, unit, ngram, words=4, rounds=16):
    """The words of a text's sketch: for each bin the last bit of the least (round, value) that a feature has in it."""
    bins, step = 64 * words, 0x9E3779B97F4A7C15
    hashes = {xxhash.xxh64_intdigest(feature.encode(), 42) for feature in features(text, unit, ngram)}
    if not hashes:
        return None
    bits = []
    for at in range(bins):
        for turn in range(rounds):
            thrown = [mixed(hashed + (turn + 1) * step & MASK) for hashed in hashes]
            first = min((value >> 8 for value in thrown if value % bins == at), default=None)
            if first is not None:
                break
        else:
            first = min(mixed(hashed + (rounds + 1 + at) * step & MASK) >> 8 for hashed in hashes)
        bits.append(first & 1)
    return [sum(bit << i for i, bit in enumerate(bits[64 * w : 64 * (w + 1)])) for w in range(words)]
