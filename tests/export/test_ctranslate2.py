"""An exported model says what ours says, whichever arm it is."""

import sys
from collections import Counter

import numpy as np
import pytest
import torch
from torch import nn

from ablab.errors import UserError
from ablab.transformer.data.batches import Sentences
from ablab.transformer.data.vocabulary import train_tokenizer
from ablab.transformer.decoding.hypotheses import length_penalty
from ablab.transformer.decoding.search import forbid, greedy
from ablab.transformer.decoding.translator import DecodingConfig, Translator
from ablab.transformer.export.ctranslate2 import POSITIONS, to_ctranslate2
from ablab.transformer.export.translator import CTranslate2Engine, CTranslate2Translator
from ablab.transformer.model.embedding import Embedding
from ablab.transformer.model.norms import RMSNorm
from ablab.transformer.model.residual import PostNorm, PreNorm
from ablab.transformer.model.tokens import EOS
from ablab.transformer.model.transformer import Transformer
from tests.model.arms import OTHER_ARMS, VARIANTS, VOCAB, Arm, build, source, stir, words

ctranslate2 = pytest.importorskip("ctranslate2")

INEXPRESSIBLE = {
    "dyt": "DyT",
    "qk": "QKNorm",
    "deepnorm": "DeepNorm",
    "sandwich": "Sandwich",
    "gelu": "GELU",
    "gelu_tanh": "GELUTanh",
    "swiglu": "SwiGLU",
    "rope": "RotaryPosition",
    "unplaced": "NoPosition",
}
"""Variants that CTranslate2 lacks, with what a refusal names."""
ARMS = [*(Arm(norm) for norm in VARIANTS if norm not in INEXPRESSIBLE), *OTHER_ARMS]
EXTRA = 20
SOURCES = [words(length, seed=length).tolist() for length in (*range(1, 16), 4, 7, 7, 11, 3)]
TEXT = ["dies ist das haus", "das ist ein hund", "hunde sehen das haus"]


@pytest.fixture(scope="module")
def tokenizers():
    """Of equal size and with different words."""
    source, target = (train_tokenizer(lines, VOCAB) for lines in (TEXT, [line[::-1] for line in TEXT]))
    assert source.pieces(range(VOCAB)) != target.pieces(range(VOCAB))
    return source, target


@pytest.fixture
def _permitted(monkeypatch):
    """Our probabilities over what may be said, as CTranslate2 takes them."""
    plain = Transformer.logits
    monkeypatch.setattr(Transformer, "logits", lambda self, hidden: forbid(plain(self, hidden)))


@torch.no_grad()
def lively(model):
    """Weights at random, in single precision; the word that most sentences get stuck at ends them instead."""
    torch.manual_seed(1)
    stir(model)
    model.float().eval()
    stuck = Counter(word for ids in greedy(model, source(*range(2, 16)), max_extra_tokens=EXTRA) for word in ids[-1:])
    ((word, _),) = stuck.most_common(1)
    table = model.words.tables[model.words.output_name].weight
    for of_types in (table, *([] if model.output_bias is None else [model.output_bias])):
        of_types[[EOS, word]] = of_types[[word, EOS]]
    return model


def export(model, tokenizers, folder, quantization="float32"):
    to_ctranslate2(model, tokenizers, folder, quantization=quantization)
    return CTranslate2Translator(folder)


def forced(exported):
    """Log probability of each word of given translations: a search of a model at random may find any other."""
    engine = ctranslate2.Translator(str(exported.folder), device="cpu")
    pairs = [([7, 8, 9], [5, 6, 7, 8]), ([5, 6], [9, 9, 4]), ([10, 11, 12, 13], [6, 7, 8, 9, 10, 11, 12])]
    scored = engine.score_batch(
        [exported.source.pieces(src) for src, _ in pairs], [exported.target.pieces(tgt) for _, tgt in pairs]
    )
    return np.concatenate([each.log_probs for each in scored])


