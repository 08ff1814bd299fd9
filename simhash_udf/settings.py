"""Every knob, once: its name, type, default, help sentence and check.

Flags, TOML keys and `--help` of the jobs, and the commented `conf/dedup.toml`, all come from the fields of `Settings`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simhash_udf.core.blocks import LARGEST_DISTANCE
from simhash_udf.core.election import WEIGHTINGS
from simhash_udf.core.fingerprint import (
    DEFAULT_NGRAM,
    DEFAULT_UNIT,
    DEFAULT_WEIGHTING,
    LARGEST_NGRAM,
    UNITS,
    check_text_settings,
)
from simhash_udf.core.similarity import MEASURES
from simhash_udf.errors import SettingsError

FINGERPRINT_VERSION = 1
FINGERPRINTS = ("simhash", "minhash")
# Columns that a keep rule may name beside those of the input, and which it means where the input has such too.
OWN_KEEP_COLUMNS = ("length", "features", "id")


def _knob(default: Any, sentence: str, choices: tuple[str, ...] = (), unit: str = "", *, dedup: bool = True) -> Any:
    return field(default=default, metadata={"help": sentence, "choices": choices, "unit": unit, "dedup": dedup})


@dataclass(frozen=True)
class Settings:
    """What a run does. Frozen; checked when made.

    Raises:
        SettingsError: a value has the wrong type or is out of range; the message names the knob and what it may be.

    >>> Settings(max_distance=8).fingerprint_id
    'simhash64-v1/word/2/binary'
    """

    input: tuple[str, ...] = _knob(
        (), "What to read, documents or what an earlier job wrote: files, directories or globs.", unit="PATH"
    )
    output: str = _knob("", "Directory to write the result to; it must not exist, unless --if-exists says otherwise.", unit="DIR")
    input_format: str = _knob(
        "auto", "Format of the input; auto tells by the ending of the file names.", ("auto", "parquet", "jsonl")
    )
    id_column: str = _knob("id", "Column that names a document: any atomic type, no nulls, no value twice.", unit="NAME")
    text_column: str = _knob("text", "Column with the text of a document.", unit="NAME")
    features_column: str = _knob(
        "",
        "Column with weighted features of your own, array<struct<feature, weight>> or map<feature, weight>, in place of text.",
        unit="NAME",
    )
    fingerprint: str = _knob(
        "simhash",
        "64 bits of a document: simhash, of weighted features, or minhash, of their set, which tells Jaccard similarity better.",
        FINGERPRINTS,
    )
    unit: str = _knob(DEFAULT_UNIT, "What n-grams are made of: tokens, or characters of the normalised text.", UNITS)
    ngram: int = _knob(DEFAULT_NGRAM, "How many consecutive units make a feature.", unit="N")
    weighting: str = _knob(
        DEFAULT_WEIGHTING, "Weight of a feature that occurs tf times: tf, log (1 + ln tf) or binary (1).", WEIGHTINGS
    )
    max_distance: int = _knob(6, "Fingerprints that differ in at most this many of 64 bits are a pair (0 to 12).", unit="K")
    pairs: str = _knob(
        "all",
        "Pairs to write: all, or spanning: a subset that joins the same clusters and stays small.",
        ("all", "spanning"),
    )
    within: str = _knob(
        "", "Compare only documents with the same value in this column, such as a language or a domain.", unit="NAME"
    )
    min_features: int = _knob(
        0, "A document of fewer distinct features is a duplicate only of those with the same units in the same order.", unit="N"
    )
    verify: str = _knob(
        "none",
        "Drop a pair unless its n-grams are as alike as --min-similarity asks: by the texts, or by a sketch of 256 bits of each.",
        ("none", "sketch", *MEASURES),
    )
    min_similarity: float = _knob(
        0.8, "Least similarity of two texts, 0 to 1: of a pair that --verify lets pass, or that is true.", unit="S"
    )
    verify_unit: str = _knob(
        "word", "What the n-grams of texts that are compared are made of: tokens, or characters of the normalised text.", UNITS
    )
    verify_ngram: int = _knob(3, "How many consecutive units make an n-gram of texts that are compared.", unit="N")
    max_pairs: int = _knob(100_000_000, "Stop before writing more document pairs than this.", unit="N")
    keep: str = _knob(
        "length desc, features desc, id asc",
        "Which document of a cluster stays: the first in this order of columns of the input, or of length, features and id.",
        unit="ORDER",
    )
    max_radius: int = _knob(
        64,
        "Drop a document only within so many bits of the one that is kept; 64 is no limit, and others may join the two.",
        unit="R",
    )
    also_at: str = _knob(
        "", "Smaller distances with commas between them, to report what each of them would keep and drop.", unit="K,K"
    )
    source_column: str = _knob("", "Report, for each value of this column, how many documents were dropped.", unit="NAME")
    max_removed: float = _knob(
        0.9,
        "Stop before writing kept/ where more than this share of the documents would be dropped; 1 is no limit.",
        unit="SHARE",
    )
    on_bad_input: str = _knob(
        "fail",
        "A broken record, a null id or a bad weight: fail the job, or reject the record and list it in rejects/.",
        ("fail", "reject"),
    )
    if_exists: str = _knob(
        "fail",
        "An output that exists: fail, or replace it once the new result is complete.",
        ("fail", "replace"),
    )

    truth: tuple[str, ...] = _knob(
        (), "Parquet with the true pairs: id_a, id_b, and maybe their similarity.", unit="PATH", dedup=False
    )
    truth_similarity: str = _knob(
        "similarity",
        "Column of the truth with the similarity of a pair; without it all pairs are true.",
        unit="NAME",
        dedup=False,
    )
    recall_similarity: float = _knob(0.8, "Pairs of at least this similarity must be found.", unit="S", dedup=False)
    precision_similarity: float = _knob(0.7, "Pairs of at least this similarity may be found.", unit="S", dedup=False)

    def __post_init__(self) -> None:
        for knob in dataclasses.fields(self):
            value = getattr(self, knob.name)
            if isinstance(knob.default, tuple):
                given = [value] if isinstance(value, str) else value
                if not isinstance(given, (list, tuple)) or not all(isinstance(path, str) and path for path in given):
                    raise SettingsError(f"{knob.name} is {value!r}; it must be one or more paths")
                object.__setattr__(self, knob.name, tuple(given))
                continue
            expected = type(knob.default)
            if expected is float and type(value) is int:
                # As TOML has them.
                value = float(value)
                object.__setattr__(self, knob.name, value)
            if type(value) is not expected:
                raise SettingsError(f"{flag(knob.name)} is {value!r}; it must be a {_TYPE_NAMES[expected]}")
            choices = knob.metadata["choices"]
            if choices and value not in choices:
                raise SettingsError(f"{flag(knob.name)} is {value!r}; it must be one of {', '.join(choices)}")
        check_text_settings(self.unit, self.ngram, self.weighting)
        check_max_distance(self.max_distance)
        keep_order(self.keep)
        for name, least, most in (
            ("max_pairs", 0, None),
            ("min_features", 0, None),
            ("verify_ngram", 1, LARGEST_NGRAM),
            ("max_radius", 0, 64),
            ("min_similarity", 0, 1),
            ("max_removed", 0, 1),
            ("recall_similarity", 0, 1),
            ("precision_similarity", 0, 1),
        ):
            value = getattr(self, name)
            if not value >= least or (most is not None and value > most):
                wanted = f"{least} or more" if most is None else f"from {least} to {most}"
                raise SettingsError(f"{flag(name)} is {value}; it must be {wanted}")
        if self.fingerprint == "minhash" and self.features_column:
            raise SettingsError("fingerprint is 'minhash', which knows no weights; with features-column it must be simhash")
        if self.fingerprint == "minhash" and self.weighting != "binary":
            raise SettingsError(
                f"weighting is {self.weighting!r}; with fingerprint minhash, which knows no weights, it must be binary"
            )
        if self.verifies and self.features_column:
            raise SettingsError(f"verify is {self.verify!r}, which compares texts; with features-column it must be none")
        if self.recall_similarity < self.precision_similarity:
            raise SettingsError(
                f"recall-similarity is {self.recall_similarity} and precision-similarity {self.precision_similarity}; it must be "
                "at least as much, since what must be found is what may be found"
            )
        smaller_distances(self.also_at, self.max_distance)

    @property
    def fingerprint_id(self) -> str:
        """All that decides a fingerprint, in one readable name; fingerprints of different ids are never compared."""
        if self.features_column:
            return f"simhash64-v{FINGERPRINT_VERSION}/features"
        if self.fingerprint == "minhash":
            return f"minhash64-v{FINGERPRINT_VERSION}/{self.unit}/{self.ngram}"
        return f"simhash64-v{FINGERPRINT_VERSION}/{self.unit}/{self.ngram}/{self.weighting}"

    @property
    def keep_order(self) -> tuple[tuple[str, bool], ...]:
        """Columns of the keep rule, in their order, and whether each is descending."""
        return keep_order(self.keep)

    @property
    def keep_columns(self) -> tuple[str, ...]:
        """Those columns of the keep rule that are the input's."""
        return tuple(name for name, _ in self.keep_order if name not in OWN_KEEP_COLUMNS)

    @property
    def verifies(self) -> bool:
        """Whether pairs must be similar in their texts as well."""
        return self.verify != "none"

    @property
    def sketches(self) -> bool:
        """Whether documents carry a sketch beside their fingerprint."""
        return self.verify == "sketch"

    @property
    def content_unit(self) -> str:
        """What equal texts are equal in: a check of characters would tell apart texts of the same tokens."""
        return "char" if self.verifies and self.verify_unit == "char" else self.unit

    @property
    def tells_nodes_apart(self) -> bool:
        """Whether documents of one fingerprint may differ in what is near them."""
        return bool(self.within or self.min_features or self.verifies)

    @property
    def needs_all_pairs(self) -> tuple[str, ...]:
        """The flags that leave out some pairs afterwards, so that edges that connect would not be enough of a search."""
        given = {"--within": self.within, "--verify": self.verifies, "--also-at": self.also_at}
        return tuple(name for name, value in given.items() if value)

    @property
    def searches_spanning(self) -> bool:
        """Whether the search gives edges that connect, not all pairs."""
        return self.pairs == "spanning" and not self.needs_all_pairs

    @property
    def smaller_distances(self) -> tuple[int, ...]:
        """The distances of `also_at`, ascending."""
        return smaller_distances(self.also_at, self.max_distance)

    def as_dict(self, knobs: Sequence[str]) -> dict[str, Any]:
        """The knobs of these names, each by its flag's name, as JSON types."""
        return {flag(name): list(value) if isinstance(value := getattr(self, name), tuple) else value for name in knobs}


