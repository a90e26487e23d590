"""Options that an installed package offers: by its entry point, or because the user names it."""

import importlib
import sys
from pathlib import Path

import pytest

from ablab.code import folders
from ablab.code.find import find_part
from ablab.config import compose
from ablab.config.kinds import outside_parts
from ablab.errors import UserError
from ablab.tasks import identity
from tests.parts.conftest import DYT, NUMBER


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package of a part and its option; returns the package's name."""

    def caches() -> None:
        folders._of_packages.cache_clear()
        folders._confs.cache_clear()

    def install(*, entry_point: bool) -> str:
        name = f"package_{next(NUMBER)}"
        info = f"{name}-1.5.dist-info"
        files = {
            f"{name}/__init__.py": "",
            f"{name}/parts.py": DYT,
            f"{name}/conf/norm/mine.yaml": f"_target_: {name}.parts.DyT\nalpha: 0.25\n",
            f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n",
            f"{info}/top_level.txt": f"{name}\n",
            f"{info}/entry_points.txt": f"[ablab.conf]\nmine = {name}:conf\n" if entry_point else "",
        }
        for place, text in files.items():
            path = tmp_path / "site" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / "study").mkdir()
        monkeypatch.chdir(tmp_path / "study")
        monkeypatch.syspath_prepend(tmp_path / "site")
        importlib.invalidate_caches()
        caches()
        return name

    yield install
    caches()


def test_an_entry_point_is_enough(install):
    name = install(entry_point=True)
    config = compose(["norm=mine"]).config
    part = outside_parts(config)["norm"]
    assert part.code.endswith(f" {name} 1.5")
    assert identity.recipe(config)["norm"] == {"_target_": f"{name}.parts.DyT", "alpha": 0.25, "code": part.code}
    assert list(part.sources()) == [f"{name}/parts.py"]
    assert name not in sys.modules, "options are read, not imported"


def test_a_folder_of_its_name_that_has_no_such_module_hides_no_package(install):
    """As where the package's checkout lies in the current folder: Python does not import from it either."""
    name = install(entry_point=True)
    checkout = Path(name, "src", name)
    checkout.mkdir(parents=True)
    (checkout / "parts.py").write_text("")
    assert outside_parts(compose(["norm=mine"]).config)["norm"].code.endswith(f" {name} 1.5")


def test_without_one_the_package_can_be_named(install, monkeypatch):
    name = install(entry_point=False)
    with pytest.raises(UserError, match="norm=mine: unknown option"):
        compose(["norm=mine"])
    _, named = folders.take_folders([f"hydra.searchpath=[pkg://{name}.conf]"])
    monkeypatch.setenv(folders.VARIABLE, named)
    assert compose(["norm=mine"]).config.norm.kind == f"{name}.parts.DyT"


def test_the_users_own_option_goes_before_that_of_a_package(install, tmp_path):
    install(entry_point=True)
    (tmp_path / "study/conf/norm").mkdir(parents=True)
    (tmp_path / "study/conf/norm/mine.yaml").write_text("kind: scalenorm\nlearn_g: false\n")
    assert compose(["norm=mine"]).config.norm.kind == "scalenorm"


def test_a_package_without_a_version_hides_no_file(tmp_path, monkeypatch):
    """As of a folder of PYTHONPATH: no version stands for what the digest does not see."""
    name = f"package_{next(NUMBER)}"
    package = tmp_path / "elsewhere" / name
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "parts.py").write_text("class Mine:\n    def forward(self, x):\n        return x * 2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    importlib.invalidate_caches()
    assert find_part(f"{name}.parts.Mine").version is None
    (package / "other.py").write_text("class Mine:\n    def forward(self, x):\n        return x * open('g').read()\n")
    with pytest.raises(UserError, match=r"other\.py, line 3: open reads .*g, so that an edit of it would go unseen"):
        find_part(f"{name}.other.Mine")
    (package / "star.py").write_text(f"from {name}.other import *\n\nclass Star(Mine):\n    pass\n")
    with pytest.raises(UserError, match="import \\* hides"):
        find_part(f"{name}.star.Star")
