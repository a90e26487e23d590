"""The evaluation stage: how well a run's weights, or some of its layers, predict the test text."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import ValidationError
from safetensors.torch import load_file

from ablab.code.code import code
from ablab.code.differences import other_judge
from ablab.config.kinds import with_options
from ablab.errors import UserError, reason
from ablab.files import sha256
from ablab.store.finished import FinishedRun, open_run
from ablab.store.records import EvaluatedSet, Evaluation, Record, now
from ablab.store.run_folder import SELECTED, RunFolder
from ablab.transformer.build import set_threads
from ablab.transformer.data.documents.prepared import encode_tests
from ablab.transformer.data.documents.tokenizers import TextTokenizer, load_tokenizer, save_tokenizer
from ablab.transformer.export.transformers_layouts import to_transformers
from ablab.transformer.language_model.build import LanguageModelBuilder
from ablab.transformer.language_model.schema import NAME, LanguageModelArchitecture, PlannedLanguageModel
from ablab.transformer.language_model.scoring import Predicted, predicted
from ablab.transformer.model.language_model import LanguageModel
from ablab.transformer.training.callbacks import Callback


@dataclass(frozen=True)
class LoadedModel:
    """A finished run's model with its selected weights, in evaluation mode, and its tokenizer."""

    folder: RunFolder
    record: Record
    model: LanguageModel
    tokenizer: TextTokenizer

    @classmethod
    def of(cls, folder: RunFolder, record: Record, device: torch.device) -> "LoadedModel":
        """UserError for a run of another task or without weights, or weights that are not those it was scored with."""
        if record.task != NAME:
            raise UserError(f"{folder.run_id} is a run of task={record.task}; allowed: runs of task={NAME}")
        if record.selected is None:
            raise UserError(f"{folder.run_id} diverged ({record.reason}); it has no weights to use")
        weights = folder.checkpoints / SELECTED
        if not weights.is_file() or sha256(weights) != record.selected.sha256:
            raise UserError(
                f"{weights}: gone or not the file that {folder.run_id} was scored with; allowed: that file, or the "
                "run's train line with rerun=true"
            )
        tokenizer = load_tokenizer(folder.checkpoints)
        model = LanguageModelBuilder(_architecture(record), seed=0).language_model(len(tokenizer))
        model.load_state_dict(load_file(weights))
        return cls(folder, record, model.to(device).eval(), tokenizer)

    @classmethod
    def named(cls, reference: str, outputs: str, device: torch.device) -> "LoadedModel":
        """Return the run that an id, a prefix of one, a display name or a path names."""
        run = open_run(reference, Path(outputs), key="run", selected=True)
        return cls.of(run.folder, run.record, device)

    @property
    def context(self) -> int:
        """The most tokens that it was trained to read."""
        count: int = self.record.config["model"]["context"]
        return count


def _architecture(record: Record) -> LanguageModelArchitecture:
    fields = LanguageModelArchitecture.model_fields
    wanted = {name: record.settings[name] for name in fields if name in record.settings}
    try:
        return LanguageModelArchitecture.model_validate(with_options(LanguageModelArchitecture, wanted))
    except ValidationError as error:
        raise UserError(f"{record.run_id}: not an architecture of this version ({reason(error)})") from None


class TextEvaluator:
    """The test text of a configuration, ready to evaluate models, whole or pruned."""

    def __init__(self, planned: PlannedLanguageModel, tokenizer: TextTokenizer, callbacks: Callback) -> None:
        self.planned, self.callbacks = planned, callbacks
        self.sets = encode_tests(planned.config.data, tokenizer)
        self.name = " + ".join(name for name, _ in self.sets)

    def evaluate(self, model: Any, evaluation_id: str, settings: dict[str, Any]) -> Evaluation:
        """Predict the test text, and add one evaluation to the run."""
        began = time.perf_counter()
        tokens = sum(len(shard.tokens) for _, shard in self.sets)
        with self.callbacks.counting(f"predicting {self.name}", tokens) as advance:
            each = [predicted(model, shard, self.planned.config.model.context, advance) for _, shard in self.sets]
        seconds = time.perf_counter() - began
        whole = Predicted(*(np.concatenate(parts) for parts in zip(*each, strict=True)))
        made = code("evaluation", self.planned.recipe)
        evaluation = Evaluation(
            evaluation_id=evaluation_id,
            settings=settings,
            test_name=self.name,
            sentences=len(whole.nats),
            scores=whole.scores,
            seconds=seconds,
            sentences_per_second=len(whole.nats) / seconds,
            items=whole.items,
            provenance_code=made.digest,
            components=dict(made.components),
            ended=now(),
            test_sets=self._named() if len(self.sets) > 1 else None,
        )
        self.planned.folder.write_evaluation(evaluation, None)
        return evaluation

    def _named(self) -> list[EvaluatedSet]:
        return [EvaluatedSet(name=name, sentences=len(shard)) for name, shard in self.sets]


def evaluate(planned: PlannedLanguageModel, record: Record, callbacks: Callback) -> Evaluation:
    """Predict the test text with the selected weights, and store how well."""
    callbacks.on_stage("evaluating")
    if (changed := other_judge(record.provenance, planned.recipe)) is not None:
        callbacks.on_message(changed)
    opened = LoadedModel.of(planned.folder, record, set_threads(planned.config.trainer))
    evaluator = TextEvaluator(planned, opened.tokenizer, callbacks)
    return evaluator.evaluate(opened.model, planned.evaluation_id, planned.evaluation)


def export(run: FinishedRun, layout: str, folder: Path) -> None:
    """Write the selected weights as transformers reads them, and the tokenizer beside them."""
    opened = LoadedModel.of(run.folder, run.record, torch.device("cpu"))
    to_transformers(opened.model, layout, opened.context, opened.tokenizer.end, folder)
    save_tokenizer(folder, opened.tokenizer)
