"""The training stage of one run: prepare, build, fit, select weights, write the record."""

import resource
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from statistics import median

import torch

from ablab.code.code import read_sources
from ablab.code.load import load
from ablab.code.machine import fast_bfloat16, provenance
from ablab.config.kinds import outside_parts
from ablab.errors import UserError
from ablab.fields import Role
from ablab.files import sha256
from ablab.store.metrics import read_metrics
from ablab.store.records import Cost, Record, Selected, Stretch, now
from ablab.store.run_folder import LAST
from ablab.tasks.identity import condition_id
from ablab.tasks.task import Stops
from ablab.tracking.console import Console
from ablab.transformer.build import (
    Start,
    begin_stretch,
    build_ends,
    build_objective,
    build_start,
    check_devices,
    device_of,
    trainer_options,
)
from ablab.transformer.config.schema import PlannedTranslation, TranslationConfig
from ablab.transformer.data.ceiling import remarks
from ablab.transformer.data.corpus import Corpus
from ablab.transformer.data.prepared import Prepared, check_vocabulary, prepare
from ablab.transformer.data.tokenizer import load_tokenizers, save_tokenizers
from ablab.transformer.pruning.saved_model import SavedModel
from ablab.transformer.stages.callbacks import AttentionMapCallback, SearchCallback
from ablab.transformer.stages.console_callback import epochs_line
from ablab.transformer.stages.worker import WorkerSpec
from ablab.transformer.training.callbacks import Callbacks
from ablab.transformer.training.compile import as_written
from ablab.transformer.training.cost import ProductTimer, flops_per_token, parameter_count
from ablab.transformer.training.distributed import ALONE, SingleProcess
from ablab.transformer.training.loop import TrainingResult
from ablab.transformer.training.module import TranslationModule
from ablab.transformer.training.selection import Weights, why_diverged
from ablab.transformer.training.trainer import fit
from ablab.transformer.training.validation import Validation, Validator
from ablab.transformer.training.workers import WorkerGroup, lead

read_sources()  # of the code just imported: a server of processes outlives edits of the sources


@dataclass
class Work(Start):
    """The objects of one training, built once."""

    planned: PlannedTranslation
    prepared: Prepared


def train(work: Work, callbacks: Callbacks, stops: Stops | None = None) -> Record | None:
    """Train from the start or from the last checkpoint; return None if interrupted, or if `stops` says so."""
    planned = work.planned
    callbacks.on_stage("training")
    outcome = _fit(work, callbacks, stops)
    if outcome.state in ("interrupted", "stopped"):
        callbacks.on_summary({"state": outcome.state, "reason": outcome.reason})
        callbacks.on_message(f"{planned.run_id} {outcome.reason}; the same line, typed again, continues from there")
        return None
    record = _finish(work, outcome)
    planned.folder.write_record(record)
    planned.folder.tidy()
    return record


def _emulates_bfloat16(config: TranslationConfig) -> bool:
    return config.training.precision == "bf16" and config.trainer.accelerator == "cpu" and fast_bfloat16() is False


