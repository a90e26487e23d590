"""From what was typed to a selection: a study by name or by its words, or any finished runs of a store."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ablab.errors import UserError, choices
from ablab.fields import flatten
from ablab.identity import condition_id, distinct
from ablab.record import Record
from ablab.report.selection import ArmRuns, Registered, Run, Selection
from ablab.store import RunFolder, all_runs, find_run
from ablab.study.arms import Study
from ablab.study.claims import Settled, asked
from ablab.study.design import written
from ablab.study.experiment import Experiment
from ablab.study.ledger import entry_of
from ablab.study.registry import conditions, judged
from ablab.study.searches.search import BEST


def of_study(study: Study) -> Selection:
    """Every run that the study should have."""
    experiment, registered = study.experiment, Registered.of(study.folder)
    aside, departed = _departed(study, registered)
    withdrawn = _withdrawn(study, registered)
    factorial = experiment is not None and experiment.design == "factorial" and not experiment.exclude
    return Selection(
        name="-".join((study.name, *aside)),
        question="" if experiment is None else experiment.question,
        source=None if experiment is None else experiment.source,
        arms=[ArmRuns(arm.name, list(_runs_of(study, arm.name))) for arm in study.arms],
        baseline=study.baseline,
        metric="test_bleu" if experiment is None else experiment.metric,
        claims=[*study.claims, *withdrawn],
        registered=registered,
        outputs=study.outputs,
        factors=_level_names(experiment.factors) if factorial and experiment is not None else {},
        choosing=None if experiment is None else _choosing(experiment),
        departed=departed,
        notes=(*([] if departed is None else [departed]), *map(_still_judged, withdrawn)),
    )


def of_runs(references: Sequence[str], outputs: Path) -> Selection:
    """These runs, one arm for each recipe; the first is the baseline."""
    found = [_finished(reference, outputs) for reference in references]
    return _ad_hoc("runs", f"runs={','.join(references)}", found, outputs)


def where(conditions: str, outputs: Path) -> Selection:
    """The runs of the store whose groups or fields have these values, `model=tiny data=multi30k`."""
    wanted = [_condition(word) for word in conditions.split()]
    if not wanted:
        raise UserError("where=: say which runs, such as where='model=tiny data=multi30k'")
    records = [(run, record) for run in all_runs(outputs) if (record := run.record()) is not None]
    if not records:
        raise UserError(f"where={conditions}: no run has finished in {outputs}/runs; say outputs=<another store>")
    for key, _ in wanted:
        known = {name for _, record in records for name in _values(record)}
        if key not in known:
            raise UserError(f"where={conditions}: no run has {key}; {choices(key, known)}")
    found = [pair for pair in records if all(_same(_values(pair[1]).get(key), value) for key, value in wanted)]
    if not found:
        raise UserError(f"where={conditions}: none of the {len(records)} finished runs in {outputs}/runs is like that")
    return _ad_hoc("where", f"where={conditions}", found, outputs)


def _withdrawn(study: Study, registered: Registered | None) -> list[Settled]:
    """Claims of the first launch that the file has no longer: who drops what fails would get a milder correction."""
    still = [asked(claim) for claim in study.claims]
    return [claim for claim in (registered.claims if registered else []) if asked(claim) not in still]


def _still_judged(claim: Settled) -> str:
    margin = f", margin {claim.margin:g}" if claim.margin else ""
    said = f"{claim.arm} against {claim.baseline}, {claim.metric} {claim.expect}{margin}"
    return f"no longer in the file, and judged as it was registered: {said}"


def _departed(study: Study, registered: Registered | None) -> tuple[list[str], str | None]:
    """How this is not the study as it was first launched: what its report is called for it, and in words.

    Whoever leaves out seeds, or changes settings, once results are known can choose the verdicts by it.
    """
    if registered is None:
        return [], None
    aside, said = [], []
    for what, now, then in (
        ("settings differ", conditions(study), registered.conditions),
        ("ways to judge differ", judged(study), registered.judged),
    ):
        if any(now.get(arm, one) != one for arm, one in then.items()):
            aside.append(hashlib.sha256(json.dumps(now, sort_keys=True).encode()).hexdigest()[:7])
            said.append(f"{what} from those of the first launch")
    if left_out := sorted(set(registered.seeds) - set(study.seeds)):
        aside += ["seeds", *map(str, study.seeds)]
        said.append(f"seeds {', '.join(map(str, left_out))} of the first launch are left out")
    return aside, "; ".join(said) or None


def _choosing(experiment: Experiment) -> str | None:
    """Scores by which something was chosen are no evidence for it; those of this report are others."""
    if (search := experiment.search) is not None:
        by = f"by {', '.join(search.objectives)}, with seed {search.training_seed}"
        chosen = f"The arm {BEST} was chosen among {search.trials} trials ({search.sampler}) on validation, {by}"
    elif (tune := experiment.tune) is not None:
        by = f"on validation {tune.metric}, with seeds {', '.join(str(seed) for seed in tune.seeds)}"
        chosen = f"{tune.key} of each arm was chosen among {len(tune.values)} values {by}"
    else:
        return None
    return f"{chosen}: no score of this report took part in it."


def _runs_of(study: Study, arm: str) -> Iterator[Run]:
    for cell in study.cells:
        if cell.arm == arm:
            entry, planned = entry_of(cell), cell.planned
            yield Run(
                planned.folder,
                cell.seed,
                entry.state.value,
                entry.record,
                planned.folder.evaluation(planned.evaluation_id),
                planned.folder.curve(planned.curve_id),
                flatten(planned.recipe),
            )


def _level_names(factors: Any) -> dict[str, list[str]]:
    return {
        factor: list(levels) if isinstance(levels, dict) else [written(level) for level in levels]
        for factor, levels in factors.items()
    }


def _finished(reference: str, outputs: Path) -> tuple[RunFolder, Record]:
    folder = find_run(reference, outputs)
    record = folder.record()
    if record is None:
        raise UserError(f"runs={reference}: {folder.run_id} has not finished; type its train line again")
    return folder, record


def _condition(word: str) -> tuple[str, str]:
    key, equals, value = word.partition("=")
    if not equals:
        raise UserError(f"where={word}: allowed: key=value")
    return key, value


def _values(record: Record) -> dict[str, str]:
    """Groups by their option, fields by their value, as one would type them."""
    fields = {key: _typed(value) for key, value in flatten(record.config).items()}
    return {**fields, **record.choices, "seed": str(record.config["seed"])}


def _same(there: str | None, wanted: str) -> bool:
    """Numbers by their value: 0 is 0.0 and 1e-3 is 0.001."""
    try:
        return there is not None and float(there) == float(wanted)
    except ValueError:
        return there == wanted


def _typed(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else f"{value}"


def _ad_hoc(kind: str, said: str, found: Sequence[tuple[RunFolder, Record]], outputs: Path) -> Selection:
    conditions: dict[str, list[tuple[RunFolder, Record, dict[str, Any]]]] = {}
    for folder, record in found:
        recipe = folder.recipe()
        if "seed" not in recipe:
            raise UserError(f"{folder.path / 'recipe.yaml'}: cannot be read as a recipe")
        conditions.setdefault(condition_id(recipe), []).append((folder, record, recipe))
    names = _names([runs[0][1] for runs in conditions.values()])
    arms = []
    for arm, runs in zip(names, conditions.values(), strict=True):
        once = {folder.run_id: (folder, record, recipe) for folder, record, recipe in runs}
        arms.append(ArmRuns(arm, [_run(*one) for one in sorted(once.values(), key=lambda one: one[2]["seed"])]))
    ids = sorted(folder.run_id for folder, _ in found)
    name = f"{kind}-{hashlib.sha256(json.dumps(ids).encode()).hexdigest()[:11]}"
    baseline = arms[0] if kind == "runs" else max(arms, key=lambda arm: (len(arm.finished), -_words(arm)))
    return Selection(name, said, None, arms, baseline.name, "test_bleu", [], None, outputs)


def _words(arm: ArmRuns) -> int:
    """By which it differs from the defaults."""
    (name,) = {run.record.name.rpartition(",")[0] for run in arm.runs[:1] if run.record}
    return len(name.split(",")) if name else 0


def _run(folder: RunFolder, record: Record, recipe: dict[str, Any]) -> Run:
    """With its latest evaluation of the whole model, and its latest curve."""
    whole = [found for found in folder.evaluations() if "kept" not in found.settings]
    curves = folder.curves()
    return Run(
        folder,
        recipe["seed"],
        record.state if record.state == "diverged" or whole else "not judged",
        record,
        whole[-1] if whole else None,
        curves[-1] if curves else None,
        flatten(recipe),
    )


def _names(records: Sequence[Record]) -> list[str]:
    """What sets each apart from the others, by the words of their display names; the seed is none of it."""
    names = distinct([record.name.rpartition(",")[0] for record in records])
    return [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]
