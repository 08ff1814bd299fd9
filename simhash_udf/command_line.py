"""Settings from a command line and a TOML file: every flag, key and help sentence comes from `Settings`."""

from __future__ import annotations

import argparse
import difflib
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from simhash_udf.errors import SettingsError
from simhash_udf.knob_values import flag
from simhash_udf.settings import DEDUP_KNOBS, KNOBS, Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


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
        knob = KNOBS[name]
        shown = f"{knob.metadata['help']} Default: {knob.default}." if knob.default not in ((), "") else knob.metadata["help"]
        options: dict[str, Any] = {"default": None, "help": shown.replace("%", "%%"), "dest": name}
        if isinstance(knob.default, tuple):
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
    required = [name for name in ("input", "output", "store", "ids", "truth") if name in knobs]
    if "batch" in knobs:
        required += ["batch"]
        for name in ("store", "batch") if not any(map(values.get, ("store", "batch", "store_tables"))) else ("output",):
            required.remove(name)
    for name in required:
        if not values.get(name):
            parser.error(f"--{name} is missing: give it as a flag, or as the key '{name}' of the file that --config names")
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
    for knob in (KNOBS[name] for name in DEDUP_KNOBS):
        default = list(knob.default) if isinstance(knob.default, tuple) else knob.default
        choices = knob.metadata["choices"]
        lines += ["", f"# {knob.metadata['help']}" + (f" One of: {', '.join(choices)}." if choices else "")]
        lines.append(f"# {flag(knob.name)} = {json.dumps(default)}")
    return "\n".join(lines) + "\n"
