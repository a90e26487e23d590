"""Stores of many runs, made up in minutes: records, evaluations, translations, register and registration of a study.

Every file is what a trained run leaves, byte for byte in its form. Scores are real: each run takes each sentence from
one of a few translations of the test set, so that its counts of n-grams and its text go together.
"""

import hashlib
import json
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf

from ablab.code.code import code_digest
from ablab.code.machine import provenance
from ablab.store.records import now
from ablab.store.register import REGISTER, Entry, line_digest
from ablab.store.shared import StoredText, keep_text, without_definitions
from ablab.study.definition import define
from ablab.study.ledger import register
from ablab.study.study import Cell, Study
from ablab.tasks.identity import condition_id
from ablab.transformer.data.scoring import corpus_bleu, score
from ablab.transformer.stages.callbacks import columns_of
from ablab.transformer.translation.validation import TranslationValidation

COLUMNS = columns_of(TranslationValidation)

WORDS = [
    "the",
    "a",
    "man",
    "woman",
    "dog",
    "child",
    "red",
    "blue",
    "runs",
    "sits",
    "on",
    "in",
    "street",
    "park",
    "with",
    "ball",
    "hat",
    "small",
    "big",
    "two",
]
ERRORS = (0.24, 0.28, 0.32, 0.36, 0.4)
"""Shares of wrong words in the translations that runs choose sentences from."""

STEPS = range(100, 1601, 100)


def experiment(folder: Path, arms: tuple[int, int], seeds: int) -> Path:
    """Write an experiment of two factors with so many levels, and two claims, and return its path."""
    path = folder / f"many_{arms[0] * arms[1]}x{seeds}.yaml"
    first, second = (
        [float(f"{step * level:.6g}") for level in range(many)] for step, many in zip((0.001, 0.002), arms, strict=True)
    )
    claims = [
        {"arm": f"layerdrop={first[at]},model.dropout={second[0]}", "expect": "less"} for at in (1, len(first) - 1)
    ]
    content = {
        "question": "What does dropping cost?",
        "common": ["data=numbers", "model=tiny", "pruning=none"],
        "factors": {"layerdrop": first, "model.dropout": second},
        "seeds": list(range(1, seeds + 1)),
        "claims": claims,
    }
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def fill(words: tuple[str, ...], sentences: int) -> Study:
    """Make every run of the study that these words define, registered before the first of them."""
    study = define(words)
    register(study)
    maker = _Maker(study.outputs, sentences)
    lines = (study.outputs / REGISTER).read_bytes().splitlines()
    with (study.outputs / REGISTER).open("ab") as file:
        before = line_digest(lines[-1])
        for cell in study.cells:
            for name, digest in maker.run(cell).items():
                entry = Entry(
                    at=now(), what="written", run=cell.planned.run_id, file=name, digest=digest, before=before
                )
                line = entry.model_dump_json(exclude_defaults=True).encode()
                before = line_digest(line)
                file.write(line + b"\n")
    return study


