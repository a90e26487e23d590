"""Rules on combinations of fields, which no single field can check. Each rule yields one line per violation."""

from collections.abc import Iterator

from ablab.config.kinds import asks_for, part_of
from ablab.config.options import OPTIONS, ImportancePruning, RulePruning, removes_heads
from ablab.config.schema import Config
from ablab.fields import as_typed


def violations(config: Config) -> Iterator[str]:
    """Yield every rule that the configuration breaks, as `key=value: requirement`."""
    yield from _heads(config)
    yield from _end_of_training(config)
    yield from _drophead(config)
    yield from _vocabulary(config)
    yield from _decoding(config)
    yield from _schedule(config)
    yield from _pruning(config)
    yield from _devices(config)
    yield from _needs(config)


def _heads(config: Config) -> Iterator[str]:
    d_model, heads = config.model.d_model, config.model.num_heads
    if d_model % heads:
        yield f"model.num_heads={heads}: d_model must be divisible by num_heads, got d_model={d_model}"
    elif config.position.kind == "rope" and d_model // heads % 2:
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
    own = config.drophead.own
    warmup, total = own.get("warmup_steps"), own.get("total_steps")
    if warmup is not None and total is not None and warmup >= total:
        yield (
            f"drophead.warmup_steps={warmup}: must be below drophead.total_steps={total} "
            "(by default training.max_steps)"
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
    schedule, total = config.schedule, config.training.max_steps
    warmup, floor = schedule.own.get("warmup_steps"), schedule.own.get("min_lr")
    if config.optim.lr is None and warmup is None:
        yield (
            f"optim.lr=null: only a warm-up gives a usual rate, and schedule={schedule.kind} has none; "
            "allowed: a number"
        )
        return
    if asks_for(schedule, "total"):
        if total is None:
            yield (
                f"schedule={schedule.kind}: the rate depends on the last step, so it needs training.max_steps, got null"
            )
        elif warmup is not None and warmup >= total:
            yield (
                f"schedule.warmup_steps={warmup}: must be below training.max_steps={total}, where {schedule.kind} ends"
            )
    if floor is not None and floor > config.peak_rate:
        yield f"schedule.min_lr={floor:g}: must be at most the peak, {config.peak_rate:g}, from which the rate falls"


def _needs(config: Config) -> Iterator[str]:
    """Yield what a chosen part needs of another group: it says so in a class constant `needs`, kinds by group."""
    for group in OPTIONS:
        option = getattr(config, group)
        part = part_of(group, option.kind)
        if part is None:
            continue
        needs = part.signature.constants.get("needs", {})
        if not isinstance(needs, dict) or not needs.keys() <= {*OPTIONS, "data"}:
            yield f"{group}={option.kind}: needs = {needs}; allowed: kinds by group, of {', '.join(OPTIONS)} and data"
            continue
        for other, kind in needs.items():
            if config.is_read(other) and (other_kind := getattr(config, other).kind) != kind:
                yield f"{group}={option.kind}: needs {other}={kind}, got {other}={other_kind}; allowed: {other}={kind}"


def _pruning(config: Config) -> Iterator[str]:
    pruning = config.pruning
    if removes_heads(pruning):
        yield from _removed_heads(config)
        return
    if isinstance(pruning, ImportancePruning):
        yield (
            "pruning.what=layers: pruning=importance removes heads; allowed: pruning.what=heads, or "
            "pruning=every_other and others that remove layers"
        )
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


def _removed_heads(config: Config) -> Iterator[str]:
    model, wanted = config.model, config.pruning.own["heads"]
    attentions = model.encoder_layers + 2 * model.decoder_layers
    most = attentions * model.num_heads
    if model.num_heads == 1:
        yield (
            "pruning.what=heads: one head stays in each attention, so model.num_heads=1 leaves none to remove; "
            "allowed: pruning.what=layers, or more heads"
        )
    elif wanted is not None and not attentions <= min(wanted, default=0) <= max(wanted, default=0) <= most:
        yield (
            f"pruning.heads={as_typed(wanted)}: of {most} heads so many cannot remain, one in each attention at least; "
            f"allowed: {attentions} to {most}"
        )


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
