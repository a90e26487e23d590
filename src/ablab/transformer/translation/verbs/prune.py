"""The `prune` command: pruning curves of finished runs, and smaller models cut out of them."""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from ablab.config.groups import default_choices
from ablab.errors import UserError
from ablab.files import folder_name, sha256
from ablab.store.finished import FinishedRun, open_runs
from ablab.store.locks import locked
from ablab.store.records import Curve, Point, Record, Strict
from ablab.store.run_folder import CARD, model_files
from ablab.store.spent import Spent
from ablab.tasks.plan import PlannedRun, reopened
from ablab.tasks.verbs import say_json, split_words
from ablab.tracking.console import Console
from ablab.tracking.open import open_tracker
from ablab.transformer.config.options import RulePruning, removes_heads
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.pruning.curve_files import Pruned, comparable, draw_several, picture, write_artefacts
from ablab.transformer.pruning.heads import Heads, head_counts
from ablab.transformer.pruning.plot import quality_at, remaining
from ablab.transformer.pruning.saved_model import PRUNED, of_run
from ablab.transformer.pruning.strategies import Depths, curves_of, targets
from ablab.transformer.stages.task import TransformerTask, task_of_models
from ablab.transformer.translation.verbs.options import PruneOptions

Planned = PlannedRun[TransformerConfig]


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
        console.say_all(lines)
        saved = None if place is None else str(place)
        pruned.append(PrunedRun(run=planned.run_id, name=record.name, curve=curve, saved=saved))
    drawn = _draw(opened, curves, options, console)
    if as_json:
        say_json(PrunedRuns(runs=pruned, picture=str(drawn)))
    return 0


def _reopened(run: FinishedRun, words: Sequence[str]) -> Planned:
    task_of_models(run)
    if "pruning=none" in words:
        raise UserError(f"pruning=none: {run.run_id} gets no curve; allowed: any other option of pruning")
    if run.record.settings.get("pruning", {}).get("kind") == "none" and not any(
        word.startswith("pruning=") for word in words
    ):
        words = [f"pruning={default_choices()['pruning']}", *words]  # the run was trained without a curve
    return cast(Planned, reopened(run, words))


def _check(opened: Sequence[tuple[Planned, Record]], options: PruneOptions) -> None:
    """Check, before any measurement, that the points can be saved and the runs drawn in one picture."""
    if options.save not in ("auto", "none"):
        for planned, _ in opened:
            shapes = dict.fromkeys(_shapes(planned.config))
            if options.save not in shapes:
                raise UserError(f"save={options.save}: no point of this curve; allowed: {', '.join(shapes)}")
    if len({removes_heads(planned.config.pruning) for planned, _ in opened}) > 1:
        runs = ",".join(planned.run_id for planned, _ in opened)
        raise UserError(f"runs={runs}: curves of layers and of heads; allowed: one pruning= for all of them")
    first, *others = (_judged(planned.evaluation) for planned, _ in opened)
    if any(other != first for other in others):
        runs = ",".join(planned.run_id for planned, _ in opened)
        raise UserError(f"runs={runs}: their test sets or searches differ; allowed: one test set, one search")


