from importlib import metadata

import pytest

from simhash_udf import storage
from simhash_udf.checksums import checksum_of
from simhash_udf.errors import IncompleteResult, OutputError
from simhash_udf.manifest import read_manifest, read_report, table_path
from simhash_udf.run import Run
from simhash_udf.settings import Settings
from simhash_udf.storage import names_in


def write_run(spark, output, value, **settings):
    with Run(spark, Settings(output=str(output), **settings), lambda line: None) as run:
        run.store("pairs", spark.createDataFrame([(value, 1)], "id_a int, id_b int"))
        run.store("between", spark.createDataFrame([(1,)], "x int"))
        assert (output / "runs" / run.id / "_work" / "between").is_dir()
        run.publish({"pairs": value}, ["max_distance", "input"], "simhash64-v1/word/2/binary")
    return run


def values(spark, output):
    return [row["id_a"] for row in spark.read.parquet(table_path(str(output), "pairs")).collect()]


def check_whole(output, run):
    """The output holds the result of one run, and nothing else."""
    assert names_in(str(output)) == ["manifest.json", "runs"]
    assert names_in(str(output / "runs")) == [run.id]
    assert names_in(str(output / "runs" / run.id)) == ["inputs.json", "pairs", "report.json", "stages"]


def test_a_finished_run_leaves_its_tables_report_and_manifest(spark, tmp_path):
    run = write_run(spark, tmp_path / "out", 1)
    check_whole(tmp_path / "out", run)
    manifest = read_manifest(str(tmp_path / "out"))
    assert manifest["run"] == run.id
    assert manifest["report"] == f"runs/{run.id}/report.json"
    told = {"path": f"runs/{run.id}/pairs", "rows": 1, "schema": {"id_a": "int", "id_b": "int"}}
    assert manifest["tables"]["pairs"].pop("checksum") == checksum_of(spark.createDataFrame([(1, 1)], "id_a int, id_b int"))
    assert manifest["tables"] == {"pairs": told}
    assert manifest["inputs"] == {"files": 0, "bytes": 0, "listing": f"runs/{run.id}/inputs.json"}
    assert manifest["settings"] == {"max-distance": 6, "input": []}
    assert manifest["settings_id"] == "simhash64-v1/word/2/binary"
    assert {"python", "spark", "simhash-udf", "numba"} <= manifest["versions"].keys()
    report = read_report(str(tmp_path / "out"))
    assert (report["run"], report["pairs"]) == (run.id, 1)


@pytest.mark.parametrize("name", ["out", "with space", "per%20cent", "hash#", "[1]", "quote'\"", "名", "a{b}"])
def test_directories_of_any_name_work(spark, tmp_path, name):
    write_run(spark, tmp_path / name, 5)
    assert values_of_arrow(tmp_path / name) == [5]


def values_of_arrow(output):
    import pyarrow.parquet as pq

    return pq.read_table(table_path(str(output), "pairs"))["id_a"].to_pylist()


def test_a_discarded_table_is_gone_from_the_work_directory_and_no_result_is(spark, tmp_path):
    output = tmp_path / "out"
    with Run(spark, Settings(output=str(output)), print) as run:
        for name in ("pairs", "between", "other"):
            run.store(name, spark.range(1))
        for name in ("pairs", "between"):
            run.discard(name)
        place = output / "runs" / run.id
        assert [path.name for path in (place / "_work").iterdir()] == ["other"]
        assert (place / "pairs").is_dir()


def test_a_result_of_inputs_that_changed_meanwhile_is_not_published(spark, tmp_path):
    given = tmp_path / "in.jsonl"
    given.write_text("{}\n")
    run = Run(spark, Settings(input=str(given), output=f"{tmp_path}/out"), print).__enter__()
    given.write_text("{}\n{}\n")
    with pytest.raises(IncompleteResult, match="an input changed while the job read it") as changed:
        run.publish({}, [], None)
    end(run, changed.value)
    assert not (tmp_path / "out").exists()


def test_an_existing_result_is_refused_and_untouched(spark, tmp_path):
    write_run(spark, tmp_path / "out", 1)
    with pytest.raises(OutputError, match=r"holds a finished result.*--if-exists replace"):
        write_run(spark, tmp_path / "out", 2)
    assert values(spark, tmp_path / "out") == [1]


def test_a_result_is_replaced_only_when_the_new_one_is_complete(spark, tmp_path):
    output = tmp_path / "out"
    for value in (1, 2, 3):
        settings = Settings(output=str(output), if_exists="replace")
        with Run(spark, settings, lambda line: None) as run:
            run.store("pairs", spark.createDataFrame([(value, 1)], "id_a int, id_b int"))
            if value > 1:
                assert values(spark, output) == [value - 1]
            run.publish({}, [], None)
        assert values(spark, output) == [value]
        check_whole(output, run)


