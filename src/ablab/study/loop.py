"""The file of a loop, and its ledger: a baseline, the rules by which changes to it are kept, what became of each."""

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from filelock import Timeout
from pydantic import Field, ValidationError, model_validator

from ablab.errors import UserError, about, first_error
from ablab.files import json_digest, read_json
from ablab.files.disk import lock_at, writing_in
from ablab.statistics.loops import OF_WHOLE, LookLevels
from ablab.store.chain import Chain, complete
from ablab.store.records import Strict
from ablab.store.register import LOOP, Register, file_digest, waiting_for
from ablab.study.experiment import ENDINGS, FOLDER, Compared, Declared, Words, find, read_as
from ablab.study.typed import check_of_runs
from ablab.tasks.declared import DECLARING
from ablab.text import Say

TRIES = 3
"""Times that a ledger is looked for: between two of them another process may enter one or two, and not more."""


class Budget(Declared):
    """The most that a loop may spend: proposals that cost a run, runs with those of floors, hours of their training."""

    proposals: Annotated[int, Field(ge=1)] = 100
    runs: Annotated[int, Field(ge=1)] | None = None
    hours: Annotated[float, Field(gt=0)] | None = None


class Confirmation(Declared):
    """How the kept changes are confirmed: on so many fresh seeds, thrice of their whole, with one error over all.

    `sealed`: words that confirmation alone adds, such as those that name a test set.
    """

    seeds: Annotated[int, Field(ge=2)] = 6
    error: Annotated[float, Field(gt=0, lt=0.5)] = 0.05
    sealed: Words = Field(default_factory=list)

    @property
    def of_whole(self) -> int:
        """The number of seeds of the whole."""
        return OF_WHOLE * self.seeds


class DeclaredLoop(Declared):
    """The whole file. `common`: the words of the first baseline. `looks`: numbers of seeds after which a proposal is
    looked at; it is dropped where p is above the look's `stop`, and kept at the last look where it is at most `keep`.
    `floor`: seeds of the baseline, and of each stack of kept changes.
    """

    question: str
    source: str | None = None
    common: Words = Field(default_factory=list)
    arms: dict[str, Words] = Field(default_factory=dict)
    metric: Compared
    margin: Annotated[float, Field(ge=0)] = 0.0
    budget: Budget = Budget()
    looks: list[int] = Field(default_factory=lambda: list(LookLevels.looks))
    stop: list[float] = Field(default_factory=lambda: list(LookLevels.stop))
    keep: float = LookLevels.keep
    floor: Annotated[int, Field(ge=2)] = 8
    confirmation: Confirmation = Confirmation()

    @model_validator(mode="after")
    def _with_levels(self) -> "DeclaredLoop":
        assert self.levels
        return self

    @property
    def levels(self) -> LookLevels:
        return LookLevels(tuple(self.looks), tuple(self.stop), self.keep)


class LoopFile(NamedTuple):
    """A file of a loop, and what it declares."""

    path: Path
    loop: DeclaredLoop

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def typed(self) -> str:
        """` experiment=other`, by which a line to type names the file; empty for `loop`, which goes without saying."""
        name = self.name if self.path.parent == FOLDER else str(self.path)
        return "" if name == "loop" else f" experiment={shlex.quote(name)}"

    def words(self, *changes: Sequence[str]) -> tuple[str, ...]:
        """Return the words of a run with these changes, each in the words of runs, of which the last counts."""
        if not any(changes):
            return tuple(self.loop.common)
        typed = {str(number): list(words) for number, words in enumerate(changes)}
        found = _read(self.path, {"arms": typed})
        return (*found.common, *(word for number in typed for word in found.arms[number]))


def read_loop(name: str) -> LoopFile:
    """Read the file of a loop, given its name or path."""
    path = find(name)
    loop = _read(path, {})
    if loop.arms:
        raise UserError(f"{path}: arms: a loop has none, but proposals; allowed: ablab try 'key=value' because='...'")
    with about(path):
        check_changes([*loop.common, *loop.confirmation.sealed])
    return LoopFile(path, loop)


def check_changes(words: Sequence[str]) -> None:
    """Raise UserError for a word that no run of a loop may have."""
    for word in words:
        if word.partition("=")[0] == "seed":
            raise UserError(f"{word}: the referee draws the seeds; allowed: other keys")
    check_of_runs(words)


def _read(path: Path, more: Mapping[str, Any]) -> DeclaredLoop:
    return read_as(DeclaredLoop, path, DECLARING, more=more)


Outcome = Literal["open", "kept", "dropped", "failed", "diverged", "null", "set aside"]
"""What became of a proposal. Open: not decided yet. Null: its run is that of the stack. Set aside: left undecided, and
the stack, the code or the inputs have changed since."""


class Floor(Strict):
    """Runs of a stack that proposals are compared with. `why`: it was trained, such as other code than of the one
    before.
    """

    stack: list[int]
    identity: str
    seeds: list[int]
    at: str
    why: str


class Seen(Strict):
    """A look at a proposal after so many seeds; the difference is that of the floor's stack, with its 95 % interval."""

    at: str
    seeds: int
    floor: int
    p: float
    estimate: float
    low: float
    high: float


class Proposal(Strict):
    """A change, with its reason. `stack`: the numbers of the kept ones before it, of which it is one more."""

    number: int
    at: str
    words: list[str]
    because: str
    stack: list[int]
    identity: str
    seeds: list[int] = Field(default_factory=list)
    looks: list[Seen] = Field(default_factory=list)
    outcome: Outcome = "open"
    why: str = ""


