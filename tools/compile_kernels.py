"""Compile every kernel once and leave it in Numba's cache, so that no job waits for it: each is run as the tasks run it."""

from __future__ import annotations

from functools import partial

import numpy as np
import pyarrow as pa

from simhash_udf import fingerprint_array, fingerprint_features, votes
from simhash_udf.core.fingerprint import fingerprint_features_batch
from simhash_udf.core.plan import plan_search
from simhash_udf.stages.components import _answers, _components_of_rest, _labels_of_rest, _links, _resolved, _round
from simhash_udf.stages.sample import _measured
from simhash_udf.stages.search import _search_shares, _search_stored
from simhash_udf.stages.shares import _to_shares


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
        keys = np.zeros(len(plan.task_of_unit), np.int32)
        shares = [share for new in (True, False) for share in _to_shares(iter([batch]), plan=plan, keys=keys, new=new)]
        for spanning in (False, True):
            list(partial(_search_shares, plan=plan, spanning=spanning)(iter(shares)))
    list(_measured(iter([batch]), max_distance=3))
    list(_search_stored(iter([batch]), new=rows.to_numpy().view(np.uint64)[:10], max_distance=3))
    edges = pa.RecordBatch.from_arrays([rows[1:], rows[:-1]], ["fingerprint_a", "fingerprint_b"])
    links = list(_links(iter([edges]), tasks=2, nodes=1))
    list(_components_of_rest(iter(links)))
    contracted = list(_round(iter(links), tasks=2, seed=2))
    labels = list(_labels_of_rest(iter(contracted[:1] + links), tasks=2))
    list(_answers(iter(labels), tasks=2))
    list(_resolved(iter(labels), tasks=2))


if __name__ == "__main__":
    main()
