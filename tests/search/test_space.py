"""What can be searched: read from the command line, made Optuna's, tried at its ends before any trial."""

import pytest
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

from ablab.config import compose_arm
from ablab.errors import UserError
from ablab.search.settings import ValueRange
from ablab.search.space import MOST_CORNERS, Levels, Range, Space, checked, parsed
from ablab.study.typed import parse_words

ON_THE_LINE = {
    "optim.lr=interval(1e-4,1e-2)": FloatDistribution(1e-4, 1e-2),
    "optim.lr=tag(log, interval(1e-4,1e-2))": FloatDistribution(1e-4, 1e-2, log=True),
    "model.d_ff=range(256,1025,256)": IntDistribution(256, 1024, step=256),
    "model.d_ff=interval(16,64)": IntDistribution(16, 64),
    "model.d_ff=tag(log, int(interval(16,64)))": IntDistribution(16, 64, log=True),
    "layerdrop=interval(0,0.9)": FloatDistribution(0, 0.9),
    "layerdrop=range(0,0.3,0.1)": FloatDistribution(0, 0.2, step=0.1),
    "layerdrop=range(0.15,0.46,0.15)": FloatDistribution(0.15, 0.45, step=0.15),
    "layerdrop=range(0,0.91,0.3)": FloatDistribution(0, 0.9, step=0.3),
    "layerdrop=0,0.1,0.2": CategoricalDistribution(("0", "0.1", "0.2")),
    "norm=choice(pre,post)": CategoricalDistribution(("pre", "post")),
    "norm=glob(scale*)": CategoricalDistribution(("scalenorm", "scalenorm_fixnorm")),
    "training.max_epochs=null,2": CategoricalDistribution(("null", "2")),
}


def space_of(*words):
    space = Space(tuple(parsed(override) for override in parse_words(words, intervals=True)))
    return checked(space, [["smoke=true"]], evaluations=False, try_out=lambda words: compose_arm(words).unread)


@pytest.mark.parametrize("word", ON_THE_LINE)
def test_the_line_says_levels_and_intervals(word):
    (distribution,) = space_of(word).distributions().values()
    assert distribution == ON_THE_LINE[word]


@pytest.mark.parametrize("word", ON_THE_LINE)
def test_what_is_written_is_a_run(word):
    space = space_of(word)
    for corner in space.corners():
        compose_arm(["smoke=true", *corner])


def test_keys_that_only_go_together_are_tried_together():
    space = space_of("model.num_heads=interval(3,6)", "model.d_model=range(60,121,60)")
    assert all(dimension.whole for dimension in space.dimensions if isinstance(dimension, Range))


BAD = {
    "optim.lrr=1e-3,1e-2": "did you mean optim.lr?",
    "optim.lrr=interval(1e-3,1e-2)": "did you mean optim.lr?",
    "layerdrop=0,2": "layerdrop=2",
    "layerdrop=interval(0,2)": "layerdrop=2",
    "layerdrop=interval(0.5,0.5)": "low must be below high",
    "optim.lr=tag(log, interval(0,0.9))": "above 0",
    "optim.lr=tag(lin, interval(0,0.9))": "allowed: tag(log",
    "model.d_ff=interval(1,2.5)": "a whole number",
    "model.encoder_layers=range(1,5,1.5)": "takes whole numbers, got low=1 and step=1.5",
    "norm=pre,pst": "did you mean post?",
    "layerdrop=choice(0.1)": "two levels that differ",
    "layerdrop=0.1,0.1": "two levels that differ",
    "trainer.threads=1,2": "decides no result",
    "trainer=cpu,gpu": "decides no result",
    "decoding=beam,greedy": "validation does not depend on it",
    "pruning.seed=1,2": "validation does not depend on it",
    "seed=1,2": "no setting that is chosen",
    "model.d_model=16,32 model.num_heads=2,3": "d_model",
}


@pytest.mark.parametrize("words", BAD)
def test_what_cannot_be_searched_is_said_before_any_trial(words):
    with pytest.raises(UserError) as refusal:
        space_of(*([words] if "tag" in words else words.split()))
    assert BAD[words] in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_few_corners_are_all_tried_and_of_many_each_end():
    few = Space((Levels("a", ("1", "2", "3")), Range("b", ValueRange(low=0, high=1))))
    assert len(set(few.corners())) == 6
    many = Space(tuple(Levels(f"k{number}", ("1", "2", "3")) for number in range(9)))
    corners = set(many.corners())
    assert len(corners) == 1 + 9 * 2 < MOST_CORNERS
    assert {word for corner in corners for word in corner} == {f"k{n}={v}" for n in range(9) for v in (1, 2, 3)}


@pytest.mark.parametrize("low", range(12))
@pytest.mark.parametrize("step", range(1, 12))
@pytest.mark.filterwarnings("error")
def test_the_last_step_is_the_decimal_number_that_people_read(low, step):
    """In binary, 0.15 + 2 * 0.15 lies below 0.45, so that a search would leave it out."""
    for count in range(1, 8):
        high = (low + count * step) / 100
        values = ValueRange(low=low / 100, high=high, step=step / 100)
        assert (values.last, Range("a", values).distribution().high) == (high, high)
    with pytest.raises(ValueError, match="fit between"):
        ValueRange(low=low / 100, high=(low + step) / 100 - 1e-6, step=step / 100)


@pytest.mark.parametrize(
    ("typed", "whole"),
    [("interval(1,8)", True), ("interval(-3, 8)", True), ("interval(1.0,8)", False), ("interval(1,8e0)", False)],
)
def test_the_ends_of_an_interval_are_whole_as_they_are_typed(typed, whole):
    """Of a value of a command, for which no schema says so; Hydra makes numbers with points of them."""
    (override,) = parse_words([f"task.values.n={typed}"], intervals=True)
    ends = parsed(override).interval
    assert all(isinstance(end, int) == whole for end in (ends.low, ends.high)) or not whole
    (override,) = parse_words([f"optim.lr={typed}"], intervals=True)
    assert all(isinstance(end, float) for end in (parsed(override).interval.low, parsed(override).interval.high))
