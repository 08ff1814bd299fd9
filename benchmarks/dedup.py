"""Run jobs/dedup.py on each given corpus and print JSON: figures of its report, seconds, and peak resident memory.

    python benchmarks/dedup.py corpus.parquet [more.parquet ...] -- [flags for the job]

The memory is that of the job's driver, JVM and Python workers together, sampled from /proc (Linux) five times a second;
pages shared by forked workers are counted once for each.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from memory import Sampler

from simhash_udf.manifest import read_manifest, read_report

JOB = Path(__file__).parent.parent / "jobs" / "dedup.py"


def measure(corpus: str, flags: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as scratch:
        output = str(Path(scratch) / "result")
        began = time.monotonic()
        command = [sys.executable, str(JOB), "--input", corpus, "--output", output, *flags]
        with (Path(scratch) / "log").open("w", encoding="utf-8") as log, Sampler() as sampler:
            job = subprocess.run(command, stdout=log, stderr=log, check=False)
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
        "peak_mib": sampler.peaks.total >> 20,
        "peak_mib_by_program": {name: size >> 20 for name, size in sorted(sampler.peaks.sums.items())},
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
