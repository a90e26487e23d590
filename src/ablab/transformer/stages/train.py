"""The training stage of one run: prepare, build, fit, select weights, write the record."""

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import torch

from ablab.code.code import read_sources
from ablab.code.load import load
from ablab.code.machine import fast_bfloat16, provenance
from ablab.config.kinds import outside_parts
from ablab.fields import Role
from ablab.files import sealed, sha256
from ablab.store.records import Record, Selected, Stretch, now
from ablab.store.run_folder import LAST
from ablab.tasks.identity import condition_id
from ablab.tasks.plan import PlannedRun
from ablab.tasks.task import Stops
from ablab.tracking.console import Console
from ablab.transformer.config.training import TransformerConfig
from ablab.transformer.data.steps import AnySteps
from ablab.transformer.model.modes import as_written, compile_layers
from ablab.transformer.model.transformer import TokenModel
from ablab.transformer.stages.builders import (
    Trainable,
    build_checkpoints,
    build_ends,
    build_objective,
    limit,
    trainer_options,
)
from ablab.transformer.stages.callbacks import SearchCallback
from ablab.transformer.stages.console_callback import epochs_line
from ablab.transformer.stages.models import check_devices, device_of
from ablab.transformer.stages.stretch import begin_stretch
from ablab.transformer.training.callbacks import Callbacks
from ablab.transformer.training.checkpoints import Checkpoints
from ablab.transformer.training.cost import ProductTimer, cost_of, parameter_count
from ablab.transformer.training.distributed import ALONE, SingleProcess
from ablab.transformer.training.loop import TrainingResult, fit, fit_worker
from ablab.transformer.training.module import TrainingModule
from ablab.transformer.training.selection import Weights, why_diverged
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Validation
from ablab.transformer.training.workers import Worker, WorkerGroup, follow, lead

C = TypeVar("C", bound=TransformerConfig)

read_sources()  # of the code just imported: a server of processes outlives edits of the sources


@dataclass
class Start:
    """The objects from which training starts or continues. `optimizer_state` is None at step 0."""

    trainable: Trainable[Any]
    model: TokenModel
    steps: AnySteps
    state: TrainingState
    checkpoints: Checkpoints
    optimizer_state: dict[str, Any] | None


def build_start(trainable: Trainable[Any], folder: Path) -> Start:
    """Start from the last checkpoint in `folder`, else from the weights of `trainable`."""
    config, kind = trainable.config, trainable.validation
    model = trainable.model()
    checkpoints = build_checkpoints(config, folder)
    state, optimizer_state = TrainingState(kind=kind), None
    if (last := checkpoints.load_last()) is not None:
        state, optimizer_state = TrainingState.from_dict(last["course"], kind), last["optimizer"]
        model.load_state_dict(last["model"])
    if config.trainer.compile:
        compile_layers(model.stacks.values())
    return Start(trainable, model, limit(trainable.steps(), config), state, checkpoints, optimizer_state)


@dataclass
class Work(Start):
    """The objects of one training, built once."""

    planned: PlannedRun[Any]


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


def _emulates_bfloat16(config: TransformerConfig) -> bool:
    return config.training.precision == "bf16" and config.trainer.accelerator == "cpu" and fast_bfloat16() is False


Prepare = Callable[[PlannedRun[C], Console], Trainable[C]]
"""Prepares the data of a task; refuses what cannot be trained, and then begins the run's folder."""


def prepare_training(planned: PlannedRun[C], console: Console, prepare: Prepare[C]) -> Work:
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
    trainable = prepare(planned, console)
    folder, config = planned.folder, planned.config
    trainable.save(folder.checkpoints)
    start = build_start(trainable, folder.checkpoints)
    start.state.begin(stretch)
    if start.state.step:
        console.say(f"{planned.run_id} continues from step {start.state.step:,}")
    console.say(
        f"{planned.run_id}  {planned.name}   {parameter_count(start.model):,} parameters, {trainable.amount}, "
        f"padding {start.steps.padding_share():.1%}"
    )
    console.say_all(_limits(config, start.steps))
    return Work(**vars(start), planned=planned)


def _limits(config: TransformerConfig, steps: AnySteps) -> Iterator[str]:
    """Yield how long training is, and which setting has no part in it."""
    most, epochs, warmup = (
        config.training.max_steps,
        config.training.max_epochs,
        config.schedule.own.get("warmup_steps"),
    )
    if most is None or config.smoke:
        return
    if epochs is None:
        yield epochs_line(most, steps.steps_in(1))
    elif steps.total < most:
        yield f"{steps.total:,} steps: training.max_epochs={epochs} comes before training.max_steps={most}"
    else:
        yield f"training.max_epochs={epochs} has no effect: training.max_steps={most} comes first"
    if warmup is not None and warmup >= steps.total:
        yield f"schedule.warmup_steps={warmup}: the rate still rises when training ends, after {steps.total:,} steps"


