import ast
import doctest
import gzip
import importlib.util
import json
import re
import shlex
from pathlib import Path

import pytest

from simhash_udf.command_line import parse
from simhash_udf.manifest import read_report
from simhash_udf.store.views import Store

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")

JOBS_OF_THE_README = ("dedup", "fingerprint", "pairs", "truth", "evaluate", "dedup", "forget", "compact")
FUNCTIONS = {"truth": "find_truth", "forget": "forget_documents", "compact": "compact_store"}


def commands():
    blocks = re.findall(r"^```(\w*)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    joined = "\n".join(block for language, block in blocks if not language).replace("\\\n", " ")
    return [line for line in joined.splitlines() if "jobs/" in line]


def test_the_python_at_the_prompt_gives_what_the_readme_shows():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).attempted >= 4
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).failed == 0


@pytest.mark.parametrize(
    "page", ["README.md", "DESIGN.md", "CONTRIBUTING.md", "docs/quality.md", "docs/scale.md", "docs/store.md"]
)
def test_the_pages_that_a_page_links_to_are_there(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    linked = [target for target in re.findall(r"\]\(([^)#]+)", text) if "://" not in target]
    assert all(((ROOT / page).parent / target).exists() for target in linked), linked
    named = re.findall(r"`((?:docs|benchmarks|conf|jobs|tools|tests|simhash_udf)/[\w./-]+\.\w+)`", text)
    assert all((ROOT / name).exists() for name in named), named


def test_the_make_targets_of_the_readme_are_there():
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"demo", "test", "setup"} <= set(re.findall(r"make ([a-z]+)", README)) & targets


@pytest.mark.parametrize("line", commands())
def test_the_flags_of_the_commands_in_the_readme_exist(line):
    words = shlex.split(line)
    at = next(i for i, word in enumerate(words) if word.startswith("jobs/"))
    assert (ROOT / words[at]).is_file()
    parse("", job_of(Path(words[at]).stem).KNOBS, words[at + 1 :])


def job_of(name):
    spec = importlib.util.spec_from_file_location("job", ROOT / "jobs" / f"{name}.py")
    job = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(job)
    return job


def test_the_local_commands_of_the_readme_run_as_they_stand(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with gzip.open(tmp_path / "my.jsonl.gz", "wt") as file:
        file.writelines(json.dumps({"id": i, "text": "the same few words"}) + "\n" for i in range(3))
    (tmp_path / "ids.txt").write_text("1\n")
    local = [line for line in commands() if line.startswith(".venv/bin/python jobs/")]
    assert [re.search(r"jobs/(\w+)", line)[1] for line in local] == [*JOBS_OF_THE_README]
    # In the session of the tests, since starting Spark for each is most of their time.
    for line, name in zip(local, JOBS_OF_THE_README, strict=True):
        job = job_of(name)
        function = FUNCTIONS.get(name, name)
        settings, given = parse("", job.KNOBS, shlex.split(line)[2:])
        getattr(job, function)(spark, settings, given.dry_run)
    assert read_report(str(tmp_path / "result"))["kept"] == 1
    assert read_report(str(tmp_path / "pairs-8"))["pairs_by_distance"] == {"0": 3}
    assert {row["id"] for row in Store(spark, str(tmp_path / "store")).fingerprints().collect()} == {0, 2}
    assert read_report(str(tmp_path / "quality"))["quality"][-1]["f1"] == 1.0


def test_the_tables_of_the_readme_are_those_of_the_code():
    from simhash_udf.tables import TABLES

    for table, columns in TABLES.items():
        row = next(line for line in README.splitlines() if line.startswith(f"| `{table}` |"))
        assert all(f"`{column}`" in row for column in columns)


def schedules():
    """The commands of the schedules, with a day in place of what the scheduler fills in."""
    lines = re.findall(r"&& (\.venv/bin/python jobs/.*?)(?: >> .*)?$", (ROOT / "docs" / "store.md").read_text(), re.MULTILINE)
    dag = ast.parse((ROOT / "docs" / "airflow_dag.py").read_text(encoding="utf-8"))
    calls = [node for node in ast.walk(dag) if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "BashOperator"]
    ends = [keyword.value.right.value for call in calls for keyword in call.keywords if keyword.arg == "bash_command"]
    days = (r"\$\(date \+\\%F\)", r"\{\{ ds \}\}")
    return [re.sub("|".join(days), "2026-12-01", line) for line in [*lines, *(f".venv/bin/python jobs/{end}" for end in ends)]]


@pytest.mark.parametrize("line", schedules())
def test_the_schedules_name_jobs_and_flags_that_exist(line, tmp_path, monkeypatch):
    assert len(schedules()) == 4
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)
    settings, _ = parse("", job_of(Path(words[1]).stem).KNOBS, words[2:])
    assert settings.store == "store"
    assert settings.batch in ("", "2026-12-01")
    assert settings.keep_versions in (0, 7)