_TYPE_NAMES = {str: "text", int: "whole number", float: "number", bool: "true or false"}
KNOBS = {knob.name: knob for knob in dataclasses.fields(Settings)}
DEDUP_KNOBS = [name for name, knob in KNOBS.items() if knob.metadata["dedup"]]


def keep_order(keep: str) -> tuple[tuple[str, bool], ...]:
    """The columns that an order names, and whether each is descending.

    Raises:
        SettingsError: a column is missing between commas, or comes twice.

    >>> keep_order("quality desc, id")
    (('quality', True), ('id', False))
    """
    order: list[tuple[str, bool]] = []
    for part in keep.split(","):
        name, _, direction = part.strip().rpartition(" ")
        if direction.lower() not in ("asc", "desc") or not name:
            name, direction = part.strip(), "asc"
        order.append((name.strip(), direction.lower() == "desc"))
    names = [name for name, _ in order]
    if not all(names) or len(set(names)) < len(names):
        problem = "a column is missing" if not all(names) else "a column comes twice"
        raise SettingsError(
            f"keep is {keep!r}, where {problem}; it must be columns with commas between them, each followed by asc or desc, such "
            "as 'quality desc, length desc, id asc'"
        )
    return tuple(order)


def smaller_distances(also_at: str, max_distance: int) -> tuple[int, ...]:
    """The distances that a list names, ascending.

    Raises:
        SettingsError: it is no list of whole numbers up to the distance of the search.

    >>> smaller_distances("5, 3", 6)
    (3, 5)
    """
    try:
        distances = tuple(sorted({int(part) for part in also_at.split(",")})) if also_at.strip() else ()
    except ValueError:
        distances = (-1,)
    if not all(0 <= distance <= max_distance for distance in distances):
        raise SettingsError(
            f"also-at is {also_at!r}; it must be whole numbers from 0 to max-distance, {max_distance}, with commas between them"
        )
    return distances


def check_max_distance(max_distance: int) -> None:
    """Raise SettingsError unless the distance is one that the search promises to find every pair for."""
    if isinstance(max_distance, bool) or not isinstance(max_distance, int) or not 0 <= max_distance <= LARGEST_DISTANCE:
        raise SettingsError(f"max-distance is {max_distance!r}; it must be a whole number from 0 to {LARGEST_DISTANCE}")


def flag(name: str) -> str:
    """The name of a knob as flags and TOML keys write it."""
    return name.replace("_", "-")
