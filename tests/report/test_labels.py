"""One arm has one name, wherever people read of it; programs find the names of the study."""

import csv
import json
import re
import shutil

import pytest

from ablab.api import open as open_store
from ablab.commands.cli import main
from ablab.config.labels import label
from ablab.judge.document import Document
from ablab.report.figures import styles
from ablab.report.forest import forests
from ablab.report.names import labels_of, named, pair_of
from ablab.store.register import Register, file_digest
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.study.study import label_of
from tests.report.conftest import typed
from tests.report.synthetic import fill

EXPERIMENT = """
question: Which is better?
common: [smoke=false, logger=none, layerdrop=0.1]
factors:
  norm: [pre, scalenorm]
  model.dropout: [0.1, 0.3]
design: factorial
labels: {{norm=scalenorm: scaled norms, model.dropout=0.3: strong dropout}}
seeds: [1, 2, 3]
claims:
  - {{arm: "norm=scalenorm,model.dropout=0.1", expect: greater, margin: 0.5}}
  - {{effect: norm=scalenorm, expect: greater}}
{more}
"""
ARMS = {
    "norm=pre,model.dropout=0.1": "PreNorm with dropout 0.1",
    "norm=pre,model.dropout=0.3": "PreNorm with strong dropout",
    "norm=scalenorm,model.dropout=0.1": "scaled norms with dropout 0.1",
    "norm=scalenorm,model.dropout=0.3": "scaled norms with strong dropout",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("labels")
    (place / "labelled.yaml").write_text(EXPERIMENT.format(more=""))
    words = (f"experiment={place / 'labelled.yaml'}",)
    register(define((*words, f"outputs={place}")))
    fill(words, dict(zip(ARMS, (0.3, 0.35, 0.15, 0.4), strict=True)), outputs=place)
    code, _, err = typed(*words, f"outputs={place}", "resamples=1000")
    assert (code, err) == (0, "")
    return place


@pytest.fixture
def report(place):
    return place / "reports" / "labelled"


def test_files_for_people_have_labels_alone(report):
    with (report / "arms.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["arm"].removesuffix(" (baseline)"): row["in the study"] for row in rows} == {
        said: name for name, said in ARMS.items()
    }
    markdown = (report / "report.md").read_text()
    assert "**Scaled norms is better than PreNorm" in markdown
    assert "| PreNorm with dropout 0.1 (baseline) |" in markdown
    rest = "\n".join(line for line in markdown.splitlines() if not line.startswith(("| PreNorm", "| scaled")))
    assert re.findall(r"norm=\w+", rest.partition("## How it was made")[0]) == []
    assert "scaled norms" in (report / "report.html").read_text()
    assert "scaled norms" in (report / "column_table.tex").read_text().replace("~", " ")


def test_a_norm_beside_a_factor_of_placements_is_no_prenorm():
    """`norm=pre placement=post` is trained as PostNorm is."""
    assert label("norm=pre,placement=post") == "LayerNorm with placement=post"
    assert label("norm=pre,layerdrop=0.1") == "PreNorm with LayerDrop 0.1"
    both = [f"norm=rmsnorm,placement={where}" for where in ("pre", "post")]
    assert pair_of("norm=pre,placement=post", both[1]) == ("LayerNorm", "RMSNorm", "both with placement=post")
    assert label("norm=pre,placement=post", {"norm=pre": "usual"}) == "usual with placement=post"


def test_an_effect_over_placements_is_of_layernorm(report):
    document = Document.model_validate_json((report / "report.json").read_text())
    placed = (
        document.model_dump_json()
        .replace("model.dropout=0.1", "placement=pre")
        .replace("model.dropout=0.3", "placement=post")
    )
    labels = labels_of(Document.model_validate_json(placed), {})
    assert labels["norm=pre"] == "LayerNorm"
    assert labels_of(document, {})["norm=pre"] == "PreNorm"


def test_programs_have_the_names_of_the_study(report):
    data = json.loads((report / "report.json").read_text())
    assert {arm["name"] for arm in data["arms"]} == set(ARMS)
    assert data["labels"] | ARMS == data["labels"]
    assert data["claims"][0]["claimed"].startswith("norm=scalenorm,model.dropout=0.1 above norm=pre,model.dropout=0.1")
    assert data["claims"][0]["pair"] == ["scaled norms", "PreNorm", "both with dropout 0.1"]


def test_python_gives_the_tables_of_the_file(place, report):
    """Under the names for people, as a paper has them."""
    shown = open_store(place).study(str(place / "labelled.yaml")).to_latex()
    tables = [
        re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, re.DOTALL)
        for text in (shown, (report / "report.tex").read_text())
    ]
    assert tables[0][:3] == tables[1][:3] != []  # later ones have what was resampled, here less often
    assert "scaled norms" in shown


