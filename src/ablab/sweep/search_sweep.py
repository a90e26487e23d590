"""Execution of a search: finish interrupted trials, ask for new ones as workers become free, report every outcome."""

import math
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import suppress

from ablab.errors import BUSY, DONE, FAILED, INTERRUPTED, UserError
from ablab.search.settings import validated
from ablab.search.stopping import TrialHandle
from ablab.search.storage import masked, open_storage
from ablab.search.trials import Outcome, Trial, Trials, best_of
from ablab.store.locks import hold
from ablab.store.records import Record
from ablab.study.ledger import RESULTS, LedgerEntry, State, register
from ablab.study.search import SearchStudy, announced
from ablab.study.study import Cell
from ablab.sweep.progress import SearchBoard, given_up_lines
from ablab.sweep.search_report import TRIALS, about_line, closing_lines, left_of, objectives_in, write_report
from ablab.sweep.sweep import WAIT, Launch, Policy
from ablab.sweep.watch import RETRIES, Interruptions
from ablab.tasks.plan import Planned, check_writable
from ablab.text import how_many
from ablab.tracking.console import Console
from ablab.tracking.open import ready


def search_trials(search: SearchStudy, launch: Launch, policy: Policy, console: Console, *, jobs: int) -> int:
    """Run the trials that are left and return the exit code. `jobs`: maximum number of runs at a time."""
    check_writable(search.outputs)
    # One command at a time begins trials.
    with hold(search.folder / "search.lock", lambda: f"{search.name} is being searched by another command"):
        trials = open_trials(search, jobs=jobs)
        if policy.rerun and left_of(search, trials.all()):
            raise UserError(
                "rerun: a search keeps its trials; allowed once all have ended, or with another seed of the sampler"
            )
        if search.file is not None and not trials.all():
            # Before any trial: claims registered later could be chosen by the results of trials.
            register(announced(search))
        _handle_of(search).write(search.folder)
        return _SearchSweep(search, trials, policy, console).run(launch)


def open_trials(search: SearchStudy, *, jobs: int = 1) -> Trials:
    """Open the trials in the search's storage."""
    from ablab.search.sampling import StatelessSampler, stopping_rule

    settings, door = search.settings, _handle_of(search)
    return Trials(
        search.study_name,
        search.space,
        objectives_in(search),
        open_storage(settings.storage, search.folder),
        StatelessSampler(settings.sampler, settings.seed, several_at_a_time=jobs > 1),
        stopping_rule(door.stopping, first_step=door.first_step, last_step=door.last_step),
    )


def _handle_of(search: SearchStudy) -> TrialHandle:
    settings, steps = search.settings, search.base.task.first_and_last_step(search.base.config)
    first = settings.objectives[0]
    score = validated(search.base.task).get(first)
    return TrialHandle(search.study_name, settings.storage, settings.stopping, first, *steps, score)


def _known_before(search: SearchStudy) -> int:
    """Return how many trials of this space the last session has told of."""
    if search.report() is None:  # they are of another space
        return 0
    try:
        return len((search.folder / TRIALS).read_text(encoding="utf-8").splitlines()) - 1
    except (OSError, ValueError):
        return 0


