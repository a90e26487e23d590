"""The typed configuration, and its composition from the words of a command line."""

from ablab.config.compose import Composed, compose, compose_arm
from ablab.config.schema import Config

__all__ = ["Composed", "Config", "compose", "compose_arm"]
