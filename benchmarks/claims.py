"""Write docs/results/claims.md: what papers claim, and what the published reports show of it, by paper."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from ablab.files import write_text
from ablab.judge.document import Document
from ablab.judge.lines import ClaimLine, interval_text
from ablab.report.names import named
from ablab.report.plain_words import plain_words
from ablab.report.text import escaped
from ablab.text import counted, how_many, signed

ROOT = Path(__file__).parents[1]

PAPERS = {
    "Nguyen and Salazar 2019": "Transformers without Tears: Improving the Normalization of Self-Attention",
    "Fan et al. 2020": "Reducing Transformer Depth on Demand with Structured Dropout",
    "Zhou et al. 2020": "Scheduled DropHead: A Regularization Method for Transformer Models",
    "Henry et al. 2020": "Query-Key Normalization for Transformers",
    "Zhang and Sennrich 2019": "Root Mean Square Layer Normalization",
    "Zhu et al. 2025": "Transformers without Normalization",
    "Vaswani et al. 2017": "Attention Is All You Need",
    "Su et al. 2021": "RoFormer: Enhanced Transformer with Rotary Position Embedding",
    "Haviv et al. 2022": "Transformer Language Models without Positional Encodings Still Learn Positional Information",
    "Liu et al. 2025": "Muon is Scalable for LLM Training",
}
"""By how the experiments cite them."""

HEAD = """# What do the papers claim, and what do our runs show?

Each claim that an experiment here takes from a paper, beside what was published. All runs are small: a claim that
they do not support may hold at the size of its paper. So most studies end with a line that runs them in full on a GPU,
which nobody has done here. Verdicts are at an error rate of 5 % for the primary claims of a study, and of 5 % for
the secondary ones. *To settle it* says with how many seeds a new study would decide the claim with 80 % power: a claim
that two arms are alike if nothing differs, any other if the difference is as large as the margin. This page is made
of the reports by `make results`.
"""


def page(reports: dict[str, Document]) -> str:
    """Return the page of these reports, by their names."""
    lines = HEAD.splitlines()
    for cited, title in PAPERS.items():
        found = {name: claims for name, one in reports.items() if (claims := _claims(named(one), cited))}
        if found:
            lines += ["", f"## {cited}: *{title}*"]
        for name, claims in found.items():
            lines += ["", *_study(name, named(reports[name]), claims)]
    return "\n".join(lines) + "\n"


def _claims(document: Document, paper: str) -> list[ClaimLine]:
    """Return the claims that are from a paper: the one their source names, or else the first that the study's does."""
    found, before = [], ""
    for claim in document.claims:
        own = _cited(claim.source) or (before if "the same paper" in (claim.source or "") else "")
        before = own or _cited(document.source)
        found += [claim] if before == paper else []
    return found


def _cited(source: str | None) -> str:
    """Return the paper that a source names first; empty where it names none of them."""
    text = source or ""
    return min((paper for paper in PAPERS if paper in text), key=text.index, default="")


def _study(name: str, document: Document, claims: Sequence[ClaimLine]) -> Iterator[str]:
    yield from (f"### [{escaped(document.question)}]({name}/report.md)", "", f"{_size(document)}.", "")
    yield from (_line(claim, document) for claim in claims)
    if said := _worth(document, {side for claim in claims for side in (claim.arm, claim.baseline)}):
        yield from ("", said)
    if (line := full_form(name)) is not None:
        yield from ("", "In full, on a GPU:", "", "```", line, "```")


def _line(claim: ClaimLine, document: Document) -> str:
    figures = [] if claim.difference is None else [f"{signed(claim.difference, claim.digits)} {claim.unit}".rstrip()]
    if claim.interval is not None:
        figures.append(f"{100 * claim.interval.level:.4g} % interval {interval_text(claim.interval, claim.digits)}")
    said = [escaped(each) for each in (claim.published, claim.source) if each]
    told = f"*Published:* {said[0]} ({said[1]})" if len(said) == 2 else f"*Source:* {said[0]}" if said else ""
    parts = [f"**{escaped(plain_words(claim, document.metric))}** {claim.outcome.capitalize()}"]
    parts[0] += f": {', '.join([*figures, how_many(claim.n, 'seed')])}."
    parts += [told if told.endswith("?") else f"{told}."] if told else []
    parts += [f"*To settle it:* {escaped(settling)}."] if (settling := _settling(claim)) else []
    return f"- {' '.join(' '.join(parts).split())}"


def _settling(claim: ClaimLine) -> str:
    """Return what would decide an open claim; empty where it is decided."""
    if claim.outcome not in ("inconclusive", "not testable", "provisional"):
        return ""
    if claim.advice is None:
        return claim.reason or ""
    if claim.advice.seeds is None:
        return "more seeds than anyone trains"
    given = "if nothing differs" if claim.expect in ("equal", "not_worse") else f"if it is {claim.margin:g}"
    return f"{claim.advice.seeds:,} seeds of each, {given}"


def _size(document: Document) -> str:
    setup = document.setup
    if setup is None:
        return f"{len(document.arms)} arms, seeds {counted(document.seeds)}"
    fewest, most = setup.parameters
    parameters = f"{most / 1e6:.1f}" if fewest / most > 0.95 else f"{fewest / 1e6:.1f} to {most / 1e6:.1f}"
    steps = setup.settings.get("training.max_steps")
    corpora = dict.fromkeys(
        f"{one.train_pairs:,} " + (one.kind if one.kind == "documents" else f"{document.nouns.trained} of {one.kind}")
        for one in setup.corpora
        if one.train_pairs
    )
    length = f", {steps:,} steps" if isinstance(steps, int) else ""
    tuned = f", and {setup.tuning_runs} to tune them" if setup.tuning_runs else ""
    return f"{setup.runs} runs{tuned}: {parameters} million parameters{length}, {', '.join(corpora)}"


def _worth(document: Document, sides: Collection[str]) -> str:
    """Return what these arms are worth in compute, by the bound that their curves give; empty without any."""
    known = (line for line in document.worth if line.at_least is not None and line.arm in sides)
    said = [f"{line.arm} at least {line.at_least:.2f}" for line in known]
    return f"Worth, in times the baseline's steps, by unfinished curves: {'; '.join(said)}." if said else ""


def full_form(name: str) -> str | None:
    """Return the line that runs an experiment in full on a GPU, as its file says it; None where it does not."""
    path = ROOT / "experiments" / f"{name}.yaml"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    found = re.match(r"(?:# .*\n)*?# Full form, on a GPU: ((?:.*\n# )*?[^\n]*(?:\n# [a-z_.]+=[^\n]*)*)", text)
    words = None if found is None else " ".join(found[1].replace("\n# ", " ").split())
    return None if words is None else f"ablab train -m experiment={name} {words}"


def write(reports: dict[str, Document]) -> Path:
    """Write the page, and return its path."""
    path = ROOT / "docs" / "results" / "claims.md"
    write_text(path, page(reports))
    return path
