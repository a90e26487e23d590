"""What a table could be misread by: noise of other data, other seeds, the direction, rounding, the scale, numerals."""

import pytest

from tests.report.test_table import ROWS, reported_from, table

pytestmark = pytest.mark.usefixtures("undrawn")


NOTE = "arms have different seeds; differences are taken over the seeds that both have"


@pytest.mark.parametrize(("seeds", "is_said"), [((3, 4, 5), True), ((1, 2), True), ((1, 2, 3), False)])
def test_seeds_that_arms_do_not_share_are_said_also_where_their_numbers_are_equal(tmp_path, seeds, is_said):
    rows = [f"a,{seed},score,{seed + 0.5}" for seed in (1, 2, 3)] + [f"b,{seed},score,{2 * seed}" for seed in seeds]
    data, out, _ = reported_from(table(tmp_path, rows))
    assert (NOTE in data["notes"]) == (f"Note: {NOTE}" in out) == is_said


@pytest.mark.parametrize(("lacking", "said"), [((3,), "seed 3 has no chrf"), ((2, 3), "seed 2, seed 3 have no chrf")])
def test_one_run_has_no_score_and_two_have_none(tmp_path, lacking, said):
    chrf = [row.replace("score", "chrf") for row in ROWS if not (row[0] == "b" and int(row[2]) in lacking)]
    about = "metric: chrf\nerror: paired\nclaims: [{arm: b, expect: greater}]"
    data, _, _ = reported_from(table(tmp_path, [*ROWS, *chrf], about=about))
    assert data["differences"][0]["refused"] == data["claims"][0]["reason"] == said
    (arm,) = [arm for arm in data["arms"] if arm["name"] == "b"]
    assert f"{len(lacking)} of 3 runs {said.split()[-3]} no chrf" in arm["notes"]


def test_names_alone_make_no_tuned_arms(tmp_path):
    scores = {"base": 30.0, "big": 30.9, "base, tuned": 31.0, "big, tuned": 31.05}
    noise = (0.1, 0.3, 0.25, 0.05)
    rows = [
        f'"{arm}",{seed},score,{mean + noise[(seed + place) % 4]}'
        for place, (arm, mean) in enumerate(scores.items())
        for seed in range(4)
    ]
    about = "claims: [{arm: big, expect: greater}, {arm: 'big, tuned', baseline: 'base, tuned', expect: greater}]"
    data, out, _ = reported_from(table(tmp_path, rows, about=about))
    assert [claim["tuning"] for claim in data["claims"]] == [None, None]
    assert "usual settings" not in out
    assert "With tuned settings" not in out
