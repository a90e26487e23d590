"""The code digest moves when what is computed may change, and only then."""

import pytest

from ablab.code.code import code
from ablab.code.differences import changed_definitions
from tests.provenance.toys import FILES, MODEL, NORMS, code_in, edited, written

HARMLESS = {
    "a comment": edited("model.py", "    # A comment.", "    # Another comment,\n    # longer."),
    "a docstring": edited("model.py", '"""A layer."""', '"""A layer.\n\n    With lines.\n    """'),
    "no docstring": edited("model.py", '        """Of the rows."""\n', ""),
    "an attribute's docstring": edited("parts/norms.py", '"""By name."""', '"""By the name in YAML."""'),
    "blank lines": edited("model.py", "    layer = Layer(3)\n", "\n\n    layer = Layer(3)\n\n"),
    "how it is laid out": edited("model.py", "Layer(3)", "Layer(\n        3,\n    )"),
    "quotes": edited("model.py", 'kind="scale"', "kind='scale'"),
    "a type": edited("model.py", "width: int, *", "width: float | None, *"),
    "the type of a constant": edited("model.py", "WIDTH: int = 4", "WIDTH = 4"),
    "what is said": edited("model.py", "training {layer.width}", "now training"),
    "what an error says": edited("model.py", "width={layer.width}: too small", "width: allowed: 1"),
    "an alias of a library": edited("model.py", "import numpy as np", "import numpy as N").copy(),
    "an edit elsewhere": edited("latex.py", "return 1", "return 2"),
    "an edit of what is not used": edited("seeding.py", "return 1", "return 2"),
    "an edit of what only watches": edited("screen.py", "print(line)", "print(line, flush=True)"),
}
HARMLESS["an alias of a library"]["model.py"] = HARMLESS["an alias of a library"]["model.py"].replace("np.exp", "N.exp")

HARMFUL = {
    "a constant": edited("model.py", "EPS, DELTA = 1e-9", "EPS, DELTA = 1e-8"),
    "the sign of a constant": edited("model.py", "DELTA = 1e-9, 0.5", "DELTA = 1e-9, -0.5"),
    "an integer for a float": edited("model.py", "rate: float = 0.1", "rate: float = 1"),
    "an operator": edited("model.py", "row > DELTA", "row >= DELTA"),
    "a default value": edited("model.py", "bias=True", "bias=False"),
    "a positional default": edited("model.py", "rows=[]", "rows=[1]"),
    "a keyword-only argument": edited("model.py", "width: int, *, bias", "width: int, bias"),
    "a decorator": edited("model.py", "    @property\n", ""),
    "a base class": edited("model.py", "class Layer(LayerNorm)", "class Layer"),
    "a field of a class": edited("model.py", "depth: int = 2", "depth: int = 3"),
    "a field that a dataclass does not count": edited("model.py", "depth: int", "depth: ClassVar[int]"),
    "the entry of a registry": edited("parts/norms.py", '"scale": ScaleNorm', '"scale": LayerNorm'),
    "a new entry": edited("parts/norms.py", '"bare": bare}', '"bare": bare, "none": None}'),
    "what a registry names": edited("parts/norms.py", "def bare(x):\n    return x", "def bare(x):\n    return -x"),
    "a method of a class that is only named": edited("parts/norms.py", "return x / derive(x)", "return x // derive(x)"),
    "what a module's attribute is": edited("seeding.py", "hashlib.md5", "hashlib.sha1"),
    "what a library's alias is": edited("model.py", "from numpy import sqrt as", "from numpy import cbrt as"),
    "the name of a definition": {
        **edited("parts/norms.py", "class ScaleNorm", "class ScaleNorms"),
        "parts/norms.py": NORMS.replace("ScaleNorm", "ScaleNorms"),
    },
    "a statement of a module": edited("seeding.py", "import hashlib\n", "import hashlib\nhashlib.seed(1)\n"),
    "a local import": edited("model.py", "    rate: float", "    from math import exp as Layer\n    rate: float"),
}


@pytest.fixture
def plain(tmp_path):
    return code_in(written(tmp_path / "plain", FILES)).digest


@pytest.mark.parametrize("what", HARMLESS)
def test_what_changes_no_number_moves_no_digest(what, plain, tmp_path):
    assert HARMLESS[what] != FILES
    assert code_in(written(tmp_path, HARMLESS[what])).digest == plain


@pytest.mark.parametrize("what", HARMFUL)
def test_what_may_change_a_number_moves_the_digest(what, plain, tmp_path):
    assert code_in(written(tmp_path, HARMFUL[what])).digest != plain


def test_a_module_may_be_renamed_and_moved(plain, tmp_path):
    renamed = {**FILES, "deep/er/normalisation.py": NORMS, "deep/__init__.py": "", "deep/er/__init__.py": ""}
    del renamed["parts/norms.py"], renamed["parts/__init__.py"]
    renamed["model.py"] = MODEL.replace("toy.parts.norms", "toy.deep.er.normalisation")
    assert code_in(written(tmp_path, renamed)).digest == plain


