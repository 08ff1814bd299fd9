"""What the search of a large corpus would take, by the planner's model on chunks of real fingerprints; prints a table.

    python benchmarks/scale.py FILE.parquet [more ...] [--rows 1e9 1e10] [--distances 3 6 8] [--cores 1000]

The search is a spanning one, since all pairs of real templates grow with the square of the corpus. The files have a column
`fingerprint`, like the table `fingerprints` of a run. Their fingerprints stand for the whole corpus: a chunk that has a share of
them has that share of it, so templates and topics grow with the corpus.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from simhash_udf.core.plan import Sample, plan_search

HEADER = (
    "| documents | k | fingerprints | bands | tasks | shuffled | memory a task | largest bucket / mean | core-hours | hours |"
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e9, 1e10])
    parser.add_argument("--distances", type=int, nargs="+", default=[3, 6, 8])
    parser.add_argument("--cores", type=int, default=1000)
    given = parser.parse_args()
    columns = [pq.read_table(file, columns=["fingerprint"]).column(0).drop_null().to_numpy() for file in given.files]
    real = np.unique(np.concatenate(columns).view(np.uint64))
    even = np.unique(np.random.default_rng(1).integers(0, 1 << 64, len(real), dtype=np.uint64))
    print(f"{len(real):,} distinct fingerprints; {given.cores:,} cores\n\n{HEADER}\n|{'---|' * HEADER.count(' | ')}---|")
    for rows in map(round, given.rows):
        for distance in given.distances:
            for name, fingerprints in (("even", even), ("real", real)):
                plan = plan_search(rows, distance, sample=Sample(rows, fingerprints), spanning=True, cores=given.cores)
                buckets = np.concatenate([np.array(band) / np.mean(band) for band in plan.bucket_rows])
                hours = plan.seconds / 3600
                cells = [
                    f"{rows:.0e}",
                    str(distance),
                    name,
                    " ".join(str(band.width) for band in plan.bands),
                    f"{plan.tasks:,}",
                    f"{plan.bytes_shuffled / 1e9:,.0f} GB",
                    f"{plan.task_bytes / 1e6:,.0f} MB",
                    f"{buckets.max():.1f}",
                    f"{plan.core_seconds / 3600:,.1f}",
                    f"{hours:.2f}",
                ]
                print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    sys.exit(main())
