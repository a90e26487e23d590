"""The help pages, generated from the configuration folder without heavy imports."""

from collections.abc import Callable, Sequence

from ablab.config.groups import conf_dir, default_choices, groups
from ablab.config.listing import listed_fields, typed_choices


def overview() -> str:
    """Return the output of `ablab` without arguments."""
    return "\n".join(
        [
            "ablab: ablation studies of encoder-decoder Transformers in machine translation",
            "",
            "  ablab train key=value ...       train, decode and score one run; --help lists the keys",
            "  ablab train -m ...              a sweep, or -m experiment=<name>: only what is missing runs",
            "  ablab study experiment=<name>   plan and state of a study",
            "  ablab report experiment=<name>  what a study has found: statistics, verdicts, pictures, LaTeX",
            "  ablab prune run=<id> ...        quality against depth of a finished run; cuts out a smaller model",
            "  ablab translate run=<id> ...    translate standard input with a run's selected weights",
            "  ablab analyse run=<id> ...      look inside a run: ScaleNorm's g, cross-attention, worth of each head",
            "  ablab export run=<id> ...       write a model for CTranslate2, checked against ours",
            "  ablab sync                      upload to W&B what was logged offline",
            "  ablab selfcheck resume          kill a run again and again; it must end bit for bit the same",
            "",
            "In a checkout: python train.py, study.py, report.py, prune.py, translate.py.",
        ]
    )


def page(verb: str, words: Sequence[str]) -> str:
    """Return the help page of a verb; for train, it depends on the other words."""
    return train_help(words) if verb == "train" else PAGES[verb]()


def train_help(words: Sequence[str]) -> str:
    """Return groups and options with the defaults marked, and the fields of the options that these words choose."""
    defaults = default_choices()
    width = max(len(group) for group in defaults)
    lines = [
        "python train.py [key=value ...]",
        "",
        "Trains one Transformer, selects its weights on validation, translates and scores the test set.",
        "The same line, typed again, continues an interrupted run and prints the result of a finished one.",
        "",
        "  python train.py                                    the built-in corpus, a minute or two on a laptop",
        "  python train.py norm=scalenorm layerdrop=0.2       swap parts, set fields",
        "  python train.py data=multi30k data.path=FOLDER     real text",
        "  python train.py smoke=true                         every stage in seconds; scores mean nothing",
        "  python train.py data=text --help                   this page, with the fields of that option",
        "  python train.py -m norm=pre,post seed=1,2,3        a sweep: arms by seeds; only what is missing runs",
        "  python train.py -m experiment=norms                a study, declared in experiments/norms.yaml",
        "  python train.py -m experiment=search               a search of settings: experiments/search.yaml",
        "",
        "Of a sweep: hydra.launcher.jobs=N runs at a time (cores are divided), hydra.launcher.threads=N of each,",
        "hydra.launcher.gpus=[0,1] with hydra.launcher.per_gpu=N runs on each; retry_failed, fail_fast, rerun=stale.",
        "Elsewhere: hydra/launcher=ray or submitit_slurm, with settings of their own (docs/studies.md).",
        "",
        "Of a search typed with hydra/sweeper=optuna: keys with several values or interval(), hydra.sweeper.trials=N,",
        "hydra.sweeper.stopping=median, hydra.sweeper.objectives=[valid_loss]; sampler, seed, training_seed, storage.",
        "",
        "Groups (group=option; * is the default):",
    ]
    for group in defaults:
        options = [f"{option}*" if option == defaults[group] else option for option in groups()[group]]
        lines.append(f"  {group:<{width}}  {', '.join(options)}")
    chosen = typed_choices(words)
    others = " ".join(f"{group}={option}" for group, option in chosen.items() if option != defaults[group])
    lines += ["", f"Fields and their defaults with {others or 'the default options'}; other options bring others:"]
    lines += [f"  {line}" for line in listed_fields(chosen)]
    return "\n".join(lines)


def study_help() -> str:
    return "\n".join(
        [
            "python study.py experiment=<name> [key=value ...]",
            "",
            "The runs of experiments/<name>.yaml, or of the words of any sweep: how many are planned, running, failed",
            "and finished, and how each arm differs from the baseline. Nothing is started.",
            "",
            "  check            true: every arm builds, trains a few steps and decodes a sentence, in a fresh process;",
            "                   its parameters and the seconds of a step are kept for the plan",
            "  watch            true: a live view, also of runs that other processes make",
            "  format           text (default) or json",
        ]
    )


def report_help() -> str:
    return "\n".join(
        [
            "python report.py experiment=<name> [key=value ...]",
            "python report.py runs=<id>,<id>,...",
            "python report.py where='model=tiny data=multi30k'",
            "",
            "What a study (or the words of any sweep, or any finished runs) has found, from the store alone: arms with",
            "intervals over seeds, differences paired by seed, a verdict for each claim, curves, sentences.",
            "One self-contained page, Markdown, LaTeX, CSV and JSON, in outputs/reports/<name>/.",
            "",
            "  metric           what arms are compared by, instead of the experiment's: test_bleu (default),",
            "                   test_chrf, valid_bleu, valid_loss, training_speed, decoding_speed",
            "  baseline         another arm to compare with",
            "  resamples        of each resampling test; default 10000",
            "  verify           true: every score is made again from stored hypotheses and raw references first",
            "  outputs          the store; default outputs",
        ]
    )


