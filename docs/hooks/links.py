"""Links of the documentation site: a link to a file outside docs/ has no page there, and becomes plain text."""

import posixpath
import re
from typing import Any

LINK = re.compile(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])+)\]\(((?!https?:|mailto:|#)[^)\s]+)\)")
MERMAID = re.compile(r"```mermaid\n.*?```", re.DOTALL)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace links to files that the site does not have, and the graph that needs a script from elsewhere."""
    here = posixpath.dirname(page.file.src_uri)
    known = set(files.src_uris)

    def answered(link: re.Match[str]) -> str:
        text, target = link.groups()
        place = posixpath.normpath(posixpath.join(here, target.partition("#")[0]))
        return link.group(0) if place in known else text

    return MERMAID.sub("*The graph is drawn in the file itself: docs/architecture.md.*", LINK.sub(answered, markdown))