def test_a_labelled_report_differs_in_names_alone(report):
    document = Document.model_validate_json((report / "report.json").read_text())
    read = named(document)
    assert [arm.name for arm in read.arms] == [document.labels[arm.name] for arm in document.arms]
    assert [line.difference for line in read.differences] == [line.difference for line in document.differences]
    assert read.setup == document.setup
    assert [arm.runs for arm in read.arms] == [arm.runs for arm in document.arms]
    assert list(styles(read).values()) == list(styles(document).values())  # colours do not follow names
    assert named(read) == read
    assert forests(read)["forest"].rows[0].name == "scaled norms \N{MINUS SIGN} PreNorm, both with dropout 0.1"


def test_a_label_stands_for_an_arm_and_for_no_other_word(report):
    """An arm may be called `equal`, `accuracy` or as the study is."""
    document = Document.model_validate_json((report / "report.json").read_text())
    first, *others = document.arms
    claim = document.claims[0].model_copy(update={"arm": "equal", "expect": "equal"})
    changed = document.model_copy(
        update={
            "arms": [first.model_copy(update={"name": "equal"}), *others],
            "labels": {"equal": "Equal weights", document.name: "Another", document.title: "Another"},
            "claims": [claim, *document.claims[1:]],
        }
    )
    read = named(changed)
    assert (read.arms[0].name, read.claims[0].arm, read.claims[0].expect) == ("Equal weights", "Equal weights", "equal")
    assert (read.name, read.title) == (document.name, document.title)


def test_lists_and_runs_have_the_labels_of_the_study(place, capsys):
    assert main(["ls", f"outputs={place}", "columns=name", "format=text"]) == 0
    listed = capsys.readouterr().out.splitlines()[1:]
    assert {line.rstrip() for line in listed if "norm" in line.lower()} == set(ARMS.values())
    assert main(["ls", f"outputs={place}", "columns=arm,model.dropout", "sort=-model.dropout", "format=csv"]) == 0
    rows = list(csv.DictReader(capsys.readouterr().out.splitlines()))
    rates = [float(row["model.dropout"]) for row in rows if row["model.dropout"]]
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == 2
    assert main(["ls", "by=arm", f"outputs={place}"]) == 0
    out = capsys.readouterr().out
    assert all(said in out for said in ARMS.values())
    assert "3 finished" in out
    assert main(["ls", "by=arm", f"outputs={place}", "where=seed=9"]) == 0
    assert capsys.readouterr().out == "no runs\n"
    study = define((f"experiment={place / 'labelled.yaml'}", f"outputs={place}"))
    assert study.name_of(study.cells[-1]) == "scaled norms with strong dropout, seed 3"


