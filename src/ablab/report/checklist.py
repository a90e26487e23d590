"""Answers to the checklists of ACL Rolling Review and NeurIPS, from the records; what they do not hold is to be
filled in.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from importlib.resources import files
from typing import Any

from ablab.judge.document import CorpusLine, Document, Setup
from ablab.report.text import escaped
from ablab.store.records import SharedSentences
from ablab.tasks.task import Nouns
from ablab.text import duration, how_many

FILL = "*fill in:*"
ABOUT = (
    "Written from the records of the runs. Copy what you use into the paper: reviewers read the section that an "
    f"answer names. {FILL} marks what no record holds. Compare letters and numbers with the form of your venue."
)

UNKNOWN = f"{FILL} the figures of this report do not come from runs of a store, so nothing is known of this."


OF_DATA = (
    f"{FILL} who made them, their licences (no record holds one), domains, and how personal data and offensive content "
    "were dealt with."
)


OF_OVERLAP = (
    "They are compared without spaces, Unicode form and characters that nobody sees; more nearly: without case and "
    "punctuation, too."
)


def checklist(document: Document) -> str:
    """Return in Markdown what the records say, and the items of both checklists, which refer to it."""
    lines = [f"# Checklists for {escaped(document.name)}", "", ABOUT, ""]
    lines += [line for note in document.notes for line in (f"> {escaped(note)}", "")]
    lines += ["## What the records say", ""]
    lines += [f"- **{topic}.** {text}" for topic, text in facts(document)]
    items = (files("ablab.report") / "checklists.md").read_text(encoding="utf-8")
    return "\n".join([*lines, "", items])


def facts(document: Document) -> Iterator[tuple[str, str]]:
    """Yield what the records say, by topic."""
    made = document.setup
    runs = sum(arm.planned for arm in document.arms)
    ended = sum(arm.finished + arm.diverged for arm in document.arms)
    diverged = sum(arm.diverged for arm in document.arms)
    yield (
        "Runs",
        f"{how_many(len(document.arms), 'arm')}, {how_many(len(document.seeds), 'seed')} "
        f"({', '.join(map(str, document.seeds))}): {ended} of {runs} planned runs ended, "
        f"{diverged} of them by diverging. Each is listed in report.html.",
    )
    yield "Parameters", UNKNOWN if made is None else _parameters(made)
    yield "Compute", UNKNOWN if made is None else _compute(made, document.nouns)
    yield "Machines", UNKNOWN if made is None else "; ".join(map(escaped, made.machines)) + "."
    corpus, overlap = (partial(each, nouns=document.nouns) for each in (_corpus, _overlap))
    if made is None:
        data = shared = UNKNOWN
    elif _is_of_a_program(made):
        data, shared = f"{FILL} what the program read; no record holds it.", f"{FILL} what its splits share."
    else:
        data = f"{' '.join(map(corpus, made.corpora))} {OF_DATA}"
        shared = " ".join([*map(overlap, made.corpora), OF_OVERLAP])
    yield "Data", data
    yield "Overlap", shared
    yield "Settings", UNKNOWN if made is None else _settings(made)
    yield "Search", UNKNOWN if made is None else _search(made)
    yield "Selection", _selection(document)
    yield "Error bars", " ".join(map(escaped, document.methods))
    yield "Software", UNKNOWN if made is None else _software(made)
    yield "Scores", _scores(document)
    yield "Custody", "; ".join(map(escaped, document.custody)) or "The store has no register."


def _is_of_a_program(made: Setup) -> bool:
    """Return whether ablab only ran what was trained: it chose no weights, and knows nothing of the training."""
    return "training.select" not in {**made.settings, **made.varied}


def _parameters(made: Setup) -> str:
    low, high = made.parameters
    if not high:
        return f"{FILL} sizes of the models; no record holds them."
    return f"{low:,} in every model." if low == high else f"{low:,} to {high:,}, by arm (report.html, table of arms)."


def _compute(made: Setup, nouns: Nouns) -> str:
    if _is_of_a_program(made):
        spent = f"{duration(made.training_seconds)} of the program over {how_many(made.runs, 'run')}"
    else:
        spent = (
            f"{made.training_seconds / 3600:,.1f} device hours of training with validation over "
            f"{how_many(made.runs, 'run')}, "
            f"{made.tokens:,} {nouns.tokens}, and {duration(made.evaluation_seconds)} of evaluation"
        )
    return (
        f"{spent}; at most {made.peak_memory_bytes / 2**30:.1f} GiB of memory. {FILL} compute of trials, failed "
        "attempts and experiments that are not in this report."
    )


def _corpus(line: CorpusLine, nouns: Nouns) -> str:
    sizes = [
        f"{number:,} {what}"
        for number, what in (
            (line.train_pairs, f"training {nouns.trained}"),
            (line.train_tokens, nouns.tokens),
            (line.valid_pairs, f"validation {nouns.trained}"),
            (line.test_sentences, f"{nouns.items} in {line.test}"),
        )
        if number is not None
    ]
    digest = "" if line.digest is None else f"; digest `{line.digest}`"
    return f"{_name(line)}: {', '.join(sizes)}{digest}."


def _name(line: CorpusLine) -> str:
    return ", ".join(filter(None, (escaped(line.kind), line.languages)))


def _overlap(line: CorpusLine, nouns: Nouns) -> str:
    known = {splits: "unknown" if shared is None else _shared(shared, nouns) for splits, shared in line.overlap.items()}
    return f"{_name(line)}: {'; '.join(map(' '.join, known.items())) or 'unknown'}."


def _shared(shared: SharedSentences, nouns: Nouns) -> str:
    nearly = shared.near - shared.sources
    if nouns.trained == nouns.items:  # nothing has two sides
        return f"{shared.sources:,} of {shared.of:,} {nouns.items} ({nearly:,} more nearly)"
    return f"{shared.sources:,} of {shared.of:,} sources ({shared.pairs:,} with the target; {nearly:,} more nearly)"


def _settings(made: Setup) -> str:
    return f"Shared by all arms: {_listed(made.settings)}. Varied: {_listed(made.varied)}."


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"`{key}={value}`" for key, value in values.items() if value is not None) or "nothing"


def _search(made: Setup) -> str:
    if not made.searched and made.unfixed is not None:
        return (
            f"{FILL} how the settings were chosen, with bounds and trials of any search: nothing shows that they were "
            f"fixed before the runs, since {escaped(made.unfixed)}."
        )
    if not made.searched:
        return (
            "The study searched no settings: all values were registered before its runs. "
            f"{FILL} bounds and trials of any search before that."
        )
    return " ".join(map(escaped, made.searched))


def _selection(document: Document) -> str:
    made = document.setup
    if made is None:
        return UNKNOWN
    settings = made.settings
    if _is_of_a_program(made):
        return f"{FILL} how the program chose its weights, and how often it met the test set; no record holds it."
    chosen = f"`training.select={settings['training.select']}`" if "training.select" in settings else "as varied above"
    return f"Weights by validation ({chosen}), never by the test set, which each model met once per evaluation."


def _software(made: Setup) -> str:
    versions = {"python": made.python, **made.versions}
    said = ", ".join(f"{name} {' and '.join(found)}" for name, found in versions.items() if found)
    if said and _is_of_a_program(made):
        return f"ablab ran beside {said}. {FILL} what the program itself used."
    return f"{said}." if said else f"{FILL} versions; the records hold none."


def _scores(document: Document) -> str:
    signatures = [f"{name}: `{signature}`" for name, signature in document.signatures.items()]
    return "; ".join(signatures) + "." if signatures else f"{FILL} how scores were computed."
