"""An edit of a part that can change a value changes its digest; an edit of what nothing reads does not."""

from pathlib import Path

import pytest

from ablab.code.find import Part, _found, find_part
from ablab.errors import UserError
from tests.parts.conftest import NUMBER

HEAD = "import torch\nfrom torch import nn\n\n"
FORWARD = "    def forward(self, x):\n        return x * self.gain\n"
MINE = f"class Mine(nn.Module):\n    gain = 1.0\n{FORWARD}"


def part(study, source: str, **others: str) -> Part:
    return find_part(f"{study(source, {'norm/mine': '_target_: parts.Mine'}, **others)}.Mine")


SAY_METHOD = (
    """class Mine(nn.Module):
    def __init__(self):
        super().__init__()
        self.say(2.0)
    def say(self, gain):
        self.gain = gain
"""
    + FORWARD
)
SAY_FUNCTION = """def say(x):
    x.mul_(2)

class Mine(nn.Module):
    def forward(self, x):
        say(x)
        return x
"""
REDEFINED = """class Mine(nn.Module):
    def gain(self):
        return 2
    used = gain
    def gain(self):
        return 3
    def forward(self, x):
        return x * self.used()
"""
DISPATCH = """from functools import singledispatch

@singledispatch
def gain(x):
    return 1

@gain.register
def _(x: float):
    return 7

class Mine(nn.Module):
    def forward(self, x):
        return x * gain(1.0)
"""
CAUGHT = """class Mine(nn.Module):
    def forward(self, x):
        try:
            raise ValueError("2")
        except ValueError as error:
            return x * float(str(error))
"""
OWN_ERROR = """class Gain(Exception):
    def __init__(self, text):
        Mine.gain = float(text)

class Mine(nn.Module):
    def forward(self, x):
        if x is None:
            raise Gain("2")
        return x * self.gain
"""
DOCSTRING = 'class Mine(nn.Module):\n    """2.0"""\n    def forward(self, x):\n        return x * float(self.__doc__)\n'
BY_GLOBALS = (
    "GAIN_1 = 2\n\nclass Mine(nn.Module):\n    def forward(self, x):\n        return x * globals()[f'GAIN_{1}']\n"
)
BOUND_LATER = f"{MINE}\nfor gain in [2.0]:\n    Mine.gain = gain\n"
UNUSED_NAME = f"{MINE}\n_ = setattr(Mine, 'gain', 2.0)\n"
ASKS_TYPES = """from typing import get_type_hints

class Mine(nn.Module):
    rate: float = 1.0
    def forward(self, x):
        return x * get_type_hints(Mine)["rate"](1.5)
"""
ASKS_FIELDS = """import dataclasses

@dataclasses.dataclass
class Rates:
    rate: float = 1.0

class Mine(nn.Module):
    def forward(self, x):
        return x * dataclasses.fields(Rates)[0].type(1.5)
"""
VALIDATED = (
    "from typing import Annotated\nfrom strict import checked, Int\n\n@checked\ndef gain(x: int):\n    return x\n\n"
    + ("class Mine(nn.Module):\n    def forward(self, x):\n        return x * gain(1.5)\n")
)
ACTING_TYPE = "def put(x):\n    Mine.gain = x\n    return float\n\nclass Base(nn.Module):\n    pass\n\n" + (
    f"{MINE}\n    def later(self, x: put(2.0)): pass\n"
)
OF_SUBCLASSES = "class Base(nn.Module):\n    pass\n\nclass Mine(Base):\n    def forward(self, x):\n" + (
    "        return x * Base.__subclasses__()[1].gain\n\nclass Other(Base):\n    gain = 2\n"
)
DECORATED = """def counted(f):
    counted.seen = getattr(counted, "seen", 0) + 1
    f.place = counted.seen
    return f

class Mine(nn.Module):
    @counted
    def one(self): pass
    @counted
    def two(self): pass
    def forward(self, x):
        return x * self.one.place
"""

