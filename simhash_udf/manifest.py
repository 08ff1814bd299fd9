"""The manifest of a finished run, by which readers find its tables and its report."""

from __future__ import annotations

import json
import platform
from importlib import metadata
from typing import Any

from pyspark.sql import SparkSession

from simhash_udf import storage
from simhash_udf.errors import OutputError
from simhash_udf.tables import SCHEMA_VERSION

MANIFEST, REPORT, MARKER, WORK, RUNS = "manifest.json", "report.json", "_run.json", "_work", "runs"


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
        if not storage.is_below(path):
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
