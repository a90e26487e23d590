"""Experiment files: whole ones, with something changed in most, and text that is none at all."""

from typing import Any

import yaml
from hypothesis import strategies as st

from tests.input.vocabulary import HOSTILE, TEXT

DESIGNS = ("factorial", "one_at_a_time", "leave_one_out", "ladder", "zip", "arms")
WHOLE: dict[str, Any] = {
    "question": "Does it help?",
    "source": "nobody",
    "common": ["smoke=true", "pruning=none"],
    "factors": {
        "norm": ["pre", "scalenorm"],
        "layerdrop": [0, 0.1],
        "size": {"a": ["model=tiny"], "b": ["model=small"]},
    },
    "design": "one_at_a_time",
    "seeds": [1, 2, 3],
    "metric": "test_bleu",
    "error": "paired",
    "claims": [{"arm": "norm=scalenorm", "expect": "greater", "margin": 0.5, "secondary": True}],
}
"""A file that is accepted."""

MORE: dict[str, Any] = {
    "exclude": [{"norm": "pre", "layerdrop": 0.1}],
    "baseline": {"norm": "pre", "layerdrop": 0, "size": "a"},
    "within": "size",
    "seeds": {"from": 3, "to": 5, "hours": 1.5, "after": 2},
    "arms": {"one": ["norm=pre"], "two": ["norm=post"]},
    "tune": {"key": "optim.lr", "values": [0.001, 0.01], "seeds": [11]},
    "search": {"space": {"optim.lr": {"low": 0.001, "high": 0.1, "log": True}}, "trials": 3},
}
"""Keys that an experiment may have besides."""

LEAVES = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.sampled_from(HOSTILE), TEXT,
    st.sampled_from(("pre", "norm=pre", "layerdrop", "seed=1", "experiment=norms", "hydra/launcher=ray", "test_chrf")),
)  # fmt: skip


def _holding(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return inner | st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3)


ANYTHING = _holding(_holding(LEAVES))

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{key}: &{key} [{','.join([f'*{before}'] * 9)}]\n" for before, key in zip("abcdefgh", "bcdefghi", strict=True)
)
"""A billion of laughs, in 300 bytes."""

NESTED_BOMB = "source:\n" + "".join(f"  {line}\n" for line in BOMB.splitlines())
"""The same where a message would repeat what it refuses."""

TEXTS = (
    *(
        BOMB,
        NESTED_BOMB,
        BOMB + "question: *i\nseeds: *i\n",
        "question: q\nseeds: [1]\nfactors: {norm: &x [*x]}\n",
        "&a [*a]",
        "*a",
    ),
    *(
        "!!python/object/apply:os.system ['touch executed']",
        "question: !!python/object/new:os.system [touch executed]\n",
    ),
    *("seeds: !!python/name:os.system\n", "!!binary x", "a: !!timestamp 2020-13-45", "? [a]\n: b", "? {a: b}\n: c"),
    *("<<: *x", "<<: [1]\nquestion: q", "<<: {question: q, seeds: [1]}\nfactors: {norm: [pre, post]}", "--- a\n--- b"),
    *("[" * 3000, "{a: " * 3000, "- " * 3000, "%YAML 9.9\n---\na: b", "\ufeffquestion: q", "a: b: c", "\t", "\x00", ""),
    *(
        "question: q\nquestion: r\nseeds: [1]",
        "seeds: [1_000, 0o7, 0x1f, 1e3]",
        f"seeds: [{'9' * 5000}]",
        "seeds: [.nan]",
    ),
)


def _changed(whole: dict[str, Any], path: list[int], value: Any, how: str) -> dict[str, Any]:
    """Return a copy with the entry at the end of a path of positions replaced, removed or doubled."""
    copy: Any = yaml.safe_load(yaml.safe_dump(whole))
    node, holder, key = copy, copy, None
    for number in path:
        keys = list(node) if isinstance(node, dict) else list(range(len(node))) if isinstance(node, list) else []
        if not keys:
            break
        holder, key = node, keys[number % len(keys)]
        node = holder[key]
    if key is not None:
        if how == "remove":
            del holder[key]
        else:
            holder[key] = [node, node] if how == "double" else value
    return copy  # type: ignore[no-any-return]


def changed(whole: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """The same content with one entry, at any depth, changed."""
    how = st.sampled_from(("replace", "replace", "replace", "remove", "double"))
    return st.builds(_changed, st.just(whole), st.lists(st.integers(0, 20), min_size=1, max_size=5), ANYTHING, how)


def files() -> st.SearchStrategy[bytes]:
    """The bytes of a file."""
    with_more = st.builds(
        lambda design, more: {**WHOLE, "design": design, **{key: MORE[key] for key in more}},
        st.sampled_from(DESIGNS),
        st.sets(st.sampled_from(sorted(MORE)), max_size=2),
    )
    structured = with_more.flatmap(changed).flatmap(lambda once: st.just(once) | changed(once)).map(_dumped)
    text = st.one_of(st.sampled_from(TEXTS), TEXT).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return st.one_of(structured, structured, structured, text, st.binary(max_size=60))


def _dumped(content: Any) -> bytes:
    text: str = yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
    return text.encode("utf-8", "surrogatepass")
