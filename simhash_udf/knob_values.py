"""Values of knobs that are more than a number or a choice: what they mean, and what is none."""

from __future__ import annotations

import codecs

from simhash_udf.core.blocks import LARGEST_DISTANCE
from simhash_udf.errors import SettingsError

# What Python calls encodings and is for names of hosts and for source code.
_NO_ENCODINGS_OF_TEXTS = ("idna", "punycode", "unicode_escape", "raw_unicode_escape")


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