def fail_in_the_middle(spark, output):
    with Run(spark, Settings(output=str(output), if_exists="replace"), print) as run:
        run.store("pairs", spark.createDataFrame([(2, 1)], "id_a int, id_b int"))
        1 / 0  # noqa: B018


def test_a_failed_run_removes_its_own_and_leaves_an_old_result(spark, tmp_path):
    output = tmp_path / "out"
    for before in (False, True):
        if before:
            run = write_run(spark, output, 1)
        with pytest.raises(ZeroDivisionError):
            fail_in_the_middle(spark, output)
        assert output.exists() is before
    assert values(spark, output) == [1]
    check_whole(output, run)


def interrupt_after_publishing(spark, output):
    with Run(spark, Settings(output=str(output), if_exists="replace"), print) as run:
        run.store("pairs", spark.createDataFrame([(2, 1)], "id_a int, id_b int"))
        run.publish({}, [], None)
        raise KeyboardInterrupt


@pytest.mark.parametrize("before", [False, True])
def test_an_error_after_the_manifest_leaves_the_new_result(spark, tmp_path, before):
    output = tmp_path / "out"
    if before:
        write_run(spark, output, 1)
    with pytest.raises(KeyboardInterrupt):
        interrupt_after_publishing(spark, output)
    assert values(spark, output) == [2]


def test_an_error_after_the_manifest_does_not_say_that_nothing_was_published(spark, tmp_path):
    said = []
    for publishes in (True, False):
        run = Run(spark, Settings(output=str(tmp_path / "out"), if_exists="replace"), said.append).__enter__()
        if publishes:
            run.publish({}, [], None)
        end(run, KeyboardInterrupt())
    assert [line.rpartition("; ")[2] for line in said] == [
        "it had published its result, which is complete",
        "it published nothing",
    ]


def begin(spark, output, value, if_exists="replace"):
    """A run at work, which has written a table and one between stages."""
    run = Run(spark, Settings(output=str(output), if_exists=if_exists), print).__enter__()
    run.store("pairs", spark.createDataFrame([(value, 1)], "id_a int, id_b int"))
    run.store("between", spark.createDataFrame([(1,)], "x int"))
    return run


@pytest.fixture
def killed(monkeypatch):
    """All runs that a marker names are taken to have been killed."""
    monkeypatch.setattr("simhash_udf.output.is_alive", lambda output: False)


def end(run, error=None):
    run.__exit__(None if error is None else type(error), error, None)


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("marker", ["as it was", "gone", "damaged"])
def test_what_killed_runs_left_is_refused_and_can_be_replaced(spark, tmp_path, killed, before, marker):
    output = tmp_path / "out"
    if before:
        write_run(spark, output, 1)
    for _ in range(2):
        begin(spark, output, 2)
    (output / ("manifest.json." + "0a" * 16 + ".tmp")).write_text("{")
    if marker == "gone":
        (output / "_run.json").unlink()
    elif marker == "damaged":
        (output / "_run.json").write_text("")
    with pytest.raises(OutputError, match=r"--if-exists replace"):
        write_run(spark, output, 3)
    if before:
        assert values(spark, output) == [1]
    else:
        with pytest.raises(OutputError, match="has no manifest"):
            read_manifest(str(output))
    run = write_run(spark, output, 3, if_exists="replace")
    assert values(spark, output) == [3]
    check_whole(output, run)


@pytest.mark.parametrize("if_exists", ["fail", "replace", "resume"])
def test_a_second_run_is_refused_while_one_is_at_work(spark, tmp_path, if_exists):
    run = begin(spark, tmp_path / "out", 1)
    with pytest.raises(OutputError, match=f"run '{run.id}' is at work; one run at a time"):
        write_run(spark, tmp_path / "out", 2, if_exists=if_exists)
    run.publish({}, [], None)
    end(run)
    assert values(spark, tmp_path / "out") == [1]


@pytest.mark.parametrize("tries", ["to publish", "to store", "nothing"])
@pytest.mark.parametrize("when", ["before", "after", "ended"])
def test_of_two_runs_the_one_that_took_over_publishes_and_the_other_harms_nothing(spark, tmp_path, killed, tries, when):
    output = tmp_path / "out"
    first = begin(spark, output, 1, if_exists="fail")
    second = begin(spark, output, 2)

    def first_fails():
        error = ZeroDivisionError()
        if tries != "nothing":
            with pytest.raises(OutputError, match=f"'{first.id}'.*taken it over") as failed:
                first.publish({}, [], None) if tries == "to publish" else first.store("kept", spark.range(1))
            error = failed.value
        end(first, error)

    if when == "before":
        first_fails()
    second.publish({}, [], None)
    if when == "after":
        first_fails()
    end(second)
    if when == "ended":
        first_fails()
    assert values(spark, output) == [2]
    assert read_report(str(output))["run"] == second.id
    check_whole(output, second)


