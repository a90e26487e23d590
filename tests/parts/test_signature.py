"""What a part takes is read from its syntax: types, ranges and defaults, and what cannot be read is refused."""

import sys
from pathlib import Path

import pytest

from ablab.code.find import find_part
from ablab.code.modules import Folder
from ablab.code.signature import MISSING, SignatureError, signature
from ablab.errors import UserError

SOURCE = """
from typing import Annotated, Literal
import annotated_types
from dataclasses import dataclass
from pydantic import Field
from ablab.fields import Count, Positive
import ablab.fields as fields

Share = Annotated[float, Field(ge=0, le=1)]

class Base:
    needs = {"init": "small"}
    def __init__(self, d_model: int, *, share: Share = 0.5, kind: Literal["a", "b"] = "a"):
        pass

class Inherits(Base):
    needs = {"init": "xavier"}

class Own(Base):
    def __init__(self, x: "Positive", y: fields.Count | None, z: list[int] = [1, -2], *, flag: bool = False): pass

@dataclass(frozen=True)
class Data:
    width: Count
    rate: Annotated[float, annotated_types.Gt(0)] = 0.1

@dataclass(frozen=True)
class Later(Data):
    rate: float = 0.2
    height: int = 4

def function(step: int, *, p: Share) -> float:
    return p

class Computed:
    def __init__(self, x: make_type(), y, *, z: int = 1 + sys.maxsize): pass

class Open:
    def __init__(self, *args, **kwargs): pass

number = 3
"""


@pytest.fixture
def packages(tmp_path):
    (tmp_path / "mine.py").write_text(SOURCE)
    return [Folder(tmp_path)]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("Inherits", {"d_model": MISSING, "share": 0.5, "kind": "a"}),
        ("Own", {"x": MISSING, "y": MISSING, "z": [1, -2], "flag": False}),
        ("Data", {"width": MISSING, "rate": 0.1}),
        ("Later", {"width": MISSING, "rate": 0.2, "height": 4}),
        ("function", {"step": MISSING, "p": MISSING}),
    ],
)
def test_parameters_are_those_of_python(packages, name, parameters, tmp_path, monkeypatch):
    """Read as syntax, and by importing the module: the same names in the same order with the same defaults."""
    import importlib
    import inspect

    read = signature(f"mine.{name}", packages)
    assert {key: each.default for key, each in read.parameters.items()} == parameters
    (tmp_path / f"mine_{name}.py").write_text(SOURCE.partition("class Computed")[0])
    monkeypatch.syspath_prepend(tmp_path)
    real = inspect.signature(getattr(importlib.import_module(f"mine_{name}"), name)).parameters
    assert list(real) == list(read.parameters)
    for key, each in real.items():
        assert read.parameters[key].default == (MISSING if each.default is each.empty else each.default)


def test_types_carry_their_ranges(packages):
    from typing import Literal, get_args

    from pydantic import TypeAdapter, ValidationError

    read = signature("mine.Own", packages)
    with pytest.raises(ValidationError):
        TypeAdapter(read.type_of("x")).validate_python(-1.0)
    assert TypeAdapter(read.type_of("y")).validate_python(None) is None
    assert read.type_of("z") == list[int]
    inherited = signature("mine.Inherits", packages)
    assert inherited.type_of("kind") == Literal["a", "b"]
    assert get_args(inherited.type_of("share"))[0] is float
    with pytest.raises(ValidationError):
        TypeAdapter(signature("mine.Data", packages).type_of("rate")).validate_python(0.0)


def test_constants_are_read_too(packages):
    inherited = signature("mine.Inherits", packages)
    assert inherited.constants["needs"] == {"init": "xavier"}
    assert signature("mine.Own", packages).constants["needs"] == {"init": "small"}


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("Computed", "no literal value"),
        ("Open", "name no field"),
        ("number", "neither a class nor a function"),
        ("Absent", "there is no"),
    ],
)
def test_what_cannot_be_read_is_told(packages, name, why):
    with pytest.raises(SignatureError, match=why):
        signature(f"mine.{name}", packages)


def test_a_computed_type_is_refused_only_where_it_is_asked_for(packages, tmp_path):
    (tmp_path / "other.py").write_text("class Part:\n    def __init__(self, d_model: make(), x): pass\n")
    read = signature("other.Part", packages)
    with pytest.raises(SignatureError, match="cannot be read as a type"):
        read.type_of("d_model")
    with pytest.raises(SignatureError, match="x has no type"):
        read.type_of("x")


def test_reading_imports_nothing(tmp_path, monkeypatch):
    (tmp_path / "explosive.py").write_text(
        "raise SystemExit('imported')\nclass Part:\n    def __init__(self, d_model: int): pass\n"
    )
    monkeypatch.chdir(tmp_path)
    assert find_part("explosive.Part").signature.parameters.keys() == {"d_model"}
    assert "explosive" not in sys.modules


