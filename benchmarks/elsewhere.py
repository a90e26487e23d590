"""Make the tables of docs/results/elsewhere from what others have published.

    git clone https://github.com/KellerJordan/modded-nanogpt && git -C modded-nanogpt checkout <commit>
    python -m benchmarks.elsewhere speedrun modded-nanogpt       # also: nanogpt_optimizers
    python -m benchmarks.elsewhere algoperf submissions_algorithms
    python -m benchmarks.elsewhere deepobs DeepOBS_Baselines
    python -m benchmarks.elsewhere transformer_modifications

Each writes docs/results/elsewhere/NAME/NAME.csv, a row for each run and metric, from HEAD of the clone; the pages name
the commits. Only the last takes no clone: it makes its runs from the means and deviations of a published table. Runs
are numbered in the order of their files where nothing names their seeds.
"""

import csv
import hashlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "results" / "elsewhere"
Row = tuple[str, int, str, float | str]
"""Arm, seed, metric, value."""


class Clone:
    """The files of HEAD of a git repository; a bare one will do, and files that a partial one lacks are empty."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def files(self, under: str) -> list[str]:
        return sorted(self._git("ls-tree", "-r", "--name-only", "HEAD", under).splitlines())

    def text(self, file: str) -> str:
        return self._git("show", f"HEAD:{file}", check=False)

    def _git(self, *words: str, check: bool = True) -> str:
        ended = subprocess.run(["git", "-C", self.folder, *words], capture_output=True, check=check)
        return ended.stdout.decode(errors="replace")


RECORDS = "records/track_1_short"
REPEATED = {
    30: ("2025-09-05_SkipMLPBlocks", "c62556", "97cc47"),
    48: ("2025-12-11_NorMuonOptimsAndFixes", "5e9496", "738930"),
    52: ("2025-12-21_SmoothedScalars", "50feae", "6ec61b"),
    56: ("2025-12-31_GatesToCompiledAdam", "09845d", "88addd"),
    61: ("2026-01-18_UnifiedOptimizers", "67b204", "9c168c"),
    63: ("2026-01-26-UntieValueEmbeddings", "e5afee", "95f535"),
    67: ("2026-01-24_ImprovedLMHead", "f850a8", "c17823"),
    71: ("2026-02-06_SparseBigramGradient", "ab0878", "c17823"),
    74: ("2026-02-16_FlattenForward", "07ff79", "34a791"),
    76: ("2026-02-28_TransposeCopyBackward", "b10950", "234ef8"),
    78: ("2026-03-22_VarlenMaxDocs", "578d58", "3d6098"),
    80: ("2026-04-08_PairedHeadMuon", "d3cc10", "578d58"),
    81: ("2026-04-22_MuddFormer", "bbbb8f", "11d403"),
    82: ("2026-04-29_XSAGatedLayers", "4d8e38", "11d403"),
    83: ("2026-05-20_BigramsSignTrick", "310253", "28032e"),
    84: ("2026-05-19_FP8MLPUpProj", "c88bd6", "28032e"),
    85: ("2026-05-27-MuddGatedAndDC", "3ac46a", "148950"),
    87: ("2026-06-11_RecursiveFromBest", "8ec795", "2b9c0a"),
    88: ("2026-07-13_PrefixTokenPrediction", "1abb34", "457cfe"),
    89: ("2026-07-17_FP8DownProjection", "c9e1b7", "457cfe"),
}
"""Records with three runs or more of them and of a baseline: their folder, and the digests of the two codes."""

LOGGED = {
    13: ("2024-11-24_WindowWarmup", None),
    14: ("2024-12-04_ValueEmbed", None),
    15: ("2024-12-08_UNetValueEmbedsTweaks", None),
    16: ("2024-12-10_MFUTweaks", None),
    26: ("2025-07-12_BosAlign", "be7cf6"),
    28: ("2025-08-23_SparseAttnGate", None),
    29: ("2025-09-03_FA3", None),
    31: ("2025-09-10_Yarn", "298250"),
    32: ("2025-09-11_VectSigmoidBFloat16", None),
    33: ("2025-09-15_AsyncDataLoadAttnFinalWindow", None),
    34: ("2025-09-18_Smear", None),
    35: ("2025-09-21_DropAttn", None),
    37: ("2025-09-27_BF16CE", None),
    38: ("2025-09-29_PolarExpress", None),
    39: ("2025-09-30_CustomBatching", None),
    40: ("2025-10-04_Backout", None),
    41: ("2025-10-24_NorMuon", None),
    42: ("2025-10-27_FixMuonLR", None),
    43: ("2025-11-10_CautiousWD", None),
    44: ("2025-10-31_AdamSyncGradientHook", None),
    46: ("2025-11-29_BatchSizeSchedule", "e4c601"),
    47: ("2025-12-10_SALambdaOnWeights", None),
    49: ("2025-12-14_PartialKeyOffset", "a3937c"),
    50: ("2025-12-18_CautiousWDAdam", None),
    51: ("2025-12-19_RetieLMHead", None),
    53: ("2025-12-22_MultiTokenPrediction", "c72fb0"),
    54: ("2025-12-26_LogitRescale", None),
    55: ("2025-12-29_VeSkipGates", "ba056c"),
    57: ("2026-01-04_MixedPrecisionInterweavedOptimizer", None),
    58: ("2026-01-07_PairedHeadAttention", None),
    60: ("2026-01-16_FusedSoftcappedEntropy", None),
    62: ("2026-01-19_BigramHashEmbedding", None),
    64: ("2026-01-30_MimeticValueOutput", None),
    65: ("2026-01-30_VeFused", None),
    68: ("2026-01-31-BigramHashH2D", None),
    70: ("2026-02-03_VeTuned", None),
    72: ("2026-02-10_ShortWindow", "a01d4d"),
    73: ("2026-02-12_ParallelResiduals", None),
    75: ("2026-02-23_CrossEntropyKernel", None),
    77: ("2026-03-06_SimplifyHC", None),
    79: ("2026-04-04_FuseCEFwdAndBwd", "0ad091"),
}
"""The other records with three runs or more: the folder and, where it has several codes, the digest of the record's."""

