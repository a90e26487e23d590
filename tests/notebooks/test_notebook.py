"""The notebook runs from the store to the figures, on a study of runs of 100 steps."""

import os
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from ablab.commands.cli import main
from tests.made_once import made_once

NOTEBOOK = Path(__file__).parents[2] / "docs" / "notebooks" / "from_store_to_figures.ipynb"
EXPERIMENT = """
question: Does the notebook run?
common:
  [training.max_steps=100, training.valid_every=50, optim.lr=0.01, optim.batch_tokens=256, schedule.warmup_steps=20,
   data.vocab_size=120, data.max_tokens=60, data.train_size=300, data.valid_size=4, data.test_size=4, model.d_model=16,
   model.d_ff=32, model.num_heads=2, model.encoder_layers=2, model.decoder_layers=2, trainer.threads=1, logger=none]
factors: {norm: [pre, scalenorm], layerdrop: [0, 0.1]}
seeds: [1]
"""


def _make(place: Path) -> None:
    (place / "short.yaml").write_text(EXPERIMENT)
    words = [f"experiment={place / 'short.yaml'}", f"outputs={place / 'outputs'}"]
    assert main(["train", "-m", *words]) == 0


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::PendingDeprecationWarning")
def test_every_cell_of_the_notebook_runs(tmp_path_factory, monkeypatch):
    place, _ = made_once("notebook", _make, tmp_path_factory)
    monkeypatch.delenv("MPLBACKEND", raising=False)  # the training above has set it, and the kernel would draw nothing
    monkeypatch.setenv("ABLAB_STORE", str(place / "outputs"))
    monkeypatch.setenv("ABLAB_STUDY", str(place / "short.yaml"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["src", os.environ.get("PYTHONPATH", "")]))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(NOTEBOOK, 4)
    NotebookClient(notebook, timeout=250, resources={"metadata": {"path": str(place)}}).execute()
    figures = [out for cell in notebook.cells for out in cell.get("outputs", []) if "image/png" in out.get("data", {})]
    assert len(figures) == 2
    (means,) = [
        cell.outputs[0].data["text/plain"]
        for cell in notebook.cells
        if ".groupby(" in cell.source and ".agg(" in cell.source
    ]
    rows = [line.split() for line in means.splitlines()[2:]]
    assert {row[0] for row in rows} == {
        f"norm={norm},layerdrop={p}" for p in ("0", "0.1") for norm in ("pre", "scalenorm")
    }
    assert {row[-1] for row in rows} == {"1"}, "a mean is of the runs of one arm"


def test_the_notebook_is_committed_with_its_outputs():
    cells = [cell for cell in nbformat.read(NOTEBOOK, 4).cells if cell.cell_type == "code"]
    assert all(cell.execution_count for cell in cells)
    assert sum("image/png" in out.get("data", {}) for cell in cells for out in cell.outputs) == 2
    assert not [out for cell in cells for out in cell.outputs if out.output_type == "error"]
