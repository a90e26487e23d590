"""The reference pages leave nothing out: verbs, options, settings, exit codes, and the files of a run."""

import re
import tarfile
from pathlib import Path

import pytest

from ablab import errors
from ablab.config.groups import default_choices, groups
from ablab.config.keys import all_fields
from ablab.store.run_folder import RunFolder
from ablab.study.experiment import Experiment
from ablab.study.loop import DeclaredLoop
from ablab.tasks.command.declared import CommandBlock
from ablab.tasks.verbs import VERBS, options_of
from benchmarks.reference import settings_page, verbs_page
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
STORE = ROOT / "tests" / "stores" / "schema_2.tar.xz"


def sections(page, level):
    """The text below each heading of a level or above."""
    parts = re.split(rf"^#{{2,{level}}} (.+)\n", page, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


@pytest.fixture(scope="module")
def settings():
    return settings_page()


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_stands_there_with_each_of_its_options(verb):
    section = sections(verbs_page(), 2)[verb]
    assert all(re.search(rf"^{name} ", section, re.MULTILINE) for name in options_of(verb).model_fields)


def test_the_overview_has_a_row_of_every_verb_and_of_all_options():
    verbs = re.findall(r"^\| (`.*?) \|", sections(PAGE, 2)["Verbs"], re.MULTILINE)
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+) \|$", sections(PAGE, 3)["Options"], re.MULTILINE))
    listed = {group: re.findall(r"`(\w+)`", row) for group, row in rows.items()}
    assert set(", ".join(verbs).replace("`", "").split(", ")) == set(VERBS)
    assert {group: sorted(options) for group, options in listed.items()} == groups()
    assert {group: options[0] for group, options in listed.items()}.items() <= default_choices().items()


def test_every_exit_code_stands_there():
    codes = {value for name, value in vars(errors).items() if name.isupper() and isinstance(value, int)}
    codes.discard(errors.MOST_REPEATED)
    rows = re.findall(r"^\| (\d+) \|", sections(verbs_page(), 2)["Exit codes"], re.MULTILINE)
    assert {int(code) for code in rows} == codes


def test_every_option_of_every_group_stands_there(settings):
    headings = sections(settings, 3)
    assert {f"{group}={option}" for group, options in groups().items() for option in options} <= set(headings)


def test_every_field_stands_there_with_its_role(settings):
    found = {}
    for heading, section in sections(settings, 3).items():
        place = "" if heading == "Without a group" else f"{heading.partition('=')[0]}."
        for name, role in re.findall(r"^\| `(\w+)` \|.*\| (recipe|evaluation|runtime) \|", section, re.MULTILINE):
            found.setdefault(f"{place}{name}", set()).add(role)
    fields = {name: role.value for name, role in all_fields().items() if not name.endswith(".kind")}
    assert set(fields) <= set(found)
    # A corpus may identify its text by a path that is no part of the recipe of another corpus.
    wrong = [name for name, role in fields.items() if not name.startswith("data.") and found[name] != {role}]
    assert not wrong


def test_what_a_field_takes_is_never_left_out(settings):
    rows = [re.split(r"(?<!\\)\|", line) for line in settings.splitlines() if line.startswith("| `")]
    assert rows
    assert not [row[1] for row in rows if not row[3].strip()]
    (rerun,) = [row[3] for row in rows if row[1].strip() == "`rerun`"]
    assert all(f"`{value}`" in rerun for value in ("true", "false", "stale"))


def test_every_file_that_runs_leave_stands_in_the_table():
    table = sections(PAGE, 2)["Files of a run"]
    with tarfile.open(STORE) as store:
        inside = [f"/{name}".split("/runs/", 1)[1] for name in store.getnames() if "/runs/" in f"/{name}"]
    paths = [place.split("/") for place in inside]
    left = {path[1] for path in paths if len(path) > 1 and not path[0].startswith(".")}
    assert {"record.json", "checkpoints"} <= left
    run = RunFolder(Path("outputs/runs/r1"))
    places = [getattr(run, name) for name, of in vars(RunFolder).items() if isinstance(of, property)]
    left |= {place.name for place in places if isinstance(place, Path) and place.parent == run.path}
    assert not [name for name in left if f"`{name}" not in table]


def test_every_key_of_a_file_is_told():
    told = sections(PAGE, 2)["Experiment files"]
    rows = re.findall(r"^\| (`.*?) \|", told, re.MULTILINE)
    assert {key for row in rows for key in re.findall(r"`(\w+)`", row)} == set(Experiment.model_fields)
    more = set(CommandBlock.model_fields) | (set(DeclaredLoop.model_fields) - set(Experiment.model_fields))
    assert more <= set(re.findall(r"`(\w+)`", told))
