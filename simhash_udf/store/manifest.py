"""The manifest of a store: its settings, and its versions, each one what one run added, forgot or rewrote.

    store/
      store.json                 settings, and versions in their order; the store is what it says, and nothing else
      _run.json                  which run is at work; gone when it has ended
      runs/ID/                   what one run wrote; never changed afterwards
        fingerprints/ superseded/ searched/ pairs/ clusters/ renames/ decisions/     the state: see `simhash_udf.store.tables`
        kept/ rejects/ sources/                                                      of the batch that the run added
        report.json inputs.json

The state at a version is the rows of the runs from the last base up to that version. A base is the first version, and each one
that rewrote the whole state. So a version is published by one write of store.json, and an earlier one is read by leaving out
the later runs.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from simhash_udf import storage
from simhash_udf.errors import InputError, OutputError
from simhash_udf.manifest import RUNS

STORE = "store.json"
STORE_FORMAT = 1


@dataclass(frozen=True)
class Version:
    """One version of a store.

    Attributes:
        version: its number, from 1.
        run: the run that made it; the name of its directory below runs/.
        kind: add, forget, compaction or migration.
        base: whether the run wrote the whole state, so that no earlier one is read.
        batch: the name of the batch that was added, else "".
        id_column: the column of its documents, and so of its `kept`, that has the ids.
        listing: hash of the files that the batch was read from.
        content: checksum of the batch's rows.
        finished: when, ISO 8601.
        tables: of each table that the run wrote, `rows`, `checksum`, `schema` and `path` below the store.
        counts: figures of the run.
        expired: whether its tables may be gone, so that it cannot be read any more.
    """

    version: int
    run: str
    kind: str
    base: bool
    batch: str = ""
    id_column: str = ""
    listing: str = ""
    content: str = ""
    finished: str = ""
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    counts: dict[str, Any] = field(default_factory=dict)
    expired: bool = False


@dataclass(frozen=True)
class StoreManifest:
    """What store.json says.

    Attributes:
        settings: the settings that all batches share, each by its flag's name.
        settings_id: that of the fingerprints.
        catalog: the begin of the names of the catalog's tables that hold the state; "" where directories do.
        columns: types of the columns that depend on the input: id, group and those of the keep rule.
        made_with: versions of the packages that wrote last.
        versions: in their order.
    """

    settings: dict[str, Any]
    settings_id: str
    catalog: str
    columns: dict[str, str]
    made_with: dict[str, str]
    versions: tuple[Version, ...] = ()

    def batch(self, name: str) -> Version | None:
        """The version that added the batch of this name."""
        return next((version for version in self.versions if version.kind == "add" and version.batch == name), None)

    def at(self, as_of: str | int | None, directory: str) -> Version:
        """The version of this number, or the one that added the batch of this name; the newest of None.

        Raises:
            InputError: there is no such version or batch, or it has expired.
        """
        if as_of is None:
            return self.versions[-1]
        found = self.batch(as_of) if isinstance(as_of, str) else next((v for v in self.versions if v.version == as_of), None)
        if found is None:
            known = [version.batch for version in self.versions if version.batch]
            raise InputError(
                f"the store {directory!r} has no {'batch' if isinstance(as_of, str) else 'version'} {as_of!r}; it has versions "
                f"{self.versions[0].version} to {self.versions[-1].version} and {len(known)} batches, the last of them "
                f"{', '.join(known[-3:])}"
            )
        if found.expired:
            raise InputError(
                f"version {found.version} of the store {directory!r} has expired: documents were forgotten or old versions "
                f"removed since; the oldest that can be read is {next(v.version for v in self.versions if not v.expired)}"
            )
        return found

    def runs_of(self, at: Version) -> list[Version]:
        """The versions whose rows make up the state at one of them."""
        until = [version for version in self.versions if version.version <= at.version]
        base = max(index for index, version in enumerate(until) if version.base)
        return until[base:]

    def expiring(self, *, but: int) -> StoreManifest:
        """The same with all versions but the newest ones marked as expired."""
        last = len(self.versions) - but
        versions = [replace(version, expired=version.expired or at < last) for at, version in enumerate(self.versions)]
        return replace(self, versions=tuple(versions))

    def needed_runs(self) -> set[str]:
        """The runs whose state some version that has not expired is read from."""
        return {run.run for version in self.versions if not version.expired for run in self.runs_of(version)}

    def as_json(self) -> dict[str, Any]:
        """The content of store.json."""
        return {"format": STORE_FORMAT, **asdict(self)}


def is_store(directory: str) -> bool:
    """Whether a directory is a store, and none of documents one of which is called as its manifest is."""
    return storage.path_is_directory(directory) and {STORE, RUNS} <= set(storage.names_in(directory) or [])


def read_store(directory: str) -> StoreManifest:
    """The manifest of a store.

    Raises:
        OutputError: there is none, or it is not one that this version reads.
    """
    text = storage.read_text(storage.join(directory, STORE))
    if text is None:
        raise OutputError(f"{directory!r} has no {STORE}; it must be a store, which jobs/dedup.py --store DIR --batch NAME makes")
    try:
        told = json.loads(text)
        made_by = told.pop("format")
        if made_by != STORE_FORMAT:
            raise OutputError(f"the store {directory!r} is of format {made_by!r}; this version reads format {STORE_FORMAT}")
        versions = tuple(Version(**version) for version in told.pop("versions"))
        manifest = StoreManifest(versions=versions, **told)
        paths = [str(table["path"]) for version in versions for table in version.tables.values()]
        if not versions or not versions[0].base:
            raise ValueError("no base")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise OutputError(f"{STORE} of {directory!r} is not whole ({error!r}); restore it from a copy") from None
    for path in paths:
        if not storage.is_below(path):
            raise OutputError(
                f"{STORE} of {directory!r} places a table at {path!r}, outside of the store; restore it from a copy"
            )
    return manifest
