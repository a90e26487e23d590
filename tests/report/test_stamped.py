"""What only a stamp can show."""

import json
import shutil

import pytest

from ablab.cli import main
from ablab.store.chain import Chain
from ablab.store.register import file_digest
from ablab.study.ledger import register
from tests.report.test_tampering import EXPERIMENT, Place
from tests.store.test_stamps import rechained

pytestmark = pytest.mark.usefixtures("undrawn")

UNSTAMPED = "No stamp was given. Whoever can write the store can write its register anew; only a stamp that others hold"
CLAIMS = "claims: [{arm: layerdrop=0.1, expect: greater}"
TWO = EXPERIMENT.replace(CLAIMS, f"{CLAIMS}, {{arm: layerdrop=0.1, expect: equal, margin: 2}}")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = Place(tmp_path_factory.mktemp("made"))
    place.declare(TWO)
    place.launch()
    return place.file.parent


@pytest.fixture
def place(made, tmp_path):
    shutil.copytree(made, tmp_path / "place")
    return Place(tmp_path / "place")


@pytest.fixture
def verified(capsys):
    """Code and output of verify."""

    def verified(*words):
        capsys.readouterr()
        code = main(["verify", *map(str, words)])
        captured = capsys.readouterr()
        return code, " ".join((captured.out + captured.err).split())

    return verified


def stamp_of(place):
    return Chain.of(place.outputs).stamp


def packed(place, *words):
    archive = place.file.parent / "a.zip"
    assert main(["pack", *place.words, f"to={archive}", *words]) == 0
    return f"archive={archive}"


def made_anew(place, old, new):
    """Edit the registration, and then the register so that it fits: all that a forger needs to do."""
    path = place.study.folder / "registered.json"
    before, text = file_digest(path), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))

    def change(entries):
        for entry in entries:
            entry["digest"] = file_digest(path) if entry.get("digest") == before else entry.get("digest")

    place.register.write_bytes(rechained(place.register.read_bytes(), change))
    place.declare(TWO.replace("margin: 2", "margin: 9"))


def test_a_registration_that_was_edited_with_its_register_is_shown_by_a_stamp_alone(place, verified):
    stamp = stamp_of(place)
    assert verified(*place.words, f"stamp={stamp}")[0] == 0
    made_anew(place, '"margin": 2.0', '"margin": 9.0')
    assert stamp_of(place) != stamp
    for words in (place.words, (packed(place),)):
        code, out = verified(*words)
        assert (code, "All that was checked holds. " + UNSTAMPED in out) == (0, True), out
        code, out = verified(*words, f"stamp={stamp}")
        said = f"stamp {stamp}: this register never had it: it was cut, replaced or written anew since"
        assert (code, said in out, UNSTAMPED in out) == (1, True, False), out
    assert place.report() == []  # nor can a report know it


def test_results_that_were_edited_with_their_register_are_shown_by_a_stamp_alone(place, verified):
    stamp = stamp_of(place)
    record = place.folder().path / "record.json"
    before = file_digest(record)
    record.write_text(record.read_text().replace('"reason": "', '"reason": "not '))
    change = place.register.read_text().replace(before, file_digest(record)).encode()
    place.register.write_bytes(rechained(change, lambda entries: None))
    assert verified(*place.words)[0] == 0
    assert verified(*place.words, f"stamp={stamp}")[0] == 1


def test_a_stamp_says_what_there_was_of_a_study_by_then(tmp_path, verified):
    """One between registration and results shows which came first."""
    place = Place(tmp_path)
    register(place.study)
    first = stamp_of(place)
    place.launch()
    later = len(Chain.of(place.outputs).digests) - 2
    for words in (place.words, (packed(place),), (f"outputs={place.outputs}",)):
        code, out = verified(*words, f"stamp={first}")
        assert code == 0
        assert f"stamp {first}: the register up to line 2 is as it was then; {later} lines came after" in out
        assert "by then tried was registered, and 0 of 6 runs had ended" in out
    begun = f"stamp=1:{Chain.of(place.outputs).digests[0]}"
    assert "by then tried was not registered, and 0 of 6 runs had ended" in verified(*place.words, begun)[1]
    place.declare(TWO)
    register(place.study)
    assert "by then tried was registered (1 of 2 times), and 0 of 6" in verified(*place.words, f"stamp={first}")[1]


def test_a_study_says_the_stamp_from_its_registration_on(tmp_path, capsys):
    place = Place(tmp_path)
    assert main(["study", *place.words]) == 0
    assert "Stamp:" not in capsys.readouterr().out
    register(place.study)
    assert main(["study", *place.words]) == 0
    assert f"\nStamp: register {stamp_of(place)}\n" in capsys.readouterr().out


def test_each_form_of_a_stamp_that_pack_offers_is_checked(place, verified, capsys):
    archive, stamp = packed(place), stamp_of(place)
    out = capsys.readouterr().out
    line, request = (place.file.parent / name for name in ("a.stamp", "a.tsq"))
    assert line.read_text() == f"Ablab-Register: {stamp}\n"
    assert f"  git commit --allow-empty -m 'Results of a' -m 'Ablab-Register: {stamp}' && git push\n" in out
    assert f"--data-binary @{request} https://" in out
    assert f"  ots stamp {line}\n" in out
    assert f"ablab verify archive=a.zip stamp={stamp}" in out
    code, out = verified(archive, f"stamp={line}")
    assert (code, f"stamp {stamp} of {line}: the register up to line" in out) == (0, True), out
    code, out = verified(archive, f"stamp={request}")
    assert (code, "a request to a time authority; allowed: its answer" in out) == (2, True), out


def test_what_is_verified_is_there_as_data_too(place, capsys):
    stamp = stamp_of(place)
    capsys.readouterr()
    assert main(["verify", *place.words, f"stamp={stamp}", "format=json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["stamp"] == stamp
    assert data["held"] == [{"stamp": f"stamp {stamp}", "line": int(stamp.split(":")[0]), "later": 0}]


def test_a_store_without_a_register_has_no_stamp(tmp_path, verified):
    code, out = verified(f"outputs={tmp_path}", "stamp=2:3f9a1c0d2b4e5f60")
    assert (code, "it has no register.jsonl" in out) == (2, True), out
