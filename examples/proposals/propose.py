"""A proposer that knows nothing: changes drawn at random, a few of them planted ones that help, judged by `ablab try`.

    python propose.py line|numbers [60] [jobs]

It reads what `ablab try` and `ablab confirm` print as JSON, as any program that proposes changes would, and counts.
"""

import json
import random
import subprocess
import sys
from collections import Counter

SHARE = 0.15
"""Of proposals that are planted ones."""

GOOD = {
    "line": ("rate=0.02", "rate=0.03", "momentum=0.5", "batch=4"),
    "numbers": ("optim.lr=3e-3", "optim.lr=5e-3", "model.dropout=0", "feed_forward=swiglu", "position=rope"),
}
"""The planted changes, of which some make the first baseline better, or better together with others."""


def idle(loop: str, rng: random.Random) -> str:
    """Return a change without effect, or with none that could be seen."""
    if loop == "line":
        return f"{rng.choice(('colour', 'order'))}={rng.randrange(2, 1_000_000)}"
    return rng.choice((f"optim.eps={rng.randrange(10, 100)}e-11", f"optim.beta2=0.980{rng.randrange(1, 1000):03}"))


def asked(*words: str) -> tuple[int, dict]:
    """Return the exit code of a command of ablab, and what it printed."""
    done = subprocess.run(["ablab", *words, "format=json"], stdout=subprocess.PIPE, text=True)
    if not done.stdout:
        sys.exit(f"ablab {' '.join(words)} ended with {done.returncode}")
    return done.returncode, json.loads(done.stdout)


def main() -> None:
    """Propose, confirm, and say how many of the kept and of the confirmed changes were planted."""
    loop, count, jobs = sys.argv[1], int((sys.argv[2:3] or ["60"])[0]), (sys.argv[3:4] or ["2"])[0]
    rng, good = random.Random(loop), GOOD[loop]
    words = (f"experiment={loop}", f"hydra.launcher.jobs={jobs}")
    outcomes: Counter[str] = Counter()
    kept, told = [], {}
    for number in range(count):
        is_good = rng.random() < SHARE
        change = rng.choice(good) if is_good else idle(loop, rng)
        _, told = asked("try", change, f"because=draw {number}", *words)
        outcomes["known" if told["known"] else told["outcome"]] += 1
        if told["outcome"] == "kept" and not told["known"]:
            kept.append(change)
        print(f"{number + 1:3} {change:28} {told['outcome']}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in outcomes.most_common()))
    print(f"kept: {', '.join(kept)}; not planted: {', '.join(one for one in kept if one not in good) or 'none'}")
    if kept:
        _, confirmed = asked("confirm", *words)
        false = [one for one in confirmed["stands"] if one not in good]
        print(f"confirmed: {', '.join(confirmed['stands']) or 'none'}; not planted: {', '.join(false) or 'none'}")


if __name__ == "__main__":
    main()
