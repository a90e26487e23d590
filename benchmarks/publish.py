"""Put a report among the results of the documentation: its text, its pictures, and the numbers behind them.

    python -m benchmarks.publish outputs/reports/low_resource      a new one, or a newer one
    python -m benchmarks.publish                                   all that are there, as reports are written now

Sentences and artefacts stay behind: they would show the text of the corpora, which are not part of this project.
"""

import json
import sys
import tempfile
from pathlib import Path

from ablab.files import read_json, write_text
from ablab.judge.document import Document
from ablab.report.names import labels_of, named, pair_of
from ablab.report.pictures import drawn, write_pictures
from ablab.report.text import markdown
from ablab.study.experiment import find, is_there, read
from benchmarks import claims

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def of(folder: Path) -> Document:
    """Return a report without the text of its corpus, with the labels of its experiment and options today."""
    document = Document.model_validate(read_json(folder / "report.json") | {"differing": [], "artefacts": []})
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


def every() -> dict[str, Document]:
    """Return the reports that were published, by their names."""
    return {path.parent.name: of(path.parent) for path in sorted(RESULTS.glob("*/report.json"))}


def main() -> None:
    """Publish the reports named, or else all that were published before."""
    # Reports of the first schema have no curves, of which the pictures are kept.
    there = (path.parent for path in sorted(RESULTS.glob("*/report.json")) if of(path.parent).series)
    for folder in [Path(name) for name in sys.argv[1:]] or there:
        print(f"Results: {publish(folder) / 'report.md'}")
    print(f"Results: {claims.write(every())}")


if __name__ == "__main__":
    main()
