"""Faults of parts from outside: what they are handed, what is their code, and who may name them."""

from benchmarks.mutants.fault import Fault

SIGNATURE = ("parts/test_signature.py",)
OUTSIDE = ("parts/test_outside.py",)

OWN = [
    Fault(
        "own part: the digest is of its own file alone",
        "code/definitions.py",
        "            waiting += found[key].uses\n",
        "            pass\n",
        SIGNATURE,
    ),
    Fault(
        "own part: other code than that it was trained with is taken",
        "config/kinds.py",
        "    if recorded is not None and recorded != part.code:\n",
        "    if recorded is None:\n",
        OUTSIDE,
    ),
    Fault(
        "own part: its code is no part of the recipe",
        "config/kinds.py",
        '        filled["code"] = _checked_code(group, str(values["kind"]), values.get("code"))\n',
        '        filled["code"] = "0" * 12\n',
        OUTSIDE,
    ),
    Fault(
        "own part: a record is enough to name it",
        "config/kinds.py",
        "if kind not in kinds(group):",
        'if kind not in kinds(group) and "." not in str(kind):',
        OUTSIDE,
    ),
    Fault(
        "own part: the range of a field is not checked",
        "code/signature.py",
        "return _evaluated(parameter.annotation, parameter.owner)",
        "return Any",
        (*SIGNATURE, *OUTSIDE),
    ),
    Fault(
        "own part: a star import goes unnoticed",
        "code/find.py",
        '            if part.package.holds(target) or (not is_free and may_hide(target.removesuffix(".*"))):\n',
        "            if False:\n",
        SIGNATURE,
    ),
    Fault(
        "own part: the current folder goes before that of its options",
        "code/folders.py",
        "return tuple(dict.fromkeys((*(conf.parent for conf in confs), Path(here).resolve())))",
        "return tuple(dict.fromkeys((Path(here).resolve(), *(conf.parent for conf in confs))))",
        OUTSIDE,
    ),
    Fault(
        "own part: what it needs of others is not asked for",
        "config/compose.py",
        "chain(config.violations(), unmet_needs(config))",
        "config.violations()",
        OUTSIDE,
    ),
    Fault(
        "own metric: of two with one name the last folder's is taken",
        "tasks/own_metrics.py",
        "for conf in reversed(user_confs())",
        "for conf in user_confs()",
        ("parts/test_own_metrics.py",),
    ),
    Fault(
        "contract: a law is broken only by its own error",
        "transformer/translation/verbs/check.py",
        "        return failure_of(error, outside_parts(config).values())\n",
        "        return None\n",
        ("contracts/test_check.py",),
    ),
]
