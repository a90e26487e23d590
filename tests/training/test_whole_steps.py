"""Whole optimiser steps, as Lightning runs them, against a loop written out here: rates, sums, clipping, Adam."""

from copy import deepcopy
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ablab.config import compose
from ablab.transformer.data.batches import Batch, Sentences
from ablab.transformer.data.steps import TrainingSteps
from ablab.transformer.model.dropout import DropHead
from ablab.transformer.model.modes import evaluating
from ablab.transformer.model.streams import reseed
from ablab.transformer.model.tokens import PAD, SPECIAL
from ablab.transformer.stages.builders import build_checkpoints, build_objective, trainer_options
from ablab.transformer.stages.models import build_model
from ablab.transformer.training.callbacks import Callback
from ablab.transformer.training.loop import fit
from ablab.transformer.training.module import TrainingModule
from ablab.transformer.training.state import StopCriteria, TrainingState
from ablab.transformer.training.validation import Samples
from ablab.transformer.translation.validation import TranslationValidation as Validation

SEED, STEPS, VOCAB, D_MODEL, WARMUP, SMOOTHING = 3, 6, 24, 16, 3, 0.1
BETA1, BETA2, EPS, CLIP = 0.8, 0.95, 1e-3, 1.2
DROPHEAD, DROPHEAD_WARMUP = 0.8, 2
WORDS = (
    *("model.d_model=16", "model.d_ff=24", "model.num_heads=4", "model.encoder_layers=3", "model.decoder_layers=3"),
    *("model.dropout=0", "layerdrop=0.4", "seed=3", "optim.lr=null", "optim.warmup_steps=3", "optim.clip=1.2"),
    *("optim.beta1=0.8", "optim.beta2=0.95", "optim.eps=1e-3", "training.max_steps=6", "training.label_smoothing=0.1"),
    *("drophead=vshape", "drophead.p=0.8", "drophead.warmup_steps=2", "drophead.total_steps=6"),
)
"""What the constants above say; eps and betas are none of PyTorch's, and eps is large enough to matter."""

ARMS = {"layerdrop": (), "learned rates": ("norm=scalenorm_fixnorm", "layerdrop_rates=learned")}


@dataclass
class State:
    """After a step: the parameters by name, and what the step says of itself. `ran`: forward and backward."""

    parameters: dict[str, Tensor]
    rate: float
    drophead: float
    loss: float
    grad_norm: float
    ran: dict[str, list[bool]]


def parameters_of(model: nn.Module) -> dict[str, Tensor]:
    return {name: parameter.detach().clone() for name, parameter in model.named_parameters()}


def training_steps() -> TrainingSteps:
    """Two micro-batches a step, of as many sentences but not of as many tokens."""
    rng = np.random.default_rng(0)
    src, tgt = (
        Sentences.of([rng.integers(len(SPECIAL), VOCAB, rng.integers(2, high)).tolist() for _ in range(60)])
        for high in (9, 12)
    )
    return TrainingSteps(src, tgt, batch_tokens=60, seed=SEED, micro_batches=2, total=STEPS)


class Notes(Callback):
    """Writes down the state after every step."""

    def __init__(self, module: TrainingModule) -> None:
        self.module, self.states = module, []

    def on_step(self, state: TrainingState, total_steps: int | None) -> None:
        report = self.module.report
        assert report is not None
        assert report.step == state.step
        said = (report.learning_rate, report.drophead, float(report.loss), float(report.grad_norm), report.ran)
        self.states.append(State(parameters_of(self.module.model), *said))


def through_lightning(config, model, steps, folder) -> list[State]:
    """As a run does it, with a validation in the middle."""

    def validate(model, step):
        with evaluating(model), torch.no_grad():
            model(steps[0][0].src, steps[0][0].tgt)
        return Validation(step, 2.0, 10.0), Samples()

    state = TrainingState()
    module = TrainingModule(model, build_objective(config, state))
    notes = Notes(module)
    ends = StopCriteria(total_steps=STEPS, max_seconds=None, patience=None, monitor="bleu", schedule=None)
    outcome = fit(
        module,
        steps,
        validate,
        state,
        ends,
        build_checkpoints(config, folder),
        notes,
        valid_every=3,
        trainer_options=trainer_options(config),
    )
    assert outcome.state == "finished"
    return notes.states


def written_out(model: nn.Module, steps: TrainingSteps) -> list[State]:
    """The same by the papers' formulas. Which layers and heads fall is drawn by the model's own modules."""
    states, adam, ran = [], Adam(model), layers_that_run(model)
    for step in range(1, STEPS + 1):
        # Vaswani et al. 2017, eq. 3.
        rate = D_MODEL**-0.5 * min(step**-0.5, step * WARMUP**-1.5)
        # Zhou et al. 2020: p at step 0, 0 at the end of warm-up, p at the last step.
        falls, rises = 1 - step / DROPHEAD_WARMUP, (step - DROPHEAD_WARMUP) / (STEPS - DROPHEAD_WARMUP)
        drophead = DROPHEAD * (falls if step < DROPHEAD_WARMUP else rises)
        for module in model.modules():
            if isinstance(module, DropHead):
                module.drop_prob = drophead
        for flags in ran.values():
            flags[:] = [False] * len(flags)
        loss = accumulate(model, steps[step - 1], step)
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        norm = torch.sqrt(sum((gradient**2).sum() for gradient in gradients.values()))
        scale = min(1.0, CLIP / (float(norm) + 1e-6))  # PyTorch's clipping falls short of the bound by so much
        adam.move({name: gradient * scale for name, gradient in gradients.items()}, rate)
        # What no decoder layer looked at is not trained.
        trained = {stack: [flag and any(ran["decoder"]) for flag in flags] for stack, flags in ran.items()}
        states.append(State(parameters_of(model), rate, drophead, loss, float(norm), trained))
    return states


