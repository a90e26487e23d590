"""Hydra's habits: its flags and signs do what they do there, or are refused in our words."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest
import yaml

from ablab.commands.cli import main
from ablab.config.grammar import malformed
from ablab.errors import BAD_INPUT, DONE, UserError
from ablab.sweep.hydra import check_hydra

MALFORMED = {
    # word -> what is wrong, and the character at which it is
    "a=b=c": "a second = at character 4",
    "seed=[1,": "[ is never closed, opened at character 6",
    "seed=${": "{ is never closed, opened at character 7",
    'outputs="abc': "a quote is never closed, opened at character 9",
    "outputs='it": "a quote is never closed, opened at character 9",
    "seed=)": ") closes nothing at character 6",
    "seed=(1]": "] closes nothing at character 8",
    "outputs=é": "'é' needs quotes at character 9",
    "outputs=a;b": "';' needs quotes at character 10",
    'outputs="a"b': "something follows the closing quote at character 12",
    "seed=sort(1,x)": "this function does not take these values",
    "x y=1": "'x y' is no key",
}


def _run(*words: str) -> tuple[int, str, str]:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = main(words)
    return code, out.getvalue(), err.getvalue()


@pytest.mark.parametrize(("word", "wrong"), MALFORMED.items())
@pytest.mark.parametrize("verb", ["train", "study"])
def test_a_malformed_word_is_told_where(verb: str, word: str, wrong: str) -> None:
    code, _, told = _run(verb, word)
    assert code == BAD_INPUT
    assert len(told.splitlines()) == 1
    assert f"{word!r}: not an override: {wrong}" in told


@pytest.mark.parametrize("character", [*"\"'[({})=;\n\\漢"])
@pytest.mark.parametrize("shape", ["seed={}", "seed=1{}1", "norm=[{}]", "seed=f({}", "{}seed=1"])
def test_no_word_is_answered_in_anothers_words(shape: str, character: str) -> None:
    word = shape.format(character)
    _, _, told = _run("train", word, "--cfg", "job")
    assert len(told.splitlines()) <= 1
    for foreign in ("viable", "mismatched", "extraneous", "EOF", "Lexer", "hydra.cc", "Traceback"):
        assert foreign not in told
    assert malformed(word)  # says something of every word


def test_cfg_prints_the_configuration_that_the_words_compose() -> None:
    code, shown, _ = _run("train", "seed=7", "norm=scalenorm", "--cfg", "job", "--resolve")
    composed = yaml.safe_load(shown)
    assert code == DONE
    assert (composed["seed"], composed["norm"]["kind"]) == (7, "scalenorm")
    assert composed["layerdrop_encoder"] == composed["layerdrop"]
    _, part, _ = _run("train", "seed=7", "norm=scalenorm", "-c", "job", "-p", "norm", "--resolve")
    assert yaml.safe_load(part) == composed["norm"]
    assert "${layerdrop}" in _run("train", "--cfg=job")[1]


def test_cfg_refuses_what_a_run_refuses() -> None:
    assert _run("train", "--cfg", "job", "layerdrop=2")[0] == BAD_INPUT


def test_plus_plus_is_the_plain_word() -> None:
    assert _run("train", "++seed=7", "--cfg", "job") == _run("train", "seed=7", "--cfg", "job")
    assert json.loads(_run("study", "++norm=pre,post", "format=json")[1])
    assert "no such key: sed" in _run("train", "++sed=7")[2]
    assert "did you mean hydra.launcher.jobs, which a sweep has (-m)?" in _run("train", "-m", "seed=1,2", "jobs=2")[2]
    assert "did you mean hydra/launcher, which a sweep has (-m)?" in _run("train", "launcher=ray")[2]
    assert "nothing to add" in _run("train", "+seed=7")[2]
    assert "train -m experiment=norms" in _run("train", "+experiment=norms")[2]


@pytest.mark.parametrize(
    ("flag", "instead"),
    [
        ("--run", "without -m"),
        ("--config-name=x", "--config-dir"),
        ("--hydra-help", "--help"),
        ("--reslove", "--resolve"),
    ],
)
def test_a_flag_that_does_not_exist_names_what_there_is(flag: str, instead: str) -> None:
    code, _, told = _run("train", flag)
    assert code == BAD_INPUT
    assert len(told.splitlines()) == 1
    assert instead in told


def test_version_and_info_name_versions_and_folders() -> None:
    _, version, _ = _run("--version")
    assert version.startswith("ablab ")
    assert _run("train", "--version")[1] == version
    info = _run("train", "--info", "norm=scalenorm")[1]
    assert version.strip() in info
    assert "conf/norm/scalenorm.yaml" in info


@pytest.mark.parametrize(
    "word", ["hydra.sweep.dir=x", "hydra.run.dir=x", "hydra.job.chdir=true", "hydra.job.name=x", "hydra.verbose=true"]
)
def test_settings_of_hydra_without_effect_are_refused(word: str) -> None:
    with pytest.raises(UserError, match="has no effect; allowed: hydra/launcher=OPTION"):
        check_hydra([word], ())


@pytest.mark.parametrize(
    ("word", "allowed"),
    [
        ("hydra/launcher=loacl", "did you mean local"),
        ("hydra.launcher.job=2", "did you mean hydra.launcher.jobs"),
        ("hydra.launcher=x", "hydra/launcher=OPTION"),
        ("hydra.launcher.jobs=[", "never closed"),
    ],
)
def test_what_hydra_would_refuse_is_refused_in_our_words(word: str, allowed: str) -> None:
    with pytest.raises(UserError, match=allowed) as refused:
        check_hydra([word], ())
    assert "\n" not in str(refused.value)


def test_settings_that_a_study_reads_are_taken() -> None:
    check_hydra(["hydra.launcher.jobs=2"], ())
