"""What a report calls the arms: one name each, the same in sentences, tables, legends and pictures."""

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from ablab.config.labels import LEVEL, NONE, levels_in, listed, of_levels, parts
from ablab.judge.document import Document
from ablab.study.study import label_of, names_of
from ablab.study.tuning import TUNED

AS_THEY_ARE = frozenset({"setup", "labels", "runs", "source", "reference", "arm_text", "baseline_text", "pair"})
"""Keys below which no name of an arm is meant: what was typed, runs, and texts of the test set."""

OF_ARMS = frozenset({"arm", "baseline", "arm_marked", "baseline_marked", "what"})
"""Keys of names of arms. Elsewhere a word that some arm is called, such as `equal` or `accuracy`, is just that word."""


def named(document: Document) -> Document:
    """Return the report as people read it: with the label of each arm where its name in the study stood.

    Names that are lists of levels are replaced in sentences too; any other only where nothing else stands.
    """
    labels = document.labels
    if not labels:
        return document
    within = sorted((re.escape(name) for name in labels if "=" in name), key=len, reverse=True)
    found = re.compile(rf"(?<![\w=.,+]){'(?:' + '|'.join(within) + ')'}(?![\w=]|[,.]\w)") if within else None

    def said(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            inner = {each: "arm" if (key, each) == ("arms", "name") else each for each in value}
            return {each: one if each in AS_THEY_ARE else said(one, inner[each]) for each, one in value.items()}
        if isinstance(value, list):
            return [said(each, key) for each in value]
        if not isinstance(value, str):
            return value
        whole = labels.get(value) if key in OF_ARMS else None
        return whole or (found.sub(lambda name: labels[name[0]], value) if found else value)

    return Document.model_validate(said(document.model_dump()))


def labels_of(document: Document, given: Mapping[str, str]) -> dict[str, str]:
    """Return what people call each arm and each side of a claim, where that is not its name.

    `given`: the labels of the experiment, by level or arm. Two that would be called alike keep their names, unless both
    are of the same levels, as an arm and the side of an interaction are.
    """
    sides = (side for claim in document.claims for side in (claim.arm, claim.baseline))
    rows = [*(arm.name for arm in document.arms), *(line.arm for line in document.tuning), *sides]
    among = [level for row in rows for level in re.findall(LEVEL, row)]
    effects = dict.fromkeys(level for line in document.effects for level in re.findall(LEVEL, line.what))
    found = {name: label_of(name, given) for row in rows for name in (row, *names_of(row))}
    alone = [name for name in found if levels_in(name) == [name]]
    found |= {level: of_levels([level], given, among) for level in (*alone, *effects)}
    meant = {(said, frozenset(re.findall(LEVEL, name)) or name) for name, said in found.items()}
    times = Counter(said for said, _ in meant)
    return {name: said for name, said in found.items() if said != name and times[said] == 1}


def pair_of(arm: str, baseline: str, given: Mapping[str, str] = NONE) -> tuple[str, str, str]:
    """Return the names of two arms, and what they have in common, such as `both with LayerDrop 0.1`, or nothing.

    An arm that tuning left as it is has two names, and stands for both.
    """
    sides = [names_of(name) for name in (arm, baseline)]
    tuned = [names[-1].endswith(TUNED) for names in sides]
    if all(tuned):
        first, second, both = pair_of(sides[0][-1].removesuffix(TUNED), sides[1][-1].removesuffix(TUNED), given)
        how = "tuned" if any(len(names) == 1 for names in sides) else "at their usual settings, which tuning kept"
        return first, second, f"{both} and {how}" if both else f"both {how}"
    if any(is_tuned and len(names) > 1 for is_tuned, names in zip(tuned, sides, strict=True)):
        return pair_of(sides[0][0], sides[1][0], given)
    ours, theirs = levels_in(arm), levels_in(baseline)
    common = [level for level in ours if level in theirs]
    own, other = ([level for level in levels if level not in common] for levels in (ours, theirs))
    each, _, over = arm.partition(", mean over ")
    if over or arm in given or baseline in given or not common or not own or not other:
        return label_of(each, given), label_of(baseline, given), over and f"on average over {over}"
    kinds = zip(("with", "without"), parts(common, given, ours), ("and", "or"), strict=True)
    shared = [f"{word} {listed(them, last)}" for word, them, last in kinds if them]
    return of_levels(own, given, ours), of_levels(other, given, theirs), f"both {' '.join(shared)}"
