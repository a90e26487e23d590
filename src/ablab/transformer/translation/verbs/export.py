"""The `export` command: convert a trained or pruned model for another inference engine, and compare translations."""

from collections.abc import Sequence
from pathlib import Path

from ablab.config.schema import DEFAULT
from ablab.errors import UserError
from ablab.files import read_json
from ablab.store.finished import open_run
from ablab.store.run_folder import CARD, RunFolder
from ablab.store.shared import stored_text
from ablab.tasks.registry import task_named
from ablab.tasks.task import Task
from ablab.tasks.verbs import read_words
from ablab.tracking.console import Console
from ablab.transformer.pruning.saved_model import SavedModel, find_model
from ablab.transformer.stages.task import TransformerTask
from ablab.transformer.translation.verbs.options import ExportOptions


def export(arguments: Sequence[str]) -> int:
    """Convert the model, translate test sentences with both engines, and report how many differ."""
    options = read_words(ExportOptions, arguments)
    if (task := task_named(_task_of(options))).name != DEFAULT:
        return _in_a_layout(options, task)
    saved = find_model(options.run, Path(options.outputs))
    chosen = options.format or FORMAT
    if chosen != FORMAT:
        raise UserError(f"format={chosen}: {saved.name} is a model of task={DEFAULT}; allowed: {FORMAT}")
    folder = Path(options.folder or export_folder(saved, FORMAT, options.quantization))
    sources = _test_sources(saved)[: options.check]
    console = Console()
    if saved.former:
        console.say(saved.former)

    from ablab.transformer.export.ctranslate2 import to_ctranslate2
    from ablab.transformer.stages.models import device_of, load_model

    model, tokenizers = load_model(saved, device_of("cpu"))
    to_ctranslate2(model, tokenizers, folder, quantization=options.quantization)
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    console.say(f"{saved.name} as {chosen}, {options.quantization}: {megabytes:.1f} MB")
    if sources:
        from ablab.transformer.export.translator import compare

        with console.counting("translating with both", 2 * len(sources)) as advance:
            agreement = compare(model, tokenizers, folder, sources, advance)
        console.say_all(agreement.lines())
    elif options.check:
        console.say("Not compared with ours: the test sentences of its run are not in the store")
    console.say(f"Results: {folder}")
    return 0


FORMAT = "ctranslate2"
"""The format of models of translation."""


def _task_of(options: ExportOptions) -> str:
    """Return the name of the task of a run, or of a pruned model, which its card has."""
    folder = Path(options.run)
    if not (folder / CARD).exists():
        return open_run(options.run, Path(options.outputs), selected=True).record.task
    card = read_json(folder / CARD)
    recipe = card.get("recipe") if isinstance(card, dict) else None
    return str(recipe.get("task", {}).get("kind", DEFAULT)) if isinstance(recipe, dict) else DEFAULT


def _in_a_layout(options: ExportOptions, task: Task) -> int:
    """Write the model in a layout of another library."""
    layouts = task.layouts if isinstance(task, TransformerTask) else ()
    if options.format not in layouts:
        allowed = ", ".join(layouts) or f"runs of task={DEFAULT}"
        given = "format: missing" if options.format is None else f"format={options.format}"
        raise UserError(f"{given}; {options.run} is a model of task={task.name}; allowed: {allowed}")
    for key in sorted(options.model_fields_set & {"quantization", "check"}):
        raise UserError(f"{key}={getattr(options, key)} has no effect with format={options.format}; allowed: {FORMAT}")
    saved = find_model(options.run, Path(options.outputs), task=task.name)
    folder = Path(options.folder or _home(saved) / "exports" / str(options.format))
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise UserError(f"{folder}: exists; say a new folder, or remove it")
    assert isinstance(task, TransformerTask)
    task.export(saved, str(options.format), folder)
    console = Console()
    megabytes = sum(path.stat().st_size for path in folder.iterdir()) / 1e6
    console.say(f"{saved.name} as {options.format}: {megabytes:.1f} MB")
    console.say(f"Next: transformers.AutoModelForCausalLM.from_pretrained('{folder}')")
    console.say(f"Results: {folder}")
    return 0


def export_folder(saved: SavedModel, format: str, quantization: str) -> Path:
    """Return the default folder of an export."""
    return _home(saved) / "exports" / f"{format}-{quantization}"


def _home(saved: SavedModel) -> Path:
    """Return the folder of the model: that of its run, or that of the pruned model."""
    folder = saved.weights.parent
    return folder.parent if (folder.parent / "record.json").exists() else folder


def _test_sources(saved: SavedModel) -> list[str]:
    """Return the test sentences that its run was scored on; none if a pruned model was moved away from its run."""
    for run in (RunFolder(path) for path in saved.weights.parents if (path / "record.json").exists()):
        for evaluation in run.evaluations():
            text = stored_text(run.outputs, evaluation.references)
            if text is not None:
                return text.sources
    return []