MOVES = {
    "another argument of a method say": (SAY_METHOD, "say(2.0)", "say(3.0)"),
    "no call of a method say": (SAY_METHOD, "self.say(2.0)", "pass"),
    "the body of a function say": (SAY_FUNCTION, "mul_(2)", "mul_(5)"),
    "a guard that always holds": (f'{MINE}\nif __name__ != "__main__":\n    Mine.gain = 2.0\n', "2.0", "3.0"),
    "the other side of a guard": (
        f'{MINE}\nif __name__ == "__main__":\n    pass\nelse:\n    Mine.gain = 2.0\n',
        "2.0",
        "3.0",
    ),
    "a method redefined after its use": (
        REDEFINED,
        "    used = gain\n    def gain(self):\n        return 3\n",
        "    def gain(self):\n        return 3\n    used = gain\n",
    ),
    "a type that dispatches": (DISPATCH, "x: float", "x: int"),
    "the text of an error that is caught": (CAUGHT, '"2"', '"3"'),
    "the text of an error of its own kind": (OWN_ERROR, '"2"', '"3"'),
    "a docstring that is read": (DOCSTRING, "2.0", "3.0"),
    "a constant behind globals()": (BY_GLOBALS, "= 2", "= 3"),
    "a loop of the module": (BOUND_LATER, "[2.0]", "[3.0]"),
    "a call behind an unused name": (UNUSED_NAME, "2.0", "3.0"),
    "a type that is asked for": (ASKS_TYPES, "rate: float", "rate: int"),
    "a type that a dataclass tells": (ASKS_FIELDS, "rate: float", "rate: int"),
    "a type under an unknown decorator": (VALIDATED, "x: int", "x: float"),
    "a call in a type": (ACTING_TYPE, "put(2.0)", "put(3.0)"),
    "a subclass that nothing names": (OF_SUBCLASSES, "gain = 2", "gain = 3"),
    "the order of decorated methods": (
        DECORATED,
        "    @counted\n    def one(self): pass\n    @counted\n    def two(self): pass\n",
        "    @counted\n    def two(self): pass\n    @counted\n    def one(self): pass\n",
    ),
}

SETTINGS = """RATE = 2
Mine.gain = RATE
RATE = 3
"""
TWICE = f"RATE = 2\n\nclass Mine(nn.Module):\n    gain = RATE\n{FORWARD}\nRATE = 3\n"
MOVES |= {
    "the order of what a module does": (
        f"{MINE}\n{SETTINGS}",
        "Mine.gain = RATE\nRATE = 3\n",
        "RATE = 3\nMine.gain = RATE\n",
    ),
    "a name bound anew before its use": (TWICE, "RATE = 2\n", "RATE = 2\nRATE = 3\n"),
    "a name bound anew after its use": (TWICE, "RATE = 3\n", "pass\n"),
    "the order of effects and loops": (
        f"{MINE}\nMine.gain = 2.0\nfor gain in [3.0]:\n    Mine.gain = gain\n",
        "Mine.gain = 2.0\nfor gain in [3.0]:\n    Mine.gain = gain\n",
        "for gain in [3.0]:\n    Mine.gain = gain\nMine.gain = 2.0\n",
    ),
}

PLAIN = '''
from typing import TYPE_CHECKING
import logging

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger(__name__)
UNUSED = 3

def unused(x):
    return x

class Mine(nn.Module):
    """Of the rows."""
    gain: float = 1.0

    def forward(self, x: "Tensor"):
        # A comment.
        if x.dim() < 1:
            raise ValueError(f"{x.dim()}: too few")
        return x * self.scale

    @property
    def scale(self) -> float:
        """Of all."""
        return self.gain

    @scale.setter
    def scale(self, gain: float) -> None:
        self.gain = gain

if __name__ == "__main__":
    print(Mine())
'''

STAYS = {
    "a comment": ("# A comment.", "# Another.\n        # Two."),
    "blank lines": ("\nclass Mine", "\n\n\n\nclass Mine"),
    "a docstring": ('"""Of the rows."""', '"""Of every row."""'),
    "a type": ("gain: float =", "gain: int ="),
    "the text of an error": ("too few", "allowed: 1"),
    "an unused function": ("return x\n\nclass", "return 2 * x\n\nclass"),
    "an unused constant": ("UNUSED = 3", "UNUSED = 4"),
    "what only the program itself does": ("print(Mine())", "print(Mine)"),
    "what only a type checker sees": ("from torch import Tensor", "from torch import nn as Tensor"),
    "a logger": ("logging.getLogger(__name__)", "logging.getLogger('mine')"),
}


@pytest.mark.parametrize("what", MOVES)
def test_an_edit_that_can_change_a_value_changes_the_digest(what, study):
    source, before, after = MOVES[what]
    assert before in source
    codes = [part(study, HEAD + text).code for text in (source, source.replace(before, after), source)]
    assert codes[0] == codes[2] != codes[1]


@pytest.mark.parametrize("what", STAYS)
def test_an_edit_of_what_nothing_reads_does_not(what, study):
    before, after = STAYS[what]
    assert before in PLAIN
    assert part(study, HEAD + PLAIN).code == part(study, HEAD + PLAIN.replace(before, after)).code


def test_a_plain_part_has_the_digest_that_it_always_had(study):
    """It names runs: a digest that sees more must not rename those of parts in which there is no more to see."""
    assert part(study, HEAD + PLAIN).code == "f513d322a8bd"