def layers_that_run(model: nn.Module) -> dict[str, list[bool]]:
    """Kept up to date by the layers themselves."""
    stacks = {"encoder": model.encoder.layers, "decoder": model.decoder.layers}
    ran = {name: [False] * len(layers) for name, layers in stacks.items()}
    for name, layers in stacks.items():
        for index, layer in enumerate(layers):
            layer.register_forward_pre_hook(lambda *_, flags=ran[name], index=index: flags.__setitem__(index, True))
    return ran


def accumulate(model: nn.Module, parts: list[Batch], step: int) -> float:
    """Gradients of the loss per token of the whole step; returns that loss without smoothing."""
    model.zero_grad(set_to_none=True)
    tokens, plain = sum(int((part.labels != PAD).sum()) for part in parts), 0.0
    for number, part in enumerate(parts):
        reseed(model, SEED, step=step, micro_batch=number)
        logits, labels = model.logits(model(part.src, part.tgt)).flatten(0, 1), part.labels.flatten()
        smoothed = F.cross_entropy(logits, labels, ignore_index=PAD, label_smoothing=SMOOTHING, reduction="sum")
        (smoothed / tokens).backward()
        plain += float(F.cross_entropy(logits.detach(), labels, ignore_index=PAD, reduction="sum")) / tokens
    return plain


class Adam:
    """Kingma and Ba 2015, algorithm 1, for each tensor apart: without a gradient, nothing of it moves or ages."""

    def __init__(self, model: nn.Module) -> None:
        self.parameters = dict(model.named_parameters())
        self.first = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        self.second = {name: torch.zeros_like(p) for name, p in self.parameters.items()}
        self.age = dict.fromkeys(self.parameters, 0)

    @torch.no_grad()
    def move(self, gradients: dict[str, Tensor], rate: float) -> None:
        for name, gradient in gradients.items():
            self.age[name] += 1
            self.first[name] = BETA1 * self.first[name] + (1 - BETA1) * gradient
            self.second[name] = BETA2 * self.second[name] + (1 - BETA2) * gradient**2
            mean = self.first[name] / (1 - BETA1 ** self.age[name])
            spread = self.second[name] / (1 - BETA2 ** self.age[name])
            self.parameters[name] -= rate * mean / (spread.sqrt() + EPS)


@pytest.fixture(scope="module", params=ARMS)
def both(request, tmp_path_factory):
    """The states of a run and of the loop written out, from equal weights."""
    config = compose([*WORDS, *ARMS[request.param]]).config
    model = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB).double().train()
    steps, copy = training_steps(), deepcopy(model)
    return through_lightning(config, model, steps, tmp_path_factory.mktemp("run")), written_out(copy, steps)


def test_every_step_moves_the_weights_where_the_formulas_do(both):
    ours, theirs = both
    assert len(ours) == len(theirs) == STEPS
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine.parameters, other.parameters, rtol=1e-8, atol=1e-10)


def test_every_step_says_what_it_did(both):
    for mine, other in zip(*both, strict=True):
        assert [mine.rate, mine.drophead] == pytest.approx([other.rate, other.drophead], rel=1e-12)
        assert [mine.loss, mine.grad_norm] == pytest.approx([other.loss, other.grad_norm], rel=1e-6)
        assert mine.ran == other.ran


def test_the_steps_have_in_them_what_could_go_wrong(both):
    """Or the equalities above would say little."""
    states, steps = both[1], training_steps()
    parts = [steps[index] for index in range(STEPS)]
    assert sum(one.tokens != other.tokens for one, other in parts) >= 4
    assert min(state.grad_norm for state in states) < CLIP < max(state.grad_norm for state in states)
    moves = [moved(before, after) for before, after in pairwise(states)]
    assert any(earlier - later for earlier, later in pairwise(moves)), "no layer ran in a step and fell in the next"


def moved(before: State, after: State) -> set[str]:
    """Names of the parameters that differ."""
    return {name for name, tensor in before.parameters.items() if not torch.equal(tensor, after.parameters[name])}


def test_gradients_of_what_an_optimiser_leaves_out_do_not_pile_up(tmp_path):
    """Clipping measures all of them: an optimiser of a few parameters, none of which moves, clips as one of all."""
    config = compose([*WORDS, "layerdrop=0"]).config
    found = []
    for is_taken in (lambda _: True, lambda name: name.endswith("bias")):
        model, state = build_model(config, src_vocab=VOCAB, tgt_vocab=VOCAB), TrainingState()
        taken = [parameter for name, parameter in model.named_parameters() if is_taken(name)]
        objective = replace(
            build_objective(config, state),
            optimizer=lambda _, taken=taken: torch.optim.SGD(taken, lr=0.0),
            learning_rate=lambda _: 0.0,
        )
        module = TrainingModule(model, objective)
        notes, steps = Notes(module), training_steps()
        ends = StopCriteria(total_steps=STEPS, max_seconds=None, patience=None, monitor="bleu", schedule=None)
        fit(
            module,
            steps,
            lambda model, step: (Validation(step, 2.0, 10.0), Samples()),
            state,
            ends,
            build_checkpoints(config, tmp_path / str(len(found))),
            notes,
            valid_every=3,
            trainer_options=trainer_options(config),
        )
        found.append([state.grad_norm for state in notes.states])
    assert found[0] == found[1]
