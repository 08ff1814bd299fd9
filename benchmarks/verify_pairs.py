"""Hold the pairs of finished results against a brute-force search over the same fingerprints; prints JSON.

    python benchmarks/verify_pairs.py PRINTS PAIRS [PAIRS ...]

PRINTS is the output of jobs/fingerprint.py or jobs/dedup.py, each PAIRS one of jobs/pairs.py or jobs/dedup.py on it, with
--pairs all. All pairs of documents are compared, so the time grows with their square: 10,000 documents take seconds.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from simhash_udf import hamming
from simhash_udf.manifest import read_manifest, table_path


def brute_force(ids: list[object], fingerprints: np.ndarray, max_distance: int) -> dict[tuple[object, object], int]:
    found = {}
    for at in range(len(fingerprints)):
        distances = hamming(fingerprints[at + 1 :], fingerprints[at : at + 1])
        for other in np.flatnonzero(distances <= max_distance):
            pair = tuple(sorted((ids[at], ids[at + 1 + int(other)])))
            found[pair] = int(distances[other])
    return found


def main() -> int:
    prints, *results = sys.argv[1:]
    table = pq.read_table(table_path(prints, "fingerprints"), columns=["id", "fingerprint"])
    table = table.filter(pc.is_valid(table["fingerprint"]))
    ids, fingerprints = table["id"].to_pylist(), table["fingerprint"].cast(pa.int64()).to_numpy()
    rows = []
    for output in results:
        max_distance = read_manifest(output)["settings"]["max-distance"]
        expected = brute_force(ids, fingerprints, max_distance)
        written = pq.read_table(table_path(output, "pairs"))
        pairs = zip(written["id_a"].to_pylist(), written["id_b"].to_pylist(), written["distance"].to_pylist(), strict=True)
        found = {(a, b): distance for a, b, distance in pairs}
        equal = found == expected and len(found) == written.num_rows
        rows.append({"max_distance": max_distance, "pairs": written.num_rows, "brute_force": len(expected), "equal": equal})
    print(json.dumps(rows, indent=2))
    return 0 if all(row["equal"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
