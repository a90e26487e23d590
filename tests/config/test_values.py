"""Composing quickly is composing as Hydra does."""

import subprocess
import sys

import pytest
from hydra import compose as hydra_compose
from hydra import initialize_config_dir
from omegaconf import OmegaConf

from ablab.code.folders import shipped_conf
from ablab.config.kinds import class_of
from ablab.config.overrides import parse
from ablab.config.schema import part_groups
from ablab.config.values import BEHAVIOUR, values_of, written

LINES = [
    [],
    ["seed=3"],
    ["norm=scalenorm", "layerdrop=0.2", "model=small"],
    ["layerdrop=0.2", "layerdrop_encoder=0.0", "placement=post", "norm=scalenorm"],
    ["optim.lr=${layerdrop}", "layerdrop=0.5"],
    ["drophead=vshape", "drophead.sites=[encoder,cross]", "drophead.p=1e-1"],
    ["drophead=constant", "drophead.sites=[]", "training.max_epochs=null", "logger.project='a b'"],
    ["data=multi30k", "data.path=/x/y", "data.tgt=fr"],
    ["training.max_steps=10", "training.max_steps=20", "model=base", "model=tiny"],
    ["data=text", "data.train=x/y", "optim=plateau", "pruning=search", "pruning.depths=[2,1]"],
]


@pytest.mark.parametrize("words", LINES, ids=" ".join)
def test_values_are_those_of_hydra(words):
    with initialize_config_dir(str(shipped_conf()), **BEHAVIOUR):
        theirs = hydra_compose("ablab", overrides=words)
    OmegaConf.set_struct(theirs, False)
    for group in part_groups():
        theirs[group].pop("_target_", None)
    for group in part_groups():  # what one option suggests and the chosen one does not read is left out
        for field in set(theirs[group]) - set(class_of(group, theirs[group].kind).model_fields):
            del theirs[group][field]
    ours = values_of(parse(words))
    assert written(parse(words)) == OmegaConf.to_container(theirs)
    assert ours.resolved == OmegaConf.to_container(theirs, resolve=True)


def test_one_composition_leaves_the_next_alone():
    before = values_of(parse(["norm=post"]))
    values_of(parse(["norm=post", "training.monitor=loss", "decoding.n_best=2"]))
    assert values_of(parse(["norm=post"])) == before


def test_a_server_has_read_all_that_its_runs_compose():
    """Each run of a server would read the source of every part again: a third of a second."""
    script = """
import ast
import ablab.config.warm
ast.parse = None
from ablab.config import compose
compose(['norm=rmsnorm'])
"""
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("kind", ["translation", "language_model"])
def test_a_server_has_read_the_code_behind_its_runs(kind):
    """Each run of a server would read it again for its digests: two thirds of its way to the first step."""
    script = f"""
import ast, importlib
from ablab.sweep.launchers.task import preloaded
words = ['task={kind}', 'data=numbers']
for name in preloaded(words):
    importlib.import_module(name)
ast.parse = None
from ablab.code.code import code_digest
from ablab.config import compose
from ablab.tasks.plan import plan
for stage in ('training', 'evaluation'):
    print(code_digest(stage, plan(compose(words)).recipe))
"""
    subprocess.run([sys.executable, "-c", script], check=True)
