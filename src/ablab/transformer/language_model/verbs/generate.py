"""The `generate` command: continue a text with the model of a finished run."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field

from ablab.config.compose import idle
from ablab.errors import UserError, check_text
from ablab.fields import Count, ReadIf, Share
from ablab.store.records import Strict
from ablab.tasks.verbs import Options, Outputs, TextOrJson, read_words, say_json
from ablab.text import how_many
from ablab.tracking.console import Console
from ablab.transformer.language_model.schema import NAME
from ablab.transformer.pruning.saved_model import as_read, find_model

if TYPE_CHECKING:
    from ablab.transformer.data.documents.tokenizers import TextTokenizer


LEAST = 1e-6
"""The lowest temperature above 0: logits divided by less are no numbers."""


def _not_near_zero(temperature: float) -> float:
    if not (temperature == 0 or temperature >= LEAST):
        raise ValueError(f"allowed: 0, or from {LEAST:g} on")
    return temperature


IF_DRAWN = ReadIf(("temperature",), lambda temperature: temperature > 0, "temperature above 0")


class GenerateOptions(Options):
    """Continue a text with a language model's selected weights.

    Draws one token after the other until the document ends or max_tokens is reached. The same seed gives the same text.

      ablab generate run=<id> prompt='Once upon a time' top_p=0.95
      ablab generate run=<id> temperature=0                    the likeliest tokens
    """

    usage = ("ablab generate run=<id> [prompt=<text>] [key=value ...]",)
    output = "ablab.transformer.language_model.verbs.generate.Generated"

    run: str
    """a finished run of task=language_model: its id, a prefix of its id, its display name, or its path; or the path
    of a pruned model"""
    prompt: str = ""
    """beginning of the text; empty: the model begins a document of its own"""
    temperature: Annotated[float, AfterValidator(_not_near_zero)] = 1.0
    """divides the logits: below 1 likely tokens become likelier; 0 takes the likeliest"""
    top_p: Annotated[Share, IF_DRAWN] = 1.0
    """draws from the likeliest tokens whose probabilities add up to this (nucleus sampling)"""
    seed: Annotated[int, Field(ge=0), IF_DRAWN] = 1
    """seed of the draws"""
    samples: Annotated[Count, IF_DRAWN] = 1
    """number of continuations, each with draws of its own"""
    max_tokens: Count = 200
    """most tokens of a continuation"""
    device: Literal["cpu", "gpu"] = "cpu"
    """device that computes"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class Generated(Strict):
    """A prompt, and its continuations without it."""

    run: str
    prompt: str
    continuations: list[str]


def generate(arguments: Sequence[str]) -> int:
    """Write the prompt and its continuation; several are apart by a line of dashes."""
    options = read_words(GenerateOptions, arguments)
    for key in sorted(options.model_fields_set):
        if (why := idle(options, key)) is not None:
            raise UserError(f"{key}={getattr(options, key)} has no effect with {why}")
    check_text(options.prompt)

    from ablab.transformer.decoding.sampling import continuations
    from ablab.transformer.language_model.build import load_language_model
    from ablab.transformer.stages.models import device_of  # torch from here on

    saved = find_model(options.run, Path(options.outputs), task=NAME)
    model, tokenizer = load_language_model(saved, device_of(options.device))
    (read,) = as_read(saved, [options.prompt])
    encoded = tokenizer.encode(read)
    if unknown := tokenizer.unknown_in(encoded):
        Console(stderr=True).say(
            f"unknown to the tokenizer, and read as one sign: {how_many(unknown, 'token')} of prompt"
        )
    prompt = encoded.tolist()
    found = continuations(
        model,
        [tokenizer.end, *prompt],
        tokenizer.end,
        saved.architecture.model.context,
        samples=options.samples,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
    )
    texts = [continuation(tokenizer, prompt, ids) for ids in found]
    if options.format == "json":
        say_json(Generated(run=saved.name, prompt=options.prompt, continuations=texts))
    else:
        sys.stdout.write("\n----\n".join(f"{options.prompt}{text}" for text in texts) + "\n")
    return 0


def continuation(tokenizer: "TextTokenizer", prompt: Sequence[int], ids: Sequence[int]) -> str:
    """Return the text of tokens that continue others: at the beginning of a line, a piece has no space before it."""
    return tokenizer.decode([*prompt, *ids]).removeprefix(tokenizer.decode(prompt))
