"""Orders of rows by several columns, ascending and descending mixed, as one struct whose smallest value comes first.

The smallest of a group is an aggregate, which needs no sort of the group and combines within tasks; but a struct compares all
its fields ascending. So a descending field becomes one whose ascending order is the reverse: exact for each type, and without
an overflow at its ends.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

__all__ = ["can_order", "order_fields"]

_MOST_DIGITS = 34

_TYPES = (
    T.BinaryType,
    T.BooleanType,
    T.DateType,
    T.DecimalType,
    T.DoubleType,
    T.FloatType,
    T.IntegralType,
    T.StringType,
    T.TimestampNTZType,
    T.TimestampType,
)


def can_order(kind: T.DataType) -> bool:
    """Whether `order_fields` knows the type.

    Of strings only those with the plain collation, which compares bytes; of decimals those of at most 34 digits, to which Spark
    rounds what it negates.
    """
    if isinstance(kind, T.DecimalType) and kind.precision > _MOST_DIGITS:
        return False
    return isinstance(kind, _TYPES) and "collate" not in kind.simpleString().lower()


def order_fields(value: Column, kind: T.DataType, *, descending: bool) -> list[Column]:
    """Fields that compare, ascending and one after the other, as the value in the order asked for; nulls last in both.

    Args:
        value: a column.
        kind: its type, one that `can_order`.
        descending: the largest first, NaN before all numbers; else the smallest first, NaN after them.
    """
    return [value.isNull(), *(_reversed(value, kind) if descending else [value])]


def _reversed(value: Column, kind: T.DataType) -> list[Column]:
    if isinstance(kind, (T.StringType, T.BinaryType)):
        # Digits of the bytes swapped end for end; what is longer comes before its beginning, so the end is above all digits.
        swapped = F.translate(F.hex(value), "0123456789ABCDEF", "FEDCBA9876543210")
        return [F.concat(swapped, F.lit("G"))]
    if isinstance(kind, T.BooleanType):
        return [~value]
    if isinstance(kind, (T.FloatType, T.DoubleType)):
        return [~F.isnan(value), -value]
    if isinstance(kind, T.DecimalType):
        return [-value]
    if isinstance(kind, T.TimestampNTZType):
        # Not by way of a timestamp: in the hour that a time zone repeats, that would not keep the order.
        seconds = F.hour(value) * 3600 + F.minute(value) * 60
        return [F.bitwise_not(F.unix_date(value.cast("date"))), -seconds, -F.extract(F.lit("SECOND"), value)]
    if isinstance(kind, T.DateType):
        value = F.unix_date(value)
    elif isinstance(kind, T.TimestampType):
        value = F.unix_micros(value)
    # The negative of the smallest number would overflow.
    return [F.bitwise_not(value)]