def kept(place, tmp_path, edit, registered=None):
    """The report of a copy of the store whose list of runs was edited, where its file is not at hand."""
    there = shutil.copytree(place, tmp_path / "store")
    if registered is not None:
        file = there / "studies/labelled/registered.json"
        file.write_text(registered)
        Register(there).append("registered", study="labelled", digest=file_digest(file))
    path = there / "studies/labelled/runs.json"
    path.write_text(json.dumps(edit(json.loads(path.read_text()))))
    code, out, err = typed("experiment=labelled", f"outputs={there}", "resamples=1000")
    assert code == 0, err
    assert "reported from the store alone" in out
    return json.loads((there / "reports/labelled/report.json").read_text())


def test_from_the_store_alone_runs_of_other_recipes_than_the_registered_are_exploratory(place, tmp_path):
    """As where two arms were swapped in the list of runs; the recipes of a later launch are registered, too."""
    usual, norm = "norm=pre,model.dropout=0.1", "norm=scalenorm,model.dropout=0.1"
    swapped = {usual: norm, norm: usual}

    def swap(rows):
        return [{**row, "arm": swapped.get(row["arm"], row["arm"])} for row in rows]

    data = kept(place, tmp_path, swap)
    (said,) = {claim["exploratory"] for claim in data["claims"]}
    assert said.endswith("and has settings that were not registered for it (5 more are like it)")
    assert said in data["notes"]
    entries = json.loads((place / "studies/labelled/registered.json").read_text())
    conditions = entries[0]["conditions"]
    again = {**entries[0], "conditions": {**conditions, usual: conditions[norm], norm: conditions[usual]}}
    later = kept(place, tmp_path / "later", swap, json.dumps([*entries, again]))
    assert {claim["exploratory"] for claim in later["claims"]} == {
        f"settings of {usual}, {norm} differ from those of the first launch"
    }
    whole = kept(place, tmp_path / "whole", list)
    assert {claim["exploratory"] for claim in whole["claims"]} == {None}


def test_from_the_store_alone_registered_runs_that_are_not_listed_are_missing(place, tmp_path):
    data = kept(place, tmp_path, lambda rows: [row for row in rows if row["seed"] != 3])
    assert {claim["outcome"] for claim in data["claims"]} == {"provisional"}
    assert [(arm["finished"], arm["planned"]) for arm in data["arms"]] == 4 * [(2, 3)]
    first = next(iter(ARMS))
    data = kept(place, tmp_path / "one", lambda rows: [row for row in rows if row["arm"] == first])
    assert [(arm["finished"], arm["planned"]) for arm in data["arms"]] == [(3, 3), *3 * [(0, 3)]], "none is another's"


@pytest.mark.slow
def test_a_store_whose_file_is_not_at_hand_keeps_the_labels(place, report, tmp_path):
    there = shutil.copytree(place, tmp_path / "store")
    code, out, _ = typed("experiment=labelled", f"outputs={there}", "resamples=1000")
    assert code == 0
    assert "reported from the store alone" in out
    other = typed("experiment=labelled", f"outputs={there}", "resamples=1000", "baseline=PreNorm with strong dropout")
    assert (other[0], (there / "reports/labelled-against-norm=pre,model.dropout=0.3").is_dir()) == (0, True)
    assert (there / "reports/labelled/arms.csv").read_text().count("scaled norms with strong dropout") == 1


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("labels: {norm=scalenrom: a}", "labels: norm=scalenrom: no level or arm of this design; allowed: "),
        ("label: {norm=scalenorm: a}", "no such key for this option; did you mean labels?"),
        ("labels: [a]", "labels=['a']: allowed: names with values, such as {name: value}"),
        ("labels: {norm=scalenorm: ''}", "allowed: a name on one line, without ="),
        ("labels: {norm=scalenorm: a=b}", "allowed: a name on one line, without ="),
        ("labels: {norm=scalenorm: a, norm=pre: a}", "allowed: labels that differ"),
    ],
)
def test_labels_that_name_nothing_or_two_things_are_refused(more, words, tmp_path, capsys):
    text = EXPERIMENT.format(more=more)
    (tmp_path / "wrong.yaml").write_text("\n".join(line for line in text.splitlines() if "scaled norms" not in line))
    assert main(["study", f"experiment={tmp_path / 'wrong.yaml'}", f"outputs={tmp_path}"]) == 2
    assert words in capsys.readouterr().err


