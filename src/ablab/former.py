"""Former names of modules that parts from outside import: they lead to the modules of today, and no run is renamed."""

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

FORMER: Mapping[str, str] = {
    "ablab.store.custody": "ablab.judge.custody",
    "ablab.store.own_metrics": "ablab.tasks.own_metrics",
    "ablab.store.conditions": "ablab.tasks.conditions",
    "ablab.report.page_tables": "ablab.report.columns",
    "ablab.judge.verify": "ablab.commands.verification",
    "ablab.statistics.ranks": "ablab.statistics.diverged",
    "ablab.store.stored_code": "ablab.store.shared",
    "ablab.console": "ablab.tracking.console",
    "ablab.cli": "ablab.commands.cli",
    "ablab.launchers": "ablab.sweep.launchers",
    "ablab.plan": "ablab.tasks.plan",
    "ablab.identity": "ablab.tasks.identity",
    "ablab.scoring": "ablab.transformer.data.scoring",
    "ablab.model": "ablab.transformer.model",
    "ablab.data": "ablab.transformer.data",
    "ablab.training": "ablab.transformer.training",
    "ablab.decoding": "ablab.transformer.decoding",
    "ablab.pruning": "ablab.transformer.pruning",
    "ablab.analysis": "ablab.transformer.analysis",
    "ablab.export": "ablab.transformer.export",
    "ablab.build.model": "ablab.transformer.stages.models",
    "ablab.build.training": "ablab.transformer.stages.builders",
    "ablab.build.stretch": "ablab.transformer.stages.stretch",
    "ablab.contracts": "ablab.transformer.contracts",
    "ablab.stages": "ablab.transformer.stages",
}
"""By the name that a package or module had, the name that it has; a module goes before the package that it is in."""

