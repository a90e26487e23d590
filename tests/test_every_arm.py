"""Every arm, without LayerDrop and DropHead and with both, trains for 50 steps and translates."""

import math

import pytest

from ablab.config import compose
from ablab.config.groups import groups
from ablab.run import run
from ablab.store.metrics import read_metrics
from ablab.tasks.plan import plan
from ablab.tracking.console import Console

ARMS = {
    **{f"norm={norm}": "" for norm in groups()["norm"]},
    **{f"placement={placement}": "" for placement in groups()["placement"] if placement != "deepnorm"},
    **{f"feed_forward={kind}": "" for kind in groups()["feed_forward"]},
    **{f"position={kind}": "" for kind in groups()["position"]},
    **{f"optim={kind}": "" for kind in ("adamw", "muon")},
    "schedule=wsd": "schedule.decay_share=0.5",
}
"""Words that make an arm, and what is typed besides."""

OFTEN = ("norm=pre", "norm=scalenorm_fixnorm", "position=rope", "optim=muon")
"""Trained in every run of the tests; the others among the slow ones."""

SENTENCES = [
    ("a dog runs in the snow", "ein hund rennt im schnee"),
    ("a cat sleeps on the sofa", "eine katze schläft auf dem sofa"),
    ("two men play football", "zwei männer spielen fussball"),
    ("a woman reads a book", "eine frau liest ein buch"),
    ("children play in the park", "kinder spielen im park"),
    ("the man drinks coffee", "der mann trinkt kaffee"),
]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for split in ("train", "valid", "test"):
        for side, language in enumerate(("en", "de")):
            lines = "".join(f"{pair[side]}\n" for pair in SENTENCES)
            (folder / f"{split}.{language}").write_text(lines, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    ("layerdrop", "drophead"),
    [pytest.param(0.0, "drophead=none", marks=pytest.mark.slow), (0.2, "drophead=vshape drophead.p=0.2")],
)
@pytest.mark.parametrize("arm", [arm if arm in OFTEN else pytest.param(arm, marks=pytest.mark.slow) for arm in ARMS])
def test_an_arm_trains_and_translates(arm, layerdrop, drophead, text, tmp_path):
    words = f"""
        pruning=none data=text data.train={text}/train data.valid={text}/valid data.test={text}/test data.vocab_size=80
        data.max_tokens=60 model.d_model=32 model.d_ff=64 model.encoder_layers=2 model.decoder_layers=2
        optim.lr=0.005 schedule.warmup_steps=10 optim.batch_tokens=120 training.max_steps=50 training.valid_every=25
        {arm} {ARMS[arm]} layerdrop={layerdrop} {drophead}
        logger=none trainer.threads=1 trainer.progress=false outputs={tmp_path}
    """.split()
    planned = plan(compose(words))
    record = run(planned, Console(bars=False))
    assert record is not None
    assert record.cost.steps == 50
    rows = read_metrics(planned.folder.metrics)
    losses = [row["loss"] for row in rows if "loss" in row]
    assert all(math.isfinite(loss) for loss in losses)
    assert losses[-1] < losses[0]
    # Nothing but the record's own verdict may differ between arms: all of them are scored.
    evaluation = planned.folder.evaluation(planned.evaluation_id)
    assert evaluation is not None
    assert evaluation.sentences == len(SENTENCES)
    assert [len(row) for row in evaluation.items["bleu"]] == [10] * len(SENTENCES)
    rates = [row["drophead"] for row in rows if "drophead" in row]
    assert (max(rates) > 0) == ("vshape" in drophead)