def test_tuned_and_united_arms_keep_their_marks():
    given = {"norm=post": "post"}
    assert label_of("norm=post = norm=post, tuned", given) == "post = post, tuned"
    assert label_of("+norm=scalenorm") == "+ScaleNorm"
    assert label_of("my arm", {"my arm": "mine"}) == "mine"
    assert pair_of("norm=post, tuned", "norm=pre, tuned", given) == ("post", "PreNorm", "both tuned")


def test_two_arms_that_would_be_called_alike_keep_their_names(report):
    document = Document.model_validate_json((report / "report.json").read_text())
    first, second, *others = ARMS
    found = labels_of(document, {first: "twin", second: "twin"})
    assert not {first, second} & set(found)
    assert set(others) <= set(found)


def test_an_arm_and_the_same_side_of_an_interaction_are_called_alike(report):
    document = Document.model_validate_json((report / "report.json").read_text())
    arms = ["norm=pre,layerdrop=0.1", "norm=scalenorm,layerdrop=0.2"]
    rows = [row.model_copy(update={"name": name}) for row, name in zip(document.arms, arms, strict=False)]
    claim = document.claims[0].model_copy(update={"arm": "norm=scalenorm with layerdrop=0.2", "baseline": arms[0]})
    found = labels_of(document.model_copy(update={"arms": rows, "claims": [claim]}), {})
    assert found[arms[1]] == found[claim.arm] == "ScaleNorm with LayerDrop 0.2"


def test_a_programs_factors_have_no_names_of_options_here(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(
        "{question: which, command: [python, x.py, '{norm}', '{layerdrop}', '{seed}', '{result}'], seeds: [1],"
        " scores: {loss: {better: lower}}, factors: {norm: [pre, scalenorm, l2], layerdrop: [0, 1]},"
        " labels: {norm=l2: unit length}}"
    )
    study = define((f"experiment={path}", f"outputs={tmp_path}"))
    said = {study.label_of(arm.name) for arm in study.arms}
    assert {"norm=pre,layerdrop=0", "norm=scalenorm,layerdrop=1", "unit length with layerdrop=1"} <= said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("layerdrop=0,layerdrop_encoder=0.1", "layerdrop_encoder=0.1 with layerdrop=0"),
        ("norm=scalenorm,layerdrop=0,layerdrop_decoder=0.2", "ScaleNorm with layerdrop_decoder=0.2 and layerdrop=0"),
        ("norm=scalenorm,layerdrop=0", "ScaleNorm without LayerDrop"),
        (
            "layerdrop=0,layerdrop_encoder=0.1,drophead=none",
            "layerdrop_encoder=0.1 with layerdrop=0 without DropHead",
        ),
    ],
)
def test_an_arm_with_layerdrop_in_one_stack_is_not_without_it(name, said):
    assert label(name) == said


@pytest.mark.parametrize(
    ("name", "labels", "said"),
    [
        ("norm=pre ln,lr=0.1", ["norm=pre ln", "lr=0.1"], "norm=pre ln,lr=0.1"),
        ("norm=pre ln better", ["norm=pre ln", "norm=pre ln better"], "norm=pre ln better"),
        ("prompt=use norm=pre,b,lr=1", ["prompt=use norm=pre,b", "lr=1"], "prompt=use norm=pre,b,lr=1"),
    ],
)
def test_a_level_with_blanks_is_called_as_it_is(name, labels, said):
    """It cannot be parted: `norm=pre` in it is no option."""
    assert label_of(name, {one: one for one in labels}) == said


def test_a_level_with_blanks_has_the_label_that_is_said_of_it():
    assert label_of("norm=pre ln,lr=1", {"norm=pre ln": "first", "lr=1": "lr=1"}) == "first,lr=1"
