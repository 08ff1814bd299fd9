import subprocess
import sys

import pytest

import simhash_udf


@pytest.mark.parametrize("name", simhash_udf.__all__)
def test_every_public_name_is_there_and_documented(name):
    assert getattr(simhash_udf, name).__doc__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = simhash_udf.no_such_name


def test_the_pure_functions_need_no_spark():
    code = "import sys, simhash_udf; simhash_udf.fingerprint_text('a'); sys.exit('pyspark' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("seed", ["0", "1", "random"])
def test_hash_seeds_change_nothing(seed):
    code = "from simhash_udf import *; print(fingerprint_text('one two three'), fingerprint_features({'a': 1.5, 'b': 2}))"
    printed = subprocess.run(
        [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
    )
    expected = simhash_udf.fingerprint_text("one two three"), simhash_udf.fingerprint_features({"a": 1.5, "b": 2})
    assert printed.stdout.split() == [str(value) for value in expected]
