"""A sentence stays one: from whatever file, through preparation, to the references that hypotheses are held against."""

import gzip
import tempfile
from collections.abc import Sequence
from pathlib import Path

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from ablab.files import one_line
from ablab.store.shared import StoredText, keep_text, stored_text
from ablab.transformer.data.keys import is_blank, readable
from ablab.transformer.data.prepared import corpus_id, prepare
from ablab.transformer.data.text import Text
from tests.data.conftest import defaults
from tests.variants import variants

ENDS = "\r\x0b\x0c\x1c\x1e\x85\u2028\u2029\ufeff\x00\t"


def _in_a_file(sentence: str) -> str:
    """As it may stand in one line, and read the same however that line ends."""
    return sentence.replace("\n", " ").strip("\r\ufeff")


anything = st.one_of(st.text(f"{ENDS}ab"), st.text(st.characters(exclude_categories=("Cs",)))).map(_in_a_file)
held_out = st.lists(anything, min_size=3, max_size=12).filter(lambda lines: any(map(str.strip, lines)))
PLAIN = [f"{a}{b} {c}" for a in "abcd" for b in "efgh" for c in "aceg"]
"""Enough to train a tokenizer on, whatever else comes."""
training = st.lists(st.text(f"{ENDS} ab").map(_in_a_file), max_size=12).map(lambda lines: [*PLAIN, *lines])


def _write(folder: Path, name: str, texts: dict[str, Sequence[str]], form: str) -> Text:
    """A corpus that translates each sentence into itself, its files in one of the forms of `variants`."""
    ending = ".gz" if form.endswith(".gz") else ""
    for split, lines in texts.items():
        stored = variants(lines).get(form, variants(lines)["plain.en"])
        for language in ("en", "de"):
            path = folder / name / f"{split}.{language}{ending}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(gzip.compress(stored) if ending else stored)
    prefixes = {split: str(folder / name / split) for split in texts}
    return Text.model_validate({**defaults("text"), **prefixes, "vocab_size": 40})


@given(train=training, valid=held_out, test=held_out)
@settings(max_examples=12, phases=[Phase.generate])  # to shrink an example takes minutes
def test_no_sentence_is_cut_joined_or_moved(train, valid, test):
    texts = {"train": train, "valid": valid, "test": test}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        corpora = [_write(folder, form, texts, form) for form in variants("a")]
        assert len({(corpus_id(corpus), corpus.test_digest()) for corpus in corpora}) == 1

        prepared = prepare(corpora[-1], folder, lambda line: None)
        spoken = [one_line(line) for line in valid if not is_blank(line)]
        assert prepared.valid_text == [(line, line) for line in spoken]
        assert [len(side) for side in prepared.valid] == [len(spoken)] * 2
        counts = prepared.manifest["train"]
        assert counts["pairs"] == len(train)
        assert counts["kept"] + counts["dropped_overlong"] == sum(not is_blank(line) for line in train)

        text = StoredText(*([pair[side] for pair in corpora[0].test_split().pairs] for side in (0, 1)))
        written = [readable(one_line(line)) for line in test]
        assert stored_text(folder, keep_text(folder, "test", text)) == (written, written)
