"""The options of the verbs for parts of one's own, for checks of the program, and for the shell."""

from typing import Annotated, Literal

from pydantic import Field

from ablab.commands.options.base import Options
from ablab.fields import Count


class NewOptions(Options):
    """Begin a study of your own: a folder with a part and an experiment that run.

    The folder holds parts.py, conf/norm/softsign.yaml, experiments/softsign.yaml and
    tests/test_parts.py: a norm that ablab does not have, to be replaced by yours.
    docs/extending.md tells what parts there can be.
    """

    usage = ("ablab new <folder>",)


class CheckOptions(Options):
    """Check that a part keeps the laws of its kind: one of your own, or any other.

    Builds a small model with the parts that the words of a train line choose, runs it, and trains it twice for a few
    steps, once stopped and continued. Padding and the future must change nothing, evaluation must draw nothing, rate 0
    must be the identity, every precision must agree, and the continued run must end with equal weights.

      ablab check norm=dyt
      ablab check schedule=trapezoid training.max_steps=100
    """

    usage = ("ablab check group=option [key=value ...]",)

    format: Literal["text", "json"] = "text"
    """format of the output"""


class SelfcheckOptions(Options):
    """Kill a run again and again, and check that it ends bit for bit the same.

    Trains a small model on the built-in corpus, once undisturbed and once killed (SIGKILL) at random moments and
    continued, in a temporary folder, and compares weights, record and translations bit for bit.
    """

    usage = ("ablab selfcheck resume [key=value ...]",)

    kills: Count = 5
    """times that the run is killed"""
    seed: Annotated[int, Field(ge=0)] = 1
    """seed of the random moments"""
    words: str = ""
    """more words for the run, such as words='trainer.threads=4 norm=scalenorm'"""


class CompletionOptions(Options):
    """Let Tab complete verbs, options, fields and values, those of your own parts too.

    Prints a script for the shell. In the file that the shell reads when it starts:

      eval "$(ablab completion bash)"        ~/.bashrc
      eval "$(ablab completion zsh)"         ~/.zshrc, after compinit
      ablab completion fish | source         ~/.config/fish/config.fish
    """

    usage = ("ablab completion bash|zsh|fish",)
