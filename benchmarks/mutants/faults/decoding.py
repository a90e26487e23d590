"""Faults of the search for translations, and of how its speed is measured."""

from benchmarks.mutants.fault import Fault

BATCHES = ("decoding/test_batches.py",)
SEARCH = ("decoding/test_search.py",)
WORDS = ("decoding/test_words.py",)
DEVICE = ("decoding/test_device.py",)

DECODING = [
    Fault(
        "beam: ends at the first finished hypothesis",
        "transformer/decoding/hypotheses.py",
        "return self.scores[rows, -1] > -math.inf",
        "return self.scores[rows, 0] > -math.inf",
        (*SEARCH, *BATCHES),
    ),
    Fault(
        "beam: no sentence is done before all of its batch are",
        "transformer/decoding/search.py",
        "beams.abandon(finished.full(rows))",
        "beams.abandon(finished.full(rows).all().expand(len(rows)))",
        BATCHES,
    ),
    Fault(
        "beam: a sentence that is done goes on collecting until it leaves the batch",
        "transformer/decoding/search.py",
        "        beams.abandon(finished.full(rows))\n        state.follow(origin)\n"
        "        if (kept := unfinished(beams.going(), position)) is not None:\n",
        "        state.follow(origin)\n"
        "        if (kept := unfinished(beams.going() & ~finished.full(rows), position)) is not None:\n",
        BATCHES,
    ),
    Fault(
        "search: every step waits for the device",
        "transformer/decoding/search.py",
        'return device.type == "cpu" or (position + 1) % COUNT_EVERY == 0',
        "return True",
        DEVICE,
    ),
    Fault(
        "beam: keeping what ends waits for the device",
        "transformer/decoding/hypotheses.py",
        'if self.log_probs.device.type != "cpu":',
        'if self.log_probs.device.type == "cuda":',
        DEVICE,
    ),
    Fault(
        "beam: an end among the 2k best counts",
        "transformer/decoding/search.py",
        "ended = Ended(log_probs[:, :size].masked_fill(~is_end[:, :size], -math.inf), origin[:, :size], self.tokens)",
        "ends, at = log_probs.masked_fill(~is_end, -math.inf).topk(size, dim=1)\n"
        "        ended = Ended(ends, origin.gather(1, at), self.tokens)",
        (*SEARCH, *BATCHES),
    ),
    Fault(
        "beam: scores are renormalised after what is forbidden",
        "transformer/decoding/search.py",
        " + (forbidden - most).exp().sum(dim=-1, keepdim=True)",
        "",
        (*SEARCH, *WORDS),
    ),
    Fault(
        "beam: the best words are sought in a group too few",
        "transformer/decoding/search.py",
        "chosen = grouped.amax(dim=-1).topk(count, dim=-1)",
        "chosen = grouped.amax(dim=-1).topk(max(1, count - 1), dim=-1)",
        WORDS,
    ),
    Fault(
        "beam: a hypothesis keeps the past of its place, not of what it continues",
        "transformer/decoding/search.py",
        "        state.follow(origin)\n",
        "        state.follow(torch.arange(beam_size).expand_as(origin) * (position > 0))\n",
        SEARCH,
    ),
    Fault(
        "beam: a hypothesis attends to all of its sentence",
        "transformer/model/kv_cache.py",
        "own = torch.eye(hypotheses, dtype=like.dtype, device=like.device).log()",
        "own = like.new_zeros(hypotheses, hypotheses)",
        (*SEARCH, "model/test_arms.py"),
    ),
    Fault(
        "beam: every hypothesis must end a token early",
        "transformer/decoding/search.py",
        "beams.advance(beam_size, logits, limits[rows] == position, position)",
        "beams.advance(beam_size, logits, limits[rows] <= position + 1, position)",
        (*SEARCH, *BATCHES),
    ),
    Fault(
        "length penalty: the end does not count",
        "transformer/decoding/search.py",
        "penalty=length_penalty(position + 1, alpha)",
        "penalty=length_penalty(position, alpha)",
        SEARCH,
    ),
    Fault(
        "length penalty: that of fairseq",
        "transformer/decoding/hypotheses.py",
        "return float(((5 + length) / 6) ** alpha)",
        "return float(length**alpha)",
        SEARCH,
    ),
    Fault(
        "length of a translation: the limit counts the source's end",
        "transformer/decoding/search.py",
        "((src != PAD) & (src != EOS)).sum(dim=1) + max_extra_tokens",
        "(src != PAD).sum(dim=1) + max_extra_tokens",
        (*SEARCH, *BATCHES),
    ),
    Fault(
        "speed: paced at half the length",
        "transformer/decoding/speed.py",
        "paced = Paced(model, words)",
        "paced = Paced(model, words // 2)",
        ("decoding/test_speed.py",),
    ),
]
