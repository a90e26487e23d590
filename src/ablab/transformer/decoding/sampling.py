"""Generation of text: one token after the other, drawn from the model's distribution."""

from collections.abc import Iterator, Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from ablab.seeding import derive
from ablab.transformer.model.language_model import LanguageModel
from ablab.transformer.model.modes import evaluating


def distribution(
    logits: Float[Tensor, "samples vocab"], temperature: float, top_p: float
) -> Float[Tensor, "samples vocab"]:
    """Return the probabilities to draw from: softmax(logits / temperature), of the likeliest tokens that make up top_p.

    Temperature 0 is the limit: the likeliest token alone, the first of equals. `top_p` in (0, 1]: the fewest likeliest
    tokens whose probabilities reach it remain (nucleus sampling; Holtzman et al. 2020, section 3.1).
    """
    logits = logits.float()
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(dim=-1), logits.size(-1)).float()
    p, order = (logits / temperature).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    before = p.cumsum(dim=-1) - p
    p = p.masked_fill(before >= top_p, 0.0)
    return torch.zeros_like(p).scatter(-1, order, p / p.sum(dim=-1, keepdim=True))


@torch.inference_mode()
def continuations(
    model: LanguageModel,
    prompt: Sequence[int],
    end: int | None,
    context: int,
    *,
    samples: int,
    max_tokens: int,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int = 0,
) -> list[list[int]]:
    """Return `samples` continuations of a prompt, each up to `max_tokens` tokens or `end`; None: to the last of them.

    A model that has read `context` tokens goes on from the last half of them. The draws of a sample depend on the seed
    and on its own number, however many samples there are.
    """
    streams = [torch.Generator().manual_seed(derive(seed, "generate", number)) for number in range(samples)]
    with evaluating(model):
        found = [list(prompt) for _ in range(samples)]
        for step, logits in enumerate(_next_logits(model, found, context)):
            if step == max_tokens or all(end in each[len(prompt) :] for each in found):
                break
            p = distribution(logits.cpu(), temperature, top_p)
            for each, row, stream in zip(found, p, streams, strict=True):
                each.append(int(torch.multinomial(row, 1, generator=stream)))
    return [_until(each[len(prompt) :], end) for each in found]


def _until(ids: list[int], end: int | None) -> list[int]:
    return ids[: ids.index(end)] if end in ids else ids


def _next_logits(
    model: LanguageModel, texts: list[list[int]], context: int
) -> Iterator[Float[Tensor, "samples vocab"]]:
    """Yield the logits of the token after each text, which are all of one length and grow by one token in between."""
    device = next(model.parameters()).device

    def newest(count: int) -> Int[Tensor, "samples count"]:
        return torch.tensor([text[-count:] for text in texts], device=device)

    while True:
        read = len(texts[0]) if len(texts[0]) <= context else max(1, context // 2)
        logits, state = model.start(newest(read), max_len=context - read)
        yield logits
        for _ in range(context - read):
            yield model.step(newest(1)[:, 0], state)
