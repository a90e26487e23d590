"""The `translate` command: translate standard input with the model of a finished run; and the same for Python."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ValidationError

from ablab.code.machine import cores
from ablab.config.compose import idle
from ablab.errors import UserError, first_error
from ablab.fields import Count
from ablab.files import lines_of, text_of
from ablab.files.disk import lock_at
from ablab.store.records import n_best_lines
from ablab.store.run_folder import RunFolder
from ablab.tasks.verbs import read_words
from ablab.tracking.console import Console
from ablab.transformer.config.schema import Decoding
from ablab.transformer.data.corpus import EXTRA_TOKENS
from ablab.transformer.pruning.saved_model import SavedModel, as_read, find_model
from ablab.transformer.translation.verbs.export import export_folder
from ablab.transformer.translation.verbs.options import TranslateOptions

if TYPE_CHECKING:
    from ablab.transformer.decoding.translator import DecodingConfig

Hypotheses = Sequence[Sequence[tuple[float, str]]]
"""Score and text of each hypothesis of each sentence, the best first."""


def parse(arguments: Sequence[str]) -> TranslateOptions:
    """Parse the options; UserError in one line for invalid ones."""
    options = read_words(TranslateOptions, arguments)
    if options.n_best > options.beam_size:
        raise UserError(f"n_best={options.n_best}: must be at most beam_size={options.beam_size}")
    for key in sorted(options.model_fields_set):
        if (why := idle(options, key)) is not None:
            raise UserError(f"{key}={getattr(options, key)} has no effect with {why}")
    if options.backend == "ctranslate2":
        for key, usual in (("attention", None), ("device", "cpu")):
            if getattr(options, key) != usual:
                raise UserError(f"{key}={getattr(options, key)}: not with backend=ctranslate2; allowed: backend=ablab")
    return options


def translate(arguments: Sequence[str]) -> int:
    """Read sentences and write translations; progress goes to standard error.

    At a terminal every line is answered when it is typed. What is piped is read whole, and translated in batches.
    """
    options = parse(arguments)
    saved = find_model(options.run, Path(options.outputs))
    console = Console(stderr=True)
    if saved.former:
        console.say(saved.former)
    if sys.stdin.isatty() and options.attention is None:
        console.say(f"loading {saved.name} ...")
        translated = _translator(options, saved, console)
        console.say("Reads from the keyboard, a sentence on each line; Ctrl-D ends")
        for number, line in enumerate(sys.stdin.buffer, 1):
            try:
                _say(options, translated(as_read(saved, lines_of(line, "standard input"))))
            except UserError as error:  # the session goes on
                console.say(str(error).replace("line 1 ", f"line {number} ", 1))
        return 0
    sentences = as_read(saved, lines_of(sys.stdin.buffer.read(), "standard input"))
    _say(options, _translator(options, saved, console)(sentences))
    return 0


def _translator(
    options: TranslateOptions, saved: SavedModel, console: Console
) -> Callable[[Sequence[str]], Hypotheses]:
    """Load the model; return what translates sentences."""
    from ablab.transformer.decoding.translator import DecodingConfig

    extra = saved.extra_tokens if options.max_extra_tokens is None else options.max_extra_tokens
    search = DecodingConfig(options.beam_size, options.length_penalty, extra)
    if options.backend == "ctranslate2":
        return _by_ctranslate2(saved, search, console)

    from ablab.transformer.decoding.translator import Translator
    from ablab.transformer.stages.models import device_of, load_model

    translator = Translator(*load_model(saved, device_of(options.device)))

    def translated(sentences: Sequence[str]) -> Hypotheses:
        encoded = translator.encode(sentences)
        with console.counting("translating", len(sentences)) as advance:
            found = translator.hypotheses(encoded, search, advance)
        best = [beams[: options.n_best] for beams in found]
        _say_cut(search.cut(encoded.lengths - 1, [beams[0].ids for beams in found]), len(found), extra, console)
        if options.attention is not None:
            _draw(Path(options.attention), translator, encoded, [beams[0].ids for beams in best], console)
        return [translator.texts(hypotheses) for hypotheses in best]

    return translated


def _by_ctranslate2(
    saved: SavedModel, search: "DecodingConfig", console: Console
) -> Callable[[Sequence[str]], Hypotheses]:
    """Load the exported model; it is exported first if necessary."""
    from ablab.transformer.export.translator import CTranslate2Translator

    folder = export_folder(saved, "ctranslate2", "float32")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with lock_at(folder.with_name(f".{folder.name}.lock")):  # of several at once, the first exports
        if not folder.exists():
            from ablab.transformer.export.ctranslate2 import to_ctranslate2
            from ablab.transformer.stages.models import device_of, load_model

            console.say(f"{saved.name} is exported to {folder}")
            to_ctranslate2(*load_model(saved, device_of("cpu")), folder, quantization="float32")
    translator = CTranslate2Translator(folder)

    def translated(sentences: Sequence[str]) -> Hypotheses:
        ids = translator.source.encode_text(sentences)
        found = translator.hypotheses(ids, search, threads=cores())
        lengths = list(map(len, ids))
        _say_cut(search.cut(lengths, [beams[0].ids for beams in found]), len(found), search.max_extra_tokens, console)
        texts = (translator.target.decode([beam.ids for beam in beams]) for beams in found)
        return [
            list(zip([beam.score for beam in beams], text, strict=True))
            for beams, text in zip(found, texts, strict=True)
        ]

    return translated


def _say_cut(cut: int, count: int, extra: int, console: Console) -> None:
    """Say how many translations are cut off, or are just as long as they may be."""
    if cut:
        limit = f"the limit, {extra} tokens beyond the source"
        higher = 2 * extra or EXTRA_TOKENS
        console.say(f"{cut:,} of {count:,} translations reached {limit}; max_extra_tokens={higher} raises it")


def _say(options: TranslateOptions, found: Hypotheses) -> None:
    texts = [beams[: options.n_best] for beams in found]
    best = (hypotheses[0][1] for hypotheses in texts)
    sys.stdout.write("".join(n_best_lines(texts)) if options.n_best > 1 else text_of(best))
    sys.stdout.flush()


def _draw(folder: Path, translator: Any, encoded: Any, translations: Sequence[Sequence[int]], console: Console) -> None:
    from ablab.transformer.analysis import draw_translation

    for number, ids in enumerate(translations):
        src = encoded.tokens[encoded.offsets[number] : encoded.offsets[number + 1]].tolist()
        pieces = translator.source.pieces(src[:-1]), translator.target.pieces(ids)
        draw_translation(translator.model, src, ids, pieces, folder / f"{number + 1}.png")
    console.say(f"Cross-attention pictures: {folder}")


class _Asked(Decoding):
    """How to translate, in the ranges that `decoding` has for a test set."""

    n_best: Count = 1
    device: Literal["cpu", "gpu"]


def translated(folder: RunFolder, inputs: Sequence[str], **settings: object) -> list[str]:
    """Return the best translation of each sentence. UserError for a run without weights, or a setting out of range."""
    try:
        asked = _Asked.model_validate(settings, strict=False)  # NumPy's numbers as Python's
    except ValidationError as error:
        raise UserError(first_error(error, settings)) from None
    saved = find_model(str(folder.path), folder.outputs)
    from ablab.transformer.decoding.translator import DecodingConfig, Translator
    from ablab.transformer.stages.models import device_of, load_model

    translator = Translator(*load_model(saved, device_of(asked.device)))
    extra = saved.extra_tokens if asked.max_extra_tokens is None else asked.max_extra_tokens
    search = DecodingConfig(asked.beam_size, asked.length_penalty, extra)
    found = translator.hypotheses(translator.encode(as_read(saved, inputs)), search, lambda count: None)
    return [translator.texts(beams[:1])[0][1] for beams in found]
