"""The page as Markdown."""

import ast
from collections.abc import Iterable, Iterator, Mapping

from benchmarks.architecture.levels import LEVELS, LIGHT
from benchmarks.architecture.names import ADDITIONS, QUESTIONS, RUN, Step
from benchmarks.architecture.sources import (
    ROOT,
    StaleNameError,
    definition,
    first_sentence,
    imports,
    modules,
    of_package,
    reduced,
    tree,
)

PLUGINS = "src/hydra_plugins/ablab_hydra"

TEXT = """\
# Architecture

<!-- Written by benchmarks/architecture. Edit that or the docstrings, then run it. -->

`python -m benchmarks.architecture` generates this page from the code; a test fails when it is stale. A name such as
`run.run` stands for `ablab.run.run` and links to its file.

- [Packages](#packages): what each one is for
- [What a run goes through](#what-a-run-goes-through), from the command line to the record
- [Where do I add ...](#where-do-i-add-)
- [Where do I find ...](#where-do-i-find-)
- [What imports what](#what-imports-what)

## Packages

The packages and top-level modules of `src/ablab`. A level imports only from itself and from the levels above it in
this table; `tests/test_architecture.py` checks that. Lines are rounded to two digits. *Never* means that importing the
package loads neither PyTorch nor Lightning, wandb or Matplotlib, so that help, plans and reports start fast.

{packages}

Beside the package, {plugins} makes the launchers and sweepers known to Hydra. The YAML files in {conf} hold the
default of every setting.

## What a run goes through

The calls from `ablab train norm=scalenorm` to the record, in order. Indented ones happen inside the call above them. A
stage is called only if what it makes is missing. Each sentence is the first one of the docstring.

{steps}

## Where do I add ...

Write a class or a function like the one in the second column. Name it where the third column says. Give it a YAML file
in the folder of the fourth; the name of the file is what the user types: `conf/norm/rmsnorm.yaml` is `norm=rmsnorm`.
A part with settings of its own declares them, with their types and ranges, in a class in {options}.

{additions}

A part without a group of options yet needs one: a folder in `conf`, an entry in {options}
and a field in {architecture}.

## Where do I find ...

The definitions to read, in this order.

{questions}

## What imports what

An arrow means *imports*. The graph leaves out an import where a longer path of arrows leads to the same package (the
transitive reduction): it shows {kept} of {counted} imports. The table below it has them all.

{graph}

{imports}
"""


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
        raise StaleNameError(f"there is no folder {name}")
    return f"[`{name}`](../{name})"


def _links(found: Iterable[str]) -> str:
    return ", ".join(_link(name) for name in found)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _packages() -> Iterator[str]:
    yield "| level | name | about | files | lines | torch |"
    yield "| ---: | --- | --- | ---: | ---: | --- |"
    for number, level in enumerate(LEVELS):
        for name in level:
            files = of_package(name)
            lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in files.values())
            loads = "never" if name in LIGHT else ""
            yield f"| {number} | `{name}` | {_cell(about(name))} | {len(files)} | {rounded(lines)} | {loads} |"


def _graph(edges: Mapping[str, set[str]]) -> Iterator[str]:
    """Mermaid, the highest level on top; a level of several names is a box."""
    shown = {name for name, targets in edges.items() if targets} | {name for found in edges.values() for name in found}
    yield "```mermaid"
    yield "flowchart TD"
    for number, level in reversed(list(enumerate(LEVELS))):
        inside = [name for name in level if name in shown]
        boxed = len(inside) > 1
        if boxed:
            yield f'    subgraph level{number}["level {number}"]'
        yield from (f'    {"    " * boxed}{_node(name)}["{name}"]' for name in inside)
        if boxed:
            yield "    end"
    for level in reversed(LEVELS):
        for name in level:
            for target in sorted(edges[name]):
                yield f"    {_node(name)} --> {_node(target)}"
    yield "```"


def _node(name: str) -> str:
    return f"at_{name.strip('_').replace('.', '_')}"


def _imports(edges: Mapping[str, set[str]]) -> Iterator[str]:
    yield "| name | imports |"
    yield "| --- | --- |"
    for level in LEVELS:
        for name in level:
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
        options=_link("ablab.transformer.config.options.PARTS"),
        architecture=_link("ablab.transformer.config.schema.Architecture"),
        additions="\n".join(_additions()),
        questions="\n".join(_questions()),
    )
