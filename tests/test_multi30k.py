"""What only real text can show; ABLAB_MULTI30K names the folder."""

import os
from pathlib import Path

import pytest

from ablab.config import compose
from ablab.transformer.data.prepared import prepare
from ablab.transformer.translation.training import build_steps

FOLDER = os.environ.get("ABLAB_MULTI30K")


@pytest.mark.multi30k
@pytest.mark.skipif(FOLDER is None, reason="ABLAB_MULTI30K names no folder")
@pytest.mark.parametrize("tgt", ["de", "fr"])
def test_padding_is_below_a_twentieth(tgt, tmp_path: Path):
    for size in ("tiny", "small"):
        config = compose(["data=multi30k", f"data.path={FOLDER}", f"data.tgt={tgt}", f"model={size}"]).config
        steps = build_steps(config, prepare(config.data, tmp_path, lambda line: None))
        assert len(steps.src) == 29_000
        assert steps.padding_share() < 0.05
