import os
import subprocess
import sys

PROGRAM = """
import numpy as np
import pyarrow as pa
from simhash_udf import fingerprint_array, fingerprint_features
from simhash_udf.core.components import connected_components
from simhash_udf.core.plan import plan_search
from simhash_udf.core.search import BucketSearch
from simhash_udf.demo import generate

documents = list(generate(1_000))
print(documents[::50])
texts = pa.array([document.text for document in documents])
for unit, ngram, weighting in (("word", 2, "log"), ("char", 5, "tf")):
    print(fingerprint_array(texts, unit=unit, ngram=ngram, weighting=weighting).to_pylist())
print(fingerprint_features((word, 0.1 * len(word)) for word in {f"feature {n}" for n in range(1_000)}))
found = fingerprint_array(texts).drop_null().to_numpy().view(np.uint64)
plan = plan_search(len(found), 8)
print(plan)
search = BucketSearch(plan.bands, 8)
a, b = (np.concatenate(sides) for sides in list(zip(*search.pairs(np.unique(found), 0, 0)))[:2])
print(len(a), a.tolist(), b.tolist())
print([part.tolist() for part in connected_components(a.view(np.int64), b.view(np.int64))])
"""


def test_the_seed_of_pythons_hashes_changes_nothing():
    runs = [
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        for seed in ("1", "2")
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr
    assert runs[0].stdout == runs[1].stdout != ""
