"""Near-duplicate documents in corpora of any size: exact SimHash search on Spark.

The pure functions need no Spark; the two that do, `simhash` and `near_duplicates`, import it when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from simhash_udf.core.fingerprint import fingerprint_array, fingerprint_features, fingerprint_text
from simhash_udf.core.fold import fold, hamming, votes

if TYPE_CHECKING:
    from simhash_udf.notebook import near_duplicates
    from simhash_udf.stored import hex_digits
    from simhash_udf.udf import simhash, simhash_features

__all__ = [
    "fingerprint_array",
    "fingerprint_features",
    "fingerprint_text",
    "fold",
    "hamming",
    "hex_digits",
    "near_duplicates",
    "simhash",
    "simhash_features",
    "votes",
]

_WITH_SPARK = {
    "hex_digits": "simhash_udf.stored",
    "near_duplicates": "simhash_udf.notebook",
    "simhash": "simhash_udf.udf",
    "simhash_features": "simhash_udf.udf",
}


def __getattr__(name: str) -> Any:
    if name in _WITH_SPARK:
        from importlib import import_module

        return getattr(import_module(_WITH_SPARK[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