def assert_equal_searches(model, tokenizers, exported, search):
    """Equal words and scores, where no hypothesis met the length limit; greedy search says the same there too."""
    ours = Translator(model, tokenizers).hypotheses(Sentences.of(SOURCES), search)
    ended = 0
    for ids, mine, theirs in zip(SOURCES, ours, exported.hypotheses(SOURCES, search), strict=True):
        limit = len(ids) + search.max_extra_tokens
        cut = any(len(hypothesis.ids) == limit for hypothesis in (*mine, *theirs))
        if not cut or search.beam_size == 1:
            assert [hypothesis.ids for hypothesis in theirs] == [hypothesis.ids for hypothesis in mine]
        if not cut:
            ended += 1
            for name in ("log_prob", "score"):
                values = [[getattr(hypothesis, name) for hypothesis in found] for found in (mine, theirs)]
                assert values[1] == pytest.approx(values[0], abs=1e-3)
    return ended


def weights(model):
    return {name: tensor.clone() for name, tensor in model.state_dict().items()}


@pytest.mark.usefixtures("_permitted")
@pytest.mark.parametrize("arm", ARMS, ids=lambda arm: arm.name)
def test_every_arm_says_what_ours_says(arm, tokenizers, tmp_path):
    model = lively(arm.build())
    exported = export(model, tokenizers, tmp_path / "out")
    for beam_size in (1, 4):
        assert assert_equal_searches(model, tokenizers, exported, DecodingConfig(beam_size, 0.0, EXTRA)) >= 4


@pytest.mark.usefixtures("_permitted")
@pytest.mark.parametrize("depths", [(1, 3), (3, 1)])
def test_stacks_of_unequal_depth_and_positions_beyond_the_table(depths, tokenizers, tmp_path):
    changes = {"model.encoder_layers": depths[0], "model.decoder_layers": depths[1]}
    model = lively(build("pre", {**changes, "position.kind": "learned", "position.max_length": 5}))
    exported = export(model, tokenizers, tmp_path / "out")
    assert assert_equal_searches(model, tokenizers, exported, DecodingConfig(1, 0.0, EXTRA)) >= 4


@pytest.mark.parametrize("beam_size", [1, 4])
def test_a_blank_sentence_has_the_empty_translation_that_ours_has(beam_size, tokenizers, tmp_path):
    model = lively(build("post"))
    exported, ours = export(model, tokenizers, tmp_path / "out"), Translator(model, tokenizers)
    blanks, search = ["", " ", "\u200b", "\t\u00ad"], DecodingConfig(beam_size, 0.6, EXTRA)
    assert exported.translate(blanks) == ours.best(ours.encode(blanks), search) == [""] * 4
    found = exported.hypotheses(exported.source.encode_text(blanks), search)
    assert found == ours.hypotheses(ours.encode(blanks), search)


def test_scores_follow_our_length_penalty(tokenizers, tmp_path):
    exported = export(lively(build("post")), tokenizers, tmp_path / "out")
    for hypotheses in exported.hypotheses(SOURCES, DecodingConfig(4, 0.6, EXTRA)):
        assert 1 <= len(hypotheses) <= 4  # those that the limit made alike are one
        assert [h.score for h in hypotheses] == sorted((h.score for h in hypotheses), reverse=True)
        for h in hypotheses:
            assert h.score == pytest.approx(h.log_prob / length_penalty(len(h.ids) + 1, 0.6))


@pytest.mark.parametrize("beam_size", [1, 3])
def test_small_integers_translate_text_in_order_and_leave_the_model_alone(beam_size, tokenizers, tmp_path):
    model = lively(build("fixnorm"))
    before, full = weights(model), export(model, tokenizers, tmp_path / "full")
    small = export(model, tokenizers, tmp_path / "small", "int8")
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(model).items())
    sentences = [TEXT[1], "", TEXT[0], "das", TEXT[2]]
    for exported in (full, small):
        together = exported.translate(sentences, beam_size=beam_size, length_penalty=0.6, threads=1)
        assert together[1] == ""
        assert any(together)
        search = {"beam_size": beam_size, "length_penalty": 0.6, "threads": 2}
        assert together == [exported.translate([sentence], **search)[0] for sentence in sentences]
    off = np.abs(forced(full) - forced(small))
    assert off.max() > 0
    assert off.mean() < 0.8  # of random words, which differ by 1.6 nats from each other