def prepare_training(planned: PlannedTranslation, console: Console) -> Work:
    """Prepare the data, build the model, find the last checkpoint; refuse unsuitable settings before any writing."""
    check_devices(planned.config.trainer)
    for group, part in outside_parts(planned.config).items():
        load(part)
        console.say(f"{group} is {part.target} of {part.file} ({part.code})")
    stretch = begin_stretch(planned.config, planned.run_id, planned.recipe, planned.folder.checkpoints, console.say)
    if _emulates_bfloat16(planned.config):
        console.say(
            "training.precision=bf16: this processor emulates bfloat16, far slower than training.precision=fp32"
        )
    config = planned.config
    if planned.composed.asked is not None and "data.vocab_size" in planned.composed.changes:
        check_vocabulary(planned.composed.asked, planned.outputs / "corpora", console.counting)
    prepared = prepare(config.data, planned.outputs / "corpora", console.say, console.counting)
    text = prepared.manifest["train"]
    if planned.composed.asked is None and (dropped := text.get("dropped_overlap", 0)):
        config.data.check_wanted("train", text["pairs"] - dropped)
    if planned.composed.asked is not None:
        console.say(shrunk_line(config.data, planned.composed.asked, prepared))
    for line in remarks(config.data, prepared.manifest):
        console.say(line)
    if planned.origin is not None:
        _check_vocabulary(planned.origin, prepared)
    folder = planned.folder
    folder.begin(planned.recipe, outside_parts(config))
    if prepared.overlap is not None and (told := prepared.overlap.told("validation", "training")) is not None:
        console.say(f"{told} (data.overlap=drop leaves such pairs out of training)")
    save_tokenizers(folder.checkpoints, prepared.tokenizers)
    start = build_start(config, prepared, folder.checkpoints, planned.origin)
    start.state.begin(stretch)
    if start.state.step:
        console.say(f"{planned.run_id} continues from step {start.state.step:,}")
    padding = prepared.manifest["train"]
    console.say(
        f"{planned.run_id}  {planned.name}   {parameter_count(start.model):,} parameters, {padding['kept']:,} pairs, "
        f"padding {start.steps.padding_share():.1%}"
    )
    if (steps := config.training.max_steps) is not None and not config.smoke:
        console.say(epochs_line(steps, start.steps.steps_in(1)))
    return Work(**vars(start), planned=planned, prepared=prepared)


def shrunk_line(corpus: Corpus, asked: Corpus, prepared: Prepared) -> str:
    """Say what a smoke run reduces."""
    vocab = " and ".join(f"{size:,}" for size in dict.fromkeys(prepared.manifest["vocab"]))
    shrunk = f", and a vocabulary of {vocab} in place of {asked.vocab_size:,}" if asked.is_read("vocab_size") else ""
    return f"smoke: {corpus.train_pairs:,} pairs at most{shrunk}"


def _check_vocabulary(origin: SavedModel, prepared: Prepared) -> None:
    """Refuse weights of another vocabulary: weights are valid only for the subwords they were trained on."""
    theirs = load_tokenizers(origin.tokenizers)
    if any(a.model != b.model for a, b in zip(theirs, prepared.tokenizers, strict=True)):
        raise UserError(
            f"init_from={origin.name}: its vocabulary is another; allowed: a model trained on the same data.* settings"
        )


def _fit(work: Work, callbacks: Callbacks, stops: Stops | None) -> TrainingResult:
    """Train from `work.state` until training ends for any reason."""
    planned, state = work.planned, work.state
    config = planned.config
    ends = build_ends(config, work.steps)
    attention = AttentionMapCallback(work.model, work.prepared, planned.folder.artefacts, callbacks)
    if (end := ends.reached(state)) is not None:
        with as_written():
            attention.complete(state)
        return TrainingResult("finished", end)
    all_callbacks = Callbacks([*callbacks.callbacks, attention])
    if stops is not None:
        all_callbacks.callbacks.append(SearchCallback(stops, work.prepared.valid_per_character))
    # It may have been killed after the stop was decided; validations from before it was a trial are not reported yet.
    if state.validations and (reason := all_callbacks.stops(state.validations, ends.total_steps)):
        return TrainingResult("stopped", reason)
    validator = Validator(work.prepared, config.valid_extra_tokens)
    with ExitStack() as stack:
        stack.callback(all_callbacks.on_fit_end)
        all_callbacks.on_fit_start(state, validator)
        ranks = stack.enter_context(_workers(work))
        return fit(
            TranslationModule(work.model, build_objective(config, state), first_step=state.step, ranks=ranks),
            work.steps,
            validator,
            state,
            ends,
            work.checkpoints,
            all_callbacks,
            valid_every=config.training.valid_every,
            trainer_options=trainer_options(config),
            optimizer_state=work.optimizer_state,
            workers=ranks,
            product=ProductTimer(device_of(config.trainer.accelerator), DTYPES[config.training.precision]),
        )


def _workers(work: Work) -> AbstractContextManager[WorkerGroup | SingleProcess]:
    """Lead the processes that share the steps, on several devices."""
    planned = work.planned
    devices = planned.config.trainer.devices
    if devices == 1:
        return nullcontext(ALONE)
    spec = WorkerSpec(
        planned.config,
        work.prepared.folder.resolve(),
        planned.folder.checkpoints.resolve(),
        planned.origin,
        work.state.step,
        torch.get_num_threads(),
    )
    return lead(devices, spec, on_gpu=planned.config.trainer.accelerator == "gpu")


