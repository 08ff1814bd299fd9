"""A generated corpus whose duplicates are known, and how well a result agrees with it. No Spark.

The texts are made of invented words in ten scripts, drawn by Zipf's law, so that short words and templates recur as in real
text. Everything depends on the number of documents and the seed alone.
"""

from __future__ import annotations

import bisect
import gzip
import io
import itertools
import json
import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from simhash_udf.errors import OutputError, SettingsError

KINDS = ("exact copy", "light edit", "heavy edit", "boilerplate", "unrelated", "no text")
FEWEST_DOCUMENTS = 1_000
CORPUS, PLANTED = "corpus.jsonl.gz", "planted.jsonl"

# Inventories of syllables or characters, what joins the parts of a word, and what joins words.
_SCRIPTS: dict[str, tuple[str, str]] = {
    "latin": ("ba ce di fo gu ha ker lim mon nat pol ran ser tor vul wen xi yor zan stra qui", " "),
    "german": ("schä bö grü lich keit ung ver ent über macht stra ße tür weg zeit haus wald", " "),
    "cyrillic": ("ба ве го да же зи ко лу мы но пра рес сто тер уни фак хо це ча шу", " "),
    "greek": ("αλ βε γα δε ζω θη κο λα με νο ξε πα ρι σο τα φι χο ψη ως άν", " "),
    "arabic": ("با تر جم حس خل در ذه رس زم شع صح ضر طل عم غر فك قل كت مُ نَ", " "),
    "devanagari": ("का खी गु चे जो टा डी तु दे नो पा फी बु मे यो रा ली वु से हो", " "),
    "hangul": ("가 나 다 라 마 바 사 아 자 차 카 타 파 하 고 노 도 로 모 보 소", " "),
    "han": (" ".join(map(chr, range(0x4E00, 0x5800))), ""),
    "kana": ("の は を に が で と た し て い る な も こ そ " + " ".join(map(chr, range(0x5800, 0x6200))), ""),
    "thai and khmer": (" ".join(c for c in map(chr, [*range(0x1780, 0x17A3), *range(0xE01, 0xE2F)])), ""),
}
_SOURCES = ("crawl", "forum", "news", "wiki")


class DemoDocument(NamedTuple):
    """One generated document. `original` is the id of the one it was made from, or of its template; None for an original."""

    id: str
    text: str | None
    language: str
    source: str
    kind: str
    original: str | None


class _Language:
    """A vocabulary of 3,000 words whose frequencies follow Zipf's law."""

    def __init__(self, name: str, chance: random.Random) -> None:
        syllables, self.joiner = _SCRIPTS[name]
        parts = syllables.split()
        longest = 4 if self.joiner else 2
        self.words = ["".join(chance.choices(parts, k=chance.randint(1, longest))) for _ in range(3_000)]
        self.name = name
        self._cumulative = list(itertools.accumulate(1 / (rank + 3) for rank in range(len(self.words))))

    def draw(self, chance: random.Random, count: int) -> list[str]:
        total = self._cumulative[-1]
        return [self.words[bisect.bisect(self._cumulative, chance.random() * total)] for _ in range(count)]

    def write(self, words: list[str], chance: random.Random) -> str:
        """Words as sentences of about fourteen."""
        stop = "。" if not self.joiner else ". "
        sentences = []
        at = 0
        while at < len(words):
            length = chance.randint(8, 20)
            sentences.append(self.joiner.join(words[at : at + length]))
            at += length
        return stop.join(sentences) + stop.strip()