ENDED = re.compile(r"^step:(\d+)/\1 val_loss:([\d.]+) train_time:(\d+)ms", re.MULTILINE)
"""The line of a finished run: its last step, loss and time. The first records separate the words in another way."""

EIGHT_GPUS = 300
"""Seconds. One record was also run for ten minutes on fewer GPUs."""


def speedrun(clone: Clone) -> Iterator[Row]:
    """Yield time and loss of the logged runs of each record, and of the record before it on the same machine."""
    logs: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)
    for file in clone.files(f"{RECORDS}/"):
        if file.endswith(".txt"):
            text = clone.text(file)
            if (ended := ENDED.search(text)) and (seconds := int(ended[3]) / 1000) < EIGHT_GPUS:
                code = re.sub(r"\s+", " ", text.split("=" * 100)[0])
                digest = hashlib.md5(code.encode(), usedforsecurity=False).hexdigest()[:6]
                logs[file.split("/")[2], digest].append((seconds, float(ended[2])))
    arms = {f"{n} before": logs[folder, before] for n, (folder, _, before) in REPEATED.items()}
    arms |= {str(n): logs[folder, code] for n, (folder, code, _) in REPEATED.items()}
    for n, (folder, code) in LOGGED.items():
        arms[str(n)] = (
            logs[folder, code] if code else [run for key, of in logs.items() if key[0] == folder for run in of]
        )
    for name in sorted(arms, key=lambda arm: (int(arm.split()[0]), " " not in arm)):
        for seed, (seconds, loss) in enumerate(arms[name], 1):
            yield name, seed, "train_seconds", seconds
            yield name, seed, "val_loss", loss


TRACK_3 = "records/track_3_optimization/results"
RESULTS = {
    6: (3375, "51ece938-03c5-4343-8dcc-3f3336b07008.txt"),
    12: (3325, "1bd8db7a-f3a3-4195-856d-cab7e0816443.txt"),
    5: (3325, "20260430_muonh/"),
    8: (3250, "20260430_normuonh/"),
    9: (3250, "20260501_skylight001/"),
    11: (3225, "20260501_contra_muon/"),
    13: (3210, "20260504_muloco_normuonh/"),
    14: (3150, "20260504_contra_muon_mlp_soapish/"),
    16: (3125, "20260506_trustlight/idea"),
    20: (3030, "20260509_contra_soft_muon/"),
    29: (2990, "20260511_dampen_radial_gradient_component/"),
    30: (2930, "20260514_aurora_proj_pruned_extended_contra/"),
    34: (2925, "20260520_rre_extrapolation_pr300_2925/"),
    38: (2900, "20260520_tail_refinterp_2900/"),
    40: (2890, "20260522_ema_nesterov_aurora_proj/"),
    42: (2860, "20260525_aurora_ema_ref/"),
    43: (2850, "20260529_tail_phase_readout_2850/"),
    44: (2750, "20260609_soap_f1_auxb2_clean/H100"),
    45: (2720, "20260611_tailema_2720_submission/"),
    46: (2690, "20260619_cwd_rowfloor_tailema/"),
}
"""Steps to the target that a result reports, and where its logs are."""


