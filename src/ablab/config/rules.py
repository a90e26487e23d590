"""Rules on combinations of fields, which no single field can check. Each rule yields one line per violation."""

from collections.abc import Iterator

from ablab.config.options import WSD, Cosine, Noam, RampDropHead, RotaryPosition, RulePruning, VShapeDropHead
from ablab.config.schema import Config

NEEDS = {("placement", "deepnorm"): {"init": "deepnorm"}}
"""By group and kind, the options of other groups that the class of this kind needs: its `needs`, without torch."""


def violations(config: Config) -> Iterator[str]:
    """Yield every rule that the configuration breaks, as `key=value: requirement`."""
    yield from _needs(config)
    yield from _heads(config)
    yield from _end_of_training(config)
    yield from _drophead(config)
    yield from _vocabulary(config)
    yield from _decoding(config)
    yield from _schedule(config)
    yield from _pruning(config)
    yield from _devices(config)


def _needs(config: Config) -> Iterator[str]:
    for (group, kind), needed in NEEDS.items():
        if getattr(config, group).kind != kind:
            continue
        for other, option in needed.items():
            chosen = getattr(config, other).kind
            if config.is_read(other) and chosen != option:
                yield f"{group}={kind}: needs {other}={option}, got {other}={chosen}"


def _heads(config: Config) -> Iterator[str]:
    d_model, heads = config.model.d_model, config.model.num_heads
    if d_model % heads:
        yield f"model.num_heads={heads}: d_model must be divisible by num_heads, got d_model={d_model}"
    elif isinstance(config.position, RotaryPosition) and d_model // heads % 2:
        width = d_model // heads
        yield f"position=rope: turns the features of a head in pairs, so d_model / num_heads must be even, got {width}"


def _end_of_training(config: Config) -> Iterator[str]:
    training = config.training
    ends = (training.max_steps, training.max_epochs, training.max_minutes, training.patience)
    if all(end is None for end in ends):
        yield (
            "training.max_steps=null: training must end; set one of training.max_steps, training.max_epochs, "
            "training.max_minutes, training.patience"
        )


def _drophead(config: Config) -> Iterator[str]:
    drophead = config.drophead
    if not isinstance(drophead, RampDropHead):
        return
    if drophead.total_steps is None:
        yield (
            f"drophead={drophead.kind}: this schedule ends at the last step, so it needs "
            "training.max_steps (or drophead.total_steps), got null"
        )
    elif isinstance(drophead, VShapeDropHead) and drophead.warmup_steps >= drophead.total_steps:
        yield (
            f"drophead.warmup_steps={drophead.warmup_steps}: must be below drophead.total_steps="
            f"{drophead.total_steps} (by default training.max_steps)"
        )


def _vocabulary(config: Config) -> Iterator[str]:
    tie, joint = config.model.tie, config.data.joint_vocab
    if not joint and tie in ("all", "source_target"):
        yield (
            f"model.tie={tie}: source and target can share a table only with data.joint_vocab=true; "
            "allowed with two vocabularies: target_output, none"
        )


def _decoding(config: Config) -> Iterator[str]:
    decoding = config.decoding
    if decoding.n_best > decoding.beam_size:
        yield (f"decoding.n_best={decoding.n_best}: must be at most decoding.beam_size={decoding.beam_size}")


def _schedule(config: Config) -> Iterator[str]:
    if isinstance(config.schedule, Cosine):
        yield from _cosine(config, config.schedule)
    elif isinstance(config.schedule, WSD):
        yield from _wsd(config, config.schedule)
    elif not isinstance(config.schedule, Noam) and config.optim.lr is None:
        kind = config.schedule.kind
        yield f"optim.lr=null: only a warm-up gives a usual rate, and schedule={kind} has none; allowed: a number"


def _cosine(config: Config, schedule: Cosine) -> Iterator[str]:
    total, warmup, floor = config.training.max_steps, schedule.warmup_steps, schedule.min_lr
    if total is None:
        yield "schedule=cosine: the rate falls until the last step, so it needs training.max_steps, got null"
    elif warmup >= total:
        yield f"schedule.warmup_steps={warmup}: must be below training.max_steps={total}, where cosine ends"
    if floor > config.peak_rate:
        yield f"schedule.min_lr={floor:g}: must be at most the peak, {config.peak_rate:g}, from which cosine falls"


def _wsd(config: Config, schedule: WSD) -> Iterator[str]:
    total, warmup, floor = config.training.max_steps, schedule.warmup_steps, schedule.min_lr
    if total is None:
        yield "schedule=wsd: the rate falls towards the last step, so it needs training.max_steps, got null"
    elif warmup > (1 - schedule.decay_share) * total:
        yield (
            f"schedule.warmup_steps={warmup}: must be at most {(1 - schedule.decay_share) * total:g} of "
            f"training.max_steps={total}, where the decay of schedule.decay_share={schedule.decay_share:g} begins"
        )
    if floor > config.peak_rate:
        yield f"schedule.min_lr={floor:g}: must be at most the peak, {config.peak_rate:g}, from which wsd falls"


def _pruning(config: Config) -> Iterator[str]:
    pruning = config.pruning
    if not isinstance(pruning, RulePruning):
        return
    layers = {"encoder": config.model.encoder_layers, "decoder": config.model.decoder_layers}
    layers["both"] = max(layers.values())
    for curve in pruning.curves:
        if pruning.depths is not None and max(pruning.depths, default=1) > layers[curve]:
            yield (
                f"pruning.depths={pruning.depths}: of {layers[curve]} layers ({curve}) so many cannot remain; "
                f"allowed: 1 to {layers[curve]}"
            )
    if pruning.kind == "data_driven":
        yield from _learned_rates(config, pruning)


def _learned_rates(config: Config, pruning: RulePruning) -> Iterator[str]:
    rates = {"encoder": config.layerdrop_encoder, "decoder": config.layerdrop_decoder}
    for stack, rate in rates.items():
        shrinks = stack in pruning.curves or "both" in pruning.curves
        if shrinks and not (config.layerdrop_rates == "learned" and 0 < rate < 1):
            yield (
                "pruning=data_driven: keeps the layers that training has learned to drop least, so it needs "
                f"training with layerdrop_rates=learned and layerdrop_{stack} between 0 and 1, "
                f"got {config.layerdrop_rates} and {rate:g}"
            )


def _devices(config: Config) -> Iterator[str]:
    parts, devices = config.trainer.micro_batches, config.trainer.devices
    if parts % devices:
        yield (
            f"trainer.micro_batches={parts}: a step's parts are divided among trainer.devices={devices}; "
            f"allowed: {devices}, {2 * devices}, {3 * devices}, ..."
        )
