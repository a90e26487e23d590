"""Command lines of every kind: of ablab's own words, of words near them, and of what nobody would type on purpose."""

from functools import cache

from hypothesis import strategies as st

from ablab.config.groups import groups
from ablab.config.keys import all_fields
from ablab.tasks.verbs import VERBS, options_of

HOSTILE = (
    *("", " ", "null", "true", "off", "0", "-1", "1", "2", "0.1", "1e-3", "1e400", "-0.0", "nan", "inf", "-inf", ".5"),
    *("9" * 30, "9" * 5000, "0x10", "1_000", "٣", "[]", "{}", "[1,2]", "[[1],[2]]", "{a:1}", "{a:{b:[1]}}", "[null]"),
    *("a,b", "1,2", "1,1", "pre,post", "range(1,3)", "range(3,1)", "range(0,1,0.1)", "range(0,9,0)", "choice(1,2)"),
    *("glob(*)", "glob(s*)", "interval(0,1)", "interval(1,0)", "tag(log, interval(0.001,1))", "sort(2,1)"),
    *("${layerdrop}", "${nope}", "${model}", "${env:HOME}", "${oc.env:HOME}", "${.}", "${..x}", "${", "${}", "\\${a}"),
    *("'", '"', "'quoted'", '"quo,ted"', "(", ")", "[", "{", "}", "a=b", "=", ":", "@", "~", "+", "a b", "\\", "\\,"),
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x9b2J", "line\nline", "tab\t", "cr\r", "\x7f", "\x85"),
    *("\u202eesrever", "\u2066x\u2069", "\u2028", "\ufeff", "\u200b", "ünïcode", "\udcff", "a\ud800b", "x" * 5000),
    *("/dev/null", "/dev/null/x", "/nonexistent/a", "x/" * 3000, "~nobody/x", "<script>", "\\input{x}", "(" * 99),
    *("[" * 400, "{a:" * 200, "True", "FALSE", "Null", "None", "1:30", "2024-01-01", "!!python/name:os", "&a", "*a"),
)  # fmt: skip
OF_HYDRA = (
    *(
        "hydra/launcher=ray",
        "hydra/launcher=nope",
        "hydra/launcher=basic",
        "hydra/sweeper=optuna",
        "hydra/sweeper=basic",
    ),
    *("hydra.launcher.jobs=0", "hydra.launcher.jobs=2", "hydra.launcher.jobs=x", "hydra.launcher.gpus=[0]"),
    *("hydra.launcher.nope=1", "hydra.sweeper.trials=0", "hydra.sweeper.trials=2", "hydra.sweeper.sampler=x"),
    *("hydra.run.dir=x", "hydra.searchpath=[x]", "hydra.searchpath=pkg://os", "hydra.searchpath=[pkg://nope.x]"),
    *(
        "hydra=x",
        "hydra/job_logging=none",
        "+hydra.x=1",
        "~hydra.launcher",
        "hydra.verbose=true",
        "hydra.job.chdir=true",
    ),
)
SPECIAL = (
    *("-m", "--multirun", "--config-dir", "--config-dir=.", "-cd", "-cd=", "--cfg", "--info", "--resolve", "--version"),
    *("experiment=norms", "experiment=search", "experiment=nope", "experiment=", "experiment=mine.yaml", "seed=1,2,3"),
    *("rerun=true", "rerun=stale", "retry_failed=x", "fail_fast=true", "smoke=true", "outputs=elsewhere", "runs=a,b"),
    *("run=r0", "where=norm=pre", "table=none.csv", "schedule=true", "check=true", "close=because", "format=json"),
    *("of=ablab train norm=", "resume", "bash", "zsh", "norm=pre", "layerdrop=0.2", "optim.lr=0.01"),
)

TEXT = st.text(alphabet=st.characters(exclude_characters="/\0"), max_size=12)
"""Any text that a system passes as an argument, surrogates among it, that names no place elsewhere."""


@cache
def keys() -> tuple[str, ...]:
    """Every group, field and option of a verb, and names close to them."""
    own = {*groups(), *all_fields(), *(name for verb in VERBS for name in options_of(verb).model_fields)}
    own -= {"watch", "folder"}  # one shows a study until it ends, the other writes where it is told to
    near = {f"{key}x" for key in own} | {key.replace(".", "/") for key in own} | {key.upper() for key in own}
    return (*sorted(own), *sorted(near))


def _values() -> st.SearchStrategy[str]:
    options = sorted({option for each in groups().values() for option in each})
    numbers = st.one_of(st.integers().map(str), st.floats().map(str))
    single = st.one_of(st.sampled_from(HOSTILE), st.sampled_from(options), numbers, TEXT)
    return st.one_of(single, st.lists(single, min_size=2, max_size=3).map(",".join))


def _choices() -> st.SearchStrategy[str]:
    """A group with one of its own options, or with several."""
    pairs = [(group, option) for group, options in groups().items() for option in options]
    one = st.sampled_from(pairs).map("=".join)
    return st.one_of(one, st.sampled_from(sorted(groups())).map(lambda group: f"{group}={','.join(groups()[group])}"))


def words() -> st.SearchStrategy[str]:
    signs = st.sampled_from(("", "", "", "", "", "+", "++", "~"))
    packages = st.sampled_from(("", "", "", "", "", "@model", "@", "@:a"))
    typed = st.builds("{}{}{}={}".format, signs, st.one_of(st.sampled_from(keys()), TEXT), packages, _values())
    return st.one_of(
        *(typed, typed, _choices(), _choices(), st.sampled_from(SPECIAL)),
        *(st.sampled_from(OF_HYDRA), st.sampled_from(HOSTILE), TEXT),
    )


def lines() -> st.SearchStrategy[list[str]]:
    """A verb, mostly one that exists and mostly train, and what is typed behind it."""
    verbs = st.one_of(st.just("train"), st.sampled_from(tuple(VERBS)), st.sampled_from(("", "trian", "-m", "\x1b[1m")))
    many = st.sampled_from(([], [], ["-m"]))
    return st.builds(lambda verb, first, rest: [verb, *first, *rest], verbs, many, st.lists(words(), max_size=4))


def valid_lines() -> st.SearchStrategy[list[str]]:
    """Lines of `train` of which many are accepted: options of groups, and numbers and words for fields."""
    fields = st.sampled_from(sorted(all_fields()))
    plain = st.one_of(
        st.integers(0, 2000).map(str),
        st.floats(0, 1).map(lambda value: f"{value:.3f}"),
        st.sampled_from(["true", "null"]),
    )
    word = st.one_of(_choices(), st.builds("{}={}".format, fields, plain), st.builds("{}={}".format, fields, _values()))
    return st.lists(word, min_size=1, max_size=3).map(lambda found: ["train", *found])
