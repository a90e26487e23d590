"""The typed configuration, and the way from what a user types to it."""

from ablab.config.compose import Composed, compose, compose_arm
from ablab.config.schema import Config

__all__ = ["Composed", "Config", "compose", "compose_arm"]
