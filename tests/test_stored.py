from decimal import Decimal

import pytest

from simhash_udf import hex_digits
from simhash_udf.errors import InputError
from simhash_udf.stored import as_bigint

VALUES = [0, 1, 255, 2**63 - 1, -(2**63), -1, 0x0123456789ABCDEF]
UNSIGNED = [value % 2**64 for value in VALUES]


def read(spark, values, kind, written="auto"):
    frame = spark.createDataFrame([(at, value) for at, value in enumerate(values)], f"at int, `a b` {kind}")
    made = as_bigint(frame, "a b", written, "here")
    assert dict(made.dtypes)["a b"] == "bigint"
    return [row["a b"] for row in made.orderBy("at").collect()]


@pytest.mark.parametrize(
    ("kind", "values", "written"),
    [
        ("bigint", VALUES, "auto"),
        ("decimal(20,0)", [Decimal(value) for value in UNSIGNED], "auto"),
        ("decimal(38,0)", [Decimal(value) for value in VALUES], "auto"),
        ("string", [str(value) for value in VALUES], "auto"),
        ("string", [str(value) for value in UNSIGNED], "number"),
        ("string", [f"{value:016x}" for value in UNSIGNED], "auto"),
        ("string", [f"{value:016X}" for value in UNSIGNED], "hex"),
        ("string", [f"0x{value:x}" for value in UNSIGNED], "auto"),
        ("string", [f" {value:x} " for value in UNSIGNED], "hex"),
    ],
)
def test_fingerprints_are_read_however_they_are_written(spark, kind, values, written):
    assert read(spark, [*values, None], kind, written) == [*VALUES, None]


@pytest.mark.parametrize("values", [["1" * 16], ["0" * 16, "9" * 16]])
def test_strings_that_may_be_either_are_asked_about(spark, values):
    with pytest.raises(InputError, match="of 16 digits, which may be decimal or hex; say which with --fingerprint-format"):
        read(spark, values, "string")
    assert read(spark, values, "string", "hex") == [int(value, 16) - 2**64 * (value > "8") for value in values]
    assert read(spark, values, "string", "number") == [int(value) for value in values]


@pytest.mark.parametrize(
    ("kind", "value", "written", "said"),
    [
        ("string", "12x", "auto", "not whole numbers, such as '12x'"),
        ("string", "-0x1", "hex", "not hex digits"),
        ("string", "1" * 17, "hex", "not hex digits"),
        ("string", str(2**64), "number", "not of 64 bits"),
        ("string", "", "number", "not whole numbers"),
        ("decimal(21,0)", Decimal(2**64), "auto", "not of 64 bits, such as '18446744073709551616'"),
        ("decimal(21,0)", Decimal(-(2**63) - 1), "auto", "not of 64 bits"),
        ("int", 1, "auto", "is int; it must be BIGINT"),
        ("double", 1.0, "auto", "is double; it must be BIGINT"),
        ("decimal(20,1)", Decimal(1), "auto", "it must be BIGINT"),
    ],
)
def test_what_is_no_fingerprint_is_refused(spark, kind, value, written, said):
    with pytest.raises(InputError, match=said):
        read(spark, [value], kind, written)


def test_hex_digits_are_what_others_write(spark):
    frame = spark.createDataFrame([(value,) for value in [*VALUES, None]], "f bigint")
    assert [row[0] for row in frame.select(hex_digits("f")).collect()] == [*(f"{value:016x}" for value in UNSIGNED), None]
