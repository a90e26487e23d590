"""What is shown of positions, single heads and next tokens is what the model computes."""

import math

import pytest
import torch
from torch.testing import assert_close

from ablab.store.artefacts import Axis
from ablab.transformer.analysis import attention_maps
from ablab.transformer.analysis.inspect import single_heads
from ablab.transformer.analysis.next_token import TOP, distributions, entropies, table, uncertainty
from ablab.transformer.analysis.plot import draw
from ablab.transformer.analysis.positions import heat_map, position_vectors, similarities, similarity
from ablab.transformer.model.positions import sinusoid
from ablab.transformer.model.tokens import BOS
from ablab.transformer.translation.analyses import SITES
from tests.model.arms import build, source, stir

SRC, IDS = source(5), [4, 9, 7, 12]


def stirred(kind="sinusoidal"):
    model = build("pre", {"position.kind": kind}).eval()
    stir(model)
    return model


def texts(ids):
    return [f"piece {number}" for number in ids]


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
@torch.no_grad()
def test_vectors_are_what_each_input_adds_to_its_words(kind):
    model = stirred(kind)
    found = position_vectors(model, 9)
    for side, part in (("source", model.source_input), ("target", model.target_input)):
        words = torch.randn(1, 9, 16, dtype=torch.float64)
        assert_close(found[side], (part(words) - words)[0].float(), rtol=0, atol=1e-6)
    assert torch.equal(found["source"], found["target"]) == (kind == "sinusoidal")


@pytest.mark.parametrize("kind", ["sinusoidal", "learned"])
def test_similarity_is_symmetric_with_ones_on_the_diagonal(kind):
    for vectors in position_vectors(stirred(kind), 12).values():
        found = similarity(vectors)
        assert_close(found, found.T, rtol=0, atol=0)
        assert_close(found.diagonal(), torch.ones(12, dtype=found.dtype))
        assert found.abs().max() <= 1 + 1e-12


def test_similarity_of_sinusoids_depends_on_the_distance_alone():
    found = similarity(sinusoid(20, 16))
    for distance in range(20):
        assert_close(found.diagonal(distance), found[0, distance].expand(20 - distance), rtol=0, atol=1e-12)


@pytest.mark.parametrize("site", SITES)
def test_single_heads_are_the_maps_and_their_means(site):
    maps = attention_maps(stirred(), site, SRC, torch.tensor([[BOS, *IDS]]))
    uneven = [maps[0][:3], *maps[1:]]
    columns, rows = maps[0].size(-1), maps[0].size(-2)
    x, y = Axis(title="x", labels=list("abcdefgh"[:columns])), Axis(title="y", labels=list("abcdefgh"[:rows]))
    artefact = single_heads(site, uneven, "a sentence", x, y)
    by_label = {part.label: part for part in artefact.slices}
    assert len(by_label) == 1 + len(maps) + sum(map(len, uneven))
    assert [part.label for part in artefact.slices if not part.of_one_run] == [
        "all layers",
        *(f"layer {number}" for number in range(1, len(maps) + 1)),
    ]
    for layer, heads in enumerate(uneven, 1):
        assert_close(torch.tensor(by_label[f"layer {layer}"].values), heads.mean(0).float(), rtol=0, atol=6e-4)
        for head, weights in enumerate(heads, 1):
            shown = torch.tensor(by_label[f"layer {layer}, head {head}"].values)
            assert_close(shown, weights.float(), rtol=0, atol=6e-4)
            assert_close(shown.sum(-1), torch.ones(rows), rtol=0, atol=5e-3)


@torch.no_grad()
def test_distributions_are_those_of_the_logits_and_of_decoding_step_by_step():
    model = stirred()
    logs = distributions(model, SRC, IDS)
    tokens = torch.tensor([[BOS, *IDS]])
    assert_close(logs, torch.log_softmax(model.logits(model(SRC, tokens))[0], dim=-1), rtol=0, atol=1e-12)
    assert_close(logs.exp().sum(-1), torch.ones(5, dtype=logs.dtype))
    state = model.start(SRC, beams=1, max_len=5)
    stepped = torch.cat([model.step(tokens[:, place, None], state)[0] for place in range(5)])
    assert_close(logs, torch.log_softmax(stepped, dim=-1), rtol=0, atol=1e-10)


def test_entropy_is_that_of_known_distributions():
    logs = torch.tensor([[0.25] * 4, [1.0, 0.0, 0.0, 0.0], [0.5, 0.5, 0.0, 0.0]], dtype=torch.float64).log()
    assert entropies(logs) == pytest.approx([2.0, 0.0, 1.0])


def test_the_table_has_the_most_probable_and_the_rest_of_the_mass():
    logs = distributions(stirred(), SRC, IDS)
    artefact = table(logs, [*IDS, 2], texts, title="a sentence", about="")
    (part,) = artefact.slices
    assert artefact.x.labels == [*map(str, range(1, TOP + 1)), "others"]
    for row, cells, probabilities in zip(part.values, part.cells, logs.exp(), strict=True):
        assert sum(row) == pytest.approx(1, abs=1e-3)
        best = probabilities.sort(descending=True)
        assert row[:-1] == pytest.approx(best.values[:TOP].tolist(), abs=1e-4)
        assert [cell.partition("\n")[0] for cell in cells] == [*texts(best.indices[:TOP].tolist()), "others"]


def test_surprisal_is_of_the_token_that_stands_there():
    logs = distributions(stirred(), SRC, IDS)
    entropy, surprisal = uncertainty(logs, [*IDS, 2], texts).series
    assert surprisal.y == pytest.approx(
        [-logs[place, token].item() / math.log(2) for place, token in enumerate([*IDS, 2])], abs=1e-4
    )
    assert entropy.y == pytest.approx(entropies(logs), abs=1e-4)
    assert entropy.names == texts([*IDS, 2])


def test_each_is_drawn(tmp_path):
    model = stirred("learned")
    vectors, logs = position_vectors(model, 40), distributions(model, SRC, IDS)
    axis = Axis(title="tokens", labels=["$a", "b$", "c_d", "e", "f"])
    for number, artefact in enumerate(
        (
            heat_map(vectors),
            similarities(vectors),
            single_heads("encoder", [torch.rand(2, 5, 5), torch.rand(3, 5, 5)], "costs $5 or $6", axis, axis),
            table(logs, [*IDS, 2], lambda ids: [f"$ {i} $" for i in ids], title="$", about=""),
            uncertainty(logs, [*IDS, 2], texts),
        )
    ):
        draw(artefact, tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").read_bytes().startswith(b"\x89PNG")
