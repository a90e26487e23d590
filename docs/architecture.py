"""Writes docs/architecture.md from the sources; with `--check` it only says whether the page is stale.

It parses the sources and imports nothing of the package. The order of the packages is that of
tests/test_architecture.py. Names and folders in the tables below are looked up; one that is gone stops the generator.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
PAGE = ROOT / "docs" / "architecture.md"
RULES = ROOT / "tests" / "test_architecture.py"
PLUGINS = "src/hydra_plugins/ablab_hydra"

TEXT = """\
# Architecture

<!-- Written by docs/architecture.py. Edit that file or the docstrings, then run it. -->

Generated from the code by `python docs/architecture.py`; a test fails when the page is stale. A name such as `run.run`
stands for `ablab.run.run` and links to its file.

- [Packages](#packages): what each one is for
- [What imports what](#what-imports-what)
- [What a run goes through](#what-a-run-goes-through), from the command line to the record
- [Where do I add ...](#where-do-i-add-)
- [Where do I find ...](#where-do-i-find-)

## Packages

The packages and top-level modules of `src/ablab`. A storey imports only from itself and from the storeys above it in
this table; `tests/test_architecture.py` checks that. Lines are rounded to two digits. *Never* means that importing the
package loads neither PyTorch nor Lightning, wandb or Matplotlib, so that help, plans and reports start fast.

{packages}

Beside the package, {plugins} makes the launchers and sweepers known to Hydra. The YAML files in {conf} hold the
default of every setting.

## What imports what

An arrow means *imports*. The graph leaves out an import where a longer path of arrows leads to the same package (the
transitive reduction): it shows {kept} of {counted} imports. The table below it has them all.

{graph}

{imports}

## What a run goes through

The calls from `ablab train norm=scalenorm` to the record, in order. Indented ones happen inside the call above them. A
stage is called only if what it makes is missing. Each sentence is the first one of the docstring.

{steps}

## Where do I add ...

Write a class or a function like the one in the second column. Name it where the third column says. Give it a YAML file
in the folder of the fourth; the name of the file is what the user types: `conf/norm/rmsnorm.yaml` is `norm=rmsnorm`.
A part with settings of its own declares them, with their types and ranges, in a class in {options}.

{additions}

The feed-forward has one kind so far. A second one needs a group of options: a folder in `conf`, an entry in {options}
and a field in {architecture}.

## Where do I find ...

The definitions to read, in this order.

{questions}
"""


class Step(NamedTuple):
    """A function or class that a run passes through, and what it calls; `label`: its part in a word or two."""

    label: str
    name: str
    inner: tuple["Step", ...] = ()


RUN = (
    Step("command line", "ablab.cli.main"),
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
        "ablab.plan.plan",
        (Step("recipe", "ablab.identity.recipe"), Step("run id", "ablab.identity.run_id")),
    ),
    Step(
        "run",
        "ablab.run.run",
        (
            Step("lock", "ablab.run.locked"),
            Step("record so far", "ablab.store.run_folder.RunFolder.record"),
        ),
    ),
    Step(
        "stage: before training",
        "ablab.stages.train.prepare_training",
        (
            Step("prepare", "ablab.data.prepared.prepare"),
            Step("build", "ablab.build.training.build_start"),
        ),
    ),
    Step(
        "stage: training",
        "ablab.stages.train.train",
        (
            Step("fit", "ablab.training.trainer.fit"),
            Step("one step", "ablab.training.module.TranslationModule.training_step"),
            Step("between steps", "ablab.training.loop.TrainingLoop.on_train_batch_end"),
            Step("select", "ablab.training.checkpoints.Checkpoints.choose"),
            Step("record", "ablab.store.run_folder.RunFolder.write_record"),
        ),
    ),
    Step(
        "stage: evaluation",
        "ablab.stages.evaluate.evaluate",
        (
            Step("translate", "ablab.decoding.translator.Translator"),
            Step("score", "ablab.scoring.score"),
            Step("record", "ablab.store.run_folder.RunFolder.write_evaluation"),
        ),
    ),
    Step(
        "stage: pruning curve",
        "ablab.stages.prune_curve.prune_curve",
        (
            Step("choose layers", "ablab.build.pruning.build_strategy"),
            Step("remove layers", "ablab.pruning.surgery.prune"),
            Step("record", "ablab.store.run_folder.RunFolder.write_curve"),
        ),
    ),
    Step("result", "ablab.console.Console.result"),
)
"""From the command line to the record, in order."""


class Addition(NamedTuple):
    """`like`: an example, or the base class; `register`: what names the new one; `options`: the folder of its YAML."""

    thing: str
    like: tuple[str, ...]
    register: tuple[str, ...] = ()
    options: str | None = None


ADDITIONS = (
    Addition("norm", ("ablab.model.norms.ScaleNorm",), ("ablab.model.norms.NORMS",), "conf/norm"),
    Addition("placement", ("ablab.model.residual.Residual",), ("ablab.model.residual.PLACEMENTS",), "conf/placement"),
    Addition(
        "position",
        ("ablab.model.positions.LearnedPositions",),
        ("ablab.model.positions.POSITIONS",),
        "conf/position",
    ),
    Addition("feed-forward", ("ablab.model.layers.FeedForward",), ("ablab.build.model.ModelBuilder.feed_forward",)),
    Addition(
        "initialiser",
        ("ablab.model.initialisation.Xavier",),
        ("ablab.model.initialisation.INITIALISERS",),
        "conf/init",
    ),
    Addition(
        "learning-rate schedule",
        ("ablab.training.schedules.cosine",),
        ("ablab.build.training.LEARNING_RATES",),
        "conf/schedule",
    ),
    Addition(
        "DropHead schedule",
        ("ablab.training.schedules.rising",),
        ("ablab.training.schedules.DROP_SCHEDULES",),
        "conf/drophead",
    ),
    Addition(
        "optimiser",
        ("ablab.training.module.TranslationModule.configure_optimizers",),
        ("ablab.build.training.build_objective",),
        "conf/optim",
    ),
    Addition("corpus", ("ablab.data.corpus.Corpus",), ("ablab.data.corpora.CORPORA",), "conf/data"),
    Addition(
        "pruning strategy",
        ("ablab.pruning.strategies.Strategy",),
        ("ablab.build.pruning.STRATEGIES",),
        "conf/pruning",
    ),
    Addition("callback", ("ablab.training.callbacks.Callback",), ("ablab.training.callbacks.run_callbacks",)),
    Addition("tracker", ("ablab.tracking.tracker.Tracker",), ("ablab.tracking.open._tracker",), "conf/logger"),
    Addition("launcher", ("ablab.launchers.base.Launcher",), ("hydra_plugins.ablab_hydra.launchers.StudyLauncher",)),
    Addition(
        "report metric",
        ("ablab.report.metrics.Measure",),
        ("ablab.report.metrics.MEASURES", "ablab.study.experiment.Claimed"),
    ),
    Addition("verb", ("ablab.commands.train.train",), ("ablab.cli.VERBS", "ablab.commands.help.PAGES")),
)

QUESTIONS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Where is ScaleNorm's g set?", ("ablab.model.norms.ScaleNorm", "ablab.build.model.ModelBuilder.norm")),
    (
        "Where do pre-norm and post-norm differ?",
        ("ablab.model.residual.PreNorm", "ablab.model.residual.PostNorm", "ablab.build.model.ModelBuilder.residuals"),
    ),
    (
        "Where are the word embeddings tied?",
        ("ablab.model.embedding.TiedEmbeddings",),
    ),
    (
        "Where does LayerDrop draw the layers that a step skips?",
        ("ablab.model.layerdrop.LayerDrop", "ablab.model.transformer.Encoder"),
    ),
    (
        "Which settings exist, and what are their ranges?",
        ("ablab.config.schema.Config", "ablab.config.options.OPTIONS"),
    ),
    (
        "What goes into a run id?",
        ("ablab.identity.recipe", "ablab.fields.Role"),
    ),
    (
        "Where is a run found to be already finished?",
        (
            "ablab.run.run",
            "ablab.store.run_folder.RunFolder.record",
            "ablab.plan.Planned.lacks_evaluation",
        ),
    ),
    (
        "Where does an interrupted run continue?",
        (
            "ablab.build.training.build_start",
            "ablab.training.checkpoints.load_last",
            "ablab.build.stretch.begin_stretch",
        ),
    ),
    (
        "Where do random draws get their seed?",
        ("ablab.seeding.derive", "ablab.model.streams.reseed"),
    ),
    (
        "Where are sentences put into batches?",
        ("ablab.data.batches.epoch_batches", "ablab.data.batches.TrainingSteps"),
    ),
    (
        "Where is the training loss computed?",
        ("ablab.training.loss.token_loss", "ablab.training.module.TranslationModule.training_step"),
    ),
    (
        "Which weights are evaluated on the test set?",
        ("ablab.training.checkpoints.Selection", "ablab.training.checkpoints.Checkpoints.choose"),
    ),
    (
        "Where is test BLEU computed?",
        ("ablab.stages.evaluate.evaluate", "ablab.scoring.score"),
    ),
    (
        "Where are layers removed from a trained model?",
        ("ablab.pruning.strategies.EveryOther", "ablab.pruning.surgery.prune"),
    ),
    (
        "Where does a sweep decide which runs to start?",
        ("ablab.study.sweep.sweep", "ablab.study.ledger.entry_of"),
    ),
    (
        "Where does the p-value of a claim come from?",
        (
            "ablab.report.claims.judge",
            "ablab.statistics.verdict.verdicts",
            "ablab.statistics.paired.of_differences",
        ),
    ),
    (
        "Where is a p-value corrected for several claims?",
        ("ablab.statistics.verdict.verdicts", "ablab.statistics.multiple.family"),
    ),
)
"""What a newcomer asks, and the definitions to read, in this order: three at most."""


class StaleNameError(Exception):
    """A name in this file that the sources no longer have."""


class Definition(NamedTuple):
    """A class, a function or a variable. `docstring`: None where it has none."""

    path: Path
    docstring: str | None


@cache
def modules() -> Mapping[str, Path]:
    """Every module under src/ by its dotted name."""
    found = {}
    for path in sorted(SOURCES.rglob("*.py")):
        parts = path.relative_to(SOURCES).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def tree(path: Path) -> ast.Module:
    """A file's syntax tree."""
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def definitions() -> Mapping[str, Definition]:
    """Every definition under src/ by its dotted name, methods included, names inside functions not."""
    return {
        name: found for module, path in modules().items() for name, found in _defined(module, path, tree(path).body)
    }


def _defined(prefix: str, path: Path, body: Sequence[ast.stmt]) -> Iterator[tuple[str, Definition]]:
    for number, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{statement.name}"
            yield name, Definition(path, ast.get_docstring(statement))
            if isinstance(statement, ast.ClassDef):
                yield from _defined(name, path, statement.body)
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            for target in targets:
                if isinstance(target, ast.Name):
                    yield f"{prefix}.{target.id}", Definition(path, _string(body[number + 1 : number + 2]))


def _string(statements: Sequence[ast.stmt]) -> str | None:
    match statements:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return text
    return None


def definition(name: str) -> Definition:
    """Where a name is defined; StaleNameError where it is not."""
    found = definitions().get(name)
    if found is None:
        last = name.rpartition(".")[2]
        likely = [other for other in definitions() if other.rpartition(".")[2] == last] or list(definitions())
        nearest = ", ".join(get_close_matches(name, likely, n=3))
        raise StaleNameError(f"docs/architecture.py: the sources have no {name}{nearest and f'; nearest: {nearest}'}")
    return found


def names() -> list[str]:
    """Every name that this file looks up."""
    run = [name for step in RUN for name in (step.name, *(inner.name for inner in step.inner))]
    added = [name for addition in ADDITIONS for name in (*addition.like, *addition.register)]
    return list(dict.fromkeys([*run, *added, *(name for _, found in QUESTIONS for name in found)]))


def _constant(name: str) -> ast.expr:
    """What a variable of the architecture test is set to."""
    for statement in tree(RULES).body:
        if isinstance(statement, ast.Assign) and any(
            isinstance(t, ast.Name) and t.id == name for t in statement.targets
        ):
            return statement.value
    raise StaleNameError(f"docs/architecture.py: {RULES.relative_to(ROOT)} has no {name}")


def storeys() -> tuple[tuple[str, ...], ...]:
    """Packages and top-level modules in the order of the architecture test, lowest first."""
    found: tuple[tuple[str, ...], ...] = ast.literal_eval(_constant("STOREYS"))
    return found


def light() -> set[str]:
    """Packages and top-level modules that load no heavy library."""
    nodes = ast.walk(_constant("LIGHT"))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def room(module: str) -> str:
    """The package or top-level module of `ablab` that a module belongs to."""
    return module.split(".")[1] if "." in module else module


def of_room(name: str) -> dict[str, Path]:
    """Its modules."""
    return {
        module: path for module, path in modules().items() if module.split(".")[0] == "ablab" and room(module) == name
    }


def imports() -> dict[str, set[str]]:
    """By package or top-level module, those that it imports, inside functions too."""
    found: dict[str, set[str]] = {name: set() for storey in storeys() for name in storey}
    for name, targets in found.items():
        for path in of_room(name).values():
            targets.update(room(target) for node in ast.walk(tree(path)) for target in _targets(node))
        targets.discard(name)
    return found


def _targets(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "ablab")
    elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.split(".")[0] == "ablab":
        for alias in node.names:
            inner = f"{node.module}.{alias.name}"
            yield inner if inner in modules() else node.module


def reduced(edges: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Without the edges that a longer path implies."""

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        ahead = [start]
        while ahead:
            new = edges[ahead.pop()] - seen
            seen |= new
            ahead += new
        return seen

    beyond = {name: reached(name) for name in edges}
    return {
        name: {target for target in targets if not any(target in beyond[other] for other in targets - {target})}
        for name, targets in edges.items()
    }


def first_sentence(docstring: str | None) -> str:
    """On one line, with a full stop; empty where there is no docstring."""
    if not docstring:
        return ""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.!?])(?<!\bal\.)(?<!e\.g\.)(?<!i\.e\.)\s+(?=[A-Z`*])", paragraph, maxsplit=1)[0]
    return sentence if sentence[-1] in ".!?" else f"{sentence}."


def about(name: str) -> str:
    """The first sentence of a package or top-level module."""
    path = modules().get("ablab" if name == "ablab" else f"ablab.{name}")
    return first_sentence(ast.get_docstring(tree(path))) if path else ""


def rounded(lines: int) -> str:
    """To two digits, so that not every edit makes the page stale."""
    return f"{int(float(f'{lines:.2g}')):,}"


def _link(name: str) -> str:
    """A definition with a link to its file; StaleNameError where it is gone."""
    path = definition(name).path.relative_to(ROOT)
    return f"[`{name.removeprefix('ablab.')}`](../{path.as_posix()})"


def _folder(name: str) -> str:
    """A folder of the checkout with a link; StaleNameError where it is gone."""
    if not (ROOT / name).is_dir():
        raise StaleNameError(f"docs/architecture.py: there is no folder {name}")
    return f"[`{name}`](../{name})"


def _links(found: Iterable[str]) -> str:
    return ", ".join(_link(name) for name in found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _packages() -> Iterator[str]:
    yield "| storey | name | about | files | lines | torch |"
    yield "| ---: | --- | --- | ---: | ---: | --- |"
    loads_none = light()
    for number, storey in enumerate(storeys()):
        for name in storey:
            files = of_room(name)
            lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files.values())
            loads = "never" if name in loads_none else ""
            yield f"| {number} | `{name}` | {_cell(about(name))} | {len(files)} | {rounded(lines)} | {loads} |"


def _graph(edges: Mapping[str, set[str]]) -> Iterator[str]:
    """Mermaid, the highest storey on top; a storey of several names is a box."""
    shown = {name for name, targets in edges.items() if targets} | {name for found in edges.values() for name in found}
    yield "```mermaid"
    yield "flowchart TD"
    for number, storey in reversed(list(enumerate(storeys()))):
        inside = [name for name in storey if name in shown]
        boxed = len(inside) > 1
        if boxed:
            yield f'    subgraph storey{number}["storey {number}"]'
        yield from (f'    {"    " * boxed}at_{name.strip("_")}["{name}"]' for name in inside)
        if boxed:
            yield "    end"
    for storey in reversed(storeys()):
        for name in storey:
            for target in sorted(edges[name]):
                yield f"    at_{name.strip('_')} --> at_{target.strip('_')}"
    yield "```"


def _imports(edges: Mapping[str, set[str]]) -> Iterator[str]:
    yield "| name | imports |"
    yield "| --- | --- |"
    for storey in storeys():
        for name in storey:
            yield f"| `{name}` | {', '.join(f'`{target}`' for target in sorted(edges[name])) or 'nothing of ablab'} |"


def _steps() -> Iterator[str]:
    for number, step in enumerate(RUN, 1):
        yield f"{number}. {_step(step)}"
        for inner in step.inner:
            yield f"   - {_step(inner)}"


def _step(step: Step) -> str:
    return f"**{step.label}**: {_link(step.name)}. {first_sentence(definition(step.name).docstring)}".rstrip()


def _additions() -> Iterator[str]:
    yield "| to add | write one like | name it in | options in |"
    yield "| --- | --- | --- | --- |"
    for addition in ADDITIONS:
        options = "" if addition.options is None else _folder(addition.options)
        yield f"| {addition.thing} | {_links(addition.like)} | {_links(addition.register)} | {options} |"


def _questions() -> Iterator[str]:
    yield "| question | read |"
    yield "| --- | --- |"
    for question, found in QUESTIONS:
        yield f"| {question} | {_links(found)} |"


def page() -> str:
    """The whole page."""
    edges = imports()
    fewer = reduced(edges)
    return TEXT.format(
        packages="\n".join(_packages()),
        plugins=_folder(PLUGINS),
        conf=_folder("conf"),
        counted=sum(map(len, edges.values())),
        kept=sum(map(len, fewer.values())),
        graph="\n".join(_graph(fewer)),
        imports="\n".join(_imports(edges)),
        steps="\n".join(_steps()),
        options=_link("ablab.config.options.OPTIONS"),
        architecture=_link("ablab.config.schema.Architecture"),
        additions="\n".join(_additions()),
        questions="\n".join(_questions()),
    )


def main(arguments: Sequence[str]) -> int:
    """Write the page, or with --check compare it; 1 where it is stale or cannot be made."""
    try:
        text = page()
    except StaleNameError as error:
        print(error, file=sys.stderr)
        return 1
    if "--check" not in arguments:
        PAGE.write_text(text, encoding="utf-8")
        return 0
    if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text:
        return 0
    print("docs/architecture.md is stale: run python docs/architecture.py", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
