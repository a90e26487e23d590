"""Fonts of pictures: matplotlib's own, and after it those installed for the scripts that it lacks."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

from ablab.files import replacing

FURTHER = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Source Han Sans SC", "WenQuanYi Zen Hei"),
    *("PingFang SC", "Hiragino Sans", "Apple SD Gothic Neo", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic"),
    *("Noto Sans Devanagari", "Noto Sans Bengali", "Noto Sans Tamil", "Noto Sans Thai", "Nirmala UI"),
    *("Arial Unicode MS", "Unifont"),
)
"""Families that have such scripts, on Linux, macOS and Windows; the first that is installed and has a sign is taken."""


def save_figure(figure: Any, path: Path, **options: Any) -> None:
    """Save a figure of matplotlib's. A sign that no installed font has becomes a box; matplotlib would warn of each."""
    from matplotlib import rc_context, rcParams
    from matplotlib.text import Text

    usual = rcParams["font.family"]
    families = [*usual, *_installed()]
    for text in figure.findobj(Text):
        if text.get_fontfamily() == usual:
            text.set_fontfamily(families)
    with rc_context({"font.family": families}), warnings.catch_warnings():  # labels of ticks are made while it draws
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        warnings.filterwarnings("ignore", message="Matplotlib currently does not support", category=UserWarning)
        figure.savefig(path, **options)


def write_picture(path: Path, figure: Any, dpi: int = 110) -> None:
    """Replace the file atomically with a figure of matplotlib's, in the format that its name ends with."""
    with replacing(path) as temporary:
        save_figure(figure, temporary, format=path.suffix.removeprefix("."), dpi=dpi)


@cache
def _installed() -> list[str]:
    from matplotlib.font_manager import get_font_names

    names = set(get_font_names())
    return [family for family in FURTHER if family in names]