def _fit(work: Work, callbacks: Callbacks, stops: Stops | None) -> TrainingResult:
    """Train from `work.state` until training ends for any reason."""
    planned, trainable, state = work.planned, work.trainable, work.state
    config = planned.config
    ends = build_ends(config, work.steps)
    all_callbacks = Callbacks([*callbacks.callbacks, *trainable.callbacks(work.model, planned.folder, callbacks)])
    if (end := ends.reached(state)) is not None:
        with as_written():
            all_callbacks.on_over(state)
        return TrainingResult("finished", end)
    if stops is not None:
        all_callbacks.callbacks.append(SearchCallback(stops, trainable.recorded))
    # It may have been killed after the stop was decided; validations from before it was a trial are not reported yet.
    if state.validations and (reason := all_callbacks.stops(state.validations, ends.total_steps)):
        return TrainingResult("stopped", reason)
    with ExitStack() as stack:
        stack.callback(all_callbacks.on_fit_end)
        all_callbacks.on_fit_start(state)
        ranks = stack.enter_context(_workers(work))
        return fit(
            TrainingModule(work.model, build_objective(config, state), first_step=state.step, ranks=ranks),
            work.steps,
            trainable.validator(),
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
    checkpoints = planned.folder.checkpoints.resolve()
    spec = WorkerSpec(work.trainable, checkpoints, work.state.step, torch.get_num_threads())
    return lead(devices, spec, on_gpu=planned.config.trainer.accelerator == "gpu")


def _finish(work: Work, outcome: TrainingResult) -> Record:
    """Select the weights, decide whether training diverged, and build the record."""
    planned, trainable, state = work.planned, work.trainable, work.state
    config = planned.config
    selected = _select(work) if outcome.state == "finished" else None
    if selected is not None and not config.smoke:
        unigram = trainable.data["unigram_loss"]
        if (reason := why_diverged(state.validations, unigram, config.training.select)) is not None:
            outcome = TrainingResult("diverged", reason)
    flops = trainable.flops_per_token(work.model, state.layer_shares())
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
        validations=[{"step": each.step, **trainable.recorded(each)} for each in state.validations],
        cost=cost_of(state, trainable.tokens_of_epoch, flops, work.model, planned.folder.metrics),
        data={**trainable.data, "padding": work.steps.padding_share()},
        runtime={
            **config.part(Role.RUNTIME),
            "threads": torch.get_num_threads(),
            "device": torch.cuda.get_device_name() if config.trainer.accelerator == "gpu" else "cpu",
        },
        provenance=provenance(planned.recipe),
        config=config.model_dump(serialize_as_any=True),
        stretches=_stretches(work),
        metrics=sealed(planned.folder.metrics),
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
            return work.trainable.validator()(work.model, work.state.step)[0]

    chosen = work.checkpoints.choose(work.state, validate)
    work.model.load_state_dict(chosen.weights)
    found = chosen.validation
    return Selected(steps=chosen.steps, scores=work.trainable.recorded(found), sha256=chosen.sha256, **found.noted)


DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Data type of matrix products, by `training.precision`."""


@dataclass(frozen=True)
class WorkerSpec:
    """What the first process sends to the workers. `step`: where all of them start. `threads`: of each of them."""

    trainable: Trainable[Any]
    checkpoints: Path
    step: int
    threads: int


def run_worker() -> NoReturn:
    """Train as process 0 asks, if it does, and exit as it does."""
    follow(_train)


def _train(spec: WorkerSpec, join: Callable[[bool], Worker]) -> None:
    config = spec.trainable.config
    torch.set_num_threads(spec.threads)
    start = build_start(spec.trainable, spec.checkpoints)
    if start.state.step != spec.step:
        raise RuntimeError(
            f"{spec.checkpoints} holds step {start.state.step} here, and step {spec.step} on the first device; "
            "allowed: a folder of outputs that all machines share"
        )
    worker = join(config.trainer.accelerator == "gpu")
    fit_worker(
        TrainingModule(start.model, build_objective(config, start.state), first_step=start.state.step, ranks=worker),
        start.steps,
        start.state,
        worker,
        spec.checkpoints,
        trainer_options=trainer_options(config, int(os.environ["LOCAL_RANK"])),
        optimizer_state=start.optimizer_state,
    )