def _finish(work: Work, outcome: TrainingResult) -> Record:
    """Select the weights, decide whether training diverged, and build the record."""
    planned, state = work.planned, work.state
    config = planned.config
    selected = _select(work) if outcome.state == "finished" else None
    if selected is not None and not config.smoke:
        unigram = work.prepared.manifest["unigram_loss"]
        if (reason := why_diverged(state.validations, unigram, config.training.select)) is not None:
            outcome = TrainingResult("diverged", reason)
    assert outcome.state == "finished" or outcome.state == "diverged"
    return Record(
        run_id=planned.run_id,
        condition_id=condition_id(planned.recipe),
        name=planned.name,
        choices=planned.composed.choices,
        state=outcome.state,
        reason=outcome.reason,
        time_limited=config.training.max_minutes is not None,
        selected=selected,
        validations=[_scores(work, validation) for validation in state.validations],
        cost=_cost(work),
        data={
            **work.prepared.manifest,
            "corpus": work.prepared.folder.name,
            "padding": work.steps.padding_share(),
        },
        runtime={
            **config.part(Role.RUNTIME),
            "threads": torch.get_num_threads(),
            "device": torch.cuda.get_device_name() if config.trainer.accelerator == "gpu" else "cpu",
        },
        provenance=provenance(planned.recipe),
        config=config.model_dump(serialize_as_any=True),
        stretches=_stretches(work),
        metrics=sha256(planned.folder.metrics),
        ended=now(),
    )


def _stretches(work: Work) -> list[Stretch]:
    """Return the stretches of training, the last with the digest of the state that it left."""
    *before, last = work.state.stretches_so_far()
    path = work.checkpoints.folder / LAST
    return [*before, last.model_copy(update={"left": sha256(path) if path.exists() else None})]


def _select(work: Work) -> Selected:
    """Select the weights on validation, and validate them."""
    # Lightning takes the model off the device when it ends.
    work.model.to(device_of(work.planned.config.trainer.accelerator))

    def validate(weights: Weights) -> Validation:
        work.model.load_state_dict(weights)
        with as_written():
            validator = Validator(work.prepared, work.planned.config.valid_extra_tokens)
            return validator(work.model, work.state.step)[0]

    chosen = work.checkpoints.choose(work.state, validate)
    work.model.load_state_dict(chosen.weights)
    found = chosen.validation
    scores = {key: value for key, value in _scores(work, found).items() if key != "step"}
    return Selected(steps=chosen.steps, scores=scores, at_limit=found.at_limit, sha256=chosen.sha256)


def _scores(work: Work, validation: Validation) -> dict[str, float]:
    """Return what a record holds of a validation."""
    return {**validation.as_dict(), "loss_per_character": work.prepared.valid_per_character(validation.loss)}


DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Data type of matrix products, by `training.precision`."""


def _cost(work: Work) -> Cost:
    state, counts = work.state, work.prepared.manifest["train"]
    return Cost(
        steps=state.step,
        epochs=state.tokens / counts["tgt_tokens"],
        tokens=state.tokens,
        seconds=state.seconds,
        train_seconds=state.train_seconds,
        tokens_per_second=_speed(work),
        peak_memory_bytes=_peak_memory(),
        parameters=parameter_count(work.model),
        flops_per_token=flops_per_token(work.model, counts["src_tokens"] / counts["tgt_tokens"], state.layer_shares()),
        matmul_flops=median(state.product_speeds) if state.product_speeds else None,
    )


def _speed(work: Work) -> float:
    """Return the median of measured target tokens per second: pauses and other processes must not affect the figure."""
    rows = read_metrics(work.planned.folder.metrics)
    looks = [row["tokens_per_second"] for row in rows if "tokens_per_second" in row]
    if not looks:  # it diverged before the first measurement
        return work.state.tokens / max(work.state.train_seconds, 1e-9)
    return median(looks)


def _peak_memory() -> int:
    """Return peak memory in bytes, of the device if there is one, otherwise of this process."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