class _SearchSweep:
    def __init__(self, search: SearchStudy, trials: Trials, policy: Policy, console: Console) -> None:
        self.search, self.trials, self.policy, self.console = search, trials, policy, console
        self.board = SearchBoard(search, trials)
        self.open: defaultdict[str, list[int]] = defaultdict(list)
        """Numbers of the trials that wait for a run, by the run's key."""
        self.attempts: Counter[str] = Counter()
        """How often this command has begun a run, by its key: trials may share it."""
        self.interruptions = Interruptions()
        self.failures = 0

    def run(self, launch: Launch) -> int:
        settings = self.search.settings
        ready(self.search.base.config.logger, self.console.say)
        self.console.say(about_line(self.search))
        if self.policy.retry_failed:
            self.console.say("retry_failed: a search keeps its trials, failed ones too; more trials= asks for others")
        if settings.storage is not None:
            self.console.say(f"Trials are kept in {masked(settings.storage)}")
        if (lacking := _known_before(self.search) - len(self.board.all_trials)) > 0:
            key = "hydra.sweeper.storage=" if self.search.file is None else "search.storage:"
            self.console.say(
                f"This storage lacks {how_many(lacking, 'earlier trial')} of this search; if another has them, "
                f"{key} as it was then goes on with them"
            )
        before = sum(trial.outcome is not None for trial in self.board.all_trials)
        going = self._work(launch)
        all_trials = self.trials.all()
        is_news = going and len(all_trials) > before
        write_report(self.search, self.trials, all_trials, self.console.say if is_news else None)
        self.console.rich.print()
        self.console.say_all(closing_lines(self.search, self.trials, all_trials, interrupted=not going))
        self.console.say_all(given_up_lines(self.board))
        if not going:
            return INTERRUPTED
        is_whole = not left_of(self.search, all_trials)
        return DONE if is_whole and best_of(all_trials, self.trials.objectives) is not None else FAILED

    def _work(self, launch: Launch) -> bool:
        """Run until every trial has an outcome; return False when the user has stopped it."""
        alone = False
        self._wait_for_left()
        while True:
            self.open.clear()
            if not launch(self.board, self._cells(), alone, self.console, self._on_end):
                return False
            self._wait_for_others()
            if self._gives_up:
                return True
            left = {trial.number for trial in self.trials.running()}
            left -= {number for key in self.board.given_up for number in self.open[key]}
            if not left and len(self.trials.all()) >= self.search.settings.trials:
                return True
            states = [self.board.of(key).state for key, numbers in self.open.items() if numbers]
            alone = State.FAILED in states

    @property
    def _gives_up(self) -> bool:
        return self.policy.fail_fast and self.failures > 0

    def _cells(self) -> Iterator[Cell]:
        """Yield the runs to do: those of interrupted trials, then those of new ones."""
        for trial in self.trials.running():
            if (cell := self._to_do(trial)) is not None:
                yield cell
        while len(self.trials.all()) < self.search.settings.trials and not self._gives_up:
            if (cell := self._to_do(self.trials.ask())) is not None:
                yield cell

    def _to_do(self, trial: Trial) -> Cell | None:
        """Return the run of a trial; None where there is nothing to run, or another process is running it."""
        try:
            cell = self.search.cell(trial.number, trial.words)
        except UserError as error:
            self._report(trial, "failed", reason=f"no run can have these values: {error}")
            return None
        run_id = cell.planned.run_id
        known = bool(self.open[cell.key])
        entry = self.board.of(cell.key) if known else self.board.add(cell)
        fresh = self.attempts[cell.key] == 0
        if fresh and entry.state is State.FAILED and entry.failure is not None:
            if entry.failure.kind == "error" and not self.policy.retry_failed:
                self._report(trial, "failed", reason=entry.failure.line, run_id=run_id)
                return None
        elif self._settled(trial, entry, fresh=fresh):
            return None
        self.open[cell.key].append(trial.number)
        if known or entry.state is State.RUNNING:
            return None
        was_interrupted = not fresh and entry.state is not State.FAILED
        if was_interrupted and (why := self.interruptions.count(entry, self.board.stops.get(cell.key))):
            self.board.given_up.setdefault(cell.key, why)
        if cell.key in self.board.given_up:
            return None
        self.interruptions.begin(entry)
        self.attempts[cell.key] += 1
        return cell

    def _on_end(self, entry: LedgerEntry, code: int | None) -> str | None:
        """Settle every trial that waits for this run; return a line for the console where the run is tried again."""
        if code in (INTERRUPTED, BUSY):
            return None
        waiting = self.open.get(entry.cell.key, [])
        by_number = {trial.number: trial for trial in self.trials.all() if trial.number in waiting}
        for number in list(waiting):
            if self._settled(by_number[number], entry):
                waiting.remove(number)
        if waiting and entry.failure is not None and entry.state is State.FAILED and not entry.is_refused:
            return f"{entry.cell.arm}: {entry.failure.line}; it is tried once more"
        return None

    def _settled(self, trial: Trial, entry: LedgerEntry, *, fresh: bool = False) -> bool:
        """Report the run's final outcome to the trial; return False while there is none."""
        run_id = entry.cell.planned.run_id
        record = entry.record
        if entry.state in RESULTS and record is not None:
            steps = record.cost.steps
            if entry.state is State.DIVERGED:
                self._report(trial, "diverged", run_id=run_id, reason=record.reason, steps=steps, total_steps=steps)
                return True
            values, missing = self._values(entry.cell.planned, record)
            if missing:
                self._report(trial, "failed", run_id=run_id, reason=f"it has no finite {', '.join(missing)}")
            else:
                task = entry.cell.planned.task
                loss = task.loss_of(record)
                if loss is not None and task.scores[task.loss].higher_is_better:
                    loss = -loss  # a command may name an accuracy first
                if self.search.settings.stopping != "none":  # a run that was there has told nothing to this search
                    key = validated(task)[self.trials.names[0]]
                    self.trials.note(trial, {int(one["step"]): one[key] for one in record.validations if key in one})
                self._report(trial, "finished", values, run_id=run_id, steps=steps, total_steps=steps, loss=loss)
            return True
        if trial.to_stop is not None and record is None and entry.state is not State.RUNNING:
            self._report(trial, "stopped", run_id=run_id, steps=trial.to_stop[0], total_steps=trial.to_stop[1])
            return True
        failure = entry.failure
        if fresh or entry.state is not State.FAILED or failure is None:
            return False
        if entry.is_refused:  # it goes on by its former code, or with mixed=true
            self.board.given_up.setdefault(entry.cell.key, failure.line)
            self.failures += 1
            return False
        if self.attempts[entry.cell.key] <= RETRIES[failure.kind] and not self.policy.fail_fast:
            return False
        self._report(trial, "failed", run_id=run_id, reason=f"{failure.line} ({failure.kind})")
        return True

    def _values(self, planned: Planned, record: Record) -> tuple[list[float], list[str]]:
        """Return the values of the objectives, and the names of those without a finite one."""
        evaluation = planned.folder.evaluation(planned.evaluation_id)
        values: list[float] = []
        missing: list[str] = []
        for name, objective in zip(self.trials.names, self.trials.objectives, strict=True):
            value = objective.value(record, evaluation)
            if value is None or not math.isfinite(value):
                missing.append(name)
            else:
                values.append(value)
        return values, missing

    def _report(
        self, trial: Trial, outcome: Outcome, values: list[float] | None = None, **about: int | float | str | None
    ) -> None:
        """Tell the search the outcome, with what `Trials.tell` takes besides, and say it."""
        reported = self.trials.tell(trial.number, outcome, values, **about)
        self.failures += outcome == "failed" and "run_id" in about
        self.board.all_trials = self.trials.all()
        self.console.say(self._line(reported))

    def _line(self, trial: Trial) -> str:
        done = sum(other.outcome is not None for other in self.board.all_trials)
        line = f"[{done}/{self.search.settings.trials}] trial {trial.number}, {','.join(trial.words)}: {trial.outcome}"
        if trial.outcome == "stopped" and trial.steps is not None:
            line += f" at step {trial.steps:,}" + (f" of {trial.total_steps:,}" if trial.total_steps else "")
        if trial.values is not None:
            pairs = zip(self.trials.names, self.trials.objectives, trial.values, strict=True)
            line += ", " + ", ".join(f"{name} {value:,.{objective.digits}f}" for name, objective, value in pairs)
        if trial.reason is not None:
            line += f", {trial.reason}"
        leader = best_of(self.board.all_trials, self.trials.objectives)
        return line + ("   best" if len(self.trials.names) == 1 and leader and leader.number == trial.number else "")

    def _wait_for_left(self) -> None:
        """Wait for runs that outlive their launcher, by up to a checkpoint, so that their trials end before new ones
        begin.
        """
        for trial in self.trials.running():
            with suppress(UserError):
                cell = self.search.cell(trial.number, trial.words)
                self.board.add(cell)
                self.open[cell.key].append(trial.number)
        self._wait_for_others()

    def _wait_for_others(self) -> None:
        """Wait for runs held by another process: one that outlived its launcher, or another command."""
        keys = [key for key, numbers in self.open.items() if numbers]
        announced_waiting = False
        while any(self.board.of(key).state is State.RUNNING for key in keys):
            if not announced_waiting:
                self.console.say("Waiting for runs that another process is working on")
                announced_waiting = True
            time.sleep(WAIT)
