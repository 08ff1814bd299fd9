"""Run jobs/dedup.py on each given corpus and print JSON: figures of its report, seconds, and peak resident memory.

    python benchmarks/dedup.py corpus.parquet [more.parquet ...] -- [flags for the job]

The memory is that of the job's driver, JVM and Python workers together, sampled from /proc (Linux) five times a second;
pages shared by forked workers are counted once for each.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from simhash_udf.run import read_manifest, read_report

JOB = Path(__file__).parent.parent / "jobs" / "dedup.py"
_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident_bytes(root: int) -> dict[str, int]:
    """Resident bytes of a process and all below it, by program name."""
    parents, pages = {}, {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            name, _, rest = (entry / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")
            parents[int(entry.name)] = int(rest.split()[1])
            pages[int(entry.name)] = (name.partition("(")[2], int((entry / "statm").read_text(encoding="ascii").split()[1]))
        except (OSError, IndexError):
            continue
    found: dict[str, int] = {}
    for process in pages:
        above = process
        while above not in (root, 0, None):
            above = parents.get(above)
        if above == root:
            name, resident = pages[process]
            found[name] = found.get(name, 0) + resident * _PAGE
    return found


def measure(corpus: str, flags: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        output = str(Path(scratch) / "result")
        began = time.monotonic()
        command = [sys.executable, str(JOB), "--input", corpus, "--output", output, *flags]
        with (Path(scratch) / "log").open("w", encoding="utf-8") as log:
            job = subprocess.Popen(command, stdout=log, stderr=log)
            peak, peaks = 0, {}
            while job.poll() is None:
                now = resident_bytes(job.pid)
                peak = max(peak, sum(now.values()))
                peaks = {name: max(now.get(name, 0), peaks.get(name, 0)) for name in now | peaks}
                time.sleep(0.2)
        seconds = time.monotonic() - began
        if job.returncode:
            sys.exit((Path(scratch) / "log").read_text(encoding="utf-8"))
        report, tables = read_report(output), read_manifest(output)["tables"]
    return {
        "corpus": Path(corpus).name,
        "flags": flags,
        "documents": report["documents"]["documents"],
        "pairs": tables["pairs"]["rows"],
        "clusters": report["clusters"]["number"],
        "kept": report["kept"],
        "seconds": round(seconds, 1),
        "seconds_by_stage": report["seconds"],
        "peak_mib": round(peak / 2**20),
        "peak_mib_by_program": {name: round(value / 2**20) for name, value in sorted(peaks.items())},
    }


def main() -> None:
    arguments = sys.argv[1:]
    at = arguments.index("--") if "--" in arguments else len(arguments)
    corpora, flags = arguments[:at], arguments[at + 1 :]
    if not corpora:
        sys.exit(__doc__)
    print(json.dumps([measure(corpus, flags) for corpus in corpora], indent=2))


if __name__ == "__main__":
    main()
