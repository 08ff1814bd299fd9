"""Generate a corpus with known duplicates, run jobs/dedup.py on it, and show what was found against what was planted."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq

from simhash_udf.demo import CORPUS, PLANTED, compare_with_planted, write_corpus
from simhash_udf.errors import SimHashError
from simhash_udf.manifest import read_manifest

MEANINGS = {
    "pairs": "documents whose fingerprints differ in at most k bits",
    "clusters": "documents that hang together",
    "decisions": "for each document: kept or dropped, for which other, and why",
    "kept": "the corpus without its near-duplicates",
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--directory", default="demo", metavar="DIR", help="Where corpus and result go. Default: demo.")
    parser.add_argument("--count", type=int, default=20_000, metavar="N", help="Documents to generate. Default: 20000.")
    parser.add_argument("--seed", type=int, default=7, metavar="N", help="Another seed makes another corpus. Default: 7.")
    given = parser.parse_args()
    base = Path(given.directory)
    try:
        corpus = make_corpus(base, given.count, given.seed)
    except SimHashError as error:
        print(f"{type(error).__name__}: {error}", file=sys.stderr)
        return error.exit_code
    output = base / "output"
    command = [sys.executable, str(Path(__file__).with_name("dedup.py")), "--input", str(corpus), "--output", str(output)]
    command += ["--id-column", "id", "--text-column", "text", "--if-exists", "replace"]
    print(f"generated {given.count:,} documents in {corpus}\nrunning {' '.join(command)}\n", flush=True)
    finished = subprocess.run(command, check=False)
    if finished.returncode:
        return finished.returncode
    show(base / "corpus" / PLANTED, output)
    return 0


def make_corpus(base: Path, count: int, seed: int) -> Path:
    """Write the corpus below a directory, in place of what an earlier demo left there, whole or not."""
    directory, made = base / "corpus", base / "made_by_demo"
    if made.exists():
        for name in (CORPUS, PLANTED):
            (directory / name).unlink(missing_ok=True)
    elif not directory.exists() or not any(directory.iterdir()):
        # Before the first file is written: a demo that is killed must leave nothing that the next one refuses.
        base.mkdir(parents=True, exist_ok=True)
        made.touch()
    return write_corpus(directory, count, seed)


def show(planted_file: Path, output: Path) -> None:
    manifest = read_manifest(str(output))
    tables = manifest["tables"]
    planted = [json.loads(line) for line in planted_file.read_text(encoding="utf-8").splitlines()]
    decisions = pq.read_table(output / tables["decisions"]["path"], columns=["id", "kept", "cluster"]).to_pylist()
    print(f"\n{'kind of document':18}{'planted':>9}{'found':>9}{'wrong':>9}{'kept':>9}")
    for row in compare_with_planted(planted, decisions):
        found = "" if row["found"] is None else f"{row['found']:,}"
        print(f"{row['kind']:18}{row['planted']:>9,}{found:>9}{row['wrong']:>9,}{row['kept']:>9,}")
    print(
        "\nfound: in one cluster with the document it was made from; heavy edits change 25 to 50% of the words, and are not meant"
        "\nto be found at the default distance. wrong: in a cluster with a document of another origin.\n"
    )
    width = max(len(str(output / path)) for path in [manifest["report"], *(tables[name]["path"] for name in MEANINGS)]) + 1
    for name, meaning in MEANINGS.items():
        print(f"{output / tables[name]['path']!s:<{width}}{tables[name]['rows']:>9,} rows: {meaning}")
    print(f"{output / manifest['report']!s:<{width}}{'':>9} counts of each stage, distances, largest clusters, seconds")


if __name__ == "__main__":
    sys.exit(main())
