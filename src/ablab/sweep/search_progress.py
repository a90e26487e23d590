"""Progress of a search on the console: trials by outcome, the best trial, and the runs in progress."""

from rich.console import Group, RenderableType
from rich.text import Text

from ablab.search.trials import Trial, Trials, best_so_far, count
from ablab.study.ledger import LedgerEntry, entry_of
from ablab.study.search import SearchStudy
from ablab.study.study import Cell, Study
from ablab.sweep.progress import Board


class SearchBoard(Board):
    """The runs of the trials asked for so far."""

    def __init__(self, search: SearchStudy, trials: Trials) -> None:
        super().__init__(Study(search.name, [], "", [search.settings.training_seed], [], None))
        self.search, self.trials = search, trials
        self.all_trials: list[Trial] = trials.all()

    def add(self, cell: Cell) -> LedgerEntry:
        """Add the run of a trial and return its entry. Several trials may share one run."""
        self.entries[cell.key] = entry_of(cell)
        return self.entries[cell.key]

    def __rich__(self) -> RenderableType:
        running = super().__rich__()
        assert isinstance(running, Group)
        return Group(Text(progress_line(self.search, self.all_trials, self.trials)), *running.renderables[1:])


def progress_line(search: SearchStudy, all_trials: list[Trial], trials: Trials) -> str:
    """Return a line such as `7 of 20 trials: 5 finished, 2 stopped early   best so far: trial 3, valid_loss 2.310`."""
    done = [trial for trial in all_trials if trial.outcome is not None]
    line = f"{len(done)} of {search.settings.trials} trials"
    line += f": {count(done)}" if done else ""
    best = best_so_far(all_trials, trials.objectives, trials.names[0])
    return line if best is None else f"{line}   {best}"
