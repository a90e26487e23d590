"""Artefacts of arms beside each other: means of what can be averaged, and of nothing else."""

import json
import random
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

from ablab.judge.comparisons import MOST_ARMS, pictured, side_by_side
from ablab.judge.document import Document
from ablab.judge.runs import ArmRuns
from ablab.judge.selection_of_study import of_study
from ablab.report.charts import charts
from ablab.report.figures import heat_maps
from ablab.store.artefacts import MatrixArtefact, Slice, comparable_artefacts, write_artefact
from ablab.study.definition import define
from tests.report.synthetic import fill

WORDS = ("layerdrop=0,0.1", "seed=1,2,3")
ERRORS = {"layerdrop=0": 0.3, "layerdrop=0.1": 0.2}


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    place = tmp_path_factory.mktemp("filled")
    fill(WORDS, ERRORS, outputs=place)
    return place


@pytest.fixture
def selection(filled, tmp_path):
    """Two arms of three seeds that may be written into."""
    shutil.copytree(filled, tmp_path, dirs_exist_ok=True)
    return of_study(define((*WORDS, f"outputs={tmp_path}")))


def the(pictures, key):
    (found,) = [picture for picture in pictures if picture.key == key]
    return found


def rewrite(run, key, **changes):
    path = run.folder.artefacts / f"{key}.json"
    write_artefact(path, comparable_artefacts(path.parent)[key].model_copy(update=changes))


def test_each_kind_is_drawn_by_section_and_what_is_a_runs_alone_is_not(reported):
    document = Document.model_validate(reported.data)
    assert [(picture.section, picture.key) for picture in document.artefacts] == [
        ("Heads", "worth"),
        ("Looks", "looks_1"),
        ("Norms", "gain"),
    ]
    page, drawn = reported.text("report.html"), charts(document)
    assert "its own" not in page
    assert "A sentence &lt;/script&gt; &amp; more" in page
    places = re.findall(r'id="chart-([^"]+)"', page)
    assert sorted(places) == sorted(drawn)
    arms = len(document.arms)
    assert len([key for key in drawn if key.startswith(("worth", "looks_1"))]) == 2 * arms
    assert len([key for key in drawn if key.startswith("gain")]) == 3


def test_matrices_are_means_over_the_seeds(selection):
    picture = the(side_by_side(selection), "looks_1")
    for arm, panel in zip(selection.arms, picture.panels, strict=True):
        assert (panel.arm, panel.seeds) == (arm.name, 3)
        every = [comparable_artefacts(run.folder.artefacts)["looks_1"] for run in arm.runs]
        for place, part in enumerate(panel.slices):
            for i, row in enumerate(part):
                for j, value in enumerate(row):
                    seeds = [artefact.slices[place].values[i][j] for artefact in every]
                    assert value == pytest.approx(sum(seeds) / 3, abs=1e-4)
                    assert picture.low <= value <= picture.high


def test_lines_are_means_on_the_range_of_the_seeds(selection):
    picture = the(side_by_side(selection), "gain")
    assert [(panel.title, panel.names) for panel in picture.panels][2] == ("ends", ["first", "last"])
    (line, _) = picture.panels[0].lines
    every = [comparable_artefacts(run.folder.artefacts)["gain"].series[0].y for run in selection.arms[0].runs]
    assert line.low == pytest.approx([min(ys) for ys in zip(*every, strict=True)], abs=1e-6)
    assert line.mean == pytest.approx([sum(ys) / 3 for ys in zip(*every, strict=True)], abs=1e-6)


def test_small_values_are_drawn_as_large_ones_are(selection):
    """A gradient of 4e-5 beside one of 2e-5 is not the same in all arms, and no curve of 0."""
    before = side_by_side(selection)
    for arm in selection.arms:
        for run in arm.runs:
            there = comparable_artefacts(run.folder.artefacts)
            looks, gain = there["looks_1"], there["gain"]
            small = [part.model_copy(update={"values": scaled(part.values)}) for part in looks.slices]
            rewrite(run, "looks_1", slices=small)
            traces = [part.model_copy(update={"y": scaled([part.y])[0]}) for part in gain.series]
            rewrite(run, "gain", series=traces)
    after = side_by_side(selection)
    for one, other in zip(the(before, "looks_1").panels, the(after, "looks_1").panels, strict=True):
        for part, small in zip(one.slices, other.slices, strict=True):
            assert np.allclose(np.array(part) * SMALL, small, rtol=1e-3, atol=1e-4 * SMALL)
    assert the(after, "looks_1").high == pytest.approx(SMALL * the(before, "looks_1").high, rel=1e-3)
    line, small = (the(pictures, "gain").panels[0].lines[0] for pictures in (before, after))
    for values in ("mean", "low", "high"):
        assert getattr(small, values) == pytest.approx([SMALL * value for value in getattr(line, values)], rel=1e-5)


