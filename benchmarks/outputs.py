"""Write docs/outputs.schema.json, the schemas of what verbs print as JSON: `python -m benchmarks.outputs`."""

import json
from pathlib import Path

from ablab.commands.outputs import schemas

PLACE = Path(__file__).parents[1] / "docs" / "outputs.schema.json"


def text() -> str:
    """Return the content of the file."""
    return json.dumps(schemas(), indent=1) + "\n"


if __name__ == "__main__":
    PLACE.write_text(text(), encoding="utf-8")
