"""Faults of the arms that came after the papers: norms, placements, positions, networks, optimisers."""

from benchmarks.mutants.fault import Fault

INITIALISATION = ("model/test_initialisation.py",)
NORMS = ("model/test_norms.py",)
OPTIMISERS = ("training/test_optimisers.py",)
POSITIONS = ("model/test_positions.py",)
QK = ("model/test_attention_norms.py",)
SCHEDULES = ("training/test_schedules.py",)

TODAY = [
    Fault(
        "DyT: alpha is left out",
        "transformer/model/norms.py",
        "squashed = torch.tanh(self.alpha.to(x.dtype) * x)",
        "squashed = torch.tanh(x)",
        NORMS,
    ),
    Fault(
        "QK-norm: the scores are divided by sqrt(d_head) once more",
        "transformer/model/norms.py",
        "scale = self.g * math.sqrt(queries.size(-1))",
        "scale = self.g",
        QK,
    ),
    Fault(
        "QK-norm: the keys keep their length",
        "transformer/model/norms.py",
        "return keys * (1 / self._norm(keys)).to(keys.dtype)",
        "return keys",
        QK,
    ),
    Fault(
        "DeepNorm: the decoder takes the encoder's alpha",
        "transformer/model/residual.py",
        "alphas[stack]",
        'alphas["encoder"]',
        NORMS,
    ),
    Fault(
        "DeepNorm: alpha multiplies the sublayer, not the stream",
        "transformer/model/residual.py",
        "self.norm(self.alpha.to(x.dtype) * x + self.dropout(f(x)))",
        "self.norm(x + self.alpha.to(x.dtype) * self.dropout(f(x)))",
        NORMS,
    ),
    Fault(
        "DeepNorm: queries and keys are scaled too",
        "transformer/model/initialisation.py",
        '"qkv": (False, False, True)',
        '"qkv": (True, True, True)',
        INITIALISATION,
    ),
    Fault(
        "sandwich: one norm serves before and after",
        "transformer/model/residual.py",
        "self.norm_out = make_norm()",
        "self.norm_out = norm",
        NORMS,
    ),
    Fault(
        "SwiGLU: as wide as ReLU, and larger by half",
        "transformer/model/feed_forward.py",
        "return max(1, round(d_ff * (2 * d_model + 1) / (3 * d_model + 2)))",
        "return d_ff",
        ("model/test_feed_forward.py",),
    ),
    Fault(
        "SwiGLU: the sigmoid alone, as in GLU",
        "transformer/model/feed_forward.py",
        "F.silu(self.gate(x)) * self.inner(x)",
        "F.sigmoid(self.gate(x)) * self.inner(x)",
        ("model/test_feed_forward.py",),
    ),
    Fault(
        "RoPE: a decoding step forgets how far it is",
        "transformer/model/positions.py",
        "angles = self.angles(start, x.size(2), x.device)",
        "angles = self.angles(0, x.size(2), x.device)",
        POSITIONS,
    ),
    Fault(
        "RoPE: halves are paired, not neighbours",
        "transformer/model/positions.py",
        "left, right = x.to(precise).unflatten(-1, (-1, 2)).unbind(-1)",
        "left, right = x.to(precise).chunk(2, dim=-1)",
        POSITIONS,
    ),
    Fault(
        "AdamW: norms and biases decay too",
        "transformer/training/optimisers.py",
        '        {"params": [each for _, each in parameters if each.ndim < 2], "weight_decay": 0.0},\n',
        '        {"params": [each for _, each in parameters if each.ndim < 2], "weight_decay": weight_decay},\n',
        OPTIMISERS,
    ),
    Fault(
        "Muon: a joined projection is one matrix",
        "transformer/training/optimisers.py",
        'return JOINED.get(name.split(".")[-2], 1)',
        "return 1",
        OPTIMISERS,
    ),
    Fault(
        "Muon: momentum without looking ahead",
        "transformer/training/optimisers.py",
        'looked_ahead = gradient.lerp(state["momentum"], mu)',
        'looked_ahead = state["momentum"].clone()',
        OPTIMISERS,
    ),
    Fault(
        "WSD: decays over the first steps, not the last",
        "transformer/training/schedules.py",
        "begin = total * (1 - decay_share)",
        "begin = total * decay_share",
        SCHEDULES,
    ),
    Fault(
        "valdecay: validations of the warm-up count",
        "transformer/training/state.py",
        "later = [validation for validation in validations if validation.step >= self.warmup_steps]",
        "later = validations",
        ("training/test_plateau.py",),
    ),
    Fault(
        "output bias: no part of the loss",
        "transformer/training/loss.py",
        "if model.output_bias is not None:  # as one more column, the feature of which is 1",
        "if False:",
        ("training/test_loss.py", "model/test_published.py"),
    ),
    Fault(
        "output bias: no part of decoding",
        "transformer/model/transformer.py",
        "return linear(hidden, self.words.output_matrix(), self.output_bias)",
        "return linear(hidden, self.words.output_matrix())",
        ("training/test_loss.py", "export/test_ctranslate2.py"),
    ),
    Fault(
        "FixNorm, embedding.initial=normal: the rows are small all the same",
        "transformer/model/initialisation.py",
        'case FixNormEmbedding(initial="uniform"):',
        "case FixNormEmbedding():",
        INITIALISATION,
    ),
    Fault(
        "oneDNN: the gradient of a bias is of the first row",
        "transformer/model/products.py",
        "grad.sum(dim=0) if ctx.needs_input_grad[2] else None",
        "grad[0] if ctx.needs_input_grad[2] else None",
        ("model/test_products.py",),
    ),
    Fault(
        "oneDNN: every processor's products",
        "transformer/model/products.py",
        "and mkl_is_slow()",
        "and True",
        ("model/test_products.py",),
    ),
    Fault(
        "oneDNN: small products, too",
        "transformer/model/products.py",
        "multiplications >= LEAST",
        "True",
        ("model/test_products.py",),
    ),
]
