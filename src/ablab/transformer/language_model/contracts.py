"""The laws of a language model's parts: documents in one row, the future, decoding, rates, and a resumed run."""

from collections.abc import Collection, Iterator

import torch
from torch import Tensor

from ablab.errors import UserError
from ablab.transformer.data.documents.packing import IGNORED, Packed
from ablab.transformer.language_model.build import build_language_model
from ablab.transformer.language_model.schema import LanguageModelConfig
from ablab.transformer.model.language_model import LanguageModel, PackedDocuments
from ablab.transformer.stages.builders import build_objective
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.contracts import of_training
from ablab.transformer.translation.contracts.laws import Law, require_close, require_equal

VOCAB, END = 24, 0
ROUNDING = 1e-9
"""Of float64, over the few layers of the model that is checked."""

NUMBERS = ((0, 0, 0, 1, 2, 2, 2, 2, 2, 3), (0, 1, 1, 1, 1, 1, 2, 2, 3, 3))
"""The document of each token in two rows; the last ones are padding."""


def documents(config: LanguageModelConfig) -> None:
    """Read documents in one row, and each by itself."""
    model = _model(config).eval()
    text, numbers = _text(), torch.tensor(NUMBERS)
    packed = model(text, numbers)
    for row, begin, end in PackedDocuments.of(numbers).spans:
        alone = model(text[row : row + 1, begin:end])
        require_close(packed[row : row + 1, begin:end], alone, ROUNDING, f"a document of {end - begin} tokens in a row")


def losses(config: LanguageModelConfig) -> None:
    """Change one document, and look at the gradient that the loss of the others has."""
    model, batch = _model(config).eval(), _batch()
    other = batch.text.clone()
    changed = batch.documents == 1  # others stand before it, and after
    other[changed] = (other[changed] + 1) % VOCAB
    rest = (~changed & (batch.labels != IGNORED)).flatten().nonzero().flatten()
    found = []
    for text in (batch.text, other):
        model.zero_grad()
        loss = build_objective(config, TrainingState()).loss(model, batch._replace(text=text, real=rest))
        loss.total.backward()
        found.append(
            [loss.total.detach(), *(each.grad for each in model.decoder.parameters() if each.grad is not None)]
        )
    for here, there in zip(*found, strict=True):
        require_close(there, here, ROUNDING * 100, "the loss of the other documents, or its gradient,")


def future(config: LanguageModelConfig) -> None:
    """Change tokens and look at the hidden vectors before them."""
    model, text = _model(config).eval(), _text()
    before = model(text)
    for position in range(1, text.size(1)):
        other = text.clone()
        other[:, position:] = (text[:, position:] + 1) % VOCAB
        require_close(model(other)[:, :position], before[:, :position], ROUNDING, f"what precedes token {position}")


def decoding(config: LanguageModelConfig) -> None:
    """Decode token by token, and all at once."""
    model, text = _model(config).eval(), _text()
    whole = model.logits(model(text))
    logits, state = model.start(text[:, :3], max_len=text.size(1) - 3)
    require_close(logits, whole[:, 2], ROUNDING, "what follows a beginning")
    for position in range(3, text.size(1)):
        step = model.step(text[:, position], state)
        require_close(step, whole[:, position], ROUNDING, f"decoding step {position - 2}")


def rate_zero(config: LanguageModelConfig) -> None:
    """Train at rate 0 and evaluate."""
    rates = ("dropout", "embedding_dropout", "attention_dropout", "activation_dropout")
    stack = config.model.model_copy(update=dict.fromkeys(rates, 0.0))
    model, text = _model(config.model_copy(update={"model": stack, "layerdrop": 0.0})), _text()
    require_equal(model.train()(text), model.eval()(text), "training at rate 0")


OF_MODEL = (
    Law("attention never crosses a document, and positions begin anew in each", documents),
    Law("the loss of a document depends on no other", losses),
    Law("the future changes nothing", future),
    Law("decoding token by token equals the whole pass", decoding),
    Law("training at rate 0 equals evaluation, bit for bit", rate_zero),
)


def laws(chosen: Collection[str], line: list[str]) -> Iterator[Law]:
    """Yield the laws of the chosen groups; `line` describes the run that is stopped and continued."""
    if "pruning" in chosen:
        raise UserError("pruning: its laws are those of translation; allowed: the line without task=language_model")
    yield from OF_MODEL
    yield from of_training.laws(line, _model, of_optimiser="optim" in chosen)


def _model(config: LanguageModelConfig) -> LanguageModel:
    return build_language_model(config, VOCAB).double()


def _text() -> Tensor:
    shape = (len(NUMBERS), len(NUMBERS[0]))
    return torch.randint(1, VOCAB, shape, generator=torch.Generator().manual_seed(3))


def _batch() -> Packed:
    """Return two rows of documents and padding; labels are the text, one token on."""
    text, numbers = _text(), torch.tensor(NUMBERS)
    follows = torch.nn.functional.pad(numbers[:, 1:], (0, 1), value=IGNORED) == numbers
    labels = torch.where(follows, text.roll(-1, dims=1), END)
    labels[numbers == max(NUMBERS[0])] = IGNORED
    return Packed(text, labels, numbers, (labels.flatten() != IGNORED).nonzero().flatten())
