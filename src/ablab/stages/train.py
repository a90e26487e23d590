"""The training of one run: prepare, build, fit, select; ends with the record."""

import resource
import sys
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from statistics import median

import torch

from ablab.build import (
    Start,
    begin_stretch,
    build_ends,
    build_objective,
    build_start,
    check_devices,
    device_of,
    trainer_options,
)
from ablab.config import Config
from ablab.console import Screen
from ablab.data.corpus import Corpus
from ablab.data.prepared import Prepared, check_vocabulary, prepare
from ablab.data.tokenizer import load_tokenizers, save_tokenizers
from ablab.errors import UserError
from ablab.fields import Role
from ablab.identity import condition_id
from ablab.plan import Planned
from ablab.provenance import code, fast_bfloat16, provenance
from ablab.search.stopping import Stopping
from ablab.stages.worker import Order, follow
from ablab.store.heartbeat import Heart
from ablab.store.metrics import MetricsFile, read_metrics
from ablab.store.records import NOTHING_LEARNT, Cost, Record, Selected, now
from ablab.store.saved_model import SavedModel
from ablab.tracking.tracker import Mirror
from ablab.training.callbacks import AttentionPicture, Listener, ToFile, ToMirror, ToPulse, ToScreen
from ablab.training.checkpoints import Weights
from ablab.training.cost import ProductTimer, flops_per_token, parameter_count
from ablab.training.distributed import ALONE, Alone
from ablab.training.loop import Outcome
from ablab.training.module import TranslationModule
from ablab.training.trainer import fit
from ablab.training.validation import Validation, Validator
from ablab.training.workers import Crew, crew

code("training")  # of what has just been imported: a server of processes outlives an edit of the sources


@dataclass
class Work(Start):
    """The objects of one training, made once."""

    planned: Planned
    prepared: Prepared


def train(work: Work, screen: Screen, mirror: Mirror, heart: Heart) -> Record | None:
    """Train from the start or from the last checkpoint; None when interrupted."""
    planned = work.planned
    outcome = _fit(work, screen, mirror, heart)
    if outcome.state in ("interrupted", "stopped"):
        mirror.summary({"state": outcome.state, "reason": outcome.reason})
        screen.say(f"{planned.run_id} {outcome.reason}; the same line, typed again, continues from there")
        return None
    record = _finish(work, outcome)
    planned.folder.write_record(record)
    planned.folder.tidy()
    return record


def _emulates_bfloat16(config: Config) -> bool:
    return config.training.precision == "bf16" and config.trainer.accelerator == "cpu" and fast_bfloat16() is False


def begin(planned: Planned, screen: Screen) -> Work:
    """Prepare the data, build the model, find the last checkpoint; refuses what does not fit before it writes."""
    check_devices(planned.config.trainer)
    stretch = begin_stretch(planned.config, planned.run_id, planned.folder.checkpoints, screen.say)
    if _emulates_bfloat16(planned.config):
        screen.say("training.precision=bf16: this processor emulates bfloat16, far slower than training.precision=fp32")
    config = planned.config
    if planned.composed.asked is not None:
        _say_what_is_shrunk(planned, planned.composed.asked, screen)
    prepared = prepare(config.data, planned.outputs / "corpora", screen.say)
    if planned.origin is not None:
        _check_vocabulary(planned.origin, prepared)
    folder = planned.folder
    folder.begin(planned.recipe)
    save_tokenizers(folder.checkpoints, prepared.tokenizers)
    start = build_start(config, prepared, folder.checkpoints, planned.origin)
    start.course.begin(stretch)
    if start.course.step:
        screen.say(f"{planned.run_id} continues from step {start.course.step:,}")
    padding = prepared.manifest["train"]
    screen.say(
        f"{planned.run_id}  {planned.name}   {parameter_count(start.model):,} parameters, {padding['kept']:,} pairs, "
        f"padding {start.steps.padding_share():.1%}"
    )
    return Work(**vars(start), planned=planned, prepared=prepared)


def _say_what_is_shrunk(planned: Planned, asked: Corpus, screen: Screen) -> None:
    """A smoke run trains on a sliver; what the real one would refuse is refused all the same."""
    if "data.vocab_size" in planned.composed.changes:
        check_vocabulary(asked)
    pairs, vocab = planned.config.data.train_pairs, planned.config.data.vocab_size
    screen.say(f"smoke: {pairs:,} pairs at most, and a vocabulary of {vocab:,} in place of {asked.vocab_size:,}")


def _check_vocabulary(origin: SavedModel, prepared: Prepared) -> None:
    """Weights mean something only for the subwords that they were trained on."""
    theirs = load_tokenizers(origin.tokenizers)
    if any(a.model != b.model for a, b in zip(theirs, prepared.tokenizers, strict=True)):
        raise UserError(
            f"init_from={origin.name}: its vocabulary is another; allowed: a model trained on the same data.* settings"
        )