def test_the_folder_is_complete_and_says_how_it_is_used(tokenizers, tmp_path):
    export(lively(build("pre")), tokenizers, tmp_path / "new" / "out")
    names = {path.name for path in (tmp_path / "new" / "out").iterdir()}
    vocabularies = {"source_vocabulary.json", "target_vocabulary.json"}
    assert names == {"model.bin", "config.json", "src.model", "tgt.model", *vocabularies}
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["out"]


def test_a_sentence_beyond_the_positions_is_refused(tokenizers, tmp_path):
    exported = export(lively(build("pre")), tokenizers, tmp_path / "out")
    longest = POSITIONS - 51
    (found,) = exported.hypotheses([[5] * longest], DecodingConfig(1, 0.0, 50))
    assert len(found[0].ids) <= longest + 50
    with pytest.raises(UserError, match=rf"{longest + 1} subwords"):
        exported.hypotheses([[5] * (longest + 1)], DecodingConfig(1, 0.0, 50))
    with pytest.raises(UserError, match=r"max_extra_tokens=2045: a source of 3 subwords.*; allowed: up to 2044, or"):
        exported.hypotheses([[5] * 3], DecodingConfig(1, 0.0, 2045))
    with pytest.raises(
        UserError, match=r"longer translation than the 2047 that an exported model writes; allowed: ablab"
    ):
        exported.hypotheses([[5] * POSITIONS], DecodingConfig(1, 0.0, 0))


def test_no_translation_is_twice_in_a_list_of_several(tokenizers, tmp_path):
    """Nor where the limit cuts off all that tells two of them apart."""
    exported = export(lively(build("pre")), tokenizers, tmp_path / "out")
    for beams in exported.hypotheses(SOURCES[:6], DecodingConfig(4, 0.6, 0)):
        assert len({beam.ids for beam in beams}) == len(beams) >= 1
        assert [beam.score for beam in beams] == sorted((beam.score for beam in beams), reverse=True)


def _other_norm(model):
    model.encoder.layers[1].around_feed_forward.norm = RMSNorm(16)


def _other_final_norm(model):
    model.decoder.final_norm = RMSNorm(16)


def _unknown_norm(model):
    model.decoder.layers[0].around_feed_forward.norm = nn.GroupNorm(1, 16)


def _other_placement(model):
    model.decoder.layers[1].around_feed_forward = PostNorm(nn.LayerNorm(16), nn.Identity())


def _other_heads(model):
    model.encoder.layers[0].self_attention.num_heads = 2


def _no_layers(model):
    model.encoder.layers = nn.ModuleList()


def _unknown_positions(model):
    model.source_input.positions = nn.Identity()


def _unknown_feed_forward(model):
    model.decoder.layers[2].feed_forward = nn.Linear(16, 16)


def _derived(module):
    """The module, as of a user's class that is derived from ablab's and computes something else."""
    module.__class__ = type("Mine", (type(module),), {"forward": lambda self, x: x})


def _derived_norm(model):
    for module in [module for module in model.modules() if isinstance(module, nn.LayerNorm)]:
        _derived(module)


def _derived_feed_forward(model):
    _derived(model.decoder.layers[2].feed_forward)


def _derived_embedding(model):
    for module in [module for module in model.modules() if isinstance(module, Embedding)]:
        _derived(module)


def _placement_of_a_name_of_ours(model):
    for module in [module for module in model.modules() if isinstance(module, PreNorm)]:
        module.__class__ = type("PreNorm", (PreNorm,), {"forward": lambda self, x, _: x})


REFUSED = {
    _derived_embedding: "^Mine: not known",
    _placement_of_a_name_of_ours: "^PreNorm: CTranslate2 has no such norm placement",
    _derived_norm: "^Mine: not known",
    _derived_feed_forward: "^Mine: not known",
    _other_norm: r"norms LayerNorm \(epsilon 1e-05\), RMSNorm \(epsilon 1e-06\); CTranslate2 takes one",
    _other_final_norm: "RMSNorm",
    _unknown_norm: "GroupNorm",
    _other_placement: "Decoder: norm placements PreNorm, PostNorm",
    _other_heads: "Encoder: numbers of heads 2, 4",
    _no_layers: "Encoder: no layers",
    _unknown_positions: "Identity",
    _unknown_feed_forward: "Linear",
}