SMALL = 1e-7


def scaled(rows):
    return [[SMALL * value for value in row] for row in rows]


def test_a_score_that_is_called_as_a_picture_of_the_report_has_another_key(selection, monkeypatch):
    """A command's score may be called `forest`, and would take the place of the claims."""
    chart = selection.task.charts(on_one_scale=True)["valid_loss"]
    keys = ("forest", "forest_2", "forests", "tuning_1", "column_figure", "valid_loss")
    monkeypatch.setattr(type(selection.task), "charts", lambda *_, **__: dict.fromkeys(keys, chart))
    drawn = [series.key for series in pictured(selection)]
    assert drawn == ["curve_forest", "curve_forest_2", "forests", "curve_tuning_1", "curve_column_figure", "valid_loss"]


def test_names_that_look_like_tags_are_seen_in_charts(reported):
    """Plotly would read `<s>` as one, and show nothing."""
    text = json.dumps(reported.data).replace("layerdrop=0.1", "prompt=<s>").replace("layerdrop=0.2", "prompt=a & b")
    drawn = json.dumps(charts(Document.model_validate_json(text)))
    assert "prompt=&lt;s>" in drawn
    assert "prompt=a &amp; b" in drawn
    assert not re.search(r'(?<!"legendgroup": ")prompt=(<s>|a & b)', drawn)


def test_the_order_of_runs_and_of_interchangeable_columns_is_nothing(selection):
    before = side_by_side(selection)
    rng = random.Random(1)
    for arm in selection.arms:
        for run in arm.runs:
            worth = comparable_artefacts(run.folder.artefacts)["worth"]
            rows = [rng.sample(row, len(row)) for row in worth.slices[0].values]
            rewrite(run, "worth", slices=[Slice(label="", values=rows)])
    arms = [replace(arm, runs=arm.runs[::-1]) for arm in selection.arms]
    assert side_by_side(replace(selection, arms=arms)) == before
    for panel in the(before, "worth").panels:
        assert all(row == sorted(row, reverse=True) for row in panel.slices[0])


def test_other_settings_are_another_picture(selection):
    one, *_ = selection.arms[0].runs
    rewrite(one, "looks_1", settings={"source": "another"})
    pictures = [picture for picture in side_by_side(selection) if picture.section == "Looks"]
    seeds = {picture.key: [(panel.arm, panel.seeds) for panel in picture.panels] for picture in pictures}
    assert sorted(seeds) == ["looks_1", "looks_1-2"]
    assert sorted(map(len, seeds.values())) == [1, 2]
    assert {panel.seeds for picture in pictures for panel in picture.panels} == {1, 2, 3}


def test_an_arm_without_a_slice_leaves_its_place_empty(selection):
    for run in selection.arms[1].runs:
        looks = comparable_artefacts(run.folder.artefacts)["looks_1"]
        assert isinstance(looks, MatrixArtefact)
        rewrite(run, "looks_1", slices=looks.slices[:1])
    picture = the(side_by_side(selection), "looks_1")
    assert picture.slices == ["all", "layer 1"]
    assert picture.panels[0].slices[1] is not None
    assert picture.panels[1].slices[1] is None


def test_what_has_no_identity_across_runs_is_one_runs(selection):
    for arm in selection.arms:
        for run in arm.runs:
            looks = comparable_artefacts(run.folder.artefacts)["looks_1"]
            whole, layer = looks.slices
            rewrite(run, "looks_1", slices=[whole, layer.model_copy(update={"of_one_run": True})])
    picture = the(side_by_side(selection), "looks_1")
    assert picture.of_one == ["layer 1"]
    for arm, panel in zip(selection.arms, picture.panels, strict=True):
        first = comparable_artefacts(arm.runs[0].folder.artefacts)["looks_1"]
        assert panel.slices[1] == [pytest.approx(row, abs=1e-4) for row in first.slices[1].values]
        assert panel.slices[0] != [pytest.approx(row, abs=1e-4) for row in first.slices[0].values]


