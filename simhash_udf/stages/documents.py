"""Source rows -> documents, and the rows that are none."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    AtomicType,
    DataType,
    MapType,
    NumericType,
    StringType,
    StructType,
)

from simhash_udf.errors import InputError
from simhash_udf.settings import OWN_KEEP_COLUMNS, Settings
from simhash_udf.stages.order import can_order
from simhash_udf.tables import column

_BROKEN_LINES = "simhash.broken_lines"
_SHOWN = 1000
# Atomic types all the same; by name, since not every Spark has them.
_WITHOUT_ORDER = ("VariantType", "GeometryType", "GeographyType")
_FEATURES = "array<struct<feature: binary, weight: double>>"


def documents(source: DataFrame, settings: Settings) -> DataFrame:
    """Each usable row as `id` and `text`, or as `id` and `features` where the settings name a column of features.

    With a third column, `group`, where they name one to compare within.

    Raises:
        InputError: a column is missing, or its type cannot serve.
    """
    check_columns(source, settings)
    usable = usable_rows(source, settings)
    told = [column(settings.id_column).alias("id")]
    if settings.within:
        told.append(column(settings.within).alias("group"))
    if not settings.features_column:
        return usable.select(*told, column(settings.text_column).alias("text"))
    given = source.schema[settings.features_column].dataType
    # As bytes, since a pandas UDF fails on a string that is not UTF-8.
    wanted = "map<binary, double>" if isinstance(given, MapType) else _FEATURES
    return usable.select(*told, column(settings.features_column).cast(wanted).alias("features"))


def with_broken_lines(source: DataFrame, name: str) -> DataFrame:
    """The source with its column of this name known to hold, in place of a document, a line that could not be parsed."""
    return source.withMetadata(name, {_BROKEN_LINES: True})


def _broken_lines(source: DataFrame) -> str | None:
    return next((field.name for field in source.schema if field.metadata.get(_BROKEN_LINES)), None)


def usable_rows(source: DataFrame, settings: Settings) -> DataFrame:
    """The rows that are documents, with the columns that they came with."""
    usable = source.where(_reject_reason(source, settings).isNull())
    broken_lines = _broken_lines(source)
    return usable.drop(broken_lines) if broken_lines else usable


def rejects(source: DataFrame, settings: Settings, file: Column | None = None) -> DataFrame:
    """Each row that is no document, as `file`, `reason` and `record`; `file` is the column to take the first from.

    The record is the broken line, or else the id, or else, where that is null, the row as JSON.
    """
    check_columns(source, settings)
    broken_lines = _broken_lines(source)
    shown = [_as_json(field.name, field.dataType) for field in source.schema if field.name != broken_lines]
    line = column(broken_lines) if broken_lines else F.lit(None)
    record = F.coalesce(line, column(settings.id_column).cast("string"), F.to_json(F.struct(*shown)))
    reason = _reject_reason(source, settings)
    return source.where(reason.isNotNull()).select(
        (F.lit(None) if file is None else file).cast("string").alias("file"),
        reason.alias("reason"),
        F.substring(record, 1, _SHOWN).alias("record"),
    )


def _as_json(name: str, given: DataType) -> Column:
    if isinstance(given, StringType):
        return F.substring(column(name), 1, _SHOWN).alias(name)
    return column(name)


def check_no_rejects(rejected: DataFrame) -> None:
    """Raise InputError where a row is no document; ten are shown."""
    examples = rejected.limit(10).collect()
    if examples:
        shown = "; ".join(
            reason + (f" in {file}" if file else "") + (f": {record[:60]!r}" if record else "")
            for file, reason, record in examples
        )
        raise InputError(
            f"{rejected.count():,} records of the input are no documents: {shown}. Mend or drop them; or let the job go on "
            "without them, each listed in rejects/, with --on-bad-input reject"
        )


def check_columns(source: DataFrame, settings: Settings) -> None:
    """Raise InputError unless the columns that the settings name are there, once, with types that can serve."""
    content = settings.features_column or settings.text_column
    content_flag = "--features-column" if settings.features_column else "--text-column"
    named = [(settings.id_column, "--id-column"), (content, content_flag)]
    named += [(name, "--keep") for name in settings.keep_columns]
    grouping = [(settings.within, "--within"), (settings.source_column, "--source-column")]
    named += [(name, option) for name, option in grouping if name]
    columns = [name for name in source.columns if name != _broken_lines(source)]
    for name, option in named:
        # Spark tells columns apart without regard to case.
        alike = sum(other.lower() == name.lower() for other in source.columns)
        if name not in columns or alike > 1:
            have = ", ".join(repr(other) for other in columns)
            problem = "is not in the input" if name not in columns else "is in the input more than once"
            own = f", and --keep may name {', '.join(OWN_KEEP_COLUMNS)}" if option == "--keep" else ""
            raise InputError(f"column {name!r} {problem}, which has {have}{own}; name the right one with {option}")
    check_id_type(settings.id_column, source.schema[settings.id_column].dataType)
    given = source.schema[content].dataType
    if settings.features_column and not _holds_features(given):
        raise InputError(
            f"column {content!r} is {given.simpleString()}; features must be array<struct<feature: string, weight: double>> "
            "or map<string, double>, the feature first and its weight second, a number of any type: cast the column"
        )
    if not settings.features_column and not isinstance(given, StringType):
        raise InputError(
            f"column {content!r} is {given.simpleString()}; a text must be a string: cast it, or name another column with "
            "--text-column"
        )
    for name, option in grouping:
        if name and not _is_plain(source.schema[name].dataType):
            raise InputError(
                f"column {name!r} is {source.schema[name].dataType.simpleString()}; {option} needs values that can be "
                "told apart, such as strings, numbers or dates: cast it"
            )
    for name in (*settings.keep_columns, *([settings.id_column] if ("id", True) in settings.keep_order else [])):
        kind = source.schema[name].dataType
        if not can_order(kind):
            raise InputError(
                f"column {name!r} is {kind.simpleString()}, which --keep cannot order; it must be numbers "
                "(decimals of at most 34 digits), strings, binary, booleans, dates or timestamps: cast it, or leave it out"
            )


def _is_plain(given: DataType) -> bool:
    """Whether values of a type can be told apart and put in order."""
    return isinstance(given, AtomicType) and type(given).__name__ not in _WITHOUT_ORDER


def check_id_type(name: str, given: DataType) -> None:
    """Raise InputError unless ids of a column of this type can be told apart and put in order."""
    if not _is_plain(given):
        raise InputError(
            f"column {name!r} is {given.simpleString()}; an id must be of an atomic type that has an order, such as string, "
            "bigint, binary, decimal or date: cast it, or name another column with --id-column"
        )


def _holds_features(given: DataType) -> bool:
    if isinstance(given, MapType):
        return isinstance(given.keyType, StringType) and isinstance(given.valueType, NumericType)
    if not (isinstance(given, ArrayType) and isinstance(given.elementType, StructType)):
        return False
    types = [part.dataType for part in given.elementType.fields]
    return len(types) == 2 and isinstance(types[0], StringType) and isinstance(types[1], NumericType)


def _reject_reason(source: DataFrame, settings: Settings) -> Column:
    """Why a row is no document; NULL where it is one."""
    reason = F.when(column(settings.id_column).isNull(), F.lit("the id is null"))
    broken_lines = _broken_lines(source)
    if broken_lines:
        broken = F.lit("the record is not valid JSON")
        reason = F.when(column(broken_lines).isNotNull(), broken).when(
            column(settings.id_column).isNull(), F.lit("the id is null")
        )
    if settings.features_column:
        features = column(settings.features_column)
        if isinstance(source.schema[settings.features_column].dataType, MapType):
            bad = F.exists(F.map_values(features), _bad_weight)
        else:
            name, weight = source.schema[settings.features_column].dataType.elementType.names  # type: ignore[attr-defined]
            bad = F.exists(
                features,
                lambda entry: entry.isNull() | entry.getField(name).isNull() | _bad_weight(entry.getField(weight)),
            )
        reason = reason.when(bad, F.lit("a feature is null, or its weight is null, negative, NaN or infinite"))
    return reason


def _bad_weight(weight: Column) -> Column:
    number = weight.cast("double")
    return weight.isNull() | F.isnan(number) | (number < 0) | (number == float("inf"))
