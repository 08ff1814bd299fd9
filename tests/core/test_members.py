"""Sets of fingerprints."""

import numpy as np
import pytest

from simhash_udf.core.members import Members


@pytest.mark.parametrize("count", [0, 1, 2, 100, 5000])
def test_what_is_left_without_members_keeps_its_order(count):
    random = np.random.default_rng(count)
    members = random.integers(0, 4000, count, dtype=np.uint64) << np.uint64(int(random.integers(0, 53)))
    rows = np.concatenate([members, random.integers(0, 1 << 64, 3000, dtype=np.uint64), np.array([0, 2**64 - 1], np.uint64)])
    random.shuffle(rows)
    present = set(members.tolist())
    assert Members(members).removed_from(rows).tolist() == [row for row in rows.tolist() if row not in present]
