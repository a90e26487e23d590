"""Checkpoints of a run: the last state and the one before it, candidate weights, and the selected weights.

A resume reads nothing that it has not verified: a state by the checksums in its file, a candidate by the digest in the
state. Where the last state is damaged, training goes on from the one before, and computes the same numbers again.
"""

import os
import shutil
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from ablab.code.code import Code
from ablab.errors import UserError
from ablab.files import sha256
from ablab.files.disk import publish, replacing
from ablab.store.run_folder import CANDIDATE, LAST, PREVIOUS, SELECTED
from ablab.text import Say
from ablab.transformer.training.selection import Selection, Weights, average
from ablab.transformer.training.state import TrainingState
from ablab.transformer.training.validation import Validation


@dataclass(frozen=True)
class Choice:
    """The selected weights, the steps they average, their validation, and the SHA-256 of the file that holds them."""

    weights: Weights
    steps: list[int]
    validation: Validation
    sha256: str


@dataclass
class Checkpoints:
    """The checkpoint folder of a run, and the rule that selects weights. Files hold only tensors and plain data.

    `seconds_apart`: the longest time between saves, in seconds; None: no limit, saves follow validations and snapshots.
    `code`: that trains. `candidates`: by step, the SHA-256 of each file of weights that the last state may need.
    """

    folder: Path
    selection: Selection
    seconds_apart: float | None
    code: Code = field(default_factory=lambda: Code(""))
    candidates: dict[int, str] = field(default_factory=dict, init=False)
    _is_whole: bool = field(default=False, init=False)

    def is_due(self, step: int, seconds: float) -> bool:
        """Return whether to save after this step, `seconds` after the last save, even without a validation."""
        return self.selection.is_snapshot(step) or (self.seconds_apart is not None and seconds >= self.seconds_apart)

    def save(self, model: Mapping[str, Tensor], optimizer: Mapping[str, Any], state: TrainingState) -> None:
        """Write the weights if they may be selected, then the last state, then delete weights no longer needed.

        The order matters: after a kill in between, training continues from the earlier state, and may need its weights.
        So does a resume that finds the last state damaged.
        """
        before = self.candidates
        steps = self.selection.worth_keeping(state.validations, state.step)
        known = {step: digest for step, digest in before.items() if step in steps}
        if state.step in steps:
            known[state.step] = self._write_weights(self._of_step(state.step), model)
        self.save_last(model, optimizer, state, known)
        self.candidates = known
        for path in set(self.folder.glob(f"{CANDIDATE}*")) - {self._of_step(step) for step in {*before, *known}}:
            path.unlink()

    def save_last(
        self,
        model: Mapping[str, Tensor],
        optimizer: Mapping[str, Any],
        state: TrainingState,
        candidates: Mapping[int, str],
    ) -> None:
        """Write all that a resume needs; random streams are functions of the step and need no state.

        The state before it is kept, unless it is known to be damaged.
        """
        content = {
            "model": dict(model),
            "optimizer": dict(optimizer),
            "course": state.as_dict(),
            "definitions": dict(self.code.definitions),
            "components": dict(self.code.components),
            "candidates": dict(candidates),
        }
        with replacing(self.folder / LAST) as temporary:
            with temporary.open("wb") as file:  # a file of Python's tells why it cannot be written
                torch.save(content, file)
            if self._is_whole:
                _keep(self.folder / LAST, self.folder / PREVIOUS)
        self._is_whole = True

    def load_last(self) -> dict[str, Any] | None:
        """Return the last whole state, or None if there is none at all; UserError if none of them can be read."""
        content, faults = _whole_state(self.folder, mapped=False)
        if content is not None:
            self.candidates, self._is_whole = dict(content.get("candidates", {})), not faults
        return content

    def choose(self, state: TrainingState, validate: Callable[[Weights], Validation]) -> Choice:
        """Write and return the selected weights; `validate` scores averaged weights, which have no validation yet."""
        known = {validation.step: validation for validation in state.validations}
        chosen: tuple[Weights, list[int], Validation] | None = None
        for steps in self.selection.candidates(state.validations, state.step):
            weights = average(load_file(self._of_step(step)) for step in steps)
            validation = validate(weights) if len(steps) > 1 else known[steps[0]]
            if chosen is None or validation.better_than(chosen[2], self.selection.monitor):
                chosen = weights, steps, validation
        assert chosen is not None, "every selection has a candidate"
        return Choice(*chosen, sha256=self._write_weights(self.folder / SELECTED, chosen[0]))

    def _of_step(self, step: int) -> Path:
        return _of_step(self.folder, step)

    def _write_weights(self, path: Path, weights: Mapping[str, Tensor]) -> str:
        """Write weights and return the file's SHA-256, taken before it has its name."""
        with replacing(path) as temporary:
            save_file({name: tensor.detach().cpu().contiguous() for name, tensor in weights.items()}, temporary)
            return sha256(temporary)


def load_last(folder: Path, *, mapped: bool = False, say: Say = lambda _: None) -> dict[str, Any] | None:
    """Return the last whole state in a folder, or None; `mapped`: its tensors are read from disk only on use.

    "sha256" is the digest of the state's file. `say` is told of a damaged one. UserError if there are states, and none
    is whole.
    """
    content, faults = _whole_state(folder, mapped=mapped)
    if content is not None and faults:
        say(f"{faults[0]}: training goes on from the state before it, step {content['course']['step']:,}")
    if content is not None:
        last = folder / LAST
        content["sha256"] = sha256(folder / PREVIOUS if faults or not last.exists() else last)
    return content


def _whole_state(folder: Path, *, mapped: bool) -> tuple[dict[str, Any] | None, list[str]]:
    """Return the last whole state, or None if there is none at all, and what is wrong with later ones."""
    faults: list[str] = []
    for path in (folder / LAST, folder / PREVIOUS):
        if path.exists():
            content, fault = _read(path, mapped=mapped)
            if content is not None:
                return content, faults
            faults.append(f"{path} {fault}")
    if faults:
        raise UserError(f"{'; '.join(faults)}; allowed: rerun=true, which trains the run anew")
    return None, []


def _read(path: Path, *, mapped: bool) -> tuple[dict[str, Any] | None, str]:
    """Return a state whose checksums and candidates are right, or None and what is wrong."""
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()  # torch does not compare the checksums that it writes
        if damaged is not None:
            return None, f"is damaged (a checksum is wrong in {Path(damaged).name})"
        content: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=mapped)
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:  # whatever a damaged file makes of its reader
        return None, f"is damaged ({' '.join(str(error).split())[:80] or type(error).__name__})"
    for step, digest in content.get("candidates", {}).items():  # older states do not know them
        weights = _of_step(path.parent, step)
        if not weights.exists():
            return None, f"needs {weights.name}, which is gone"
        if sha256(weights) != digest:
            return None, f"needs {weights.name}, which is damaged"
    return content, ""


def _of_step(folder: Path, step: int) -> Path:
    return folder / f"{CANDIDATE}{step}.safetensors"


def _keep(path: Path, other: Path) -> None:
    """Let a file have a second name, which it keeps when the first is given away."""
    if not path.exists():
        return
    temporary = other.with_name(f".{other.name}.retained")  # of a length by which `half_written` recognises it
    temporary.unlink(missing_ok=True)
    try:
        os.link(path, temporary)
    except OSError:  # a file system without hard links
        shutil.copyfile(path, temporary)
    publish(temporary, other)
    temporary.unlink(missing_ok=True)  # a rename of one name of a file to another of its names does nothing
