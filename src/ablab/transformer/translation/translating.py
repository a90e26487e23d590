"""Translation of sentences with the selected weights of a run, as the Python API asks for it. Loads torch."""

from collections.abc import Sequence
from typing import Literal

from pydantic import ValidationError

from ablab.errors import UserError, first_error
from ablab.fields import Count
from ablab.store.run_folder import RunFolder
from ablab.transformer.config.schema import Decoding
from ablab.transformer.pruning.saved_model import as_read, find_model


class _Asked(Decoding):
    """How to translate, in the ranges that `decoding` has for a test set."""

    n_best: Count = 1
    device: Literal["cpu", "gpu"]

    @classmethod
    def of(cls, **settings: object) -> "_Asked":
        """Return the settings, NumPy's numbers as Python's; UserError in one line for one out of range."""
        try:
            return cls.model_validate(settings, strict=False)
        except ValidationError as error:
            raise UserError(first_error(error, settings)) from None


def translated(folder: RunFolder, sentences: Sequence[str], **settings: object) -> list[str]:
    """Return the best translation of each sentence. UserError for a run without weights, or a setting out of range."""
    asked = _Asked.of(**settings)
    saved = find_model(str(folder.path), folder.outputs)
    from ablab.transformer.build import device_of, load_model
    from ablab.transformer.decoding.translator import DecodingConfig, Translator

    translator = Translator(*load_model(saved, device_of(asked.device)))
    extra = saved.extra_tokens if asked.max_extra_tokens is None else asked.max_extra_tokens
    search = DecodingConfig(asked.beam_size, asked.length_penalty, extra)
    found = translator.hypotheses(translator.encode(as_read(saved, sentences)), search, lambda count: None)
    return [translator.texts(beams[:1])[0][1] for beams in found]