def _judged(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of an evaluation without the name of its test set, whose content tells which it is."""
    return {**evaluation, "test": {key: value for key, value in evaluation["test"].items() if key != "name"}}


def _shapes(config: TransformerConfig) -> Iterator[str]:
    full = Depths(config.sizes["encoder_layers"], config.sizes["decoder_layers"])
    pruning = config.pruning
    if removes_heads(pruning):
        whole = Heads.all_of(*full, config.sizes["num_heads"])
        yield from map(str, head_counts(whole, pruning.own["heads"]))
        return
    assert isinstance(pruning, RulePruning)
    for name in curves_of(pruning.curves, full):
        yield from (_layers(*target) for target in targets(name, full, pruning.depths))


def _layers(encoder: int, decoder: int) -> str:
    """Return what `save` calls so many layers: `6+3`, or `3` of a model with one stack."""
    return f"{encoder}+{decoder}" if encoder else str(decoder)


def _curve(planned: Planned, record: Record, console: Console) -> Curve:
    with locked(planned.folder):
        planned.folder.tidy()
        known = planned.folder.curve(planned.curve_id)
        if known is not None:
            console.say(f"{planned.run_id} {known.label} was measured on {known.ended[:10]}: nothing is measured again")
            write_artefacts(planned.folder, known, record.name)  # other curves may be new
            return known
        from ablab.transformer.stages.callbacks import callbacks_after_training

        spent = Spent(planned.folder.spent)
        spent.begin("curve")
        with ExitStack() as last, callbacks_after_training(planned, console) as callbacks:
            last.callback(spent.keep)
            curve: Curve = planned.task.measure_curve(planned, record, callbacks)
            return curve


def _save(
    planned: Planned, record: Record, curve: Curve, wanted: str, console: Console
) -> tuple[Path | None, list[str]]:
    """Save the requested model; return its folder, if any, and lines about the result and the next command."""
    if wanted == "none":
        return None, []
    of_shape = (point for point in curve.points if _shape(point) == wanted)
    point = _smallest_within(curve) if wanted == "auto" else next(of_shape)
    if point is None:
        return None, [_why_none(curve)]
    from ablab.transformer.pruning.surgery import save_pruned

    assert isinstance(planned.task, TransformerTask)
    with locked(planned.folder):
        whole = of_run(planned.folder, record, record.task)
        place = save_pruned(planned.folder, whole, curve, point)
        _track(planned, place, console)
    full, what, quality = curve.points[0], "heads" if curve.of_heads else "layers", quality_at(point)
    kept, all_of_it = (f"{one.valid[quality.key]:.{quality.digits}f}" for one in (point, full))
    return place, [
        f"Saved: {_shape(point)} {what}, {point.parameters:,} of {full.parameters:,} parameters, validation "
        f"{quality.unit} {kept} of {all_of_it}",
        f"Next: {planned.task.line_for(shlex.quote(str(place)))}",
    ]


def _why_none(curve: Curve) -> str:
    quality, whole = quality_at(curve.points[0]), curve.points[0].valid
    why = (
        f"The full model's validation {quality.unit} is {whole[quality.key]:.2f}, which no model is far below"
        if _is_near_nothing(curve)
        else f"No pruned model keeps its validation {quality.unit} within {quality.close:g} of the full one's"
    )
    any_of = "heads" if curve.of_heads else "layers" if not curve.points[0].encoder else "encoder+decoder"
    return f"{why}: none is saved (save={any_of} saves any of the table, such as save={_shape(curve.points[-1])})"


def _is_near_nothing(curve: Curve) -> bool:
    """Return whether the full model's score is so near the worst one that it cannot choose, as a BLEU of 0."""
    quality = quality_at(curve.points[0])
    return quality.higher_is_better and curve.points[0].valid[quality.key] <= quality.close


def _track(planned: Planned, place: Path, console: Console) -> None:
    """Let the tracker store a saved model, if the user wants it."""
    if not planned.config.logger.stores("pruned"):
        return
    with open_tracker(planned, console.say) as tracker:
        tracker.model("pruned", place.name, model_files(place, PRUNED, CARD), sha256(place / PRUNED))


def _shape(point: Point) -> str:
    """Return what `save` calls the point: its layers, or a number of heads."""
    if point.heads is not None:
        return str(remaining(point))
    return _layers(len(point.encoder), len(point.decoder))


def _smallest_within(curve: Curve) -> Point | None:
    """Choose by validation alone: the test set must not affect the choice."""
    if _is_near_nothing(curve):
        return None
    full, quality = curve.points[0], quality_at(curve.points[0])
    sign = 1 if quality.higher_is_better else -1
    least = sign * full.valid[quality.key] - quality.close
    good = [point for point in curve.points if sign * point.valid[quality.key] >= least]
    smaller = [point for point in good if point.parameters < full.parameters]
    return min(smaller, key=lambda point: (point.parameters, -sign * point.valid[quality.key]), default=None)


def _draw(
    opened: Sequence[tuple[Planned, Record]],
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
    default = Path(options.outputs) / "curves" / f"{folder_name(heads + runs)}.png"
    drawn = draw_several(shown, Path(options.picture or default))
    console.say(f"Results: {drawn}")
    return drawn
