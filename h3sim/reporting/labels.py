"""Labels, colours and hatches of figures, distinct in grey too; needs no drawing library."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim import text as fitting
from h3sim._version import __version__
from h3sim.page import Kind
from h3sim.results import in_words
from h3sim.results.figures import FIGURES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from matplotlib.axes import Axes

    from h3sim.page import Page, Resource
    from h3sim.results import Load


NAME_CHARS = 28
"""The longest name of a resource that is shown whole."""
_NARROW_IN, _NARROW_CHARS = 4.0, 14
"""In figures no wider than this, names are shorter."""

_LINE_CHARS = 40
_TITLE_CHARS = 150
_MOST_OF_VALUE = 40
ATF_MARK = "\N{BLACK UP-POINTING TRIANGLE}"
"""Stands behind what is above the fold."""
_NO_GLYPH = "\N{WHITE SQUARE}"


_paper_in: ContextVar[float | None] = ContextVar("paper_in", default=None)


@contextmanager
def paper(width_in: float | None) -> Iterator[None]:
    """Draw figures so wide, in inches, as for papers; None draws them as for the screen."""
    token = _paper_in.set(width_in)
    try:
        yield
    finally:
        _paper_in.reset(token)


def paper_in() -> float | None:
    """Return the width of figures in inches while they are drawn for papers; None else."""
    return _paper_in.get()


def is_narrow() -> bool:
    """Return whether figures are drawn for a column of a paper."""
    return (paper_in() or math.inf) <= _NARROW_IN


def shortened(name: str, limit: int = NAME_CHARS) -> str:
    """Return *name* in at most *limit* characters; what is left out is left out of its middle.

    More of the end is kept, where paths differ, and no "https://".

    >>> shortened("https://example.org/static/js/jquery-1.11.0.min.js")
    'example.o\N{HORIZONTAL ELLIPSIS}uery-1.11.0.min.js'
    """
    return fitting.truncate(re.sub(r"^https?://(?=.)", "", name), limit)


def plain(text: str) -> str:
    r"""Return *text* such that matplotlib shows it as it is: no formulas, no missing glyphs.

    What no font has that is installed is a square; a warning says so once.

    >>> plain("a$b$c\n")
    'a\\$b\\$c\u25a1'
    """
    # Nearly all is ASCII, and this is asked of each name.
    shown = text if text.isascii() and text.isprintable() else _drawn(text)
    return re.sub(r"\\*\$", r"\\$", shown)


def _drawn(text: str) -> str:
    # On use: it loads matplotlib, and pictures that something else draws do without.
    from h3sim.reporting.style import is_drawn, warn_of_missing_glyphs

    missing = [char for char in text if not is_drawn(char)]
    if unseen := [char for char in missing if char.isprintable()]:
        warn_of_missing_glyphs("".join(unseen))
    return "".join(_NO_GLYPH if char in missing else char for char in text)


def value_label(value: object) -> str:
    """Return how an axis names a value of a column.

    >>> value_label(50.0), value_label("4g"), value_label(None)
    ('50', '4g', 'None')
    """
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return plain(shortened(shown, _MOST_OF_VALUE))


_UNITS = {"ms": "ms", "s": "s", "kb": "kB", "bytes": "bytes", "mbps": "Mbit/s"}
_ACRONYMS = {"rtt": "RTT", "cwnd": "congestion window"}


def quantity(column: str) -> str:
    """Return how an axis names the quantity in a column of results, with its unit.

    >>> quantity("byte_index_atf_ms"), quantity("send_buffer_kb"), quantity("rtt_ms")
    ('ByteIndex, above the fold (ms)', 'send buffer (kB)', 'RTT (ms)')
    """
    stem, _, unit = column.rpartition("_")
    if not stem or unit not in _UNITS:
        stem, unit = column, ""
    titles = {figure.name: figure.title for figure in FIGURES}
    words = (_ACRONYMS.get(word, word) for word in stem.split("_"))
    name = titles.get(column) or " ".join(words)
    return plain(f"{name} ({_UNITS[unit]})" if unit else name)


def folded(text: str) -> str:
    """Return *text* in lines that fit beside a figure."""
    return textwrap.fill(text, _LINE_CHARS)


def within(ax: Axes, text: str) -> str:
    """Return *text* in lines that are no wider than *ax*, whose layout may yet move its ends."""
    return wrapped(text, ax.get_window_extent().width / ax.figure.dpi, _LINE_CHARS)


_CHARS_PER_IN = 16
"""So many characters of 8 points stand in an inch, on average."""
_LEAST_CHARS = 16


def wrapped(text: str, width_in: float, least_chars: int = _LEAST_CHARS) -> str:
    """Return *text* in lines of 8 points that are at most *width_in* wide.

    >>> wrapped("ByteIndex, all (ms): difference to rr", 1.5).splitlines()
    ['ByteIndex, all (ms):', 'difference to rr']
    """
    limit = max(least_chars, int(width_in * _CHARS_PER_IN))
    return "\n".join(textwrap.fill(line, limit) for line in text.splitlines())


def resource_label(page: Page, index: int) -> str:
    """Return the number, name and, where it is above the fold, the mark of a resource."""
    resource: Resource = page.resources[index]
    mark = f" {ATF_MARK}" if resource.above_the_fold else ""
    limit = _NARROW_CHARS if is_narrow() else NAME_CHARS
    return f"{index + 1}  {plain(shortened(resource.id, limit))}{mark}"


def lane_labels(loads: Sequence[Load]) -> list[str]:
    """Return the names of `load_names` as matplotlib draws them."""
    return [plain(name) for name in load_names(loads)]


def load_names(loads: Sequence[Load]) -> list[str]:
    """Return what to call each load: its scheme, and the settings that not all loads share."""
    settings = [_settings(load) for load in loads]
    keys = dict.fromkeys(key for setting in settings for key in setting)
    own = [key for key in keys if len({setting.get(key) for setting in settings}) > 1]
    return [
        ", ".join([shortened(load.scheme.name), *(s[key] for key in own if key in s)])
        for load, s in zip(loads, settings, strict=True)
    ]


def title(loads: Sequence[Load]) -> str:
    """Return the page's name, and under it the settings that all loads share."""
    shared = [*shared_settings([_settings(load) for load in loads]).values()]
    page = loads[0].page
    head = f"{shortened(page.name, 60)}: {page.title}"
    if len(loads) == 1:
        head += f", scheme {shortened(loads[0].scheme.name)}"
    shared += [f"h3sim {__version__}", f"page {page.short_digest}"]
    return plain(head) + "\n" + textwrap.fill(plain(", ".join(shared)), _TITLE_CHARS)