def generate(count: int = 20_000, seed: int = 7) -> Iterator[DemoDocument]:
    """Documents in a shuffled order: originals, and what was made from them.

    Of a hundred documents about 10 are exact copies (some of copies, and one text a hundred times over), 12 light edits (1 to
    3 % of the words replaced), 8 heavy edits (25 to 50 % replaced), 5 short bodies inside one long template (`boilerplate`:
    no duplicates of each other, though most of their text is the same), 1 has no text; the others are unrelated.

    Raises:
        SettingsError: fewer than 1,000 documents were asked for.

    >>> next(generate(1_000, seed=1)).id == next(generate(1_000, seed=1)).id
    True
    """
    if count < FEWEST_DOCUMENTS:
        raise SettingsError(
            f"count is {count}; a corpus with all kinds of duplicates needs at least {FEWEST_DOCUMENTS:,} documents"
        )
    chance = random.Random(seed)
    languages = [_Language(name, chance) for name in _SCRIPTS]
    shares = {"exact copy": 0.10, "light edit": 0.12, "heavy edit": 0.08, "boilerplate": 0.05, "no text": 0.01}
    kinds = [kind for kind, share in shares.items() for _ in range(round(share * count))]
    chance.shuffle(kinds)
    numbers = list(range(count))
    chance.shuffle(numbers)
    made: list[tuple[DemoDocument, list[str], _Language]] = []
    popular = min(100, count // 100)
    templates = {language.name: (language, language.draw(chance, 220)) for language in languages}
    for kind in ["unrelated"] * (count - len(kinds)) + kinds:
        identity = f"doc-{numbers[len(made)]:06d}"
        source = chance.choice(_SOURCES)
        original: DemoDocument | None = None
        if kind in ("exact copy", "light edit", "heavy edit"):
            first = popular > 0 and kind == "exact copy"
            popular -= first
            original, words, language = made[0] if first else _long_enough(made, chance)
            if kind == "exact copy":
                text = original.text
            else:
                low, high = (0.01, 0.03) if kind == "light edit" else (0.25, 0.5)
                words = _edited(words, language, chance.uniform(low, high), chance)
                text = language.write(words, chance)
            document = DemoDocument(identity, text, language.name, source, kind, original.id)
        elif kind == "boilerplate":
            language, template = templates[chance.choice(list(templates))]
            words = template[:110] + language.draw(chance, 120) + template[110:]
            document = DemoDocument(
                identity, language.write(words, chance), language.name, source, kind, f"template-{language.name}"
            )
        elif kind == "no text":
            language, words = chance.choice(languages), []
            document = DemoDocument(
                identity, chance.choice((None, "", " \n\t ", "... !?", "—")), language.name, source, kind, None
            )
        else:
            language = chance.choice(languages)
            words = language.draw(chance, max(60, min(1_500, round(chance.lognormvariate(5.2, 0.7)))))
            document = DemoDocument(identity, language.write(words, chance), language.name, source, kind, None)
        made.append((document, words, language))
    chance.shuffle(made)
    yield from (document for document, _, _ in made)


def _long_enough(
    made: list[tuple[DemoDocument, list[str], _Language]], chance: random.Random
) -> tuple[DemoDocument, list[str], _Language]:
    """A document to copy: an original, or now and then something that was itself made from one."""
    while True:
        candidate = chance.choice(made)
        if len(candidate[1]) >= 100 and candidate[0].kind in ("unrelated", "exact copy", "light edit"):
            return candidate


def _edited(words: list[str], language: _Language, share: float, chance: random.Random) -> list[str]:
    changed = list(words)
    for at in chance.sample(range(len(words)), max(1, round(share * len(words)))):
        changed[at] = language.draw(chance, 1)[0]
    return changed


def write_corpus(directory: Path, count: int = 20_000, seed: int = 7) -> Path:
    """Write `corpus.jsonl.gz` (id, text, language, source) and, beside it, `planted.jsonl` (id, kind, original).

    Returns the path of the corpus.

    Raises:
        OutputError: the directory holds something already.
    """
    if directory.exists() and any(directory.iterdir()):
        raise OutputError(f"the directory {str(directory)!r} is not empty; choose another for the generated corpus")
    directory.mkdir(parents=True, exist_ok=True)
    corpus = directory / CORPUS
    with (
        corpus.open("wb") as raw,
        # Without a name and a time, so that the same corpus is the same file.
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8") as lines,
        (directory / PLANTED).open("w", encoding="utf-8") as planted,
    ):
        for document in generate(count, seed):
            shown = {"id": document.id, "text": document.text, "language": document.language, "source": document.source}
            lines.write(json.dumps(shown, ensure_ascii=False) + "\n")
            planted.write(json.dumps({"id": document.id, "kind": document.kind, "original": document.original}) + "\n")
    return corpus


def compare_with_planted(planted: Iterable[dict[str, Any]], decisions: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """For each kind of document: how many there are, how many were found, and how many were joined wrongly.

    Args:
        planted: `id`, `kind`, `original` of each document.
        decisions: `id`, `kept`, `cluster` of each document, as the table `decisions` has them.

    Returns:
        One row a kind, in the order of `KINDS`: `kind`, `planted`, `found` (it is in one cluster with the document it was
        made from; None for kinds made from none), `wrong` (it is in a cluster with a document of another origin), `kept`.

    >>> planted = [{"id": "a", "kind": "unrelated", "original": None}, {"id": "b", "kind": "exact copy", "original": "a"}]
    >>> decided = [{"id": "a", "kept": True, "cluster": "a"}, {"id": "b", "kept": False, "cluster": "a"}]
    >>> compare_with_planted(planted, decided)[0]
    {'kind': 'exact copy', 'planted': 1, 'found': 1, 'wrong': 0, 'kept': 0}
    """
    documents = {row["id"]: row for row in planted}
    decided = {row["id"]: row for row in decisions}

    def origin(identity: str) -> str:
        while (above := documents[identity]["original"]) in documents:
            identity = above
        return identity

    origins: dict[Any, set[str]] = {}
    for identity, row in decided.items():
        if row["cluster"] is not None:
            origins.setdefault(row["cluster"], set()).add(origin(identity))
    rows: dict[str, dict[str, Any]] = {
        kind: {"kind": kind, "planted": 0, "found": 0 if kind in KINDS[:3] else None, "wrong": 0, "kept": 0} for kind in KINDS
    }
    for identity, document in documents.items():
        row, decision = rows[document["kind"]], decided[identity]
        row["planted"] += 1
        row["kept"] += decision["kept"]
        cluster = decision["cluster"]
        if cluster is None:
            continue
        row["wrong"] += len(origins[cluster]) > 1
        if row["found"] is not None:
            row["found"] += decided[document["original"]]["cluster"] == cluster
    return list(rows.values())
