"""Marks of means over the surviving runs of an arm: such a mean flatters it, so none is drawn without one."""


def survivors(shown: int, planned: int, diverged: int) -> str:
    """Return what a mean over `shown` runs leaves out, `3 of 5 runs: 2 diverged`; empty where no run diverged."""
    return f"{shown} of {planned} runs: {diverged} diverged" if diverged else ""


def marked(name: str, mark: str) -> str:
    """Return the name of an arm with its mark, `norm=post (3 of 5 runs: 2 diverged)`."""
    return f"{name} ({mark})" if mark else name
