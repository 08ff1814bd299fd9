"""The pure core: text, hashing, folding, blocks, search kernel, union-find. It imports no Spark."""
