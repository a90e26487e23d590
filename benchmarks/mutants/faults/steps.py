"""Faults of an optimiser step: rates, loss, gradients, Adam, and the data it sees."""

from benchmarks.mutants.fault import Fault

SCHEDULES = ("training/test_schedules.py",)
WHOLE = ("training/test_whole_steps.py",)
LOSS = ("training/test_loss.py",)

STEPS = [
    Fault(
        "noam: one step late",
        "transformer/training/schedules.py",
        "return peak * min(step / warmup_steps, (warmup_steps / step) ** 0.5)",
        "return peak * min((step - 1) / warmup_steps, (warmup_steps / max(1, step - 1)) ** 0.5)",
        SCHEDULES,
    ),
    Fault(
        "optim.lr=null: the peak is d^-0.5, whatever the warm-up",
        "transformer/config/training.py",
        'return float((self.sizes["d_model"] * self.schedule.own["warmup_steps"]) ** -0.5)',
        'return float(self.sizes["d_model"] ** -0.5)',
        WHOLE,
    ),
    Fault(
        "cosine: falls from the first step on",
        "transformer/training/schedules.py",
        "progress = min(1.0, (step - warmup_steps) / (total - warmup_steps))",
        "progress = min(1.0, step / total)",
        SCHEDULES,
    ),
    Fault(
        "plateau: decays one validation sooner",
        "transformer/training/schedules.py",
        "        if waited == patience:\n",
        "        if waited == max(1, patience - 1):\n",
        ("training/test_plateau.py",),
    ),
    Fault(
        "plateau: the best counts anew after a decay",
        "transformer/training/schedules.py",
        "rate, waited = rate * decay, 0",
        "rate, waited, best = rate * decay, 0, None",
        ("training/test_plateau.py",),
    ),
    Fault(
        "plateau: watches the loss though decay_monitor=bleu",
        "transformer/training/state.py",
        "orders = [validation.order(self.decay_monitor) for validation in validations]",
        'orders = [validation.order("loss") for validation in validations]',
        ("training/test_plateau.py",),
    ),
    Fault(
        "plateau: watches what training.monitor says, not decay_monitor",
        "transformer/stages/builders.py",
        "    own = config.schedule.own\n",
        "    own = {**config.schedule.own, 'decay_monitor': config.training.monitor}\n",
        ("training/test_plateau.py", "training/test_state.py"),
    ),
    Fault(
        "DropHead: the schedule is one step late",
        "transformer/stages/builders.py",
        "return lambda step, place: float(at(place)(step))",
        "return lambda step, place: float(at(place)(step - 1))",
        WHOLE,
    ),
    Fault(
        "DropHead: the rate is never set in training",
        "transformer/training/module.py",
        "site.drop_prob = rate = self.objective.drophead_rate(step, site.place)",
        "rate = self.objective.drophead_rate(step, site.place)",
        WHOLE,
    ),
    Fault(
        "DropHead, vshape: rises to p from step 0",
        "transformer/training/schedules.py",
        "    if step < warmup_steps:\n        return p * (1 - step / warmup_steps)\n",
        "    if step < total_steps:\n        return p * step / total_steps\n",
        SCHEDULES,
    ),
    Fault(
        "no gradient clipping",
        "transformer/training/module.py",
        'float("inf") if objective.clip is None else objective.clip',
        'float("inf")',
        WHOLE,
    ),
    Fault(
        "Adam: betas and eps of PyTorch",
        "transformer/training/optimisers.py",
        "return torch.optim.Adam([each for _, each in parameters], lr=0.0, betas=(beta1, beta2), eps=eps, fused=True)",
        "return torch.optim.Adam([each for _, each in parameters], lr=0.0, fused=True)",
        WHOLE,
    ),
    Fault(
        "Adam: moves dropped layers, whose gradients are zero",
        "transformer/training/module.py",
        "self.model.zero_grad(set_to_none=True)",
        "self.model.zero_grad(set_to_none=False)",
        WHOLE,
    ),
    Fault(
        "micro-batches count equally, whatever their tokens",
        "transformer/training/module.py",
        "self.manual_backward(loss.total / tokens)",
        "self.manual_backward(loss.total / loss.tokens / len(micro_batches))",
        WHOLE,
    ),
    Fault(
        "several processes: gradients are averaged, not added up",
        "transformer/training/distributed.py",
        "            self._reduce(flat, dist.ReduceOp.SUM)\n",
        "            self._reduce(flat, dist.ReduceOp.SUM)\n            flat /= self.size\n",
        ("training/test_distributed.py",),
    ),
    Fault(
        "loss: padding counts",
        "transformer/data/batches.py",
        "(labels.flatten() != PAD).nonzero().flatten()",
        "torch.arange(labels.numel())",
        LOSS,
    ),
    Fault(
        "loss: the end of a sentence is not learned",
        "transformer/data/batches.py",
        "(labels.flatten() != PAD).nonzero().flatten()",
        "((labels != PAD) & (labels != EOS)).flatten().nonzero().flatten()",
        ("training/test_loss.py", "data/test_steps.py"),
    ),
    Fault(
        "label smoothing: e is shared among the V - 1 other types",
        "transformer/training/loss.py",
        "_ProjectedCrossEntropy.apply(as_products_take_it(hidden), table, labels, label_smoothing)",
        "_ProjectedCrossEntropy.apply(\n"
        "        as_products_take_it(hidden), table, labels, label_smoothing * len(table) / (len(table) - 1)\n"
        "    )",
        LOSS,
    ),
    Fault(
        "label smoothing: left out of the gradient",
        "transformer/training/loss.py",
        "p.new_full(label.shape, smoothing - 1)",
        "p.new_full(label.shape, -1.0)",
        LOSS,
    ),
    Fault(
        "batches: every epoch has those of the first",
        "transformer/data/steps.py",
        'derive(self.seed, "order", epoch)',
        'derive(self.seed, "order")',
        ("data/test_batches.py",),
    ),
    Fault(
        "batches: an epoch is counted with the first batch of another",
        "transformer/data/steps.py",
        "return len(self._begins(self._drawn(epoch)[2]))",
        "return len(self._begins(self._drawn(0)[2]))",
        ("data/test_epochs.py",),
    ),
    Fault(
        "batches: equally long sentences stay in the order of the corpus",
        "transformer/data/steps.py",
        'shuffled[np.argsort(self._ranks[shuffled], kind="stable")]',
        'np.argsort(self._ranks, kind="stable")',
        ("data/test_epochs.py",),
    ),
]
