"""The directory of one run: its tables appear there, and a manifest, written last and whole, says that they are complete.

    output/                      a first run writes here
      fingerprints/ fingerprint_pairs/ pairs/ clusters/ decisions/ kept/
      report.json
      manifest.json              where each table is; without it the output is not complete
      runs/ID/                   a run that replaces another writes its tables here; the manifest then names these
      _run.json                  which run is at work; gone when it has ended
      _work/                     tables between stages; gone when the run has ended

Readers find tables through the manifest. A run that replaces another removes the old tables after the manifest has changed.
"""

from __future__ import annotations

import json
import platform
import time
import uuid
from collections.abc import Callable
from datetime import datetime, timezone
from importlib.metadata import version
from types import TracebackType
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from simhash_udf import storage
from simhash_udf.errors import IncompleteResult, OutputError
from simhash_udf.settings import Settings
from simhash_udf.tables import SCHEMA_VERSION, TABLES

MANIFEST, REPORT, MARKER, WORK = "manifest.json", "report.json", "_run.json", "_work"
OWN_NAMES = {MANIFEST, REPORT, MARKER, WORK, "runs", *TABLES}


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
        self.seconds: dict[str, float] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self._log = log
        self._place = ""
        self._written: list[str] = []
        self._started = time.time()

    def __enter__(self) -> Run:
        self._old = check_output(self.settings)
        if self._old is None:
            for name in storage.names_in(self.output) or []:
                storage.remove(storage.join(self.output, name))
        storage.make_directory(self.output)
        self._place = "" if self._old is None else f"runs/{self.id}/"
        storage.write_text(storage.join(self.output, MARKER), json.dumps({"run": self.id, "host": platform.node()}) + "\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        storage.remove(storage.join(self.output, WORK))
        if kind is not None:
            for path in self._written:
                storage.remove(storage.join(self.output, path))
            if self._place:
                storage.remove(storage.join(self.output, self._place))
                if storage.names_in(storage.join(self.output, "runs")) == []:
                    storage.remove(storage.join(self.output, "runs"))
        storage.remove(storage.join(self.output, MARKER))
        if kind is not None and storage.names_in(self.output) == []:
            storage.remove(self.output)

    def store(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back: its lineage ends here. Names that are no result go to the work directory."""
        path = f"{self._place}{name}" if name in TABLES else f"{WORK}/{name}"
        place = storage.join(self.output, path)
        began = time.monotonic()
        if name in TABLES:
            self._written.append(path)
        table.write.parquet(storage.as_uri(place))
        written = self.spark.read.schema(table.schema).parquet(storage.as_literal_glob(place))
        rows = written.count()
        self.seconds[name] = round(time.monotonic() - began, 3)
        self._log(f"{name}: {rows:,} rows in {self.seconds[name]:.1f} s")
        if name in TABLES:
            schema = {field.name: field.dataType.simpleString() for field in table.schema}
            self.tables[name] = {"path": path, "rows": rows, "schema": schema}
        return written

    def rows(self, name: str) -> int:
        """Rows of a table written by this run."""
        return int(self.tables[name]["rows"])

    def publish(self, report: dict[str, Any]) -> None:
        """Make the result visible: the report, then the manifest; then remove what it replaces."""
        for name, table in self.tables.items():
            if storage.names_in(storage.join(self.output, table["path"])) is None:
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
            "settings": self.settings.as_dict(),
            "settings_id": self.settings.fingerprint_id,
            "versions": versions(self.spark),
            "tables": self.tables,
            "report": REPORT,
        }
        if self._old is None:
            storage.write_text(storage.join(self.output, REPORT), json.dumps(report, indent=2, default=str) + "\n")
        storage.write_text(storage.join(self.output, MANIFEST), json.dumps(manifest, indent=2) + "\n")
        # From here on the result is complete: an error in what follows must not remove it.
        self._written, self._place = [], ""
        if self._old is not None:
            storage.write_text(storage.join(self.output, REPORT), json.dumps(report, indent=2, default=str) + "\n")
            self._remove_replaced()

    def _remove_replaced(self) -> None:
        assert self._old is not None
        for table in self._old["tables"].values():
            storage.remove(storage.join(self.output, table["path"]))
        runs = storage.join(self.output, "runs")
        for name in storage.names_in(runs) or []:
            if name != self.id:
                storage.remove(storage.join(runs, name))


def check_output(settings: Settings) -> dict[str, Any] | None:
    """The manifest that a run would replace, or None where the output is new or an unfinished run's.

    Raises:
        OutputError: the output may not be written to; the message says why and what to do.
    """
    output = settings.output
    inputs = [path for given in settings.input for path in (given, *storage.expand(given))]
    meeting = storage.overlap(output, inputs)
    if meeting:
        raise OutputError(f"the output {output!r} {meeting}; nothing was written: choose a directory apart from all inputs")
    names = storage.names_in(output)
    if not names:
        return None
    foreign = [name for name in names if name not in OWN_NAMES and not name.endswith((".crc", ".tmp"))]
    if foreign or not {MANIFEST, MARKER} & set(names):
        raise OutputError(
            f"the output {output!r} exists and holds what no run of ours wrote, such as {(foreign or names)[0]!r}; it is left as "
            "it is: choose another directory"
        )
    if settings.if_exists != "replace":
        state = "holds a finished result" if MANIFEST in names else "was left by a run that did not finish, or is still at work"
        raise OutputError(f"the output {output!r} {state}; choose another directory, or say --if-exists replace")
    return read_manifest(output) if MANIFEST in names else None


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
        tables = {name: table["path"] for name, table in manifest["tables"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{MANIFEST} of {output!r} is not whole ({error!r}); write the result anew") from None
    for name, path in tables.items():
        if path.startswith("/") or ".." in path.split("/"):
            raise OutputError(f"{MANIFEST} of {output!r} places {name!r} at {path!r}, outside of the output")
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


def versions(spark: SparkSession) -> dict[str, str]:
    """Versions of what made a result."""
    packages = ("simhash-udf", "numpy", "pyarrow", "numba", "xxhash")
    return {"python": platform.python_version(), "spark": spark.version, **{name: version(name) for name in packages}}
