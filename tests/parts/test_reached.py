"""The digest of a part covers all that it uses in its folder, in whichever way Python finds it."""

from pathlib import Path

import pytest

from ablab.code.find import find_part
from tests.parts.conftest import NUMBER


def _code(study, source: str, helper: str, place: str) -> str:
    """The digest of a part that uses the helper, at `place`; HELPER stands for its name."""
    unique = f"helper_{next(NUMBER)}"
    path = Path(place.replace("HELPER", unique))
    path.parent.mkdir(exist_ok=True)
    path.write_text(helper)
    name = study(source.replace("HELPER", unique), {"norm/mine": "_target_: parts.Mine\n"})
    part = find_part(f"{name}.Mine")
    assert str(path) in part.sources()
    return part.code


IN_A_FOLDER = "from HELPER.norms import scale\n\nclass Mine:\n    def forward(self, x):\n        return scale(x)\n"
IN_A_REGISTRY = "from HELPER import KNOWN\n\nclass Mine:\n    def forward(self, x):\n        return KNOWN['f'](x)\n"
REGISTERS = (
    "KNOWN = {}\n\ndef known(f):\n    KNOWN[f.__name__] = f\n    return f\n\n@known\ndef f(x):\n    return x * FACTOR\n"
)


@pytest.mark.parametrize(
    ("source", "helper", "place"),
    [
        (IN_A_FOLDER, "def scale(x):\n    return x * FACTOR\n", "HELPER/norms.py"),
        (IN_A_REGISTRY, REGISTERS, "HELPER.py"),
    ],
)
def test_the_digest_covers_a_folder_without_init_and_what_is_registered(study, source, helper, place):
    """Python imports both, so an edit of either must make another run."""
    codes = [_code(study, source, helper.replace("FACTOR", factor), place) for factor in ("2", "3", "2")]
    assert codes[0] == codes[2] != codes[1]
