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

import hashlib
import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from simhash_udf import checkpoints, storage
from simhash_udf.checkpoints import Checkpoint
from simhash_udf.checksums import Checked, described
from simhash_udf.credentials import cleaned
from simhash_udf.errors import IncompleteResult, OutputError
from simhash_udf.inputs import InputFile, listing
from simhash_udf.manifest import MANIFEST, MARKER, REPORT, RUNS, WORK, versions
from simhash_udf.marker import Marker, run_at_work
from simhash_udf.output import RUN_ID, check_output, is_own
from simhash_udf.settings import Settings
from simhash_udf.tables import SCHEMA_VERSION, TABLES, TableOf

INPUTS = "inputs.json"


class Run:
    """One run writing to its output directory; a context manager that leaves nothing half done behind.

    Raises (when entered):
        OutputError: the output exists and may not be replaced, holds what is not ours, overlaps an input, or is that of a run at
            work.
        InputError: an input is not there.
    """

    described: ClassVar[Mapping[str, TableOf]] = TABLES

    def __init__(self, spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> None:
        self.spark = spark
        self.settings = settings
        self.id = datetime.now(timezone.utc).strftime("%Y%m%dT%H%M%SZ-") + uuid.uuid4().hex[:6]
        self.output = settings.destination
        self.place = f"{RUNS}/{self.id}"
        self.seconds: dict[str, float] = {}
        self.tables: dict[str, dict[str, Any]] = {}
        self.reused: list[str] = []
        self._log = log
        self._published = False
        self._versions = versions(spark)
        self._started = time.time()
        self._inputs: list[InputFile] = []
        self._inputs_id = ""
        self._finished: dict[tuple[str, str], Checkpoint] = {}
        self._written: dict[str, str] = {}
        self._marker = Marker(self.output, self.id)

    def __enter__(self) -> Run:
        self._check_place()
        storage.make_directory(self.output)
        self._marker.write()
        try:
            self._inputs = listing(self.spark, self.settings)
            self._inputs_id = hashlib.sha256(json.dumps(self._inputs).encode()).hexdigest()
            if self.settings.if_exists == "resume":
                for run in storage.names_in(storage.join(self.output, RUNS)) or []:
                    for found in checkpoints.recorded(self.output, f"{RUNS}/{run}"):
                        self._finished[found.name, found.key] = found
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        stays = self._published or (self.settings.if_exists == "resume" and bool(self._written))
        if not stays:
            self._remove(self.place)
        elif self._published:
            self._remove(f"{self.place}/{WORK}")
        else:
            self._remove_unfinished()
        if not stays:
            self._remove(RUNS, only_if_empty=True)
        try:
            self._marker.remove()
        except OSError as failure:
            self._log(f"{MARKER} could not be removed ({failure}); remove it by hand")
        if not stays:
            self._remove("", only_if_empty=True)
        if kind is not None:
            ended = "had published its result, which is complete" if self._published else "published nothing"
            kept = "" if self._published or not stays else f", and keeps {', '.join(self._written)} for --if-exists resume"
            self._log(f"the run {self.id} ended with an error; it {ended}{kept}")

    def store(self, name: str, table: DataFrame) -> DataFrame:
        """Write a table and read it back: its lineage ends here. Names that are no result go to the work directory.

        A run that resumes takes what an earlier one wrote of the same inputs by the same settings in its place.

        Raises:
            OutputError: another run has taken over the output.
        """
        self._check_at_work()
        done = self.finished(name)
        if done is not None:
            return done
        path = f"{self.place}/{name}" if self._is_result(name) else f"{self.place}/{WORK}/{name}"
        place = storage.join(self.output, path)
        began = time.monotonic()
        table = described(table, self.described.get(name, {}))
        checked = Checked(table)
        written = self._write(name, checked.frame, place)
        rows = written.count()
        checkpoint = Checkpoint(
            name=name,
            path=path,
            rows=rows,
            checksum=checked.checksum(rows, written),
            schema={field.name: field.dataType.simpleString() for field in table.schema},
            files=checkpoints.files_of(place) or {},
            key=self._key(name),
        )
        self._take(checkpoint)
        self.seconds[name] = round(time.monotonic() - began, 3)
        self._log(f"{name}: {rows:,} rows in {self.seconds[name]:.1f} s")
        return written

    def _is_result(self, name: str) -> bool:
        """Whether a table is a result; others are between stages."""
        return name in self.described

    def _check_place(self) -> None:
        check_output(self.settings)

    def _write(self, name: str, table: DataFrame, place: str) -> DataFrame:
        """Write a table to its place, and give it as it is read from there."""
        table.write.parquet(storage.as_uri(place))
        return self.spark.read.schema(table.schema).parquet(storage.as_literal_glob(place))

    def finished(self, name: str) -> DataFrame | None:
        """A table that an earlier run wrote of the same inputs by the same settings, where this one resumes; else None."""
        found = self._finished.get((name, self._key(name)))
        if found is None:
            return None
        if self._written.get(name) != found.path:
            self._take(found)
            self.reused.append(name)
            self._log(f"{name}: {found.rows:,} rows of an earlier run, in {found.path}")
        return self.spark.read.parquet(storage.as_literal_glob(storage.join(self.output, found.path)))

    def _key(self, name: str) -> str:
        return checkpoints.key_of(name, self.settings, self._inputs_id)

    def _take(self, checkpoint: Checkpoint) -> None:
        checkpoints.write(self.output, self.place, checkpoint)
        self._written[checkpoint.name] = checkpoint.path
        if self._is_result(checkpoint.name):
            told = {"path": checkpoint.path, "rows": checkpoint.rows, "checksum": checkpoint.checksum}
            self.tables[checkpoint.name] = {**told, "schema": checkpoint.schema}

    def discard(self, name: str) -> None:
        """Remove a table between stages; it need not wait for the end of the run. What an earlier run wrote stays until then."""
        path = self._written.pop(name, None)
        if path is not None and not self._is_result(name):
            checkpoints.remove(self.output, self.place, name)
            if path.startswith(f"{self.place}/"):
                self._remove(path)

    def rows(self, name: str) -> int:
        """Rows of a table written by this run, or reused."""
        return int(self.tables[name]["rows"])

    def publish(self, report: dict[str, Any], knobs: Sequence[str], settings_id: str | None) -> None:
        """Make the result visible: the report, then the manifest; then remove what it replaces.

        Args:
            report: the figures of the run.
            knobs: names of the settings that the job takes; the manifest has no others, since they decided nothing.
            settings_id: that of the fingerprints in the result; None where it is not known.

        Raises:
            OutputError: another run has taken over the output; nothing is published.
            IncompleteResult: a table is gone, or an input changed; nothing is published.
        """
        self._check_whole()
        manifest = {
            "format": SCHEMA_VERSION,
            "run": self.id,
            "finished": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "settings": self.settings.as_dict(knobs),
            "settings_id": settings_id,
            "versions": self._versions,
            "tables": self.tables,
            "inputs": {
                "files": len(self._inputs),
                "bytes": sum(file.size for file in self._inputs),
                "listing": f"{self.place}/{INPUTS}",
            },
            "report": f"{self.place}/{REPORT}",
        }
        self._write_beside(report)
        self._check_at_work()
        self._write_json(storage.join(self.output, MANIFEST), manifest)
        # From here on the result is complete: an error in what follows must not remove it.
        self._published = True
        if self.settings.if_exists != "fail":
            self._remove_others()

    def _check_whole(self) -> None:
        for name, table in self.tables.items():
            if storage.names_in(storage.join(self.output, table["path"])) is None:
                # That is how a run that took over and has published leaves it.
                self._check_at_work()
                raise IncompleteResult(f"the table {name!r} is gone from {table['path']!r}; something else wrote to the output")
        if listing(self.spark, self.settings) != self._inputs:
            raise IncompleteResult(
                "an input changed while the job read it, so that its tables may be of different inputs; run again on files that "
                "stay as they are"
            )

    def _write_beside(self, report: dict[str, Any]) -> None:
        """Write the listing of the inputs, and the report with what it says of every run."""
        report = {
            "run": self.id,
            **report,
            **({"reused": self.reused} if self.reused else {}),
            "seconds": {**self.seconds, "whole run": round(time.time() - self._started, 3)},
        }
        place = storage.join(self.output, self.place)
        storage.make_directory(place)
        self._write_json(storage.join(place, INPUTS), [file._asdict() for file in self._inputs])
        self._write_json(storage.join(place, REPORT), report)

    def _write_json(self, path: str, content: Any) -> None:
        storage.write_text(path, json.dumps(cleaned(content), indent=2, default=str) + "\n")

    def _check_at_work(self) -> None:
        other = run_at_work(self.output)
        if other != self.id:
            taken = f"the run {other!r} has taken it over" if other else f"its {MARKER} is gone, so another run has taken it over"
            raise OutputError(
                f"the output {self.output!r} is no longer that of the run {self.id!r}: {taken}; one run at a time may write to "
                "an output: choose another directory for this one, or run it again when the other has ended"
            )

    def _remove_others(self) -> None:
        """What other runs wrote, but for the tables that are in this one's result."""
        used = {table["path"] for table in self.tables.values()}
        staying = {self.id, run_at_work(self.output)}
        for run in storage.names_in(storage.join(self.output, RUNS)) or []:
            if not RUN_ID.fullmatch(run) or run in staying:
                continue
            place = f"{RUNS}/{run}"
            if not any(path.startswith(f"{place}/") for path in used):
                self._remove(place)
                continue
            for name in storage.names_in(storage.join(self.output, place)) or []:
                if f"{place}/{name}" not in used:
                    self._remove(f"{place}/{name}")
        for name in storage.names_in(self.output) or []:
            if name not in (MANIFEST, MARKER, RUNS) and is_own(name):
                self._remove(name)

    def _remove_unfinished(self) -> None:
        """What this run was writing when it failed, so that only whole tables stay."""
        for directory in (self.place, f"{self.place}/{WORK}"):
            for name in storage.names_in(storage.join(self.output, directory)) or []:
                path = f"{directory}/{name}"
                if name not in (WORK, checkpoints.RECORDS) and path not in self._written.values():
                    self._remove(path)

    def _remove(self, path: str, *, only_if_empty: bool = False) -> None:
        place = storage.join(self.output, path) if path else self.output
        try:
            if not only_if_empty or storage.names_in(place) == []:
                storage.remove(place)
        except OSError as error:
            # The result, or the error that ended the run, is what matters.
            self._log(f"{place} could not be removed ({error}); remove it by hand")
