"""Put a report among the results of the documentation: its text, its pictures, and the numbers behind them.

    python -m benchmarks.publish outputs/reports/low_resource      a new one, or a newer one
    python -m benchmarks.publish                                   all that are there, as reports are written now

Those whose rows are there, too, are judged again from them, by the code of today, unless their plan needs a text of
one's own. Sentences and artefacts stay behind: they would show the text of the corpora, no part of this project.
"""

import json
import math
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from ablab.config.grammar import spelled
from ablab.errors import UserError
from ablab.files import read_json, write_text
from ablab.judge.document import Document
from ablab.judge.flaws import checked
from ablab.judge.selection_of_study import of_study
from ablab.report.names import labels_of, named, pair_of
from ablab.report.pictures import drawn, write_pictures
from ablab.report.sentences import document_of
from ablab.report.text import markdown
from ablab.store.pack import unpack
from ablab.study.definition import define
from ablab.study.experiment import find, is_there, read
from benchmarks import claims, seeds

RESAMPLES = 10_000

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def of(folder: Path) -> Document:
    """Return a report without the text of its corpus, with the labels of its experiment and options today."""
    content = portable(read_json(folder / "report.json"))
    document = Document.model_validate(content | {"differing": [], "artefacts": []})
    given = read(find(folder.name)).labels if is_there(folder.name) else {}
    pairs = [list(pair_of(claim.arm, claim.baseline, given)) for claim in document.claims]
    claims = [one.model_copy(update={"pair": pair}) for one, pair in zip(document.claims, pairs, strict=True)]
    return document.model_copy(update={"claims": claims, "labels": labels_of(document, given)})


def publish(folder: Path) -> Path:
    """Write the folder of the results anew, but for what no report writes, such as the rows of its runs."""
    document, target = of(folder), RESULTS / folder.name
    labelled = named(document)
    with tempfile.TemporaryDirectory(dir=RESULTS) as place:
        made = Path(place)
        write_text(made / "report.md", markdown(labelled))
        write_text(made / "report.json", json.dumps(document.model_dump(), indent=1) + "\n")
        write_pictures(labelled, made)
        target.mkdir(exist_ok=True)
        for path in drawn(target):
            path.unlink()
        for path in (*made.glob("*.png"), *made.glob("report.*")):
            path.replace(target / path.name)
    return target


def judged(rows: Path, folder: Path) -> Path:
    """Judge the packed runs of a study again; return the folder of the report, below this one, or else as it was."""
    name = rows.parent.name
    unpack(rows, folder)
    try:
        study = define((f"experiment={name}", f"outputs={spelled('outputs', str(folder))}"))
    except UserError as error:  # the plan of a study on a text of one's own needs the text
        print(f"{name}: judged as it was published ({error})")
        return rows.parent
    selection = of_study(study)
    content = portable(document_of(checked(selection), RESAMPLES).model_dump())
    before = read_json(rows.parent / "report.json")
    # The time of the report, and what is made or left out on the way here.
    compared = content.keys() - {"made", "labels", "differing", "artefacts"}
    if all(alike(content[key], before.get(key)) for key in compared):
        content |= {key: before.get(key) for key in (*compared, "made")}
    selection.folder.mkdir(parents=True)
    write_text(selection.folder / "report.json", json.dumps(content))
    return selection.folder


def portable(content: dict[str, Any]) -> dict[str, Any]:
    """Return a report whose line of launch names the corpus beside a checkout, wherever it lay."""
    setup = content["setup"]
    if setup is None:
        return content
    typed = [re.sub(r"^(data\.path|data\.train)=/.*/", r"\1=../", word) for word in setup["typed"]]
    return {**content, "setup": {**setup, "typed": typed}}


def alike(one: Any, other: Any) -> bool:
    """Return whether two contents of JSON say the same, but for the last digits: processors sum in other orders."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-12)
    return bool(one == other)


def every() -> dict[str, Document]:
    """Return the reports that were published, by their names."""
    return {path.parent.name: of(path.parent) for path in sorted(RESULTS.glob("*/report.json"))}


def main() -> None:
    """Publish the reports named, or else all that were published before."""
    # Reports of the first schema have no curves, of which the pictures are kept.
    there = [path.parent for path in sorted(RESULTS.glob("*/report.json")) if of(path.parent).series]
    for folder in [Path(name) for name in sys.argv[1:]] or there:
        with tempfile.TemporaryDirectory() as store:
            rows = folder / "rows.zip"
            made = judged(rows, Path(store)) if rows.exists() else folder
            print(f"Results: {publish(made) / 'report.md'}")
    for write in (claims.write, seeds.write):
        print(f"Results: {write(every())}")


if __name__ == "__main__":
    main()
