"""Faults of the model as it computes in evaluation, and of its initial weights."""

from benchmarks.mutants.fault import Fault

ATTENTION = ("model/test_attention.py", "model/test_attention_biases.py", "analysis/test_analysis.py")
EMBEDDING = ("model/test_embedding.py",)
INITIALISATION = ("model/test_initialisation.py",)
NORMS = ("model/test_norms.py",)

ARCHITECTURE = [
    Fault(
        "PreNorm: no final norms",
        "transformer/model/residual.py",
        "        return make_norm()\n",
        "        return nn.Identity()\n",
        ("model/test_norms.py", "model/test_parity.py"),
    ),
    Fault(
        "ScaleNorm: g starts at 1",
        "transformer/model/norms.py",
        "g = torch.tensor(math.sqrt(d_model))",
        "g = torch.tensor(1.0)",
        NORMS,
    ),
    Fault(
        "ScaleNorm: divides by the root of the mean square, as RMSNorm does",
        "transformer/model/norms.py",
        "norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=precise)",
        "norm = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=precise) / math.sqrt(x.size(-1))",
        NORMS,
    ),
    Fault(
        "ScaleNorm: g is learned though it should be fixed",
        "transformer/model/norms.py",
        "        if learn_g:\n",
        "        if learn_g is not None:\n",
        NORMS,
    ),
    Fault(
        "FixNorm: at the output only",
        "transformer/model/embedding.py",
        "return F.normalize(F.embedding(tokens, self.weight), dim=-1) * math.sqrt(self.weight.size(1))",
        "return F.embedding(tokens, self.weight) * math.sqrt(self.weight.size(1))",
        EMBEDDING,
    ),
    Fault(
        "FixNorm: at the input only",
        "transformer/model/embedding.py",
        "return F.normalize(self.weight, dim=-1)",
        "return self.weight",
        EMBEDDING,
    ),
    Fault(
        "FixNorm: rows of the output times sqrt(d)",
        "transformer/model/embedding.py",
        "return F.normalize(self.weight, dim=-1)",
        "return F.normalize(self.weight, dim=-1) * math.sqrt(self.weight.size(1))",
        EMBEDDING,
    ),
    Fault(
        "tie=target_output: the source shares the table, the output does not",
        "transformer/model/embedding.py",
        '"target_output": ("source", "shared", "shared")',
        '"target_output": ("shared", "shared", "source")',
        EMBEDDING,
    ),
    Fault(
        "positions: tensor2tensor's exponent, over d - 2",
        "transformer/model/positions.py",
        "torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)",
        "torch.arange(0, d_model, 2, dtype=torch.float64) / (d_model - 2))",
        ("model/test_positions.py",),
    ),
    Fault(
        "attention_bias=no_key: queries lose theirs too",
        "transformer/model/attention.py",
        '"no_key": ("query", "value", "output")',
        '"no_key": ("value", "output")',
        ATTENTION,
    ),
    Fault(
        "attention_bias=no_key: the bias of the values is added to the keys",
        "transformer/model/projection.py",
        'self.register_buffer("places", places, persistent=False)',
        'self.register_buffer("places", torch.arange(len(places)), persistent=False)',
        ATTENTION,
    ),
    Fault(
        "cross-attention: looks at padding",
        "transformer/model/attention.py",
        "        return self.mix(self.as_queries(queries), memory, mask)\n",
        "        return self.mix(self.as_queries(queries), memory, None)\n",
        ("model/test_attention_biases.py", "model/test_arms.py::test_padding_changes_nothing"),
    ),
    Fault(
        "attention map: not scaled by sqrt(d_k)",
        "transformer/model/attention.py",
        "        return weights(self.as_queries(queries), memory.keys, mask)\n",
        "        return weights(self.as_queries(queries) * queries.size(-1) ** 0.5, memory.keys, mask)\n",
        ATTENTION,
    ),
    Fault(
        "SmallInit: queries, keys and values only",
        "transformer/model/initialisation.py",
        "return self.attention_std(linear.in_features) if isinstance(module, Attention)",
        "return (Xavier() if linear is getattr(module, 'output', 0) else self).attention_std(linear.in_features) "
        "if isinstance(module, Attention)",
        INITIALISATION,
    ),
    Fault(
        "SmallInit: the feed-forward network is small too",
        "transformer/model/initialisation.py",
        "        return math.sqrt(2 / (linear.in_features + linear.out_features))\n",
        "        small = isinstance(self, SmallInit)\n"
        "        return math.sqrt(2 / (linear.in_features + linear.out_features) / (2 if small else 1))\n",
        INITIALISATION,
    ),
]
