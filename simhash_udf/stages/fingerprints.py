"""Documents -> fingerprints: the only stage that text reaches Python in, and the last that sees it."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from simhash_udf.settings import Settings
from simhash_udf.udf import features_fingerprints, text_fingerprints

SETTINGS_KEY = "simhash.settings"


def fingerprints(documents: DataFrame, settings: Settings) -> DataFrame:
    """The table `fingerprints`: `id`, `fingerprint` BIGINT, `features` INT, `length` INT, `content` BIGINT, `low_information`
    and `cut` BOOLEAN, `sketch` ARRAY<BIGINT> for `--verify sketch`, and `group` where the documents have it.

    Args:
        documents: `id` with `text`, `length` and `cut`, or with `features`, as the documents stage makes them, and maybe `group`.
        settings: fingerprint, unit, ngram and weighting are used, and verify with its unit and ngram. The id of the first four is
            kept as metadata of the column `fingerprint`, so that the table carries it wherever it goes.
    """
    if settings.features_column:
        folded = features_fingerprints("features")
        length, cut = F.lit(0), F.lit(False)
    else:
        folded = text_fingerprints(
            "text",
            unit=settings.unit,
            ngram=settings.ngram,
            weighting=settings.weighting,
            minhash=settings.fingerprint == "minhash",
            sketch=(settings.verify_unit, settings.verify_ngram) if settings.sketches else None,
            content_unit=settings.content_unit,
        )
        length, cut = F.col("length"), F.col("cut")
    told = [name for name in ("id", "group") if name in documents.columns]
    return documents.select(*told, folded.alias("folded"), length.alias("length"), cut.alias("cut")).select(
        "id",
        F.col("folded.fingerprint").alias("fingerprint", metadata={SETTINGS_KEY: settings.fingerprint_id}),
        F.col("folded.features").alias("features"),
        "length",
        F.col("folded.content").alias("content"),
        F.col("folded.low_information").alias("low_information"),
        "cut",
        *([F.col("folded.sketch").alias("sketch")] if settings.sketches else []),
        *told[1:],
    )


def settings_id_of(fingerprints: DataFrame) -> str | None:
    """The id of the settings that a column `fingerprint` was made with; None where it does not say."""
    made_with: str | None = fingerprints.schema["fingerprint"].metadata.get(SETTINGS_KEY)
    return made_with
