"""Which import runs and which binding a name means decide values, so that they are part of a part's digest."""

import importlib
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ablab.code.find import find_part
from ablab.code.load import load
from ablab.code.modules import File
from ablab.errors import UserError

VALUE = "class Mine:\n    def value(self):\n        return {}\n"
FLAG = "try:\n    import math\n    FAST = 2\nexcept ImportError:\n    FAST = 1\n" + VALUE.format("FAST")
IN_A_METHOD = """class Mine:
    def value(self):
        try:
            import math
            return 2
        except ImportError:
            return 1
"""
SUPPRESSED = (
    "from contextlib import suppress\nFAST = 1\nwith suppress(ImportError):\n    import math\n    FAST = 2\n"
    + (VALUE.format("FAST"))
)
LAZY = """gain = None

def found():
    global gain
    if gain is None:
        from impl import gain
    return gain

""" + VALUE.format("found()")
AT_ONCE = "def found():\n    global impl\n    import impl\n    return impl.gain\n\n" + VALUE.format("found()")
IN_THE_CLASS = "class Mine:\n    from impl import gain\n    def value(self):\n        return self.gain\n"
ENCLOSING = """class Mine:
    def value(self):
        gain = 0
        def find():
            nonlocal gain
            from impl import gain
        find()
        return gain
"""
STATIC = "def act(x):\n    return GAIN * x\n\nclass Mine:\n    act = staticmethod(act)\n    def value(self):\n" + (
    "        return self.act(1)\n"
)
COPIED = "gain = GAIN\n\nclass Mine:\n    gain = gain\n    def value(self):\n        return self.gain\n"
DEFAULT = "def act(x):\n    return GAIN * x\n\nclass Mine:\n    def act(self, f=act):\n        return f(1)\n" + (
    "    def value(self):\n        return self.act()\n"
)
REGISTRY = "R = []\n\nclass Base:\n    def __init_subclass__(cls):\n        R.append(cls.gain)\n"
NUMBERS = {"impl": "gain = 1\n"}
EDITS = {
    "a flag": (FLAG, {}, "import math", "import no_such_module"),
    "a flag of a method": (IN_A_METHOD, {}, "import math", "import no_such_module"),
    "suppressed": (SUPPRESSED, {}, "import math", "import no_such_module"),
    "the last import wins": (
        "C = False\nfrom impl import gain\nif C:\n    from other import gain\n" + VALUE.format("gain"),
        {**NUMBERS, "other": "gain = 2\n"},
        "from impl import gain\nif C:\n    from other import gain",
        "if C:\n    from impl import gain\nfrom other import gain",
    ),
    "global": (LAZY, NUMBERS, "gain = 1", "gain = 2"),
    "a module of global": (AT_ONCE, NUMBERS, "gain = 1", "gain = 2"),
    "class body": (IN_THE_CLASS, NUMBERS, "gain = 1", "gain = 2"),
    "nonlocal": (ENCLOSING, NUMBERS, "gain = 1", "gain = 2"),
    "a function that a class wraps": (STATIC.replace("GAIN", "2"), {}, "2 *", "3 *"),
    "a value that a class copies": (COPIED.replace("GAIN", "2.0"), {}, "2.0", "3.0"),
    "a default of the same name": (DEFAULT.replace("GAIN", "2"), {}, "2 *", "3 *"),
    "a package's own before its module": (
        "from pk import gain\n" + VALUE.format("gain"),
        {"pk/__init__": "from pk.impl import gain\n", "pk/impl": "gain = 1\n", "pk/gain": "gain = 5\n"},
        "gain = 1",
        "gain = 2",
    ),
    "added in place": (
        "import adds\nfrom r import R\n" + VALUE.format("R[-1]"),
        {"r": "R = [0]\n", "adds": "from r import R\nR += [1]\n"},
        "[1]",
        "[2]",
    ),
    "subclasses that enter": (
        "import subs\nfrom r import R\n" + VALUE.format("R[-1]"),
        {"r": REGISTRY, "subs": "from r import Base\n\nclass One(Base):\n    gain = 1\n"},
        "gain = 1",
        "gain = 2",
    ),
    "a key that enters": (
        "from r import R, add\n_ = sorted([1], key=add)\n" + VALUE.format("R[-1]"),
        {"r": "R = []\n\ndef add(x):\n    R.append(x)\n    return 0\n"},
        "[1]",
        "[2]",
    ),
}


