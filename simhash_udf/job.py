"""What the jobs share: a main that ends in one clear line and an exit code, never in a stack trace as the only word."""

from __future__ import annotations

import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simhash_udf import errors, storage
from simhash_udf.errors import SimHashError
from simhash_udf.settings import Settings, parse

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ROOM = Path(__file__).parent
# An installed package has conf/ within, a checkout beside it.
PROPERTIES_FILE = (_ROOM / "conf" if (_ROOM / "conf").is_dir() else _ROOM.parent / "conf") / "spark-local.conf"
_UNREADABLE = re.compile(
    r"FAILED_READ_FILE[^\n]*?file:?\s*(\S+?)\.?(?:\s|$)|(\S+) is not a Parquet file"
    # As Spark before 4.0 says that a file is gone.
    r"|FileNotFoundException:\s+File (\S+) does not exist"
)
_LOG = logging.getLogger("simhash")

Work = Callable[["SparkSession", Settings, bool], None]


def main(description: str, knobs: Sequence[str], work: Work, arguments: Sequence[str] | None = None) -> int:
    """Run a job from its command line; the exit code (see `simhash_udf.errors`; 0 is a complete result).

    Args:
        description: the first paragraph of `--help`.
        knobs: names of the fields of Settings that the job takes.
        work: called with the session, the settings and whether it is a dry run.
        arguments: the command line without the program's name; that of the process where not given.
    """
    logging.basicConfig(format="%(asctime)s %(message)s", datefmt="%H:%M:%S", stream=sys.stderr)
    _LOG.setLevel(logging.INFO)
    settings = None
    try:
        settings, given = parse(description, knobs, arguments)
        from simhash_udf.session import open_session

        spark = open_session(Path(sys.argv[0]).stem, PROPERTIES_FILE)
        try:
            work(spark, settings, given.dry_run)
        finally:
            spark.stop()
    except SimHashError as error:
        _LOG.error("%s: %s", type(error).__name__, error)
        return error.exit_code
    except KeyboardInterrupt:
        _LOG.error("interrupted")
        return 130
    except Exception as error:
        code, message = explain(error, settings)
        _LOG.error("%s", message)
        if os.environ.get("SIMHASH_TRACE"):
            raise
        _LOG.error("set SIMHASH_TRACE=1 to see the whole stack trace")
        return code
    return 0


def explain(error: Exception, settings: Settings | None = None) -> tuple[int, str]:
    """Exit code and message for an error that Spark or the system raised; the settings, where known, say what is whose file."""
    text = str(error)
    ours = re.search(r"simhash_udf\.errors\.(\w+): ([^\n]+)", text)
    if ours:
        # Raised inside a Python worker; Spark wraps it in the stack traces of two languages.
        return getattr(errors, ours[1], SimHashError).exit_code, f"{ours[1]}: {ours[2]}"
    unreadable = _UNREADABLE.search(text)
    if unreadable:
        file = next(filter(None, unreadable.groups()))
        if settings and _lies_in(file, [settings.output]):
            return errors.OutputError.exit_code, (
                f"OutputError: {file}, which this run wrote, is gone or cannot be read; something changed the output: run again"
            )
        cause = re.findall(r"Caused by: ([^\n]+)", text)
        return errors.InputError.exit_code, (
            f"InputError: the file {file} cannot be read ({cause[-1] if cause else 'damaged or of another format'}); mend it or "
            "leave it out"
        )
    if isinstance(error, ConnectionError):
        return (
            SimHashError.exit_code,
            f"{type(error).__name__}: {error}; Spark's own process is gone or does not answer: run again",
        )
    if isinstance(error, OSError):
        named = [name for name in (error.filename, *re.findall("'([^']+)'", text)) if isinstance(name, str)]
        if settings and any(_lies_in(name, settings.input) for name in named):
            return errors.InputError.exit_code, f"InputError: the input cannot be read: {error}; mend it or leave it out"
        return errors.OutputError.exit_code, f"OutputError: {error}"
    if "No space left on device" in text:
        return errors.OutputError.exit_code, "OutputError: no space is left on the disk; make room, and run again"
    first = next((line for line in text.splitlines() if line.strip()), type(error).__name__)
    return SimHashError.exit_code, f"{type(error).__name__}: {first}"


def _lies_in(file: str, places: Sequence[str]) -> bool:
    return (storage.overlap(file, list(places)) or "").startswith(("is", "lies inside"))


def log(message: str) -> None:
    """A line of progress."""
    _LOG.info("%s", message)


def describe(settings: Settings, knobs: Sequence[str], frame: DataFrame, tables: Sequence[str]) -> str:
    """What a dry run prints: the settings, what the input holds, how the search would run, and the tables it would write."""
    shown: dict[str, Any] = {name.replace("_", "-"): getattr(settings, name) for name in knobs}
    rows = frame.count()
    lines = ["settings"]
    lines += [f"  {name:17} {', '.join(value) if isinstance(value, tuple) else value}" for name, value in shown.items()]
    lines += [f"  {'settings id':17} {settings.fingerprint_id}", f"input of {rows:,} rows, with the columns"]
    lines += [f"  {field.name:17} {field.dataType.simpleString()}" for field in frame.schema]
    if "max_distance" in knobs:
        lines += ["search, if all fingerprints were distinct and evenly spread", *_plan_lines(rows, settings.max_distance)]
    lines += [f"tables that would be written to {settings.output}", *(f"  {name}/" for name in tables)]
    return "\n".join(lines)


def _plan_lines(rows: int, max_distance: int) -> list[str]:
    from simhash_udf.core.plan import plan_search

    plan = plan_search(rows, max_distance)
    lines = [
        f"  {'shuffled':17} {plan.rows_shuffled:,} fingerprints, {plan.bytes_shuffled / 1e6:,.1f} MB, in {plan.tasks} tasks",
        f"  {'comparisons':17} {plan.comparisons:,.0f}",
        f"  {'chance pairs':17} {plan.chance_pairs:,.3g} of unrelated documents are expected within {max_distance} bits",
    ]
    if plan.chance_pairs > rows:
        lines.append(f"  {'warning':17} these outnumber the documents: a smaller --max-distance would be right")
    return lines