def test_texts_of_cells_are_those_of_the_run_that_is_shown(selection):
    for arm in selection.arms:
        for run in arm.runs:
            looks = comparable_artefacts(run.folder.artefacts)["looks_1"]
            values = looks.slices[0].values
            cells = [[f"<{run.seed}>\n{value}" for value in row] for row in values]
            rewrite(run, "looks_1", slices=[Slice(label="", values=values, of_one_run=True, cells=cells)])
    picture = the(side_by_side(selection), "looks_1")
    assert {panel.seeds for panel in picture.panels} == {1}
    for arm, panel in zip(selection.arms, picture.panels, strict=True):
        assert panel.cells[0][0][0].startswith(f"<{arm.runs[0].seed}>")
    drawn = heat_maps(picture)["looks_1-1"]
    assert drawn["cells"][0][0].startswith("&lt;1>\n".replace("\n", "<br>"))


def test_one_matrix_is_shown_where_all_arms_have_the_same(selection):
    first = comparable_artefacts(selection.arms[0].runs[0].folder.artefacts)["looks_1"]
    for arm in selection.arms:
        for run in arm.runs:
            rewrite(run, "looks_1", slices=first.slices)
    picture = the(side_by_side(selection), "looks_1")
    assert (len(picture.panels), picture.alike) == (1, len(selection.arms))
    rewrite(
        run, "looks_1", slices=[Slice(label=p.label, values=[[0.5 for _ in r] for r in p.values]) for p in first.slices]
    )
    picture = the(side_by_side(selection), "looks_1")
    assert (len(picture.panels), picture.alike) == (len(selection.arms), 0)


def test_runs_that_were_not_analysed_are_left_out(selection):
    for run in selection.arms[0].runs[1:]:
        (run.folder.artefacts / "worth.json").unlink()
    for run in selection.arms[1].runs:
        (run.folder.artefacts / "worth.json").unlink()
    picture = the(side_by_side(selection), "worth")
    (panel,) = picture.panels
    assert (panel.arm, panel.seeds, picture.alike) == (selection.arms[0].name, 1, 0)


@pytest.mark.parametrize(("probability", "is_drawn"), [(0.0, False), (0.1, True)])
def test_a_picture_of_what_no_arm_does_is_left_out(selection, probability, is_drawn):
    """That of DropHead, where it drops none; norms of the gradient are drawn whatever they are."""
    for arm in selection.arms[1:]:
        for run in arm.runs:
            rows = run.folder.metrics.read_text().splitlines()
            column = rows[0].split(",").index("drophead")
            cells = [row.split(",") for row in rows[1:]]
            changed = [",".join([*row[:column], str(probability), *row[column + 1 :]]) for row in cells]
            run.folder.metrics.write_text("\n".join([rows[0], *changed, ""]))
    drawn = {series.key for series in pictured(selection)}
    assert ("drophead" in drawn) == is_drawn
    assert "grad_norm" in drawn


def test_no_more_arms_than_can_be_seen_side_by_side(selection):
    def evaluated(run, number):
        """The run, as if its whole model had been judged otherwise: then its arm is a row of its own."""
        return replace(run, evaluation=run.evaluation.model_copy(update={"evaluation_id": f"e{number}"}))

    runs = list(selection.arms[0].runs)
    arms = [  # some runs once more, so that the pictures differ
        ArmRuns(str(number), [evaluated(run, number) for run in [*runs, *runs[:1] * number]])
        for number in range(MOST_ARMS + 2)
    ]
    picture = the(side_by_side(replace(selection, arms=arms)), "looks_1")
    assert [panel.arm for panel in picture.panels] == [arm.name for arm in arms[:MOST_ARMS]]
    assert picture.left_out == 2


def test_the_slice_that_is_shown_first_is_the_first(selection):
    """A browser has the keys of an object that are whole numbers in their order."""
    for arm in selection.arms:
        for run in arm.runs:
            values = comparable_artefacts(run.folder.artefacts)["looks_1"].slices[0].values
            rewrite(run, "looks_1", slices=[Slice(label=label, values=values) for label in ("12", "6", "1")])
    drawn = heat_maps(the(side_by_side(selection), "looks_1"))["looks_1-1"]
    assert list(drawn["slices"]) == ["12", "6", "1"]
    assert drawn["first"] == "12"
