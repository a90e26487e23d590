"""Translate standard input with a finished run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from ablab.errors import UserError, choices
from ablab.fields import Count, Group
from ablab.record import Record, RunFolder, find_run, n_best_lines
from ablab.screen import Screen


class Options(Group):
    """What `translate` takes, as `key=value` words."""

    run: str
    beam_size: Count = 4
    length_penalty: Annotated[float, Field(ge=0)] = 0.6
    n_best: Count = 1
    max_extra_tokens: Annotated[int, Field(ge=0)] = 50
    attention: str | None = None
    device: Literal["cpu", "gpu"] = "cpu"
    outputs: str = "outputs"


def parse(arguments: Sequence[str]) -> Options:
    """Plain strings: a run's display name must not meet Hydra's grammar."""
    words: dict[str, Any] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals or key not in Options.model_fields:
            raise UserError(f"{argument}: no such key; {choices(key, Options.model_fields)}")
        words[key] = value
    if "run" not in words:
        raise UserError("run: missing; say which run translates: run=<id>")
    try:
        options = Options.model_validate(words, strict=False)
    except ValidationError as error:
        detail = error.errors()[0]
        raise UserError(f"{detail['loc'][0]}={detail['input']}: {detail['msg']}") from None
    if options.n_best > options.beam_size:
        raise UserError(f"n_best={options.n_best}: must be at most beam_size={options.beam_size}")
    return options


def translate(arguments: Sequence[str]) -> int:
    """Read sentences, write translations; progress goes to standard error."""
    options = parse(arguments)
    folder = find_run(options.run, Path(options.outputs))
    record = folder.record()
    if record is None:
        raise UserError(f"run={options.run}: {folder.run_id} has not finished; type its train line again")
    if record.selected is None:
        raise UserError(f"run={options.run}: {folder.run_id} diverged ({record.reason}); it has no weights to use")
    sentences = _read()
    _translate(options, folder, record, sentences)
    return 0


def _read() -> list[str]:
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"standard input, line {line}: not UTF-8") from None
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _translate(options: Options, folder: RunFolder, record: Record, sentences: Sequence[str]) -> None:
    from ablab.decoding.translate import Search, Translator
    from ablab.evaluate import load_finished

    model, tokenizers = load_finished(folder, record, options.device)
    translator = Translator(model, tokenizers)
    search = Search(options.beam_size, options.length_penalty, options.max_extra_tokens)
    encoded = translator.encode(sentences)
    screen = Screen(stderr=True)
    with screen.counting_bar("translating", len(sentences)) as bar:
        found = translator.hypotheses(encoded, search, bar.advance)
    best = [beams[: options.n_best] for beams in found]
    texts = [translator.texts(hypotheses) for hypotheses in best]
    lines = n_best_lines(texts) if options.n_best > 1 else (f"{hypotheses[0][1]}\n" for hypotheses in texts)
    sys.stdout.writelines(lines)
    sys.stdout.flush()
    if options.attention is not None:
        _draw(Path(options.attention), translator, encoded, [beams[0].ids for beams in best], screen)


def _draw(folder: Path, translator: Any, encoded: Any, translations: Sequence[Sequence[int]], screen: Screen) -> None:
    import torch

    from ablab.analysis import cross_attention, draw_attention
    from ablab.model.tokens import BOS

    device = next(translator.model.parameters()).device
    for number, ids in enumerate(translations):
        src = encoded.tokens[encoded.offsets[number] : encoded.offsets[number + 1]].tolist()
        maps = cross_attention(
            translator.model, torch.tensor([src], device=device), torch.tensor([[BOS, *ids]], device=device)
        )
        draw_attention(
            maps[-1].mean(dim=0),
            [*translator.target.pieces(ids), "</s>"],
            [*translator.source.pieces(src[:-1]), "</s>"],
            folder / f"{number + 1}.png",
            "Cross-attention, last layer, mean of heads",
        )
    screen.say(f"Cross-attention pictures: {folder}")
