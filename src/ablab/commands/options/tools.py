"""The options of the verbs for your own parts, for checks of the program, and for the shell."""

from typing import Annotated, Literal

from pydantic import Field

from ablab.commands.options.base import Options
from ablab.fields import Count


class NewOptions(Options):
    """Start your own study: make a folder with a part and an experiment that run.

    The folder holds parts.py, conf/norm/softsign.yaml, experiments/softsign.yaml and tests/test_parts.py. The part is a
    norm that ablab does not have; replace it with your own part. docs/extending.md describes the kinds of parts.
    """

    usage = ("ablab new <folder>",)


class CheckOptions(Options):
    """Check that a part, yours or any other, keeps the laws of its kind.

    Builds a small model with the parts that the settings choose, which are those of ablab train. Runs it, and trains it
    twice for a few steps, once stopped and continued. Padding and future tokens must change nothing, evaluation must
    draw no random numbers, rate 0 must be the identity, all precisions must agree, and the continued run must end with
    equal weights.

      ablab check norm=dyt
      ablab check schedule=trapezoid training.max_steps=100
    """

    usage = ("ablab check group=option [key=value ...]",)

    format: Literal["text", "json"] = "text"
    """format of the output"""


class SelfcheckOptions(Options):
    """Kill a run again and again, and check that its results are the same, bit for bit.

    Trains a small model on the built-in corpus in a temporary folder: once undisturbed, and once killed (SIGKILL) at
    random moments and continued. Compares weights, record and translations bit for bit.
    """

    usage = ("ablab selfcheck resume [key=value ...]",)

    kills: Count = 5
    """number of times that the run is killed"""
    seed: Annotated[int, Field(ge=0)] = 1
    """seed of the random moments"""
    words: str = ""
    """more settings for the run, such as words='trainer.threads=4 norm=scalenorm'"""


class CompletionOptions(Options):
    """Let Tab complete verbs, options, fields and values, including those of your own parts.

    Prints a script for the shell. Add the line for your shell to the file that the shell reads when it starts:

      eval "$(ablab completion bash)"        ~/.bashrc
      eval "$(ablab completion zsh)"         ~/.zshrc, after compinit
      ablab completion fish | source         ~/.config/fish/config.fish
    """

    usage = ("ablab completion bash|zsh|fish",)
