"""Every knob, once: its name, type, default, help sentence and check.

Flags, TOML keys and `--help` of the jobs, and the commented `conf/dedup.toml`, all come from the fields of `Settings`.
"""

from __future__ import annotations

import argparse
import dataclasses
import difflib
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from simhash_udf.core.blocks import LARGEST_DISTANCE
from simhash_udf.core.election import WEIGHTINGS
from simhash_udf.core.fingerprint import (
    DEFAULT_NGRAM,
    DEFAULT_UNIT,
    DEFAULT_WEIGHTING,
    UNITS,
    check_text_settings,
)
from simhash_udf.errors import SettingsError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FINGERPRINT_VERSION = 1


def _knob(default: Any, sentence: str, choices: tuple[str, ...] = (), unit: str = "") -> Any:
    return field(default=default, metadata={"help": sentence, "choices": choices, "unit": unit})


@dataclass(frozen=True)
class Settings:
    """What a run does. Frozen; checked when made.

    Raises:
        SettingsError: a value has the wrong type or is out of range; the message names the knob and what it may be.

    >>> Settings(max_distance=8).fingerprint_id
    'simhash64-v1/word/2/log'
    """

    input: tuple[str, ...] = _knob((), "Documents to read: files, directories or globs.", unit="PATH")
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
    max_pairs: int = _knob(100_000_000, "Stop before writing more document pairs than this.", unit="N")
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

    def __post_init__(self) -> None:
        for knob in dataclasses.fields(self):
            value = getattr(self, knob.name)
            if knob.name == "input":
                given = [value] if isinstance(value, str) else value
                if not isinstance(given, (list, tuple)) or not all(isinstance(path, str) and path for path in given):
                    raise SettingsError(f"input is {value!r}; it must be one or more paths")
                object.__setattr__(self, "input", tuple(given))
                continue
            expected = type(knob.default)
            if type(value) is not expected:
                raise SettingsError(f"{flag(knob.name)} is {value!r}; it must be a {_TYPE_NAMES[expected]}")
            choices = knob.metadata["choices"]
            if choices and value not in choices:
                raise SettingsError(f"{flag(knob.name)} is {value!r}; it must be one of {', '.join(choices)}")
        check_text_settings(self.unit, self.ngram, self.weighting)
        check_max_distance(self.max_distance)
        if self.max_pairs < 0:
            raise SettingsError(f"max-pairs is {self.max_pairs}; it must be 0 or more")

    @property
    def fingerprint_id(self) -> str:
        """All that decides a fingerprint, in one readable name; fingerprints of different ids are never compared."""
        if self.features_column:
            return f"simhash64-v{FINGERPRINT_VERSION}/features"
        return f"simhash64-v{FINGERPRINT_VERSION}/{self.unit}/{self.ngram}/{self.weighting}"

    def as_dict(self, knobs: Sequence[str]) -> dict[str, Any]:
        """The knobs of these names, each by its flag's name, as JSON types."""
        return {flag(name): list(value) if isinstance(value := getattr(self, name), tuple) else value for name in knobs}


_TYPE_NAMES = {str: "text", int: "whole number", bool: "true or false"}
_KNOBS = {knob.name: knob for knob in dataclasses.fields(Settings)}


def check_max_distance(max_distance: int) -> None:
    """Raise SettingsError unless the distance is one that the search promises to find every pair for."""
    if isinstance(max_distance, bool) or not isinstance(max_distance, int) or not 0 <= max_distance <= LARGEST_DISTANCE:
        raise SettingsError(f"max-distance is {max_distance!r}; it must be a whole number from 0 to {LARGEST_DISTANCE}")


def flag(name: str) -> str:
    """The name of a knob as flags and TOML keys write it."""
    return name.replace("_", "-")


def parse(description: str, knobs: Sequence[str], arguments: Sequence[str] | None = None) -> tuple[Settings, argparse.Namespace]:
    """Settings of a job from its command line and TOML file; flags win over the file, the file over defaults.

    Args:
        description: the first paragraph of `--help`.
        knobs: names of the fields of Settings that the job takes.
        arguments: the command line without the program's name; that of the process where not given.

    Returns:
        The settings, and the namespace with `dry_run`.

    Raises:
        SettingsError: a key or a value cannot be used. A flag that does not exist exits with 2, as argparse does.
    """
    parser = argparse.ArgumentParser(description=description, allow_abbrev=False)
    for name in knobs:
        knob = _KNOBS[name]
        shown = f"{knob.metadata['help']} Default: {knob.default}." if knob.default not in ((), "") else knob.metadata["help"]
        options: dict[str, Any] = {"default": None, "help": shown.replace("%", "%%"), "dest": name}
        if name == "input":
            options |= {"nargs": "+", "metavar": knob.metadata["unit"]}
        elif knob.metadata["choices"]:
            options |= {"choices": knob.metadata["choices"]}
        else:
            options |= {"type": type(knob.default), "metavar": knob.metadata["unit"]}
        parser.add_argument(f"--{flag(name)}", **options)
    parser.add_argument("--config", metavar="FILE", help="TOML file with any of these settings, each by its flag's name.")
    parser.add_argument("--dry-run", action="store_true", help="Print what would be done, and stop.")
    given = parser.parse_args(arguments)
    values = read_toml(given.config, knobs) if given.config else {}
    values |= {name: value for name in knobs if (value := getattr(given, name)) is not None}
    for required in ("input", "output"):
        if required in knobs and not values.get(required):
            parser.error(
                f"--{required} is missing: give it as a flag, or as the key '{required}' of the file that --config names"
            )
    return Settings(**values), given


def read_toml(path: str, knobs: Sequence[str]) -> dict[str, Any]:
    """The settings in a TOML file, by field name.

    Raises:
        SettingsError: the file cannot be read, is not TOML, or has a key that is no knob of the job.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"the settings file {path!r} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"the settings file {path!r} is not TOML: {error}") from None
    names = {flag(name): name for name in knobs}
    for key in content:
        if key not in names:
            near = difflib.get_close_matches(key, names, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"the keys are {', '.join(names)}"
            raise SettingsError(f"the settings file {path!r} has the key {key!r}, which this job does not know; {hint}")
    return {names[key]: tuple(value) if isinstance(value, list) else value for key, value in content.items()}


def toml_template() -> str:
    """A TOML file with every knob at its default, each commented out below its help sentence."""
    lines = ["# Settings of jobs/dedup.py: give this file to it with --config. Flags win over what stands here."]
    for knob in dataclasses.fields(Settings):
        default = list(knob.default) if isinstance(knob.default, tuple) else knob.default
        choices = knob.metadata["choices"]
        lines += ["", f"# {knob.metadata['help']}" + (f" One of: {', '.join(choices)}." if choices else "")]
        lines.append(f"# {flag(knob.name)} = {json.dumps(default)}")
    return "\n".join(lines) + "\n"
