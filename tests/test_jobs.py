import gzip
import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simhash_udf import fingerprint_text
from simhash_udf.core.plan import Sample, plan_search
from simhash_udf.errors import InputError, OutputError
from simhash_udf.job import describe_search, explain
from simhash_udf.manifest import read_manifest, read_report, table_path
from simhash_udf.settings import Settings
from tests.corpus import brute_force_pairs, corpus

ROOT = Path(__file__).parent.parent
JOBS = ROOT / "jobs"


def load(name, function=None):
    spec = importlib.util.spec_from_file_location(f"job_{name}", JOBS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, function or name)


dedup, fingerprint, pairs = load("dedup"), load("fingerprint"), load("pairs")
find_truth, evaluate = load("truth", "find_truth"), load("evaluate")


def command(name, *arguments, **environment):
    """Run a job as a user does, with a PATH on which this Python is not."""
    java = Path(os.environ.get("JAVA_HOME", "/usr")) / "bin"
    env = {"PATH": f"{java}:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), **environment}
    env |= {key: os.environ[key] for key in ("JAVA_HOME", "PYTHONPATH") if key in os.environ}
    words = [sys.executable, str(JOBS / f"{name}.py"), *map(str, arguments)]
    return subprocess.run(words, env=env, capture_output=True, text=True, check=False)


def read(output, name):
    return pq.read_table(table_path(str(output), name)).to_pylist()


def pairs_of(output):
    return {(row["id_a"], row["id_b"]): row["distance"] for row in read(output, "pairs")}


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "corpus.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for identity, text in corpus():
            file.write(json.dumps({"key": identity, "body": text, "n": len(text or "")}) + "\n")
    return path


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("input") / "corpus.parquet"
    ids, texts = zip(*corpus(), strict=True)
    pq.write_table(pa.table({"id": pa.array(ids), "text": pa.array(texts)}), path)
    return path


def test_a_job_runs_from_its_command_line_with_a_settings_file_and_flags(lines, tmp_path):
    (tmp_path / "s.toml").write_text('id-column = "key"\ntext-column = "body"\nmax-distance = 1\n')
    out = tmp_path / "out"
    done = command(
        "dedup", "--config", tmp_path / "s.toml", "--input", lines, "--output", out, "--max-distance", 8, PYTHONHASHSEED="1"
    )
    assert done.returncode == 0, done.stderr
    assert pairs_of(out) == brute_force_pairs({i: fingerprint_text(text) for i, text in corpus()}, 8)
    manifest, report = read_manifest(str(out)), read_report(str(out))
    assert set(manifest["tables"]) == {"rejects", "fingerprints", "fingerprint_pairs", "pairs", "clusters", "decisions", "kept"}
    assert {name: table["rows"] for name, table in manifest["tables"].items()} == {
        name: len(read(out, name)) for name in manifest["tables"]
    }
    assert (report["documents"]["documents"], report["documents"]["without_features"]) == (120, 6)
    assert sum(report["pairs_by_distance"].values()) == len(pairs_of(out))
    assert report["kept"] + report["dropped"] == 120
    assert {"id": "d000"}.keys() <= read(out, "decisions")[0].keys()
    assert set(read(out, "kept")[0]) == {"key", "body", "n"}
    assert "Traceback" not in done.stderr


def test_a_job_that_fails_says_why_in_one_line_and_exits_with_its_code(tmp_path):
    (tmp_path / "broken.jsonl").write_text('{"id": 1, "text": "a"}\n{"id": 2, "tex\n')
    done = command("dedup", "--input", tmp_path / "broken.jsonl", "--output", tmp_path / "out")
    assert done.returncode == InputError.exit_code
    assert re.search(
        r"InputError: 1 records of the input are no documents: the line is not one JSON object in .*broken.jsonl", done.stderr
    )
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--max-distance", "13"], 2, "SettingsError: max-distance is 13"),
        (["--max-distance", "three"], 2, "invalid int value"),
        (["--weighting", "idf"], 2, "invalid choice"),
        (["--config", "/nowhere.toml"], 2, "cannot be read"),
    ],
)
def test_wrong_settings_end_before_spark_starts(arguments, code, said):
    done = command("dedup", "--input", "i", "--output", "o", *arguments)
    assert done.returncode == code
    assert said in done.stderr


