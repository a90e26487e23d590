"""The `generate` command: continue a text with the model of a finished run."""

import sys
from collections.abc import Sequence
from pathlib import Path

from ablab.config.compose import idle
from ablab.errors import UserError
from ablab.store.records import Strict
from ablab.tasks.verbs import read_words, say_json
from ablab.transformer.language_model.schema import NAME
from ablab.transformer.language_model.verbs.options import GenerateOptions
from ablab.transformer.pruning.saved_model import find_model


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

    from ablab.transformer.build import device_of  # torch from here on
    from ablab.transformer.decoding.sampling import continuations
    from ablab.transformer.language_model.build import load_language_model

    saved = find_model(options.run, Path(options.outputs), task=NAME)
    model, tokenizer = load_language_model(saved, device_of(options.device))
    found = continuations(
        model,
        [tokenizer.end, *tokenizer.encode(options.prompt).tolist()],
        tokenizer.end,
        saved.architecture.model.context,
        samples=options.samples,
        max_tokens=options.max_tokens,
        temperature=options.temperature,
        top_p=options.top_p,
        seed=options.seed,
    )
    texts = [tokenizer.decode(ids) for ids in found]
    if options.format == "json":
        say_json(Generated(run=saved.name, prompt=options.prompt, continuations=texts))
    else:
        sys.stdout.write("\n----\n".join(f"{options.prompt}{text}" for text in texts) + "\n")
    return 0