class _Maker:
    def __init__(self, outputs: Path, sentences: int) -> None:
        rng = random.Random(7)
        references = [" ".join(rng.choices(WORDS, k=rng.randint(6, 14))) + "." for _ in range(sentences)]
        self.corpus = keep_text(outputs, "test", StoredText(references, references))
        self.texts = [_translated(references, error, rng) for error in ERRORS]
        self.scores = [score(texts, references) for texts in self.texts]
        self.counts = np.array([found.sentences for found in self.scores])
        self.blocks = [[_rows([row]) for row in found.sentences] for found in self.scores]
        self.provenance = without_definitions(provenance({}), outputs)
        self.recipes: dict[str, str] = {}

    def run(self, cell: Cell) -> dict[str, str]:
        """Write the files of a run; return the digests of those that the register covers."""
        planned, folder = cell.planned, cell.planned.folder
        rng = np.random.default_rng(int(hashlib.sha256(folder.run_id.encode()).hexdigest()[:12], 16))
        (folder.path / "evaluations").mkdir(parents=True)
        folder.lock.touch()
        condition = condition_id(planned.recipe)
        if condition not in self.recipes:
            self.recipes[condition] = OmegaConf.to_yaml(OmegaConf.create({**planned.recipe, "seed": 0}))
        (folder.path / "recipe.yaml").write_text(self.recipes[condition].replace("seed: 0\n", f"seed: {cell.seed}\n"))
        curve = [f"{step},{step / 10},{2 + 100 / step},0.001,1.5,0,1000,0.1,,," for step in STEPS]
        (folder.path / "metrics.csv").write_text("\n".join([",".join(COLUMNS), *curve, ""]))
        shares = rng.dirichlet([4, 4, 4, 4, 4]) * (1 - 0.3 * planned.config.layerdrop) + [
            0.3 * planned.config.layerdrop,
            0,
            0,
            0,
            0,
        ]
        chosen = rng.choice(len(ERRORS), size=len(self.texts[0]), p=shares / shares.sum())
        bleu = float(corpus_bleu(self.counts[chosen, np.arange(len(chosen))].sum(axis=0)))
        texts = "".join(f"{self.texts[one][at]}\n" for at, one in enumerate(chosen)).encode()
        (folder.path / "evaluations" / f"{planned.evaluation_id}.txt").write_bytes(texts)
        evaluation = _json(self._evaluation(cell, bleu, shares, texts)).replace(
            '"bleu": []',
            '"bleu": [\n' + ",\n".join(self.blocks[one][at] for at, one in enumerate(chosen)) + "\n ]",
        )
        files = {
            "record.json": _json(self._record(cell, condition, bleu, rng)),
            f"evaluations/{planned.evaluation_id}.json": evaluation,
        }
        for name, text in files.items():
            (folder.path / name).write_text(text, encoding="utf-8")
        self._events(cell)
        return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in files.items()}

    def _events(self, cell: Cell) -> None:
        place = cell.planned.folder.path / "tracking"
        place.mkdir()
        card = {
            "run_id": cell.planned.run_id,
            "config": {"recipe": cell.planned.recipe, "studies": {cell.planned.run_id: cell.arm}},
        }
        rows: list[dict[str, Any]] = [{"event": "opened", "card": card}]
        rows += [
            {"event": "row", "step": step, "values": {"train/loss": 2.5, "train/grad_norm": 1.2}} for step in STEPS
        ]
        (place / "events.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def _evaluation(self, cell: Cell, bleu: float, shares: Sequence[float], texts: bytes) -> dict[str, Any]:
        usual = self.scores[0]
        chrf = float(sum(share * found.chrf for share, found in zip(shares, self.scores, strict=True)))
        return {
            "schema_version": 2,
            "evaluation_id": cell.planned.evaluation_id,
            "settings": cell.planned.evaluation,
            "test_name": "test",
            "sentences": len(self.texts[0]),
            "test_sets": None,
            "scores": {"bleu": bleu, "chrf": chrf, "loss": 3 - bleu / 50},
            "signatures": usual.signatures,
            "brevity_penalty": usual.brevity_penalty,
            "length_ratio": usual.length_ratio,
            "seconds": 10.0,
            "sentences_per_second": 100 + bleu,
            "references": self.corpus,
            "hypotheses": hashlib.sha256(texts).hexdigest(),
            "items": {"bleu": []},
            "provenance_code": self.provenance["evaluation_code"],
            "ended": "2026-01-01T01:00:00Z",
        }

    def _record(self, cell: Cell, condition: str, bleu: float, rng: np.random.Generator) -> dict[str, Any]:
        seconds = 100 + 10 * rng.random()
        loss = 3 - bleu / 50
        kept = {"code": code_digest("training", {}), "versions": self.provenance["versions"], "threads": 2}
        return {
            "schema_version": 2,
            "run_id": cell.planned.run_id,
            "condition_id": condition,
            "name": cell.planned.name,
            "choices": cell.planned.composed.choices,
            "state": "finished",
            "reason": "steps",
            "time_limited": False,
            "selected": {"steps": [1600], "scores": {"loss": loss, "perplexity": 7.4, "bleu": bleu}, "sha256": None},
            "validations": [_validation(step, loss, bleu) for step in STEPS],
            "cost": {
                **{"steps": 1600, "epochs": 2.0, "tokens": 10**6, "seconds": seconds, "train_seconds": seconds - 10},
                **{"tokens_per_second": 10**6 / seconds, "peak_memory_bytes": 10**9, "parameters": 10**6},
                **{"flops_per_token": 10.0**7, "matmul_flops": None},
            },
            "data": {},
            "runtime": {"device": "cpu", "threads": 2},
            "provenance": self.provenance,
            "config": cell.planned.config.model_dump(serialize_as_any=True),
            "stretches": [
                {
                    **{**kept, "device": "cpu", "devices": 1, "micro_batches": 1, "compile": False},
                    **{"first_step": 1, "last_step": 1600, "began_from": None, "left": None},
                }
            ],
            "metrics": None,
            "ended": "2026-01-01T00:00:00Z",
        }


def _validation(step: int, loss: float, bleu: float) -> dict[str, float]:
    return {"step": float(step), "loss": loss + 9 / step, "perplexity": 9.0, "bleu": bleu * (1 - 40 / (step + 40))}


def _translated(references: Sequence[str], error: float, rng: random.Random) -> list[str]:
    return [
        " ".join(rng.choice(WORDS) if rng.random() < error else word for word in reference.split())
        for reference in references
    ]


def _json(content: object) -> str:
    """Return text as `ablab.files.write_json` writes it."""
    return json.dumps(content, indent=1, allow_nan=False, ensure_ascii=False) + "\n"


def _rows(rows: Sequence[Sequence[int]]) -> str:
    """Return rows of integers as they stand in an evaluation, two levels deep."""
    return "\n".join(f"  {line}" for line in json.dumps(rows[0], indent=1).splitlines())
