"""Ids for rows that have none, and apart for rows that share one."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType

from simhash_udf.errors import InputError
from simhash_udf.stages.components import Discard, Store
from simhash_udf.stages.documents import ORIGIN
from simhash_udf.tables import column

_HEX_DIGITS = 32
_REPEATED = "__simhash_repeated__"  # no column of the input is called so


def with_made_ids(rows: DataFrame, id_column: str, store: Store, discard: Discard) -> DataFrame:
    """The rows with an id made of what is in them, 32 hex digits, and of the rows that are the same, "-2" and so on behind it.

    It depends on the columns and their values alone: on no file's name and no order. The rows are written, so that an id is made
    once.

    Raises:
        InputError: the rows have a column of this name.
    """
    if id_column.lower() in (name.lower() for name in rows.columns):
        raise InputError(
            f"the input has a column {id_column!r}, and --make-ids would make one; leave --make-ids out to use it, or name the "
            "new one with --id-column"
        )
    made = F.when(F.col(f"{ORIGIN}.reason").isNull(), _content(rows))
    return kept_apart(store("rows_with_ids", rows.withColumn(id_column, made)), id_column, store, discard)


def kept_apart(rows: DataFrame, id_column: str, store: Store, discard: Discard) -> DataFrame:
    """The rows, each id once: those that share an id are numbered in the order of what is in them, and from the second on have
    the number behind it, as in "x-2". Ids become strings.

    Args:
        rows: written where ids come from a function that gives others at each evaluation.

    Raises:
        InputError: the ids are binary.
    """
    if isinstance(rows.schema[id_column].dataType, BinaryType):
        raise InputError(f"column {id_column!r} is binary, to which no number can be added; cast it to a string, such as by hex")
    named = rows.withColumn(id_column, column(id_column).cast("string"))
    name = column(id_column)
    repeated = store(
        "repeated_ids",
        named.groupBy(name.alias(_REPEATED))
        .agg(F.count("*").alias("times"))
        .where(f"times > 1 AND {_REPEATED} IS NOT NULL")
        .select(_REPEATED),
    )
    if repeated.isEmpty():
        return named
    same = name == F.col(_REPEATED)
    several = named.join(repeated, same, "left_semi")
    number = F.row_number().over(Window.partitionBy(name).orderBy(_content(rows)))
    numbered = several.withColumn(
        id_column, F.when(number == 1, name).otherwise(F.concat(name, F.lit("-"), number.cast("string")))
    )
    apart = store("rows_apart", named.join(repeated, same, "left_anti").unionByName(numbered))
    discard("rows_with_ids")
    discard("repeated_ids")
    return apart


def _content(rows: DataFrame) -> Column:
    """A hash of all columns; which file a row is from is no matter."""
    return F.substring(
        F.sha2(F.to_json(F.struct(*(column(name) for name in rows.columns if name != ORIGIN))), 256), 1, _HEX_DIGITS
    )
