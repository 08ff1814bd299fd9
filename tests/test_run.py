import json

import pytest

from simhash_udf.errors import OutputError
from simhash_udf.run import Run, read_manifest, table_path
from simhash_udf.settings import Settings
from simhash_udf.storage import names_in


def write_run(spark, output, value, **settings):
    with Run(spark, Settings(output=str(output), **settings), lambda line: None) as run:
        run.store("pairs", spark.createDataFrame([(value, 1)], "id_a int, id_b int"))
        run.store("between", spark.createDataFrame([(1,)], "x int"))
        assert (output / "_work" / "between").is_dir()
        run.publish({"pairs": value})
    return run


def values(spark, output):
    return [row["id_a"] for row in spark.read.parquet(table_path(str(output), "pairs")).collect()]


def test_a_finished_run_leaves_its_tables_report_and_manifest(spark, tmp_path):
    write_run(spark, tmp_path / "out", 1)
    assert names_in(str(tmp_path / "out")) == ["manifest.json", "pairs", "report.json"]
    manifest = read_manifest(str(tmp_path / "out"))
    assert manifest["tables"] == {"pairs": {"path": "pairs", "rows": 1, "schema": {"id_a": "int", "id_b": "int"}}}
    assert manifest["settings"]["max-distance"] == 6
    assert manifest["settings_id"] == "simhash64-v1/word/2/log"
    assert {"python", "spark", "simhash-udf", "numba"} <= manifest["versions"].keys()
    assert json.loads((tmp_path / "out" / "report.json").read_text())["run"] == manifest["run"]


@pytest.mark.parametrize("name", ["out", "with space", "per%20cent", "hash#", "[1]", "quote'\"", "名", "a{b}"])
def test_directories_of_any_name_work(spark, tmp_path, name):
    write_run(spark, tmp_path / name, 5)
    assert values_of_arrow(tmp_path / name) == [5]


def values_of_arrow(output):
    import pyarrow.parquet as pq

    return pq.read_table(table_path(str(output), "pairs"))["id_a"].to_pylist()


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
            run.publish({})
        assert values(spark, output) == [value]
    assert names_in(str(output)) == ["manifest.json", "report.json", "runs"]
    assert names_in(str(output / "runs")) == [run.id]


def fail_in_the_middle(spark, output):
    with Run(spark, Settings(output=str(output), if_exists="replace"), print) as run:
        run.store("pairs", spark.createDataFrame([(2, 1)], "id_a int, id_b int"))
        1 / 0  # noqa: B018


def test_a_failed_run_removes_its_own_and_leaves_an_old_result(spark, tmp_path):
    output = tmp_path / "out"
    for before in (False, True):
        if before:
            write_run(spark, output, 1)
        with pytest.raises(ZeroDivisionError):
            fail_in_the_middle(spark, output)
        assert output.exists() is before
    assert values(spark, output) == [1]
    assert names_in(str(output)) == ["manifest.json", "pairs", "report.json"]


def interrupt_after_publishing(spark, output):
    with Run(spark, Settings(output=str(output), if_exists="replace"), print) as run:
        run.store("pairs", spark.createDataFrame([(2, 1)], "id_a int, id_b int"))
        run.publish({})
        raise KeyboardInterrupt


@pytest.mark.parametrize("before", [False, True])
def test_an_error_after_the_manifest_leaves_the_new_result(spark, tmp_path, before):
    output = tmp_path / "out"
    if before:
        write_run(spark, output, 1)
    with pytest.raises(KeyboardInterrupt):
        interrupt_after_publishing(spark, output)
    assert values(spark, output) == [2]


def test_what_a_killed_run_left_is_refused_and_can_be_replaced(spark, tmp_path):
    output = tmp_path / "out"
    run = Run(spark, Settings(output=str(output)), print).__enter__()
    run.store("pairs", spark.createDataFrame([(2, 1)], "id_a int, id_b int"))
    with pytest.raises(OutputError, match="did not finish, or is still at work"):
        write_run(spark, output, 3)
    with pytest.raises(OutputError, match="has no manifest"):
        read_manifest(str(output))
    write_run(spark, output, 3, if_exists="replace")
    assert values(spark, output) == [3]


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
