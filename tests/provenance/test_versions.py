"""The digest is the same on every Python, though their syntax trees differ."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import ablab
from ablab.code.code import code

SNIPPETS = r'''
import contextlib, math

def texts(x, width=3, kind=""):
    """Doc."""
    plain = "a" "b" f"{x}" f"c{x!r:>{width}}d" "e" f"{{}}" f"{x=}" f"{x:{width}.{width}f}" f"" f"{x:%H:%M}"
    return u"u" + f"nothing" + f"{x}{x}" + f'{x["k"]}' + r"\d" + "\N{EM DASH}" + f"\x41{x}\u1F600"

def numbers():
    return 1e-9, 1_000, 0x1F, 1j, -0.0, 1e999, 10**100, 12345678901234567890, True, None, ..., b"\xff", 1.0

def syntax(a, /, b: int = 1, *args: int, c, d=2, **kw) -> None:
    with (contextlib.nullcontext() as p, contextlib.nullcontext()):
        x: int
        y: list[int] = [*args, *(z := [1])]
    match b:
        case {"k": [1, *rest], **others} if rest:
            return others
        case str() | None as text:
            pass
    try:
        assert b, "words"
    except (ValueError, OSError) as error:
        raise KeyError(f"{b}", p) from error
    else:
        del y[1:2, ..., ::3]
    finally:
        global G
        G = lambda q=a, *r, **s: {**s, q: r}
    return {k: v for k, v in z if k for k in v}, kw[a, b:c], not a < b <= c is not d
'''

PROGRAM = """
import ast, hashlib, json, sys
from ablab.code.code import code
from ablab.code.scopes import bindings
from ablab.code.canonical import canonical
from ablab.code.readers import NOTHING, Read
EVERYTHING = Read(True, True, True, True, True)
body = ast.parse(sys.stdin.read()).body
class Outside:
    silent = frozenset()
    def refer(self, name, line):
        return ["from", name]
    def note(self, name, line):
        pass
forms = [canonical(each, bindings(body), Outside(), read) for each in body for read in (NOTHING, EVERYTHING)]
print(json.dumps([forms, {stage: code(stage, {}).digest for stage in ("training", "evaluation", "curve", "analysis")}]))
"""


def _pythons() -> dict[str, str]:
    """Every Python from 3.10 on that can be found here, on the path or at pyenv's."""
    found = [path for minor in range(10, 20) if (path := shutil.which(f"python3.{minor}")) is not None]
    found += map(str, Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser().glob("versions/3.1?.*/bin/python"))
    asked = {path: subprocess.run([path, "-V"], capture_output=True, text=True, check=False) for path in found}
    versions = {done.stdout.strip(): path for path, done in asked.items() if done.returncode == 0}
    return {"this": sys.executable, **versions}


@pytest.mark.slow
def test_every_python_gives_the_same_digest():
    said = {}
    for name, path in _pythons().items():
        done = subprocess.run(
            [path, "-c", PROGRAM],
            input=SNIPPETS,
            capture_output=True,
            text=True,
            env={"PYTHONPATH": str(Path(ablab.__file__).parents[1])},
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said[name] = json.loads(done.stdout)
    forms, digests = said["this"]
    assert len(forms) > 3
    assert digests["training"] == code("training", {}).digest
    for name, (theirs, their_digests) in said.items():
        assert theirs == forms, name
        assert their_digests == digests, name


def test_the_digest_needs_the_standard_library_alone():
    """As other Pythons have no more, and `site` is what leads to more here."""
    source = str(Path(ablab.__file__).parents[1])
    program = f"import sys; sys.path.insert(0, {source!r}); from ablab.code.code import code; code('training', {{}})"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
