"""The command line: verbs, help in no time, exit codes."""

import os
import re
import subprocess
import sys
import time
from importlib.metadata import PackageNotFoundError
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Literal

import pytest
from pydantic import Field

from ablab.commands.cli import main
from ablab.commands.completion import candidates
from ablab.commands.help import option_lines, overview, summary
from ablab.commands.options import ReportOptions
from ablab.config.groups import default_choices, groups
from ablab.errors import lacking
from ablab.fields import as_typed
from ablab.tasks.verbs import VERBS, Options, command_of, options_of
from ablab.transformer.config.schema import TranslationConfig
from ablab.transformer.data.numbers import Numbers
from benchmarks import outputs

ROOT = Path(__file__).parents[1]


def _process(*words: str, cwd: Path) -> tuple[subprocess.CompletedProcess[str], float]:
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    return done, time.perf_counter() - began


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"], ["help"]])
def test_the_overview_names_every_verb(words, capsys):
    assert main(words) == 0
    out = capsys.readouterr().out
    for verb in VERBS:
        assert f"ablab {verb}" in out


def test_an_unknown_verb(capsys):
    assert main(["trian"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ablab trian: no such verb; allowed: analyse, board, check, ")
    assert err.endswith("; did you mean train?\n")


@pytest.mark.parametrize(("verb", "meant"), [("runs", "ls"), ("plan", "study"), ("trian", "train")])
def test_a_verb_of_another_tool_leads_to_ours(verb, meant, capsys):
    assert main([verb]) == 2
    assert capsys.readouterr().err.endswith(f"; did you mean {meant}?\n")


def test_smoke_runs_are_listed_by_the_word_that_makes_them(tmp_path, capsys):
    (tmp_path / "smoke" / "runs").mkdir(parents=True)
    assert main(["ls", "smoke=true", f"outputs={tmp_path}"]) == 0
    assert main(["ls", f"outputs={tmp_path}/smoke"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == second == "no runs"


def test_the_package_is_a_command_too(tmp_path):
    done, _ = _process("-m", "ablab", "trian", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("words", [[], *([verb, "--help"] for verb in VERBS)])
def test_a_page_fits_the_terminal(words, columns, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    assert main(words) == 0
    lines = capsys.readouterr().out.splitlines()
    # What is typed is not folded: it would be copied with a line end in it.
    assert not [line for line in lines if len(line) > columns and "ablab" not in line]


def test_the_help_of_train_names_every_group_option_and_field(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    assert main(["train", "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    for group, options in groups().items():
        (line,) = [line for line in lines if line.split()[:1] == [group] and default_choices()[group] + "*" in line]
        shown = [word.strip(" ,") for word in line.split()[1:]]
        assert sorted(shown) == sorted([*set(options) - {default_choices()[group]}, default_choices()[group] + "*"])
    words = {line.split(":")[0].strip() for line in lines}
    fields = {name for name, _ in TranslationConfig.walk()} | {f"data.{name}" for name, _ in Numbers.walk()}
    assert {field.rpartition(".")[2] for field in fields} <= words


def test_each_verb_has_a_command_and_options():
    for verb in VERBS:
        assert callable(command_of(verb))
        assert issubclass(options_of(verb), Options)


def test_a_verb_of_a_wing_takes_one_line_of_registration(tmp_path, monkeypatch, capsys):
    """It runs, and help, completion and the schemas of outputs find it."""
    (tmp_path / "wing").mkdir()
    for name, text in WING.items():
        (tmp_path / "wing" / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(VERBS, "generate", "wing")
    assert main(["generate", "length=3"]) == 3
    assert main(["generate", "lenght=3"]) == 2
    assert "error: lenght=3: no such key; allowed: length; did you mean length?" in capsys.readouterr().err
    assert main(["generat"]) == 2
    assert "did you mean generate?" in capsys.readouterr().err
    assert main(["generate", "--help"]) == 0
    assert "length           tokens of the text (default 5)" in capsys.readouterr().out
    assert "  ablab generate ...  " in overview()
    assert candidates("ablab gen") == ["generate"]
    assert candidates("ablab generate le") == ["length="]
    assert list(outputs.models()["generate"].model_fields) == ["text"]


WING = {
    "generate": "from ablab.tasks.verbs import read_words\nfrom wing.options import GenerateOptions\n\n\n"
    "def generate(arguments):\n    return read_words(GenerateOptions, arguments).length\n",
    "options": "from ablab.tasks.verbs import Options\n\n\nclass GenerateOptions(Options):\n"
    '    """Generate text."""\n\n    usage = ("ablab generate [key=value ...]",)\n    output = "wing.outputs.Text"\n'
    '    length: int = 5\n    """tokens of the text"""\n',
    "outputs": "from pydantic import BaseModel\n\n\nclass Text(BaseModel):\n    text: str\n",
}


@pytest.mark.parametrize("program", ["ablab", "train.py"])
def test_the_page_names_the_program_that_was_typed(program, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", [f"/somewhere/{program}"])
    assert main(["train", "--help"]) == 0
    page = capsys.readouterr().out
    assert ("python train.py norm=scalenorm" in page) == (program == "train.py")
    assert ("ablab train norm=scalenorm" in page) == (program == "ablab")


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_begins_with_usage_and_the_line_of_the_overview(verb, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["train.py"])
    assert main([verb, "--help"]) == 0
    lines = capsys.readouterr().out.splitlines()
    usage = list(options_of(verb).usage)
    assert lines[: len(usage)] == usage
    first = summary(options_of(verb))
    assert " ".join(lines[len(usage) + 1 :]).startswith(first)
    assert f" ablab {verb} " in overview()
    assert first in " ".join(overview().split())


@pytest.mark.parametrize("verb", VERBS)
def test_the_page_describes_every_option_with_its_default(verb):
    for name, field in options_of(verb).model_fields.items():
        row = _row_of(name, options_of(verb))
        assert field.description, f"{name} of {verb} has no docstring"
        assert " ".join(field.description.split()) in row
        if field.is_required():
            assert "required" in row
        elif field.default not in (None, ""):
            assert f"default {as_typed(field.default)})" in row or f"{field.default}*" in row


def test_a_row_shows_choices_range_and_default():
    class Toy(Options):
        """A toy."""

        run: str
        """a run"""
        kind: Literal["one", "two"] | None = None
        """a kind"""
        share: Annotated[float, Field(gt=0, lt=1)] = 0.5
        """a share"""
        size: Annotated[int, Field(ge=2, le=9)] | None = None
        """a size"""
        fast: bool = False
        """true: fast"""

    assert list(option_lines(Toy)) == [
        "  run              a run (required)",
        "  kind             a kind (one, two)",
        "  share            a share (above 0; below 1; default 0.5)",
        "  size             a size (2 to 9)",
        "  fast             true: fast (default false)",
    ]


def _row_of(name: str, options: type[Options]) -> str:
    """The lines of one option, joined."""
    lines = list(option_lines(options))
    (start,) = [number for number, line in enumerate(lines) if line.startswith(f"  {name} ")]
    rest = takewhile(lambda line: line.startswith(" " * 19), lines[start + 1 :])
    return " ".join(" ".join([lines[start], *rest]).split())


def test_the_metrics_of_a_report_are_those_that_it_knows():
    from tests.translation import MEASURES

    for name in MEASURES:
        assert ReportOptions(metric=name).metric == name
        assert name in ReportOptions.model_json_schema()["properties"]["metric"]["description"]


def test_the_page_of_prune_lists_the_fields_of_the_typed_strategy(capsys):
    assert main(["prune", "pruning=random", "--help"]) == 0
    out = capsys.readouterr().out
    assert "  pruning.seed: 1" in out
    for option in set(groups()["pruning"]) - {"none"}:
        assert option in out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["run"], "run: no value; allowed: run=<value>"),
        (["r25ac4"], "r25ac4: a value without its key; did you mean run=r25ac4?"),
        (["run=a", "bem_size=3"], "bem_size=3: no such key; allowed: "),
        (["run=a", "beam_size=0"], "beam_size=0: allowed: greater than or equal to 1"),
        (["run=a", "length_penalty=5000"], "length_penalty=5000: allowed: less than or equal to 10"),
        (
            ["run=a", "beam_size=1", "length_penalty=1.0"],
            "length_penalty=1.0 has no effect with beam_size=1; allowed with beam_size above 1",
        ),
        (["run=a", "device=gpus"], "device=gpus: allowed: 'cpu' or 'gpu'; did you mean gpu?"),
    ],
)
def test_options_are_refused_in_one_line(words, line, capsys):
    assert main(["translate", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {line}")


@pytest.mark.parametrize("script", ["train.py", "study.py", "prune.py", "translate.py"])
def test_help_loads_nothing_heavy_and_writes_nothing(script, tmp_path):
    done, seconds = _process("-X", "importtime", str(ROOT / script), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert script in done.stdout
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "ablab.commands.help" in loaded
    assert not loaded & {"torch", "pytorch_lightning", "wandb", "matplotlib", "hydra", "sacrebleu"}
    assert seconds < 5  # under 1 on a quiet machine; this one is shared
    assert not list(tmp_path.iterdir())


def test_an_interrupt_anywhere_is_one_word(capsys, monkeypatch):
    def interrupted(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("ablab.commands.train.train", interrupted)
    assert main(["train"]) == 130
    assert capsys.readouterr().err == "stopped\n"


def test_a_programming_error_is_not_dressed_as_bad_input(monkeypatch):
    def wrong(_: object) -> int:
        raise ValueError("a bug")

    monkeypatch.setattr("ablab.commands.train.train", wrong)
    with pytest.raises(ValueError, match="a bug"):
        main(["train"])


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried\nto"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    ],
)
def test_exhausted_memory_is_one_line_with_a_way_out(error, monkeypatch, capsys):
    def exhausted(_):
        raise error

    monkeypatch.setattr("ablab.commands.train.train", exhausted)
    assert main(["train"]) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert err.endswith("; allowed: a smaller optim.batch_tokens, or the same with trainer.micro_batches=2, 4, ...\n")
    assert err.count("\n") == 1
    for verb in ("report", "ls"):  # what they read has no batches
        monkeypatch.setattr(f"ablab.commands.{verb}.{verb}", exhausted)
        assert main([verb]) == 1
        assert "optim." not in capsys.readouterr().err


def test_other_errors_of_the_program_are_not_hidden(monkeypatch):
    def wrong(_):
        raise RuntimeError("a fault")

    monkeypatch.setattr("ablab.commands.train.train", wrong)
    with pytest.raises(RuntimeError, match="a fault"):
        main(["train"])


@pytest.mark.parametrize("words", [("--help",), ("train", "--help"), ("completion", "bash"), ("help", "train")])
def test_a_reader_that_has_enough_is_no_error(words):
    """As `ablab --help | head -1`."""
    process = subprocess.Popen(
        [sys.executable, "-m", "ablab", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait() == 0


@pytest.mark.parametrize("words", [("--help",), ("completion", "bash")])
def test_a_full_disk_behind_the_output_is_one_line(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-m", "ablab", *words], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "No space left on device" in done.stderr


def test_help_of_a_verb_is_its_page(capsys):
    assert main(["help", "train"]) == 0
    page = capsys.readouterr().out
    assert main(["train", "--help"]) == 0
    assert capsys.readouterr().out == page
    assert main(["help", "nosuch"]) == 2


def test_a_folder_that_is_gone_is_one_line(tmp_path, monkeypatch, capsys):
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    here.rmdir()
    for words in (["train", "--cfg", "job"], ["study", "experiment=norms"]):
        assert main(words) == 2
        assert capsys.readouterr().err.startswith("error: the current folder is gone")


def test_the_home_folder_is_meant_where_a_shell_leaves_its_sign(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert main(["demo", "to=~/made"]) == 0
    assert (tmp_path / "home" / "made" / "runs").is_dir()
    assert main(["ls", "outputs=~/made", "limit=1"]) == 0
    assert not (tmp_path / "~").exists()


def test_an_extra_is_named_by_what_it_brings():
    """Not by `dev`, which brings all of them and the tools of tests."""
    extras = {
        "torch": "train",
        "num2words": "train",
        "pandas": "pandas",
        "wandb": "train",
        "mlflow": "mlflow",
        "ray": "ray",
    }
    for package, extra in extras.items():
        said = lacking(ModuleNotFoundError(name=f"{package}.part"))
        assert said == f"{package} is not installed; pip install 'ablab[{extra}]' brings it"
    assert lacking(ModuleNotFoundError(name="nosuch")) is None
    assert lacking(ModuleNotFoundError()) is None


def test_the_version_tells_what_is_there(monkeypatch, capsys):
    monkeypatch.setattr(
        "ablab.code.machine.version", lambda name: {"ablab": "0.1.0"}[name] if name == "ablab" else absent()
    )
    assert main(["--version"]) == 0
    assert re.fullmatch(r"ablab 0\.1\.0 \(Python [\d.]+\)\n", capsys.readouterr().out)


def absent():
    raise PackageNotFoundError


MISSING = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name in ("_lzma", "_bz2"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Missing())
import importlib.util as util
found = util.find_spec
util.find_spec = lambda name, package=None: None if name in ("_lzma", "_bz2") else found(name, package)
from ablab.commands.cli import main
sys.exit(main(["demo"]) or main(["ls", "outputs=ablab_demo", "limit=1"]) or main(["train", "--cfg", "job"]))
"""


def test_a_python_without_two_libraries_of_compression_does(tmp_path):
    """As one that was built where their headers were not."""
    done = subprocess.run([sys.executable, "-c", MISSING], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_folder_of_another_program_of_hydra_spoils_no_study_of_a_command(tmp_path, monkeypatch, capsys):
    """Its options may be called as ours are; where they are read in place of ours, that is said."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "conf" / "optim").mkdir(parents=True)
    (tmp_path / "conf" / "optim" / "adam.yaml").write_text("_target_: torch.optim.Adam\nlr: 0.1\n")
    (tmp_path / "score.py").write_text("")
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/two.yaml").write_text(
        "{question: which, command: [python, score.py, '{x}{seed}', '{result}'], inputs: [score.py],"
        " scores: {score: {better: higher}}, factors: {x: [1, 2]}, seeds: [1, 2]}"
    )
    assert main(["study", "experiment=two"]) == 0
    assert main(["train", "--cfg", "job"]) == 2
    said = capsys.readouterr().err
    assert "optim/adam.yaml stands in place of ablab's own" in said
    assert "allowed: another folder to work in" in said


def test_a_study_is_finished_whose_reader_has_enough(tmp_path):
    (tmp_path / "score.py").write_text(
        "import json, sys\njson.dump({'scores': {'score': float(sys.argv[1])}}, open(sys.argv[2], 'w'))"
    )
    (tmp_path / "experiments").mkdir()
    (tmp_path / "experiments/two.yaml").write_text(
        "{question: which, command: [python, score.py, '{x}{seed}', '{result}'], inputs: [score.py],"
        " scores: {score: {better: higher}}, factors: {x: [1, 2]}, seeds: [1, 2]}"
    )
    line = f"{sys.executable} -m ablab train -m experiment=two | head -n 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", line], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr, done.stdout.count("\n")) == (0, "", 1)
    assert len(list(tmp_path.glob("outputs/runs/*/record.json"))) == 4


def test_standard_input_may_be_closed():
    code = "import sys; from ablab.commands.cli import main; assert sys.stdin is None; main(['ls']); sys.stdin.read()"
    done = subprocess.run(["bash", "-c", f'{sys.executable} -c "{code}" <&-'], capture_output=True, text=True)
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("wanted", ["ablab.commands.cli", "omegaconf"])
def test_an_interrupt_while_the_command_imports_is_one_line(wanted):
    code = f"""
import os, signal, sys
class Pressed:
    def find_spec(self, name, path=None, target=None):
        if name == {wanted!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Pressed())
from ablab.__main__ import main
sys.exit(main(["train", "lr=1"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "stopped\n")
