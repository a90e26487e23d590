"""The plan of a run: its configuration, ids and folder, determined before training and without torch."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ablab import identity
from ablab.config import Composed, Config
from ablab.config.groups import default_choices
from ablab.config.reopen import reopen
from ablab.errors import UserError
from ablab.fields import Group, flatten
from ablab.store.finished import FinishedRun, find_model
from ablab.store.records import SCHEMA, Record
from ablab.store.run_folder import RunFolder
from ablab.store.saved_model import SavedModel


@dataclass(frozen=True)
class Planned:
    """A planned run: its configuration, name, folder, identity and, if any, the model that training starts from."""

    composed: Composed
    name: str
    folder: RunFolder
    recipe: dict[str, Any]
    evaluation: dict[str, Any]
    curve: dict[str, Any]
    origin: SavedModel | None

    @property
    def config(self) -> Config:
        return self.composed.config

    @property
    def run_id(self) -> str:
        """The id derived from the recipe."""
        return self.folder.run_id

    @cached_property
    def evaluation_id(self) -> str:
        """The id derived from the evaluation's settings."""
        return identity.evaluation_id(self.evaluation)

    @cached_property
    def curve_id(self) -> str:
        """The id derived from the settings of pruning."""
        return identity.curve_id(self.curve)

    def reseeded(self, seed: int) -> "Planned":
        """Return the plan of the same run under another seed, which decides nothing but the recipe's seed and the name.

        For settings that do not refer to the seed; `plan` would return the same, and takes longer.
        """
        composed, recipe = self.composed.reseeded(seed), {**self.recipe, "seed": seed}
        name = f"{self.name.removesuffix(identity.of_seed(self.config.seed))}{identity.of_seed(seed)}"
        folder = RunFolder(self.outputs / "runs" / identity.run_id(recipe))
        found = replace(self, composed=composed, name=name, folder=folder, recipe=recipe)
        vars(found).update(evaluation_id=self.evaluation_id, curve_id=self.curve_id)  # cached: they have no seed
        return found

    def lacks_evaluation(self, record: Record) -> bool:
        """Return whether the selected weights have not been evaluated on this test set with this search."""
        return record.selected is not None and not self.folder.has_evaluation(self.evaluation_id)

    def lacks_curve(self, record: Record) -> bool:
        """Return whether the run should have a pruning curve with these pruning settings and has none.

        A curve under any search or test set counts: asking for another evaluation does not ask for another curve.
        """
        if self.config.pruning.kind == "none" or record.selected is None:
            return False
        return all(curve.settings["pruning"] != self.curve["pruning"] for curve in self.folder.curves())

    @property
    def outputs(self) -> Path:
        return Path(self.config.outputs)


def plan(composed: Composed) -> Planned:
    """Check everything that can be checked before the corpus is prepared, and derive the run's ids."""
    config = composed.config
    config.data.check()
    _check_writable(Path(config.outputs))
    origin = _origin(config)
    recipe = identity.recipe(config, origin=None if origin is None else origin.digest())
    (composed.asked or config.data).check_pairs()
    return Planned(
        composed,
        identity.display_name(composed, default_choices()),
        RunFolder(Path(config.outputs) / "runs" / identity.run_id(recipe)),
        recipe,
        identity.evaluation(config),
        identity.curve(config),
        origin,
    )


def reopened(run: FinishedRun, words: Sequence[str]) -> Planned:
    """Plan a finished run for other evaluations, wherever its folder lies now; `words` as in config.reopen.

    Raises UserError where the text is not the one that the run was trained on: its tokenizers would not fit.
    """
    folder, record = run.folder, run.record
    config = reopen({**record.settings, "outputs": str(folder.outputs)}, words)
    config.data.check()
    known, digests = flatten(folder.recipe()), config.data.digests()
    if record.schema_version == SCHEMA and known.get("data.digest") != digests["digest"]:
        raise UserError(
            f"{run.run_id}: the text that data.* names is not what it was trained on; allowed: the same sentences (a "
            "relative path is looked up from the present folder; a corpus that a package makes, by the same version)"
        )
    if known.get("data.dropped") != digests.get("dropped"):
        raise UserError(
            f"{run.run_id}: data.overlap=drop left the sentences of another test set out of its training; allowed: the "
            "test set that it was trained with"
        )
    _check_writable(folder.outputs)
    return Planned(
        Composed(config, record.choices, {}),
        record.name,
        folder,
        folder.recipe(),
        identity.evaluation(config),
        identity.curve(config),
        None,
    )


def _origin(config: Config) -> SavedModel | None:
    """Return the model that training starts from, or None; UserError if its architecture does not fit."""
    if config.init_from is None:
        return None
    saved = find_model(config.init_from, Path(config.outputs), key="init_from")
    if saved.heads is not None:
        raise UserError(
            f"init_from={config.init_from}: heads were removed from it, and model.num_heads is one number for every "
            "attention; allowed: a run, or a model that layers were removed from"
        )
    sizes = ("d_model", "d_ff", "num_heads", "encoder_layers", "decoder_layers")
    for key in (*sizes, "tie", "attention_bias", "output_bias"):
        theirs, ours = getattr(saved.architecture.model, key), getattr(config.model, key)
        if theirs != ours:
            raise UserError(f"init_from={config.init_from}: its model.{key} is {theirs}, not {ours}; allowed: {theirs}")
    for group in ("norm", "placement", "embedding", "attention_norm", "feed_forward", "position"):
        theirs, ours = getattr(saved.architecture, group), getattr(config, group)
        if theirs != ours:
            raise UserError(
                f"init_from={config.init_from}: its {group} is {_differing(theirs, ours)}; allowed: the same"
            )
    return saved


def _differing(theirs: Group, ours: Group) -> str:
    there, here = theirs.model_dump(), ours.model_dump()
    keys = [key for key in {**there, **here} if there.get(key) != here.get(key)]
    return ", ".join(f"{key}={there.get(key)}, not {here.get(key)}" for key in keys)


def _check_writable(outputs: Path) -> None:
    existing = next(path for path in (outputs, *outputs.resolve().parents) if path.exists())
    if not existing.is_dir():
        raise UserError(f"outputs={outputs}: {existing} is not a folder")
    if not os.access(existing, os.W_OK | os.X_OK):
        raise UserError(f"outputs={outputs}: no permission to write in {existing}")
