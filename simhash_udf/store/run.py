"""A run that writes to a store: what it has written is the store's next version, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timezone
from types import TracebackType
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession

from simhash_udf import checkpoints, storage
from simhash_udf.errors import OutputError
from simhash_udf.manifest import MARKER, RUNS
from simhash_udf.marker import is_alive, run_at_work
from simhash_udf.output import RUN_ID, check_apart
from simhash_udf.run import Run
from simhash_udf.settings import Settings
from simhash_udf.store.manifest import STORE, StoreManifest, Version, read_store
from simhash_udf.store.tables import BY_BATCH, STATE, StateTables, state_tables
from simhash_udf.tables import TableOf

KEPT_OF = "kept_of_version_"  # the table kept of an earlier version, written again without some documents


class StoreRun(Run):
    """One run writing to the store that `settings.store` names; a context manager that leaves nothing half done behind.

    Attributes:
        before: the manifest that the run found; None where the store is new.

    Raises (when entered):
        OutputError: the directory holds what is not ours, overlaps an input, or a run is at work in it.
        InputError: an input is not there.
    """

    described: ClassVar[Mapping[str, TableOf]] = {**STATE, **BY_BATCH}

    def __init__(self, spark: SparkSession, settings: Settings, log: Callable[[str], None]) -> None:
        super().__init__(spark, settings, log)
        self.before: StoreManifest | None = None

    @property
    def tables_of_state(self) -> StateTables:
        """Where the state's rows are."""
        return state_tables(self.spark, self.output, self.before.catalog if self.before else self.settings.store_tables)

    @property
    def listing_hash(self) -> str:
        """Hash of the files that the run reads."""
        return self._inputs_id

    @property
    def version(self) -> int:
        """Number of the version that this run makes."""
        return self.before.versions[-1].version + 1 if self.before else 1

    def existing(self) -> StoreManifest:
        """The manifest of the store.

        Raises:
            OutputError: there is none yet.
        """
        if self.before is None:
            raise OutputError(f"{self.output!r} is no store; jobs/dedup.py --store DIR --batch NAME makes one")
        return self.before

    def __enter__(self) -> StoreRun:
        super().__enter__()
        try:
            # Again, now that no other run can write it.
            self.before = found_store(self.output)
            self._remove_leftovers()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if not self._published:
            self._remove_state(self.id)
        super().__exit__(kind, error, trace)

    def publish_version(
        self,
        version: Version,
        report: dict[str, Any],
        manifest: StoreManifest,
        *,
        keep_versions: int = 0,
    ) -> StoreManifest:
        """Make a version visible: the report, then store.json; then remove what no version needs any more.

        Args:
            version: its run, number, time and tables are filled in here.
            report: the figures of the run.
            manifest: what store.json is to say, but for this version.
            keep_versions: expire all versions but so many of the newest; 0 keeps all.

        Raises:
            OutputError: another run has taken over the store; nothing is published.
            IncompleteResult: a table is gone, or an input changed; nothing is published.
        """
        self._check_whole()
        tables = {
            name: table
            for name, table in self.tables.items()
            if (table["rows"] or name not in STATE) and not name.startswith(KEPT_OF)
        }
        finished = datetime.now(timezone.utc).isoformat(timespec="seconds")
        version = replace(version, version=self.version, run=self.id, tables=tables, finished=finished)
        manifest = replace(manifest, made_with=self._versions, versions=(*manifest.versions, version))
        if keep_versions:
            manifest = manifest.expiring(but=keep_versions)
        self._write_beside(report)
        self._check_at_work()
        self._write_json(storage.join(self.output, STORE), manifest.as_json())
        self._published = True
        self._remove(f"{self.place}/{checkpoints.RECORDS}")
        self.tables_of_state.remove(self.id, [name for name in self.tables if name in STATE and name not in tables])
        needed = manifest.needed_runs()
        for other in manifest.versions:
            if other.expired and other.run not in needed:
                self.tables_of_state.remove(other.run, [name for name in other.tables if name in STATE])
        return manifest

    def remove_paths(self, paths: list[str]) -> None:
        """Remove tables of other runs that the published manifest does not name any more."""
        for path in paths:
            self._remove(path)

    def _is_result(self, name: str) -> bool:
        return name in self.described or name.startswith(KEPT_OF)

    def _check_place(self) -> None:
        check_store_place(self.settings)

    def _check_whole(self) -> None:
        in_catalog = bool(self.before.catalog if self.before else self.settings.store_tables)
        elsewhere = {name: self.tables.pop(name) for name in list(self.tables) if in_catalog and name in STATE}
        try:
            super()._check_whole()
        finally:
            self.tables = {**elsewhere, **self.tables}

    def _write(self, name: str, table: DataFrame, place: str) -> DataFrame:
        if name not in STATE:
            return super()._write(name, table, place)
        tables = self.tables_of_state
        tables.write(self.id, name, table)
        written = tables.read([Version(0, self.id, "", base=True, tables={name: {}})], name)
        assert written is not None
        return written

    def _remove_leftovers(self) -> None:
        """What runs that were killed wrote."""
        known = {version.run for version in self.before.versions} if self.before else set()
        for run in storage.names_in(storage.join(self.output, RUNS)) or []:
            if RUN_ID.fullmatch(run) and run not in known | {self.id}:
                self._remove_state(run)
                self._remove(f"{RUNS}/{run}")

    def _remove_state(self, run: str) -> None:
        try:
            self.tables_of_state.remove(run, list(STATE))
        except Exception as error:
            # The error that ended the run is what matters; its rows are not seen.
            self._log(f"rows of the run {run} could not be removed ({error}); no reader sees them")


def found_store(directory: str) -> StoreManifest | None:
    """The manifest of a store; None where the directory is empty, not there, or was left by a first run that did not finish."""
    names = storage.names_in(directory)
    return read_store(directory) if names and STORE in names else None


def check_store_place(settings: Settings) -> None:
    """Raise OutputError unless a run may write to a store; the message says why not, and what to do."""
    directory = settings.store
    check_apart(settings)
    names = storage.names_in(directory)
    if not names:
        return
    runs = (storage.names_in(storage.join(directory, RUNS)) or []) if RUNS in names else []
    foreign = [name for name in names if (storage.name_of_unfinished(name) or name) not in (STORE, MARKER, RUNS)]
    foreign += [f"{RUNS}/{name}" for name in runs if not RUN_ID.fullmatch(name)]
    if foreign:
        raise OutputError(
            f"the store {directory!r} exists and holds what no store has, such as {foreign[0]!r}; it is left as it is: choose "
            "another directory"
        )
    found_store(directory)
    at_work = run_at_work(directory)
    if at_work and is_alive(directory):
        raise OutputError(
            f"in the store {directory!r} the run {at_work!r} is at work; one run at a time may write to a store: wait for its end"
        )
