"""Studies without training: records, hypotheses and curves as runs leave them, with effects that are known."""

import hashlib
import math
import random
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from ablab.judge.claims import judge
from ablab.judge.lines import ClaimLine
from ablab.judge.selection import SelectedArms
from ablab.report.claim_words import with_words
from ablab.store.artefacts import Axis, MatrixArtefact, SeriesArtefact, Slice, Trace, write_artefact
from ablab.store.records import Cost, Curve, Evaluation, Point, Record, Selected
from ablab.store.shared import StoredText, keep_text
from ablab.study.definition import define
from ablab.study.study import Cell, Study
from ablab.tasks.identity import condition_id, evaluation_id
from ablab.transformer.data.scoring import Scores, score
from ablab.transformer.stages.callbacks import columns_of
from ablab.transformer.translation.validation import TranslationValidation

COLUMNS = columns_of(TranslationValidation)

WORDS = (
    *("the", "a", "man", "woman", "dog", "child", "red", "blue", "runs", "sits", "on", "in", "street", "park"),
    *("with", "ball", "hat", "small", "big", "two"),
)
SENTENCES = 220
CHARACTERS = 4
"""Of a token, on average."""
STEPS = range(100, 1001, 100)


def corpus(outputs: Path) -> tuple[str, list[str]]:
    """Its folder's name, and its references."""
    rng = random.Random(7)
    references = [" ".join(rng.choices(WORDS, k=rng.randint(6, 12))) + "." for _ in range(SENTENCES)]
    return keep_text(outputs, "test", StoredText(references, references)), references


def translated(references: list[str], error: float, seed: object) -> list[str]:
    """Each word is wrong with probability `error`."""
    rng = random.Random(repr(seed))
    return [
        " ".join(rng.choice(WORDS) if rng.random() < error else word for word in reference.split())
        for reference in references
    ]


@cache
def _scored(hypotheses: tuple[str, ...], references: tuple[str, ...]) -> Scores:
    return score(hypotheses, references)


def scored(hypotheses: Sequence[str], references: Sequence[str]) -> Scores:
    """Score texts, equal ones once: the tests of a file fill many stores with the same runs."""
    return _scored(tuple(hypotheses), tuple(references))


def fill(
    words: tuple[str, ...],
    errors: dict[str, float],
    *,
    outputs: Path,
    diverged: frozenset = frozenset(),
    missing: frozenset = frozenset(),
    pruned: bool = False,
) -> Study:
    """A study all of whose runs are there, but for the (arm, seed) pairs that are missing; others diverged.

    errors: a rate for each arm. Runs that are there already stay as they are.
    pruned: with translations of the models along the curves; without, no depth changes the score.
    """
    study = define((*words, f"outputs={outputs}"))
    name, references = corpus(outputs)
    for cell in study.cells:
        if (cell.arm, cell.seed) in missing or cell.planned.folder.record() is not None:
            continue
        error = errors[cell.arm] + random.Random(cell.seed).gauss(0, 0.01)
        write(
            cell,
            None if (cell.arm, cell.seed) in diverged else translated(references, error, (cell.arm, cell.seed)),
            references,
            name,
            pruned=pruned,
        )
    return study


def write(cell: Cell, hypotheses: list[str] | None, references: list[str], corpus_name: str, *, pruned: bool) -> None:
    """One run; without hypotheses it has diverged."""
    folder = cell.planned.folder
    folder.begin(cell.planned.recipe)
    noise = int(hashlib.sha256(folder.run_id.encode()).hexdigest(), 16) % 1000 / 1000
    found = None if hypotheses is None else scored(hypotheses, references)
    rows = [f"{step},{step / 10},{2 + 100 / step},,{1 + noise},0,1000,,,," for step in STEPS]
    folder.metrics.write_text("\n".join([",".join(COLUMNS), *rows, ""]))
    folder.write_record(_record(cell, found, noise))
    if found is not None and hypotheses is not None:
        evaluation = _evaluation(cell, found, corpus_name, noise)
        folder.write_evaluation(evaluation, hypotheses)
        shallower = list(_pruned(cell, evaluation, hypotheses, references)) if pruned else 3 * [evaluation]
        folder.write_curve(_curve(cell, [evaluation, *shallower]))
        for key, artefact in artefacts(random.Random(folder.run_id)).items():
            write_artefact(folder.artefacts / f"{key}.json", artefact)


TOKENS = ["</s>", "the", "<b>", "the", "·s & co", "a word that is much too long for a label"]


def artefacts(rng: random.Random) -> dict[str, SeriesArtefact | MatrixArtefact]:
    """One of each kind as an analysis leaves them, and one that is its run's alone."""
    series = SeriesArtefact(
        title="gain by depth",
        section="Norms",
        about="What training made of it.",
        x=Axis(title="layer"),
        y=Axis(title="gain"),
        series=[
            *(Trace(label=site, x=[1, 2, 3], y=[rng.gauss(9, 1) for _ in range(3)]) for site in ("encoder", "decoder")),
            Trace(label="ends", x=[1, 2], y=[rng.gauss(9, 1), 12], names=["first", "last"]),
        ],
    )
    rows = [[rng.random() for _ in TOKENS] for _ in range(4)]
    looks = MatrixArtefact(
        title="A sentence </script> & more",
        section="Looks",
        about="Who looks at what.",
        settings={"source": "A sentence"},
        x=Axis(title="source", labels=TOKENS),
        y=Axis(title="target", labels=["ein", "·e", "Satz", "</s>"]),
        value="weight",
        slices=[Slice(label=label, values=rows) for label in ("all", "layer 1")],
    )
    worth = MatrixArtefact(
        title="What each is worth",
        section="Heads",
        x=Axis(title="head", labels=["1", "2", "3"]),
        y=Axis(title="layer", labels=["1", "2"]),
        value="nats",
        interchangeable=True,
        slices=[Slice(label="", values=[[rng.gauss(0, 1) for _ in range(3)] for _ in range(2)])],
    )
    own = series.model_copy(update={"section": None, "title": "its own"})
    return {"gain": series, "looks_1": looks, "worth": worth, "own": own}


