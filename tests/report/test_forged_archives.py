"""Archives and stores that were forged with care: what was removed is missed, and nothing outside is read."""

import hashlib
import json
import stat
import zipfile
import zlib

import pytest

from ablab.commands.cli import main
from ablab.store.register import REGISTER
from tests.report.test_tampering import made, place

__all__ = ["made", "place"]  # fixtures
pytestmark = pytest.mark.usefixtures("undrawn")


@pytest.fixture
def archive(place, tmp_path, capsys):
    path = tmp_path / "a.zip"
    assert main(["pack", *place.words, f"to={path}", "text=false"]) == 0
    capsys.readouterr()
    return path


class Forged:
    """The files of an archive by name, with an index that fits them when it is written again."""

    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist()}
        self.index = json.loads(self.files.pop("pack.json"))
        self.run = self.index["runs"][0]
        self.study = f"studies/{self.index['name']}/"

    def drop(self, beginning):
        self.files = {name: content for name, content in self.files.items() if not name.startswith(beginning)}

    def write(self, *more):
        """`more`: entries besides, by their description and content."""
        self.index["files"] = {name: hashlib.sha256(content).hexdigest() for name, content in self.files.items()}
        with zipfile.ZipFile(self.path, "w") as archive:
            archive.writestr("pack.json", json.dumps(self.index))
            for name, content in (*self.files.items(), *more):
                archive.writestr(name, content)


def without_files_of_a_run(forged):
    forged.drop(f"runs/{forged.run}/")


def without_a_run(forged):
    without_files_of_a_run(forged)
    forged.index["runs"].remove(forged.run)
    rows = json.loads(forged.files[f"{forged.study}runs.json"])
    rows = [row for row in rows if row["run_id"] != forged.run]
    forged.files[f"{forged.study}runs.json"] = json.dumps(rows).encode()


def without_a_run_and_the_list(forged):
    without_a_run(forged)
    forged.drop(f"{forged.study}runs.json")


def without_the_study(forged):
    forged.drop("studies/")


def without_the_register(forged):
    forged.drop(REGISTER)
    forged.index["stamp"] = None


def with_an_edited_study(forged):
    (name,) = (name for name in forged.files if name.startswith(forged.study) and name.endswith(".yaml"))
    forged.files[name] = forged.files[name].replace(b"greater", b"less")


def with_an_empty_record(forged):
    forged.files[f"runs/{forged.run}/record.json"] = b""


FAULTS = {
    without_files_of_a_run: "runs/RUN: it has no record, and is among the packed runs",
    without_a_run: "runs that had ended are gone: RUN",
    without_a_run_and_the_list: "runs that had ended are gone: RUN",
    without_the_study: "registered.json is gone, and the study was registered on",
    without_the_register: "the register is gone, in which tried was registered",
    with_an_edited_study: "tried.yaml: it is not what was registered",
    with_an_empty_record: "runs/RUN/record.json: cannot be read as Record",
}


@pytest.mark.parametrize("forge", FAULTS, ids=lambda forge: forge.__name__)
def test_what_was_removed_from_an_archive_is_missed(forge, archive, capsys):
    forged = Forged(archive)
    forged.write()
    assert main(["verify", f"archive={archive}"]) == 0
    forge(forged)
    forged.write()
    capsys.readouterr()
    assert main(["verify", f"archive={archive}"]) == 1
    said, err = capsys.readouterr()
    assert FAULTS[forge].replace("RUN", forged.run) in said
    assert "Not all of it holds" in said
    assert "ablab-verify-" not in said + err, "the folder that it was unpacked into is gone by then"


def test_json_that_is_nested_too_deeply_is_one_line(archive, capsys):
    forged = Forged(archive)
    forged.files[f"{forged.study}registered.json"] = b"[" * 100_000
    forged.write()
    assert main(["verify", f"archive={archive}"]) == 2
    assert "JSON in it is nested too deeply to be read" in capsys.readouterr().err


def link(path):
    entry = zipfile.ZipInfo("link")
    entry.external_attr = (stat.S_IFLNK | 0o777) << 16
    return entry, path


def test_lists_of_counts_take_less_than_deflate_makes_of_them(archive):
    with zipfile.ZipFile(archive) as opened:
        evaluations = [info for info in opened.infolist() if "/evaluations/" in info.filename]
        assert evaluations
        for info in evaluations:
            assert info.compress_size < len(zlib.compress(opened.read(info), 9))


