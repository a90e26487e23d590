"""The scores of the task translation, and the measures that they make."""

from ablab.judge.metrics import measures_of
from ablab.tasks.registry import task_named

TRANSLATION = task_named("translation")
MEASURES = measures_of(TRANSLATION)
