import dataclasses
from pathlib import Path

import pytest

from simhash_udf.command_line import parse, toml_template
from simhash_udf.errors import SettingsError
from simhash_udf.knob_values import flag
from simhash_udf.settings import DEDUP_KNOBS, Settings

KNOBS = DEDUP_KNOBS
TEMPLATE = Path(__file__).parent.parent / "conf" / "dedup.toml"


def test_defaults_are_what_the_readme_says():
    settings = Settings()
    assert (settings.unit, settings.ngram, settings.weighting, settings.max_distance) == ("word", 2, "binary", 6)
    assert (settings.pairs, settings.max_pairs, settings.on_bad_input, settings.if_exists) == ("all", 100_000_000, "fail", "fail")


def test_every_knob_has_a_help_sentence():
    assert all(knob.metadata["help"].endswith(".") for knob in dataclasses.fields(Settings))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"max_distance": 13}, "max-distance is 13; it must be a whole number from 0 to 12"),
        ({"max_distance": -1}, "from 0 to 12"),
        ({"max_distance": 3.0}, "max-distance is 3.0; it must be a whole number"),
        ({"max_distance": True}, "whole number"),
        ({"unit": "line"}, "unit is 'line'; it must be one of word, char"),
        ({"ngram": 0}, "ngram is 0; it must be a whole number from 1"),
        ({"weighting": 3}, "weighting is 3; it must be a text"),
        ({"max_pairs": -1}, "max-pairs is -1; it must be 0 or more"),
        ({"input": (1,)}, "input is"),
        ({"if_exists": "append"}, "fail, replace"),
        ({"keep": "quality desc,, id"}, "keep is 'quality desc,, id', where a column is missing; .*such as 'quality desc"),
        ({"keep": ""}, "a column is missing"),
        ({"keep": "id asc, id desc"}, "a column comes twice"),
        ({"also_at": "3,9"}, "also-at is '3,9'; it must be whole numbers from 0 to max-distance, 6"),
        ({"also_at": "3;4"}, "also-at is '3;4'"),
        ({"max_radius": 65}, "max-radius is 65; it must be from 0 to 64"),
        ({"min_similarity": 1.5}, "min-similarity is 1.5; it must be from 0 to 1"),
        ({"max_removed": float("nan")}, "max-removed is nan; it must be from 0 to 1"),
        ({"min_similarity": "0.5"}, "it must be a number"),
        ({"min_features": -1}, "min-features is -1; it must be 0 or more"),
        ({"verify_ngram": 0}, "verify-ngram is 0; it must be from 1 to 100"),
        ({"verify": "cosine"}, "it must be one of none, sketch, jaccard, containment"),
        ({"verify": "jaccard", "features_column": "f"}, "with features-column it must be none"),
        ({"verify": "sketch", "features_column": "f"}, "with features-column it must be none"),
        ({"fingerprint": "minhash", "features_column": "f"}, "with features-column it must be simhash"),
        ({"recall_similarity": 0.5}, "recall-similarity is 0.5 and precision-similarity 0.7; it must be at least as much"),
        ({"fingerprint": "minhash", "weighting": "log"}, "weighting is .log.; with fingerprint minhash, which knows no weights"),
        ({"fingerprint": "md5"}, "fingerprint is 'md5'; it must be one of simhash, minhash"),
    ],
)
def test_a_wrong_value_is_refused_with_what_it_may_be(wrong, said):
    with pytest.raises(SettingsError, match=said):
        Settings(**wrong)


def test_a_keep_rule_names_columns_in_an_order():
    settings = Settings(keep="  page rank DESC,Length asc, desc, length")
    assert settings.keep_order == (("page rank", True), ("Length", False), ("desc", False), ("length", False))
    assert settings.keep_columns == ("page rank", "Length", "desc")


def test_flags_win_over_the_file_and_the_file_over_defaults(tmp_path):
    (tmp_path / "s.toml").write_text('input = ["a", "b"]\nmax-distance = 3\nngram = 1\n')
    settings, given = parse("", KNOBS, ["--config", f"{tmp_path}/s.toml", "--output", "o", "--max-distance", "8", "--dry-run"])
    assert (settings.input, settings.output, settings.max_distance, settings.ngram) == (("a", "b"), "o", 8, 1)
    assert given.dry_run


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("max-distanse = 3", "did you mean 'max-distance'"),
        ("max_distance = 3", "did you mean 'max-distance'"),
        ("zzz = 1", "the keys are input, output"),
        ("ngram = ", "is not TOML"),
        ('ngram = "2"', "ngram is '2'; it must be a whole number"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path, content, said):
    (tmp_path / "s.toml").write_text(content)
    with pytest.raises(SettingsError, match=said):
        parse("", KNOBS, ["--config", f"{tmp_path}/s.toml", "--input", "i", "--output", "o"])


def test_a_file_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(SettingsError, match="cannot be read"):
        parse("", KNOBS, ["--config", f"{tmp_path}/none.toml", "--input", "i", "--output", "o"])


@pytest.mark.parametrize("arguments", [[], ["--input", "i"], ["--output", "o"], ["--no-such-flag"], ["--max-dist", "3"]])
def test_a_command_line_that_lacks_something_exits_with_2(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        parse("", KNOBS, arguments)
    assert ended.value.code == 2
    assert "error" in capsys.readouterr().err


def test_help_names_every_knob(capsys):
    with pytest.raises(SystemExit):
        parse("", KNOBS, ["--help"])
    shown = capsys.readouterr().out
    assert all(f"--{flag(name)}" in shown for name in KNOBS)


def test_the_settings_file_in_conf_is_the_template():
    assert TEMPLATE.read_text(encoding="utf-8") == toml_template()


def test_the_settings_file_gives_the_defaults_when_its_keys_are_uncommented(tmp_path):
    lines = [line.removeprefix("# ") if " = " in line else line for line in toml_template().splitlines()]
    (tmp_path / "s.toml").write_text("\n".join(lines))
    settings, _ = parse("", KNOBS, ["--config", f"{tmp_path}/s.toml", "--input", "i", "--output", "o"])
    assert settings == Settings(input=("i",), output="o")


def test_the_settings_id_tells_all_that_changes_a_fingerprint_and_nothing_else():
    ids = {Settings(unit=u, ngram=n, weighting=w).fingerprint_id for u in ("word", "char") for n in (1, 2) for w in ("tf", "log")}
    assert len(ids) == 8
    assert Settings(max_distance=9, output="x").fingerprint_id == Settings().fingerprint_id
    assert Settings(features_column="f").fingerprint_id == "simhash64-v1/features"
    assert Settings(fingerprint="minhash", ngram=3).fingerprint_id == "minhash64-v1/word/3"
    assert Settings(verify="sketch").fingerprint_id == Settings().fingerprint_id


def test_what_is_left_out_after_the_search_needs_all_pairs_from_it():
    assert Settings(pairs="spanning").searches_spanning
    for more in ({"within": "a"}, {"verify": "jaccard"}, {"verify": "sketch"}, {"also_at": "3"}):
        assert not Settings(pairs="spanning", **more).searches_spanning
    assert Settings(also_at="5, 3,5").smaller_distances == (3, 5)
    assert Settings(min_similarity=1).min_similarity == 1.0