def test_spark_submit_runs_a_job(parquet, tmp_path):
    submit = Path(sys.executable).parent / "spark-submit"
    words = [str(submit), "--properties-file", str(ROOT / "conf" / "spark-local.conf"), str(JOBS / "fingerprint.py")]
    env = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
    words += ["--input", str(parquet), "--output", str(tmp_path / "out")]
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(read(tmp_path / "out", "fingerprints")) == len(corpus())


def test_stored_fingerprints_give_the_pairs_that_the_whole_job_gives(spark, parquet, tmp_path):
    fingerprint(spark, Settings(input=str(parquet), output=f"{tmp_path}/prints"), False)
    for settings in ({"max_distance": 3}, {"max_distance": 10}):
        out = f"{tmp_path}/{settings['max_distance']}"
        pairs(spark, Settings(input=f"{tmp_path}/prints", output=out, **settings), False)
        assert pairs_of(out) == brute_force_pairs({i: fingerprint_text(text) for i, text in corpus()}, **settings)


def test_fingerprints_of_other_settings_are_not_compared(spark, parquet, tmp_path):
    for ngram in (1, 2):
        fingerprint(spark, Settings(input=str(parquet), output=f"{tmp_path}/{ngram}", ngram=ngram), False)
    both = Settings(input=(f"{tmp_path}/1", f"{tmp_path}/2"), output=f"{tmp_path}/out")
    with pytest.raises(
        InputError, match=r"different settings cannot be compared.*/1/runs/.*word/1/binary.*/2/runs/.*word/2/binary"
    ):
        pairs(spark, both, False)


def test_files_of_one_input_that_were_made_with_other_settings_are_not_compared(spark, parquet, tmp_path):
    (tmp_path / "in").mkdir()
    for ngram in (1, 2):
        fingerprint(spark, Settings(input=str(parquet), output=f"{tmp_path}/{ngram}", ngram=ngram), False)
        for part in Path(table_path(f"{tmp_path}/{ngram}", "fingerprints")).glob("*.parquet"):
            part.rename(tmp_path / "in" / f"{ngram}-{part.name}")
    with pytest.raises(InputError, match=r"different settings.*/in/1-.*word/1/binary.*/in/2-.*word/2/binary"):
        pairs(spark, Settings(input=f"{tmp_path}/in", output=f"{tmp_path}/out"), False)


