from datetime import date, datetime, timedelta
from decimal import Decimal

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DecimalType, StringType

from simhash_udf.stages.order import can_order, order_fields

NAN, INFINITY = float("nan"), float("inf")
START = datetime(2024, 10, 27, 0, 30)
VALUES = {
    "boolean": [True, False],
    "tinyint": [-128, 127, 0],
    "int": [-(2**31), 2**31 - 1, 0, -1, 1],
    "bigint": [-(2**63), 2**63 - 1, 0, -1, 1],
    "float": [0.0, -0.0, 1.5, -1.5, NAN, INFINITY, -INFINITY],
    "double": [0.0, -0.0, 1e300, -1e300, 5e-324, NAN, INFINITY, -INFINITY],
    "decimal(34,4)": [Decimal("9" * 30 + ".9999"), Decimal("-" + "9" * 30 + ".9999"), Decimal(0), Decimal("0.0001")],
    "string": ["", "a", "ab", "b", "B", "ä", "aä", "\U0001f600", "\uffff", "a\0", "a\0b", "G", "0"],
    "binary": [b"", b"\0", b"\0\0", b"\xff", b"\xff\0", b"a"],
    "date": [date(1, 1, 1), date(1969, 12, 31), date(1970, 1, 1), date(9999, 12, 31)],
    "timestamp": [datetime(1900, 1, 1), datetime(1970, 1, 1), datetime(2024, 1, 1, 1, 1, 1, 1), datetime(9999, 1, 1)],
    "timestamp_ntz": [START + timedelta(minutes=20 * i, microseconds=i) for i in range(12)] + [datetime(1, 1, 1)],
}


@pytest.mark.parametrize("descending", [False, True], ids=["ascending", "descending"])
@pytest.mark.parametrize("kind", VALUES)
def test_fields_compare_as_the_values_do_with_nulls_last(spark, spark_conf, kind, descending):
    spark_conf({"spark.sql.session.timeZone": "Europe/Berlin"})
    rows = [*enumerate(VALUES[kind] * 2), (100, None)]
    table = spark.createDataFrame(rows, f"i int, v {kind}").coalesce(1)
    fields = order_fields(F.col("v"), table.schema["v"].dataType, descending=descending)
    asked = F.col("v").desc_nulls_last() if descending else F.col("v").asc_nulls_last()
    both = table.select("i", F.row_number().over(_window(asked)).alias("asked"), F.struct(*fields).alias("key"))
    both = both.select("i", "asked", F.row_number().over(_window("key")).alias("found"))
    assert [row["i"] for row in both.collect() if row["asked"] != row["found"]] == []


def _window(*order):
    from pyspark.sql import Window

    return Window.partitionBy(F.lit(1)).orderBy(*order, "i")


def test_types_without_a_plain_order_are_not_taken():
    assert not can_order(ArrayType(StringType()))
    assert can_order(DecimalType(34, 4))
    assert not can_order(DecimalType(35, 4))
    if hasattr(StringType(), "collation"):
        assert not can_order(StringType("UNICODE_CI"))
