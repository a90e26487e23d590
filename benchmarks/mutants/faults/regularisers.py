"""Faults of what falls out in training: dropout, DropHead, LayerDrop, word dropout, and their random streams."""

from benchmarks.mutants.fault import Fault

SITES = ("model/test_dropout_sites.py",)
DROPHEAD = ("model/test_drophead.py",)
LAYERDROP = ("model/test_layerdrop.py",)
STREAMS = ("model/test_streams.py", "model/test_pairs_of_regularisers.py")

REGULARISERS = [
    Fault(
        "no dropout on embeddings",
        "transformer/model/embedding.py",
        "return self.dropout(as_products_take_it(embedded))",
        "return as_products_take_it(embedded)",
        SITES,
    ),
    Fault(
        "no activation dropout",
        "transformer/model/feed_forward.py",
        "return self.outer(self.dropout(self.hidden(x)))",
        "return self.outer(self.hidden(x))",
        SITES,
    ),
    Fault(
        "PreNorm: dropout on the residual sum",
        "transformer/model/residual.py",
        "return x + self.dropout(f(self.norm(x)))",
        "return self.dropout(x + f(self.norm(x)))",
        SITES,
    ),
    Fault(
        "PostNorm: dropout after the norm",
        "transformer/model/residual.py",
        "return self.norm(x + self.dropout(f(x)))",
        "return self.dropout(self.norm(x + f(x)))",
        SITES,
    ),
    Fault(
        "attention dropout: in evaluation too",
        "transformer/model/attention.py",
        "attn_mask=mask, dropout_p=dropout.rate, is_causal=causal",
        "attn_mask=mask, dropout_p=dropout.drop_prob, is_causal=causal",
        ("model/test_attention.py", "model/test_dropout_sites.py"),
    ),
    Fault(
        "attention dropout: never on",
        "transformer/model/attention.py",
        "return dropout(weights(queries, keys, mask, causal=causal, bias=bias)).to(values.dtype) @ values",
        "return weights(queries, keys, mask, causal=causal, bias=bias) @ values",
        ("model/test_attention.py", "model/test_dropout_sites.py"),
    ),
    Fault(
        "dropout: not drawn anew in each micro-batch",
        "transformer/model/streams.py",
        "moment = (step,) if module.per_step else (step, micro_batch)",
        "moment = (step,)",
        STREAMS,
    ),
    Fault(
        "dropout: sites of one kind share a stream",
        "transformer/model/streams.py",
        "module.reseed(derive(seed, name, *moment))",
        "module.reseed(derive(seed, type(module).__name__, *moment))",
        STREAMS,
    ),
    Fault(
        "word dropout: hides the end of a sentence too",
        "transformer/model/dropout.py",
        "words = (tokens != PAD) & (tokens != BOS) & (tokens != EOS)",
        "words = (tokens != PAD) & (tokens != BOS)",
        ("model/test_word_dropout.py",),
    ),
    Fault(
        "word dropout: on the source only",
        "transformer/model/transformer.py",
        "self.words.target(self.word_dropout(tgt))",
        "self.words.target(tgt)",
        ("model/test_word_dropout.py", "model/test_dropout_sites.py"),
    ),
    Fault(
        "DropHead: what is kept is not scaled",
        "transformer/model/dropout.py",
        "return kept * (self.num_heads / kept.sum(dim=1, keepdim=True))",
        "return kept.float()",
        DROPHEAD,
    ),
    Fault(
        "DropHead: scaled by 1 / (1 - p), not by H / kept",
        "transformer/model/dropout.py",
        "return kept * (self.num_heads / kept.sum(dim=1, keepdim=True))",
        "return kept / (1 - self.drop_prob)",
        DROPHEAD,
    ),
    Fault(
        "DropHead: one mask for all sentences of the batch",
        "transformer/model/dropout.py",
        "multiplier = self.multipliers(heads.size(0)).to(",
        "multiplier = self.multipliers(1).to(",
        DROPHEAD,
    ),
    Fault(
        "DropHead: where all heads would fall, the first stays",
        "transformer/model/dropout.py",
        "kept = (draw >= self.drop_prob) | (draw == draw.amax(dim=1, keepdim=True))",
        "kept = draw >= self.drop_prob\n        kept[:, 0] |= ~kept.any(dim=1)",
        DROPHEAD,
    ),
    Fault(
        "DropHead: at the encoder's sites only",
        "transformer/stages/models.py",
        'dropped = site in self.config.drophead.own.get("sites", ())',
        'dropped = site == "encoder" and site in self.config.drophead.own.get("sites", ())',
        DROPHEAD,
    ),
    Fault(
        "LayerDrop: the encoder takes the decoder's rate",
        "transformer/stages/models.py",
        "self.layerdrop(depth, self.config.layerdrop_encoder)",
        "self.layerdrop(depth, self.config.layerdrop_decoder)",
        LAYERDROP,
    ),
    Fault(
        "LayerDrop: what runs is scaled by 1 / (1 - p)",
        "transformer/model/layerdrop.py",
        '"""\n        return after\n',
        '"""\n'
        "        keep = 1 - self.rates()[index] if self.training else 1\n"
        "        return before + (after - before) / keep\n",
        (
            "model/test_layerdrop.py",
            "model/test_arms.py::test_a_step_in_which_every_layer_runs_is_the_baseline_bit_for_bit",
        ),
    ),
    Fault(
        "LayerDrop: drawn anew in each micro-batch",
        "transformer/model/layerdrop.py",
        "    per_step = True\n",
        "    per_step = False\n",
        (*LAYERDROP, *STREAMS),
    ),
    Fault(
        "LayerDrop, rates=linear: the lowest layer counts as 0",
        "transformer/model/layerdrop.py",
        "p * (layer / depth) for layer in range(1, depth + 1)",
        "p * (layer / depth) for layer in range(depth)",
        LAYERDROP,
    ),
    Fault(
        "LayerDrop, rates=learned: the gradient has the other sign",
        "transformer/model/layerdrop.py",
        "return after + (after.detach() - before.detach()) * (share - share.detach())",
        "return after - (after.detach() - before.detach()) * (share - share.detach())",
        LAYERDROP,
    ),
    Fault(
        "LayerDrop, rates=learned: not divided by q",
        "transformer/model/layerdrop.py",
        "share = keep / keep.detach().clamp(min=self.LEAST_SHARE)",
        "share = keep",
        LAYERDROP,
    ),
]
