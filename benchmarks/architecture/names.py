"""The names on the page: the way of a run, where to add a part, and where to find an answer."""

from typing import NamedTuple


class Step(NamedTuple):
    """A function or class that a run passes through, and what it calls; `label`: its part in a word or two."""

    label: str
    name: str
    inner: tuple["Step", ...] = ()


RUN = (
    Step("command line", "ablab.commands.cli.main"),
    Step("verb", "ablab.commands.train.train"),
    Step(
        "configuration",
        "ablab.config.compose.compose",
        (
            Step("YAML and overrides", "ablab.config.values.values_of"),
            Step("types and rules", "ablab.config.compose.validate"),
        ),
    ),
    Step(
        "plan",
        "ablab.tasks.plan.plan",
        (Step("recipe", "ablab.tasks.identity.recipe"), Step("run id", "ablab.tasks.identity.run_id")),
    ),
    Step(
        "run",
        "ablab.run.run",
        (
            Step("lock", "ablab.store.locks.locked"),
            Step("record so far", "ablab.store.run_folder.RunFolder.record"),
        ),
    ),
    Step(
        "stage: before training",
        "ablab.transformer.translation.training.prepare_training",
        (
            Step("prepare", "ablab.transformer.data.prepared.prepare"),
            Step("build", "ablab.transformer.stages.train.build_start"),
        ),
    ),
    Step(
        "stage: training",
        "ablab.transformer.stages.train.train",
        (
            Step("fit", "ablab.transformer.training.loop.fit"),
            Step("one step", "ablab.transformer.training.module.TrainingModule.training_step"),
            Step("between steps", "ablab.transformer.training.loop.TrainingLoop.on_train_batch_end"),
            Step("select", "ablab.transformer.training.checkpoints.Checkpoints.choose"),
            Step("record", "ablab.store.run_folder.RunFolder.write_record"),
        ),
    ),
    Step(
        "stage: evaluation",
        "ablab.transformer.translation.evaluate.evaluate",
        (
            Step("translate", "ablab.transformer.decoding.translator.Translator"),
            Step("score", "ablab.transformer.data.scoring.score"),
            Step("record", "ablab.store.run_folder.RunFolder.write_evaluation"),
        ),
    ),
    Step(
        "stage: pruning curve",
        "ablab.transformer.stages.pruning_curve.prune_curve",
        (
            Step("choose layers", "ablab.transformer.pruning.search.build_strategy"),
            Step("remove layers", "ablab.transformer.pruning.surgery.prune"),
            Step("record", "ablab.store.run_folder.RunFolder.write_curve"),
        ),
    ),
    Step("result", "ablab.tracking.console.Console.result"),
)
"""From the command line to the record, in order."""


class Addition(NamedTuple):
    """`like`: an example, or the base class; `register`: what names the new one; `options`: the folder of its YAML."""

    thing: str
    like: tuple[str, ...]
    register: tuple[str, ...] = ()
    options: str | None = None


ADDITIONS = (
    Addition("task", ("ablab.tasks.own.OwnTask",), (), "conf/task"),
    Addition(
        "task with settings that no other has",
        ("ablab.transformer.translation.task.Translation", "ablab.config.schema.Config"),
        ("ablab.config.schema.SCHEMAS",),
        "conf/task",
    ),
    Addition("norm", ("ablab.transformer.model.norms.ScaleNorm",), (), "conf/norm"),
    Addition("placement", ("ablab.transformer.model.residual.Residual",), (), "conf/placement"),
    Addition("position", ("ablab.transformer.model.positions.LearnedPositions",), (), "conf/position"),
    Addition("feed-forward", ("ablab.transformer.model.feed_forward.SwiGLU",), (), "conf/feed_forward"),
    Addition("initialiser", ("ablab.transformer.model.initialisation.Xavier",), (), "conf/init"),
    Addition(
        "learning-rate schedule",
        ("ablab.transformer.training.schedules.cosine", "ablab.transformer.training.state.ValidationSchedule"),
        (),
        "conf/schedule",
    ),
    Addition("DropHead schedule", ("ablab.transformer.training.schedules.rising",), (), "conf/drophead"),
    Addition("optimiser", ("ablab.transformer.training.optimisers.adam",), (), "conf/optim"),
    Addition("loss", ("ablab.transformer.training.loss.token_loss",), (), "conf/loss"),
    Addition("corpus", ("ablab.transformer.data.corpus.Corpus",), (), "conf/data"),
    Addition(
        "pruning strategy",
        ("ablab.transformer.pruning.strategies.Rule", "ablab.transformer.pruning.strategies.Strategy"),
        (),
        "conf/pruning",
    ),
    Addition(
        "callback",
        ("ablab.transformer.training.callbacks.Callback",),
        ("ablab.transformer.stages.callbacks.run_callbacks",),
    ),
    Addition("tracker", ("ablab.tracking.tracker.Tracker",), (), "conf/logger"),
    Addition(
        "launcher", ("ablab.sweep.launchers.base.Launcher",), ("hydra_plugins.ablab_hydra.launchers.StudyLauncher",)
    ),
    Addition(
        "report metric",
        ("ablab.tasks.score.Score",),
        ("ablab.transformer.translation.scores.SCORES", "ablab.study.experiment.Claimed"),
    ),
    Addition(
        "verb",
        ("ablab.commands.train.train", "ablab.commands.options.TrainOptions"),
        ("ablab.tasks.verbs.VERBS",),
    ),
)

QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "Where does an option's class come from, and what is it handed?",
        ("ablab.code.find.find_part", "ablab.code.load.construct", "ablab.config.schema.part_groups"),
    ),
    (
        "Where is ScaleNorm's g set?",
        (
            "ablab.transformer.model.norms.ScaleNorm",
            "ablab.transformer.stages.models.ModelBuilder.norm",
            "ablab.transformer.model.initialisation.initialise",
        ),
    ),
    (
        "Where do pre-norm and post-norm differ?",
        (
            "ablab.transformer.model.residual.PreNorm",
            "ablab.transformer.model.residual.PostNorm",
            "ablab.transformer.stages.models.ModelBuilder.residual",
        ),
    ),
    (
        "Where are the word embeddings tied?",
        ("ablab.transformer.model.embedding.TiedEmbeddings",),
    ),
    (
        "Where does LayerDrop draw the layers that a step skips?",
        ("ablab.transformer.model.layerdrop.LayerDrop", "ablab.transformer.model.transformer.Encoder"),
    ),
    (
        "Where is Adam kept from stepping layers that were skipped?",
        (
            "ablab.transformer.training.module.TrainingModule.training_step",
            "ablab.transformer.training.distributed.ProcessGroup.add_up",
        ),
    ),
    (
        "Where do the processes of one run meet, and sum their gradients?",
        (
            "ablab.transformer.training.workers.lead",
            "ablab.transformer.training.workers.follow",
            "ablab.transformer.training.distributed.ProcessGroup.add_up",
        ),
    ),
    (
        "Where are the options of a verb parsed, and its help page made?",
        ("ablab.tasks.verbs.read_words", "ablab.commands.help.page"),
    ),
    (
        "Which settings exist, and what are their ranges?",
        (
            "ablab.config.schema.Config",
            "ablab.transformer.config.schema.TranslationConfig",
            "ablab.code.signature.signature",
        ),
    ),
    (
        "What goes into a run id?",
        ("ablab.tasks.identity.recipe", "ablab.fields.Role"),
    ),
    (
        "Where does run=<id> become a run?",
        (
            "ablab.store.finished.find_run",
            "ablab.store.finished.open_run",
            "ablab.transformer.pruning.saved_model.find_model",
        ),
    ),
    (
        "Where is it decided what an analysis makes, and where is it made?",
        (
            "ablab.transformer.translation.analyses.wanted",
            "ablab.transformer.translation.analyse.MAKERS",
            "ablab.transformer.translation.analyse.LOOKS",
        ),
    ),
    (
        "Where is a run found to be already finished?",
        (
            "ablab.run.run",
            "ablab.store.run_folder.RunFolder.record",
            "ablab.tasks.plan.PlannedRun.lacks_evaluation",
        ),
    ),
    (
        "Where does an interrupted run continue?",
        (
            "ablab.transformer.stages.train.build_start",
            "ablab.transformer.training.checkpoints.load_last",
            "ablab.transformer.stages.stretch.begin_stretch",
        ),
    ),
    (
        "Where do random draws get their seed?",
        ("ablab.seeding.derive", "ablab.transformer.model.streams.reseed"),
    ),
    (
        "Where are sentences put into batches?",
        (
            "ablab.transformer.data.steps.Epochs",
            "ablab.transformer.data.steps.TrainingSteps",
            "ablab.transformer.data.batches.collate",
        ),
    ),
    (
        "Where is the training loss computed?",
        (
            "ablab.transformer.training.loss.token_loss",
            "ablab.transformer.training.module.TrainingModule.training_step",
        ),
    ),
    (
        "Which weights are evaluated on the test set?",
        ("ablab.transformer.training.selection.Selection", "ablab.transformer.training.checkpoints.Checkpoints.choose"),
    ),
    (
        "Where is test BLEU computed?",
        ("ablab.transformer.translation.evaluate.evaluate", "ablab.transformer.data.scoring.score"),
    ),
    (
        "Where are layers removed from a trained model?",
        ("ablab.transformer.pruning.strategies.EveryOther", "ablab.transformer.pruning.surgery.prune"),
    ),
    (
        "Where does a sweep decide which runs to start?",
        ("ablab.sweep.sweep.sweep", "ablab.study.ledger.entry_of"),
    ),
    (
        "Where does the p-value of a claim come from?",
        (
            "ablab.judge.estimates.estimates",
            "ablab.statistics.moderated.moderated",
            "ablab.statistics.verdict.verdicts",
        ),
    ),
    (
        "Where is a report found to be provisional?",
        (
            "ablab.judge.selection_of_study.of_study",
            "ablab.judge.claims.judge",
            "ablab.statistics.verdict.so_far",
        ),
    ),
    (
        "Where is a p-value corrected for several claims?",
        ("ablab.statistics.verdict.verdicts", "ablab.statistics.multiple.family"),
    ),
)
"""What a newcomer asks, and the definitions to read, in this order: three at most."""


def names() -> list[str]:
    """Every name that this file looks up."""
    run = [name for step in RUN for name in (step.name, *(inner.name for inner in step.inner))]
    added = [name for addition in ADDITIONS for name in (*addition.like, *addition.register)]
    return list(dict.fromkeys([*run, *added, *(name for _, found in QUESTIONS for name in found)]))
