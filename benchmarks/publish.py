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
from ablab.report.names import labels_of, named
from ablab.report.pictures import drawn, write_pictures
from ablab.report.text import markdown
from benchmarks import claims

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def of(folder: Path) -> Document:
    """Return a report without the text of its corpus; one from before arms had labels gets those of their options."""
    document = Document.model_validate(read_json(folder / "report.json") | {"differing": [], "artefacts": []})
    return document if document.labels else document.model_copy(update={"labels": labels_of(document, {})})


def publish(folder: Path) -> Path:
    """Write the folder of the results anew, but for what no report writes, such as the rows of its runs."""
    document, target = of(folder), RESULTS / folder.name
    read = named(document)
    with tempfile.TemporaryDirectory(dir=RESULTS) as place:
        made = Path(place)
        write_text(made / "report.md", markdown(read))
        write_text(made / "report.json", json.dumps(document.model_dump(), indent=1) + "\n")
        write_pictures(read, made)
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