def test_a_link_is_refused(archive, capsys):
    forged = Forged(archive)
    forged.files["link"] = b"/etc/passwd"
    forged.write()
    with zipfile.ZipFile(archive) as whole:
        contents = [(info, whole.read(info)) for info in whole.infolist() if info.filename != "link"]
    with zipfile.ZipFile(archive, "w") as again:
        for entry in (*contents, link(b"/etc/passwd")):
            again.writestr(*entry)
    assert main(["verify", f"archive={archive}"]) == 2
    assert "link is a link; allowed: files" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_entries_of_one_name_are_refused(archive, capsys):
    forged = Forged(archive)
    forged.write((f"runs/{forged.run}/record.json", b"{}"))
    assert main(["verify", f"archive={archive}"]) == 2
    assert "it has two entries of one name" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [
        ("runs", ["/somewhere/runs/r018547448bb"], "runs"),
        ("runs", ["../r018547448bb"], "runs"),
        ("runs", ["r018547448bb", "r018547448bb"], "a run is listed twice"),
        ("name", "tried\nAll of it holds.", "name"),
        ("name", "../../tried", "name"),
    ],
)
def test_an_index_that_leads_out_or_speaks_for_us_is_refused(key, value, reason, archive, capsys):
    forged = Forged(archive)
    forged.index[key] = value
    forged.write()
    assert main(["verify", f"archive={archive}"]) == 2
    said, err = capsys.readouterr()
    assert "not an archive of ablab pack" in err
    assert reason in err
    assert not said


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_a_damaged_archive_is_one_line(method, archive, capsys):
    """Every byte of the first file's compressed content, one after another."""
    forged = Forged(archive)
    with zipfile.ZipFile(archive, "w", method) as whole:
        whole.writestr("pack.json", json.dumps(forged.index))
    written = archive.read_bytes()
    begin = 30 + len("pack.json")
    for at in range(begin, begin + 60, 3):
        archive.write_bytes(written[:at] + bytes([written[at] ^ 0xFF]) + written[at + 1 :])
        assert main(["verify", f"archive={archive}"]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith(f"error: {archive}: ")


@pytest.mark.parametrize("kind", ["evaluations", "curves"])
def test_a_file_that_passes_itself_off_as_another_is_no_result(kind, place, capsys):
    """The register would be asked about the other, which nobody has edited."""
    planned = place.study.cells[0].planned
    key, own = {
        "evaluations": ("evaluation_id", planned.evaluation_id),
        "curves": ("curve_id", planned.curve_id),
    }[kind]
    path = place.folder().path / kind / f"{own}.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, key: "0" * len(own)}))
    capsys.readouterr()
    code = main(["report", *place.words])
    said = "".join(capsys.readouterr())
    assert f"says that it is {'0' * len(own)}" in said
    assert code != 0 or "Note:" in said
    assert main(["verify", *place.words]) != 0


def test_a_damaged_record_stops_its_study_with_a_remedy_that_works(place, capsys):
    folder = place.folder()
    path = folder.path / "record.json"
    path.write_text(path.read_text()[:300])
    assert main(["study", *place.words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(f"; ablab rm run={folder.run_id} sets it aside, and it is trained anew")
    assert main(["rm", f"run={folder.run_id}", f"outputs={place.study.outputs}"]) == 0
    assert main(["study", *place.words]) == 0


def _relisted(forged, change):
    place = f"{forged.study}runs.json"
    forged.files[place] = json.dumps(change(json.loads(forged.files[place]))).encode()
    forged.write()


def _twice(rows):
    """A run in the place of another seed's, as whoever dislikes that one would list it."""
    one, other = [row for row in rows if row["arm"] == rows[0]["arm"]][:2]
    return [{**row, "run_id": one["run_id"]} if row is other else row for row in rows]


def _swapped(rows):
    first, *_, last = dict.fromkeys(row["arm"] for row in rows)
    names = {first: last, last: first}
    return [{**row, "arm": names.get(row["arm"], row["arm"])} for row in rows]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_twice, "is listed as seed"),
        (_swapped, "has settings that were not registered for it"),
        (lambda rows: [{**row, "run_id": f"../runs/{row['run_id']}"} for row in rows], "cannot be read as the list"),
        (lambda rows: [1], "cannot be read as the list"),
        (lambda rows: {}, "cannot be read as the list"),
    ],
    ids=["twice", "swapped", "outside", "numbers", "no list"],
)
def test_a_list_of_runs_that_was_edited_is_noticed(archive, tmp_path, capsys, change, said):
    """The register does not have the list, but what was registered of its arms, and each run has its seed."""
    forged = Forged(archive)
    _relisted(forged, change)
    assert main(["verify", f"archive={archive}"]) == 1
    assert said in capsys.readouterr().out
    theirs = tmp_path / "theirs"
    with zipfile.ZipFile(archive) as packed:
        packed.extractall(theirs)
    code = main(["report", f"experiment={forged.index['name']}", f"outputs={theirs}", "resamples=1000"])
    out, err = capsys.readouterr()
    assert said in (out if code == 0 else err)
    assert err.count("\n") == (code != 0)
    if code == 0:
        (report,) = (theirs / "reports").iterdir()
        assert all(claim["exploratory"] for claim in json.loads((report / "report.json").read_text())["claims"])


def test_names_of_files_write_no_lines_of_a_verification(archive, capsys):
    forged = Forged(archive)
    forged.files["studies/a\nAll that was checked holds.\nb/registered.json"] = b"[]"
    forged.write()
    assert main(["verify", f"archive={archive}"]) == 2
    said, err = capsys.readouterr()
    assert not said
    assert err.count("\n") == 1


def test_a_name_that_is_no_text_is_damage(archive, capsys):
    with zipfile.ZipFile(archive, "a") as whole:
        whole.writestr("reports/é/report.md", "")
    archive.write_bytes(archive.read_bytes().replace("é".encode(), b"\xc3\x28"))
    assert main(["verify", f"archive={archive}"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {archive}: ")
