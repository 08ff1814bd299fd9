"""Values of knobs that are more than a number or a choice: what they mean, and what is none."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING

from simhash_udf.core.blocks import LARGEST_DISTANCE
from simhash_udf.core.fingerprint import LARGEST_NGRAM
from simhash_udf.errors import SettingsError

if TYPE_CHECKING:
    from simhash_udf.settings import Settings

# What Python calls encodings and is for names of hosts and for source code.
_NO_ENCODINGS_OF_TEXTS = ("idna", "punycode", "unicode_escape", "raw_unicode_escape")

MOST_BYTES = 1 << 29  # of a text; what Spark and Arrow hold in one value is 2 GiB, and a record is up to twice its text
# Least and most value of the knobs that are numbers; None is no limit.
RANGES: dict[str, tuple[float, float | None]] = {
    "max_pairs": (0, None),
    "min_features": (0, None),
    "verify_ngram": (1, LARGEST_NGRAM),
    "max_radius": (0, 64),
    "max_document_bytes": (16, MOST_BYTES),
    "max_rejected": (0, 1),
    "min_similarity": (0, 1),
    "max_removed": (0, 1),
    "keep_versions": (0, None),
    "recall_similarity": (0, 1),
    "precision_similarity": (0, 1),
}


def flag(name: str) -> str:
    """The name of a knob as flags and TOML keys write it."""
    return name.replace("_", "-")


def check_range(name: str, value: float) -> None:
    """Raise SettingsError unless the value of a knob of `RANGES` is in its range."""
    least, most = RANGES[name]
    if not value >= least or (most is not None and value > most):
        wanted = f"{least} or more" if most is None else f"from {least} to {most}"
        raise SettingsError(f"{flag(name)} is {value}; it must be {wanted}")


def keep_order(keep: str) -> tuple[tuple[str, bool], ...]:
    """The columns that an order names, and whether each is descending.

    Raises:
        SettingsError: a column is missing between commas, or comes twice.

    >>> keep_order("quality desc, id")
    (('quality', True), ('id', False))
    """
    order: list[tuple[str, bool]] = []
    for part in keep.split(","):
        name, _, direction = part.strip().rpartition(" ")
        if direction.lower() not in ("asc", "desc") or not name:
            name, direction = part.strip(), "asc"
        order.append((name.strip(), direction.lower() == "desc"))
    names = [name for name, _ in order]
    if not all(names) or len(set(names)) < len(names):
        problem = "a column is missing" if not all(names) else "a column comes twice"
        raise SettingsError(
            f"keep is {keep!r}, where {problem}; it must be columns with commas between them, each followed by asc or desc, such "
            "as 'quality desc, length desc, id asc'"
        )
    return tuple(order)


def smaller_distances(also_at: str, max_distance: int) -> tuple[int, ...]:
    """The distances that a list names, ascending.

    Raises:
        SettingsError: it is no list of whole numbers up to the distance of the search.

    >>> smaller_distances("5, 3", 6)
    (3, 5)
    """
    try:
        distances = tuple(sorted({int(part) for part in also_at.split(",")})) if also_at.strip() else ()
    except ValueError:
        distances = (-1,)
    if not all(0 <= distance <= max_distance for distance in distances):
        raise SettingsError(
            f"also-at is {also_at!r}; it must be whole numbers from 0 to max-distance, {max_distance}, with commas between them"
        )
    return distances


def check_max_distance(max_distance: int) -> None:
    """Raise SettingsError unless the distance is one that the search promises to find every pair for."""
    if isinstance(max_distance, bool) or not isinstance(max_distance, int) or not 0 <= max_distance <= LARGEST_DISTANCE:
        raise SettingsError(f"max-distance is {max_distance!r}; it must be a whole number from 0 to {LARGEST_DISTANCE}")


def check_encoding(encoding: str) -> str:
    """The name that Python has for an encoding.

    Raises:
        SettingsError: it is none of text.
    """
    try:
        known = codecs.lookup(encoding).name
        "a".encode(known)
        if known in _NO_ENCODINGS_OF_TEXTS:
            raise LookupError
        return known
    except (LookupError, UnicodeError, TypeError, ValueError):
        raise SettingsError(
            f"encoding is {encoding!r}; it must be the name of a text encoding that Python knows, such as utf-8, latin-1, "
            "cp1252, utf-16, shift_jis or gb18030"
        ) from None


def check_combinations(settings: Settings) -> None:
    """Raise SettingsError where two knobs contradict each other."""
    if settings.fingerprint == "minhash" and settings.features_column:
        raise SettingsError("fingerprint is 'minhash', which knows no weights; with features-column it must be simhash")
    if settings.fingerprint == "minhash" and settings.weighting != "binary":
        raise SettingsError(
            f"weighting is {settings.weighting!r}; with fingerprint minhash, which knows no weights, it must be binary"
        )
    if settings.verifies and settings.features_column:
        raise SettingsError(f"verify is {settings.verify!r}, which compares texts; with features-column it must be none")
    if settings.recall_similarity < settings.precision_similarity:
        raise SettingsError(
            f"recall-similarity is {settings.recall_similarity} and precision-similarity {settings.precision_similarity}; "
            "it must be at least as much, since what must be found is what may be found"
        )


def check_store(settings: Settings) -> None:
    """Raise SettingsError where a knob cannot go with a store."""
    if not settings.store:
        return
    if settings.output:
        raise SettingsError(
            f"output is {settings.output!r} and store {settings.store!r}; a run writes to one of them: leave out the other"
        )
    refused = {
        "if_exists": settings.if_exists != "fail",
        "max_radius": settings.max_radius < 64,
        "also_at": bool(settings.also_at),
        "verify": settings.verify not in ("none", "sketch"),
    }
    why = {
        "if_exists": "a store is never replaced, and a run that failed has left it as it was: run again",
        "max_radius": "which documents are kept within a radius may change with each new one, and a store keeps what it kept",
        "also_at": "a store holds what was found at one distance",
        "verify": "a store holds no texts to read again; --verify sketch compares what it holds",
    }
    for name, is_given in refused.items():
        if is_given:
            raise SettingsError(f"{flag(name)} is {getattr(settings, name)!r}, which cannot go with --store: {why[name]}")