def shared_settings(settings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings that are the same everywhere."""
    return {
        key: value
        for key, value in settings[0].items()
        if all(each.get(key) == value for each in settings)
    }


def _settings(load: Load) -> dict[str, str]:
    words = in_words(load)
    return words | {"network": shortened(words["network"])}


class Interval(NamedTuple):
    """A value, and its interval where there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval, None where there is none."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def listed(description: Iterable[str]) -> str:
    """Return what is told of each, as a figure's words end; of nothing, that there is nothing.

    >>> listed(["rr: 1", "fifo: 2"]), listed([])
    ('rr: 1; fifo: 2.', 'there is none.')
    """
    return f"{'; '.join(description) or 'there is none'}."


def ends_of(lines: Mapping[str, Sequence[tuple[object, float]]]) -> str:
    """Return from where to where each line goes, from its first point to its last.

    >>> ends_of({"rr": [(0, 100.0), (50, 1512.3)], "fifo": [(0, 90.0)]})
    'rr from 100 at 0 to 1,510 at 50; fifo 90 at 0.'
    """
    description = []
    for name, points in lines.items():
        (first, y), (last, end) = points[0], points[-1]
        is_one = len(points) == 1
        description.append(
            f"{name} {_number(y)} at {_format_position(first)}"
            if is_one
            else f"{name} from {_number(y)} at {_format_position(first)} to {_number(end)}"
            f" at {_format_position(last)}"
        )
    return listed(description)


def spreads_of(values: Mapping[str, Sequence[float]]) -> str:
    """Return from what to what the values of each go, and how many they are.

    >>> spreads_of({"fifo": [2.0, 0.5, 1.0]})
    'fifo from 0.5 to 2 (3).'
    """
    return listed(
        f"{name} from {_number(min(own))} to {_number(max(own))} ({len(own)})"
        for name, own in values.items()
        if own
    )


def with_intervals(values: Mapping[str, Interval]) -> str:
    """Return each value, with its interval in parentheses.

    >>> with_intervals({"rr": Interval(1.0), "fifo": Interval(1.234, 1.1, 1.4)})
    'rr 1; fifo 1.23 (1.1 to 1.4).'
    """
    return listed(
        f"{name} {_number(each.value)}"
        + (" ({} to {})".format(*map(_number, each.ends)) if each.ends else "")
        for name, each in values.items()
    )


def _number(value: float) -> str:
    """Return three digits that tell, and whole thousands without an exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


def _format_position(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


DARK, LIGHT = "#303030", "#ffffff"
"""Text colours on dark and on light faces."""

# The hues of Okabe and Ito (2008), which colour-blind readers tell apart, and four more, moved to
# lightnesses that differ in grey print; neighbours stand far apart in both.
_FACES = (
    ("#0b4f8c", LIGHT),  # blue
    ("#f5e768", DARK),  # yellow
    ("#d4622a", LIGHT),  # vermilion
    ("#a3dbf7", DARK),  # sky blue
    ("#1b1b1b", LIGHT),  # black
    ("#efab35", DARK),  # orange
    ("#007a5b", LIGHT),  # bluish green
    ("#cf93bd", DARK),  # reddish purple
    ("#7d1f52", LIGHT),  # wine
    ("#c8c8c8", DARK),  # grey
    ("#5b3fa8", LIGHT),  # violet
    ("#c3d977", DARK),  # olive
)


class Paint(NamedTuple):
    """Paint of a resource: face colour, hatch and hatch colour."""

    face: str
    hatch: str
    ink: str


def paint(index: int) -> Paint:
    """Return the paint of the resource at *index* in a page of up to 12.

    >>> len({paint(index) for index in range(12)})
    12
    """
    face, ink = _FACES[index]
    return Paint(face, "", ink)


MAX_OWN = len(_FACES)
"""Pages of more resources are coloured by class: nobody tells so many colours apart."""

# The hues of WebPageTest's waterfalls, moved to lightnesses that differ in grey print; where two
# lie close, one is hatched.
KINDS = {
    Kind.DOCUMENT: Paint("#1f4e99", "", LIGHT),
    Kind.STYLESHEET: Paint("#a9dd8c", ".....", DARK),
    Kind.SCRIPT: Paint("#f2b04c", "", DARK),
    Kind.FONT: Paint("#a3220f", "xxxxx", LIGHT),
    Kind.IMAGE: Paint("#a57bd1", "/////", LIGHT),
    Kind.FETCH: Paint("#9fe3f0", "-----", DARK),
    Kind.MEDIA: Paint("#0c7a63", "|||||", LIGHT),
    Kind.OTHER: Paint("#d6d6d6", "", DARK),
}
_ORDER = tuple(KINDS)


class _ResourceClass(NamedTuple):
    label: str
    shades: tuple[str, str, str]
    inks: tuple[str, str, str]
    """The text colour of more contrast on each shade."""


# From dark to light, in nine lightnesses that differ in grey print.
CLASSES = (
    _ResourceClass("above the fold", ("#00254b", "#003b72", "#005599"), (LIGHT, LIGHT, LIGHT)),
    _ResourceClass("render-blocking", ("#ae4920", "#d15a2a", "#e5774b"), (LIGHT, LIGHT, DARK)),
    _ResourceClass("rest", ("#8bb4a2", "#a9d2c0", "#d2efe2"), (DARK, DARK, DARK)),
)
"""The colours of large pages: a hue per class, whose shades alternate from resource to resource."""
_SHADES = 3
HIGHLIGHT = Paint("#c2005f", "", LIGHT)
"""The paint of a highlighted resource, beside which all others are pale."""
_FADED = 0.3
"""The share of their own colour that others keep."""


def _class_of(resource: Resource) -> int:
    """Return the class of *resource*; what blocks rendering is above the fold as well."""
    return 1 if resource.render_blocking else 0 if resource.above_the_fold else 2


def lighter(colour: str, share: float) -> str:
    """Return a colour of which only that share is left on white.

    >>> lighter("#000000", 0.2)
    '#cccccc'
    """
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return "#" + "".join(f"{round(255 - (255 - part) * share):02x}" for part in parts)


class LegendEntry(NamedTuple):
    """A line of a legend: its text, and the groups whose colours stand before it."""

    label: str
    groups: tuple[int, ...]


class Palette:
    """The colours of the resources of a *page*; resources of a *group* look the same.

    Up to 12 resources have colours of their own. More have one of the three shades of their class:
    render-blocking, above the fold, or the rest. With *is_by_kind* they have that of their kind,
    whatever the size of the page. The resource with the index *highlight* stands out, all others
    are pale.
    """

    def __init__(
        self, page: Page, *, is_by_kind: bool = False, highlight: int | None = None
    ) -> None:
        self._page = page
        self._is_by_kind = is_by_kind
        self._highlight = highlight
        self.is_shared = is_by_kind or len(page.resources) > MAX_OWN
        """True if several resources may look the same."""

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The group of each resource, by its index in the page."""
        resources = self._page.resources
        if self._is_by_kind:
            groups = [_ORDER.index(resource.kind) for resource in resources]
        elif not self.is_shared:
            groups = [*range(len(resources))]
        else:
            counts: Counter[int] = Counter()
            groups = []
            for number in map(_class_of, resources):
                groups.append(number * _SHADES + counts[number] % _SHADES)
                counts[number] += 1
        if self._highlight is not None:
            groups[self._highlight] = _HIGHLIGHTED
        return tuple(groups)

    @property
    def noun(self) -> str:
        """Noun for a group."""
        return "kind" if self._is_by_kind else "shade" if self.is_shared else "resource"

    def look(self, group: int) -> Paint:
        """Return how the resources of a group are painted."""
        if group == _HIGHLIGHTED:
            return HIGHLIGHT
        if self._is_by_kind:
            look = KINDS[_ORDER[group]]
        elif not self.is_shared:
            look = paint(group)
        else:
            number, shade = divmod(group, _SHADES)
            look = Paint(CLASSES[number].shades[shade], "", CLASSES[number].inks[shade])
        return look if self._highlight is None else Paint(lighter(look.face, _FADED), "", DARK)

    def look_of_all(self, resources: Sequence[int]) -> Paint | None:
        """Return how resources that share a box or a row are painted, None where they differ.

        Rows stand apart: those of a class have its darkest shade.
        """
        groups = dict.fromkeys(self.groups[index] for index in resources)
        if self.noun == "shade":
            groups = dict.fromkeys(group // _SHADES * _SHADES for group in groups)
        return self.look(next(iter(groups))) if len(groups) == 1 else None

    def legend(self) -> list[LegendEntry]:
        """Return the lines of a legend, in order."""
        page, entries = self._page, []
        keys: dict[int, list[int]] = {}
        for group in sorted(set(self.groups) - {_HIGHLIGHTED}):
            keys.setdefault(group // _SHADES if self.noun == "shade" else group, []).append(group)
        for key, groups in keys.items():
            if self.noun == "resource":
                label = resource_label(page, key)
            elif self.noun == "kind":
                own = [each for each in page.resources if each.kind is _ORDER[key]]
                label = _weighed(_ORDER[key].value, own)
            else:
                own = [each for each in page.resources if _class_of(each) == key]
                label = _weighed(CLASSES[key].label, own)
            entries.append(LegendEntry(label, tuple(groups)))
        if self._highlight is not None:
            label = resource_label(page, self._highlight)
            entries.append(LegendEntry(label, (_HIGHLIGHTED,)))
        return entries


_HIGHLIGHTED = -1
"""The group of the highlighted resource."""


def _weighed(name: str, resources: Sequence[Resource]) -> str:
    kb = sum(resource.size_bytes for resource in resources) / 1000
    return f"{name}: {len(resources)}, {kb:,.0f} kB"


def tree_palette(page: Page) -> Palette:
    """Return the palette of trees, whose boxes gather resources of a kind on large pages."""
    return Palette(page, is_by_kind=len(page.resources) > MAX_OWN)


def join_words(names: Sequence[str]) -> str:
    """Return *names* as an enumeration in a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
