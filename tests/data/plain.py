"""What the package computes fast or in little memory, written out plainly: the laws of corpora compare with it."""

import hashlib
import io
import json
import math
import sys
import tempfile
from collections import Counter
from functools import cache
from itertools import chain
from pathlib import Path

import numpy as np
import sentencepiece
from sacrebleu.metrics import BLEU
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from ablab.errors import UserError
from ablab.files import text_of
from ablab.seeding import derive
from ablab.transformer.data.keys import key, near_key
from ablab.transformer.data.tokenizer import Tokenizer, given_tokenizer
from ablab.transformer.model.tokens import BOS, EOS, PAD, UNK


def epoch_batches(src_lengths, tgt_lengths, *, batch_tokens, seed, epoch):
    """Shuffle, sort by length, cut where the budget is full, and shuffle the batches."""
    rng = np.random.default_rng(derive(seed, "order", epoch))
    shuffled = rng.permutation(len(src_lengths))
    src, tgt = src_lengths[shuffled], tgt_lengths[shuffled]
    order = shuffled[np.lexsort((tgt, src, np.maximum(src, tgt)))]
    first = int(batch_tokens * rng.uniform())
    batches = list(_cut(order, np.maximum(src_lengths, tgt_lengths), batch_tokens, first))
    return [batches[i] for i in rng.permutation(len(batches))]


def _cut(order, larger, batch_tokens, budget):
    start, widest = 0, 0
    for end, width in enumerate(larger[order].tolist()):
        if end > start and (end - start + 1) * max(widest, width) > budget:
            yield order[start:end]
            start, widest, budget = end, 0, batch_tokens
        widest = max(widest, width)
    yield order[start:]


def padding_share(batches, src_lengths, tgt_lengths):
    tokens = src_lengths.sum() + tgt_lengths.sum()
    positions = sum(len(rows) * (src_lengths[rows].max() + tgt_lengths[rows].max()) for rows in batches)
    return float(1 - tokens / positions)


def split_pairs(pairs, sizes):
    """Sort all source sentences by their SHA-256, each key once."""
    spelt = {}
    for row, (source, target) in enumerate(pairs):
        if key(source) and key(target):
            spelt.setdefault(source.strip(), row)
    first = {}
    for source in sorted(spelt, key=lambda source: hashlib.sha256(source.encode()).digest()):
        first.setdefault(key(source), spelt[source])
    if sum(sizes) >= len(first):
        raise UserError(
            f"data.split=[{','.join(map(str, sizes))}]: the corpus has {len(first):,} different source sentences; "
            "allowed: fewer than these in all, as some are to train on"
        )
    parts, start, ordered = [], 0, list(first)
    for size in reversed(sizes):
        parts.append([pairs[row] for row in sorted(first[source] for source in ordered[start : start + size])])
        start += size
    held = set(ordered[:start])
    return [[pair for pair in pairs if key(pair[0]) not in held], *reversed(parts)]


def trained(sentences, size, kind="bpe", rule="nmt_nfkc"):
    """Return the model that SentencePiece trains on the sentences themselves."""
    written = io.BytesIO()
    limit = {"hard_vocab_limit": False} if kind == "char" else {}
    if rule == "identity":
        limit["normalization_rule_tsv"] = str(_spaces())
    sentencepiece.SentencePieceTrainer.train(
        **{"sentence_iterator": iter(sentences), "model_writer": written, "vocab_size": size, "model_type": kind},
        **limit,
        **{"character_coverage": 1.0, "num_threads": 1, "max_sentence_length": 1 << 24, "minloglevel": 3},
        **{"unk_id": UNK, "pad_id": PAD, "bos_id": BOS, "eos_id": EOS},
    )
    return written.getvalue() if rule == "nmt_nfkc" else _named(written.getvalue(), rule)


@cache
def _spaces():
    """Each white space becomes a space, and so does the sign for it."""
    table = Path(tempfile.mkdtemp()) / "rule.tsv"
    white = [c for c in map(chr, range(sys.maxunicode + 1)) if c.isspace() and c not in " \n"]
    table.write_text("".join(f"{ord(character):X}\t20\n" for character in [*white, "\u2581"]))
    return table


def _named(model, rule):
    content = ModelProto()
    content.ParseFromString(model)
    content.normalizer_spec.name = rule
    content.normalizer_spec.ClearField("normalization_rule_tsv")
    return content.SerializeToString()


