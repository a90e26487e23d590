"""Faults of what guards a run: its owner, the events for W&B, and the links from a figure to its bytes."""

from benchmarks.mutants.fault import Fault

EVENTS = ("tracking/test_events.py",)
SENDING = ("tracking/test_sending.py",)
LOCKS = ("test_locks.py",)
PACKED = ("report/test_packed_study.py",)
LINKS = ("report/test_custody.py",)

TRUST = [
    Fault(
        "events: what was trained again after a kill is told again",
        "tracking/events.py",
        "        if identity not in self._told:\n",
        "        if True:\n",
        EVENTS,
    ),
    Fault(
        "events: a line that a kill has torn stays",
        "tracking/events.py",
        "            self._file.truncate(end_of_lines(self._file))  # a kill may have torn the last line\n",
        "",
        EVENTS,
    ),
    Fault(
        "sender: tables and pictures do not count as rows",
        "tracking/sender.py",
        "            self._rows += 1\n",
        '            self._rows += kind == "row"\n',
        SENDING,
    ),
    Fault(
        "sender: what it began counts as sent",
        "tracking/sender.py",
        '{"bytes": before if problem else place, "written": written}',
        '{"bytes": (folder / FOLDER / "events.jsonl").stat().st_size, "written": written}',
        SENDING,
    ),
    Fault(
        "owner: a run that was taken over is written to",
        "store/locks.py",
        "        with guarded(folder.path, owner.check):\n",
        "        with guarded(folder.path, lambda: None):\n",
        LOCKS,
    ),
    Fault(
        "owner: a machine is known by its name",
        "store/heartbeat.py",
        "return self.host == platform.node() if self.machine is None else self.machine == this_machine()",
        "return self.host == platform.node()",
        LOCKS,
    ),
    Fault(
        "verify: selected weights may be others",
        "judge/custody.py",
        "    if record.selected is not None and record.selected.sha256 is not None:\n",
        "    if record.selected is None and record.selected is not None:\n",
        LINKS,
    ),
    Fault(
        "verify: a stretch may begin from another checkpoint",
        "judge/custody.py",
        "            broken = before.left != after.began_from\n",
        "            broken = False\n",
        LINKS,
    ),
    Fault(
        "verify: an archive need not be what was packed",
        "store/pack.py",
        "    if hashlib.sha256(content).hexdigest() != digest:\n",
        "    if False:\n",
        LINKS,
    ),
    Fault(
        "pack, text=false: translations are packed all the same",
        "store/pack.py",
        '"runs/*/evaluations/*.t[sx][tv]", ',
        "",
        LINKS,
    ),
    Fault(
        "pack: the runs of tuning stay behind",
        "judge/selection_of_study.py",
        "tried=_tried(study.trials),",
        "tried=(),",
        PACKED,
    ),
]
