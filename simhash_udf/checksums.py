"""Checksums of tables, taken while they are written, and the comments of their columns."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from simhash_udf.tables import TableOf, column

# Not hashed by Spark, but written as JSON; by name, since not every Spark has them.
_NOT_HASHED = ("VariantType", "GeometryType", "GeographyType", "CalendarIntervalType")


class Checked:
    """A table whose rows are counted and hashed while it is written."""

    def __init__(self, table: DataFrame) -> None:
        self._observation = Observation()
        self.frame = table.observe(self._observation, F.count(F.lit(1)).alias("rows"), _checksum(table))

    def checksum(self, rows: int, written: DataFrame) -> str:
        """The checksum of the table, once it is written.

        Args:
            rows: that it has.
            written: it, read back; read only where the count while writing was of other rows, as where a task wrote twice.
        """
        if rows == 0:
            # Where Spark knows that there is no row, it observes nothing, and asking would not end.
            return _written(None)
        seen = self._observation.get
        return _written(seen["checksum"]) if seen["rows"] == rows else checksum_of(written)


def checksum_of(table: DataFrame) -> str:
    """16 hex digits: the exclusive or of a hash of each row; no order of rows, and no file, changes it."""
    row = table.agg(_checksum(table)).first()
    return _written(row[0] if row else None)


def _written(value: int | None) -> str:
    return f"{(value or 0) & (1 << 64) - 1:016x}"


def _checksum(table: DataFrame) -> Column:
    hashed = [_hashable(field.name, field.dataType) for field in table.schema]
    return F.bit_xor(F.xxhash64(*hashed) if hashed else F.lit(0)).alias("checksum")


def _hashable(name: str, kind: DataType) -> Column:
    return column(name) if _is_hashed(kind) else F.to_json(F.struct(column(name)))


def _is_hashed(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_hashed(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _is_hashed(kind.elementType)
    return not isinstance(kind, MapType) and type(kind).__name__ not in _NOT_HASHED


def described(table: DataFrame, columns: TableOf) -> DataFrame:
    """The table with what each of its columns means as its comment, which Parquet files carry in Spark's schema."""
    for told, (_, comment) in columns.items():
        if told in table.columns:
            table = table.withMetadata(told, {**table.schema[told].metadata, "comment": comment})
    return table
