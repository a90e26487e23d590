"""The reference page of a run's files: the table of the guide, so that it is written once."""

import re


def files_page(guide: str) -> str:
    """Return the page, with links as they are from inside docs/reference/."""
    found = re.search(r"^## What a run leaves\n(.*?)^\|(.*?)\n\n", guide, re.MULTILINE | re.DOTALL)
    if found is None:
        raise ValueError("docs/guide.md: no table under 'What a run leaves', of which this page is made")
    table = re.sub(r"\]\((?!https?:)(#?)", lambda link: "](../guide.md#" if link[1] else "](../", f"|{found[2]}")
    more = "[More on runs](../guide.md#what-a-run-leaves), and [on studies](../studies.md#what-happens-to-runs)."
    return f"# Files of a run\n{found[1]}{table}\n\n{more}\n"
