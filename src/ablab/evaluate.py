"""One evaluation of a run: translate the test text with the selected weights, score, store."""

import hashlib
import json
import time
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import load_file

from ablab.build import build_model, build_search, device_of
from ablab.config.compose import validate
from ablab.data.prepared import write_lines
from ablab.data.tokenizer import Tokenizer, load_tokenizers
from ablab.decoding.translate import Translator
from ablab.model.transformer import Transformer
from ablab.plan import Planned
from ablab.provenance import code_digest
from ablab.record import Evaluation, Record, RunFolder, now
from ablab.scoring import looks_tokenised, score
from ablab.screen import Screen
from ablab.training.checkpoints import SELECTED


def evaluate(planned: Planned, record: Record, screen: Screen) -> Evaluation:
    """Translate and score as the configuration asks; adds one evaluation to the run."""
    config = planned.config
    if config.trainer.threads is not None:
        torch.set_num_threads(config.trainer.threads)
    model, tokenizers = load_finished(planned.folder, record, config.trainer.accelerator)
    test = config.data.test_split()
    pairs = test.pairs[: config.data.test_pairs]
    sources, references = ([pair[side] for pair in pairs] for side in (0, 1))
    raw = keep_raw(planned.outputs / "corpora", test.name, sources, references)

    translator = Translator(model, tokenizers)
    began = time.perf_counter()
    with screen.counting_bar(f"translating {test.name}", len(pairs)) as bar:
        encoded, search = translator.encode(sources), build_search(config)
        if config.decoding.n_best == 1:
            hypotheses, n_best = translator.best(encoded, search, bar.advance), None
        else:
            found = translator.hypotheses(encoded, search, bar.advance)
            n_best = [translator.texts(beams[: config.decoding.n_best]) for beams in found]
            hypotheses = [beams[0][1] for beams in n_best]
    seconds = time.perf_counter() - began
    if looks_tokenised(references):
        screen.say(f"{test.name} looks tokenised (full stops stand apart): its scores are not those of plain text")
    scores = score(hypotheses, references)
    evaluation = Evaluation(
        evaluation_id=planned.evaluation_id,
        settings=planned.evaluation,
        test_name=test.name,
        sentences=len(pairs),
        bleu=scores.bleu,
        chrf=scores.chrf,
        signatures=scores.signatures,
        brevity_penalty=scores.brevity_penalty,
        length_ratio=scores.length_ratio,
        seconds=seconds,
        sentences_per_second=len(pairs) / seconds,
        references=raw.name,
        statistics=scores.sentences,
        provenance_code=code_digest(),
        ended=now(),
    )
    planned.folder.write_evaluation(evaluation, hypotheses, n_best)
    return evaluation


def load_finished(
    folder: RunFolder, record: Record, device: Literal["cpu", "gpu"]
) -> tuple[Transformer, tuple[Tokenizer, Tokenizer]]:
    """Model and tokenizers of a finished run, from its own folder alone."""
    config = validate(record.config)
    tokenizers = load_tokenizers(folder.checkpoints)
    model = build_model(config, src_vocab=len(tokenizers[0]), tgt_vocab=len(tokenizers[1]))
    model.load_state_dict(load_file(folder.checkpoints / SELECTED))
    return model.to(device_of(device)).eval(), tokenizers


def keep_raw(corpora: Path, name: str, sources: list[str], references: list[str]) -> Path:
    """Raw sources and references, once for all runs, in a folder named by their content."""
    digest = hashlib.sha256(json.dumps([name, sources, references]).encode()).hexdigest()[:16]
    folder = corpora / digest
    if not (folder / "references.txt").exists():
        write_lines(folder / "sources.txt", sources)
        write_lines(folder / "references.txt", references)
    return folder