def written(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def value(folder: Path) -> str:
    line = "import parts; print(parts.Mine().value())"
    return subprocess.run([sys.executable, "-c", line], cwd=folder, capture_output=True, text=True, check=True).stdout


def code_in(folder: Path, monkeypatch) -> str:
    monkeypatch.setattr("ablab.code.find.part_folders", lambda: (folder,))
    return find_part("parts.Mine").code


@pytest.mark.parametrize("edit", EDITS)
def test_an_edit_that_gives_another_value_gives_another_code(edit, tmp_path, monkeypatch):
    source, others, before, after = EDITS[edit]
    files = {"parts": source, **others}
    assert any(before in text for text in files.values())
    first = written(tmp_path / "first", files)
    other = written(tmp_path / "other", {name: text.replace(before, after) for name, text in files.items()})
    again = written(tmp_path / "again", files)
    assert value(first) != value(other)
    codes = [code_in(folder, monkeypatch) for folder in (first, other, again)]
    assert codes[0] == codes[2] != codes[1]


def test_an_import_that_always_runs_counts_by_what_is_used_of_it(tmp_path, monkeypatch):
    plain = "import math\n\nclass Mine:\n    def value(self):\n        return math.pi\n"
    inside = "class Mine:\n    def value(self):\n        import math\n        return math.pi\n"
    typed = f"from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch\n{plain}"
    folders = [written(tmp_path / str(place), {"parts": text}) for place, text in enumerate((plain, inside, typed))]
    assert len({code_in(folder, monkeypatch) for folder in folders}) == 1


@pytest.mark.parametrize("named", ["[*Base.needs_files, 'b.txt']", "[f'{n}.txt' for n in 'ab']", "FILES"])
def test_what_a_class_says_that_it_needs_is_a_literal(named, tmp_path, monkeypatch):
    base = "FILES = ['b.txt']\n\nclass Base:\n    needs_files = ['a.txt']\n\n"
    folder = written(tmp_path, {"parts": f"{base}class Mine(Base):\n    needs_files = {named}\n"})
    with pytest.raises(UserError, match=r"Mine.needs_files = .* is computed; allowed: a literal"):
        code_in(folder, monkeypatch)


def test_a_class_may_have_the_name_of_its_base(tmp_path, monkeypatch):
    files = {"base": "class Mine:\n    gain = 1\n", "parts": "from base import Mine\n\nclass Mine(Mine):\n    pass\n"}
    first, other = (
        written(tmp_path / gain, {**files, "base": files["base"].replace("1", gain)}) for gain in ("1", "2")
    )
    assert code_in(first, monkeypatch) != code_in(other, monkeypatch)


def test_a_module_of_one_file_that_is_installed_is_no_folder_of_all_others(tmp_path):
    written(tmp_path, {"one": "import huge\n\nclass Mine:\n    pass\n", "huge": "this is no Python"})
    package = File(tmp_path / "one.py")
    assert package.holds("one.Mine")
    assert not package.holds("huge.x")
    assert package.owner("one.Mine") is not None


def test_a_helper_of_another_study_is_refused(tmp_path, monkeypatch):
    """Python keeps the first module of a name; the digest is of the file beside the part."""
    helper = f"helper_{tmp_path.name}".replace("-", "_")
    folder = written(tmp_path / "mine", {"parts_with": f"import {helper}\n\nclass Mine:\n    x = {helper}.X\n"})
    written(folder, {helper: "X = 2\n"})
    monkeypatch.setattr("ablab.code.find.part_folders", lambda: (folder,))
    part = find_part("parts_with.Mine")
    elsewhere = tmp_path / "elsewhere" / f"{helper}.py"
    monkeypatch.setitem(
        sys.modules,
        helper,
        SimpleNamespace(X=1, __file__=str(elsewhere), __spec__=SimpleNamespace(origin=str(elsewhere))),
    )
    with pytest.raises(UserError, match=f"Python imports {helper} from .*elsewhere.*; allowed: a name that no other"):
        load(part)
    sys.modules.pop("parts_with", None)


def test_an_edit_between_the_digest_and_the_import_is_refused(study):
    name = study("class Mine:\n    x = 1\n", {})
    part = find_part(f"{name}.Mine")
    digest = part.code
    Path(f"{name}.py").write_text("class Mine:\n    x = 2\n")
    with pytest.raises(UserError, match=rf"{name}.py was edited after it was read; type the line again"):
        load(part)
    assert part.code == digest


def test_an_edit_after_the_import_changes_nothing_of_this_process(study):
    name = study("class Mine:\n    x = 1\n", {})
    part = find_part(f"{name}.Mine")
    assert load(part).x == 1
    Path(f"{name}.py").write_text("class Mine:\n    x = 2\n")
    assert load(part).x == 1


@pytest.mark.parametrize("place", ["onemod.py", "shownorm/shownorm.py"])
def test_a_module_that_is_installed_is_the_same_when_it_is_read_again(place, tmp_path, monkeypatch):
    """It lies beside all others, and a package may have a module of its own name."""
    name = f"{Path(place).stem}{tmp_path.name[-1]}{len(place)}"
    path = tmp_path / "site" / place.replace(Path(place).stem, name)
    path.parent.mkdir(parents=True)
    path.write_text("class Flat:\n    x = 1\n")
    if "/" in place:
        (path.parent / "__init__.py").write_text("")
    info = tmp_path / "site" / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "top_level.txt").write_text(f"{name}\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.invalidate_caches()
    part = find_part(f"{name}.{name}.Flat" if "/" in place else f"{name}.Flat")
    assert part.version == f"{name} 1.0"
    assert load(part).x == 1
