"""Compile every kernel once and leave it in Numba's cache, so that no job waits for it: each is run as the tasks run it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from simhash_udf import fingerprint_array, fingerprint_features, votes
from simhash_udf.core.fingerprint import fingerprint_features_batch
from simhash_udf.core.plan import plan_search
from simhash_udf.stages.clusters import _components, _forest
from simhash_udf.stages.search import _addresses, _search_shares, _to_shares


def main() -> None:
    fingerprint_array(pa.array(["some text", None]))
    fingerprint_array(pa.array(["some text"]))
    fingerprint_features({"a": 1.0})
    fingerprint_features_batch(pa.array([[("a", 1.0)]], pa.map_(pa.string(), pa.float64())))
    votes([1])
    rows = pa.array(np.random.default_rng(1).integers(-(2**63), 2**63, 3_000))
    batch = pa.RecordBatch.from_arrays([rows], ["fingerprint"])
    for widths in ((0,), (16, 16, 16, 16)):
        plan = plan_search(len(rows), 3, tasks=1, band_widths=widths)
        shares = list(_to_shares(iter([batch]), plan=plan, addresses=_addresses(plan)))
        for spanning in (False, True):
            list(partial(_search_shares, plan=plan, spanning=spanning)(iter(shares)))
    edges = pa.RecordBatch.from_arrays([rows, rows], ["fingerprint_a", "fingerprint_b"])
    list(_components(_forest(iter([edges]))))


if __name__ == "__main__":
    main()
