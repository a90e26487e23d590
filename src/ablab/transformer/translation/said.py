"""What the console says of a translation run that has ended."""

from collections.abc import Iterator, Sequence

from ablab.store.records import Evaluation, Record
from ablab.text import duration, how_many
from ablab.transformer.data.corpus import EXTRA_TOKENS
from ablab.transformer.stages.task import share_of_limit


def rows_of(record: Record, evaluation: Evaluation | None) -> Iterator[tuple[str, str]]:
    """Yield a name and a value for each line."""
    if evaluation is not None:
        scores, signatures = evaluation.scores, evaluation.signatures
        yield "test", f"{evaluation.test_name}, {how_many(evaluation.sentences, 'sentence')}, {_search(evaluation)}"
        yield "BLEU", f"{scores['bleu']:.2f}   {signatures['bleu']}"
        yield "chrF", f"{scores['chrf']:.2f}   {signatures['chrf']}"
        if "loss" in scores:
            yield "test loss", f"{scores['loss']:.3f} nats per token"
    if record.selected is not None:
        chosen, steps = record.selected.scores, record.selected.steps
        yield (
            "validation",
            f"loss {chosen['loss']:.3f}, perplexity {chosen['perplexity']:.2f}, BLEU {chosen['bleu']:.2f} "
            f"({_how_selected(steps)})",
        )
    if cut := list(_cut(record, evaluation)):
        yield "cut off", "; ".join(cut)
    yield from _costs(record)


def _costs(record: Record) -> Iterator[tuple[str, str]]:
    cost = record.cost
    yield "parameters", f"{cost.parameters:,}"
    yield (
        "training",
        f"{cost.steps:,} steps, {cost.epochs:.1f} epochs in {duration(cost.seconds)}, "
        f"{cost.tokens_per_second:,.0f} target tokens/s{share_of_limit(record)}",
    )
    dropped = {kind: number for kind in DROPPED if (number := record.data["train"].get(f"dropped_{kind}"))}
    if dropped:
        said = ", ".join(f"{number:,} {DROPPED[kind]}" for kind, number in dropped.items())
        yield "dropped", f"training pairs: {said}"


DROPPED = {"empty": "empty", "overlong": "overlong", "overlap": "with a held-out source, or nearly"}
"""Training pairs that a manifest counts as left out, in words."""


def _cut(record: Record, evaluation: Evaluation | None) -> Iterator[str]:
    """Yield how many translations reached the length limit, and the setting that raises it, where there are some."""
    if evaluation is not None and evaluation.at_limit:
        extra = evaluation.settings["decoding"]["max_extra_tokens"]
        yield (
            f"{evaluation.at_limit:,} of {evaluation.sentences:,} test translations reached the limit, {extra} tokens "
            f"beyond the source; decoding.max_extra_tokens={2 * extra or EXTRA_TOKENS} raises it"
        )
    if record.selected is not None and record.selected.at_limit:
        yield (
            f"{record.selected.at_limit:,} validation translations reached the limit; training.max_extra_tokens "
            "raises theirs"
        )


def _search(evaluation: Evaluation) -> str:
    beam = evaluation.settings["decoding"]["beam_size"]
    speed = f"{evaluation.sentences_per_second:,.0f} sentences/s"
    engine = f", {evaluation.signatures['engine']}" if "engine" in evaluation.signatures else ""
    return f"{'greedy' if beam == 1 else f'beam {beam}'}{engine}, {speed}"


def _how_selected(steps: Sequence[int]) -> str:
    if len(steps) == 1:
        return f"step {steps[0]}"
    return f"mean of steps {', '.join(str(step) for step in steps)}"
