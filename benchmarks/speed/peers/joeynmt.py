"""JoeyNMT 2.3.0: its own training and its own beam search, timed from the outside.

python -m benchmarks.speed.peers.joeynmt train WORK STEPS
python -m benchmarks.speed.peers.joeynmt decode WORK CHECKPOINT
"""

import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

import sacrebleu
import yaml
from joeynmt import training
from joeynmt.config import load_config, parse_global_args
from joeynmt.prediction import predict, prepare

from benchmarks.speed.task import (
    BATCH_TOKENS,
    D_FF,
    D_MODEL,
    DROPOUT,
    HEADS,
    LAYERS,
    LOOK,
    PEAK_RATE,
    SMOOTHING,
    VOCAB,
    WARMUP,
)

BEAM, ALPHA, LONGEST, DECODED_AT_ONCE = 4, 0.6, 60, 32
"""32 sentences at a time is what its beam search is fastest with here, among 16, 32, 64 and 4,096 tokens."""


def main() -> None:
    """One measurement."""
    what, work = sys.argv[1], Path(sys.argv[2])
    if what == "train":
        _train(work, int(sys.argv[3]))
    else:
        _decode(work, Path(sys.argv[3]))


def _train(work: Path, steps: int) -> None:
    folder = work / "joeynmt"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    (folder / "config.yaml").write_text(yaml.safe_dump(_configuration(work, folder, steps)))
    seen: list[tuple[float, int]] = []
    began: list[float] = []
    step = training.TrainManager._train_step

    def timed(self: Any, batch: Any) -> Any:
        began.append(time.time())
        seen.append((time.perf_counter(), batch.ntokens))
        return step(self, batch)

    training.TrainManager._train_step = timed
    training.TrainManager._validate = lambda self, _: None
    training.train(rank=0, world_size=None, cfg=load_config(folder / "config.yaml"), skip_test=True)
    looks = seen[::LOOK]
    counts = [sum(tokens for _, tokens in seen[i : i + LOOK]) for i in range(0, len(seen), LOOK)]
    rates = [count / (after[0] - before[0]) for before, after, count in zip(looks, looks[1:], counts, strict=False)]
    print(json.dumps({"tokens_per_second": rates[1:], "first_step": began[0]}))


def _decode(work: Path, checkpoint: Path) -> None:
    folder = checkpoint.parent
    (folder / "config.yaml").write_text(yaml.safe_dump(_configuration(work, folder, steps=1)))
    config = load_config(folder / "config.yaml")
    config["testing"]["load_model"] = str(checkpoint)
    arguments = parse_global_args(config, rank=0, mode="test")
    model, _, _, test = prepare(arguments, rank=0, mode="test")
    model.eval()
    settings = arguments.test._replace(beam_size=BEAM, batch_size=DECODED_AT_ONCE, batch_type="sentence")
    began = time.perf_counter()
    found = predict(
        model=model,
        data=test,
        compute_loss=False,
        device=arguments.device,
        rank=0,
        n_gpu=0,
        num_workers=0,
        normalization="tokens",
        args=settings,
        autocast=arguments.autocast,
    )
    seconds = time.perf_counter() - began
    references = (work / "test.tgt").read_text(encoding="utf-8").split("\n")[:-1]
    score = sacrebleu.corpus_bleu(found[2], [references]).score
    print(json.dumps({"sentences_per_second": len(references) / seconds, "bleu": score}))


def _configuration(work: Path, folder: Path, steps: int) -> dict[str, Any]:
    side = {
        "max_length": 250,
        "level": "bpe",
        "voc_file": str(work / "vocabulary.txt"),
        "tokenizer_type": "sentencepiece",
        "tokenizer_cfg": {"model_file": str(work / "spm.model"), "model_type": "bpe", "pretokenizer": "none"},
        "voc_limit": VOCAB,
        "voc_min_freq": 1,
        "lowercase": False,
        "normalize": False,
    }
    symbols = {"unk_token": "<unk>", "pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>"}
    return {
        "name": "speed",
        "joeynmt_version": "2.3.0",
        "model_dir": str(folder),
        "use_cuda": False,
        "fp16": False,
        "random_seed": 1,
        "data": {
            "train": str(work / "train"),
            "dev": str(work / "valid"),
            "test": str(work / "test"),
            "dataset_type": "plain",
            "src": {"lang": "src", **side},
            "trg": {"lang": "tgt", **side},
            "special_symbols": {**symbols, "unk_id": 0, "pad_id": 1, "bos_id": 2, "eos_id": 3},
        },
        "testing": {
            "n_best": 1,
            "beam_size": BEAM,
            "beam_alpha": ALPHA,
            "batch_size": DECODED_AT_ONCE,
            "batch_type": "sentence",
            "max_output_length": LONGEST,
            "eval_metrics": ["bleu"],
            "sacrebleu_cfg": {"tokenize": "13a", "lowercase": False},
        },
        "training": _training(steps),
        "model": _model(),
    }


def _training(steps: int) -> dict[str, Any]:
    return {
        "optimizer": "adam",
        "adam_betas": [0.9, 0.98],
        "normalization": "tokens",
        "scheduling": "warmupinversesquareroot",
        "learning_rate": PEAK_RATE,
        "learning_rate_warmup": WARMUP,
        "weight_decay": 0.0,
        "clip_grad_norm": 1.0,
        "label_smoothing": SMOOTHING,
        "loss": "crossentropy",
        "batch_size": BATCH_TOKENS,
        "batch_type": "token",
        "batch_multiplier": 1,
        "early_stopping_metric": "bleu",
        "epochs": 1000,
        "updates": steps,
        "validation_freq": 10**6,
        "logging_freq": 20,
        "overwrite": True,
        "shuffle": True,
        "print_valid_sents": [0],
        "keep_best_ckpts": 1,
    }


def _model() -> dict[str, Any]:
    stack = {
        "type": "transformer",
        "num_layers": LAYERS,
        "num_heads": HEADS,
        "embeddings": {"embedding_dim": D_MODEL, "scale": True, "dropout": DROPOUT},
        "hidden_size": D_MODEL,
        "ff_size": D_FF,
        "dropout": DROPOUT,
        "layer_norm": "pre",
        "activation": "relu",
    }
    return {
        "initializer": "xavier_uniform",
        "bias_initializer": "zeros",
        "init_gain": 1.0,
        "embed_initializer": "xavier_uniform",
        "embed_init_gain": 1.0,
        "tied_embeddings": True,
        "tied_softmax": True,
        "encoder": stack,
        "decoder": stack,
    }


if __name__ == "__main__":
    main()
