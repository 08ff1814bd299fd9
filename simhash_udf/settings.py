"""Every knob, once: its name, type, default, help sentence and check.

Flags, TOML keys and `--help` of the jobs, and the commented `conf/dedup.toml`, all come from the fields of `Settings`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from simhash_udf.core.election import WEIGHTINGS
from simhash_udf.core.fingerprint import (
    DEFAULT_NGRAM,
    DEFAULT_UNIT,
    DEFAULT_WEIGHTING,
    UNITS,
    check_text_settings,
)
from simhash_udf.core.similarity import MEASURES
from simhash_udf.errors import SettingsError
from simhash_udf.knob_values import (
    RANGES,
    check_combinations,
    check_encoding,
    check_max_distance,
    check_range,
    check_store,
    flag,
    keep_order,
    smaller_distances,
)

FINGERPRINT_VERSION = 1
FINGERPRINTS = ("simhash", "minhash")
FINGERPRINT_FORMATS = ("auto", "number", "hex")
INPUT_FORMATS = ("auto", "parquet", "orc", "jsonl", "csv", "tsv", "text", "lines", "warc", "table")
LABEL_COLUMN = "source"
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
    store: str = _knob(
        "", "In place of --output, a store of fingerprints to compare the input with and to add it to, as --batch.", unit="DIR"
    )
    batch: str = _knob("", "Name of the input in the store; that of a batch that is there already changes nothing.", unit="NAME")
    old: str = _knob(
        "never-dropped",
        "Documents that a store has kept: never-dropped, or dropped by the keep rule where a new one comes before them.",
        ("never-dropped", "by-keep-rule"),
    )
    store_tables: str = _knob(
        "",
        "Begin of the names of catalog tables, such as lake.dedup_, to hold a new store in place of its directory.",
        unit="NAME",
    )
    reference: tuple[str, ...] = _knob(
        (),
        "Drop documents that are near one of these: results, or documents in the form of the input; their own are not listed.",
        unit="PATH",
    )
    input_format: str = _knob(
        "auto",
        "Format of the input; auto tells by the ending of the file names; text is a document a file, lines a document a line.",
        INPUT_FORMATS,
    )
    encoding: str = _knob("utf-8", "Encoding of text, lines, JSON lines, CSV and TSV, by a name that Python knows.", unit="NAME")
    labels: tuple[str, ...] = _knob(
        (), "A label for each path of --input, in their order: the value of --source-column in its documents.", unit="LABEL"
    )
    id_column: str = _knob("id", "Column that names a document: any atomic type, no nulls, no value twice.", unit="NAME")
    make_ids: str = _knob(
        "none",
        "Make the column that --id-column names: content makes an id of all that is in a row, the same wherever it lies.",
        ("none", "content"),
    )
    duplicate_ids: str = _knob(
        "fail",
        "Rows that share an id: fail, or keep-apart, as documents of their own with a number behind the id from the second on.",
        ("fail", "keep-apart"),
    )
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
        "A broken record or file, a null id or a bad weight: fail the job, or reject it and list it in rejects/.",
        ("fail", "reject"),
    )
    max_rejected: float = _knob(
        0.1,
        "With --on-bad-input reject, stop where more than this share of the records is rejected; 1 is no limit.",
        unit="SHARE",
    )
    max_document_bytes: int = _knob(
        64 << 20,
        "Compare only so much of a text (in UTF-8), and read no record of more than twice as much; both are listed.",
        unit="N",
    )
    if_exists: str = _knob(
        "fail",
        "An output that exists: fail, replace it once the new result is complete, or resume: replace it, and use whole tables "
        "there of the same inputs and settings; a run that resumes and fails leaves its own.",
        ("fail", "replace", "resume"),
    )
    fingerprint_format: str = _knob(
        "auto",
        "Stored fingerprints that are strings: number, hex, or auto, which tells by the strings where it can be told.",
        FINGERPRINT_FORMATS,
        dedup=False,
    )
    ids: tuple[str, ...] = _knob(
        (), "Ids to forget: files with one a line, or Parquet with --id-column.", unit="PATH", dedup=False
    )
    keep_versions: int = _knob(
        0, "Remove versions of the store but the newest N, with what nothing else needs; 0 keeps all.", unit="N", dedup=False
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
                if not isinstance(given, (list, tuple)) or not all(isinstance(part, str) and part for part in given):
                    raise SettingsError(f"{knob.name} is {value!r}; it must be one or more texts, none of them empty")
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
        for name in RANGES:
            check_range(name, getattr(self, name))
        check_combinations(self)
        smaller_distances(self.also_at, self.max_distance)
        object.__setattr__(self, "encoding", check_encoding(self.encoding))
        if self.labels and len(self.labels) != len(self.input):
            raise SettingsError(
                f"labels are {len(self.labels)} and the paths of input {len(self.input)}; there must be one for each path"
            )
        if self.labels and not self.source_column:
            object.__setattr__(self, "source_column", LABEL_COLUMN)
        check_store(self)
        if self.make_ids != "none" and self.duplicate_ids != "fail":
            raise SettingsError("make-ids makes no id twice; with it duplicate-ids must be fail")

    @property
    def fingerprint_id(self) -> str:
        """All that decides a fingerprint, in one readable name; fingerprints of different ids are never compared."""
        if self.features_column:
            return f"simhash64-v{FINGERPRINT_VERSION}/features"
        if self.fingerprint == "minhash":
            return f"minhash64-v{FINGERPRINT_VERSION}/{self.unit}/{self.ngram}"
        return f"simhash64-v{FINGERPRINT_VERSION}/{self.unit}/{self.ngram}/{self.weighting}"

    @property
    def destination(self) -> str:
        """The directory that a run writes to."""
        return self.store or self.output

    @property
    def paths(self) -> tuple[str, ...]:
        """The inputs that are paths; the names of tables are none."""
        return () if self.input_format == "table" else self.input

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
INPUT_KNOBS = [
    "input", "input_format", "encoding", "labels", "id_column", "make_ids", "duplicate_ids", "source_column",
    "max_document_bytes",
]  # fmt: skip
DEDUP_KNOBS = [name for name, knob in KNOBS.items() if knob.metadata["dedup"]]