@pytest.mark.parametrize("how", ["from made import Part", "from made import *", "import made\nPart = made.Part"])
def test_a_part_is_found_where_it_is_named(how, tmp_path):
    (tmp_path / "made.py").write_text("class Part:\n    def __init__(self, d_model: int): pass\n")
    (tmp_path / "named.py").write_text(f"{how}\n")
    if "=" in how:
        with pytest.raises(SignatureError, match="neither a class nor a function"):
            signature("named.Part", [Folder(tmp_path)])
    else:
        assert signature("named.Part", [Folder(tmp_path)]).module.name == "made"


def test_modules_that_import_each_other_end_the_search(tmp_path):
    (tmp_path / "one.py").write_text("from one import Part\nfrom other import *\n")
    (tmp_path / "other.py").write_text("from one import *\n")
    with pytest.raises(SignatureError, match=r"there is no one\.Part"):
        signature("one.Part", [Folder(tmp_path)])


# The digest of a part


@pytest.fixture
def code(tmp_path, monkeypatch):
    """The digest of `made.Part` for the files given."""
    from ablab.code import find

    monkeypatch.chdir(tmp_path)

    def of(**files: str) -> str:
        for name, text in files.items():
            path = Path(f"{name}.py")
            path.write_text(text)
        find._found.cache_clear()
        return find_part("made.Part").code

    return of


PART = '''
from helpers import squash, unused

class Part:
    """A part."""
    def __init__(self, d_model: int):
        self.width = d_model
    def forward(self, x):
        return squash(x) * self.width

def other(): return 1
'''
HELPERS = "SCALE = 2\ndef squash(x):\n    return SCALE * x\n\ndef unused(x):\n    return x\n"


def test_the_digest_is_of_what_the_part_is_made_of(code):
    first = code(made=PART, helpers=HELPERS)
    assert code(made="# A comment.\n" + PART.replace('"""A part."""', '"""Another docstring."""')) == first
    assert code(made=PART.replace("return 1", "return 2"), helpers=HELPERS.replace("return x", "return -x")) == first
    assert code(made=PART.replace("* self.width", "/ self.width")) != first
    assert code(made=PART, helpers=HELPERS) == first
    assert code(helpers=HELPERS.replace("SCALE = 2", "SCALE = 3")) != first


def test_relative_imports_and_packages_count(code, tmp_path):
    (tmp_path / "made").mkdir()
    inside = {"made/__init__": "from .part import Part\n", "made/part": PART.replace("from helpers", "from .helpers")}
    first = code(**inside, **{"made/helpers": HELPERS})
    assert code(**{"made/helpers": HELPERS.replace("SCALE = 2", "SCALE = 3")}) != first
    assert code(**{"made/helpers": HELPERS}) == first
    assert set(find_part("made.Part").sources()) == {"made/__init__.py", "made/part.py", "made/helpers.py"}


def test_a_name_that_is_only_annotated_is_nothing(code):
    first = code(made=PART, helpers=HELPERS)
    assert code(helpers="SCALE: int\n" + HELPERS) == first


def test_a_star_hides_what_a_part_is_made_of(code):
    with pytest.raises(UserError, match=r"made.py: from helpers import \* hides"):
        code(made=PART.replace("import squash, unused", "import *"), helpers=HELPERS)


def test_a_star_of_a_library_that_reads_files_hides_what_a_part_reads(code):
    reads = "class Part:\n    def __init__(self):\n        self.gain = load('gain.npy')\n"
    with pytest.raises(UserError, match=r"made.py: from numpy import \* hides"):
        code(made=f"from numpy import *\n\n{reads}")
    code(made="from math import *\n\nclass Part:\n    def __init__(self):\n        self.gain = sqrt(2)\n")


def test_a_part_of_an_installed_package_carries_its_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from importlib import metadata

    part = find_part("safetensors.torch.save_file")
    assert part.code.endswith(f" safetensors {metadata.version('safetensors')}")


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("DyT", "no dotted name"),
        ("nowhere.DyT", "there is no module nowhere in"),
        ("made.Absent", "there is no made.Absent"),
        ("broken.Part", "broken.py, line 1"),
    ],
)
def test_a_part_that_is_not_there_is_told_in_one_line(target, why, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("made.py").write_text(PART)
    Path("broken.py").write_text("def (:\n")
    with pytest.raises(UserError, match=f"^_target_={target}: .*{why}") as error:
        find_part(target)
    assert "\n" not in str(error.value)


def test_bases_are_in_the_order_of_python(study):
    source = """
from typing import Generic, TypeVar
T = TypeVar("T")
class Rate:
    def __init__(self, peak: float, *, floor: float = 0.0): ...
class Logged(Rate): pass
class Halved(Rate):
    def __init__(self, peak: float, *, factor: float = 0.5): ...
class Both(Logged, Halved): pass
class Typed(Rate, Generic[T]): pass
class OfInts(Typed[int]): pass
"""
    name = study(source, {})
    assert set(find_part(f"{name}.Both").signature.parameters) == {"peak", "factor"}
    assert set(find_part(f"{name}.OfInts").signature.parameters) == {"peak", "floor"}