MERGED: Mapping[str, str] = {
    "ablab.config.reopen": "ablab.config.compose",
    "ablab.tasks.stopping": "ablab.code.machine",
    "ablab.sweep.attempts": "ablab.sweep.watch",
    "ablab.statistics.proportions": "ablab.statistics.diverged",
    "ablab.judge.format": "ablab.text",
    "ablab.judge.conditions": "ablab.judge.estimates",
    "ablab.study.tuning_study": "ablab.study.definition",
    "ablab.sweep.hydra_words": "ablab.sweep.hydra",
    "ablab.code.roots": "ablab.code.code",
    "ablab.config.listing": "ablab.commands.help",
    "ablab.config.schemas": "ablab.config.schema",
    "ablab.report.shown": "ablab.report.plain_words",
    "ablab.study.contrasts": "ablab.study.claims",
    "ablab.store.garbage": "ablab.code.machine",
    "ablab.store.store_id": "ablab.tracking.card",
    "ablab.store.stored_text": "ablab.store.shared",
    "ablab.judge.both_ways": "ablab.judge.tuned",
    "ablab.judge.stamped": "ablab.commands.verification",
    "ablab.statistics.sentences": "ablab.statistics.resampling",
    "ablab.statistics.scatter": "ablab.statistics.conditions",
    "ablab.statistics.factorial": "ablab.statistics.anova",
    "ablab.api.card": "ablab.commands.show",
    "ablab.api.removal": "ablab.commands.rm",
    "ablab.api.listing": "ablab.commands.ls",
    "ablab.api.differences": "ablab.commands.diff",
    "ablab.build.pruning": "ablab.transformer.pruning.search",
    "ablab.build": "ablab.transformer.stages",
    "ablab.threads": "ablab.code.machine",
    "ablab.code.equal": "ablab.code.differences",
    "ablab.code.files": "ablab.code.find",
    "ablab.code.shipped": "ablab.code.folders",
    "ablab.commands.schedules": "ablab.transformer.translation.verbs.analyse",
    "ablab.commands.short_names": "ablab.commands.ls",
    "ablab.config.malformed": "ablab.config.grammar",
    "ablab.config.plain": "ablab.config.values",
    "ablab.fonts": "ablab.files",
    "ablab.lines": "ablab.files",
    "ablab.plain_yaml": "ablab.config.plain_yaml",
    "ablab.program": "ablab.text",
    "ablab.search.draws": "ablab.search.sampling",
    "ablab.statistics.planning": "ablab.statistics.power",
    "ablab.tracking.feed": "ablab.tracking.sender",
    "ablab.tracking.shared": "ablab.tracking.wandb",
    "ablab.transformer.analysis.heads": "ablab.transformer.analysis.inspect",
    "ablab.transformer.analysis.plot_matrices": "ablab.transformer.analysis.plot",
    "ablab.transformer.build.model": "ablab.transformer.stages.models",
    "ablab.transformer.build.training": "ablab.transformer.stages.builders",
    "ablab.transformer.build.stretch": "ablab.transformer.stages.stretch",
    "ablab.transformer.build.pruning": "ablab.transformer.pruning.search",
    "ablab.transformer.build": "ablab.transformer.stages",
    "ablab.transformer.language_model.verbs.options": "ablab.transformer.language_model.verbs.generate",
    "ablab.transformer.config.smoke": "ablab.transformer.config.training",
    "ablab.transformer.contracts": "ablab.transformer.translation.contracts",
    "ablab.transformer.data.download": "ablab.transformer.data.multi30k",
    "ablab.transformer.data.epochs": "ablab.transformer.data.steps",
    "ablab.transformer.data.number_sentences": "ablab.transformer.data.numbers",
    "ablab.transformer.data.progress": "ablab.transformer.data.blocks",
    "ablab.transformer.data.sources": "ablab.transformer.data.text",
    "ablab.transformer.data.tables": "ablab.transformer.data.text_files",
    "ablab.transformer.data.training_tokenizers": "ablab.transformer.data.preparation",
    "ablab.transformer.data.words": "ablab.transformer.data.encoding",
    "ablab.transformer.decoding.beam": "ablab.transformer.decoding.search",
    "ablab.transformer.decoding.greedy": "ablab.transformer.decoding.search",
    "ablab.transformer.decoding.stopping": "ablab.transformer.decoding.search",
    "ablab.transformer.decoding.words": "ablab.transformer.decoding.search",
    "ablab.transformer.model.attention_norms": "ablab.transformer.model.norms",
    "ablab.transformer.model.dot_product": "ablab.transformer.model.attention",
    "ablab.transformer.model.drophead": "ablab.transformer.model.dropout",
    "ablab.transformer.pruning.head_search": "ablab.transformer.pruning.search",
    "ablab.transformer.scoring": "ablab.transformer.data.scoring",
    "ablab.transformer.stages.analyse": "ablab.transformer.translation.analyse",
    "ablab.transformer.stages.analyses": "ablab.transformer.translation.analyses",
    "ablab.transformer.stages.by_length": "ablab.transformer.translation.texts",
    "ablab.transformer.stages.evaluate": "ablab.transformer.translation.evaluate",
    "ablab.transformer.stages.looks": "ablab.transformer.translation.analyse",
    "ablab.transformer.stages.opened": "ablab.transformer.translation.analyse",
    "ablab.transformer.stages.prune_curve": "ablab.transformer.translation.prune_curve",
    "ablab.transformer.stages.texts": "ablab.transformer.translation.analyses",
    "ablab.transformer.stages.validated": "ablab.transformer.translation.prune_curve",
    "ablab.transformer.stages.worker": "ablab.transformer.stages.train",
    "ablab.transformer.training.chunks": "ablab.transformer.training.loss",
    "ablab.transformer.training.trainer": "ablab.transformer.training.loop",
    "ablab.transformer.training.compile": "ablab.transformer.model.modes",
    "ablab.transformer.translation.translating": "ablab.transformer.translation.verbs.translate",
    "ablab.wording": "ablab.text",
}
"""By the name of a module that another one took in, the name of that one. `former` knows none of these: code that still
names the module taken in has the digest that it always had, and so has code that names the other."""


def current(dotted: str) -> str:
    """Return the dotted name that leads, today, to what this one led to."""
    return _renamed(_renamed(dotted, FORMER), MERGED)


def former(dotted: str) -> str:
    """Return the dotted name that code digests of parts from outside have for this one: as it was at first."""
    return _renamed(dotted, {after: before for before, after in FORMER.items()})


def _renamed(dotted: str, names: Mapping[str, str]) -> str:
    found = (name for name in names if f"{dotted}.".startswith(f"{name}."))
    return next((names[name] + dotted.removeprefix(name) for name in found), dotted)


class Finder(MetaPathFinder):
    """Finds a module by a name that it had."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        name = current(fullname) if fullname.startswith("ablab.") else fullname
        return None if name == fullname else ModuleSpec(fullname, _Imported(name))


class _Imported(Loader):
    """Hands over the module itself, so that it is never run twice."""

    def __init__(self, name: str) -> None:
        self.name = name

    def exec_module(self, module: ModuleType) -> None:
        sys.modules[module.__name__] = import_module(self.name)
