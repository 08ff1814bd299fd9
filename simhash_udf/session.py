"""The Spark session of a job, at the edge: its properties come from conf/, what depends on the machine is found here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from simhash_udf.errors import SettingsError

OLDEST_JAVA = 17
_GIB = 1 << 30


def open_session(name: str, properties_file: Path) -> SparkSession:
    """A session for a job.

    Under spark-submit and Spark Connect the session is as it was set up there. Under plain Python it is a local one, with
    the properties of the file, this Python for the workers, and a heap that suits the machine.

    Raises:
        SettingsError: there is no Java that Spark can use, or a line of the properties file cannot be read.
    """
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ
    builder = SparkSession.builder.appName(name)
    if "SPARK_REMOTE" in os.environ:
        return builder.getOrCreate()
    if not submitted:
        check_java()
        # All cores, and a task may fail three times, as on a cluster: a Python worker that the system kills is no end.
        properties = {"spark.master": "local[*,4]", "spark.driver.memory": f"{heap_gib(memory_bytes())}g"}
        properties["spark.ui.showConsoleProgress"] = str(sys.stderr.isatty()).lower()
        properties |= read_properties(properties_file)
        logging_file = properties_file.with_name("log4j2.properties").as_uri()
        properties.setdefault("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile={logging_file}")
        for key, value in properties.items():
            builder = builder.config(key, value)
    if not submitted or _master().startswith("local"):
        # Else workers take the first python3 on the PATH, which may lack what this one has.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    return builder.getOrCreate()


def cores_of(spark: SparkSession) -> int:
    """Cores that the session's tasks can use at the same time, as far as its properties say; else two."""
    master = spark.conf.get("spark.master", "") or ""
    local = re.fullmatch(r"local(?:\[(\d+|\*)(?:,\d+)?\])?", master)
    if local:
        return (os.cpu_count() or 1) if local[1] == "*" else int(local[1] or 1)
    total = spark.conf.get("spark.cores.max", "") or ""
    executors, each = (spark.conf.get(f"spark.executor.{name}", "") or "" for name in ("instances", "cores"))
    if executors.isdigit():
        return max(1, int(executors)) * (int(each) if each.isdigit() else 1)
    return int(total) if total.isdigit() else 2


def _master() -> str:
    from pyspark import SparkConf

    return SparkConf().get("spark.master", "local") or "local"


def read_properties(path: Path) -> dict[str, str]:
    """The properties in a file of Spark's own form: a key, white space, a value; # begins a comment line."""
    properties = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        parts = re.split(r"\s*[=\s]\s*", line.strip(), maxsplit=1)
        if len(parts) != 2 or not parts[0].startswith("spark."):
            raise SettingsError(f"line {number} of {path} is {line!r}; it must be a spark. property, a space and its value")
        properties[parts[0]] = parts[1]
    return properties


def heap_gib(memory: int) -> int:
    """GiB of heap for a local session: a third of the memory, from 1 to 8; Python workers and the system have the rest.

    >>> heap_gib(24 << 30), heap_gib(4 << 30), heap_gib(1 << 30)
    (8, 1, 1)
    """
    return max(1, min(8, memory // 3 // _GIB))


def memory_bytes() -> int:
    """Memory that this process may use: the machine's, or less where a control group says so."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit():
            memory = min(memory, int(text))
    return memory


def check_java() -> None:
    """Raise SettingsError unless Java that Spark can use is there."""
    cure = (
        f"install Java {OLDEST_JAVA} or newer (Debian and Ubuntu: apt-get install openjdk-17-jre-headless; macOS: brew install "
        "openjdk@17), or let JAVA_HOME name it"
    )
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if not java or not os.access(java, os.X_OK):
        where = f"JAVA_HOME is {home!r}, where no bin/java is" if home else "no java is on the PATH"
        raise SettingsError(f"Spark needs Java, and {where}; {cure}")
    shown = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    version = re.search(r'version "(?:1\.)?(\d+)', shown)
    if not version or int(version[1]) < OLDEST_JAVA:
        raise SettingsError(f"{java} is {shown.splitlines()[0] if shown else 'no Java that runs'}; {cure}")
