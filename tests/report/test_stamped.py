"""What only a stamp can show, and what verify says of a study that is not as it was registered: a line names each."""

import json
import shutil

import pytest

from ablab.commands.cli import main
from ablab.store.chain import Chain
from ablab.store.register import file_digest
from ablab.study.definition import define
from ablab.study.extending import close
from ablab.study.ledger import register
from tests.report.conftest import typed
from tests.report.synthetic import fill
from tests.report.test_extending import EXPERIMENT as ADDING
from tests.report.test_extending import swept
from tests.report.test_tampering import ERRORS, EXPERIMENT, Place
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


def test_an_older_store_that_was_put_back_lacks_runs_which_are_named_and_a_stamp_shows_it(tmp_path, verified):
    """Six of nine runs are gone, from the register too."""
    place = Place(tmp_path)
    place.declare(TWO.replace("[0, 0.1]", "[0, 0.1, 0.2]"))
    errors = {**ERRORS, "layerdrop=0.2": 0.4}
    register(place.study)
    early = {(arm, seed) for arm in errors for seed in (2, 3)}
    fill((place.words[0],), errors, outputs=place.outputs, missing=early)
    shutil.copytree(place.outputs, tmp_path / "copy")
    fill((place.words[0],), errors, outputs=place.outputs)
    stamp = stamp_of(place)
    shutil.rmtree(place.outputs)
    shutil.move(tmp_path / "copy", place.outputs)
    missing = (
        "registered runs that are not there, and were not given up: layerdrop=0, seeds 2, 3; "
        "layerdrop=0.1, seeds 2, 3; layerdrop=0.2, seeds 2, 3"
    )
    for words in (place.words, (packed(place),)):
        code, out = verified(*words)
        assert (code, f"{missing} " in out, "holds, with 1 note above." in out) == (0, True, True), out
        code, out = verified(*words, f"stamp={stamp}")
        assert (code, "this register never had it" in out) == (1, True), out


def test_runs_that_are_gone_do_not_hold(place, verified):
    """The register knows that they had ended."""
    for number in (1, 2):
        shutil.rmtree(place.folder(number).path)
    gone = f"runs that had ended are gone: {place.folder(1).run_id}, {place.folder(2).run_id}"
    code, out = verified(*place.words)
    assert (code, gone in out, "registered runs that are not there" in out) == (1, True, True), out


def test_an_end_of_the_register_that_was_cut_does_not_hold_where_a_report_bears_its_stamp(place, verified):
    place.report()
    stamp = stamp_of(place)
    place.register.write_text("".join(place.register.read_text().splitlines(keepends=True)[:-2]))
    code, out = verified(*place.words)
    assert (code, f"an earlier report of this name bears register {stamp}, which" in out) == (1, True), out


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
    assert f"ablab verify {archive} stamp={stamp}" in out
    code, out = verified(archive, f"stamp={line}")
    assert (code, f"stamp {stamp} of {line}: the register up to line" in out) == (0, True), out
    code, out = verified(archive, f"stamp={request}")
    assert (code, "a request to a time authority; allowed: its answer" in out) == (2, True), out


