"""The referee of a loop: it draws seeds, runs floors, proposals and confirmations, and enters what came of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ablab.errors import INTERRUPTED, LostError, UserError
from ablab.fields import flatten
from ablab.judge.loop import contrasts_of, is_without_noise, look_at, seen
from ablab.judge.metrics import Measure
from ablab.search.settings import Settings
from ablab.store.records import now
from ablab.study.loop import Book, Confirmed, Declaration, LoopFile, Outcome, Proposal, check_changes, content_of
from ablab.sweep.floors import AGAIN, Floors
from ablab.sweep.hydra import RunLauncher, TypedLine, carry_out, check_hydra
from ablab.sweep.loop_runs import LoopRuns, RunFailedError, StoppedError
from ablab.text import how_many
from ablab.tracking.console import Console

WHOLE, FIRST = "all kept changes", "the first baseline"
"""Arms of a confirmation; the others are the whole without one change."""

NO_NOISE = "its runs have one score whatever their seed, so that no change to it could be judged"


@dataclass
class Referee:
    """Judges the proposals of one loop in one store."""

    runs: LoopRuns

    def __post_init__(self) -> None:
        self.file, self.ledger, self.console = self.runs.file, self.runs.ledger, self.runs.console
        self.floors = Floors(self.runs)

    def book(self) -> Book:
        """Return what the ledger has, with what the file says now, which stands in no ledger yet."""
        loop = self.file.loop
        said = Declaration(at=now(), content=content_of(loop), said=loop.model_dump(mode="json"))
        known = self.ledger.read()
        if known is None:
            return Book(declared=[said])
        if known.declared[-1].content == said.content:
            return known
        if (metric := known.declared[-1].said["metric"]) != loop.metric:
            raise UserError(
                f"{self.file.path}: metric={loop.metric}: its proposals were judged by {metric}; allowed: that metric, "
                "or another file, which is another loop"
            )
        return known.model_copy(update={"declared": [*known.declared, said]})

    def _declared(self) -> Book:
        """Return the same, once what the file says now is on record where it was edited."""
        book = self.book()
        if len(book.declared) == 1 or book == self.ledger.read():
            return book
        self.console.say(f"{self.file.path}: it was edited since {book.declared[-2].at[:10]}, and both are on record")
        return self.ledger.write(book)

    # What is asked for

    def floor(self, seeds: int | None = None) -> Book:
        """Train the floor of the present stack, if there is none that still holds, on so many seeds at least."""
        with self.ledger.alone(self.console.say):
            return self.floors.ensure(self._declared(), seeds)

    def propose(self, words: Sequence[str], because: str) -> tuple[Book, Proposal, bool]:
        """Judge a change; return the ledger, the proposal, and whether it had been judged before."""
        self._check(words)
        with self.ledger.alone(self.console.say):
            book = self._declared()
            self._check_sealed(book, words)
            identity = self.runs.identity_of(book, book.stack, words)
            same = [
                each
                for each in book.proposals
                if each.stack == book.stack
                and each.identity == identity
                and (each.outcome != "null" or each.words == list(words))  # all that change nothing are one stack
            ]
            if same and same[-1].outcome not in ("open", "failed", "set aside"):
                return book, same[-1], True
            book, proposal = self._entered(book, words, because, identity)
            if identity == self.runs.identity_of(book, book.stack):
                return *self._decided(book, proposal, "null", "its runs are those of the stack as it is"), False
            return *self._judged(book, proposal), False

    def confirm(self) -> tuple[Book, Confirmed, bool]:
        """Confirm the stack on fresh seeds; return the ledger, what came, and whether it had been confirmed before."""
        with self.ledger.alone(self.console.say):
            book = self._declared()
            if not book.stack:
                raise UserError(f"{self.file.name}: no change was kept; allowed: ablab confirm after one is")
            rules, identity = self.file.loop.confirmation, self.runs.identity_of(book, book.stack, self._sealed)
            known = [
                each
                for each in book.confirmed
                if each.stack == book.stack and book.rules_of(each) == rules and each.identity in ("", identity)
            ]
            if known and known[-1].contrasts is not None:
                return book, known[-1], True
            asked = known[-1] if known else self._asked(book, identity)
            if not known:
                book = self.ledger.write(book.model_copy(update={"confirmed": [*book.confirmed, asked]}))
            single = asked.seeds[: rules.seeds]
            arms = {
                name: self.runs.of_words(name, words, asked.seeds if name == WHOLE else single)
                for name, words in asked.arms.items()
            }
            try:
                self.runs.train([cell for cells in arms.values() for cell in cells])
            except RunFailedError as error:
                raise LostError(f"{self.file.name}: a run of the confirmation failed: {error}; {AGAIN}") from None
            scores = {}
            for name, cells in arms.items():
                found = self.runs.scores(cells)
                if found is None:
                    raise LostError(f"{name}: a run diverged on the seeds of the confirmation; nothing is confirmed")
                scores[name] = found
            contrasts = contrasts_of(scores, WHOLE, FIRST, self.file.loop, self.measure(book))
            whole = asked.model_copy(update={"contrasts": contrasts})
            confirmed = [whole if each == asked else each for each in book.confirmed]
            return self.ledger.write(book.model_copy(update={"confirmed": confirmed})), whole, False

    def measure(self, book: Book) -> Measure:
        """Return that by which runs are compared."""
        return self.runs.measure_of(self.runs.cells(book, [], [0])[0])

    # A proposal

    def _check(self, words: Sequence[str]) -> None:
        for word in words:
            if "=" not in word:
                raise UserError(f"{word}: no change; allowed: key=value")
            if word.partition("=")[0].startswith(("task.scores", "task.command", "task.inputs")):
                raise UserError(
                    f"{word}: what runs, and by what it is judged, {self.file.path} says; allowed: other keys"
                )
        check_changes(words)
        if not words:
            raise UserError("try: no change was named; allowed: ablab try 'key=value' because='...'")

    def _check_sealed(self, book: Book, words: Sequence[str]) -> None:
        """Refuse a change of what confirmation alone may set, by whichever word; a group sets whatever is in it."""
        sealed = self._sealed
        if not sealed:
            return
        seals = self.file.words(sealed)[len(self.file.loop.common) :]
        named = tuple(f"{word.partition('=')[0]}." for word in seals)
        before, after, last = (
            flatten(self.runs.cells(book, book.stack, [0], each)[0].planned.config.model_dump(serialize_as_any=True))
            for each in ((), words, sealed)
        )
        for key in sorted(before.keys() | after.keys()):
            is_sealed = f"{key}.".startswith(named) or before.get(key) != last.get(key)
            if is_sealed and before.get(key) != after.get(key):
                raise UserError(f"{' '.join(words)}: {key} is sealed until the confirmation; allowed: other keys")

    def _entered(self, book: Book, words: Sequence[str], because: str, identity: str) -> tuple[Book, Proposal]:
        """Enter a proposal before anything runs, or find it where it was left open."""
        for each in book.proposals:
            if each.outcome in ("open", "set aside") and each.identity == identity and each.stack == book.stack:
                # On the seeds that it has: others would be a second chance.
                return book, each.model_copy(update={"outcome": "open", "why": ""})
            if each.outcome == "open" and each.words == list(words):
                what = "the code or the inputs have" if each.stack == book.stack else "the stack has"
                book, _ = self._decided(book, each, "set aside", f"{what} changed before it was decided")
        if (over := self.runs.left(book).over) is not None:
            raise UserError(f"{self.file.name}: {over} are spent; allowed: ablab confirm, or a larger budget")
        proposal = Proposal(
            number=len(book.proposals) + 1,
            at=now(),
            words=list(words),
            because=because,
            stack=book.stack,
            identity=identity,
        )
        return self.ledger.write(book.with_proposal(proposal)), proposal

    def _judged(self, book: Book, proposal: Proposal) -> tuple[Book, Proposal]:
        """Look after each number of seeds until it is decided."""
        loop = self.file.loop
        there, _ = self.floors.standing(book)
        of_floor = max(0, loop.floor - (0 if there is None else len(there.seeds)))
        if of_floor:  # a floor with nothing left to compare would be trained for nothing
            self.runs.check_left(book, of_floor + loop.levels.looks[0], f"proposal {proposal.number}, with its floor,")
        book = self.floors.ensure(book)
        self.floors.scores(book)  # a floor that diverged is refused before anything is compared with it
        last = proposal.looks[-1].seeds if proposal.looks else 0
        # Where the file was edited meanwhile, no look may be left: the last one then decides by its rules.
        for wanted in [each for each in loop.looks if each > last] or loop.looks[-1:]:
            if wanted > len(proposal.seeds):
                self.runs.check_left(book, wanted - len(proposal.seeds), f"proposal {proposal.number}")
                drawn = self.runs.drawn(book, wanted - len(proposal.seeds))
                proposal = proposal.model_copy(update={"seeds": [*proposal.seeds, *drawn]})
                book = self.ledger.write(book.with_proposal(proposal))
            cells = self.runs.cells(book, proposal.stack, proposal.seeds[:wanted], proposal.words)
            measure = self.runs.measure_of(cells[0])
            self.console.say(
                f"Proposal {proposal.number}, {' '.join(proposal.words)}: {how_many(wanted, 'seed')} of at most "
                f"{loop.looks[-1]}"
            )
            try:
                self.runs.train(cells)
            except RunFailedError as error:
                return self._decided(book, proposal, "failed", str(error))
            book = self.floors.ensure(book)  # the runs may have come to another machine than those of the floor
            scores = self.runs.scores(cells)
            if scores is None:
                return self._decided(book, proposal, "diverged", "a run of it diverged")
            floor = self.floors.scores(book)
            found = look_at(loop, measure, scores, floor)
            looked = [*proposal.looks, seen(found, now(), wanted, len(book.floors))]
            proposal = proposal.model_copy(update={"looks": looked})
            if found.outcome == "kept" and is_without_noise(scores):
                return self._decided(book, proposal, "dropped", NO_NOISE)  # the next floor would have no noise
            if found.outcome != "go on":  # in one write with its look, after which a kill would let it go on
                return self._decided(book, proposal, found.outcome, "")
            book = self.ledger.write(book.with_proposal(proposal))
        raise AssertionError("the last look decides")

    def _decided(self, book: Book, proposal: Proposal, outcome: Outcome, why: str) -> tuple[Book, Proposal]:
        found = proposal.model_copy(update={"outcome": outcome, "why": why})
        return self.ledger.write(book.with_proposal(found)), found

    # The confirmation

    @property
    def _sealed(self) -> list[str]:
        return self.file.loop.confirmation.sealed

    def _asked(self, book: Book, identity: str) -> Confirmed:
        """Return the arms of a confirmation: the whole, the whole without each change, the first baseline."""
        stacks: dict[str, list[int]] = {WHOLE: book.stack, FIRST: []}
        whole, idle = self.runs.identity_of(book, book.stack), []
        for one in book.stack if len(book.stack) > 1 else ():
            change, others = " ".join(book.proposals[one - 1].words), [each for each in book.stack if each != one]
            if self.runs.identity_of(book, others) == whole:
                idle.append(change)
            else:
                stacks[f"without {change}"] = others
        arms = {name: list(self.file.words(*book.changes(stack), self._sealed)) for name, stack in stacks.items()}
        seeds = self.runs.drawn(book, self.file.loop.confirmation.of_whole)
        rules = self.file.loop.confirmation
        return Confirmed(at=now(), stack=book.stack, seeds=seeds, arms=arms, idle=idle, rules=rules, identity=identity)


@dataclass(frozen=True)
class AskedLine(TypedLine):
    """A line that asks the referee of a loop for something, once Hydra has made its launcher."""

    file: LoopFile
    outputs: Path
    console: Console
    act: Callable[[Referee], int]

    def sweep(self, launcher: RunLauncher, settings: Settings | None = None) -> int:
        try:
            return self.act(Referee(LoopRuns(self.file, self.outputs, launcher, self.console)))
        except StoppedError:
            self.console.say("Stopped; the same line, typed again, continues from there")
            return INTERRUPTED


def ask(file: LoopFile, outputs: Path, of_hydra: Sequence[str], console: Console, act: Callable[[Referee], int]) -> int:
    """Let the referee of a loop act with the launcher that these words choose; return the exit code."""
    check_hydra(of_hydra, ())
    return carry_out(AskedLine((), file, outputs, console, act), of_hydra)
