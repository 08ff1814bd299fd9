"""The directory of a job's results: each run writes below a directory of its own, and a manifest, written last and whole, says
which run's tables are the result.

    output/
      manifest.json              names the run whose result this is, and where its tables and its report are; without it
                                 there is no complete result
      _run.json                  which run is at work; gone when it has ended
      runs/ID/                   all that one run writes
        fingerprints/ fingerprint_pairs/ pairs/ clusters/ decisions/ kept/
        report.json
        _work/                   tables between stages; gone when the run has ended, large ones once they are used

Readers find tables through the manifest. A run that fails removes its own directory and nothing else. A run that replaces
takes over `_run.json`, and once it has written the manifest it removes the directories of other runs: of the one that it
replaces, and of those that were killed or taken over.
"""

from __future__ import annotations

import json
import platform
import re
import time
import uuid
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from importlib import metadata
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from simhash_udf import storage
from simhash_udf.errors import IncompleteResult, OutputError
from simhash_udf.settings import Settings
from simhash_udf.tables import SCHEMA_VERSION, TABLES

MANIFEST, REPORT, MARKER, WORK, RUNS = "manifest.json", "report.json", "_run.json", "_work", "runs"
_RUN_ID = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{6}")


class Run:
    """One run writing to its output directory; a context manager that leaves nothing half done behind.

    Raises (when entered):
        OutputError: the output exists and may not be replaced, holds what is not ours, or overlaps an input.
    """

    def __init__(self, spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> None:
        self.spark = spark
        self.settings = settings
        self.id = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ-") + uuid.uuid4().hex[:6]
        self.output = settings.output
        self.place = f"{RUNS}/{self.id}"
        self.seconds: dict[str, float] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self._log = log
        self._published = False
        self._versions = versions(spark)
        self._started = time.time()

    def __enter__(self) -> Run:
        check_output(self.settings)
        storage.make_directory(self.output)
        marker = {"run": self.id, "host": platform.node(), "started": datetime.now(timezone.utc).isoformat(timespec="seconds")}
        storage.write_text(storage.join(self.output, MARKER), json.dumps(marker) + "\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._remove(f"{self.place}/{WORK}" if self._published else self.place)
        if not self._published:
            self._remove(RUNS, only_if_empty=True)
        if run_at_work(self.output) == self.id:
            self._remove(MARKER)
        if not self._published:
            self._remove("", only_if_empty=True)
        if kind is not None:
            ended = "had published its result, which is complete" if self._published else "published nothing"
            self._log(f"the run {self.id} ended with an error; it {ended}")

    def store(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back: its lineage ends here. Names that are no result go to the work directory.

        Raises:
            OutputError: another run has taken over the output.
        """
        self._check_at_work()
        path = f"{self.place}/{name}" if name in TABLES else f"{self.place}/{WORK}/{name}"
        place = storage.join(self.output, path)
        began = time.monotonic()
        table.write.parquet(storage.as_uri(place))
        written = self.spark.read.schema(table.schema).parquet(storage.as_literal_glob(place))
        rows = written.count()
        self.seconds[name] = round(time.monotonic() - began, 3)
        self._log(f"{name}: {rows:,} rows in {self.seconds[name]:.1f} s")
        if name in TABLES:
            schema = {field.name: field.dataType.simpleString() for field in table.schema}
            self.tables[name] = {"path": path, "rows": rows, "schema": schema}
        return written

    def discard(self, name: str) -> None:
        """Remove a table between stages; it need not wait for the end of the run."""
        self._remove(f"{self.place}/{WORK}/{name}")

    def rows(self, name: str) -> int:
        """Rows of a table written by this run."""
        return int(self.tables[name]["rows"])

    def publish(self, report: dict[str, Any], knobs: Sequence[str], settings_id: str | None) -> None:
        """Make the result visible: the report, then the manifest; then remove what it replaces.

        Args:
            report: the figures of the run.
            knobs: names of the settings that the job takes; the manifest has no others, since they decided nothing.
            settings_id: that of the fingerprints in the result; None where it is not known.

        Raises:
            OutputError: another run has taken over the output; nothing is published.
            IncompleteResult: a table is gone; nothing is published.
        """
        for name, table in self.tables.items():
            if storage.names_in(storage.join(self.output, table["path"])) is None:
                # That is how a run that took over and has published leaves it.
                self._check_at_work()
                raise IncompleteResult(f"the table {name!r} is gone from {table['path']!r}; something else wrote to the output")
        report = {
            "run": self.id,
            **report,
            "seconds": {**self.seconds, "whole run": round(time.time() - self._started, 3)},
        }
        manifest = {
            "format": SCHEMA_VERSION,
            "run": self.id,
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "settings": self.settings.as_dict(knobs),
            "settings_id": settings_id,
            "versions": self._versions,
            "tables": self.tables,
            "report": f"{self.place}/{REPORT}",
        }
        place = storage.join(self.output, self.place)
        storage.make_directory(place)
        storage.write_text(storage.join(place, REPORT), json.dumps(report, indent=2, default=str) + "\n")
        self._check_at_work()
        storage.write_text(storage.join(self.output, MANIFEST), json.dumps(manifest, indent=2) + "\n")
        # From here on the result is complete: an error in what follows must not remove it.
        self._published = True
        if self.settings.if_exists == "replace":
            self._remove_others()

    def _check_at_work(self) -> None:
        other = run_at_work(self.output)
        if other != self.id:
            taken = f"the run {other!r} has taken it over" if other else f"its {MARKER} is gone, so another run has taken it over"
            raise OutputError(
                f"the output {self.output!r} is no longer that of the run {self.id!r}: {taken}; one run at a time may write to "
                "an output: choose another directory for this one, or run it again when the other has ended"
            )

    def _remove_others(self) -> None:
        staying = {self.id, run_at_work(self.output)}
        for name in storage.names_in(storage.join(self.output, RUNS)) or []:
            if _RUN_ID.fullmatch(name) and name not in staying:
                self._remove(f"{RUNS}/{name}")
        for name in storage.names_in(self.output) or []:
            if name not in (MANIFEST, MARKER, RUNS) and _is_own(name):
                self._remove(name)

    def _remove(self, path: str, *, only_if_empty: bool = False) -> None:
        place = storage.join(self.output, path) if path else self.output
        try:
            if not only_if_empty or storage.names_in(place) == []:
                storage.remove(place)
        except OSError as error:
            # The result, or the error that ended the run, is what matters.
            self._log(f"{place} could not be removed ({error}); remove it by hand")


def run_at_work(output: str) -> str | None:
    """The id of the run that is at work in an output, as its marker says; None where none is."""
    text = storage.read_text(storage.join(output, MARKER))
    if text is None:
        return None
    try:
        return str(json.loads(text)["run"])
    except (ValueError, KeyError, TypeError):
        return "unknown"


def check_output(settings: Settings) -> None:
    """Raise OutputError unless a run may write to its output; the message says why not, and what to do."""
    output = settings.output
    inputs = [path for given in settings.paths for path in (given, *storage.expand(given))]
    meeting = storage.overlap(output, inputs)
    if meeting:
        raise OutputError(f"the output {output!r} {meeting}; nothing was written: choose a directory apart from all inputs")
    names = storage.names_in(output)
    if not names:
        return
    runs = (storage.names_in(storage.join(output, RUNS)) or []) if RUNS in names else []
    foreign = [name for name in names if not _is_own(name)]
    foreign += [f"{RUNS}/{name}" for name in runs if not _RUN_ID.fullmatch(name)]
    if foreign:
        raise OutputError(
            f"the output {output!r} exists and holds what no run of ours wrote, such as {foreign[0]!r}; it is left as it is: "
            "choose another directory"
        )
    if MANIFEST in names:
        # Whatever else is called so must not be overwritten.
        read_manifest(output)
    if settings.if_exists == "replace":
        return
    at_work = run_at_work(output)
    if at_work:
        raise OutputError(
            f"in the output {output!r} the run {at_work!r} is at work, or was killed; wait for its end, choose another "
            "directory, or say --if-exists replace, which takes the output over from it"
        )
    state = "holds a finished result" if MANIFEST in names else "was left by a run that did not finish"
    raise OutputError(f"the output {output!r} {state}; choose another directory, or say --if-exists replace")


def _is_own(name: str) -> bool:
    """Whether a run writes a file or directory of this name into its output, if only for a moment."""
    return (storage.name_of_unfinished(name) or name) in (MANIFEST, MARKER, RUNS)


def read_manifest(output: str) -> dict[str, Any]:
    """The manifest of a finished run.

    Raises:
        OutputError: there is none, or it is not one that this version reads.
    """
    text = storage.read_text(storage.join(output, MANIFEST))
    if text is None:
        raise OutputError(f"{output!r} has no {MANIFEST}; it must be the output of a finished run")
    try:
        manifest: dict[str, Any] = json.loads(text)
        paths = {name: str(table["path"]) for name, table in manifest["tables"].items()}
        paths |= {REPORT: str(manifest["report"])} if "report" in manifest else {}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{MANIFEST} of {output!r} is not whole ({error!r}); write the result anew") from None
    for name, path in paths.items():
        if {"", ".", ".."} & set(path.split("/")):
            raise OutputError(
                f"{MANIFEST} of {output!r} places {name!r} at {path!r}, outside of the output or nowhere in it; write the result "
                "anew"
            )
    if manifest.get("format") != SCHEMA_VERSION:
        raise OutputError(f"{output!r} is of format {manifest.get('format')!r}; this version reads format {SCHEMA_VERSION}")
    return manifest


def table_path(output: str, name: str) -> str:
    """Where a table of a finished run is.

    Raises:
        OutputError: there is no finished run, or it has no such table.
    """
    tables = read_manifest(output)["tables"]
    if name not in tables:
        raise OutputError(f"{output!r} has no table {name!r}; it has {', '.join(sorted(tables))}")
    return storage.join(output, tables[name]["path"])


def read_report(output: str) -> dict[str, Any]:
    """The report of a finished run.

    Raises:
        OutputError: there is no finished run, or its report is gone.
    """
    path = read_manifest(output)["report"]
    text = storage.read_text(storage.join(output, path))
    if text is None:
        raise OutputError(f"{output!r} has no {path}, which its {MANIFEST} names; write the result anew")
    report: dict[str, Any] = json.loads(text)
    return report


def versions(spark: SparkSession) -> dict[str, str]:
    """Versions of what made a result; "unknown" where a package came without its metadata, as in a zip on PYTHONPATH."""
    known = {"python": platform.python_version(), "spark": spark.version}
    for name in ("simhash-udf", "numpy", "pyarrow", "numba", "xxhash"):
        try:
            known[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            known[name] = "unknown"
    return known
