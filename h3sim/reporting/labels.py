"""Labels, colours and hatches of figures, distinct in grey too; needs no drawing library."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from h3sim._version import __version__
from h3sim.load import in_words
from h3sim.load.figures import FIGURES
from h3sim.page import Kind
from h3sim.reporting.paper import is_narrow
from h3sim.values import text as fitting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from matplotlib.axes import Axes

    from h3sim.load import Load
    from h3sim.page import Page, Resource


MAX_NAME_CHARS = 28
"""Longer names of resources are shortened."""
_MAX_NARROW_NAME_CHARS = 14

_MAX_LINE_CHARS = 40
_MAX_TITLE_LINE_CHARS = 150
_MAX_VALUE_CHARS = 40
ATF_MARK = "\N{BLACK UP-POINTING TRIANGLE}"
"""Mark after the names of resources above the fold."""
_MISSING_GLYPH = "\N{WHITE SQUARE}"


def shortened(name: str, limit: int = MAX_NAME_CHARS) -> str:
    """Return *name* in at most *limit* characters, without "https://" and parts of its middle.

    More of the end is kept, as paths differ there.

    >>> shortened("https://example.org/static/js/jquery-1.11.0.min.js")
    'example.o\N{HORIZONTAL ELLIPSIS}uery-1.11.0.min.js'
    """
    return fitting.truncate(re.sub(r"^https?://(?=.)", "", name), limit)


def plain(text: str) -> str:
    r"""Escape *text* so that matplotlib shows it literally, without formulas.

    Characters that no installed font has become squares, with a warning.

    >>> plain("a$b$c\n")
    'a\\$b\\$c\u25a1'
    """
    # The check is fast for ASCII, which most names are.
    shown = text if text.isascii() and text.isprintable() else _with_known_glyphs(text)
    return re.sub(r"\\*\$", r"\\$", shown)


def _with_known_glyphs(text: str) -> str:
    # On use, as it loads matplotlib, which HTML figures do not need.
    from h3sim.reporting.style import is_drawn, warn_of_missing_glyphs

    missing = [char for char in text if not is_drawn(char)]
    if unseen := [char for char in missing if char.isprintable()]:
        warn_of_missing_glyphs("".join(unseen))
    return "".join(_MISSING_GLYPH if char in missing else char for char in text)


def value_label(value: object) -> str:
    """Return a value of a column as text for an axis.

    >>> value_label(50.0), value_label("4g"), value_label(None)
    ('50', '4g', 'None')
    """
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return plain(shortened(shown, _MAX_VALUE_CHARS))


_UNIT_BY_SUFFIX = {"ms": "ms", "s": "s", "kb": "kB", "bytes": "bytes", "mbps": "Mbit/s"}
"""Units by the last word of a column's name."""
_WORD_REPLACEMENTS = {"rtt": "RTT", "cwnd": "congestion window"}


def quantity(column: str) -> str:
    """Return the name of the quantity in a column of results, with its unit, for an axis.

    >>> quantity("byte_index_atf_ms"), quantity("send_buffer_kb"), quantity("rtt_ms")
    ('ByteIndex, above the fold (ms)', 'send buffer (kB)', 'RTT (ms)')
    """
    stem, _, unit = column.rpartition("_")
    if not stem or unit not in _UNIT_BY_SUFFIX:
        stem, unit = column, ""
    titles = {figure.name: figure.title for figure in FIGURES}
    words = (_WORD_REPLACEMENTS.get(word, word) for word in stem.split("_"))
    name = titles.get(column) or " ".join(words)
    return plain(f"{name} ({_UNIT_BY_SUFFIX[unit]})" if unit else name)


def folded(text: str) -> str:
    """Return *text* in lines that fit beside a figure."""
    return textwrap.fill(text, _MAX_LINE_CHARS)


def within(ax: Axes, text: str) -> str:
    """Return *text* in lines about as wide as *ax*, whose width a layout may still change."""
    return wrapped(text, ax.get_window_extent().width / ax.figure.dpi, _MAX_LINE_CHARS)


