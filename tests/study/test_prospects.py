"""What the seeds of a study can tell is said before they are trained, from the noise that is known by then."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ablab.commands.cli import main
from ablab.judge.prospects import Noise, known_noise, prospects
from ablab.statistics.convergence import drift
from ablab.statistics.interval import NotTestable
from ablab.statistics.looks import Looks
from ablab.statistics.power import Layout, detectable_difference, equivalence_power
from ablab.statistics.sequential import Boundary
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.text import percent
from tests.report.conftest import EXPERIMENT
from tests.report.synthetic import fill

ARMS = [f"layerdrop={value}" for value in ("0", "0.1", "0.2", "0.5")]


def declared(tmp_path, claims, seeds="[1, 2, 3, 4, 5]", name="claims"):
    """The study with these claims, of which no run has begun."""
    path = tmp_path / f"{name}.yaml"
    text = EXPERIMENT[: EXPERIMENT.index("claims:")].replace("[1, 2, 3, 4, 5]", seeds)
    path.write_text(text + "claims:\n" + "".join(f"  - {claim}\n" for claim in claims))
    return (f"experiment={path}", f"outputs={tmp_path / 'outputs'}")


def bleu_noise(words):
    return known_noise(define(words), ["test_bleu"]).get("test_bleu")


def words_of(words):
    return [(prospect.words, prospect.is_hopeless) for prospect in prospects(define(words))]


@pytest.mark.parametrize(
    ("claim", "seeds", "words", "is_hopeless"),
    [
        ("{arm: layerdrop=0.1, expect: greater}", "[1, 2]", "cannot be judged by 2 seeds", True),
        ("{arm: layerdrop=0.1, expect: equal}", "[1, 2, 3]", "refuted; to be supported it needs a margin", True),
        ("{arm: layerdrop=0.1, expect: equal, metric: failures}", "[1, 2, 3]", "can only be refuted", True),
        ("{arm: layerdrop=0.5, expect: greater, metric: failures}", "[1, 2]", "cannot be judged", True),
        ("{arm: layerdrop=0.5, expect: greater, metric: failures}", "[1, 2, 3]", "p = 0.031; it needs 0.05", False),
        ("{arm: layerdrop=0.1, expect: greater, metric: decoding_speed}", "[1, 2, 3]", "the study itself", False),
        ("{arm: layerdrop=0.1, expect: greater, margin: 1}", "[1, 2, 3]", "noise unknown", False),
    ],
)
def test_what_no_run_could_answer_is_said(tmp_path, claim, seeds, words, is_hopeless):
    ((said, hopeless),) = words_of(declared(tmp_path, [claim], seeds))
    assert words in said
    assert ("needs a margin" in said) == ("needs a margin" in words)
    assert hopeless == is_hopeless


@pytest.mark.parametrize(
    ("every", "last", "count"), [(50, 100, 1), (26, 100, 1), (20, 100, 2), (30, 100, 2), (200, 100, 1), (1, 10, 3)]
)
def test_validations_of_the_last_fifth_are_counted_before_training(tmp_path, every, last, count):
    words = declared(tmp_path, ["{arm: layerdrop=0.1, expect: greater}"])
    ((said, hopeless),) = words_of((*words, f"training.valid_every={every}", f"training.max_steps={last}"))
    assert hopeless == (count < 2)
    steps = sorted({*range(every, last + 1, every), last})
    if not hopeless:
        rise = drift([(steps, steps)], threshold=1.0, higher_is_better=True).improvement
        assert rise == pytest.approx(steps[-1] - steps[-count])
        return
    assert said.endswith(f"in the last fifth of training, not {count}: one every {every} of {last} steps")
    with pytest.raises(NotTestable, match=f"not {count}"):
        drift([(steps, steps)], threshold=1.0, higher_is_better=True)


@pytest.mark.parametrize("metric", ["test_bleu", "worth"])
def test_what_so_much_compute_gives_needs_no_validations_at_the_end(tmp_path, metric):
    (file, outputs) = declared(tmp_path, [f"{{arm: layerdrop=0.1, expect: greater, metric: {metric}}}"])
    path = Path(file.partition("=")[2])
    path.write_text(path.read_text() + "worth: true\n")
    ((said, _),) = words_of((file, outputs, "training.valid_every=60", "training.max_steps=100"))
    assert ("noise unknown" if metric == "worth" else "in the last fifth of training, not 1") in said


@pytest.mark.parametrize(
    ("claim", "factor"),
    [("{arm: layerdrop=0.1, expect: greater}", 2), ("{interaction: [layerdrop, norm], expect: greater}", 4)],
)
def test_what_a_contrast_would_see_grows_with_its_arms(tmp_path, claim, factor, monkeypatch):
    """Four cells have twice the variance of two, and twice the degrees of freedom."""
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda study, metrics: {"test_bleu": Noise(0.5, 12, "runs")}
    )
    path = tmp_path / "factorial.yaml"
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "[0, 0.1, 0.2, 0.5]", "[0, 0.1]\n  norm: [pre, post]"
    )
    path.write_text(f"{text[: text.index('claims:')]}error: paired\nclaims:\n  - {claim}\n")
    ((said, _),) = words_of((f"experiment={path}", f"outputs={tmp_path}"))
    seen = detectable_difference(0.5 * (factor / 5) ** 0.5, 4)
    assert f"5 seeds see a difference of {seen:.3g} BLEU" in said


def test_arms_that_share_runs_are_planned_as_they_are_tested(tmp_path, monkeypatch):
    """Four arms of two ways of decoding are two arms of their runs; beside two of them, nobody lends."""
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda study, metrics: {"test_bleu": Noise(0.5, 12, "runs")}
    )
    path = tmp_path / "decoded.yaml"
    text = EXPERIMENT.replace("one_at_a_time", "factorial").replace(
        "layerdrop: [0, 0.1, 0.2, 0.5]", "norm: [pre, post]\n  decoding: [beam, greedy]"
    )
    claims = "{effect: norm=post, expect: greater}", '{arm: "norm=post,decoding=beam", expect: greater}'
    path.write_text(text[: text.index("claims:")] + "claims:\n" + "".join(f"  - {one}\n" for one in claims))
    seen = Layout((1.0, -1.0), 0).detectable(0.5, 5, 0.025)
    for said, _ in words_of((f"experiment={path}", f"outputs={tmp_path}")):
        assert f"5 seeds see a difference of {seen:.3g} BLEU" in said


def test_not_worse_is_promised_for_what_does_not_differ(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda study, metrics: {"test_bleu": Noise(0.5, 12, "runs")}
    )
    claims = [
        "{arm: layerdrop=0.1, expect: not_worse, margin: 0.1}",
        "{arm: layerdrop=0.1, expect: not_worse, margin: 3}",
    ]
    (poor, hopeless), (good, hopeful) = words_of(declared(tmp_path, claims))
    assert "if nothing differs, 5 seeds support it with a chance of" in poor
    assert "a chance of 80 % takes 394 seeds" in poor
    assert (hopeless, hopeful) == (True, False)
    assert "a chance of more than 99 %" in good


@pytest.mark.parametrize("expect", ["greater", "less", "equal", "not_worse"])
def test_runs_that_score_alike_tell_no_noise(tmp_path, monkeypatch, expect):
    """As smoke runs on real text do, whose BLEU is 0.00 under each seed."""
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda study, metrics: {"test_bleu": Noise(0.0, 2, "runs")}
    )
    ((said, hopeless),) = words_of(declared(tmp_path, [f"{{arm: layerdrop=0.1, expect: {expect}, margin: 0.5}}"]))
    assert said == "noise unknown: in each arm, the 2 runs score alike"
    assert not hopeless


def test_a_claim_judged_by_pairs_is_promised_what_pairs_show(tmp_path):
    """Runs of one seed vary together here; before there are pairs, nothing is called hopeless."""
    claim = "{arm: layerdrop=0.1, expect: equal, margin: 1}"
    words = declared(tmp_path, [claim])
    path = tmp_path / "claims.yaml"
    path.write_text(path.read_text() + "error: paired\n")
    fill(words[:1], dict.fromkeys(ARMS, 0.3), outputs=tmp_path / "outputs", missing={(ARMS[1], n) for n in (3, 4, 5)})
    ((apart, hopeless),) = words_of(words)
    assert "less, where runs with the same seed vary together" in apart
    assert not hopeless
    fill(words[:1], dict.fromkeys(ARMS, 0.3), outputs=tmp_path / "outputs", missing={(ARMS[1], 5)})
    ((together, _),) = words_of(words)
    assert "over 4 pairs of this study: hardly known" in together, "three degrees of freedom"
    fill(words[:1], dict.fromkeys(ARMS, 0.3), outputs=tmp_path / "outputs")
    ((together, hopeless),) = words_of(words)
    assert "beside its pair is" in together
    assert "over 5 pairs of this study)" in together
    pairs = {}
    for cell in define(words).cells:
        if cell.arm in ARMS[:2]:
            pairs.setdefault(cell.seed, []).append(
                cell.planned.folder.evaluation(cell.planned.evaluation_id).scores["bleu"]
            )
    sd = np.std([arm - baseline for baseline, arm in pairs.values()], ddof=1)
    assert f"5 seeds support it with a chance of {percent(equivalence_power(1, sd / 5**0.5, 4, 0.05))}" in together
    near = round(1.5 * sd, 2)  # of which the noise decides
    path.write_text(path.read_text().replace("margin: 1", f"margin: {near}"))
    ((together, _),) = words_of(words)
    assert 0.1 < (chance := equivalence_power(near, sd / 5**0.5, 4, 0.05)) < 0.9
    assert f"5 seeds support it with a chance of {percent(chance)}" in together
    path.write_text(path.read_text().replace("error: paired\n", ""))
    ((moderated, _),) = words_of(words)
    assert "over 20 runs of this study" in moderated
    of_a_run = known_noise(define(words), ["test_bleu"])["test_bleu"].sd
    lent, alone = (round(100 * Layout((1.0, -1.0), others).power("equal", near, of_a_run, 5)) for others in (2, 0))
    assert lent != alone
    assert f"5 seeds support it with a chance of {lent} %" in moderated, "two arms of four lend theirs"


def test_two_runs_hardly_tell_the_noise(tmp_path):
    words = declared(tmp_path, ["{arm: layerdrop=0.1, expect: equal, margin: 0.001}"])
    others = {(arm, seed) for arm in ARMS for seed in (1, 2, 3, 4, 5)} - {(ARMS[0], 1), (ARMS[0], 2)}
    fill(words[:1], dict.fromkeys(ARMS, 0.3), outputs=tmp_path / "outputs", missing=frozenset(others))
    ((said, hopeless),) = words_of(words)
    assert "over 2 runs of this study: hardly known)" in said
    assert not hopeless


def test_secondary_claims_take_nothing_from_the_primary(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda study, metrics: {"test_bleu": Noise(0.5, 12, "runs")}
    )
    claims = ["{arm: layerdrop=0.1, expect: greater}", "{arm: layerdrop=0.2, expect: greater, secondary: true}"]
    alone = words_of(declared(tmp_path, claims[:1], name="alone"))
    assert words_of(declared(tmp_path, claims)) == alone * 2


def test_failures_of_three_seeds_cannot_be_shown_beside_other_claims(tmp_path):
    claims = ["{arm: layerdrop=0.5, expect: greater, metric: failures}", "{arm: layerdrop=0.1, expect: greater}"]
    (said, hopeless), _ = words_of(declared(tmp_path, claims, "[1, 2, 3]"))
    assert hopeless
    assert "even all failing against none has p = 0.031, and it needs 0.025" in said


ABOUT_QUALITY = [f"{{arm: layerdrop={value}, expect: greater}}" for value in (0.1, 0.2, 0.5)]


@pytest.mark.parametrize(
    ("claims", "seeds", "words"),
    [
        (ABOUT_QUALITY[:1], "[1, 2, 3]", None),  # all failing against none has p = 0.031
        (ABOUT_QUALITY[:2], "[1, 2, 3]", "arms are compared by their shares of failures, which cannot reach"),
        (ABOUT_QUALITY, "[1, 2, 3, 4, 5]", None),
        (
            [f"{claim[:-1]}, margin: {m}}}" for claim in ABOUT_QUALITY for m in (1, 2, 3)],
            "[1, 2, 3, 4, 5]",
            "ranked, wh",
        ),
        (["{arm: layerdrop=0.1, expect: greater, metric: training_speed}"], "[1, 2, 3]", None),
    ],
)
def test_what_failures_could_not_show_is_said_beforehand(tmp_path, claims, seeds, words):
    for prospect in prospects(define(declared(tmp_path, claims, seeds))):
        assert not prospect.is_hopeless
        assert prospect.caveat.startswith("should a run diverge") == (words is not None)
        assert words is None or words in prospect.caveat


@pytest.mark.parametrize(
    ("selects", "words", "is_hopeless"),
    [
        (("best", "best"), "valid_loss also chooses the weights", False),
        (("best", "last"), "cannot be judged: its arms select weights differently, and by valid_loss itself", True),
        (("last", "last"), None, False),
        (("averaged", "last"), None, False),
    ],
)
def test_a_score_that_chooses_the_weights_is_named_beforehand(tmp_path, selects, words, is_hopeless):
    one, other = (
        f"[training.select={select}, training.monitor=loss]" if select != "last" else "[training.select=last]"
        for select in selects
    )
    path = tmp_path / "chosen.yaml"
    path.write_text(
        f"question: x\ncommon: [logger=none]\ndesign: arms\narms: {{a: {one}, b: {other[:-1]}, layerdrop=0.1]}}\n"
        "seeds: [1, 2, 3]\nclaims: [{arm: b, expect: less, metric: valid_loss}]\n"
    )
    ((said, hopeless),) = words_of((f"experiment={path}", f"outputs={tmp_path}"))
    assert hopeless == is_hopeless
    assert words in said if words else "weights" not in said


@pytest.fixture
def known(tmp_path):
    """The words of a study whose first two seeds have finished, and its scores by arm."""
    claims = [
        "{arm: layerdrop=0.1, expect: greater, margin: 3}",
        "{arm: layerdrop=0.2, expect: equal, margin: 0.5}",
    ]
    early = declared(tmp_path, claims, "[1, 2]", name="early")
    study = fill(early[:1], dict.fromkeys(ARMS, 0.3), outputs=tmp_path / "outputs")
    scores: dict[str, list[float]] = {}
    for cell in study.cells:
        evaluation = cell.planned.folder.evaluation(cell.planned.evaluation_id)
        scores.setdefault(cell.arm, []).append(evaluation.scores["bleu"])
    return declared(tmp_path, claims), scores


def test_the_noise_is_that_of_the_runs_that_are_there(known):
    words, scores = known
    noise = bleu_noise(words)
    assert noise.runs == 8
    assert noise.origin == "runs of this study"
    assert noise.sd == pytest.approx(np.mean([np.var(values, ddof=1) for values in scores.values()]) ** 0.5)


def test_like_runs_of_the_store_tell_it_too_and_others_do_not(known, tmp_path):
    words, _ = known
    own = bleu_noise(words)
    other = bleu_noise((*words, "optim.lr=0.0123"))
    assert (other.sd, other.runs, other.origin) == (own.sd, own.runs, "like runs of the store")
    assert bleu_noise((*words, "training.max_steps=77")) is None
    assert bleu_noise((*words, "model=big")) is None


def test_an_arm_with_a_diverged_run_tells_nothing_of_the_others(known):
    words, scores = known
    study = define(words)
    cell = next(cell for cell in study.cells if cell.arm == ARMS[3] and cell.seed == 1)
    record = cell.planned.folder.record()
    cell.planned.folder.write_record(record.model_copy(update={"state": "diverged"}))
    noise = bleu_noise(words)
    assert noise.runs == 6
    assert noise.sd == pytest.approx(np.mean([np.var(scores[arm], ddof=1) for arm in ARMS[:3]]) ** 0.5)


def test_each_claim_is_told_what_its_seeds_would_see(known):
    words, _ = known
    noise = bleu_noise(words)
    # Four arms of five seeds: two others lend.
    layout = Layout((1.0, -1.0), 2)
    (greater, noisy), (equal, hopeless) = words_of(words)
    seen = layout.detectable(noise.sd, 5, 0.025)
    assert f"5 seeds see a difference of {seen:.3g} BLEU with 80 % power" in greater
    assert f"(a run's standard deviation is {noise.sd:.3g}, over 8 runs of this study)" in greater
    chance = layout.power("equal", 0.5, noise.sd, 5, 0.025)
    assert f"5 seeds support it with a chance of {percent(chance)}" in equal
    assert hopeless == (chance < 0.2)
    assert not noisy
    assert "a chance of 80 % takes" in equal


def test_pairs_are_planned_for_where_pairs_decide(known, tmp_path):
    words, _ = known
    path = tmp_path / "paired" / "claims.yaml"
    path.parent.mkdir()
    path.write_text((tmp_path / "claims.yaml").read_text() + "error: paired\n")
    noise = bleu_noise(words)
    (greater, _), _ = words_of((f"experiment={path}", *words[1:]))
    seen = detectable_difference(noise.sd * (2 / 5) ** 0.5, 4, 0.025)
    assert f"5 seeds see a difference of {seen:.3g} BLEU" in greater


def test_a_claim_that_only_an_absurd_difference_could_settle_is_hopeless(known, monkeypatch):
    words, _ = known
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda *_: {"test_bleu": Noise(9.0, 8, "runs of this study")}
    )
    (greater, noisy), _ = words_of(words)
    assert noisy
    assert "its margin of 3 takes 173 seeds" in greater


def test_the_plan_says_it(known, capsys, tmp_path):
    words, _ = known
    assert main(["study", *words]) == 0
    out = capsys.readouterr().out
    assert "What these seeds can tell:" in out
    assert "  LayerDrop 0.1 above no LayerDrop in test_bleu, margin 3: 5 seeds see a difference of" in out
    shutil.rmtree(tmp_path / "outputs")


@pytest.mark.parametrize(("margin", "error", "df"), [(1.0, 0.3, 4), (0.5, 0.1, 8), (2.0, 1.0, 12), (0.1, 1.0, 4)])
def test_the_chance_of_equivalence_is_the_simulated_one(margin, error, df):
    from scipy import stats

    rng = np.random.default_rng(1)
    estimate = rng.normal(0, error, 200_000)
    estimated = error * np.sqrt(rng.chisquare(df, 200_000) / df)
    shown = np.abs(estimate) < margin - stats.t.ppf(0.95, df) * estimated
    assert equivalence_power(margin, error, df) == pytest.approx(shown.mean(), abs=0.005)


def test_seeds_that_came_later_give_registered_claims_no_power(tmp_path):
    claims = ["{arm: layerdrop=0.1, expect: greater, metric: failures}"]
    register(define(declared(tmp_path, claims, "[1, 2, 3]")))
    before = words_of(declared(tmp_path, claims, "[1, 2, 3]"))
    more = [*claims, "{arm: layerdrop=0.2, expect: greater, metric: failures, secondary: true}"]
    first, later = words_of(declared(tmp_path, more, "[1, 2, 3, 4, 5]"))
    assert [first] == before
    assert later[0] < first[0], "a claim that came with the seeds has them"


def test_what_looks_would_see_is_what_the_last_of_them_shows(tmp_path, monkeypatch):
    """By simulation, all looks together find it a little more often than in the 80 % that are promised."""
    monkeypatch.setattr(
        "ablab.judge.prospects.known_noise", lambda study, metrics: {"test_bleu": Noise(0.5, 12, "runs")}
    )
    (said, _), *_ = words_of(declared(tmp_path, ["{arm: layerdrop=0.1, expect: greater}"], "{from: 3, to: 10}"))
    seen = float(said.split("a difference of ")[1].split()[0])
    rng, boundary = np.random.default_rng(1), Boundary(Looks(3, 10), 0.05, "greater", 0.0)
    paths = rng.normal(seen, 0.5 * 2**0.5, (20_000, 10))
    shown = np.zeros(len(paths), dtype=bool)
    for n in range(3, 11):
        means, sds = paths[:, :n].mean(axis=1), paths[:, :n].std(axis=1, ddof=1)
        shown |= boundary.settled(means, sds, n) & (means > 0)
    assert 0.79 < shown.mean() < 0.88


def test_a_plan_counts_the_claims_that_a_verdict_counts(tmp_path):
    """Those that were registered, also where they were deleted since, and later ones apart."""
    claims = [f"{{arm: layerdrop={value}, expect: greater, metric: failures}}" for value in (0.1, 0.2)]
    register(define(declared(tmp_path, claims[:1], "[1, 2, 3]")))
    assert [hopeless for _, hopeless in words_of(declared(tmp_path, claims, "[1, 2, 3]"))] == [False, False]
    register(define(declared(tmp_path, claims, "[1, 2, 3]", name="both")))
    ((said, hopeless),) = words_of(declared(tmp_path, claims[:1], "[1, 2, 3]", name="both"))
    assert hopeless
    assert "it needs 0.025" in said


def test_runs_that_arms_share_show_their_noise_once(known, tmp_path):
    """As where arms differ by decoding: the loss of a run is one, however it is decoded."""
    path = tmp_path / "decoded.yaml"
    text = EXPERIMENT[: EXPERIMENT.index("claims:")].replace("[1, 2, 3, 4, 5]", "[1, 2]")
    path.write_text(text.replace("one_at_a_time", "factorial").replace("0.5]", "0.5]\n  decoding.beam_size: [4, 2]"))
    twice = define((f"experiment={path}", f"outputs={tmp_path / 'outputs'}"))
    assert len(twice.arms) == 8
    once = known_noise(define(known[0]), ["valid_loss"])["valid_loss"]
    assert known_noise(twice, ["valid_loss"])["valid_loss"] == once