def prepared(corpus):
    """Return the content of each file of the prepared corpus, made of lists in memory."""
    everything = corpus.as_read(corpus.train_split().pairs)
    valid_pairs = corpus.as_read(corpus.valid_split().pairs[: corpus.valid_pairs])
    valid_spoken = [pair for pair in valid_pairs if all(map(key, pair))]
    chosen = [everything[i] for i in _subsample(len(everything), corpus.train_pairs)]
    spoken = [pair for pair in chosen if all(map(key, pair))]
    tokenizers = _tokenizers(corpus, spoken)
    ids = [tuple(t.encode([side])[0] for t, side in zip(tokenizers, pair, strict=True)) for pair in spoken]
    fits = [max(map(len, pair)) + 1 <= corpus.max_tokens for pair in ids]
    kept = [pair for pair, fit in zip(ids, fits, strict=True) if fit]
    trained_on = [pair for pair, fit in zip(spoken, fits, strict=True) if fit]
    valid = [tuple(t.encode([side])[0] for t, side in zip(tokenizers, pair, strict=True)) for pair in valid_spoken]
    files = {}
    for name, pairs in (("train", kept), ("valid", valid)):
        for number, side in enumerate(("src", "tgt")):
            sentences = [[*pair[number], EOS] for pair in pairs]
            files[f"{name}.{side}.tokens.npy"] = _npy(np.array(list(chain(*sentences)), dtype=np.int32))
            offsets = np.cumsum([0, *map(len, sentences)])
            files[f"{name}.{side}.offsets.npy"] = _npy(offsets.astype(np.int64))
        if name == "train":
            keys = [_hash(text) for pair in trained_on for text in _keys(pair)]
            files["train.keys.npy"] = _npy(np.array(keys, dtype=np.uint64))
    for side, tokenizer in zip(("src", "tgt"), tokenizers, strict=True):
        files[f"{side}.model"] = tokenizer.model
    for number, side in enumerate(("src", "tgt")):
        files[f"valid.{side}.txt"] = text_of(pair[number] for pair in valid_spoken).encode()
    counts = {
        **{"pairs": len(everything), "chosen": len(chosen), "dropped_empty": len(chosen) - len(spoken)},
        **{"dropped_overlong": len(spoken) - len(kept), "kept": len(kept)},
        **{f"{side}_tokens": sum(len(pair[n]) + 1 for pair in kept) for n, side in enumerate(("src", "tgt"))},
    }
    manifest = {
        "kind": corpus.kind,
        "vocab": [len(tokenizer) for tokenizer in tokenizers],
        "train": counts,
        "valid": {"pairs": len(valid_pairs), "dropped_empty": len(valid_pairs) - len(valid_spoken)},
        "overlap": _overlap(valid_spoken, trained_on),
        "unigram_loss": _unigram_loss([[*t, EOS] for _, t in kept], [[*t, EOS] for _, t in valid]),
        "ceiling": _ceiling([target for _, target in valid_spoken], tokenizers[1], corpus),
        "unknown": {side: sum(pair[n].count(UNK) for pair in kept) for n, side in enumerate(("src", "tgt"))},
        **({"scoring": corpus.scoring} if corpus.scoring else {}),
        "sha256": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
    }
    text = json.dumps(manifest, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
    return {**files, "manifest.json": text.encode()}


def _keys(pair):
    return "\n".join(map(key, pair)), key(pair[0]), near_key(pair[0])


def _hash(text):
    return int(hashlib.blake2b(text.encode(), digest_size=8).hexdigest(), 16)


def _overlap(held, train):
    seen = [set(column) for column in zip(*map(_keys, train), strict=True)]
    counts = [sum(_keys(pair)[kind] in seen[kind] for pair in held) for kind in range(3)]
    return dict(zip(("of", "pairs", "sources", "near"), (len(held), *counts), strict=True))


def _subsample(count, wanted):
    if wanted is None or wanted >= count:
        return range(count)
    return sorted(np.random.default_rng(derive(0, "subsample", count)).permutation(count)[:wanted].tolist())


def _tokenizers(corpus, pairs):
    if corpus.tokenizer.endswith(".model"):
        return [given_tokenizer(Path(corpus.tokenizer))] * 2
    sides = [[pair[side] for pair in pairs] for side in (0, 1)]
    texts = [[*sides[0], *sides[1]]] * 2 if corpus.joint_vocab else sides
    return [Tokenizer(trained(text, corpus.vocab_size, corpus.tokenizer, corpus.rule)) for text in texts]


def _npy(array):
    written = io.BytesIO()
    np.save(written, array)
    return written.getvalue()


def _ceiling(references, tokenizer, corpus):
    metric = BLEU(force=True, tokenize=corpus.bleu_tokenizer, lowercase=corpus.lowercase)
    given_back = [tokenizer.decode([tokenizer.encode([one])[0]])[0] for one in references]
    return {
        "itself": metric.corpus_score(references, [references]).score,
        "through": metric.corpus_score(given_back, [references]).score,
    }


def _unigram_loss(train, valid):
    counts, tokens = Counter(chain(*train)), list(chain(*valid))
    total = counts.total() + len(counts) + len(set(tokens) - set(counts))
    return -sum(math.log((counts[token] + 1) / total) for token in tokens) / len(tokens)
