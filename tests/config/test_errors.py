"""What is wrong is said in one line: the key, the value, what is allowed. Nothing is written, nothing heavy loaded."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ablab.commands.cli import main

ROOT = Path(__file__).parents[2]

BAD = {
    # words typed -> what the line must hold
    "norm=scalenrm": ["norm=scalenrm", "did you mean scalenorm?", "post, pre"],
    "norm=prenorm": ["did you mean pre?"],
    "norm=layernorm": ["did you mean pre?"],
    "norm=postnorm": ["did you mean post?"],
    "norm=": ["norm=", "scalenorm"],
    "norm=null": ["norm=null", "scalenorm"],
    "norm=Pre": ["norm=Pre", "did you mean pre?"],
    "norm=ünïcode": ["norm=ünïcode", "scalenorm"],
    "norm.kind=scalenorm": ["norm.kind=scalenorm", "norm=OPTION"],
    "norm.fixnorm=true": ["norm.fixnorm=true", "embedding=fixnorm"],
    "drophead.kind=rising": ["drophead.kind=rising", "chosen as an option"],
    "placement=pre norm=post": ["placement=pre", "norm=post means placement=post"],
    "optim=plateau schedule=noam": ["schedule=noam", "optim=plateau means schedule=plateau"],
    "norm=pre,post": ["norm=pre,post", "one value of norm"],
    "norm=glob(*)": ["norm=glob(*)", "one value of norm"],
    "seed=1,2": ["seed=1,2", "one value of seed"],
    "model.d_model=range(64,128)": ["model.d_model=range(64,128)", "one value"],
    "+norm@model=pre": ["+norm@model=pre", "norm=option"],
    "layerdrop=1.0": ["layerdrop=1.0", "less than 1"],
    "layerdrop=nan": ["layerdrop=nan", "finite"],
    "layerdrop=${model}": ["layerdrop={'d_model': 128", "...: allowed: a number"],
    "data.kind=[a]": ["data.kind=[a]", "chosen as an option", "data=option"],
    "norm=\x1b[31mpre": ["norm=\\x1b[31mpre", "scalenorm"],
    "data.path=/caf\udce9": ["data.path=/caf\\udce9: not UTF-8"],
    "layerdrop=${nope}": ["layerdrop", "${nope}"],
    "modle=base": ["modle=base", "did you mean model?"],
    "model.num_head=4": ["model.num_head=4", "did you mean model.num_heads?"],
    "model.num_heads=3": ["model.num_heads=3", "d_model=128"],
    "model.encoder_layers=0": ["model.encoder_layers=0", "greater than or equal to 1"],
    "model=5": ["model=5", "tiny"],
    "training=fast": ["training=fast", "training.max_steps"],
    "seed=abc": ["seed=abc", "a whole number"],
    "seed=-1": ["seed=-1", "greater than or equal to 0"],
    "training.precision=fp8": ["training.precision=fp8", "'fp32' or 'bf16'"],
    "training.max_steps=null": ["training.max_steps=null", "training.max_epochs"],
    "drophead=vshape training.max_steps=null training.max_epochs=1": [
        "drophead.total_steps=null",
        "training.max_steps",
    ],
    "drophead=vshape optim.warmup_steps=5000": ["drophead.warmup_steps=5000", "total_steps"],
    "drophead=constant drophead.sites=[encoder,foo]": ["drophead.sites", "foo", "'cross'"],
    "decoding.n_best=5": ["decoding.n_best=5", "beam_size=4"],
    "model.tie=all data.joint_vocab=false": ["model.tie=all", "data.joint_vocab=true", "target_output, none"],
    "optim=plateau optim.lr=null": ["optim.lr=null", "number"],
    "position=rope model.d_model=20 model.num_heads=4": ["position=rope", "must be even", "got 5"],
    "placement=deepnorm": ["placement=deepnorm", "needs init=deepnorm", "init=small"],
    "norm=deepnorm init=xavier": ["init=xavier", "norm=deepnorm means init=deepnorm"],
    "optim=cosine training.max_steps=null training.max_epochs=1": ["schedule=cosine", "training.max_steps"],
    "optim=cosine optim.warmup_steps=5000": ["schedule.warmup_steps=5000", "training.max_steps="],
    "optim=cosine optim.min_lr=1": ["schedule.min_lr=1", "at most the peak, 0.005"],
    "optim=cosine optim.lr=null optim.min_lr=1": ["schedule.min_lr=1", "at most the peak, 0.00441942"],
    "optim=cosine optim.warmup_steps=0": ["schedule.warmup_steps=0", "greater than or equal to 1"],
    "schedule.warmup_steps=0": ["schedule.warmup_steps=0", "greater than or equal to 1"],
    "logger.offline=both": ["logger.offline=both", "'events' or 'wandb'"],
    "logger.samples=-1": ["logger.samples=-1", "greater than or equal to 0"],
    "logger.mode=onlin": ["logger.mode=onlin", "'offline' or 'online'"],
    "word": ["word", "key=value"],
    "": ["key=value"],
    "=3": ["=3", "key=value"],
    "a=b=c": ["a=b=c", "key=value"],
    "data.src=[": ["data.src=[", "quotes"],
    "+new.key=1": ["new.key", "allowed"],
    "++new.key=1": ["new.key", "allowed"],
    "+seed=3": ["+seed=3", "seed=value"],
    "~norm": ["~norm", "norm=value"],
    "~seed": ["~seed", "seed=value"],
    "hydra.run.dir=elsewhere": ["hydra.run.dir=elsewhere", "outputs="],
    "hydra/launcher=basic": ["hydra/launcher=basic", "outputs="],
    "experiment=x": ["experiment=x", "ablab train -m experiment=x"],
    "data.src=xx": ["data.src=xx", "de, en"],
    "data.tgt=en": ["data.tgt", "en"],
    "data.path=here": ["data.path=here has no effect with data=numbers", "data=mtdata, multi30k"],
    "data=multi30k data.path=/nowhere": ["data.path=/nowhere", "not a folder"],
    "data=multi30k data.src=xx": ["data.src=xx", "'fr'"],
    "data.train_pairs=20001": ["data.train_pairs=20001", "20,000 training pairs", "allowed: 1 to 20000, or null"],
    "data.train_size=60 data.train_pairs=61": ["data.train_pairs=61", "60 training pairs"],
    "data.valid_pairs=501": ["data.valid_pairs=501", "500 validation pairs"],
    "data.test_pairs=1001": ["data.test_pairs=1001", "1,000 test pairs"],
    "data=multi30k data.train_pairs=29001": ["data.train_pairs=29001", "29,000 training pairs"],
    "data=multi30k data.test=test_2017_mscoco data.test_pairs=462": ["data.test_pairs=462", "461 test pairs"],
    "data=multi30k data.test=[]": ["data.test=[]", "allowed: a test set, or a list of them"],
    "data=multi30k data.test=7": ["data.test=7", "allowed: test_2016_flickr, test_2017_flickr"],
    "data=multi30k data.test=test_2016": ["data.test=test_2016", "did you mean test_2016_flickr?"],
    "data=multi30k data.test=[test_2016_flickr,x]": ["data.test=", "test_2017_flickr, test_2017_mscoco"],
    "data=multi30k data.test=[test_2016_flickr,test_2016_flickr]": ["data.test=", "each test set once"],
    "data=multi30k data.test=[test_2016_flickr,test_2017_mscoco] data.test_pairs=462": [
        "the smallest test set has 461"
    ],
    "data=multi30k data.test=test_2016_flickr,test_2017_flickr": ["one value of data.test"],
    "data=text data.test=[]": ["data.test=[]", "allowed: a test set, or a list of them"],
    "data=text": ["data.train", "corpus/train"],
    "data=text data.train=/nowhere/x": ["data.train=/nowhere/x", "no folder /nowhere"],
    "pruning=data_driven": ["pruning=data_driven", "layerdrop_rates=learned", "got uniform and 0"],
    "pruning.depths=[]": ["pruning.depths=[]", "allowed: "],
    "pruning.depths=[9]": ["pruning.depths=[9]", "allowed: 1 to"],
    "pruning=importance pruning.what=layers": ["pruning.what=layers", "allowed: pruning.what=heads"],
    "pruning=importance model.num_heads=1": ["pruning.what=heads", "model.num_heads=1", "allowed: pruning.what=layers"],
    "pruning.curves=[]": ["pruning.curves=[]", "at least 1 item"],
    "pruning.curves=[up]": ["pruning.curves.0=up", "'decoder'"],
    "trainer.devices=0": ["trainer.devices=0", "greater than or equal to 1"],
    "trainer.devices=2": ["trainer.micro_batches=1", "trainer.devices=2", "allowed: 2, 4, 6"],
    "trainer=ddp trainer.micro_batches=3": ["trainer.micro_batches=3", "trainer.devices=2"],
    "init_from=nothing": ["init_from=nothing", "no such run"],
    "outputs=": ["outputs=", "at least 1 character"],
    "outputs=/dev/null/x": ["outputs=/dev/null/x", "/dev/null is not a folder"],
}


def _train(capsys, *words) -> str:
    """The one line on the error stream, without its `error: `."""
    code = main(["train", *words])
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert err.endswith("\n")
    return err.removeprefix("error: ")


@pytest.mark.parametrize("typed", BAD)
def test_the_line_names_key_value_and_what_is_allowed(typed, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = typed.split(" ")
    line = _train(capsys, *words)
    for part in BAD[typed]:
        assert part in line
    assert not list(tmp_path.iterdir())


def test_an_output_folder_that_is_a_file(capsys, tmp_path):
    (tmp_path / "file").write_text("")
    line = _train(capsys, f"outputs={tmp_path}/file/deeper")
    assert f"{tmp_path}/file is not a folder" in line
    assert (tmp_path / "file").read_text() == ""


def test_an_output_folder_without_permission(capsys, tmp_path, monkeypatch):
    """The superuser may write anywhere, so the system's answer is played."""
    monkeypatch.setattr(os, "access", lambda path, mode: not (mode & os.W_OK))
    assert "no permission" in _train(capsys, f"outputs={tmp_path}/x")
    assert not list(tmp_path.iterdir())


