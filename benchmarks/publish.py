"""Put a report among the results of the documentation: its text, its pictures, and the numbers behind them.

    python -m benchmarks.publish outputs/reports/low_resource      a new one, or a newer one
    python -m benchmarks.publish docs/results/norms_today          an old one, as reports are written now

Sentences and artefacts stay behind: they would show the text of the corpora, which are not part of this project.
"""

import json
import shutil
import sys
import tempfile
from pathlib import Path

from ablab.files import read_json, write_text
from ablab.judge.document import Document
from ablab.report.pictures import write_pictures
from ablab.report.text import markdown

RESULTS = Path(__file__).parents[1] / "docs" / "results"


def main() -> None:
    """Write the folder of the report anew."""
    folder = Path(sys.argv[1])
    content = read_json(folder / "report.json") | {"differing": [], "artefacts": []}
    document = Document.model_validate(content)
    target = RESULTS / folder.name
    with tempfile.TemporaryDirectory(dir=RESULTS) as place:
        made = Path(place) / folder.name
        made.mkdir()
        write_text(made / "report.md", markdown(document))
        write_text(made / "report.json", json.dumps(document.model_dump(), indent=1) + "\n")
        write_pictures(document, made)
        for path in made.glob("*.pdf"):
            path.unlink()
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)
    print(f"Results: {target / 'report.md'}")


if __name__ == "__main__":
    main()
