"""The browser model that loads a page: its mode, its speed, its limits."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from h3sim.schema.fields import declare, fields_of, validate
from h3sim.schema.values import Choice, Flag, Integer, Number
from h3sim.values.errors import InputError


class BrowserMode(enum.Enum):
    """The rule by which a browser times its requests."""

    REPLAY = "replay"
    """As recorded: when the trigger fires, and after the recorded delay."""
    PARSE = "parse"
    """As computed from parsing, blocking and executing (Wang et al. 2013)."""


class TightMode(enum.Enum):
    """The rule by which a browser delays unimportant requests while it loads the head.

    `h3sim.browser.requests.HOLD_BACKS` has the source of each.
    """

    OFF = "off"
    CHROME_95 = "chrome-95"
    CHROME_118 = "chrome-118"
    FIREFOX = "firefox"
    """Tailing: trackers wait until others are done (`h3sim.browser.tailing`)."""
    SAFARI = "safari"


class PaintMode(enum.Enum):
    """The rule by which visual metrics count a resource that is still loading."""

    PROGRESSIVE = "progressive"
    """As browsers show it: text with its bytes, images as far as they are decoded."""
    COMPLETE = "complete"
    """Nothing of an image; all text at the first paint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BrowserModel:
    """The settings of a browser.

    All but one apply in `BrowserMode.PARSE` only: *cpu_slowdown* multiplies the times of parsing
    and executing (4: a phone, if the page was recorded on a desktop); without *preload_scanner*,
    only the parser finds the references of the document; *max_concurrent_requests* limits the
    requests without a complete response, None for no limit, and *max_concurrent_requests_per_host*
    those of each host (HTTP/1.1 browsers: 6). *tight_mode* selects the requests that wait for the
    head; None selects that of the scheme's browser, or else current Chrome's. The parser and the
    preload scanner begin *commit_ms* after the first bytes of the document arrived, when the
    browser has handed the page to a renderer; the first paint follows *paint_ms* after it becomes
    possible, with the next frame. Both grow with *cpu_slowdown*. With *stylesheets_block_parser*
    the parser waits at a blocking stylesheet until it is ready (policy O3 of WProf: Internet
    Explorer 9). *paint* decides what visual metrics count of resources that are still loading. An
    image is painted with its first bytes, then at most every *image_update_ms* until it is complete
    (Chrome: a second; 0: with all bytes that arrive).

    At *hidden_at_ms* the tab moves to the background, in both modes.

    Raises:
        InputError: listing every value that is out of range.

    >>> BrowserModel(mode=BrowserMode.PARSE, cpu_slowdown=0, max_concurrent_requests=0)
    Traceback (most recent call last):
    ...
    h3sim.values.errors.InputError: cpu_slowdown: must be more than 0, to 1,000, is 0
    max_concurrent_requests: must be at least 1, is 0
    """

    mode: BrowserMode = field(default=BrowserMode.REPLAY, metadata=declare(Choice(BrowserMode)))
    cpu_slowdown: float = field(
        default=1.0,
        metadata=declare(
            Number(low=0, high=1000, is_above=True),
            "factor by which parsing and executing take longer, e.g. 4 for a phone",
        ),
    )
    preload_scanner: bool = field(
        default=True,
        metadata=declare(Flag(), "only the parser finds the references of the document"),
    )
    tight_mode: TightMode | None = field(
        default=None,
        metadata=declare(
            Choice(TightMode),
            "which requests wait: off, chrome-95, chrome-118, firefox or safari (default: as the"
            " scheme's browser, or chrome-118)",
        ),
    )
    commit_ms: float = field(
        default=28.0,
        metadata=declare(
            Number(low=0, high=10_000),
            "time from the document's first bytes to the start of its parser",
        ),
    )
    paint_ms: float = field(
        default=15.0,
        metadata=declare(
            Number(low=0, high=10_000),
            "time from when the first paint becomes possible to its frame",
        ),
    )
    paint: PaintMode = field(
        default=PaintMode.PROGRESSIVE,
        metadata=declare(
            Choice(PaintMode),
            "what SpeedIndex counts: progressive (text and images as they load) or complete"
            " (images once complete, text at the first paint)",
        ),
    )
    image_update_ms: float = field(
        default=1000.0,
        metadata=declare(
            Number(low=0, high=60_000),
            "shortest time between two paints of an image that is still loading (Chrome: 1000)",
        ),
    )
    max_concurrent_requests: int | None = field(
        default=None, metadata=declare(Integer(low=1), "maximum number of concurrent requests")
    )
    max_concurrent_requests_per_host: int | None = field(
        default=None,
        metadata=declare(
            Integer(low=1), "maximum number of concurrent requests per host: 6 over HTTP/1.1"
        ),
    )
    stylesheets_block_parser: bool = field(
        default=False,
        metadata=declare(Flag(), "a blocking stylesheet blocks the parser (WProf's O3)"),
    )

    hidden_at_ms: float | None = field(
        default=None,
        metadata=declare(
            Number(low=0, high=86_400_000, hint="a day"),
            "move the tab to the background at this time (reprioritizes its requests)",
        ),
    )

    def __post_init__(self) -> None:
        validate(self, InputError)


_OPTIONS_OF_ALL_MODES = ("mode", "hidden_at_ms")
"""The options that apply in every mode."""
BROWSER_OPTIONS = tuple(
    entry.attribute for entry in fields_of(BrowserModel) if entry.attribute != "mode"
)
"""The settings that are options of a load."""
PARSING_OPTIONS = tuple(name for name in BROWSER_OPTIONS if name not in _OPTIONS_OF_ALL_MODES)
"""The settings that apply in `BrowserMode.PARSE` only."""