@pytest.mark.parametrize("way", ["import OTHER\n", "def later():\n    import OTHER\n", "from FOLDER import sub\n"])
def test_what_an_imported_module_does_counts(way, study):
    """Nothing of it is named; it sets a gain when it is imported."""
    codes = []
    for gain in ("2.0", "3.0", "2.0"):
        unique = f"acts_{next(NUMBER)}"
        Path(f"f_{unique}").mkdir()
        Path(f"f_{unique}/__init__.py").write_text(f"import torch\ntorch.set_default_dtype({gain})\n")
        Path(f"f_{unique}/sub.py").write_text("")
        source = way.replace("OTHER", unique).replace("FOLDER", f"f_{unique}")
        text = f"import torch\ntorch.set_flush_denormal({gain})\n"
        codes.append(part(study, HEAD + source + MINE, **{unique: text}).code)
    assert codes[0] == codes[2] != codes[1]


def test_what_a_module_answers_for_names_that_it_has_not_counts(study):
    """PEP 562. What is asked of it counts, too."""
    codes = []
    for gain, name in (("2.0", "GAIN"), ("3.0", "GAIN"), ("2.0", "SCALE"), ("2.0", "GAIN")):
        unique = f"lazy_{next(NUMBER)}"
        source = f"import {unique}\n{MINE.replace('1.0', f'{unique}.{name}')}"
        codes.append(part(study, HEAD + source, **{unique: f"def __getattr__(name):\n    return {gain}\n"}).code)
    assert codes[0] == codes[3]
    assert len(set(codes)) == 3


# What the source does not show

PATHS = "from pathlib import Path\n\nGAIN = Path('gain.txt')\n\nclass Mine(nn.Module):\n    path = GAIN\n"
READS = f"{PATHS}    def forward(self, x):\n        return x * float(READ)\n"
READS_AT_IMPORT = f"{PATHS}    def forward(self, x):\n        return x * SCALE\n\nSCALE = float(READ)\n"
HIDDEN = {
    "Path(__file__).with_name('gain.txt').parent": "__file__ reads",
    "Path('gain.txt').read_text()": "read_text reads",
    "GAIN.read_text()": "read_text reads",
    "Mine.path.open().read()": "open reads",
    "Path.read_bytes(GAIN)": "pathlib.Path.read_bytes reads",
    "open('gain.txt').read()": "open reads",
    "np.load('gain.npy')": "numpy.load reads",
    "__import__('other').GAIN": "__import__ runs code",
    "importlib.import_module('other').GAIN": "importlib.import_module runs code",
    "eval('2')": "eval runs code",
}


@pytest.mark.parametrize("reads", [READS, READS_AT_IMPORT])
@pytest.mark.parametrize("call", HIDDEN)
def test_what_the_source_does_not_show_is_refused_by_its_line(call, reads, study):
    source = f"import importlib\nimport numpy as np\n{HEAD}{reads.replace('READ', call)}"
    line = source[: source.index(call)].count("\n") + 1
    with pytest.raises(UserError) as refused:
        part(study, source)
    assert all(each in str(refused.value) for each in (f"line {line}: {HIDDEN[call]}", "needs_files"))


def test_names_of_its_own_and_evaluation_mode_are_not_taken_for_reading(study):
    source = (
        "def open(x):\n    return x\n\nclass Mine(nn.Module):\n    def forward(self, x, eval=1):\n        self.eval()\n"
    )
    assert part(study, f"{HEAD}{source}        return open(x) * eval\n").code


@pytest.mark.parametrize("named", ["    needs_files = ['gains/*.txt']\n", None])
def test_a_file_that_is_named_counts_and_is_kept(named, study):
    body = READS.replace("READ", "Path('gains/a.txt').read_text()")
    source = HEAD + (body.replace("    def", f"{named}    def") if named else f"needs_files = ['gains/*.txt']\n{body}")
    Path("gains").mkdir()
    codes = []
    for gain in ("2", "3", "2"):
        Path("gains/a.txt").write_text(gain)
        found = part(study, source)
        assert "gains/a.txt" in found.sources()
        codes.append(found.code)
    assert codes[0] == codes[2] != codes[1]


NAMED = "needs_files = ['gains/*.txt', 'weights.npy']\n"
NAMES = (
    "import importlib, subprocess\nimport numpy as np\nfrom pathlib import Path\n\nHERE = Path(__file__).parent\n"
    + ("FILE, OTHER = Path('gains/a.txt'), 'gains/a.txt'\nA = Path('gains') / 'a.txt'\nB = HERE / 'gains'\n\n")
)
READ_BY = "class Mine(nn.Module):\n    def forward(self, x, name=''):\n        return x * float(READ)\n"


def reading(study, call: str, more: str = "") -> Part:
    for place in ("gains/a.txt", "gain.txt", "weights.npy"):
        Path(place).parent.mkdir(exist_ok=True)
        Path(place).write_text("2")
    return part(study, f"{NAMES}{HEAD}{NAMED}{more}{READ_BY.replace('READ', call)}")