@pytest.mark.parametrize("number", [1, 2])
def test_the_manifest_of_pairs_says_what_their_fingerprints_were_made_with_and_no_more(spark, tmp_path, number):
    for at in range(number):
        rows = [{"id": f"{at}{letter}", "text": "a b"} for letter in "xy"]
        (tmp_path / f"{at}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        made = Settings(input=f"{tmp_path}/{at}.jsonl", output=f"{tmp_path}/prints{at}", unit="char", ngram=5)
        fingerprint(spark, made, False)
    pairs(spark, Settings(input=f"{tmp_path}/prints*", output=f"{tmp_path}/out", max_distance=3), False)
    manifest = read_manifest(f"{tmp_path}/out")
    assert manifest["settings_id"] == "simhash64-v1/char/5/binary"
    assert set(manifest["settings"]) == {
        "input", "output", "id-column", "fingerprint-format", "max-distance", "pairs", "max-pairs", "if-exists",
    }  # fmt: skip
    assert "max-distance" not in read_manifest(f"{tmp_path}/prints0")["settings"]


def test_fingerprints_from_elsewhere_are_compared(spark, tmp_path):
    pq.write_table(pa.table({"url": ["b", "a", "c"], "fingerprint": pa.array([-1, -2, 5])}), tmp_path / "f.parquet")
    pairs(spark, Settings(input=f"{tmp_path}/f.parquet", output=f"{tmp_path}/out", id_column="url"), False)
    assert pairs_of(tmp_path / "out") == {("a", "b"): 1}
    assert read_manifest(f"{tmp_path}/out")["settings_id"] is None


@pytest.mark.parametrize("kind", ["array<int>", "struct<a: int>", "map<string, int>", "variant"])
def test_stored_fingerprints_without_ids_of_an_atomic_type_are_refused(spark, tmp_path, kind):
    if kind == "variant" and spark.version < "4":
        pytest.skip("this Spark has no VARIANT")
    made = {"variant": "parse_json('1')", "map<string, int>": "map('a', 1)", "struct<a: int>": "struct(1 a)"}.get(
        kind, "array(1)"
    )
    spark.range(2).selectExpr(f"{made} AS id", "id AS fingerprint").write.parquet(f"{tmp_path}/in")
    with pytest.raises(InputError, match=r"column 'id' is .* an id must be of an atomic type that has an order"):
        pairs(spark, Settings(input=f"{tmp_path}/in", output=f"{tmp_path}/out"), False)


def test_stored_fingerprints_without_an_id_are_told_from_those_of_one_id(spark, tmp_path):
    pq.write_table(pa.table({"id": [None, 1, 1, None], "fingerprint": [1, 2, 3, 4]}), tmp_path / "f.parquet")
    with pytest.raises(InputError, match="column 'id' must name each document, but it is null in 2 rows"):
        pairs(spark, Settings(input=f"{tmp_path}/f.parquet", output=f"{tmp_path}/out"), False)


@pytest.mark.parametrize("column", [{"id": [1]}, {"id": [1], "fingerprint": ["fg"]}, {"name": [1], "fingerprint": [1]}])
def test_tables_that_hold_no_fingerprints_are_refused(spark, tmp_path, column):
    pq.write_table(pa.table(column), tmp_path / "f.parquet")
    with pytest.raises(InputError, match=r"fingerprint|'id'"):
        pairs(spark, Settings(input=f"{tmp_path}/f.parquet", output=f"{tmp_path}/out"), False)


def test_bad_records_are_rejected_counted_and_listed_when_asked(spark, tmp_path):
    (tmp_path / "in.jsonl").write_text(
        '{"id": "a", "text": "x y"}\n{"id": "b", "te\n{"text": "no id"}\n\n{"id": "c", "text": "x y"}\n'
    )
    dedup(spark, Settings(input=f"{tmp_path}/in.jsonl", output=f"{tmp_path}/out", on_bad_input="reject", max_rejected=0.5), False)
    rejected = sorted((row["position"], row["reason"], row["record"]) for row in read(tmp_path / "out", "rejects"))
    assert rejected == [(2, "the line is not one JSON object", '{"id": "b", "te'), (3, "the id is null", '{"text":"no id"}')]
    assert all(row["file"].endswith("in.jsonl") for row in read(tmp_path / "out", "rejects"))
    assert read_report(str(tmp_path / "out"))["documents"]["rejected"] == 2
    assert [tuple(row.items()) for row in read(tmp_path / "out", "kept")] == [(("id", "a"), ("text", "x y"))]


@pytest.mark.parametrize("ending", ["jsonl", "json.gz", "ndjson.bz2", "parquet", "jsonl.zst"])
def test_every_format_gives_the_same_fingerprints(spark, tmp_path, ending):
    rows = [{"id": f"{i}", "text": text} for i, text in enumerate(["你好 world", "plain words here", "Ünïcode ébé"])]
    raw = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    if ending == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), tmp_path / "in.parquet")
    else:
        packed = {"gz": "gzip", "bz2": "bz2", "zst": "zstd"}.get(ending.rpartition(".")[2])
        with (
            pa.CompressedOutputStream(f"{tmp_path}/in.{ending}", packed)
            if packed
            else open(f"{tmp_path}/in.{ending}", "wb") as file
        ):
            file.write(raw)
    fingerprint(spark, Settings(input=f"{tmp_path}/in.{ending}", output=f"{tmp_path}/out"), False)
    found = {row["id"]: row["fingerprint"] & (1 << 64) - 1 for row in read(tmp_path / "out", "fingerprints")}
    assert found == {row["id"]: fingerprint_text(row["text"]) for row in rows}


