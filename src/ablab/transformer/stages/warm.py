"""Make code digests quick once this is imported: a server of processes imports it for all runs that it begins."""

from ablab.code.code import GROUPS, OF_TASKS, code
from ablab.code.folders import shipped_targets

PARTS = [{group: {"kind": kind}} for group in GROUPS["training"] for kind in shipped_targets(group)]

for stage in ("training", "evaluation"):
    for recipe in [*PARTS, *({"task": {"kind": kind}} for kind in OF_TASKS)]:
        code(stage, recipe)
