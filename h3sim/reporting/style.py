"""Styles and fonts that all figures share."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, cast

from matplotlib import rc_context, rcParams
from matplotlib.font_manager import findfont, fontManager, get_font

from h3sim.errors import InputError, ValidationIssue
from h3sim.reporting.labels import paper_in

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes


_OWN = "DejaVu Sans"
_OTHERS = (
    # Of Chinese and Japanese; several have Korean, too.
    (
        *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Noto Sans JP"),
        *("Source Han Sans SC", "Source Han Sans", "WenQuanYi Zen Hei", "WenQuanYi Micro Hei"),
        *("PingFang SC", "Hiragino Sans GB", "Hiragino Sans", "Microsoft YaHei", "Yu Gothic"),
        *("Meiryo", "SimHei", "IPAGothic", "Droid Sans Fallback"),
    ),
    ("Noto Sans CJK KR", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic"),
    ("Noto Sans Devanagari", "Kohinoor Devanagari", "Nirmala UI", "Lohit Devanagari"),
    ("Noto Sans Thai", "Thonburi", "Leelawadee UI", "Loma"),
    ("Arial Unicode MS", "Unifont", "Symbola"),
)
"""Font alternatives; only the first installed one of each row is used, to open few files."""
_SHOWN = 5
_warned: set[tuple[str, ...]] = set()
"""Installed fonts at the time of the last warning about missing characters."""


def families() -> list[str]:
    """Return the fonts in which figures are written, the first that has a character goes first.

    After DejaVu Sans come those that are installed for what it has not, and the reader's own.
    """
    # Who runs a notebook may add a font, or choose one, while it runs.
    installed = frozenset(font.name for font in fontManager.ttflist)
    return [*_families(tuple(rcParams["font.family"]), installed)]


def is_drawn(character: str) -> bool:
    r"""Return whether figures can show *character*.

    >>> is_drawn("a"), is_drawn("\n")
    (True, False)
    """
    return ord(character) in _glyphs(tuple(families()))


def warn_of_missing_glyphs(characters: str) -> None:
    """Warn, once for what is installed, that no font has some *characters*."""
    names = tuple(families())
    if names in _warned:
        return
    _warned.add(names)
    some = "".join(dict.fromkeys(characters))[:_SHOWN]
    message = (
        f"no font that is installed has {some}: figures show a square for what they lack."
        " Install one, such as Noto Sans CJK (of Debian and Ubuntu: fonts-noto-cjk), or set"
        " matplotlib's font.family to one that has them"
    )
    warnings.warn(message, UserWarning, stacklevel=2)


@cache
def _families(requested: tuple[str, ...], installed: frozenset[str]) -> tuple[str, ...]:
    others = [next((name for name in row if name in installed), None) for row in _OTHERS]
    found = (name for name in (*others, *requested) if name in installed)
    return tuple(dict.fromkeys((_OWN, *map(str, found))))


@cache
def _glyphs(names: tuple[str, ...]) -> frozenset[int]:
    return frozenset().union(*(get_font(findfont(name)).get_charmap() for name in names))


SMALL = 8.0
"""The size, in points, of everything but titles."""

_SETTINGS = {
    "font.size": SMALL,
    "hatch.linewidth": 0.7,
    # Publishers refuse the Type 3 fonts that are matplotlib's default.
    "pdf.fonttype": 42,
    "svg.hashsalt": "h3sim",
    "text.usetex": False,
}

STYLES = ("screen", "paper")
WIDTHS_IN = {"column": 3.33, "page": 7.0}
"""Widths of a column and of a page of two columns (ACM and USENIX), in inches."""
PAPER_DPI = 300
"""Resolution of PNG files for papers."""


class FigureStyle(TypedDict, total=False):
    """Options of every method that draws.

    With *style* "paper" the figure is as wide as a column or a page of a paper, has type of 8
    points, no title (the caption has it), and its legend above the data. Without *width* it is
    "page".
    """

    style: Literal["screen", "paper"]
    width: Literal["column", "page"] | None


def check_figure_style(style: str = "screen", width: str | None = None) -> float | None:
    """Return the width in inches that the options of a figure request; None: no paper.

    >>> check_figure_style(style="paper", width="column"), check_figure_style()
    (3.33, None)

    Raises:
        InputError: listing each wrong option.
    """
    issues = []
    if style not in STYLES:
        message = f"must be {' or '.join(map(repr, STYLES))}, is {style!r}"
        issues.append(ValidationIssue(key="style", message=message))
    if width is not None and width not in WIDTHS_IN:
        message = f"must be {' or '.join(map(repr, WIDTHS_IN))}, is {width!r}"
        issues.append(ValidationIssue(key="width", message=message))
    elif width is not None and style == "screen":
        issues.append(ValidationIssue(key="width", message="goes only with style='paper'"))
    if issues:
        raise InputError(issues)
    return WIDTHS_IN[width or "page"] if style == "paper" else None


def text_size(reduction: float) -> float:
    """Return the size of text that is smaller on the screen by *reduction*, in points."""
    return SMALL - reduction * (paper_in() is None)


SIGNIFICANT = 0.005
"""A smaller p is drawn as a difference (Sander 2022 § 5)."""

_LINE_COLOURS = ("#1b1b1b", "#0b4f8c", "#c4500a", "#007a5b", "#8f4a80", "#7a6400")
_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_MARKERS = "os^DvPX<>*phd"


def in_style() -> AbstractContextManager[None]:
    """Return the context in which figures are drawn, whatever the user's matplotlib settings."""
    return rc_context(cast("Any", _SETTINGS | {"font.family": families()}))


SIDE_LEGEND: dict[str, Any] = {
    "loc": "upper left",
    "bbox_to_anchor": (1.01, 1.0),
    "borderaxespad": 0.0,
    "fontsize": SMALL,
    "frameon": False,
}
"""Options of a legend to the right of the axes: inside it would hide data."""


def finish_axes(
    ax: Axes,
    *,
    title: str | None = None,
    x: str | None = None,
    y: str | None = None,
    grid: Literal["x", "y", "both"] | None = None,
    has_rows: bool = False,
) -> None:
    """Give axes the labels and the frame of all figures; rows have names in place of ticks."""
    if title is not None:
        ax.set_title(title, fontsize=SMALL + 1, loc="left")
    if x is not None:
        ax.set_xlabel(x, fontsize=SMALL)
    if y is not None:
        ax.set_ylabel(y, fontsize=SMALL)
    ax.tick_params(labelsize=SMALL)
    if grid is not None:
        ax.grid(axis=grid, color="0.9", linewidth=0.6)
        ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    if has_rows:
        ax.tick_params(axis="y", length=0)
        ax.spines["left"].set_visible(False)


class LineStyle(NamedTuple):
    """Style of the line of a load."""

    color: str
    linestyle: str | tuple[int, tuple[int, ...]]
    marker: str


def line(number: int) -> LineStyle:
    """Return the look of line *number* of a figure; thirteen differ by their markers alone.

    >>> len({line(number).marker for number in range(13)})
    13
    """
    return LineStyle(
        _LINE_COLOURS[number % len(_LINE_COLOURS)],
        _DASHES[number % len(_DASHES)],
        _MARKERS[number % len(_MARKERS)],
    )