def test_several_inputs_and_globs_are_one_corpus(spark, tmp_path):
    for name, identity in (("a one", 1), ("b[2]", 2), ("c", 3)):
        (tmp_path / f"{name}.jsonl").write_text(json.dumps({"id": identity, "text": "same words here"}) + "\n")
    settings = Settings(input=(f"{tmp_path}/[ab]*.jsonl", f"{tmp_path}/c.jsonl"), output=f"{tmp_path}/out")
    dedup(spark, settings, False)
    assert len(read(tmp_path / "out", "pairs")) == 3


@pytest.mark.parametrize(
    ("files", "given", "said"),
    [
        ({}, "none.jsonl", "no file or directory is there"),
        ({}, ".", "no file name ends in"),
        ({}, "*.jsonl", "the glob matches nothing"),
        ({"a.txt": "x"}, "a.txt", "format .* cannot be told: no file name ends in .parquet"),
        ({"a.jsonl": "{}", "b.parquet": "x"}, ".", "both .* are there"),
        ({"a.jsonl": ""}, "a.jsonl", "has no document"),
        ({"a.jsonl": "\n\n"}, "a.jsonl", "has no document"),
        ({"a.jsonl": "not json\n"}, "a.jsonl", "has no document"),
        ({"a.parquet": "not parquet"}, "a.parquet", "cannot be read as Parquet"),
        ({"a.parquet": ""}, "a.parquet", "cannot be read as Parquet"),
        ({"a.jsonl": '{"id": 1, "text": 5}'}, "a.jsonl", "must be a string"),
        ({"a.jsonl": '{"id": 1, "body": "x"}'}, "a.jsonl", "column 'text' is not in the input, which has 'body', 'id'"),
        ({"a.jsonl": '{"id": 1, "text": "x"}\n{"id": 1, "text": "y"}'}, "a.jsonl", r"1 \(2 times\)"),
        ({"a.jsonl": '{"id": null, "text": "x"}\n{"id": 1, "text": "y"}'}, "a.jsonl", "the id is null"),
    ],
)
def test_an_input_that_cannot_be_used_is_an_error_that_says_what_to_do(spark, tmp_path, files, given, said):
    (tmp_path / "in").mkdir()
    for name, content in files.items():
        (tmp_path / "in" / name).write_text(content)
    with pytest.raises(InputError, match=said):
        dedup(spark, Settings(input=f"{tmp_path}/in/{given}", output=f"{tmp_path}/out"), False)
    assert not (tmp_path / "out").exists()


def test_a_damaged_parquet_file_is_named(spark, parquet, tmp_path):
    raw = bytearray(parquet.read_bytes())
    raw[10 : len(raw) // 2] = bytes(len(raw) // 2 - 10)
    (tmp_path / "damaged.parquet").write_bytes(raw)
    with pytest.raises(Exception) as failed:  # noqa: PT011
        dedup(spark, Settings(input=f"{tmp_path}/damaged.parquet", output=f"{tmp_path}/out"), False)
    code, message = explain(failed.value)
    assert code == InputError.exit_code
    assert "damaged.parquet cannot be read" in message
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_gone_when_it_is_read_is_an_error_of_the_input_or_of_the_output(spark, tmp_path):
    pq.write_table(pa.table({"id": [1], "text": ["x"]}), tmp_path / "a.parquet")
    frame = spark.read.parquet(f"{tmp_path}/a.parquet")
    (tmp_path / "a.parquet").unlink()
    with pytest.raises(Exception) as failed:  # noqa: PT011
        frame.collect()
    for settings in (None, Settings(input=f"{tmp_path}/*.parquet", output=f"{tmp_path}/out")):
        code, message = explain(failed.value, settings)
        assert code == InputError.exit_code
        assert "a.parquet cannot be read" in message
    code, message = explain(failed.value, Settings(input=f"{tmp_path}/in", output=str(tmp_path)))
    assert code == OutputError.exit_code
    assert "a.parquet, which this run wrote, is gone or cannot be read" in message


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (FileNotFoundError(2, "No such file or directory", "{}/in/a.jsonl"), InputError),
        (PermissionError(13, "Permission denied", "{}/in"), InputError),
        (OSError("Failed to open local file '{}/in/b/c.parquet'. Detail: [errno 5] Input/output error"), InputError),
        (PermissionError(13, "Permission denied", "{}/out/runs"), OutputError),
        (PermissionError(13, "Permission denied", "{}"), OutputError),
        (OSError(28, "No space left on device"), OutputError),
    ],
)
def test_an_error_of_the_system_is_told_by_whose_file_it_names(tmp_path, error, kind):
    given = type(error)(*(part.format(tmp_path) if isinstance(part, str) else part for part in error.args))
    if error.filename:
        given = type(error)(error.errno, error.strerror, error.filename.format(tmp_path))
    code, message = explain(given, Settings(input=f"{tmp_path}/i*", output=f"{tmp_path}/out"))
    assert (code, message.partition(":")[0]) == (kind.exit_code, kind.__name__)
    assert explain(given)[0] == OutputError.exit_code


