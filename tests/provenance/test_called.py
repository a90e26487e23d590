"""What a run calls is part of its digest, or stands on the list of what decides no number, with a reason."""

import ast
import importlib
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType

import jaxtyping
import pytest

import ablab
from ablab.code.code import CHOSEN, OUTSIDE, SILENT, UNUSED, roots
from ablab.code.definitions import Sources, reached
from ablab.code.modules import Package
from ablab.code.scopes import bindings
from ablab.config import compose
from ablab.tasks.identity import curve, recipe
from tests.run.conftest import typed

PACKAGE = Path(ablab.__file__).parent

ARM = (
    *("data.train_size=100", "data.valid_size=2", "data.test_size=2", "data.vocab_size=200", "data.max_tokens=60"),
    *("optim.batch_tokens=256", "optim.warmup_steps=2", "training.max_steps=4", "training.valid_every=2"),
    *("decoding.beam_size=2", "decoding.max_extra_tokens=3", "logger=none", "trainer.threads=1"),
    *("model.d_model=16", "model.d_ff=16", "model.num_heads=2"),
    *("model.encoder_layers=2", "model.decoder_layers=1", "norm=scalenorm_fixnorm", "position=learned", "init=xavier"),
    *("layerdrop=0.3", "layerdrop_rates=learned", "drophead=vshape", "model.word_dropout=0.1", "optim=cosine"),
    *("trainer.micro_batches=2", "pruning=data_driven", "pruning.curves=[decoder,encoder]", "pruning.depths=[1]"),
)
"""Whatever can be on is on."""

STAGES = {
    "training": ("ablab.transformer.translation.training.prepare_training", "ablab.transformer.stages.train.train"),
    "evaluation": ("ablab.transformer.translation.evaluate.evaluate",),
    "curve": ("ablab.transformer.translation.prune_curve.measure",),
}


@contextmanager
def _watched(called: set[str]) -> Iterator[None]:
    """Note the functions of the package that are called, in any thread, but for what those outside call."""
    depth = threading.local()

    def note(frame, event, _):
        if event not in ("call", "return") or (name := _name(frame.f_code)) is None:
            return
        if _listed(name):
            depth.outside = getattr(depth, "outside", 0) + (1 if event == "call" else -1)
        elif not getattr(depth, "outside", 0):
            called.add(name)

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


@cache
def _name(executed: CodeType) -> str | None:
    """The dotted name of the top-level definition, or of the module where it is none; None outside the package."""
    if not executed.co_filename.startswith(str(PACKAGE)):
        return None
    defined = _defined(executed.co_filename)
    return next((name for lines, name in defined[1:] if executed.co_firstlineno in lines), defined[0][1])


@cache
def _defined(file: str) -> list[tuple[range, str]]:
    """The lines and the dotted name of the module, and of each of its definitions."""
    path = Path(file).relative_to(PACKAGE.parent).with_suffix("")
    module = ".".join(path.parts).removesuffix(".__init__")
    found = [(range(0), module)]
    for statement in ast.parse(Path(file).read_bytes()).body:
        first = min([statement.lineno, *(each.lineno for each in getattr(statement, "decorator_list", []))])
        names = bindings([statement])
        found += [(range(first, statement.end_lineno + 1), f"{module}.{name}") for name in names]
    return found


@cache
def _listed(name: str, stage: str | None = None) -> bool:
    listed = OUTSIDE if stage is None else UNUSED[stage]
    parts = name.split(".")
    return any(".".join(parts[:size]) in listed for size in range(1, len(parts) + 1))


@pytest.fixture(scope="module")
def called(tmp_path_factory) -> dict[str, set[str]]:
    """By stage, what one run of all stages calls."""
    importlib.import_module("ablab.transformer.translation.training")
    importlib.import_module("ablab.transformer.translation.prune_curve")
    found: dict[str, set[str]] = {stage: set() for stage in STAGES}
    with pytest.MonkeyPatch.context() as patch:
        for stage, places in STAGES.items():
            for place in places:
                patch.setattr(place, _wrapped(_resolved(place), found[stage]))
        # Pictures and checks of shapes take longest, and nobody looks at them here.
        patch.setattr(jaxtyping.config, "jaxtyping_disable", True)
        patch.setattr("ablab.transformer.translation.callbacks.AttentionMapCallback.on_validation", lambda *_: None)
        assert typed(*ARM, f"outputs={tmp_path_factory.mktemp('called')}").code == 0
    return found


def _resolved(place: str):
    module, _, name = place.rpartition(".")
    return getattr(sys.modules[module], name)


def _wrapped(function, calls):
    def watched(*arguments):
        with _watched(calls):
            return function(*arguments)

    return watched


@pytest.mark.parametrize("stage", STAGES)
def test_whatever_is_called_is_digested_or_listed(stage, called):
    sources = Sources(Package(PACKAGE), OUTSIDE, SILENT, registries=CHOSEN)
    config = compose(list(ARM)).config
    components = roots(stage, {**recipe(config), "pruning": curve(config)["pruning"]}, sources)
    places = [root for each in components.values() for root in each]
    digested = {key.dotted for key in reached(sources, places, UNUSED.get(stage, ()))}
    assert len(called[stage] & digested) > 50  # or nothing was watched
    modules = {key.module for key in reached(sources, places)}
    assert called[stage] - digested - modules == set()


@pytest.mark.parametrize("stage", UNUSED)
def test_what_is_called_unused_is_not_called(stage, called):
    assert {name for name in called[stage] if _listed(name, stage)} == set()


def test_every_name_on_the_lists_is_there_and_has_a_reason():
    package = Package(PACKAGE)
    for listed in (OUTSIDE, *UNUSED.values()):
        for name, reason in listed.items():
            assert package.owner(name) is not None
            assert reason
