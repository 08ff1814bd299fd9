"""Small corpora that several tests share."""

import random

BODY = "in a village of la mancha the name of which i have no desire to call to mind there lived not long since one of those "
BODY += "gentlemen that keep a lance in the lance rack an old buckler a lean hack and a greyhound for coursing"


def edited(text, edits, seed=0):
    """A text with so many of its words replaced."""
    chance, words = random.Random(seed), text.split()
    for at in chance.sample(range(len(words)), edits):
        words[at] = f"edit{chance.randrange(10**6)}"
    return " ".join(words)


def random_text(seed, words=80):
    chance = random.Random(seed)
    return " ".join(f"w{chance.randrange(5_000)}" for _ in range(words))


def corpus(size=120, seed=1):
    """Rows (id, text): unrelated texts, copies and light edits of them, and a few without tokens."""
    chance = random.Random(seed)
    texts = [random_text(f"{seed}/{i}") for i in range(size // 2)]
    texts += [chance.choice(texts) for _ in range(size // 6)]
    texts += [edited(chance.choice(texts), chance.randrange(1, 6), i) for i in range(size // 3 - 6)]
    texts += [None, "", " \n", "...", "!", "\u200b"]
    chance.shuffle(texts)
    return [(f"d{i:03d}", text) for i, text in enumerate(texts)]


def brute_force_pairs(fingerprints, max_distance):
    """All pairs of {id: fingerprint} within a distance, as {(id_a, id_b): distance}."""
    known = sorted((i, f) for i, f in fingerprints.items() if f is not None)
    found = {}
    for at, (a, x) in enumerate(known):
        for b, y in known[at + 1 :]:
            distance = ((x ^ y) & (1 << 64) - 1).bit_count()
            if distance <= max_distance:
                found[a, b] = distance
    return found


def components(pairs):
    """{id: smallest id of its component} by ten lines of union-find."""
    parent = {}

    def root(node):
        while parent.setdefault(node, node) != node:
            node = parent[node]
        return node

    for a, b in pairs:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return {node: root(node) for node in list(parent)}