def _record(cell: Cell, found: Scores | None, noise: float) -> Record:
    cost = Cost(
        steps=1000,
        epochs=2.0,
        tokens=10**6,
        seconds=100 + noise,
        train_seconds=90 + noise,
        tokens_per_second=10**4 + 100 * noise,
        peak_memory_bytes=10**9,
        parameters=10**6,
        flops_per_token=10.0**7,
    )
    best = 0.0 if found is None else found.bleu
    return Record(
        run_id=cell.planned.run_id,
        condition_id=condition_id(cell.planned.recipe),
        name=cell.planned.name,
        choices=cell.planned.composed.choices,
        state="diverged" if found is None else "finished",
        reason="the training loss is not a number at step 7" if found is None else "steps",
        time_limited=False,
        selected=None if found is None else _selected(2 + noise / 50, best),
        validations=[] if found is None else _validations(best),
        cost=cost,
        data={},
        runtime={"device": "cpu", "threads": 1},
        provenance={"commit": "0" * 40, "code": "abc"},
        config=cell.planned.config.model_dump(serialize_as_any=True),
        ended="2026-01-01T00:00:00Z",
    )


def _selected(loss: float, bleu: float) -> Selected:
    scores = {"loss": loss, "perplexity": 7.4, "bleu": bleu, "loss_per_character": loss / CHARACTERS}
    return Selected(steps=[1000], scores=scores)


def _validations(best: float) -> list[dict[str, float]]:
    return [
        {
            "step": float(step),
            "loss": 2 + math.exp(-step / 100),
            "loss_per_character": (2 + math.exp(-step / 100)) / CHARACTERS,
            "perplexity": 9.0,
            "bleu": best * (1 - math.exp(-step / 80)),
        }
        for step in STEPS
    ]


def _evaluation(cell: Cell, found: Scores, corpus_name: str, noise: float) -> Evaluation:
    loss = 2.1 + noise / 50
    return Evaluation(
        evaluation_id=cell.planned.evaluation_id,
        settings=cell.planned.evaluation,
        test_name="test",
        sentences=SENTENCES,
        scores={"bleu": found.bleu, "chrf": found.chrf, "loss": loss, "loss_per_character": loss / CHARACTERS},
        signatures=found.signatures,
        brevity_penalty=found.brevity_penalty,
        length_ratio=found.length_ratio,
        seconds=1.0,
        sentences_per_second=200.0 + noise,
        references=corpus_name,
        items={"bleu": found.sentences},
        provenance_code="abc",
        ended="2026-01-01T00:00:00Z",
    )


def _pruned(cell: Cell, whole: Evaluation, hypotheses: list[str], references: list[str]) -> Iterator[Evaluation]:
    """With 3, 2 and 1 of 4 decoder layers: so large a share of the sentences is still translated."""
    for depth in (3, 2, 1):
        kept = {"encoder": [0, 1, 2, 3], "decoder": list(range(depth))}
        settings = {"kept": kept, **cell.planned.evaluation}
        texts = [text if number < depth * SENTENCES // 4 else "x" for number, text in enumerate(hypotheses)]
        found = scored(texts, references)
        scores = {**whole.scores, "bleu": found.bleu, "chrf": found.chrf}
        update = {"settings": settings, "scores": scores, "items": {"bleu": found.sentences}}
        evaluation = whole.model_copy(update={**update, "evaluation_id": evaluation_id(settings)})
        cell.planned.folder.write_evaluation(evaluation, texts)
        yield evaluation


def _curve(cell: Cell, evaluations: list[Evaluation]) -> Curve:
    points = [
        Point(
            curve="decoder",
            encoder=[0, 1, 2, 3],
            decoder=list(range(depth)),
            parameters=10**6,
            bytes=4 * 10**6,
            valid={"loss": 2.0, "bleu": found.scores["bleu"]},
            evaluation_id=found.evaluation_id,
            scores={name: found.scores[name] for name in ("bleu", "chrf")},
            sentences_per_second=400.0,
            speed_ratio=1 + (4 - depth) / 3,
        )
        for depth, found in zip((4, 3, 2, 1), evaluations, strict=True)
    ]
    return Curve(
        curve_id=cell.planned.curve_id,
        settings=cell.planned.curve,
        label="every_other",
        test_name="test",
        combinations=0,
        points=points,
        timing={},
        provenance_code="abc",
        ended="2026-01-01T00:00:00Z",
    )


def claims_of(selection: SelectedArms) -> list[ClaimLine]:
    """The claims of a selection, with their sentences."""
    return with_words(judge(selection))