@pytest.mark.parametrize("manifest", ["{", '{"format": 1, "tables": {}}', '{"format": 99, "tables": {}}'])
def test_an_input_whose_manifest_cannot_serve_is_an_error_of_the_input(spark, tmp_path, manifest):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "manifest.json").write_text(manifest)
    with pytest.raises(InputError, match=r"the input '.*/in' cannot be read: .*/in"):
        pairs(spark, Settings(input=f"{tmp_path}/in", output=f"{tmp_path}/out"), False)


def test_spark_that_does_not_answer_is_no_error_of_the_output():
    code, message = explain(ConnectionRefusedError(111, "Connection refused"), Settings(input="in", output="out"))
    assert code == 1
    assert "Connection refused; Spark's own process is gone" in message


def test_the_file_that_is_gone_is_found_in_what_older_spark_says():
    said = "Job aborted.\njava.io.FileNotFoundException: \nFile file:/data/in/a.parquet does not exist\n\nIt is possible"
    code, message = explain(Exception(said))
    assert code == InputError.exit_code
    assert "the file file:/data/in/a.parquet cannot be read" in message


def test_a_column_of_parquet_that_is_named_like_that_of_broken_lines_is_kept(spark, tmp_path):
    pq.write_table(pa.table({"id": [1, 2], "text": ["x", "y"], "_corrupt_record": ["mine", None]}), tmp_path / "in.parquet")
    dedup(spark, Settings(input=f"{tmp_path}/in.parquet", output=f"{tmp_path}/out"), False)
    assert sorted((row["id"], row["_corrupt_record"]) for row in read(tmp_path / "out", "kept")) == [(1, "mine"), (2, None)]


@pytest.mark.parametrize("place", ["in", "in/out", ".", "in/../in"])
@pytest.mark.parametrize("if_exists", ["fail", "replace"])
def test_an_output_over_inside_or_around_the_input_is_refused_before_anything_is_written(spark, tmp_path, place, if_exists):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"id": 1, "text": "x"}\n')
    with pytest.raises(OutputError, match="nothing was written"):
        dedup(spark, Settings(input=f"{tmp_path}/in", output=f"{tmp_path}/{place}", if_exists=if_exists), False)
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["in", "in/a.jsonl"]
    assert (tmp_path / "in" / "a.jsonl").read_text() == '{"id": 1, "text": "x"}\n'


@pytest.mark.parametrize("job", [dedup, fingerprint])
def test_a_dry_run_says_what_it_would_do_and_writes_nothing(spark, parquet, tmp_path, capsys, job):
    job(spark, Settings(input=str(parquet), output=f"{tmp_path}/out"), True)
    shown = capsys.readouterr().out
    assert all(
        word in shown for word in ("simhash64-v1/word/2/binary", str(parquet), "id                string", "fingerprints/")
    )
    assert "input of 120 rows" in shown
    assert ("chance pairs" in shown) is (job is dedup)
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_of_pairs_names_the_settings_of_the_fingerprints_read(spark, parquet, tmp_path, capsys):
    fingerprint(spark, Settings(input=str(parquet), output=f"{tmp_path}/prints", ngram=3), False)
    pairs(spark, Settings(input=f"{tmp_path}/prints", output=f"{tmp_path}/out"), True)
    shown = capsys.readouterr().out
    assert "simhash64-v1/word/3/binary" in shown
    assert "simhash64-v1/word/2/binary" not in shown
    assert "seconds expected" in shown
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("max_distance", "warned"), [(6, False), (12, True)])
def test_a_plan_warns_where_chance_pairs_outnumber_documents(max_distance, warned):
    lines = describe_search(plan_search(10_000_000, max_distance), None, cores=8)
    assert any("outnumber" in line for line in lines) is warned
    assert any("on 8 cores" in line for line in lines)


