"""The subject of a report: arms with their runs, and the claims made of them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from ablab.files import folder_name
from ablab.judge.ends import GivenUp
from ablab.judge.failures import SHARE
from ablab.judge.metrics import Measure, measure_of_curve, unknown_measure
from ablab.judge.registration import Registered
from ablab.judge.runs import ArmRun, ArmRuns
from ablab.statistics.looks import Looks
from ablab.statistics.paired import MINIMUM_SEEDS
from ablab.store.records import Curve, Evaluation
from ablab.study.claims import Settled
from ablab.study.experiment import ErrorEstimate
from ablab.study.study import names_of, same_runs, united
from ablab.study.tuning import Tuned
from ablab.study.worth import Lengths
from ablab.tasks.registry import task_named
from ablab.tasks.task import FAILURES, Task


def way_of(evaluation: Evaluation) -> str:
    """Describe an evaluation: `test (1,000 sentences), decoding beam_size=4, length_penalty=0.6`."""
    if (decoding := evaluation.settings.get("decoding")) is None:
        items = f" ({evaluation.sentences:,} items)" if evaluation.sentences else ""
        return f"{evaluation.test_name}{items}"
    search = ", ".join(f"{key}={value}" for key, value in decoding.items())
    return f"{evaluation.test_name} ({evaluation.sentences:,} sentences), decoding {search}"


Results = Mapping[str, Evaluation] | Mapping[str, Curve]


def shared(usual: str, of_arm: Sequence[Results]) -> str:
    """Return the id to use for each run of the arm: the usual one where any of its runs has it, else the arm's
    commonest.
    """
    return usual if any(usual in found for found in of_arm) else most_common(of_arm)


def most_common(runs: Sequence[Results]) -> str:
    """Return the id that most runs have, the latest of several; comparing different searches would be no comparison."""
    counts = Counter(one for found in runs for one in found)
    ended = {one: found[one].ended for found in runs for one in found}
    return max(counts, key=lambda one: (counts[one], ended[one], one), default="")


@dataclass(frozen=True)
class SelectedArms:
    """Arms to be compared with the one named `baseline`. `factors`: levels by factor of a factorial design.

    `claims`: those of the file, and those registered at the first launch and dropped since. `choosing`: the scores by
    which settings of the arms were chosen before, if they were; `searched`: among which values. `departed`: how the
    study differs from its first launch. `notes`: for the top of the report. `error`: how the noise of claims is
    estimated. `within`: the factor in each level of which arms have a baseline of their own, and `baselines`: those, by
    arm; empty: all have one. `awaited`: runs that were registered, and have neither ended nor been given up; until then
    there is no verdict. `late`: runs that finished after they had been given up; `given_up`: those that were given up
    after looking was possible. `declared`: the metric of the experiment file; None without one. `measures`: what its
    runs are measured by, and `task`: what they are. `origin`: said wherever figures do not come from runs of a store.
    `study`: the folder of the study, of the selection of one. `tried`: the runs of tuning. `looks`: at its claims,
    where seeds are added until these are settled; `ended`: why no more are. `sharing`: other registrations of the same
    runs. `flaws`: where the selection is not what the store's register has. `stamp`: the end of the register;
    `lost_stamps`: those of earlier reports that it never had. `chosen_by`: what leaves out other runs of the recipes.
    `lengths`: the baseline at other lengths, by which gains are turned into compute. `labels`: what the file calls
    levels and arms.
    """

    name: str
    arms: Sequence[ArmRuns]
    baseline: str
    metric: str
    outputs: Path
    question: str = ""
    source: str | None = None
    claims: Sequence[Settled] = ()
    registered: Registered | None = None
    factors: Mapping[str, Sequence[str]] = field(default_factory=dict)
    choosing: str | None = None
    searched: Sequence[str] = ()
    departed: str | None = None
    notes: Sequence[str] = ()
    error: ErrorEstimate = "moderated"
    within: str | None = None
    baselines: Mapping[str, str] = field(default_factory=dict)
    awaited: Sequence[ArmRun] = ()
    late: Sequence[ArmRun] = ()
    given_up: Sequence[GivenUp] = ()
    declared: str | None = None
    measures: Mapping[str, Measure] = field(default_factory=dict)
    task: Task = field(default_factory=task_named)
    origin: str | None = None
    study: Path | None = None
    tuned: Sequence[Tuned] = ()
    tried: Sequence[ArmRun] = ()
    tuning_metric: str = "loss"
    looks: Looks | None = None
    ended: str | None = None
    sharing: Sequence["SelectedArms"] = ()
    flaws: Sequence[str] = ()
    stamp: str | None = None
    lost_stamps: Sequence[str] = ()
    chosen_by: str = "the choice of seeds"
    lengths: Lengths | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def measure(self) -> Measure:
        """The measure by which arms are compared."""
        return self.measures[self.metric]

    def measure_of(self, claim: Settled) -> Measure:
        """Return the measure that a claim is about."""
        if claim.metric == FAILURES:
            return SHARE
        if (of_curve := self.task.of_curve(claim)) is not None:
            return measure_of_curve(self.task, of_curve)
        return self.measures.get(claim.metric) or unknown_measure(claim.metric)

    @property
    def beside(self) -> Mapping[str, Measure]:
        """The measures that tables show beside the metric, by name."""
        return {name: self.measures[name] for name in self.task.beside if name in self.measures}

    @property
    def designed(self) -> list[ArmRuns]:
        """The rows of the design: without the baseline at other lengths."""
        others = set() if self.lengths is None else {arm.name for arm in self.lengths.arms}
        return [row for row in self.rows if row.name not in others]

    @property
    def loss(self) -> Measure | None:
        """The validation loss; None where nothing is known of validation."""
        return self.measures.get(self.task.loss)

    def arm(self, name: str) -> ArmRuns | None:
        """Return the arm that has this name, alone or among others, or None."""
        wanted = set(names_of(name))
        return next((arm for arm in self.arms if wanted <= set(names_of(arm.name))), None)

    def up_to(self, seeds: int) -> "SelectedArms":
        """Return the selection as it was when no arm had more than so many seeds."""
        first = sorted({run.seed for arm in self.arms for run in arm.runs})[:seeds]
        arms = [ArmRuns(arm.name, [run for run in arm.runs if run.seed in first]) for arm in self.arms]
        return replace(self, arms=arms)

    @cached_property
    def as_registered(self) -> "SelectedArms":
        """The registered claims, with the arms and seeds of the registration: nothing that came later decides them.

        A registration of too few seeds for any verdict leaves its claims to all seeds. Without a registration, all of
        the selection.
        """
        if (registered := self.registered) is None:
            return self
        whole = len(registered.seeds) < MINIMUM_SEEDS
        arms = [
            ArmRuns(arm.name, [run for run in arm.runs if whole or run.seed in registered.seeds])
            for arm in self.arms
            if registered.has(arm.name)
        ]
        folders = {run.folder.path for arm in arms for run in arm.runs}
        claims = [claim for claim in self.claims if not self.is_later(claim)]
        awaited = [run for run in self.awaited if run.folder.path in folders]
        return replace(self, arms=arms, claims=claims, awaited=awaited)

    @cached_property
    def later(self) -> "SelectedArms":
        """The claims that came after the registration, with all arms and seeds."""
        return replace(self, claims=[claim for claim in self.claims if self.is_later(claim)], sharing=())

    def is_later(self, claim: Settled) -> bool:
        """Return whether a claim came, or was changed, after the registration."""
        return self.registered is not None and not self.registered.asks(claim)

    @cached_property
    def rows(self) -> list[ArmRuns]:
        """The arms as tables of whole models show them: arms that differ by pruning alone are one row.

        Its name joins those of the arms.
        """

        judged = {
            arm.name: {run.seed: (run.folder.path, run.evaluation and run.evaluation.evaluation_id) for run in arm.runs}
            for arm in self.arms
        }
        rows = united(list(judged), same_runs(judged))
        runs: dict[str, Sequence[ArmRun]] = {}
        for arm in self.arms:  # where seeds are added, one may have more than another
            runs[rows[arm.name]] = max(runs.get(rows[arm.name], ()), arm.runs, key=len)
        return [ArmRuns(row, own) for row, own in runs.items()]

    @property
    def baseline_row(self) -> ArmRuns:
        """The row that contains the baseline."""
        return self._row_of(self.baseline)

    def baseline_of(self, row: ArmRuns) -> ArmRuns:
        """Return the row that this one is compared with."""
        return self._row_of(self.baseline_name_of(row))

    def baseline_name_of(self, row: ArmRuns) -> str:
        """Return the name of the arm that a row is compared with; what was registered may not have that arm."""
        first = names_of(row.name)[0]
        return next((base for arm, base in self.baselines.items() if first in names_of(arm)), self.baseline)

    def _row_of(self, arm: str) -> ArmRuns:
        wanted = set(names_of(arm))
        return next(row for row in self.rows if wanted <= set(names_of(row.name)))

    @property
    def baseline_rows(self) -> list[ArmRuns]:
        """The rows with which others are compared, each once, of those that there are."""
        wanted = [set(names_of(self.baseline_name_of(row))) for row in self.rows]
        return [row for row in self.rows if any(names <= set(names_of(row.name)) for names in wanted)]

    def family(self, claim: Settled) -> list[Settled]:
        """Return the claims that share an error rate with this one: the primary ones, or the secondary ones."""
        return [one for one in self.claims if one.secondary == claim.secondary]

    @property
    def folder(self) -> Path:
        """The folder the report is written to."""
        return self.outputs / "reports" / folder_name(self.name)

    @property
    def rests_on(self) -> list[ArmRun]:
        """All runs from which the report has figures, those of tuning too; arms may share theirs."""
        return [*(run for arm in self.arms for run in arm.runs), *self.tried]

    def where(self, test: Callable[[ArmRun], bool]) -> list[ArmRun]:
        """Return all runs that pass the test, each once: arms may share theirs."""
        return list({run.folder.path: run for arm in self.arms for run in arm.runs if test(run)}.values())
