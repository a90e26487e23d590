"""Make composing quick once this is imported: a server of processes imports it for all runs that it begins."""

from ablab.code.find import find_part
from ablab.code.folders import shipped_targets
from ablab.config import values as values
from ablab.config.schema import part_groups

for group in part_groups():
    for target in shipped_targets(group).values():
        find_part(target)