def test_hot_chunks_are_shown_with_ids_of_documents_in_them(spark):
    rows = [(f"page {i}", i) for i in range(5_000)]
    stored = spark.createDataFrame(rows, "id string, fingerprint bigint")
    taken = Sample(5_000, np.arange(5_000, dtype=np.uint64))
    plan = plan_search(5_000, 3, sample=taken, band_widths=(16, 16, 16, 16))
    lines = [line for line in describe_search(plan, stored, cores=2) if "hot chunk" in line]
    assert "bits 63 to 48 are 0000000000000000 in about 5,000 fingerprints, such as those of 'page 0', 'page 1'" in lines[0]


def test_ids_of_json_keep_all_their_digits_and_their_zeros(spark, tmp_path):
    ids = ["01", "1", "1 ", "9007199254740993"]
    (tmp_path / "s.jsonl").write_text("".join(json.dumps({"id": i, "text": "a b c"}) + "\n" for i in ids))
    numbers = [9007199254740993, 9007199254740992, -1, 18446744073709551615]
    (tmp_path / "n.jsonl").write_text("".join(json.dumps({"id": i, "text": "a b c"}) + "\n" for i in numbers))
    for name, expected in (("s", ids), ("n", numbers)):
        dedup(spark, Settings(input=f"{tmp_path}/{name}.jsonl", output=f"{tmp_path}/{name}"), False)
        assert sorted(int(row["id"]) if name == "n" else row["id"] for row in read(tmp_path / name, "decisions")) == sorted(
            expected
        )


def test_columns_of_files_with_different_columns_all_survive(spark, tmp_path):
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"id": [1], "text": ["a b"], "left": [5]}), tmp_path / "in" / "a.parquet")
    pq.write_table(pa.table({"id": [2], "text": ["c d"], "right": ["r"]}), tmp_path / "in" / "b.parquet")
    dedup(spark, Settings(input=f"{tmp_path}/in", output=f"{tmp_path}/out"), False)
    kept = {row["id"]: (row["left"], row["right"]) for row in read(tmp_path / "out", "kept")}
    assert kept == {1: (5, None), 2: (None, "r")}


def test_a_column_named_like_sparks_own_metadata_survives(spark, tmp_path):
    pq.write_table(pa.table({"id": [1], "text": ["a b"], "_metadata": [5]}), tmp_path / "in.parquet")
    dedup(spark, Settings(input=f"{tmp_path}/in.parquet", output=f"{tmp_path}/out"), False)
    assert read(tmp_path / "out", "kept") == [{"id": 1, "text": "a b", "_metadata": 5}]


def test_a_result_is_held_against_the_truth(spark, parquet, tmp_path, capsys):
    given = {"input": (str(parquet),), "if_exists": "fail"}
    result, true, quality = (str(tmp_path / name) for name in ("result", "truth", "quality"))
    dedup(spark, Settings(**given, output=result, max_distance=8, verify="jaccard", min_similarity=0.7), False)
    find_truth(spark, Settings(**given, output=true, min_similarity=0.7), False)
    assert read(true, "truth")
    evaluate(spark, Settings(input=(result,), truth=(true,), output=quality), False)
    figures = read_report(quality)["quality"]
    assert [row["distance"] for row in figures] == list(range(9))
    found, known = {tuple(sorted(pair)) for pair in pairs_of(result)}, {}
    for row in read(true, "truth"):
        known[row["id_a"], row["id_b"]] = row["similarity"]
    assert figures[-1]["found"] == figures[-1]["right"] == len(found)
    # What the check of the texts lets pass is true.
    assert found <= known.keys()
    wanted = {pair for pair, similarity in known.items() if similarity >= 0.8}
    assert figures[-1]["recall"] == pytest.approx(len(wanted & found) / len(wanted))
    assert len(capsys.readouterr().out.splitlines()) == 10
    with pytest.raises(InputError, match="the truth has no column 'jaccard3'"):
        evaluate(spark, Settings(input=(result,), truth=(true,), truth_similarity="jaccard3", output=quality + "2"), False)
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="has no manifest"):
        evaluate(spark, Settings(input=(str(tmp_path / "empty"),), truth=(true,), output=quality + "2"), False)


