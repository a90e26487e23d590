"""A checkpoint that was damaged is noticed, and the one before it computes the same numbers again."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from ablab.errors import UserError
from ablab.files import sha256
from ablab.store.run_folder import LAST, PREVIOUS
from ablab.transformer.training.checkpoints import Checkpoints, _keep, load_last
from ablab.transformer.training.selection import Selection
from ablab.transformer.training.state import TrainingState
from ablab.transformer.translation.validation import TranslationValidation as Validation

STEPS = 5


def made(folder) -> Checkpoints:
    """The checkpoints after five validated steps, of which the mean of three may be selected."""
    checkpoints, state = Checkpoints(folder, Selection("averaged", "bleu", 3, 1), None), TrainingState()
    for state.step in range(1, STEPS + 1):
        state.validations.append(Validation(state.step, 1.0, float(state.step)))
        checkpoints.save({"w": torch.full((4_000,), float(state.step))}, {"lr": 0.1}, state)
    return checkpoints


def flipped(path, at: float) -> None:
    """Flip one bit, at this share of the file."""
    content = bytearray(path.read_bytes())
    content[int(at * len(content))] ^= 4
    path.write_bytes(content)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    made(folder)
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "checkpoints")


def test_both_states_and_all_that_they_need_are_there(folder):
    assert load_last(folder)["course"]["step"] == STEPS
    (folder / LAST).unlink()
    assert load_last(folder)["course"]["step"] == STEPS - 1
    assert sorted(path.name for path in folder.glob("step_*")) == [f"step_{n}.safetensors" for n in (2, 3, 4, 5)]


DAMAGE = {
    "empty": lambda path: path.write_bytes(b""),
    "cut in the middle": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "cut at the end": lambda path: path.write_bytes(path.read_bytes()[:-1]),
    "another file": lambda path: path.write_text("it is a text"),
    "a zip of nothing": lambda path: path.write_bytes(b"PK\5\6" + bytes(18)),
    **{f"a bit at {share:.0%}": lambda path, share=share: flipped(path, share) for share in (0.1, 0.5, 0.8)},
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_state_falls_back_to_the_one_before_and_is_said(damage, folder):
    DAMAGE[damage](folder / LAST)
    said = []
    assert load_last(folder, say=said.append)["course"]["step"] == STEPS - 1
    (line,) = said
    assert line.startswith(f"{folder / LAST} is damaged (")
    assert line.endswith(": training goes on from the state before it, step 4")
    assert "\n" not in line
    DAMAGE[damage](folder / PREVIOUS)
    with pytest.raises(UserError, match=r"last.pt is damaged .*previous.pt is damaged .*allowed: rerun=true") as none:
        load_last(folder)
    assert "\n" not in str(none.value)


def test_no_flipped_bit_goes_unnoticed(folder):
    """Or it stands where it means nothing: between the parts of the archive."""
    written, content = torch.load(folder / LAST, weights_only=True), (folder / LAST).read_bytes()
    digest = sha256(folder / LAST)
    for place in range(97):
        (folder / LAST).write_bytes(content)
        flipped(folder / LAST, place / 97)
        found = load_last(folder)
        if found["course"]["step"] == STEPS:
            assert torch.equal(found["model"]["w"], written["model"]["w"])
            assert found.pop("sha256") != digest
            assert {**found, "model": None} == {**written, "model": None}


@pytest.mark.parametrize("damage", ["gone", "cut", "a bit"])
def test_a_damaged_candidate_counts_as_a_damaged_state(damage, folder):
    path = folder / f"step_{STEPS}.safetensors"
    path.unlink() if damage == "gone" else flipped(path, 0.6) if damage == "a bit" else path.write_bytes(b"x")
    said = []
    assert load_last(folder, say=said.append)["course"]["step"] == STEPS - 1
    assert f"needs step_{STEPS}.safetensors, which is {'gone' if damage == 'gone' else 'damaged'}" in said[0]


def test_the_damaged_state_never_takes_the_place_of_the_whole_one(folder):
    flipped(folder / LAST, 0.5)
    checkpoints = Checkpoints(folder, Selection("averaged", "bleu", 3, 1), None)
    state = TrainingState.from_dict(checkpoints.load_last()["course"], Validation)
    assert state.step == STEPS - 1
    before = (folder / PREVIOUS).read_bytes()
    state.step = STEPS
    state.validations.append(Validation(STEPS, 1.0, 5.0))
    checkpoints.save({"w": torch.full((4_000,), 5.0)}, {"lr": 0.1}, state)
    assert (folder / PREVIOUS).read_bytes() == before
    assert load_last(folder)["course"]["step"] == STEPS
    assert checkpoints.choose(state, lambda _: Validation(STEPS, 1.0, 9.0)).steps == [3, 4, 5]


def test_a_state_of_before_knows_no_digests(folder):
    content = torch.load(folder / LAST, weights_only=True)
    del content["candidates"]
    torch.save(content, folder / LAST)
    assert load_last(folder)["course"]["step"] == STEPS


def test_a_kill_between_the_two_names_of_a_state_leaves_nothing_over(folder):
    """Then both names are of one file already, and a rename of one name to the other does nothing."""
    (folder / PREVIOUS).unlink()
    (folder / PREVIOUS).hardlink_to(folder / LAST)
    before = {path.name for path in folder.iterdir()}
    _keep(folder / LAST, folder / PREVIOUS)
    assert {path.name for path in folder.iterdir()} == before


def test_without_hard_links_it_is_copied(tmp_path, monkeypatch):
    def refused(*_, **__):
        raise OSError("no links here")

    monkeypatch.setattr("os.link", refused)
    made(tmp_path)
    shutil.copy(tmp_path / PREVIOUS, tmp_path / LAST)
    assert load_last(tmp_path)["course"]["step"] == STEPS - 1


def test_the_digest_of_the_choice_is_that_of_its_file(folder):
    from ablab.files import sha256

    checkpoints = Checkpoints(folder, Selection("averaged", "bleu", 3, 1), None)
    state = TrainingState.from_dict(checkpoints.load_last()["course"], Validation)
    chosen = checkpoints.choose(state, lambda _: Validation(STEPS, 1.0, 9.0))
    assert chosen.sha256 == sha256(folder / "selected.safetensors")
    assert load_file(folder / "selected.safetensors")["w"][0] == 4
