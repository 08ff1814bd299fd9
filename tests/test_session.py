import os
import sys
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from simhash_udf.errors import SettingsError
from simhash_udf.job import PROPERTIES_FILE
from simhash_udf.session import check_java, cores_of, memory_bytes, read_properties

CONF = Path(__file__).parent.parent / "conf"


@pytest.mark.parametrize("name", ["spark-local.conf", "spark-cluster.conf"])
def test_the_property_files_are_read(name):
    properties = read_properties(CONF / name)
    assert properties["spark.sql.sources.partitionColumnTypeInference.enabled"] == "false"
    assert all(value and "#" not in value for value in properties.values())


def test_all_packages_are_installed_and_what_jobs_read_at_run_time_with_them():
    setup = tomllib.loads((CONF.parent / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    rooms = [path.parent for path in (CONF.parent / "simhash_udf").rglob("__init__.py")]
    written = {".".join(room.relative_to(CONF.parent).parts) for room in rooms}
    assert set(setup["packages"]) == {*written, "simhash_udf.conf"}
    assert setup["package-dir"]["simhash_udf.conf"] == CONF.name
    assert PROPERTIES_FILE == CONF / "spark-local.conf"
    assert PROPERTIES_FILE.with_name("log4j2.properties").is_file()


@pytest.mark.parametrize("line", ["spark.x", "driver.memory 4g"])
def test_a_line_that_is_no_property_is_named(tmp_path, line):
    (tmp_path / "x.conf").write_text(f"# fine\n{line}\n")
    with pytest.raises(SettingsError, match="line 2 of"):
        read_properties(tmp_path / "x.conf")


def test_the_memory_found_is_that_of_a_machine():
    assert 1 << 28 < memory_bytes() < 1 << 50


def java(directory, shown):
    (directory / "bin").mkdir(parents=True)
    program = directory / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{shown}\"' >&2\n")
    program.chmod(0o755)
    return str(directory)


@pytest.mark.parametrize("shown", ["17.0.15", "21", "25-ea"])
def test_java_that_spark_can_use_is_accepted(monkeypatch, tmp_path, shown):
    monkeypatch.setenv("JAVA_HOME", java(tmp_path / "jdk", shown))
    check_java()


@pytest.mark.parametrize("shown", ["1.8.0_392", "11.0.21", "16.0.2"])
def test_java_that_is_too_old_is_refused_with_the_cure(monkeypatch, tmp_path, shown):
    monkeypatch.setenv("JAVA_HOME", java(tmp_path / "jdk", shown))
    with pytest.raises(SettingsError, match="install Java 17 or newer"):
        check_java()


def test_no_java_at_all_is_refused_with_the_cure(monkeypatch, tmp_path):
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SettingsError, match="no java is on the PATH; install"):
        check_java()


class _Session:
    def __init__(self, **properties):
        self.conf = {f"spark.{key.replace('_', '.')}": value for key, value in properties.items()}


@pytest.mark.parametrize(
    ("properties", "cores"),
    [
        ({"master": "local[3]"}, 3),
        ({"master": "local[4,2]"}, 4),
        ({"master": "local"}, 1),
        ({"master": "local[*]"}, os.cpu_count()),
        ({"master": "yarn", "executor_instances": "10", "executor_cores": "4"}, 40),
        ({"master": "yarn", "executor_instances": "10"}, 10),
        ({"master": "spark://host:7077", "cores_max": "24"}, 24),
        ({"master": "k8s://https://host"}, 2),
        ({}, 2),
    ],
)
def test_cores_are_those_that_the_properties_say(properties, cores):
    assert cores_of(_Session(**properties)) == cores
