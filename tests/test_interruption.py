"""Jobs as a scheduler runs them: killed, short of space, without rights. Each is a process of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simhash_udf.errors import OutputError
from simhash_udf.job import explain
from simhash_udf.manifest import read_manifest
from simhash_udf.settings import Settings
from simhash_udf.storage import names_in
from tests.test_jobs import JOBS, dedup

DOCUMENTS = 3000


def started(name, *arguments):
    words = [sys.executable, str(JOBS / f"{name}.py"), *map(str, arguments)]
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)


def wait_for(process, path, seconds=900):
    """Wait until something of this name is in the output, or the process has ended."""
    end = time.monotonic() + seconds
    while not any(path[0].glob(path[1])):
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end
        time.sleep(0.05)


def workers_of(process):
    """The Python workers of a job: those of its processes that the first of their kind has forked."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            if os.getsid(int(place.name)) == process.pid and b"pyspark.daemon" in (place / "cmdline").read_bytes():
                found.append((int(place.name), int((place / "stat").read_text().rpartition(")")[2].split()[1])))
        except OSError:
            continue
    return [pid for pid, parent in found if parent in {other for other, _ in found}]


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    path = tmp_path_factory.mktemp("in") / "in.jsonl"
    words = ["alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta", "iota", "kappa", "lambda", "mu"]
    with path.open("w") as file:
        for at in range(DOCUMENTS):
            text = " ".join(words[(at // 3 * step + step) % 12] + str(at // 3 % (step + 5)) for step in range(1, 60))
            file.write(json.dumps({"id": at, "text": text}) + "\n")
    return path


@pytest.fixture(scope="module")
def whole(spark, given, tmp_path_factory):
    """The checksum of each table of a run that nothing disturbed."""
    output = tmp_path_factory.mktemp("whole") / "out"
    dedup(spark, Settings(input=str(given), output=str(output)), False)
    return checksums(output)


def checksums(output):
    return {name: told["checksum"] for name, told in read_manifest(str(output))["tables"].items()}


def test_a_job_killed_outright_is_resumed_by_the_next_on_its_own(spark, given, whole, tmp_path, caplog):
    output, stage = tmp_path / "out", "clusters"
    process = started("dedup", "--input", given, "--output", output, "--if-exists", "resume")
    wait_for(process, (output, f"runs/*/stages/{stage}.json"))
    # The driver and its JVM; workers end with it.
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert "manifest.json" not in names_in(str(output))
    assert "_run.json" in names_in(str(output))
    caplog.set_level("INFO")
    dedup(spark, Settings(input=str(given), output=str(output), if_exists="resume"), False)
    assert re.search(rf"{stage}: [0-9,]+ rows of an earlier run", caplog.text)
    assert checksums(output) == whole
    assert sorted(names_in(str(output))) == ["manifest.json", "runs"]


def test_a_worker_that_is_killed_is_no_end_and_a_second_job_at_the_same_time_is_refused(spark, given, whole, tmp_path):
    output = tmp_path / "out"
    process = started("dedup", "--input", given, "--output", output)
    wait_for(process, (output, "_run.json"))
    with pytest.raises(OutputError, match="is at work; one run at a time"):
        dedup(spark, Settings(input=str(given), output=str(output), if_exists="replace"), False)
    killed = 0
    end = time.monotonic() + 120
    while process.poll() is None and killed < 2 and time.monotonic() < end:
        for worker in workers_of(process)[:1]:
            os.kill(worker, signal.SIGKILL)
            killed += 1
        time.sleep(0.3)
    _, said = process.communicate(timeout=180)
    assert killed
    assert process.returncode == 0, said
    assert checksums(output) == whole


def test_a_full_disk_ends_a_job_with_one_clear_line_and_leaves_room(spark, given, tmp_path):
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(place)], capture_output=True, check=False)
    if mounted.returncode:
        pytest.skip("only root may make a file system that is full")
    try:
        settings = Settings(input=str(given), output=str(place / "out"))
        with pytest.raises(Exception, match="No space left on device") as raised:
            dedup(spark, settings, False)
        code, said = explain(raised.value, settings)
        assert code == 4
        assert "no space is left on the disk; make room" in said
        assert "\n" not in said
        assert list(place.iterdir()) == []
    finally:
        # Lazily: tasks of the failed run may still hold their files.
        subprocess.run(["umount", "--lazy", str(place)], check=True)


def test_an_output_that_may_not_be_written_is_refused(spark, given, tmp_path):
    target = Path("/proc/simhash-out") if os.geteuid() == 0 else tmp_path / "closed" / "out"
    if os.geteuid():
        target.parent.mkdir(mode=0o500)
    with pytest.raises(OutputError, match="cannot be made"):
        dedup(spark, Settings(input=str(given), output=str(target)), False)
