"""Why a claim is exploratory: results were, or could have been, known before it was fixed."""

from ablab.judge.selection import SelectedArms
from ablab.study.claims import Settled, asked
from ablab.text import counted, how_many


def exploratory(selection: SelectedArms, claim: Settled) -> str | None:
    """Return why the claim is exploratory, that is, not fixed before results were known; None if it is confirmatory."""
    registered = selection.registered
    if selection.flaws:
        return "; ".join(selection.flaws)
    if registered is None:
        return "the study was never launched as one: its claims were not registered"
    if asked(claim) not in [asked(one) for one in registered.claims]:
        return "the claim came, or was changed, after the study's first launch"
    if registered.runs_already_done:
        return f"{registered.runs_already_done} of the runs had finished when the claim was registered"
    if selection.departed is not None:
        return selection.departed
    if selection.late:
        late = {run.folder.path for run in selection.late}
        return f"{how_many(len(late), 'run')} {'was' if len(late) == 1 else 'were'} given up, and finished after that"
    added = sorted({run.seed for arm in selection.arms for run in arm.runs} - set(registered.seeds))
    return f"seeds {counted(added)} were added after the first launch" if added else None
