"""The tables of a run: their columns and what each means. `id` stands for the type of the user's ids.

`kept` has the columns of the input.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F

SCHEMA_VERSION = 1

# The columns of a table: of each its type and what it means.
TableOf = dict[str, tuple[str, str]]

TABLES: dict[str, TableOf] = {
    "rejects": {
        "file": ("string", "file that the record came from; NULL where it is not known"),
        "position": ("bigint", "its line in a file of lines, or else its number in the file, from 1; NULL where it is not known"),
        "reason": ("string", "why the record is no document"),
        "record": (
            "string",
            "the first 1,000 characters of the line or record, or of the id, or of the row as JSON where it is null",
        ),
    },
    "fingerprints": {
        "id": ("id", "id of the document"),
        "fingerprint": ("bigint", "64 bits, two's complement; NULL without features"),
        "features": ("int", "number of distinct features; 0 without"),
        "length": ("int", "characters of the text; 0 where features were given or the text is null"),
        "content": (
            "bigint",
            "hash of the units of the text in their order, or of the features: equal where they are; NULL without",
        ),
        "low_information": (
            "boolean",
            "whether one feature occurs (if given: weighs) more than all others together; NULL without",
        ),
        "cut": ("boolean", "whether only the first --max-document-bytes of the text were compared"),
        "sketch": ("array<bigint>", "256 bits that tell of the similarity of n-grams; only with --verify sketch"),
        "group": ("any", "the document's value in the column that --within names; only with it"),
    },
    "fingerprint_pairs": {
        "fingerprint_a": ("bigint", "the smaller fingerprint, as a signed number"),
        "fingerprint_b": ("bigint", "the larger fingerprint"),
        "distance": ("int", "their Hamming distance, at least 1"),
        "documents_a": ("bigint", "documents that have the smaller fingerprint (and --min-features)"),
        "documents_b": ("bigint", "documents that have the larger one"),
    },
    "pairs": {
        "id_a": ("id", "the smaller id"),
        "id_b": ("id", "the larger id"),
        "distance": ("int", "Hamming distance of the two fingerprints"),
        "similarity": ("double", "similarity of the two texts, 0 to 1, exact or (sketch) estimated; only with --verify"),
    },
    "clusters": {
        "id": ("id", "id of a document that is in a pair"),
        "cluster": ("id", "its cluster: the smallest id in it"),
        "size": ("bigint", "documents in the cluster, at least 2; with --max-radius a document may be alone in one"),
    },
    "decisions": {
        "id": ("id", "id of the document"),
        "kept": ("boolean", "whether kept/ has it"),
        "cluster": ("id", "its cluster; NULL where nothing is near it"),
        "keeper": ("id", "the document kept of its cluster, itself where it is kept; NULL without a cluster"),
        "distance": ("int", "Hamming distance to the keeper; NULL without a cluster"),
        "reason": ("string", "unique, no features, keeper, same fingerprint, within distance, chained, or in a reference"),
        "reference": ("string", "the reference that the document is near; NULL of others; only with --reference"),
        "reference_id": ("string", "id of the nearest document of the reference; only with --reference"),
        "reference_distance": ("int", "Hamming distance to it; only with --reference"),
    },
    "sources": {
        "source": ("any", "a value of the column that --source-column names"),
        "documents": ("bigint", "documents that have it"),
        "dropped": ("bigint", "how many of them are dropped"),
    },
    "truth": {
        "id_a": ("id", "the smaller id"),
        "id_b": ("id", "the larger id"),
        "similarity": ("double", "Jaccard similarity of the two texts' n-grams"),
    },
    "compared": {"id": ("id", "id of a document that was compared with all others for the truth")},
    "kept": {},
}


def column(name: str) -> Column:
    """A column by its exact name, whatever characters are in it."""
    return F.col("`" + name.replace("`", "``") + "`")
