"""Curves of heads in a study's report: of the arms that have them, judged as the study asks."""

import pytest

from ablab.judge.comparisons import pictured
from ablab.judge.selection_of_study import of_study
from ablab.statistics.interval import NotTestable
from ablab.study.claims import settle
from ablab.sweep.plots import draw_pruned
from ablab.tasks.identity import curve_id
from ablab.transformer.pruning.heads import Heads, Removal, at_random
from tests.report.synthetic import fill

WORDS = ("norm=pre,post", "seed=1,2", "decoding=greedy", "data.test_pairs=40")
IMPORTANCE = {"kind": "importance", "what": "heads"}
WHOLE = Heads.all_of(4, 4, 4)
KEPT = Removal(at_random(WHOLE, 1))(WHOLE, [48, 40, 32])


@pytest.fixture
def study(tmp_path):
    return fill(WORDS, {"norm=pre": 0.1, "norm=post": 0.2}, outputs=tmp_path)


def measured(planned, bleus, **changes):
    """Write a curve of heads with these scores, from all heads down, as prune.py does."""
    layers = planned.folder.curve(planned.curve_id)
    settings = {**planned.evaluation, "pruning": IMPORTANCE, **changes}
    points = [
        layers.points[0].model_copy(
            update={"curve": "heads", "heads": kept.sites, "scores": {"bleu": bleu, "chrf": 50.0}}
        )
        for kept, bleu in zip(KEPT, bleus, strict=True)
    ]
    update = {"curve_id": curve_id(settings), "settings": settings, "label": "importance", "points": points}
    planned.folder.write_curve(layers.model_copy(update=update))


def of_arm(study, name):
    return [cell.planned for cell in study.cells if cell.arm == name]


def lines_of_heads(series):
    (found,) = (one for one in series if "heads" in one.x and one.y == "BLEU")
    return found.lines


def test_those_that_prune_measured_later_stand_beside_those_of_layers(study):
    for planned, bleus in zip(of_arm(study, "norm=pre"), ([30, 20, 10], [32, 20, 8]), strict=True):
        measured(planned, bleus)
        measured(planned, [1, 1, 1], decoding={"beam_size": 9})  # judged in another way
    selection = of_study(study)
    (line,) = lines_of_heads(pictured(selection))
    assert (line.arm, line.x, line.mean) == ("norm=pre", [32, 40, 48], [9, 20, 31])
    runs = [run for arm in selection.arms for run in arm.runs]
    assert [len(run.curves) for run in runs] == [2, 2, 1, 1]
    assert not any(run.curve.of_heads for run in runs)


def test_a_study_of_heads_is_drawn_by_heads(tmp_path):
    study = fill((*WORDS, "pruning=importance"), {"norm=pre": 0.1, "norm=post": 0.2}, outputs=tmp_path)
    for cell in study.cells:
        measured(cell.planned, [30, 20, 10], pruning=cell.planned.curve["pruning"])
    entries = {cell.key: _Entry(cell.planned.folder.record()) for cell in study.cells}
    assert draw_pruned(study, entries, tmp_path / "heads.png", of_heads=True)
    assert not draw_pruned(study, entries, tmp_path / "layers.png", of_heads=False)
    selection = of_study(study)
    assert len(lines_of_heads(pictured(selection))) == 2
    assert all(run.curve is None for arm in selection.arms for run in arm.runs)


class _Entry:
    def __init__(self, record):
        self.record = record


def test_a_claim_about_fewer_heads_reads_the_score_from_the_curve_of_heads(study):
    for planned, bleus in zip(of_arm(study, "norm=pre"), ([30, 20, 10], [32, 21, 8]), strict=True):
        measured(planned, bleus)
    selection = of_study(study)
    arm, without = selection.arms
    claim = settle({"arm": "norm=post", "expect": "greater", "metric": "pruned_bleu", "heads": 40}, "norm=pre", "")
    measure = selection.measure_of(claim)
    assert measure.title == "test BLEU with 40 heads"
    assert measure.values(arm.runs) == [20, 21]
    with pytest.raises(NotTestable, match="have no test BLEU with 40 heads"):
        measure.values(without.runs)