@pytest.mark.parametrize(
    "call",
    [
        "open('gains/a.txt').read()",
        "Path('gains/a.txt').read_text()",
        "Path('gains', 'a.txt').open().read()",
        "(Path('gains') / 'a.txt').read_text()",
        "A.read_text()",
        "Path.read_text(A)",
        "(HERE / 'gains' / 'a.txt').read_text()",
        "(B / 'a.txt').read_text()",
        "open(B.joinpath('a.txt')).read()",
        "Path(__file__).resolve().with_name('gains').joinpath('b.txt').with_name('a.txt').read_text()",
        "np.load(HERE / 'weights.npy', allow_pickle=False)",
    ],
)
def test_a_read_is_named_where_the_source_tells_its_path(call, study):
    assert set(reading(study, call).files) == {"gains/a.txt", "weights.npy"}


UNNAMED = {
    "Path('gain.txt').read_text()": 'read_text reads gain.txt, .* needs_files = \\["gain.txt"\\]',
    "open(HERE / 'gain.txt').read()": 'open reads gain.txt, .* needs_files = \\["gain.txt"\\]',
    "known(HERE / 'gain.txt')": "__file__ reads gain.txt",
    "known(HERE)": "__file__ reads what this source does not hold",
    "open('/etc/hostname').read()": "open reads /etc/hostname, .* allowed: a file in ",
    "open('../gains/a.txt').read()": "open reads ../gains/a.txt, .* allowed: a file in ",
    "open(f'gains/{name}.txt').read()": "open reads what this source does not hold",
    "open(name).read()": "open reads what this source does not hold",
    "open(FILE).read()": "open reads what this source does not hold",
    "(lambda A: A.read_text())(name)": "read_text reads what this source does not hold",
    "list(map(open, ['gains/a.txt']))[0].read()": "open reads what this source does not hold",
    "subprocess.check_output('gains/a.txt')": "subprocess.check_output reads what this source does not hold",
    "importlib.import_module('other').GAIN": "importlib.import_module runs code that this source does not name",
    "eval('2')": "eval runs code that this source does not name",
}


@pytest.mark.parametrize("call", UNNAMED)
def test_to_name_one_file_names_no_other_that_is_read(call, study):
    known = "def known(x):\n    return 1\n\n"
    line = f"{NAMES}{HEAD}{NAMED}{known}{READ_BY}".partition("READ")[0].count("\n") + 1
    with pytest.raises(UserError, match=rf"line {line}: {UNNAMED[call]}") as refused:
        reading(study, call, known)
    is_told = "does not hold" not in UNNAMED[call] and "runs code" not in UNNAMED[call]
    assert ("needs_files_only = True" in str(refused.value)) != is_told
    assert reading(study, call, f"needs_files_only = True\n{known}").files


def test_a_constant_that_is_bound_anew_tells_no_path(study):
    by_function = "def later():\n    global A\n    A = Path('gain.txt')\n\n"
    for more in ("A = Path('gain.txt')\n", "A = B\nB = A\n", by_function):
        with pytest.raises(UserError, match="read_text reads what this source does not hold"):
            reading(study, "A.read_text()", more)


def test_a_path_from_the_current_folder_is_that_of_the_named_file(study, tmp_path, monkeypatch):
    """Elsewhere it may be another file, which nobody has named; what begins at the part's own file is not."""
    by_name, by_file = reading(study, "A.read_text()"), reading(study, "open(B / 'a.txt').read()")
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "gains").mkdir(parents=True)
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("ABLAB_CONFIG_DIR", str(tmp_path / "conf"))
    assert find_part(by_name.target).code == by_name.code  # a report of its runs
    Path("gains/a.txt").write_text("3")
    _found.cache_clear()
    with pytest.raises(
        UserError, match=r'allowed: Path\(__file__\).parent / "gains/a.txt"; that in the current folder'
    ):
        find_part(by_name.target)
    assert find_part(by_file.target).code == by_file.code


def test_only_a_truth_value_says_that_all_files_are_named(study):
    with pytest.raises(UserError, match="needs_files_only='yes'; allowed: True, False"):
        reading(study, "open(name).read()", "needs_files_only = 'yes'\n")
    with pytest.raises(UserError, match="open reads"):
        reading(study, "open(name).read()", "needs_files_only = False\n")


@pytest.mark.parametrize(
    ("needs", "message"),
    [
        ("['gain.txt']", "there is no file gain.txt in"),
        ("'gain.txt'", "allowed: a list"),
        ("['../x']", "allowed: a list"),
    ],
)
def test_files_that_are_not_there_are_refused(needs, message, study):
    with pytest.raises(UserError, match=message):
        assert part(study, f"{HEAD}needs_files = {needs}\n{MINE}").code
