"""Each norm, and each regulariser, learns to write digits backwards: the whole chain works, not just its parts."""

import numpy as np
import pytest

from ablab.config import compose
from ablab.config.groups import groups
from ablab.run import run
from ablab.tasks.plan import plan
from ablab.tracking.console import Console


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("digits")
    rng = np.random.default_rng(0)
    for split, count in (("train", 4000), ("valid", 50), ("test", 100)):
        lines = [rng.integers(0, 10, size=rng.integers(4, 9)).tolist() for _ in range(count)]
        for language, order in (("xx", 1), ("yy", -1)):
            text = "".join(" ".join(str(digit) for digit in line[::order]) + "\n" for line in lines)
            (folder / f"{split}.{language}").write_text(text)
    return folder


SLOW_LEARNERS = {"norm=deepnorm": 1800, "norm=dyt": 1200, "layerdrop=0.1": 1200}
"""Steps of arms that learn more slowly than the others at the rate that all share."""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arm",
    [*(f"norm={norm}" for norm in groups()["norm"]), "layerdrop=0.1", "drophead=vshape", "position=learned"],
)
def test_an_arm_learns_to_reverse(arm, digits, tmp_path):
    words = f"""
        data=text data.src=xx data.tgt=yy data.train={digits}/train data.valid={digits}/valid data.test={digits}/test
        data.vocab_size=16 data.max_tokens=60 model.d_model=64 model.d_ff=128 model.encoder_layers=2
        model.decoder_layers=2 model.dropout=0.0 optim.lr=0.003 schedule.warmup_steps=100 optim.batch_tokens=800
        training.max_steps={SLOW_LEARNERS.get(arm, 600)} training.valid_every=200 logger=none trainer.progress=false
        outputs={tmp_path} {arm}
    """.split()
    planned = plan(compose(words))
    record = run(planned, Console(bars=False))
    assert record is not None
    assert record.state == "finished"
    evaluation = planned.folder.evaluation(planned.evaluation_id)
    assert evaluation is not None
    # A model that cannot tell positions scores about 5.
    assert evaluation.scores["bleu"] > 70
