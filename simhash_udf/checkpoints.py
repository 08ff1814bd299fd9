"""Which tables of an earlier run are what this one would make, so that it can go on from them.

A table that is whole has a record, written after it: its files with their sizes, and a key that says all that decided it: the
library's version, the inputs as they were listed, and those settings that the table depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

from simhash_udf import storage
from simhash_udf.settings import FINGERPRINT_VERSION, KNOBS, Settings
from simhash_udf.tables import SCHEMA_VERSION

RECORDS = "stages"
_ROWS = (
    "input_format", "encoding", "labels", "id_column", "make_ids", "duplicate_ids", "text_column", "features_column",
    "max_document_bytes", "on_bad_input", "fingerprint_format",
)  # fmt: skip
_FINGERPRINTS = (*_ROWS, "fingerprint_id", "content_unit", "sketch", "within")
_SEARCH = (*_FINGERPRINTS, "max_distance", "min_features", "verifies", "searches_spanning", "reference")
_PAIRS = (*_SEARCH, "pairs", "check")
_CLUSTERS = (*_PAIRS, "radius")
_DECISIONS = (*_CLUSTERS, "keep_order")
# By what each table is decided; what is between them, by all settings.
_DECIDED_BY = {
    "rows_read": _ROWS,
    "rows_with_ids": _ROWS,
    "repeated_ids": _ROWS,
    "rows_apart": _ROWS,
    "rejects_found": _ROWS,
    "rejects": _ROWS,
    "fingerprints": _FINGERPRINTS,
    "fingerprint_pairs": _SEARCH,
    "measured_edges": _PAIRS,
    "pairs": _PAIRS,
    "clusters": _CLUSTERS,
    "decisions": _DECISIONS,
    "sources": (*_DECISIONS, "source_column"),
    "kept": _DECISIONS,
}
# They say where things are and when to stop, and nothing of what is in a table; the listing of the inputs tells more than paths.
_WITHOUT_EFFECT = ("input", "truth", "output", "if_exists", "max_pairs", "max_rejected", "max_removed")


@dataclass(frozen=True)
class Checkpoint:
    """The record of a table that is whole: its path below the output, its rows, their checksum, its columns' types, its files'
    names and sizes in bytes, and the key of what decided it."""

    name: str
    path: str
    rows: int
    checksum: str
    schema: dict[str, str]
    files: dict[str, int]
    key: str


def key_of(table: str, settings: Settings, inputs: str) -> str:
    """What decides a table, as a hash.

    Args:
        inputs: a hash of the inputs as they are listed.
    """
    values = _values(settings)
    decided_by = _DECIDED_BY.get(table, [name for name in values if name not in _WITHOUT_EFFECT])
    told = {name: values[name] for name in decided_by}
    try:
        version = metadata.version("simhash-udf")
    except metadata.PackageNotFoundError:
        version = "unknown"
    whole = [table, version, FINGERPRINT_VERSION, SCHEMA_VERSION, inputs, told]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def _values(settings: Settings) -> dict[str, Any]:
    """The settings, and what of several of them decides a table."""
    check = (settings.verify_unit, settings.verify_ngram)
    return {
        **{name: getattr(settings, name) for name in KNOBS},
        # Without labels the column is that of the report, which no row depends on.
        "labels": (settings.labels, settings.source_column) if settings.labels else (),
        "fingerprint_id": settings.fingerprint_id,
        "content_unit": settings.content_unit,
        "sketch": check if settings.sketches else None,
        "verifies": settings.verifies,
        "searches_spanning": settings.searches_spanning,
        "check": (settings.verify, settings.min_similarity, *check) if settings.verifies else None,
        "radius": (settings.max_radius, settings.keep_order) if settings.max_radius < 64 else None,
        "keep_order": settings.keep_order,
    }


def files_of(place: str) -> dict[str, int] | None:
    """Names and sizes in bytes of the files of a table; None where it is not there."""
    return storage.sizes_in(place)


def write(output: str, run_place: str, checkpoint: Checkpoint) -> None:
    """Record that a table is whole."""
    directory = storage.join(output, run_place, RECORDS)
    storage.make_directory(directory)
    storage.write_text(storage.join(directory, f"{checkpoint.name}.json"), json.dumps(asdict(checkpoint)) + "\n")


def remove(output: str, run_place: str, name: str) -> None:
    """Forget a table, before it goes."""
    storage.remove(storage.join(output, run_place, RECORDS, f"{name}.json"))


def recorded(output: str, run_place: str) -> Iterator[Checkpoint]:
    """The tables of a run that are recorded as whole, and whose files are there as they were."""
    directory = storage.join(output, run_place, RECORDS)
    for name in storage.names_in(directory) or []:
        try:
            found = Checkpoint(**json.loads(storage.read_text(storage.join(directory, name)) or ""))
        except (ValueError, TypeError):
            # It was being written when its run was killed.
            continue
        if storage.is_below(found.path) and files_of(storage.join(output, found.path)) == found.files:
            yield found