_CHARS_PER_IN = 16
"""Average number of characters of 8 points per inch."""
_MIN_LINE_CHARS = 16


def wrapped(text: str, width_in: float, least_chars: int = _MIN_LINE_CHARS) -> str:
    """Return *text* in lines of 8 points that are at most *width_in* wide.

    >>> wrapped("ByteIndex, all (ms): difference to rr", 1.5).splitlines()
    ['ByteIndex, all (ms):', 'difference to rr']
    """
    limit = max(least_chars, int(width_in * _CHARS_PER_IN))
    return "\n".join(textwrap.fill(line, limit) for line in text.splitlines())


def resource_label(page: Page, index: int) -> str:
    """Return number and name of a resource, with a mark if it is above the fold."""
    resource: Resource = page.resources[index]
    mark = f" {ATF_MARK}" if resource.above_the_fold else ""
    limit = _MAX_NARROW_NAME_CHARS if is_narrow() else MAX_NAME_CHARS
    return f"{index + 1}  {plain(shortened(resource.id, limit))}{mark}"


def lane_labels(loads: Sequence[Load]) -> list[str]:
    """Return the names of `load_names`, escaped for matplotlib."""
    return [plain(name) for name in load_names(loads)]


def load_names(loads: Sequence[Load]) -> list[str]:
    """Return a name for each load: its scheme, and the settings that differ between loads."""
    settings = [_settings(load) for load in loads]
    keys = dict.fromkeys(key for setting in settings for key in setting)
    differing = [key for key in keys if len({setting.get(key) for setting in settings}) > 1]
    return [
        ", ".join([shortened(load.scheme.name), *(s[key] for key in differing if key in s)])
        for load, s in zip(loads, settings, strict=True)
    ]


def title(loads: Sequence[Load]) -> str:
    """Return a title: the page's name, and below it the settings that all loads share."""
    shared = [*shared_settings([_settings(load) for load in loads]).values()]
    page = loads[0].page
    head = f"{shortened(page.name, 60)}: {page.title}"
    if len(loads) == 1:
        head += f", scheme {shortened(loads[0].scheme.name)}"
    shared += [f"h3sim {__version__}", f"page {page.short_digest}"]
    return plain(head) + "\n" + textwrap.fill(plain(", ".join(shared)), _MAX_TITLE_LINE_CHARS)


