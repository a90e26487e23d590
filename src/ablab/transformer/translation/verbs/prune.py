"""The `prune` command: pruning curves of finished runs, and smaller models cut out of them."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ablab.config.groups import default_choices
from ablab.errors import UserError
from ablab.files import sha256
from ablab.store.finished import FinishedRun, open_runs
from ablab.store.locks import locked
from ablab.store.records import Curve, Point, Record, Strict
from ablab.store.run_folder import CARD, model_files
from ablab.tasks.plan import reopened
from ablab.tasks.verbs import say_json, split_words
from ablab.text import program
from ablab.tracking.console import Console
from ablab.tracking.open import open_tracker
from ablab.transformer.config.options import RulePruning, removes_heads
from ablab.transformer.config.schema import PlannedTranslation, TranslationConfig, plan_of_translation
from ablab.transformer.pruning.curve_files import Pruned, comparable, draw_several, picture, write_artefacts
from ablab.transformer.pruning.heads import Heads, head_counts
from ablab.transformer.pruning.plot import remaining
from ablab.transformer.pruning.saved_model import PRUNED, of_run
from ablab.transformer.pruning.strategies import Depths, targets
from ablab.transformer.translation.verbs.options import PruneOptions

TOLERANCE = 1.0
"""Loss of validation BLEU that `save=auto` accepts."""


class PrunedRun(Strict):
    """A run and its pruning curve. `saved`: folder of the model that was saved, or None."""

    run: str
    name: str
    curve: Curve
    saved: str | None


class PrunedRuns(Strict):
    """Pruning curves. `picture`: of all of them."""

    runs: list[PrunedRun]
    picture: str


def prune(arguments: Sequence[str]) -> int:
    """Measure missing curves, save a pruned model, and draw several runs in one picture."""
    options, words = split_words(PruneOptions, arguments)
    runs = open_runs(options.run, options.runs, Path(options.outputs), selected=True)
    opened = [(_reopened(run, words), run.record) for run in runs]
    _check(opened, options)
    as_json = options.format == "json"
    console = Console(bars=all(planned.config.trainer.progress for planned, _ in opened), stderr=as_json)
    for former in (record.former for _, record in opened if record.former):
        console.say(former)
    curves = [_curve(planned, record, console) for planned, record in opened]
    pruned = []
    for (planned, record), curve in zip(opened, curves, strict=True):
        console.say(f"\n{planned.run_id}  {record.name}   {curve.test_name}")
        console.curve(planned.task, curve)
        place, lines = _save(planned, record, curve, options.save, console)
        for line in lines:
            console.say(line)
        saved = None if place is None else str(place)
        pruned.append(PrunedRun(run=planned.run_id, name=record.name, curve=curve, saved=saved))
    drawn = _draw(opened, curves, options, console)
    if as_json:
        say_json(PrunedRuns(runs=pruned, picture=str(drawn)))
    return 0


def _reopened(run: FinishedRun, words: Sequence[str]) -> PlannedTranslation:
    if "pruning=none" in words:
        raise UserError(f"pruning=none: {run.run_id} gets no curve; allowed: any other option of pruning")
    if run.record.settings.get("pruning", {}).get("kind") == "none" and not any(
        word.startswith("pruning=") for word in words
    ):
        words = [f"pruning={default_choices()['pruning']}", *words]  # the run was trained without a curve
    return plan_of_translation(reopened(run, words))


def _check(opened: Sequence[tuple[PlannedTranslation, Record]], options: PruneOptions) -> None:
    """Check, before any measurement, that the points can be saved and the runs drawn in one picture."""
    if options.save not in ("auto", "none"):
        for planned, _ in opened:
            shapes = dict.fromkeys(_shapes(planned.config))
            if options.save not in shapes:
                raise UserError(f"save={options.save}: no point of this curve; allowed: {', '.join(shapes)}")
    first, _ = opened[0]
    if any(planned.evaluation != first.evaluation for planned, _ in opened):
        runs = ",".join(planned.run_id for planned, _ in opened)
        raise UserError(f"runs={runs}: their test sets or searches differ; allowed: one test set, one search")


def _shapes(config: TranslationConfig) -> Iterator[str]:
    full = Depths(config.model.encoder_layers, config.model.decoder_layers)
    pruning = config.pruning
    if removes_heads(pruning):
        yield from map(str, head_counts(Heads.all_of(*full, config.model.num_heads), pruning.own["heads"]))
        return
    assert isinstance(pruning, RulePruning)
    for name in pruning.curves:
        yield from (f"{target.encoder}+{target.decoder}" for target in targets(name, full, pruning.depths))


def _curve(planned: PlannedTranslation, record: Record, console: Console) -> Curve:
    with locked(planned.folder):
        planned.folder.tidy()
        known = planned.folder.curve(planned.curve_id)
        if known is not None:
            console.say(f"{planned.run_id} {known.label} was measured on {known.ended[:10]}: nothing is measured again")
            write_artefacts(planned.folder, known, record.name)  # other curves may be new
            return known
        from ablab.transformer.translation.callbacks import callbacks_after_training
        from ablab.transformer.translation.prune_curve import prune_curve

        with callbacks_after_training(planned, console) as callbacks:
            return prune_curve(planned, record, callbacks)


def _save(
    planned: PlannedTranslation, record: Record, curve: Curve, wanted: str, console: Console
) -> tuple[Path | None, list[str]]:
    """Save the requested model; return its folder, if any, and lines about the result and the next command."""
    if wanted == "none":
        return None, []
    point = _smallest_within(curve, TOLERANCE) if wanted == "auto" else _of_shape(curve, wanted)
    if point is None:
        whole = curve.points[0].valid["bleu"]
        why = (
            f"No pruned model keeps its validation BLEU within {TOLERANCE:g} of the full one's"
            if whole > TOLERANCE
            else f"The full model's validation BLEU is {whole:.2f}, which no model is far below"
        )
        return None, [
            f"{why}: none is saved (save={'heads' if curve.of_heads else 'encoder+decoder'} saves any of the table, "
            f"such as save={_shape(curve.points[-1])})"
        ]
    from ablab.transformer.pruning.surgery import save_pruned

    with locked(planned.folder):
        place = save_pruned(planned.folder, of_run(planned.folder, record), curve, point)
        _track(planned, place, console)
    full, what = curve.points[0], "heads" if curve.of_heads else "layers"
    return place, [
        f"Saved: {_shape(point)} {what}, {point.parameters:,} of {full.parameters:,} parameters, validation BLEU "
        f"{point.valid['bleu']:.2f} of {full.valid['bleu']:.2f}",
        f"Next: echo 'a sentence' | {program('translate')} run={place}",
    ]


def _track(planned: PlannedTranslation, place: Path, console: Console) -> None:
    """Let the tracker store a saved model, if the user wants it."""
    if not planned.config.logger.stores("pruned"):
        return
    with open_tracker(planned, console.say) as tracker:
        tracker.model("pruned", place.name, model_files(place, PRUNED, CARD), sha256(place / PRUNED))


def _shape(point: Point) -> str:
    """Return what `save` calls the point: `4+3` layers, or a number of heads."""
    if point.heads is not None:
        return str(remaining(point))
    return f"{len(point.encoder)}+{len(point.decoder)}"


def _smallest_within(curve: Curve, tolerance: float) -> Point | None:
    """Choose by validation alone: the test set must not affect the choice. A BLEU near 0 cannot choose."""
    full = curve.points[0]
    if full.valid["bleu"] <= tolerance:
        return None
    least = full.valid["bleu"] - tolerance
    good = [point for point in curve.points if point.valid["bleu"] >= least and point.parameters < full.parameters]
    return min(good, key=lambda point: (point.parameters, -point.valid["bleu"]), default=None)


def _of_shape(curve: Curve, wanted: str) -> Point:
    return next(point for point in curve.points if _shape(point) == wanted)


def _draw(
    opened: Sequence[tuple[PlannedTranslation, Record]],
    curves: Sequence[Curve],
    options: PruneOptions,
    console: Console,
) -> Path:
    """Draw the curves, say where, and return the picture."""
    if len(opened) == 1 and options.picture is None:
        ((planned, _),) = opened
        drawn = picture(planned.folder, curves[0])
        console.say(f"Results: {drawn}, {drawn.with_suffix('.csv')}")
        return drawn
    shown = [
        Pruned(planned.run_id, record.name, comparable(planned.folder.curves(), curve))
        for (planned, record), curve in zip(opened, curves, strict=True)
    ]
    heads = "heads-" if curves[0].of_heads else ""
    runs = "-".join(planned.run_id for planned, _ in opened)
    default = Path(options.outputs) / "curves" / f"{heads}{runs}.png"
    drawn = draw_several(shown, Path(options.picture or default))
    console.say(f"Results: {drawn}")
    return drawn
