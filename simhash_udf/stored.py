"""Fingerprints that others stored, in whatever form they wrote 64 bits, as BIGINT."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import DecimalType, LongType, StringType

from simhash_udf.errors import InputError
from simhash_udf.tables import column

_DIGITS = "^[+-]?[0-9]{1,20}$"
_HEX = "^(0[xX])?[0-9a-fA-F]{1,16}$"
_LOW = 2**63


def hex_digits(fingerprint: Column | str) -> Column:
    """A BIGINT fingerprint as 16 hex digits, as most other tools write it; NULL of NULL."""
    return F.lower(F.lpad(F.hex(fingerprint), 16, "0"))


def as_bigint(frame: DataFrame, name: str, written: str, path: str) -> DataFrame:
    """The frame with its column of this name as BIGINT, two's complement.

    Args:
        frame: the column is a whole number, signed or unsigned (which Spark reads as a decimal), or a string of decimal or hex
            digits.
        written: how strings are written: "number", "hex" or "auto", which tells by the strings where it can be told.
        path: where the frame was read, for the message.

    Raises:
        InputError: the type is another, a value does not fit 64 bits or is no number, or it cannot be told whether strings of 16
            digits are hex.
    """
    kind = frame.schema[name].dataType
    value = column(name)
    if isinstance(kind, LongType):
        return frame
    if isinstance(kind, DecimalType) and kind.scale == 0:
        number = value.cast("decimal(38,0)")
    elif isinstance(kind, StringType):
        trimmed = F.trim(value)
        chosen = written if written != "auto" else _told_by(frame, trimmed, name, path)
        pattern = _HEX if chosen == "hex" else _DIGITS
        _check(frame, trimmed.rlike(pattern), name, path, "hex digits" if chosen == "hex" else "whole numbers")
        if chosen == "hex":
            digits = F.lpad(F.regexp_replace(trimmed, "^0[xX]", ""), 16, "0")
            # In halves, since the whole would not fit a signed number.
            high, low = (F.conv(F.substring(digits, start, 8), 16, 10).cast("bigint") for start in (1, 9))
            return frame.withColumn(name, F.shiftleft(high, 32).bitwiseOR(low))
        number = trimmed.cast("decimal(38,0)")
    else:
        raise InputError(
            f"column {name!r} of {path!r} is {kind.simpleString()}; it must be BIGINT, two's complement, an unsigned number of "
            "64 bits, or a string of decimal or hex digits"
        )
    least, most, low, all_bits = (F.lit(Decimal(limit)) for limit in (-_LOW, 2 * _LOW - 1, _LOW, 2 * _LOW))
    _check(frame, number.between(least, most), name, path, "of 64 bits")
    return frame.withColumn(name, F.when(number >= low, number - all_bits).otherwise(number).cast("bigint"))


def _told_by(frame: DataFrame, text: Column, name: str, path: str) -> str:
    """Whether strings are hex: some are no decimal numbers, or numbers: some have no 16 digits and no letter is in any."""
    counted = frame.agg(
        F.count_if(text.rlike("(?i)^0x|[a-f]")).alias("lettered"), F.count_if(F.length(text) != 16).alias("others"), F.count(text)
    ).first()
    lettered, others, number = tuple(counted) if counted else (0, 0, 0)
    if lettered:
        return "hex"
    if others or not number:
        return "number"
    raise InputError(
        f"column {name!r} of {path!r} has strings of 16 digits, which may be decimal or hex; say which with --fingerprint-format"
    )


def _check(frame: DataFrame, right: Column, name: str, path: str, wanted: str) -> None:
    wrong = frame.where(column(name).isNotNull() & ~F.coalesce(right, F.lit(False))).select(column(name).cast("string")).head(3)
    if wrong:
        shown = ", ".join(repr(row[0]) for row in wrong)
        raise InputError(f"column {name!r} of {path!r} has values that are not {wanted}, such as {shown}; mend or drop them")