def test_only_documents_that_the_truth_knows_count(spark, parquet, tmp_path, caplog):
    caplog.set_level("INFO")
    table = pq.read_table(parquet)
    some = tmp_path / "some.parquet"
    pq.write_table(table.slice(0, 60), some)
    names = ("result", "part", "truth", "quality", "quality of part", "low", "other")
    result, part, true, quality, of_part, low, other = (str(tmp_path / name) for name in names)
    dedup(spark, Settings(input=(str(parquet),), output=result, max_distance=2, max_radius=8), False)
    dedup(spark, Settings(input=(str(some),), output=part, max_distance=2), False)
    find_truth(spark, Settings(input=(str(some),), output=true, min_similarity=0.7), False)
    assert len(read(true, "compared")) == 60
    evaluate(spark, Settings(input=(result,), truth=(true,), output=quality), False)
    assert "made with --max-radius" in caplog.text
    caplog.clear()
    evaluate(spark, Settings(input=(part,), truth=(true,), output=of_part), False)
    assert "--max-radius" not in caplog.text
    assert read_report(quality)["quality"] == read_report(of_part)["quality"]
    assert 0 < read_report(of_part)["quality"][-1]["found"] < len(pairs_of(result))
    find_truth(spark, Settings(input=(str(some),), output=low, min_similarity=0.8), False)
    with pytest.raises(InputError, match=r"only pairs of similarity 0.8 or more, and those of 0.7 .* --min-similarity 0.7"):
        evaluate(spark, Settings(input=(result,), truth=(low,), output=other), False)
    with pytest.raises(InputError, match="that of 2 runs"):
        evaluate(spark, Settings(input=(result,), truth=(true, low), output=other), False)
    evaluate(spark, Settings(input=(result,), truth=(low,), output=other, precision_similarity=0.8), False)


def test_a_truth_that_cannot_serve_is_refused(spark, parquet, tmp_path):
    result = str(tmp_path / "result")
    dedup(spark, Settings(input=(str(parquet),), output=result, source_column="id", max_removed=1.0), False)
    assert {row["source"] for row in read(result, "sources")} == {name for name, _ in corpus()}
    assert read_report(result)["sources"]["number"] == len(corpus())
    for table, said in (
        ({"id_a": ["a", "b"], "id_b": ["b", "a"]}, "has the pair of 'a' and 'b' more than once"),
        ({"id_a": [1], "id_b": [2]}, "column 'id_a' of the truth is bigint, and that of the result string"),
        ({"id_a": ["a"]}, "column 'id_b' of the truth is missing"),
        (
            {"id_a": ["a"] * 4, "id_b": list("bcde"), "similarity": [None, float("nan"), 1.7, 0.5]},
            "has 3 pairs whose 'similarity' is null, NaN or not from 0 to 1; mend",
        ),
    ):
        path = tmp_path / "truth.parquet"
        pq.write_table(pa.table(table), path)
        with pytest.raises(InputError, match=said):
            evaluate(spark, Settings(input=(result,), truth=(str(path),), output=str(tmp_path / "quality")), False)
    spanning = str(tmp_path / "spanning")
    dedup(spark, Settings(input=(str(parquet),), output=spanning, pairs="spanning"), False)
    with pytest.raises(InputError, match="spanning pairs, which tell nothing of recall"):
        evaluate(spark, Settings(input=(spanning,), truth=(str(path),), output=str(tmp_path / "quality")), False)
