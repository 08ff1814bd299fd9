"""What the search must find, written to be read: a brute force in NumPy, and a self-join in plain Spark SQL."""

import numpy as np


def brute_force(fingerprints, max_distance):
    """All pairs of distinct uint64 fingerprints within the distance, as sorted (smaller, larger, distance), signed."""
    signed = np.sort(np.asarray(fingerprints, np.uint64).view(np.int64))
    pairs = []
    for at, a in enumerate(signed):
        differing = (signed[at + 1 :] ^ a).view(np.uint64)
        distances = np.array([int(word).bit_count() for word in differing]) if len(differing) < 8 else ones(differing)
        near = np.flatnonzero(distances <= max_distance)
        pairs += [(int(a), int(signed[at + 1 + i]), int(distances[i])) for i in near]
    return sorted(pairs)


def ones(words):
    """The number of ones of each uint64."""
    return np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=1)


# Two fingerprints that differ in at most k bits agree on one of k + 1 bands (k changes cannot touch k + 1 bands); so joining
# on (band, chunk) finds every pair. DISTINCT, since near pairs agree on several bands.
BANDED_SELF_JOIN = """
    WITH banded AS (
        SELECT fingerprint, band, shiftrightunsigned(fingerprint, band * {width}) & {mask}L AS chunk
        FROM {table} LATERAL VIEW explode(sequence(0, {max_distance})) AS band
    )
    SELECT DISTINCT a.fingerprint AS fingerprint_a, b.fingerprint AS fingerprint_b,
           bit_count(a.fingerprint ^ b.fingerprint) AS distance
    FROM banded a JOIN banded b
      ON a.band = b.band AND a.chunk = b.chunk AND a.fingerprint < b.fingerprint
    WHERE bit_count(a.fingerprint ^ b.fingerprint) <= {max_distance}
"""


def banded_self_join(spark, fingerprints, max_distance):
    """All pairs of a DataFrame's fingerprints within the distance, by SQL alone."""
    # k + 1 bands of equal width; where 64 is no multiple of k + 1 the topmost bits are in no band, which loses nothing.
    width = 64 // (max_distance + 1)
    if width == 64:
        return spark.createDataFrame([], "fingerprint_a BIGINT, fingerprint_b BIGINT, distance INT")
    fingerprints.createOrReplaceTempView("oracle_fingerprints")
    return spark.sql(
        BANDED_SELF_JOIN.format(width=width, mask=(1 << width) - 1, max_distance=max_distance, table="oracle_fingerprints")
    )


def components(edges):
    """The connected components of (a, b, ...) edges, as a set of frozensets of at least two members."""
    leader = {}

    def find(x):
        while leader.setdefault(x, x) != x:
            x = leader[x]
        return x

    for a, b, *_ in edges:
        leader[max(find(a), find(b))] = min(find(a), find(b))
    groups = {}
    for x in leader:
        groups.setdefault(find(x), set()).add(x)
    return {frozenset(members) for members in groups.values()}


def with_neighbours(count, max_distance, seed):
    """Distinct random fingerprints, half of them copies of the others with 1 to max_distance + 2 bits changed."""
    random = np.random.default_rng(seed)
    base = random.integers(0, 1 << 64, count // 2, dtype=np.uint64)
    changed = base.copy()
    for i in range(len(changed)):
        for bit in random.choice(64, random.integers(1, max_distance + 3), replace=False):
            changed[i] ^= np.uint64(1 << int(bit))
    rows = np.unique(np.concatenate([base, changed]))
    random.shuffle(rows)
    return rows
