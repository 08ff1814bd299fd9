"""The fingerprint as a Spark column: one vectorised UDF, an Arrow UDF where Spark has it, a pandas UDF otherwise.

Both call the same compiled kernel and give the same values. A pandas UDF gets text as bytes, since Spark cannot make Python
strings of what is not UTF-8. What the kernel needs lives in imported modules, so a task carries nothing but the three settings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DataType, IntegerType, LongType, StructField, StructType

from simhash_udf.core.fingerprint import (
    DEFAULT_NGRAM,
    DEFAULT_UNIT,
    DEFAULT_WEIGHTING,
    Folded,
    check_text_settings,
    fingerprint_batch,
    fingerprint_features_batch,
)
from simhash_udf.core.fold import as_number
from simhash_udf.core.sketch import minhash_batch, sketch_batch

ARROW_UDF = hasattr(F, "arrow_udf")
_make_arrow_udf: Any = getattr(F, "arrow_udf", None)
_make_pandas_udf: Any = F.pandas_udf  # type: ignore[attr-defined]
_FINGERPRINT = LongType()
# Arrow makes bytes of strings as well, and an array of a type of nothing but nulls.
_TEXT = pa.large_binary()
_FEATURES = pa.list_(pa.struct([("feature", pa.large_binary()), ("weight", pa.float64())]))
_FOLDED = StructType(
    [
        StructField("fingerprint", LongType()),
        StructField("features", IntegerType()),
        StructField("content", LongType()),
        StructField("low_information", BooleanType()),
    ]
)
_SKETCHED = StructType([*_FOLDED, StructField("sketch", ArrayType(LongType()))])

_Kernel = Callable[[pa.Array], Folded]


def simhash(
    text: Column | str,
    *,
    unit: str = DEFAULT_UNIT,
    ngram: int = DEFAULT_NGRAM,
    weighting: str = DEFAULT_WEIGHTING,
) -> Column:
    """The fingerprint of a text column: BIGINT, NULL where a text is null or has no token.

    Args:
        text: a string column, or its name.
        unit, ngram, weighting: which features vote and how much, as for `fingerprint_text`.

    Raises:
        SettingsError: unit, ngram or weighting is unknown.

    Use it as ``df.withColumn("fingerprint", simhash("text"))``.
    """
    return _as_udf(_text_kernel(unit, ngram, weighting), _FINGERPRINT, _TEXT)(_as_bytes(text))


def simhash_features(features: Column | str) -> Column:
    """The fingerprint of a column of weighted features: BIGINT, NULL where no feature has a weight above 0.

    Args:
        features: array<struct<feature: string, weight: double>> or map<string, double>, or its name. A null feature, and a
            weight that is null, negative, NaN or infinite, fails the query. Features may be binary (UTF-8) as well; they must be
            where they are not valid UTF-8 and Spark is older than 4.1.
    """
    return _as_udf(fingerprint_features_batch, _FINGERPRINT, _FEATURES)(features)


def text_fingerprints(
    text: Column | str,
    *,
    unit: str,
    ngram: int,
    weighting: str,
    minhash: bool = False,
    sketch: tuple[str, int] | None = None,
    content_unit: str | None = None,
) -> Column:
    """As `simhash`, as a struct of all that `Folded` has: `fingerprint`, `features`, `content` and `low_information`.

    Args:
        text, unit, ngram, weighting: as for `simhash`.
        minhash: whether the fingerprint is a sketch of one word of the set of features, and no SimHash.
        sketch: where given, a unit and an n: there is also `sketch`, that of the set of n-grams of so many units.
        content_unit: what `content` is a hash of, where not of the units of the features.
    """
    voted = _text_kernel(unit, ngram, weighting)

    def kernel(texts: pa.Array) -> Folded:
        folded = voted(texts)
        if minhash:
            folded = folded._replace(fingerprint=minhash_batch(texts, unit=unit, ngram=ngram))
        if sketch is not None:
            folded = folded._replace(sketch=sketch_batch(texts, unit=sketch[0], ngram=sketch[1]))
        if content_unit not in (None, unit):
            read_again = fingerprint_batch(texts, unit=content_unit, ngram=1, weighting="binary")
            folded = folded._replace(content=read_again.content)
        return folded

    return _as_udf(kernel, _FOLDED if sketch is None else _SKETCHED, _TEXT)(_as_bytes(text))


def features_fingerprints(features: Column | str) -> Column:
    """As `simhash_features`, as a struct of all that `Folded` has."""
    return _as_udf(fingerprint_features_batch, _FOLDED, _FEATURES)(features)


def register(
    spark: SparkSession,
    name: str = "simhash",
    *,
    unit: str = DEFAULT_UNIT,
    ngram: int = DEFAULT_NGRAM,
    weighting: str = DEFAULT_WEIGHTING,
) -> None:
    """Make `simhash` callable from SQL under a name: ``SELECT simhash(text) FROM documents``.

    Where Spark is older than 4.1 and a text may not be valid UTF-8, write ``simhash(cast(text AS binary))``.
    """
    spark.udf.register(name, _as_udf(_text_kernel(unit, ngram, weighting), _FINGERPRINT, _TEXT))


def _text_kernel(unit: str, ngram: int, weighting: str) -> _Kernel:
    check_text_settings(unit, ngram, weighting)

    def kernel(texts: pa.Array) -> Folded:
        return fingerprint_batch(texts, unit=unit, ngram=ngram, weighting=weighting)

    return kernel


def _as_udf(kernel: _Kernel, returns: DataType, takes: pa.DataType) -> Callable[[Column | str], Column]:
    udf: Callable[[Column | str], Column] = _arrow(kernel, returns) if ARROW_UDF else _pandas(kernel, returns, takes)
    return udf


def _as_bytes(text: Column | str) -> Column | str:
    if ARROW_UDF:
        return text
    given = F.col(text) if isinstance(text, str) else text
    # Spark would make bytes of a number as well.
    problem = F.concat(F.lit("InputError: texts are "), F.typeof(given), F.lit("; they must be strings: cast the column first"))
    return F.when(F.typeof(given).rlike("^(string|binary|void)"), given.cast("binary")).otherwise(
        F.raise_error(problem).cast("binary")
    )


def _arrow(kernel: _Kernel, returns: DataType) -> Any:
    def fingerprints(batch: pa.Array) -> pa.Array:
        folded = kernel(batch)
        if not isinstance(returns, StructType):
            return folded.fingerprint
        return pa.StructArray.from_arrays([getattr(folded, name) for name in returns.names], returns.names)

    return _make_arrow_udf(fingerprints, returns)


def _pandas(kernel: _Kernel, returns: DataType, takes: pa.DataType) -> Any:
    # pandas_udf reads these annotations, and one UDF returns either a Series or a DataFrame.
    if isinstance(returns, StructType):

        def whole(batch: pd.Series) -> pd.DataFrame:
            folded = kernel(_from_pandas(batch, takes))
            flags = pd.Series(folded.low_information.to_pandas(), dtype="boolean")
            columns = {
                "fingerprint": _nullable(folded.fingerprint),
                "features": folded.features.to_numpy(),
                "content": _nullable(folded.content),
                "low_information": flags,
            }
            if folded.sketch is not None:
                columns["sketch"] = pd.Series(folded.sketch.to_pylist(), dtype=object)
            return pd.DataFrame(columns)

        return _make_pandas_udf(whole, returns)

    def fingerprints(batch: pd.Series) -> pd.Series:
        return _nullable(kernel(_from_pandas(batch, takes)).fingerprint)

    return _make_pandas_udf(fingerprints, returns)


def _nullable(values: pa.Array) -> pd.Series:
    # A float64 column with NaN for null would lose the low bits of a fingerprint.
    missing = values.is_null().to_numpy(zero_copy_only=False)
    return pd.Series(pd.arrays.IntegerArray(values.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64), missing))


def _from_pandas(batch: pd.Series, takes: pa.DataType) -> pa.Array:
    if takes == _FEATURES:
        return pa.array([None if value is None or isinstance(value, float) else _pairs(value) for value in batch], type=takes)
    return pa.array(batch, type=takes, from_pandas=True)


def _pairs(features: Any) -> list[tuple[Any, Any] | None]:
    entries = features.items() if isinstance(features, dict) else features
    return [None if entry is None else _pair(*(entry.values() if isinstance(entry, dict) else entry)) for entry in entries]


def _pair(feature: Any, weight: Any) -> tuple[Any, Any]:
    return feature, None if weight is None else as_number(weight, "a weight")