def nanogpt_optimizers(clone: Clone) -> Iterator[Row]:
    """Yield the loss of each logged run at the step that its result reports; 46 reports that of averaged weights."""
    for n, (steps, where) in RESULTS.items():
        seed = 0
        for file in clone.files(f"{TRACK_3}/"):
            if file.startswith(f"{TRACK_3}/{where}") and file.endswith(".txt"):
                name = "val_ema_loss" if n == 46 else "val_loss"
                for loss in re.findall(rf"step:{steps}/\d+ .*?\b{name}:([\d.]+)", clone.text(file)):
                    seed += 1
                    yield str(n), seed, "val_loss", float(loss)


STUDIES = "previous_leaderboards/algoperf_v05/logs/self_tuning"


def algoperf(clone: Clone) -> Iterator[Row]:
    """Yield the hours that each run of the self-tuning ruleset took to its target; `diverged` if it never got there."""
    targets = json.loads(clone.text("scoring/workload_targets_v05.json"))
    for file in clone.files(f"{STUDIES}/"):
        if not file.endswith("/trial_1/measurements.csv"):
            continue
        submission, study, workload = file.removeprefix(f"{STUDIES}/").split("/")[:3]
        workload = workload.rsplit("_", 1)[0]
        if workload in targets["base_workloads"]:
            target = targets["workloads"][workload]
            hours = _reached(csv.DictReader(clone.text(file).splitlines()), target)
            yield f"workload={workload},submission={submission}", int(study[-1]), "hours_to_target", hours


def _reached(rows: Iterable[dict[str, str]], target: dict[str, str | float]) -> float | str:
    """Return the hours of training at the first evaluation that reaches the target."""
    metric, value = str(target["target_metric_name"]), float(target["validation_target_value"])
    sign = -1 if metric in ("loss", "wer") else 1
    for row in rows:
        if (found := row[f"validation/{metric}"]) and sign * float(found) >= sign * value:
            return float(row["accumulated_submission_time"]) / 3600
    return "diverged"


def deepobs(clone: Clone) -> Iterator[Row]:
    """Yield what each run of the chosen settings, of which there are ten seeds, scores at its end on the test set."""
    runs = defaultdict(list)
    for file in clone.files("."):
        if file.endswith(".json") and file.count("/") == 3:
            problem, optimizer, settings, _ = file.split("/")
            runs[problem, optimizer, settings].append(file)
    for (problem, optimizer, _), files in runs.items():
        if len(files) != 10:
            continue
        for file in files:
            run = json.loads(clone.text(file))
            arm = f"problem={problem},optimizer={optimizer.removesuffix('Optimizer')}"
            for metric, key in (("test_loss", "test_losses"), ("test_accuracy", "test_accuracies")):
                if run.get(key):
                    yield arm, run["random_seed"], metric, run[key][-1]


def transformer_modifications() -> Iterator[Row]:
    """Yield five values for each row of means.csv, which have its mean and standard deviation.

    The five are no runs: normal scores, shuffled by arm so that arms do not seem to vary together, shifted and scaled.
    """
    rng = np.random.default_rng(0)
    with (FOLDER / "transformer_modifications" / "means.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            values = rng.normal(size=5)
            values = (values - values.mean()) / values.std(ddof=1)
            for seed, value in enumerate(float(row["mean"]) + float(row["sd"]) * values, 1):
                yield row["arm"], seed, "early_loss", round(float(value), 6)


FROM_CLONES = {each.__name__: each for each in (speedrun, nanogpt_optimizers, algoperf, deepobs)}
TYPED = transformer_modifications.__name__


def main(*words: str) -> None:
    if len(words) == 2 and words[0] in FROM_CLONES:
        rows = FROM_CLONES[words[0]](Clone(words[1]))
    elif words == (TYPED,):
        rows = transformer_modifications()
    else:
        sys.exit(f"allowed: {TYPED}, or one of {', '.join(FROM_CLONES)} and the folder of its clone")
    with (FOLDER / words[0] / f"{words[0]}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("arm", "seed", "metric", "value"))
        writer.writerows(rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