def test_a_definition_may_move_to_another_module_and_order_does_not_matter(plain, tmp_path):
    norms, _, rest = NORMS.partition("class ScaleNorm:")
    scale, _, rest = rest.partition("def bare")
    moved = {
        **FILES,
        "parts/scale.py": f"class ScaleNorm:{scale}",
        "parts/norms.py": f"from toy.parts.scale import ScaleNorm\ndef bare{rest}\n{norms}",
    }
    # The registry names the class above it: put the class first.
    moved["parts/norms.py"] = f"{norms}\nfrom toy.parts.scale import ScaleNorm\n\ndef bare{rest}"
    assert code_in(written(tmp_path, moved)).digest == plain
    before, after = MODEL.split("class Layer(LayerNorm):")
    layer, train = after.split("def train(")
    turned = {**FILES, "model.py": f"{before}def train({train}\nclass Layer(LayerNorm):{layer}"}
    assert code_in(written(tmp_path / "turned", turned)).digest == plain


def test_a_name_may_come_by_way_of_another_module(plain, tmp_path):
    files = {
        **FILES,
        "model.py": MODEL.replace("toy.parts.norms import NORMS, LayerNorm", "toy.parts import LayerNorm"),
    }
    files["model.py"] = files["model.py"].replace("import math", "import math\nfrom toy.parts.norms import NORMS")
    assert code_in(written(tmp_path, files)).digest == plain


TWINS = {
    "__init__.py": "",
    "one.py": "def rate():\n    return 1\n",
    "two.py": "def rate():\n    return 2\n",
    "model.py": "from toy import one, two\n\ndef fast():\n    return one.rate()\n\n"
    "def slow():\n    return two.rate()\n\ndef train():\n    return fast() + slow()\n",
}


def test_two_definitions_of_one_name_cannot_be_exchanged_unseen(tmp_path):
    """All texts stay as they are, and so does the set of definitions; who uses which does not."""
    exchanged = {**TWINS, "model.py": TWINS["model.py"].replace("import one, two", "import two as one, one as two")}
    one, other = (code_in(written(tmp_path / name, files)) for name, files in (("a", TWINS), ("b", exchanged)))
    assert one.digest != other.digest
    assert one.definitions == other.definitions


def test_definitions_that_use_each_other_have_a_digest(tmp_path):
    files = {
        "__init__.py": "",
        "model.py": "from toy.other import odd\n\ndef train(n):\n    return n == 0 or odd(n - 1)\n",
        "other.py": "def odd(n):\n    from toy.model import train\n    return n != 0 and train(n - 1)\n",
    }
    code = code_in(written(tmp_path / "a", files))
    assert set(code.definitions) == {"train", "odd"}
    files["other.py"] = files["other.py"].replace("n != 0", "n > 0")
    assert code_in(written(tmp_path / "b", files)).digest != code.digest


SHADOWED = """
from toy.parts.norms import LayerNorm, ScaleNorm, bare

def train(bare, rows):
    total = [ScaleNorm for ScaleNorm in rows]
    def inner():
        LayerNorm = 1
        return LayerNorm
    return bare(total) + (lambda LayerNorm: LayerNorm)(1)
"""


def test_a_local_name_is_not_the_one_outside(tmp_path):
    assert set(code_in(written(tmp_path, {**FILES, "model.py": SHADOWED})).definitions) == {"train"}
    seen = SHADOWED.replace("(lambda LayerNorm: LayerNorm)(1)", "ScaleNorm(1)")
    found = set(code_in(written(tmp_path / "seen", {**FILES, "model.py": seen})).definitions)
    assert found == {"train", "ScaleNorm", "ScaleNorm.norm"}


EITHER = """
try:
    from toy.parts.norms import LayerNorm as Norm
except ImportError:
    Norm = None
if Norm:
    from toy.parts.norms import bare as way
else:
    from toy.seeding import derive as way

def train(x):
    if x:
        from toy.parts.norms import ScaleNorm as other
    else:
        other = None
    return Norm, way, other
"""


def test_a_name_that_may_be_bound_in_several_ways_leads_to_all(tmp_path):
    found = set(code_in(written(tmp_path, {**FILES, "model.py": EITHER})).definitions)
    assert {"LayerNorm", "bare", "derive", "ScaleNorm", "Norm", "train"} <= found


def test_definitions_are_named_by_method(tmp_path):
    plain = code_in(written(tmp_path / "plain", FILES)).definitions
    assert {"train", "Layer", "Layer.forward", "NORMS", "WIDTH", "EPS", "bare", "LayerNorm.norm"} <= set(plain)
    files = edited("model.py", "y + seeding", "y * seeding")
    other = code_in(written(tmp_path / "other", files)).definitions
    assert [name for name in plain if plain[name] != other[name]] == ["Layer.forward"]


def test_a_name_that_is_nowhere_is_an_error_not_a_gap(tmp_path):
    files = edited("model.py", "import NORMS, LayerNorm", "import NORMS, Missing as LayerNorm")
    with pytest.raises(LookupError, match=r"toy\.parts\.norms has no Missing"):
        code_in(written(tmp_path, files))


def test_what_is_new_changed_or_gone_is_named():
    now = dict(code("training", {}).definitions)
    then = {**now, "derive": "00000000", "Forgotten": "11111111"}
    del then["Dropout.forward"]
    assert changed_definitions(now, then) == ["Dropout.forward", "Forgotten", "derive"]
    assert changed_definitions(now, now) == []
