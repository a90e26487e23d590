"""Test sets by sacrebleu's names, such as wmt19; sacrebleu downloads, checks and caches them."""

from pathlib import Path

from ablab.errors import UserError, choices
from ablab.transformer.data.corpus import Pair
from ablab.transformer.data.text_files import read_pairs


def is_named(name: str) -> bool:
    """Return whether sacrebleu has a test set of this name."""
    from sacrebleu.dataset import DATASETS

    return name in DATASETS


def check(name: str, src: str, tgt: str) -> None:
    """Raise UserError when the test set lacks these languages in this direction."""
    from sacrebleu.dataset import DATASETS

    pairs = DATASETS[name].langpairs
    if f"{src}-{tgt}" not in pairs:
        raise UserError(f"{name} has no {src}-{tgt}; {choices(f'{src}-{tgt}', pairs)}.")


def read(name: str, src: str, tgt: str) -> list[Pair]:
    """Return the pairs of a test set, with the first of several references; downloads missing files.

    Raises UserError for a missing language pair, a failed download or a wrong checksum.
    """
    from sacrebleu.utils import get_reference_files, get_source_file

    check(name, src, tgt)
    langpair = f"{src}-{tgt}"
    try:
        files = get_source_file(name, langpair), get_reference_files(name, langpair)[0]
    except OSError as error:
        reason = getattr(error, "reason", None) or error
        raise UserError(f"sacrebleu cannot download {name} {langpair}: {reason}.") from None
    except SystemExit:  # sacrebleu logs a wrong checksum, then exits
        raise UserError(f"sacrebleu refused what it downloaded for {name} {langpair}; see above.") from None
    return read_pairs(Path(files[0]), Path(files[1]))