def test_a_run_that_takes_over_while_another_publishes_keeps_its_directory(spark, tmp_path, killed, monkeypatch):
    output = tmp_path / "out"
    first = begin(spark, output, 1)
    write_text, second = storage.write_text, []

    def written(path, text):
        write_text(path, text)
        if path.endswith("manifest.json") and not second:
            second.append(begin(spark, output, 2))

    monkeypatch.setattr(storage, "write_text", written)
    first.publish({}, [], None)
    end(first)
    assert values(spark, output) == [1]
    second[0].publish({}, [], None)
    end(second[0])
    assert values(spark, output) == [2]
    check_whole(output, second[0])


def test_what_cannot_be_removed_after_publishing_is_told_and_no_error(spark, tmp_path, monkeypatch):
    output, said = tmp_path / "out", []
    write_run(spark, output, 1)
    with Run(spark, Settings(output=str(output), if_exists="replace"), said.append) as run:
        run.store("pairs", spark.createDataFrame([(2, 1)], "id_a int, id_b int"))
        with monkeypatch.context() as broken:
            broken.setattr(storage, "remove", lambda path: (_ for _ in ()).throw(PermissionError("not yours")))
            run.publish({}, [], None)
    assert values(spark, output) == [2]
    assert any("could not be removed (not yours); remove it by hand" in line for line in said)


@pytest.mark.parametrize("name", ["runs/mine/data", "table.crc", "note.tmp", "manifest.json.tmp", "mine." + "0" * 32 + ".tmp"])
def test_files_like_ours_that_are_not_ours_are_never_touched(spark, tmp_path, name):
    output = tmp_path / "out"
    write_run(spark, output, 1)
    (output / name).parent.mkdir(parents=True, exist_ok=True)
    (output / name).write_text("mine")
    with pytest.raises(OutputError, match="it is left as it is"):
        write_run(spark, output, 2, if_exists="replace")
    assert (output / name).read_text() == "mine"


@pytest.mark.parametrize("if_exists", ["fail", "replace"])
@pytest.mark.parametrize("beside", [[], ["manifest.json"]])
def test_a_directory_with_foreign_files_is_never_touched(spark, tmp_path, if_exists, beside):
    for name in ["precious.txt", *beside]:
        (tmp_path / name).write_text("mine")
    with pytest.raises(OutputError, match=r"'precious\.txt'; it is left as it is"):
        write_run(spark, tmp_path, 1, if_exists=if_exists)
    assert (tmp_path / "precious.txt").read_text() == "mine"


def test_a_file_in_the_place_of_the_output_is_refused(spark, tmp_path):
    (tmp_path / "out").write_text("mine")
    with pytest.raises(OutputError, match="is a file"):
        write_run(spark, tmp_path / "out", 1, if_exists="replace")


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("{", "not whole"),
        ("[]", "not whole"),
        ('{"tables": {"pairs": {"path": "../other"}}}', "outside of the output"),
        ('{"tables": {"pairs": {"path": "/etc"}}}', "outside of the output"),
        ('{"tables": {"pairs": {"path": ""}}}', "nowhere in it"),
        ('{"tables": {"pairs": {"path": "."}}}', "nowhere in it"),
        ('{"tables": {"pairs": {"path": "runs/./x"}}}', "nowhere in it"),
        ('{"tables": {}, "report": "../report.json"}', "outside of the output"),
        ('{"tables": {}, "format": 99}', "format 99"),
    ],
)
def test_a_manifest_that_cannot_be_trusted_is_refused(tmp_path, manifest, said):
    (tmp_path / "manifest.json").write_text(manifest)
    with pytest.raises(OutputError, match=said):
        read_manifest(str(tmp_path))


def test_a_table_that_is_not_there_is_named(spark, tmp_path):
    write_run(spark, tmp_path / "out", 1)
    with pytest.raises(OutputError, match="no table 'kept'; it has pairs"):
        table_path(str(tmp_path / "out"), "kept")


def test_a_package_without_metadata_is_of_unknown_version(spark, tmp_path, monkeypatch):
    def version(name):
        if name == "simhash-udf":
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(metadata, "version", version)
    write_run(spark, tmp_path / "out", 1)
    versions = read_manifest(str(tmp_path / "out"))["versions"]
    assert (versions["simhash-udf"], versions["numpy"]) == ("unknown", "1.0")