def _fit(work: Work, screen: Screen, mirror: Mirror, heart: Heart) -> Outcome:
    planned, course = work.planned, work.course
    config = planned.config
    ends = build_ends(config, work.steps)
    if (end := ends.reached(course)) is not None:
        return Outcome("finished", end)
    referee = None if config.search_trial is None else Stopping(config.search_trial, screen.say)
    # It may have been killed between the word and the end; and what it did before it was a trial is news.
    if referee is not None and course.validations and (said := referee(course.validations, ends.total_steps)):
        return Outcome("stopped", said)
    validator = Validator(work.prepared)
    with ExitStack() as stack:
        metrics = MetricsFile(planned.folder.metrics, from_step=course.step)
        stack.callback(metrics.close)
        bar = stack.enter_context(screen.training_bar())
        to_mirror = ToMirror(mirror, validator.sources, validator.references)
        if course.step:
            to_mirror.replay(read_metrics(planned.folder.metrics))
        listeners: list[Listener] = [
            ToFile(metrics),
            ToScreen(screen, bar),
            ToPulse(heart),
            to_mirror,
            AttentionPicture(work.model, work.prepared, planned.folder.artefacts, mirror),
        ]
        ranks = stack.enter_context(_crew(work))
        return fit(
            TranslationModule(work.model, build_objective(config, course), first_step=course.step, ranks=ranks),
            work.steps,
            validator,
            course,
            ends,
            work.checkpoints,
            listeners,
            valid_every=config.training.valid_every,
            trainer_options=trainer_options(config),
            optimizer_state=work.optimizer_state,
            crew=ranks,
            referee=referee,
            product=ProductTimer(device_of(config.trainer.accelerator), DTYPES[config.training.precision]),
        )


def _crew(work: Work) -> AbstractContextManager[Crew | Alone]:
    """Those who share the steps."""
    planned = work.planned
    devices = planned.config.trainer.devices
    if devices == 1:
        return nullcontext(ALONE)
    order = Order(
        planned.config,
        work.prepared.folder,
        planned.folder.checkpoints,
        planned.origin,
        work.course.step,
        torch.get_num_threads(),
    )
    return crew(devices, follow, order, on_gpu=planned.config.trainer.accelerator == "gpu")


def _finish(work: Work, outcome: Outcome) -> Record:
    planned, course = work.planned, work.course
    config = planned.config
    selected = _select(work) if outcome.state == "finished" else None
    unigram = work.prepared.manifest["unigram_loss"]
    if selected is not None and selected.loss > unigram * (1 - NOTHING_LEARNT) and not config.smoke:
        below = f"{100 * NOTHING_LEARNT:g} % below the unigram loss {unigram:.3f}"
        reason = f"validation loss {selected.loss:.3f} is not {below}: nothing was learnt"
        outcome = Outcome("diverged", reason)
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
        validations=[validation.as_dict() for validation in course.validations],
        cost=_cost(work),
        data={
            **{key: value for key, value in work.prepared.manifest.items() if key != "sha256"},
            "corpus": work.prepared.folder.name,
            "padding": work.steps.padding_share(),
        },
        runtime={
            **config.part(Role.RUNTIME),
            "threads": torch.get_num_threads(),
            "device": torch.cuda.get_device_name() if config.trainer.accelerator == "gpu" else "cpu",
        },
        provenance=provenance(),
        config=config.model_dump(serialize_as_any=True),
        stretches=course.stretches_so_far(),
        ended=now(),
    )


def _select(work: Work) -> Selected:
    """Choose the weights on validation, and validate what was chosen."""
    # Lightning takes the model off the device when it ends.
    work.model.to(device_of(work.planned.config.trainer.accelerator))

    def validate(weights: Weights) -> Validation:
        work.model.load_state_dict(weights)
        return Validator(work.prepared)(work.model, work.course.step)[0]

    chosen = work.checkpoints.choose(work.course, validate)
    work.model.load_state_dict(chosen.weights)
    found = chosen.validation
    return Selected(steps=chosen.steps, loss=found.loss, perplexity=found.perplexity, bleu=found.bleu)


DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}
"""Of matrix products, by `training.precision`."""


def _cost(work: Work) -> Cost:
    course, counts = work.course, work.prepared.manifest["train"]
    return Cost(
        steps=course.step,
        epochs=course.tokens / counts["tgt_tokens"],
        tokens=course.tokens,
        seconds=course.seconds,
        train_seconds=course.train_seconds,
        tokens_per_second=_speed(work),
        peak_memory_bytes=_peak_memory(),
        parameters=parameter_count(work.model),
        flops_per_token=flops_per_token(work.model, counts["src_tokens"] / counts["tgt_tokens"], course.layer_shares()),
        matmul_flops=median(course.product_speeds) if course.product_speeds else None,
    )


def _speed(work: Work) -> float:
    """Target tokens a second in training, the median of all looks: pauses and neighbours are no part of a recipe."""
    rows = read_metrics(work.planned.folder.metrics)
    looks = [row["tokens_per_second"] for row in rows if "tokens_per_second" in row]
    if not looks:  # it diverged before the first
        return work.course.tokens / max(work.course.train_seconds, 1e-9)
    return median(looks)


def _peak_memory() -> int:
    """Of the device where there is one, of this process otherwise."""
    if torch.cuda.is_available() and torch.cuda.is_initialized():
        return int(torch.cuda.max_memory_allocated())
    # Linux counts in KiB, macOS in bytes.
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