def test_what_is_verified_is_there_as_data_too(place, capsys):
    stamp = stamp_of(place)
    place.declare(EXPERIMENT)
    capsys.readouterr()
    assert main(["verify", *place.words, f"stamp={stamp}", "format=json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["stamp"] == stamp
    assert data["held"] == [{"stamp": f"stamp {stamp}", "line": int(stamp.split(":")[0]), "later": 0}]
    assert len(data["notes"]) == 1


def test_a_store_without_a_register_has_no_stamp(tmp_path, verified):
    code, out = verified(f"outputs={tmp_path}", "stamp=2:3f9a1c0d2b4e5f60")
    assert (code, "it has no register.jsonl" in out) == (2, True), out


SECOND = "layerdrop=0.1 level with layerdrop=0 in test_bleu, margin 2"
ADDED = "the claim came, or was changed, after the study's first launch"
DEPARTED = {
    "nothing": (TWO, (), []),
    "a claim dropped": (EXPERIMENT, (), [f"no longer in the file, and judged as it was registered: {SECOND}"]),
    "a claim changed": (
        TWO.replace("margin: 2", "margin: 9"),
        (),
        [f"no longer in the file, and judged as it was registered: {SECOND}", f"margin 9: {ADDED}"],
    ),
    "a claim added": (
        TWO.replace("}]", "}, {arm: layerdrop=0.1, expect: less}]"),
        (),
        [f"below layerdrop=0 in test_bleu: {ADDED}"],
    ),
    "a seed left out": (TWO, ("seed=1,2",), ["seeds 3 of the first launch are left out"]),
    "an arm left out": (
        TWO.replace("[0, 0.1]", "[0, 0.2]").replace("layerdrop=0.1", "layerdrop=0.2"),
        (),
        ["arms of the first launch are left out: layerdrop=0.1"],
    ),
    "settings changed": (
        TWO.replace("logger=none]", "logger=none, norm=post]"),
        (),
        ["settings (placement.kind) differ from those of"],
    ),
}


@pytest.mark.parametrize("how", DEPARTED)
def test_what_departs_from_the_registration_is_named(how, place, verified):
    content, words, notes = DEPARTED[how]
    place.declare(content)
    study = (*place.words, *words)
    fill((place.words[0], *words), {**ERRORS, "layerdrop=0.2": 0.4}, outputs=place.outputs)
    code, out = verified(*study)
    assert code == 0
    for note in notes:
        assert f"{note}" in out, out
    assert ("All that was checked holds. " in out) == (not notes), out


def test_runs_that_are_given_up_set_aside_or_made_again_are_named(place, verified):
    place.declare(TWO.replace("[1, 2, 3]", "[1, 2, 3, 4]"))
    register(place.study)
    close(place.study, "the machine is gone")
    place.folder(0).set_aside()
    fill((place.words[0],), ERRORS, outputs=place.outputs, missing={(arm, 4) for arm in ERRORS})
    shutil.rmtree(place.folder(1).path)
    fill((place.words[0],), ERRORS, outputs=place.outputs, missing={(arm, 4) for arm in ERRORS})
    said = (
        "2 runs were given up on 20",
        f"runs that had ended were set aside (rerun or rm) and trained again: {place.folder(0).run_id}",
        f"runs that had ended were deleted and trained again: {place.folder(1).run_id}",
    )
    for words in (place.words, (packed(place),)):
        code, out = verified(*words)
        assert code == 0, out
        for line in said:
            assert line in out, out
        assert "registered runs that are not there" not in out
        assert ": the machine is gone" in out


def test_an_archive_misses_no_runs_of_a_study_that_was_not_packed(place, verified, tmp_path):
    """Its registration alone is packed, since it may have claimed about the same runs."""
    (tmp_path / "other.yaml").write_text(TWO.replace("[0, 0.1]", "[0, 0.1, 0.3]"))
    register(define((f"experiment={tmp_path / 'other.yaml'}", place.words[1])))
    code, out = verified(packed(place))
    assert (code, "registered runs that are not there" in out) == (0, False), out


def test_an_archive_says_which_claims_it_reports_and_did_not_register(place, verified):
    place.declare(TWO.replace("margin: 2", "margin: 9"))
    assert typed(*place.words, "resamples=1000")[0] == 0
    code, out = verified(packed(place))
    added = "layerdrop=0.1 level with layerdrop=0 in test_bleu, margin 9"
    assert (code, f"tried: claims reported, and not registered at the first: {added}" in out) == (0, True), out
    register(place.study)
    out = verified(packed(place, "text=false"))[1]
    assert f"tried: claims registered at a later launch, and not registered at the first: {added}" in out
    assert f"tried: claims registered at the first launch, and not registered at a later launch: {SECOND}" in out


def test_an_archive_without_a_study_says_that_nothing_was_registered(place, verified):
    archive = place.file.parent / "r.zip"
    runs = f"runs={place.folder(0).run_id},{place.folder(3).run_id}"
    assert main(["pack", runs, f"outputs={place.outputs}", f"to={archive}"]) == 0
    code, out = verified(f"archive={archive}")
    said = "nothing was registered: no claim about these runs was fixed before them"
    assert (code, said in out) == (0, True), out


def test_a_run_that_a_path_names_is_held_to_the_register_of_its_own_store(place, tmp_path, verified, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where there is no folder of outputs
    code, out = verified(f"run={place.folder().path}", f"stamp={stamp_of(place)}")
    assert (code, "is as it was then; 0 lines came after by then 1 of 1 run had ended" in out) == (0, True), out
    shutil.copytree(place.outputs, tmp_path / "other")
    runs = f"runs={place.folder().path},{tmp_path / 'other' / 'runs' / place.folder(1).run_id}"
    code, out = verified(runs, f"stamp={stamp_of(place)}")
    assert (code, "stamp=: the runs are in 2 stores; allowed: with runs of one store" in out) == (2, True), out


def test_a_study_that_adds_seeds_departs_from_nothing(tmp_path, verified):
    """Its claims are settled before all seeds that were registered have been trained."""
    (tmp_path / "seq.yaml").write_text(ADDING.format(to=6, more="", expect="greater"))
    words = (f"experiment={tmp_path / 'seq.yaml'}", f"outputs={tmp_path / 'outputs'}")
    _, said = swept(words)
    begun = Chain.of(tmp_path / "outputs").up_to(2)
    assert f"2 claims registered; stamp: register {begun.stamp}" in said
    assert (begun.ended, len(begun.of_study("seq", "registered"))) == (set(), 1)
    archive = tmp_path / "a.zip"
    assert main(["pack", *words, f"to={archive}", "text=false"]) == 0
    for each in (words, (f"archive={archive}",)):
        code, out = verified(*each)
        assert (code, "All that was checked holds. No stamp" in out) == (0, True), out
