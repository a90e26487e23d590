"""Translate standard input with a finished run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ablab.errors import UserError
from ablab.fields import Count, Group
from ablab.record import n_best_lines
from ablab.saved import SavedModel, find_model
from ablab.screen import Screen
from ablab.words import read_words


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
    """Typed, or one line that says why not."""
    options = read_words(Options, arguments)
    if options.n_best > options.beam_size:
        raise UserError(f"n_best={options.n_best}: must be at most beam_size={options.beam_size}")
    return options


def translate(arguments: Sequence[str]) -> int:
    """Read sentences, write translations; progress goes to standard error."""
    options = parse(arguments)
    saved = find_model(options.run, Path(options.outputs))
    sentences = _read()
    _translate(options, saved, sentences)
    return 0


def _read() -> list[str]:
    try:
        text = sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise UserError(f"standard input, line {line}: not UTF-8") from None
    lines = text.split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _translate(options: Options, saved: SavedModel, sentences: Sequence[str]) -> None:
    from ablab.assembly import device_of, load_model
    from ablab.decoding.translate import Search, Translator

    translator = Translator(*load_model(saved, device_of(options.device)))
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