def shared_settings(settings: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the settings with the same value in all *settings*."""
    return {
        key: value
        for key, value in settings[0].items()
        if all(each.get(key) == value for each in settings)
    }


def _settings(load: Load) -> dict[str, str]:
    words = in_words(load.spec)
    return words | {"network": shortened(words["network"])}


class Interval(NamedTuple):
    """A value, with its interval if there is one."""

    value: float
    low: float | None = None
    high: float | None = None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The ends of the interval, None without an interval."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def listed(description: Iterable[str]) -> str:
    """Join descriptions as the end of an alternative text, which says so if there are none.

    >>> listed(["rr: 1", "fifo: 2"]), listed([])
    ('rr: 1; fifo: 2.', 'there is none.')
    """
    return f"{'; '.join(description) or 'there is none'}."


def ends_of(lines: Mapping[str, Sequence[tuple[object, float]]]) -> str:
    """Describe the first and the last point of each line.

    >>> ends_of({"rr": [(0, 100.0), (50, 1512.3)], "fifo": [(0, 90.0)]})
    'rr from 100 at 0 to 1,510 at 50; fifo 90 at 0.'
    """
    description = []
    for name, points in lines.items():
        (first_x, first_y), (last_x, last_y) = points[0], points[-1]
        start = f"{_format_number(first_y)} at {_format_position(first_x)}"
        end = f"{_format_number(last_y)} at {_format_position(last_x)}"
        description.append(f"{name} from {start} to {end}" if points[1:] else f"{name} {start}")
    return listed(description)


def spreads_of(values: Mapping[str, Sequence[float]]) -> str:
    """Describe the range and the number of the values of each name.

    >>> spreads_of({"fifo": [2.0, 0.5, 1.0]})
    'fifo from 0.5 to 2 (3).'
    """
    return listed(
        f"{name} from {_format_number(min(own))} to {_format_number(max(own))} ({len(own)})"
        for name, own in values.items()
        if own
    )


def with_intervals(values: Mapping[str, Interval]) -> str:
    """List the values, with their intervals in parentheses.

    >>> with_intervals({"rr": Interval(1.0), "fifo": Interval(1.234, 1.1, 1.4)})
    'rr 1; fifo 1.23 (1.1 to 1.4).'
    """
    return listed(
        f"{name} {_format_number(each.value)}"
        + (" ({} to {})".format(*map(_format_number, each.ends)) if each.ends else "")
        for name, each in values.items()
    )


def _format_number(value: float) -> str:
    """Return a number with three significant digits, without an exponent."""
    return f"{float(f'{value:.3g}'):,.10g}"


def _format_position(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


DARK = "#303030"
LIGHT = "#ffffff"

# The hues of Okabe and Ito (2008), which colour-blind readers can distinguish, and four more, in
# lightnesses that differ in grey print; neighbours differ most.
_FACES_AND_INKS = (
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
    face, ink = _FACES_AND_INKS[index]
    return Paint(face, "", ink)


MAX_RESOURCE_COLOURS = len(_FACES_AND_INKS)
"""Pages of more resources are coloured by class: more colours would be indistinguishable."""

# The hues of WebPageTest's waterfalls, in lightnesses that differ in grey print; of two close ones,
# one is hatched. Not with dots: matplotlib writes each of thousands into an SVG.
KINDS = {
    Kind.DOCUMENT: Paint("#1f4e99", "", LIGHT),
    Kind.STYLESHEET: Paint("#a9dd8c", "\\\\\\\\\\", DARK),
    Kind.SCRIPT: Paint("#f2b04c", "", DARK),
    Kind.FONT: Paint("#a3220f", "xxxxx", LIGHT),
    Kind.IMAGE: Paint("#a57bd1", "/////", LIGHT),
    Kind.FETCH: Paint("#9fe3f0", "-----", DARK),
    Kind.MEDIA: Paint("#0c7a63", "|||||", LIGHT),
    Kind.OTHER: Paint("#d6d6d6", "", DARK),
}
_KIND_ORDER = tuple(KINDS)


class _ResourceClass(NamedTuple):
    label: str
    shades: tuple[str, str, str]
    inks: tuple[str, str, str]
    """The text colour with more contrast on each shade."""


# From dark to light, in nine lightnesses that differ in grey print.
CLASSES = (
    _ResourceClass("above the fold", ("#00254b", "#003b72", "#005599"), (LIGHT, LIGHT, LIGHT)),
    _ResourceClass("render-blocking", ("#ae4920", "#d15a2a", "#e5774b"), (LIGHT, LIGHT, DARK)),
    _ResourceClass("rest", ("#8bb4a2", "#a9d2c0", "#d2efe2"), (DARK, DARK, DARK)),
)
"""The colours of large pages: a hue per class, whose shades alternate from resource to resource."""
_ABOVE_THE_FOLD, _RENDER_BLOCKING, _REST = range(3)
"""Indices of the classes."""
_SHADES_PER_CLASS = 3
"""Shades in which resources of one class are told apart."""


def _class_of(resource: Resource) -> int:
    """Return the index of a resource's class; render-blocking ones are not counted as visible."""
    if resource.render_blocking:
        return _RENDER_BLOCKING
    return _ABOVE_THE_FOLD if resource.above_the_fold else _REST


class LegendEntry(NamedTuple):
    """A line of a legend: its text, and the groups whose colours precede it."""

    label: str
    groups: tuple[int, ...]


class Palette:
    """The colours of the resources of a *page*; resources of a *group* look the same.

    Up to 12 resources have colours of their own. More have one of the three shades of their class:
    render-blocking, above the fold, or the rest. With *is_by_kind* they have that of their kind,
    whatever the size of the page.
    """

    def __init__(self, page: Page, *, is_by_kind: bool = False) -> None:
        self._page = page
        self._is_by_kind = is_by_kind
        self.is_shared = is_by_kind or len(page.resources) > MAX_RESOURCE_COLOURS
        """True if several resources may look the same."""

    @cached_property
    def groups(self) -> tuple[int, ...]:
        """The group of each resource, by its index in the page."""
        resources = self._page.resources
        if self._is_by_kind:
            groups = [_KIND_ORDER.index(resource.kind) for resource in resources]
        elif not self.is_shared:
            groups = [*range(len(resources))]
        else:
            counts: Counter[int] = Counter()
            groups = []
            for number in map(_class_of, resources):
                groups.append(number * _SHADES_PER_CLASS + counts[number] % _SHADES_PER_CLASS)
                counts[number] += 1
        return tuple(groups)

    @property
    def noun(self) -> str:
        """Noun for a group."""
        return "kind" if self._is_by_kind else "shade" if self.is_shared else "resource"

    def look(self, group: int) -> Paint:
        """Return how the resources of a group are painted."""
        if self._is_by_kind:
            return KINDS[_KIND_ORDER[group]]
        if not self.is_shared:
            return paint(group)
        number, shade = divmod(group, _SHADES_PER_CLASS)
        return Paint(CLASSES[number].shades[shade], "", CLASSES[number].inks[shade])

    def look_of_all(self, resources: Sequence[int]) -> Paint | None:
        """Return the paint of resources that share a box or row, None if they differ.

        Those of a class have its darkest shade, as rows need no alternating shades.
        """
        groups = dict.fromkeys(self.groups[index] for index in resources)
        if self.noun == "shade":
            groups = dict.fromkeys(
                group // _SHADES_PER_CLASS * _SHADES_PER_CLASS for group in groups
            )
        return self.look(next(iter(groups))) if len(groups) == 1 else None

    def _class_label(self, key: int) -> str:
        """Return the label of a class, which says if it has only a part of those above the fold."""
        resources = self._page.resources
        has_both = any(each.above_the_fold and each.render_blocking for each in resources)
        not_blocking = ", not render-blocking" if has_both and key == _ABOVE_THE_FOLD else ""
        return f"{CLASSES[key].label}{not_blocking}"

    def legend(self) -> list[LegendEntry]:
        """Return the lines of a legend, in order."""
        page, entries = self._page, []
        keys: dict[int, list[int]] = {}
        for group in sorted(set(self.groups)):
            keys.setdefault(
                group // _SHADES_PER_CLASS if self.noun == "shade" else group, []
            ).append(group)
        for key, groups in keys.items():
            if self.noun == "resource":
                label = resource_label(page, key)
            elif self.noun == "kind":
                resources = [each for each in page.resources if each.kind is _KIND_ORDER[key]]
                label = _label_with_bytes(_KIND_ORDER[key].value, resources)
            else:
                resources = [each for each in page.resources if _class_of(each) == key]
                label = _label_with_bytes(self._class_label(key), resources)
            entries.append(LegendEntry(label, tuple(groups)))
        return entries


def _label_with_bytes(name: str, resources: Sequence[Resource]) -> str:
    kb = sum(resource.size_bytes for resource in resources) / 1000
    return f"{name}: {len(resources)}, {kb:,.0f} kB"


def tree_palette(page: Page) -> Palette:
    """Return the palette of trees: by kind on large pages, whose boxes have several resources."""
    return Palette(page, is_by_kind=len(page.resources) > MAX_RESOURCE_COLOURS)


def join_words(names: Sequence[str]) -> str:
    """Return *names* as an enumeration in a sentence.

    >>> join_words(["a", "b", "c"])
    'a, b and c'
    """
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
