"""The container that a command runs in: what tells which one it is, for the recipe, and what does not.

An image that is named by its digest stands in the words. One that is a file is read, as an input is. A tag such as
`latest` may be another image tomorrow; that is said, and nothing is asked of a server.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

ENGINES = ("docker", "podman", "nerdctl")
OF_FILES = ("apptainer", "singularity")
"""Programs whose images may be files."""

RUNNING = ("run", "exec", "shell")
AROUND_US = ("APPTAINER_CONTAINER", "SINGULARITY_CONTAINER")
"""Variables by which a container tells the path of its image to what runs in it, and so to us."""

FLAGS = frozenset(
    {
        *("--rm", "--init", "--privileged", "--read-only", "--interactive", "--tty", "--detach", "--publish-all"),
        *("--no-healthcheck", "--oom-kill-disable", "--sig-proxy", "--quiet", "--replace", "--tls-verify"),
        *("--nv", "--nvccli", "--rocm", "--cleanenv", "--contain", "--containall", "--no-home", "--writable"),
        *("--writable-tmpfs", "--fakeroot", "--userns", "--no-privs", "--keep-privs", "--compat", "--no-init"),
        *("--no-eval", "--disable-cache", "--no-https", "--unsquash"),
    }
)
"""Options without a value."""

SHORT = {**dict.fromkeys(ENGINES, "itdPq"), **dict.fromkeys(OF_FILES, "eciCfupq")}
"""Options of one letter without a value, which may stand together."""

PINNED = re.compile(r"@sha256:[0-9a-f]{64}$")


def image_of(command: Sequence[str]) -> str | None:
    """Return the word of a command that names its image; None where it starts no container."""
    name = Path(command[0]).name
    if name not in SHORT:
        return None
    words = iter(command[1:])
    if not any(word in RUNNING for word in words):
        return None
    for word in words:
        if not word.startswith("-"):
            return word
        is_flag = word in FLAGS or re.fullmatch(f"-[{SHORT[name]}]+", word)
        if "=" not in word and not is_flag:
            next(words, None)  # its value
    return None


def image_files(
    command: Sequence[str], inputs: Sequence[str], environment: Mapping[str, str] = os.environ
) -> list[str]:
    """Return the files of images that decide what a command does, and are no inputs: its own, and the one around us."""
    own = image_of(command) if Path(command[0]).name in OF_FILES else None
    around = next((environment[name] for name in AROUND_US if environment.get(name)), None)
    named = [name for name in (own, around) if name is not None and Path(name).is_file()]
    declared = {os.path.realpath(name) for name in inputs}
    return list(dict.fromkeys(name for name in named if os.path.realpath(name) not in declared))


def unpinned(command: Sequence[str]) -> str | None:
    """Return the image of a command if its name may mean another image later; None if it may not."""
    image = image_of(command)
    return None if image is None or PINNED.search(image) or Path(image).exists() else image
