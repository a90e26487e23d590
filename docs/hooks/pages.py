"""Pages that the site makes from other files: its front page from README.md, the reference from the code."""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

from benchmarks.reference import settings_page, verbs_page

ROOT = Path(__file__).resolve().parents[2]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages."""
    made = {
        "index.md": front_page((ROOT / "README.md").read_text(encoding="utf-8")),
        "reference/verbs.md": verbs_page(),
        "reference/settings.md": settings_page(),
    }
    for place, content in made.items():
        files.append(File.generated(config, place, content=content))
    return files


def front_page(readme: str) -> str:
    """Return README.md with its links as they are from inside docs/."""
    return re.sub(r"\]\(docs/", "](", readme)