def prune_help() -> str:
    defaults = default_choices()["pruning"]
    options = [f"{option}*" if option == defaults else option for option in groups()["pruning"] if option != "none"]
    fields = (conf_dir() / "pruning" / f"{defaults}.yaml").read_text(encoding="utf-8").splitlines()
    return "\n".join(
        [
            "python prune.py run=<id> [pruning=<strategy>] [key=value ...]",
            "",
            "Test BLEU, chrF, validation loss and decoding speed of a finished run with fewer and fewer layers.",
            "Layers are chosen on validation or by rule; nothing is trained; what was measured is not measured again.",
            "",
            "  run              a run id, a prefix of one, a display name, or a path",
            "  runs             ids or paths with commas between: each gets its curve, all are drawn on one picture",
            f"  pruning          {', '.join(options)}",
            "  save             auto*: the smallest model within 1 BLEU of the full one on validation; none; or",
            "                   encoder+decoder layers, such as 6+3",
            "  picture          where the picture of several runs goes (.png; a .csv lies beside it)",
            "  outputs          the store; default outputs",
            "",
            "Fields of pruning and their defaults; those of decoding and trainer can be set too:",
            *(f"  pruning.{line}" for line in fields),
        ]
    )


def translate_help() -> str:
    return "\n".join(
        [
            "python translate.py run=<id> [key=value ...] < in.txt > out.txt",
            "",
            "Translates one sentence a line with the selected weights of a finished run.",
            "",
            "  run              a run id, a prefix of one, a display name, or a path",
            "  beam_size        default 4; 1 is greedy search",
            "  length_penalty   alpha of ((5 + length) / 6) ** alpha; default 0.6",
            "  n_best           hypotheses a sentence, best first; above 1 each line is",
            "                   number <tab> score <tab> translation; default 1",
            "  max_extra_tokens most tokens a translation has beyond its source; default 50",
            "  attention        a folder for cross-attention pictures, one a sentence",
            "  device           cpu (default) or gpu",
            "  backend          ablab (default) or ctranslate2 (pip install 'ablab[ctranslate2]'): quick on CPUs; cuts",
            "                   what meets the length limit, and an empty sentence stays empty",
            "  outputs          the store; default outputs",
        ]
    )


def analyse_help() -> str:
    return "\n".join(
        [
            "ablab analyse run=<id> [key=value ...]",
            "",
            "Looks inside the selected weights of a finished run: the learned g of every ScaleNorm; cross-attention on",
            "four test sentences, the same for every run; when asked, what masking a head adds to the validation loss.",
            "Kept in the run's artefacts/, from where report.py lays arms side by side; nothing is computed twice.",
            "",
            "  run              a run id, a prefix of one, a display name, or a path",
            "  runs             several of them with commas between",
            "  heads            true: mask every head of every attention in turn; default false",
            "  sentences        of validation, on which heads are masked; default 200",
            "  outputs          the store; default outputs",
            "",
            "Fields of trainer, logger and data that change no weights can be set too: trainer=gpu, data.path=FOLDER.",
        ]
    )


def export_help() -> str:
    return "\n".join(
        [
            "ablab export run=<id> [key=value ...]",
            "",
            "Writes a model, whole or pruned, for another inference engine, translates test sentences with it and with",
            "ours, and says how many differ.",
            "",
            "  run              a run id, a prefix of one, a display name, or a path, also of a pruned model",
            "  format           ctranslate2 (pip install 'ablab[ctranslate2]')",
            "  quantization     float32 (default) or int8",
            "  folder           where it goes, default exports/ in the folder of the run or of the pruned model",
            "  check            test sentences that both translate; default 1000",
            "  outputs          the store; default outputs",
        ]
    )


def sync_help() -> str:
    return "\n".join(
        [
            "ablab sync [key=value ...]",
            "",
            "Uploads to W&B the sessions of all runs and studies that were logged offline and are not there yet.",
            "Type it again at any time: what was sent is not sent again.",
            "",
            "  dry_run          true: only says what is missing there",
            "  outputs          the store; default outputs",
        ]
    )


def selfcheck_help() -> str:
    return "\n".join(
        [
            "ablab selfcheck resume [key=value ...]",
            "",
            "Trains a small model on the built-in corpus, once undisturbed and once killed (SIGKILL) at random moments",
            "and continued, in a temporary folder, and compares weights, record and translations bit for bit.",
            "",
            "  kills            how often; default 5",
            "  seed             of the moments; default 1",
            "  words            more for the run, such as words='trainer.threads=4 norm=scalenorm'",
        ]
    )


PAGES: dict[str, Callable[[], str]] = {
    "study": study_help,
    "report": report_help,
    "prune": prune_help,
    "translate": translate_help,
    "analyse": analyse_help,
    "export": export_help,
    "sync": sync_help,
    "selfcheck": selfcheck_help,
}
"""The page of each verb except train, whose page depends on the typed options."""