def test_nothing_heavy_is_loaded_before_the_error(tmp_path):
    """The whole of it as a process: the code, one line, and what had been imported by then."""
    program = (
        "import sys; from ablab.commands.cli import main\n"
        "codes = [main(['train', *words.split()]) for words in sys.argv[1:]]\n"
        "print(codes, [name for name in ('torch', 'pytorch_lightning', 'wandb') if name in sys.modules])"
    )
    typed = [words for words in BAD if words]
    done = subprocess.run(
        [sys.executable, "-c", program, *typed],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=True,
    )
    assert done.stdout.strip() == f"{[2] * len(typed)} []"
    assert len(done.stderr.splitlines()) == len(typed)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("typed", ["norm=scale", "naïve=1", "outputs=/dev/null/x"])
def test_the_script_itself(typed, tmp_path):
    done = subprocess.run(
        [sys.executable, str(ROOT / "train.py"), typed],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert typed in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def _text(folder: Path, *, lines: int = 40, extra: int = 0) -> list[str]:
    for name in ("train", "valid", "test"):
        (folder / f"{name}.en").write_text("".join(f"red house {n}\n" for n in range(lines)))
        (folder / f"{name}.de").write_text("".join(f"rotes haus {n}\n" for n in range(lines + extra)))
    return ["data=text", *(f"data.{name}={folder}/{name}" for name in ("train", "valid", "test"))]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["data.vocab_size=5000"], ["data.vocab_size=5000", "the text gives"]),
        (["data.vocab_size=60", "data.max_tokens=1"], ["data.max_tokens=1", "no training pair"]),
    ],
    ids=["vocabulary", "overlong"],
)
def test_what_only_the_corpus_tells_is_said_before_the_run_has_a_folder(words, parts, tmp_path, capsys):
    typed = _text(tmp_path)
    line = _train_after_preparing(capsys, *typed, *words, f"outputs={tmp_path}/store")
    for part in parts:
        assert part in line
    left = {path.relative_to(tmp_path / "store") for path in (tmp_path / "store").rglob("*") if path.is_file()}
    assert all(path.suffix == ".lock" for path in left)
    assert [path for path in (tmp_path / "store" / "runs").iterdir() if path.is_dir()] == []


