"""Functions replaced by their dotted names: what a line would do once it is accepted must not be done 10,000 times."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from unittest.mock import patch


@contextmanager
def patched(instead: Mapping[str, object]) -> Iterator[None]:
    with ExitStack() as stack:
        for name, replacement in instead.items():
            stack.enter_context(patch(name, replacement))
        yield
