"""The options of the verbs of language models."""

from typing import Annotated, Literal

from pydantic import Field

from ablab.fields import Count, NonNegative, ReadIf, Share
from ablab.tasks.verbs import Options


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
    temperature: NonNegative = 1.0
    """divides the logits: below 1 likely tokens become likelier; 0 takes the likeliest"""
    top_p: Annotated[Share, ReadIf(("temperature",), lambda temperature: temperature > 0, "temperature above 0")] = 1.0
    """draws from the likeliest tokens whose probabilities add up to this (nucleus sampling)"""
    seed: Annotated[
        int, Field(ge=0), ReadIf(("temperature",), lambda temperature: temperature > 0, "temperature above 0")
    ] = 1
    """seed of the draws"""
    samples: Annotated[Count, ReadIf(("temperature",), lambda temperature: temperature > 0, "temperature above 0")] = 1
    """number of continuations, each with draws of its own"""
    max_tokens: Count = 200
    """most tokens of a continuation"""
    device: Literal["cpu", "gpu"] = "cpu"
    """device that computes"""
    format: Literal["text", "json"] = "text"
    """format of the output"""
    outputs: str = "outputs"
    """folder of all runs and studies"""
