"""Rows -> rows with a 64-bit number of their own, which is a function of the row and of nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from simhash_udf.errors import IncompleteResult
from simhash_udf.stages.components import Store

_MOST_SEEDS = 8


def numbered(rows: DataFrame, keys: Sequence[str], store: Store, name: str) -> DataFrame:
    """The rows with a column `node` BIGINT, different for any two of them; written.

    Args:
        rows: no two alike in all keys.
        keys: columns of an atomic type.
        store: called with a name and a table; gives the table back with its lineage cut.
        name: of the table.

    The number is a hash, so it does not depend on partitions, order or retries. That no two rows share one is checked, and
    another hash is taken where two do: of a billion rows with a chance of 3 in 100.

    Raises:
        IncompleteResult: two rows have one number whatever the hash, so they are alike in all keys.
    """
    for seed in range(_MOST_SEEDS):
        table = store(name if seed == 0 else f"{name}_{seed}", rows.select(_number(keys, seed).alias("node"), *rows.columns))
        counted = table.agg(F.count("*").alias("rows"), F.count_distinct("node").alias("numbers")).collect()[0]
        if counted["rows"] == counted["numbers"]:
            return table
    raise IncompleteResult(
        f"rows of the table {name!r} cannot be told apart by {', '.join(keys)}; the input changed while the job read it: run "
        "again on files that stay as they are"
    )


def _number(keys: Sequence[str], seed: int) -> Column:
    # A hash leaves nulls out, so that (null, x) and (x, null) would have one.
    fields = [field for key in keys for field in (F.col(key).isNull(), F.col(key))]
    return F.xxhash64(F.lit(seed), *fields)
