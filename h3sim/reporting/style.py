"""Styles and fonts that all figures share."""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict, cast

from matplotlib import rc_context, rcParams
from matplotlib.font_manager import findfont, fontManager, get_font

from h3sim.reporting.paper import paper_in
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from matplotlib.axes import Axes


_DEFAULT_FONT = "DejaVu Sans"
_FONTS_BY_SCRIPT = (
    # Chinese and Japanese; several have Korean, too.
    (
        "Noto Sans CJK SC",
        "Noto Sans CJK JP",
        "Noto Sans SC",
        "Noto Sans JP",
        "Source Han Sans SC",
        "Source Han Sans",
        "WenQuanYi Zen Hei",
        "WenQuanYi Micro Hei",
        "PingFang SC",
        "Hiragino Sans GB",
        "Hiragino Sans",
        "Microsoft YaHei",
        "Yu Gothic",
        "Meiryo",
        "SimHei",
        "IPAGothic",
        "Droid Sans Fallback",
    ),
    ("Noto Sans CJK KR", "Noto Sans KR", "Apple SD Gothic Neo", "Malgun Gothic", "NanumGothic"),
    ("Noto Sans Devanagari", "Kohinoor Devanagari", "Nirmala UI", "Lohit Devanagari"),
    ("Noto Sans Thai", "Thonburi", "Leelawadee UI", "Loma"),
    ("Arial Unicode MS", "Unifont", "Symbola"),
)
"""Fonts for scripts that the default one lacks: of each row the first installed one is used."""
_MAX_SHOWN_CHARACTERS = 5
"""Most missing characters that a warning names."""
_warned: set[tuple[str, ...]] = set()
"""Installed fonts at the time of the last warning about missing characters."""


def families() -> list[str]:
    """Return the fonts of figures; the first one that has a character is used for it.

    DejaVu Sans is followed by installed fonts for other scripts, and by the user's own fonts.
    """
    # Not cached, as a user of a notebook may add or choose fonts.
    installed = frozenset(font.name for font in fontManager.ttflist)
    return [*_available_families(tuple(rcParams["font.family"]), installed)]


def is_drawn(character: str) -> bool:
    r"""Return whether figures can show *character*.

    >>> is_drawn("a"), is_drawn("\n")
    (True, False)
    """
    return ord(character) in _glyphs(tuple(families()))


def warn_of_missing_glyphs(characters: str) -> None:
    """Warn, once for each set of installed fonts, that no font has *characters*."""
    names = tuple(families())
    if names in _warned:
        return
    _warned.add(names)
    some = "".join(dict.fromkeys(characters))[:_MAX_SHOWN_CHARACTERS]
    message = (
        f"no font that is installed has {some}: figures show a square for what they lack."
        " Install one, such as Noto Sans CJK (of Debian and Ubuntu: fonts-noto-cjk), or set"
        " matplotlib's font.family to one that has them"
    )
    warnings.warn(message, UserWarning, stacklevel=2)


@cache
def _available_families(requested: tuple[str, ...], installed: frozenset[str]) -> tuple[str, ...]:
    """Return the default font, then installed ones for other scripts and those *requested*."""
    others = [next((name for name in row if name in installed), None) for row in _FONTS_BY_SCRIPT]
    found = (name for name in (*others, *requested) if name in installed)
    return tuple(dict.fromkeys((_DEFAULT_FONT, *map(str, found))))


@cache
def _glyphs(names: tuple[str, ...]) -> frozenset[int]:
    """Return the code points that any of the fonts has."""
    return frozenset().union(*(get_font(findfont(name)).get_charmap() for name in names))


SMALL = 8.0
"""Size of all text but titles, in points."""

_MATPLOTLIB_SETTINGS = {
    "font.size": SMALL,
    "hatch.linewidth": 0.7,
    # Publishers refuse the Type 3 fonts that are matplotlib's default.
    "pdf.fonttype": 42,
    # A fixed salt, so that equal figures have equal ids.
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
    "page". Without *legend* there is none, for axes beside others that have it.
    """

    style: Literal["screen", "paper"]
    width: Literal["column", "page"] | None
    legend: bool


def check_figure_style(style: str = "screen", width: str | None = None) -> float | None:
    """Return the width in inches of a figure for papers with these options; None for the screen.

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
    """Return the size of text in points: on the screen, but not in papers, less *reduction*."""
    return SMALL - reduction * (paper_in() is None)


SIGNIFICANT = 0.005
"""Differences with a smaller p are drawn as significant (Sander 2022 § 5)."""

_LINE_COLOURS = ("#1b1b1b", "#0b4f8c", "#c4500a", "#007a5b", "#8f4a80", "#7a6400")
_LINE_DASHES = ("-", "--", "-.", ":", (0, (6, 1, 1, 1, 1, 1)))
_LINE_MARKERS = "os^DvPX<>*phd"


def in_style() -> AbstractContextManager[None]:
    """Return a context with the settings of all figures, independent of the user's matplotlib."""
    return rc_context(cast("Any", _MATPLOTLIB_SETTINGS | {"font.family": families()}))


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
    """Set labels and frame of axes, as in all figures; with rows there are names without ticks."""
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
        _LINE_DASHES[number % len(_LINE_DASHES)],
        _LINE_MARKERS[number % len(_LINE_MARKERS)],
    )