@pytest.mark.parametrize(
    ("extra", "word", "parts"),
    [
        (0, "data.train_pairs=41", ["data.train_pairs=41", "40 training pairs", "allowed: 1 to 40, or null"]),
        (0, "data.valid_pairs=41", ["data.valid_pairs=41", "40 validation pairs"]),
        (0, "data.test_pairs=41", ["data.test_pairs=41", "40 test pairs"]),
        (3, "data.train_pairs=40", ["train.en has 40 lines", "train.de has 43"]),
    ],
)
def test_how_many_pairs_there_are_is_said_before_anything_is_prepared(extra, word, parts, tmp_path, capsys):
    typed = _text(tmp_path, extra=extra)
    line = _train(capsys, *typed, word, f"outputs={tmp_path}/store")
    for part in parts:
        assert part in line
    assert not (tmp_path / "store").exists()


def _train_after_preparing(capsys, *words) -> str:
    code = main(["train", *words, "logger=none"])
    out, err = capsys.readouterr()
    assert code == 2
    assert out.startswith("preparing")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    return err


def test_a_gpu_that_is_not_there(tmp_path, capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    line = _train(capsys, "trainer=gpu", "smoke=true", f"outputs={tmp_path}")
    assert "trainer.accelerator=gpu" in line
    assert "allowed: cpu" in line
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_more_gpus_than_there_are(tmp_path, capsys, monkeypatch):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    code = main(["train", "trainer=ddp", "smoke=true", f"outputs={tmp_path}"])
    out, err = capsys.readouterr()
    assert (code, out) == (2, "")
    assert err == "error: trainer.devices=2: torch finds 1 here; allowed: 1 to 1\n"
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.suffix != ".lock"]
