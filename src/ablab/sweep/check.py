"""A check of every distinct arm before the first run: it builds, trains a few steps and decodes a sentence."""

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

from ablab.files import read_json, write_json
from ablab.study.study import Cell, Study
from ablab.tasks.identity import condition_id
from ablab.tracking.console import Console

Tried = dict[str, Any]
"""parameters, seconds_per_step, total_steps, None for what a task does not know; or error."""

FILE = "tried.json"


def tried(study: Study) -> dict[str, Tried]:
    """Return the results of earlier checks, by condition."""
    path = study.folder / FILE
    known: dict[str, Tried] = read_json(path) if path.exists() else {}
    return known


def has_passed(study: Study) -> bool:
    """Return whether every arm was tried before and works."""
    known = tried(study)
    conditions = {condition_id(cell.planned.recipe) for cell in study.cells}
    return conditions <= known.keys() and not any("error" in known[condition] for condition in conditions)


def check(study: Study, console: Console) -> bool:
    """Check every arm, each in a fresh process; print what fails, and return whether all passed."""
    found: dict[str, Tried] = {}
    cells: dict[str, Cell] = {}
    for cell in study.cells:
        cells.setdefault(condition_id(cell.planned.recipe), cell)  # seeds do not matter here
    with console.counting_bar("arms tried", len(cells)) as bar:
        for condition, cell, result in _try_all(cells, study.task.modules):
            found[condition] = result
            result_line = result.get("error") or _in_words(result)
            console.say(f"{'fails' if 'error' in result else 'works'}  {cell.arm}: {result_line}")
            bar.advance(1)
    write_json(study.folder / FILE, found)
    return not any("error" in result for result in found.values())


def _in_words(result: Tried) -> str:
    counted = "" if result["parameters"] is None else f"{result['parameters']:,} parameters, "
    seconds = result["seconds_per_step"]
    if seconds is None:
        return f"{counted}{result.get('note', 'no step to time')}"
    return f"{counted}{seconds:.3f} s a step" if seconds >= 0.001 else f"{counted}{1000 * seconds:.2g} ms a step"


def _try_all(cells: dict[str, Cell], modules: Sequence[str]) -> Iterator[tuple[str, Cell, Tried]]:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*modules, "ablab.sweep.check", "ablab.config.values"])
    for condition, cell in cells.items():
        with ProcessPoolExecutor(1, context) as pool:
            try:
                result = pool.submit(_try, cell.words).result()
            except BrokenProcessPool:
                result = {"error": "its process was killed (out of memory?)"}
        yield condition, cell, result


def _try(words: tuple[str, ...]) -> Tried:
    from ablab.config import compose
    from ablab.tasks.plan import plan

    try:
        planned = plan(compose(words))
        return planned.task.dry_run(planned)
    except Exception as error:
        return {"error": f"{type(error).__name__}: {' '.join(str(error).split())}"}