class Contrasted(Strict):
    """The stack with and without one change, or against the first baseline, on the seeds of a confirmation."""

    name: str
    estimate: float
    low: float
    high: float
    p: float
    holm_p: float
    stands: bool


class Confirmed(Strict):
    """A confirmation. `arms`: the words of each. `contrasts`: None until its runs have ended.

    `idle`: kept changes without which the stack has the same runs, since a later one has taken their place.
    `rules`, `identity`: those of its day, and what decides the scores of the whole; older ledgers do not tell them.
    """

    at: str
    stack: list[int]
    seeds: list[int]
    arms: dict[str, list[str]]
    contrasts: list[Contrasted] | None = None
    idle: list[str] = Field(default_factory=list)
    rules: Confirmation | None = None
    identity: str = ""


class Declaration(Strict):
    """What the file said, from a day on."""

    at: str
    content: str
    said: dict[str, Any]


class Book(Strict):
    """The content of a ledger: everything in the order in which it came."""

    declared: list[Declaration]
    floors: list[Floor] = Field(default_factory=list)
    proposals: list[Proposal] = Field(default_factory=list)
    confirmed: list[Confirmed] = Field(default_factory=list)

    @property
    def stack(self) -> list[int]:
        """The numbers of the kept proposals."""
        return [proposal.number for proposal in self.proposals if proposal.outcome == "kept"]

    def changes(self, stack: Sequence[int]) -> list[list[str]]:
        """Return the words of these proposals."""
        return [self.proposals[number - 1].words for number in stack]

    @property
    def seeds(self) -> set[int]:
        """All seeds that were ever drawn."""
        drawn: list[Floor | Proposal | Confirmed] = [*self.floors, *self.proposals, *self.confirmed]
        return {seed for each in drawn for seed in each.seeds}

    def rules_of(self, confirmed: Confirmed) -> Confirmation:
        """Return the rules of a confirmation: those of the file when its seeds were drawn."""
        before = [each for each in self.declared if each.at <= confirmed.at] or self.declared[:1]
        return confirmed.rules or Confirmation.model_validate(before[-1].said["confirmation"])

    @property
    def costing(self) -> list[Proposal]:
        """The proposals that took a run."""
        return [proposal for proposal in self.proposals if proposal.seeds]

    @property
    def runs(self) -> int:
        """The runs of all floors and proposals, without those of confirmations."""
        drawn: list[Floor | Proposal] = [*self.floors, *self.proposals]
        return sum(len(each.seeds) for each in drawn)

    def with_proposal(self, proposal: Proposal) -> "Book":
        """Return it with this proposal, in place of the one with its number."""
        others = [each for each in self.proposals if each.number != proposal.number]
        return self.model_copy(update={"proposals": sorted([*others, proposal], key=lambda each: each.number)})


@dataclass(frozen=True)
class Ledger:
    """The ledger of a loop in a store, each version of which is entered in the register before it counts."""

    outputs: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.outputs / "studies" / self.name

    @property
    def path(self) -> Path:
        return self.folder / "loop.json"

    @property
    def noted(self) -> list[dict[str, Any]]:
        """Arm, seed, run_id and words of all runs that it has asked for."""
        path = self.folder / "runs.json"
        return read_json(path) if path.exists() else []

    def read(self) -> Book | None:
        """Return its content, None where nothing was proposed. UserError where it is not what the register has.

        It changes nothing, since another process may be writing: a ledger that was entered counts before it has its
        name. Only a reader between two entries finds none of them, and looks again.
        """
        for _ in range(TRIES):
            entered = Chain.of(self.outputs).files.get(self.path.relative_to(self.outputs).as_posix())
            for path in (self.path, waiting_for(self.path)):
                with suppress(FileNotFoundError):  # another process has just given it its name
                    if file_digest(path) == entered:
                        return self._book(json.loads(path.read_bytes()))
            if entered is None and not self.path.exists():
                return None
        raise UserError(f"{self.path}: it is not the ledger that was registered; allowed: that one")

    def _book(self, content: Any) -> Book:
        try:
            return Book.model_validate(content)
        except ValidationError as error:
            raise UserError(f"{self.path}: {first_error(error, content)}") from None

    def write(self, book: Book) -> Book:
        """Write it and return it as it can be read again."""
        Register(self.outputs).write(self.path, book.model_dump(mode="json"), LOOP, study=self.name)
        return Book.model_validate(book.model_dump())

    @contextmanager
    def alone(self, say: Say) -> Iterator[None]:
        """Hold the loop, so that proposals are judged one after another; wait while another process does."""
        with writing_in(self.folder):
            lock = lock_at(self.folder / ".loop.lock")
            try:
                lock.acquire(timeout=0)
            except Timeout:
                say(f"{self.name}: another process judges a proposal; this one waits for its turn")
                lock.acquire()
            try:
                complete(self.outputs, self.path)
                yield
            finally:
                lock.release()


def ledger_of(words: Sequence[str], outputs: Path) -> Ledger | None:
    """Return the ledger of the loop that words name by its file alone; None where they name something else."""
    (key, _, name), *others = [word.partition("=") for word in words]
    ledger = Ledger(outputs, Path(name).stem if name.endswith(ENDINGS) else Path(name).name)
    return ledger if key == "experiment" and not others and ledger.path.exists() else None


def content_of(loop: DeclaredLoop) -> str:
    """Return the digest of what is declared."""
    return json_digest(loop.model_dump(mode="json", exclude_unset=True), 11)