@pytest.mark.parametrize("change", REFUSED, ids=lambda change: change.__name__.strip("_"))
def test_what_cannot_be_expressed_is_refused_in_a_line(change, tokenizers, tmp_path):
    model = build("pre")
    change(model)
    with pytest.raises(UserError, match=REFUSED[change]) as refusal:
        export(model, tokenizers, tmp_path / "out")
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("variant", INEXPRESSIBLE)
def test_a_variant_that_ctranslate2_lacks_is_refused_by_its_name(variant, tokenizers, tmp_path):
    with pytest.raises(UserError, match=f"^{INEXPRESSIBLE[variant]}: (not known|CTranslate2 has no such)") as refusal:
        export(build(variant), tokenizers, tmp_path / "out")
    assert "\n" not in str(refusal.value)
    assert not list(tmp_path.iterdir())


def test_other_tokenizers_are_refused(tokenizers, tmp_path):
    with pytest.raises(UserError, match=r"\[24, 20\] subwords.* \[24, 24\] rows"):
        export(build("pre"), (tokenizers[0], train_tokenizer(TEXT, 20)), tmp_path / "out")


def test_without_the_library_the_remedy_is_said(tokenizers, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(UserError, match=r"pip install 'ablab\[ctranslate2\]'"):
        export(build("pre"), tokenizers, tmp_path / "out")


def test_a_folder_with_something_in_it_stays_as_it_is(tokenizers, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes").write_text("mine")
    with pytest.raises(UserError, match="exists"):
        export(build("pre"), tokenizers, tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["notes"]


def test_a_failure_while_writing_leaves_nothing(tokenizers, tmp_path, monkeypatch):
    def full_disk(self, folder):
        raise OSError("no space left on device")

    monkeypatch.setattr(ctranslate2.specs.TransformerSpec, "save", full_disk)
    with pytest.raises(OSError, match="no space"):
        export(build("pre"), tokenizers, tmp_path / "out")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("_permitted")
def test_an_engine_of_evaluations_translates_encoded_sentences_in_their_order(tokenizers):
    """The way of an evaluation: a translator in place of ours, for as long as its temporary export is there."""
    ours = Translator(lively(build("rmsnorm")), tokenizers)
    sources = Sentences.of([*SOURCES, [], SOURCES[3]])
    search, counted = DecodingConfig(1, 0.0, EXTRA), []
    expected = ours.ids(sources, search)
    assert len({tuple(ids) for ids in expected}) > 4
    with CTranslate2Engine("float32").at_work(ours) as theirs:
        folder = theirs.engine.folder
        assert theirs.ids(sources, search, counted.append) == expected
        assert [beams[0].ids for beams in theirs.hypotheses(sources, DecodingConfig(4, 0.6, EXTRA))][-2] == ()
        assert folder.exists()
    assert not folder.exists()
    assert counted == [len(sources)]


@pytest.mark.parametrize("threads", [1, 2])
def test_an_engine_leaves_torch_its_threads(threads, tokenizers):
    """CTranslate2 takes them away, so that losses and further models would be computed by one."""
    torch.set_num_threads(threads)
    with CTranslate2Engine("float32").at_work(Translator(lively(build("pre")), tokenizers)) as theirs:
        theirs.ids(Sentences.of(SOURCES), DecodingConfig(1, 0.0, EXTRA))
        assert torch.get_num_threads() == threads


def test_timing_an_engine_makes_it_say_so_many_words(tokenizers, monkeypatch):
    """Whatever a model would have said."""
    ours = Translator(lively(build("pre")), tokenizers)
    said = []
    plain = CTranslate2Translator._ask

    def asked(self, *given, **options):
        found = plain(self, *given, **options)
        said.extend(len(hypothesis) for each in found for hypothesis in each.result().hypotheses)
        return found

    monkeypatch.setattr(CTranslate2Translator, "_ask", asked)
    timing = CTranslate2Engine("int8").timed([ours, ours], Sentences.of(SOURCES), DecodingConfig(4, 0.6, EXTRA), 0.0)
    assert set(said) == {max(map(len, sorted(SOURCES, key=len)[2:18])) + 1}
    assert len(timing.seconds) == 2
    assert min(timing.seconds) > 0
