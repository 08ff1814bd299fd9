"""What the jobs share: a main that ends in one clear line and an exit code, never in a stack trace as the only word."""

from __future__ import annotations

import dataclasses
import logging
import os
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simhash_udf import errors, storage
from simhash_udf.command_line import parse
from simhash_udf.credentials import WithoutCredentials, without_credentials
from simhash_udf.errors import SimHashError
from simhash_udf.settings import Settings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from simhash_udf.core.plan import SearchPlan

SHOWN_HOT_CHUNKS = 5
_ROOM = Path(__file__).parent
# An installed package has conf/ within, a checkout beside it.
PROPERTIES_FILE = (_ROOM / "conf" if (_ROOM / "conf").is_dir() else _ROOM.parent / "conf") / "spark-local.conf"
_UNREADABLE = re.compile(
    r"FAILED_READ_FILE[^\n]*?file:?\s*(\S+?)\.?(?:\s|$)|(\S+) is not a Parquet file"
    # As Spark before 4.0 says that a file is gone.
    r"|FileNotFoundException:\s+File (\S+) does not exist"
)
_LOG = logging.getLogger("simhash")
_LOG.addFilter(WithoutCredentials())

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
        if settings and _lies_in(file, [settings.destination]):
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


def describe(
    settings: Settings,
    settings_id: str | None,
    knobs: Sequence[str],
    frame: DataFrame,
    tables: Sequence[str],
    search: Sequence[str] = (),
) -> str:
    """What a dry run prints: the settings, what the input holds, how the search would run, and the tables it would write.

    `settings_id` is that of the fingerprints, made or read; None where it is not known. `search` is from `describe_search`.
    """
    shown: dict[str, Any] = {name.replace("_", "-"): getattr(settings, name) for name in knobs}
    rows = frame.count()
    lines = ["settings"]
    lines += [f"  {name:17} {', '.join(value) if isinstance(value, tuple) else value}" for name, value in shown.items()]
    lines += [f"  {'settings id':17} {settings_id or 'unknown'}", f"input of {rows:,} rows, with the columns"]
    lines += [f"  {field.name:17} {field.dataType.simpleString()}" for field in frame.schema]
    lines += search
    lines += [f"tables that would be written to {settings.destination}", *(f"  {name}/" for name in tables)]
    return without_credentials("\n".join(lines))


def describe_search(plan: SearchPlan, fingerprints: DataFrame, cores: int) -> list[str]:
    """How a search will run and what it is expected to cost, a line each.

    Args:
        plan: for the cores at hand.
        fingerprints: the table `fingerprints`, in which ids are looked up for the hottest chunks.
        cores: that the job has.
    """
    plan = dataclasses.replace(plan, cores=cores)
    widths = ", ".join(str(band.width) for band in plan.bands)
    cut = f"bands of {widths} bits" if plan.bands[0].width else "no bands: one task has all"
    values = {
        "fingerprints": f"{plan.rows:,} distinct, pairs within {plan.max_distance} of 64 bits; {cut}",
        "shuffled": f"{plan.rows_shuffled:,} fingerprints, {plan.bytes_shuffled / 1e6:,.1f} MB",
        "tasks": f"{plan.tasks:,}, with up to {plan.task_bytes / 1e6:,.0f} MB of fingerprints each",
        "comparisons": f"{plan.comparisons:,.0f}",
        "pairs expected": f"about {plan.near_pairs:,.0f}, by a sample",
        "chance pairs": f"{plan.chance_pairs:,.3g} of unrelated fingerprints among them",
        "seconds expected": f"{plan.seconds:,.0f} on {cores} cores like those the model was measured on",
    }
    lines = ["search", *(f"  {name:17} {value}" for name, value in values.items())]
    lines += [f"  {'hot chunk':17} {line}" for line in _hot_chunk_lines(plan, fingerprints)]
    if plan.chance_pairs > plan.rows:
        lines.append(f"  {'warning':17} chance pairs outnumber the fingerprints: a smaller --max-distance would be right")
    return lines


def plan_logger(spark: SparkSession) -> Callable[[SearchPlan, DataFrame], None]:
    """What a job calls with the plan of its search before it runs: each line goes to the log."""
    from simhash_udf.session import cores_of

    def log_plan(plan: SearchPlan, fingerprints: DataFrame) -> None:
        for line in describe_search(plan, fingerprints, cores_of(spark)):
            log(line)

    return log_plan


def _hot_chunk_lines(plan: SearchPlan, fingerprints: DataFrame) -> list[str]:
    from pyspark.sql import functions as F

    hottest = plan.hot_chunks[:SHOWN_HOT_CHUNKS]
    if not hottest:
        return []
    examples = sorted({example for chunk in hottest for example in chunk.examples})
    found = fingerprints.where(F.col("fingerprint").isin(examples)).groupBy("fingerprint").agg(F.min("id").alias("id")).collect()
    ids = {row["fingerprint"]: row["id"] for row in found}
    lines = []
    for chunk in hottest:
        band = plan.bands[chunk.band]
        shown = ", ".join(repr(ids[example]) for example in chunk.examples if example in ids)
        lines.append(
            f"bits {63 - band.start} to {64 - band.end} are {chunk.chunk:0{band.width}b} in about {chunk.rows:,} fingerprints, "
            f"such as those of {shown}"
        )
    return lines
