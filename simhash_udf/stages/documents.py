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

# The column of a source that says where a row came from, and why it is no document where reading it told.
ORIGIN = "__simhash_origin__"
_ORIGIN_FIELDS = {"file": "string", "position": "bigint", "reason": "string", "record": "string", "line_hash": "bigint"}
_SHOWN = 1000
# Atomic types all the same; by name, since not every Spark has them.
_WITHOUT_ORDER = ("VariantType", "GeometryType", "GeographyType")
_FEATURES = "array<struct<feature: binary, weight: double>>"


def documents(source: DataFrame, settings: Settings) -> DataFrame:
    """Each usable row as `id`, `text`, `length` INT in characters and `cut` BOOLEAN, whether only the beginning of the text is
    there; or as `id` and `features` where the settings name a column of features.

    With one more column, `group`, where they name one to compare within.

    Raises:
        InputError: a column is missing, or its type cannot serve.
    """
    check_columns(source, settings)
    usable = usable_rows(source, settings)
    told = [column(settings.id_column).alias("id")]
    if settings.within:
        told.append(column(settings.within).alias("group"))
    if not settings.features_column:
        text = column(settings.text_column)
        length = F.coalesce(F.char_length(text), F.lit(0)).alias("length")
        cut = F.coalesce(F.octet_length(text) > settings.max_document_bytes, F.lit(False)).alias("cut")
        return usable.select(*told, beginning(settings).alias("text"), length, cut)
    given = source.schema[settings.features_column].dataType
    # As bytes, since a pandas UDF fails on a string that is not UTF-8.
    wanted = "map<binary, double>" if isinstance(given, MapType) else _FEATURES
    return usable.select(*told, column(settings.features_column).cast(wanted).alias("features"))


def beginning(settings: Settings) -> Column:
    """As much of a text, which is valid UTF-8, as is compared: all, or the whole characters in its first bytes."""
    text, most = column(settings.text_column), settings.max_document_bytes
    content = text.cast("binary")
    short = content
    # A character ends before each byte that does not go on with one, 10xxxxxx; it has four bytes at most.
    for length in (most - 3, most - 2, most - 1, most):
        goes_on = F.substring(content, length + 1, 1).between(F.lit(b"\x80"), F.lit(b"\xbf"))
        short = F.when(~goes_on, F.substring(content, 1, length)).otherwise(short)
    return F.when(F.octet_length(text) <= most, text).otherwise(short.cast("string"))


def origin(
    file: Column, position: Column | None = None, reason: Column | None = None, record: Column | None = None, *,
    line_hash: Column | None = None,
) -> Column:  # fmt: skip
    """Where a row came from, as the column that `rejects` reads: file, position from 1, why it is no document, how it begins.

    Args:
        line_hash: `xxhash64` of its line, by which the position can be found afterwards.
    """
    given = (file, position, reason, record, line_hash)
    parts = (
        (F.lit(None) if part is None else part).cast(kind).alias(name)
        for part, (name, kind) in zip(given, _ORIGIN_FIELDS.items(), strict=True)
    )
    return F.struct(*parts).alias(ORIGIN)


def is_valid_utf8(text: Column) -> Column:
    """Whether a string is valid UTF-8, which Spark does not promise of what it reads."""
    if hasattr(F, "is_valid_utf8"):
        return F.is_valid_utf8(text)
    # Encoding replaces what is not.
    return F.encode(text, "UTF-8") == text.cast("binary")


def usable_rows(source: DataFrame, settings: Settings) -> DataFrame:
    """The rows that are documents, with the columns that they came with."""
    return source.where(_reject_reason(source, settings).isNull()).drop(ORIGIN)


def rejects(source: DataFrame, settings: Settings) -> DataFrame:
    """Each row that is no document, as `file`, `position`, `reason`, `record` and `line_hash`.

    The record is what its origin tells, or else the id, or else, where that is null, the row as JSON.
    """
    check_columns(source, settings)
    shown = [_as_json(field.name, field.dataType) for field in source.schema if field.name != ORIGIN]
    told = F.col(ORIGIN) if ORIGIN in source.columns else origin(F.lit(None))
    reason = _reject_reason(source, settings)
    record = F.coalesce(told.getField("record"), column(settings.id_column).cast("string"), F.to_json(F.struct(*shown)))
    return source.where(reason.isNotNull()).select(
        told.getField("file").alias("file"),
        told.getField("position").alias("position"),
        reason.alias("reason"),
        F.substring(record, 1, _SHOWN).alias("record"),
        told.getField("line_hash").alias("line_hash"),
    )


def _as_json(name: str, given: DataType) -> Column:
    if isinstance(given, StringType):
        return F.substring(column(name), 1, _SHOWN).alias(name)
    return column(name)


def check_share_rejected(rejected: int, documents: int, most: float) -> None:
    """Raise InputError where a larger share of the records than `most` are no documents."""
    share = rejected / max(1, rejected + documents)
    if share > most:
        raise InputError(
            f"{rejected:,} of {rejected + documents:,} records of the input are no documents, {share:.1%}, more than "
            f"max-rejected, {most:.1%}; --on-bad-input fail shows what is wrong with ten of them; mend them, or allow more with "
            "--max-rejected"
        )


def check_no_rejects(rejected: DataFrame, number: int | None = None) -> None:
    """Raise InputError where a row is no document; ten are shown.

    Args:
        number: of rows, where it is known.
    """
    examples = rejected.orderBy("file", "position", "reason", "record").limit(10).collect()
    if examples:
        shown = "; ".join(
            reason
            + (f" in {file}" if file else "")
            + (f", {position:,}" if position else "")
            + (f": {record[:60]!r}" if record else "")
            for file, position, reason, record, *_ in examples
        )
        total = rejected.count() if number is None else number
        raise InputError(
            f"{total:,} records of the input are no documents: {shown}. Mend or drop them; or let the job go on without them, "
            "each listed in rejects/, with --on-bad-input reject"
        )


def check_columns(source: DataFrame, settings: Settings) -> None:
    """Raise InputError unless the columns that the settings name are there, once, with types that can serve."""
    content = settings.features_column or settings.text_column
    content_flag = "--features-column" if settings.features_column else "--text-column"
    named = [(settings.id_column, "--id-column"), (content, content_flag)]
    named += [(name, "--keep") for name in settings.keep_columns]
    grouping = [(settings.within, "--within"), (settings.source_column, "--source-column")]
    named += [(name, option) for name, option in grouping if name]
    columns = [name for name in source.columns if name != ORIGIN]
    for name, option in named:
        # Spark tells columns apart without regard to case.
        alike = sum(other.lower() == name.lower() for other in source.columns)
        if name not in columns or alike > 1:
            have = ", ".join(repr(other) for other in columns)
            problem = "is not in the input" if name not in columns else "is in the input more than once"
            own = f", and --keep may name {', '.join(OWN_KEEP_COLUMNS)}" if option == "--keep" else ""
            option += ", or let --make-ids content make ids" if option == "--id-column" and not alike else ""
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
    told = F.col(f"{ORIGIN}.reason") if ORIGIN in source.columns else F.lit(None).cast("string")
    named = [settings.id_column, *([] if settings.features_column else [settings.text_column])]
    reason = F.when(told.isNotNull(), told).when(column(settings.id_column).isNull(), F.lit("the id is null"))
    for name in named:
        if isinstance(source.schema[name].dataType, StringType):
            reason = reason.when(~is_valid_utf8(column(name)), F.lit(f"column {name!r} is not valid UTF-8"))
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
