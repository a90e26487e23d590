"""The options of the verbs of translation: those that use a trained model, and those that check the program."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from ablab.fields import Count, ReadIf
from ablab.tasks.verbs import ListedGroup, Options, Outputs, TextOrJson


def _save(value: str) -> str:
    if value not in ("auto", "none") and not re.fullmatch(r"\d+(\+\d+)?", value):
        raise ValueError(
            "allowed: auto, none, or encoder+decoder layers, such as 6+3, or a number of layers or heads, such as 24"
        )
    return value


def _picture(value: str) -> str:
    if not value.endswith(".png") or value.rpartition("/")[2] == ".png":
        raise ValueError("allowed: a name that ends with .png")
    return value


class PruneOptions(Options):
    """Measure how quality falls as layers or heads are removed, and save a smaller model.

    Measures the scores of the test set, the validation loss and the speed with fewer and fewer layers or heads. These
    are chosen on validation or by a rule. Nothing is trained, and nothing is measured twice.
    """

    usage = (
        "python prune.py run=<id> [pruning=<strategy>] [key=value ...]",
        "python prune.py runs=<id>,<id>,... [pruning=<strategy>] [key=value ...]",
    )
    listed = ListedGroup("pruning", "strategy that chooses the layers to keep", "decoding and trainer")
    takes_settings = True
    output = "ablab.transformer.translation.verbs.prune.PrunedRuns"

    run: str | None = None
    """a finished run: its id, a prefix of its id, its display name, or its path"""
    runs: str | None = None
    """several finished runs, by id, prefix or path, separated by commas: each gets its curve, and one picture shows
    all"""
    save: Annotated[str, AfterValidator(_save)] = "auto"
    """model to save in the run's folder: auto (the smallest within 1 BLEU, or 0.02 bits per byte, of the full one on
    validation), none, encoder+decoder layers such as 6+3, layers of a language model such as 3, or a number of heads
    such as 24"""
    picture: Annotated[str, AfterValidator(_picture)] | None = None
    """file for the picture of several runs, a .png; a .csv is written next to it"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class TranslateOptions(Options):
    """Translate standard input, one sentence per line, with a run's selected weights."""

    usage = ("python translate.py run=<id> [key=value ...] < in.txt > out.txt",)

    run: str
    """a finished run: its id, a prefix of its id, its display name, or its path; or the path of a pruned model"""
    beam_size: Count = 4
    """number of hypotheses that the search keeps; 1 is greedy search"""
    length_penalty: Annotated[
        float, Field(ge=0, le=10), ReadIf(("beam_size",), lambda beam_size: beam_size > 1, "beam_size above 1")
    ] = 0.6
    """alpha of ((5 + length) / 6) ** alpha"""
    n_best: Count = 1
    """hypotheses per sentence, best first, at most beam_size; above 1, a line is number <tab> score <tab>
    translation"""
    max_extra_tokens: Annotated[int, Field(ge=0)] | None = None
    """number of tokens by which a translation may exceed its source; by default 50, or data.max_tokens where tokens
    are characters"""
    attention: str | None = None
    """folder for pictures of the cross-attention, one per sentence"""
    device: Literal["cpu", "gpu"] = "cpu"
    """device that translates"""
    backend: Literal["ablab", "ctranslate2"] = "ablab"
    """engine; ctranslate2 (pip install 'ablab[ctranslate2]') is fast on CPUs, but cuts translations that reach the
    length limit"""
    outputs: Outputs = "outputs"


class AnalyseOptions(Options):
    """Look inside a run: attention, positions, heads, quality by length; draw schedules.

    From the selected weights, it shows the vectors of positions and their cosine similarity; the attention on four test
    sentences, or beginnings of test documents, the same for every run; the distribution of the next token along one of
    them; the learned g of every ScaleNorm; and with heads=true, by how much masking a head raises the validation loss.
    From the evaluation of translations, it shows BLEU and chrF by length of the source. The results are kept in the
    run's artefacts/, where ablab report finds them to compare arms. Nothing is computed twice.

      ablab analyse run=<id>                                   all of these except masked heads
      ablab analyse run=<id> attention=all                     every single head on four sentences
      ablab analyse run=<id> text='a sentence'                 also its next tokens, along its best translation
      ablab analyse schedule=true drophead=vshape schedule=cosine
                                                               learning rate and DropHead rate, before any run

    You can also set fields of trainer, logger and data that change no weights: trainer=gpu, data.path=FOLDER.
    """

    usage = ("ablab analyse run=<id> [key=value ...]", "ablab analyse schedule=true [key=value ...]")
    takes_settings = True
    output = "ablab.transformer.translation.verbs.analyse.AnalysedRuns"

    run: str | None = None
    """a finished run: its id, a prefix of its id, its display name, or its path"""
    runs: str | None = None
    """several finished runs, by id, prefix or path, separated by commas"""
    attention: Literal["cross", "heads", "all"] = "heads"
    """cross: cross-attention as the mean over heads; heads: also every single head of encoder, decoder and
    cross-attention on one sentence; all: every single head on all four. A language model has no cross-attention"""
    text: Annotated[str, Field(min_length=1, pattern=r"\S")] | None = None
    """a source sentence: also show its next tokens, along the model's own best translation; of a language model: the
    text itself"""
    heads: bool = False
    """true: mask every head of every attention in turn"""
    sentences: Count | None = None
    """number of validation sentences, or documents, on which heads are masked, only with heads=true; 200 unless set"""
    schedule: bool = False
    """true: draw the learning rate and the DropHead rate at each step, for the run that the other settings describe as
    in ablab train; a second schedule=<option> chooses the schedule of that run"""
    format: TextOrJson = "text"
    outputs: Outputs = "outputs"


class ExportOptions(Options):
    """Write a model for CTranslate2, or a language model as the library transformers reads it.

    For CTranslate2, converts a whole or a pruned model of translation, translates test sentences with both engines, and
    reports how many translations differ. A language model is written as safetensors and config.json, in the layout of
    GPT-2 or of Llama, if that can say all of its parts.
    """

    usage = ("ablab export run=<id> [key=value ...]",)

    run: str
    """a finished run: its id, a prefix of its id, its display name, or its path; or the path of a pruned model"""
    format: Literal["ctranslate2", "gpt2", "llama"] | None = None
    """ctranslate2, for models of translation (pip install 'ablab[ctranslate2]'); gpt2 or llama, for language models"""
    quantization: Literal["float32", "int8"] = "float32"
    """type of the weights in the export"""
    folder: Annotated[str, Field(min_length=1)] | None = None
    """folder of the export; by default exports/<format>-<quantization>, or exports/<format>, in that of the model"""
    check: Annotated[int, Field(ge=0)] = 1000
    """number of test sentences that both engines translate; 0: no comparison"""
    outputs: Outputs = "outputs"


class SelfcheckOptions(Options):
    """Kill a run again and again, and check that its results are the same, bit for bit.

    Trains a small model on the built-in corpus in a temporary folder: once undisturbed, and once killed (SIGKILL) at
    random moments and continued. Compares weights, record and translations bit for bit.
    """

    usage = ("ablab selfcheck resume [key=value ...]",)

    kills: Count = 5
    """number of times that the run is killed"""
    seed: Annotated[int, Field(ge=0)] = 1
    """seed of the random moments"""
    words: str = ""
    """more settings for the run, such as words='trainer.threads=4 norm=scalenorm'"""
