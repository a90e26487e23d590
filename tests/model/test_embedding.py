import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from ablab.transformer.model.embedding import Embedding, FixNormEmbedding, InputEmbedding, TiedEmbeddings
from ablab.transformer.model.positions import SinusoidalPositions
from tests.model.arms import NO_DROPOUT, VOCAB, build, source, target, words

CLOSE = {"rtol": 0, "atol": 1e-12}
D = 8
SRC, TGT = 11, 13
ROLES = {  # which of source, target and output share a table
    "all": {("source", "target"), ("source", "output"), ("target", "output")},
    "source_target": {("source", "target")},
    "target_output": {("target", "output")},
    "none": set(),
}


def table(kind: type[Embedding], rows: int = 6) -> Embedding:
    embedding = kind(rows, D).double()
    nn.init.normal_(embedding.weight)
    return embedding


def test_input_rows_are_scaled_and_output_rows_are_not():
    embedding = table(Embedding)
    tokens = torch.tensor([[0, 3], [5, 3]])
    assert_close(embedding(tokens), embedding.weight[tokens] * math.sqrt(D), **CLOSE)
    assert torch.equal(embedding.matrix(), embedding.weight)


def test_fixnorm_rows_have_norm_1_and_the_root_of_the_width_at_the_input():
    embedding = table(FixNormEmbedding)
    unit = embedding.weight / embedding.weight.norm(dim=1, keepdim=True)
    assert_close(embedding.matrix(), unit, **CLOSE)
    assert_close(embedding(torch.arange(6)), unit * math.sqrt(D), **CLOSE)


def test_a_zero_row_stays_zero_under_fixnorm():
    embedding = table(FixNormEmbedding)
    embedding.weight.data[2] = 0
    out = (embedding(torch.arange(6)), embedding.matrix())
    (out[0].sum() + out[1].sum()).backward()
    assert all(torch.equal(rows[2], torch.zeros(D, dtype=torch.float64)) for rows in out)
    assert embedding.weight.grad.isfinite().all()


@pytest.mark.parametrize("tie", ROLES)
@pytest.mark.parametrize("norm", ["fixnorm", "scalenorm_fixnorm"])
def test_the_length_of_a_word_vector_means_nothing_under_fixnorm(norm, tie):
    model = build(norm, {"model.tie": tie}).eval()
    src, tgt = source(5, 3), target(4, 6)
    before = model.logits(model(src, tgt))
    for embedding in model.words.tables.values():
        embedding.weight.data.mul_(torch.rand(VOCAB, 1, dtype=torch.float64) * 10 + 0.1)
    assert_close(model.logits(model(src, tgt)), before, **CLOSE)


def test_the_length_of_a_word_vector_means_something_without_fixnorm():
    model = build("scalenorm").eval()
    src, tgt = source(5), target(4)
    before = model.logits(model(src, tgt))
    model.words.tables["shared"].weight.data[-1] *= 2
    assert (model.logits(model(src, tgt)) - before).abs().max() > 1e-3


@pytest.mark.parametrize("g", [0.5, 3.0])
def test_logits_are_g_times_a_cosine_under_scalenorm_and_fixnorm(g):
    model = build("scalenorm_fixnorm").eval()
    model.decoder.final_norm.g.data.fill_(g)
    hidden = model(source(5, 3), target(4, 6))
    logits = model.logits(hidden)
    rows = model.words.tables["shared"].weight
    cosine = torch.cosine_similarity(hidden[..., None, :], rows, dim=-1)
    assert_close(logits, g * cosine, **CLOSE)
    assert logits.abs().max() <= g * (1 + 1e-12)


@pytest.mark.parametrize("tie", ROLES)
def test_tables_are_shared_exactly_as_asked(tie):
    """A change of one role's table shows in the roles that share it, and in no other."""
    tables = TiedEmbeddings(SRC, SRC, partial(Embedding, d_model=D), tie=tie)
    for embedding in tables.tables.values():
        nn.init.normal_(embedding.weight)
    tokens = words(2, 3) % SRC
    roles = ("source", "target", "output")

    def outputs() -> list[torch.Tensor]:
        return [tables.source(tokens), tables.target(tokens), tables.output_matrix().clone()]

    for role, name in zip(roles, (tables.source_name, tables.target_name, tables.output_name), strict=True):
        before = outputs()
        tables.tables[name].weight.data.add_(1)
        moved = {other for other, a, b in zip(roles, before, outputs(), strict=True) if not torch.equal(a, b)}
        pairs = ROLES[tie]
        assert moved == {other for other in roles if other == role or {(role, other), (other, role)} & pairs}


@pytest.mark.parametrize(
    ("tie", "src", "rows"),
    [
        ("all", TGT, TGT),
        ("source_target", TGT, 2 * TGT),
        ("target_output", SRC, SRC + TGT),
        ("none", SRC, SRC + 2 * TGT),
    ],
)
@pytest.mark.parametrize("kind", [Embedding, FixNormEmbedding])
def test_number_of_table_parameters(tie, src, rows, kind):
    tables = TiedEmbeddings(src, TGT, partial(kind, d_model=D), tie=tie)
    assert sum(parameter.numel() for parameter in tables.parameters()) == rows * D
    assert tables.output_matrix().shape == (TGT, D)
    assert tables.source(torch.tensor([[src - 1]])).shape == (1, 1, D)


@pytest.mark.parametrize("tie", ["all", "source_target"])
def test_two_vocabularies_cannot_share_one_table(tie):
    with pytest.raises(ValueError, match=rf"tie='{tie}'.*src_vocab=11, tgt_vocab=13"):
        TiedEmbeddings(SRC, TGT, partial(Embedding, d_model=D), tie=tie)


def test_token_input_adds_positions_to_what_it_gets():
    positions = SinusoidalPositions(D).double()
    embedded = torch.randn(2, 4, D, dtype=torch.float64)
    assert torch.equal(InputEmbedding(positions, nn.Identity())(embedded, start=3), embedded + positions.table[3:7])


def test_zero_dropout_model_is_the_same_in_training_and_evaluation():
    model = build("scalenorm_fixnorm", NO_DROPOUT)
    src, tgt = source(5, 3), target(4, 6)
    assert torch.equal(model.train()(src, tgt), model.eval()(src, tgt))
