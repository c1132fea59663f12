"""Which class each scheme puts a resource into: every row of every scheme's table.

The expectations are read off the descriptions of the schemes (Marx 2019, Table 1, Figs. 7, 9 and
10, and its code), not off the shipped files. Each resource is asked for as the second of its page,
after one of kind `other`.
"""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.page import ServerPriority
from h3sim.schemes.rules import Rule, ServerHint
from h3sim.signals import BucketPriority, Eps, H2Priority, Signal, StrictPriority
from h3sim.values.errors import SchemeError
from tests.helpers import replay
from tests.unit import test_scheme_browsers

# Resources, by a name that says their kind and what is known of them.
RESOURCES = {
    "html": ("document", {}),
    "css": ("stylesheet", {}),
    "css-head": ("stylesheet", {"in_head": True}),
    "css-critical": ("stylesheet", {"critical": True}),
    "css-preload": ("stylesheet", {"preload": True}),
    "js": ("script", {}),
    "js-head": ("script", {"in_head": True}),
    "js-head-defer": ("script", {"in_head": True, "defer": True}),
    "js-head-async": ("script", {"in_head": True, "async": True}),
    "js-defer": ("script", {"defer": True}),
    "js-async": ("script", {"async": True}),
    "js-critical": ("script", {"critical": True}),
    "js-critical-async": ("script", {"critical": True, "async": True}),
    "js-late": ("script", {"after_first_image": True}),
    "js-late-async": ("script", {"after_first_image": True, "async": True}),
    "js-preload": ("script", {"preload": True}),
    "font": ("font", {}),
    "font-preload": ("font", {"preload": True}),
    "image": ("image", {}),
    "image-visible": ("image", {"above_the_fold": True}),
    "image-late": ("image", {"after_first_image": True}),
    "image-preload": ("image", {"preload": True}),
    "fetch": ("fetch", {}),
    "fetch-preload": ("fetch", {"preload": True}),
    "media": ("media", {}),
    "other": ("other", {}),
    "other-preload": ("other", {"preload": True}),
}

CSS = "css css-head css-critical css-preload"
JS_SYNC_EARLY = "js js-head js-critical js-preload"
JS_ASYNC = "js-head-defer js-head-async js-defer js-async js-critical-async js-late-async"
JS = f"{JS_SYNC_EARLY} {JS_ASYNC} js-late"
FONTS = "font font-preload"
IMAGES = "image image-visible image-late image-preload"
FETCH = "fetch fetch-preload"
REST = "media other other-preload"

# Chrome's classes, by the weights of SPDY's priorities 0 to 4, and as buckets 4 to 0.
CHROME = (
    f"html {CSS} {FONTS}",
    f"{JS_SYNC_EARLY} {FETCH}",
    "js-late",
    f"{JS_ASYNC} {IMAGES}",
    REST,
)

FIREFOX_LEADING_JS = "js js-head js-head-defer js-head-async js-critical js-late js-preload"
FIREFOX_UNBLOCKED_JS = "js-defer js-async js-critical-async js-late-async"
FIREFOX_LEADERS = f"{FIREFOX_LEADING_JS} css css-head css-critical"
FIREFOX_IMAGES = "image image-visible image-late"
# Fig. 9 with case study 1: what is async or deferred is unblocked, wherever it stands.
FIGURE_LEADERS = "js js-head js-critical js-late js-preload css css-head css-critical"
FIGURE_UNBLOCKED = f"js-head-defer js-head-async {FIREFOX_UNBLOCKED_JS} {FETCH}".replace(
    " fetch-preload", ""
)
# Firefox's source: of scripts only those lead that block the parser in the head.
NOT_LEADING_JS = f"js js-critical js-preload js-late {JS_ASYNC}"


def under(placeholder: int, weight: int) -> H2Priority:
    """Return the priority of a child of the placeholder declared as number so-and-so, from 1."""
    return H2Priority(weight=weight, depends_on=-placeholder)


def weighing(weight: int) -> H2Priority:
    return H2Priority(weight=weight)


def eps(urgency: int, *, incremental: bool = False) -> Eps:
    return Eps(urgency=urgency, incremental=incremental)


def bucket(number: int, level: int) -> BucketPriority:
    return BucketPriority(bucket=number, level=level)


def strict(weight: int) -> H2Priority:
    """Return a priority of dfifo: of the classes here only the lowest goes below the `other`."""
    return H2Priority(weight=weight, depends_on=0 if weight == 110 else None, exclusive=True)


def meenan(documents: tuple[int, int]) -> dict[Signal, str]:
    """Return Fig. 7 of Marx 2019, with the place of documents as it is given."""
    table = {
        (63, 3): "css-head css-critical js-head js-critical",
        (63, 2): "font",
        (63, 1): "image-visible",
        (31, 3): f"css css-preload js js-late js-preload {FETCH}",
        (31, 2): f"{JS_ASYNC} font-preload",
        (31, 1): "image image-late image-preload media",
        (0, 2): "other other-preload",
    }
    table[documents] += " html"
    return {bucket(*position): names for position, names in table.items()}


EXPECTED: dict[str, dict[Signal, str]] = {
    "rr": {weighing(16): " ".join(RESOURCES)},
    "fifo": {weighing(16): " ".join(RESOURCES)},
    "wrr": {
        weighing(256): f"html {CSS}",
        weighing(24): JS,
        weighing(16): FONTS,
        weighing(8): f"{FETCH} {IMAGES} {REST}",
    },
    "dfifo": dict(zip(map(strict, (256, 220, 183, 147, 110)), CHROME, strict=True)),
    "spdyrr": {bucket(4 - position, 1): names for position, names in enumerate(CHROME)},
    # Placeholders: 1 leaders, 2 followers, 3 unblocked, 4 background, 5 speculative.
    "firefox": {
        under(1, 32): FIREFOX_LEADERS,
        under(2, 32): "html font",
        under(2, 22): FIREFOX_IMAGES,
        under(3, 32): f"{FIREFOX_UNBLOCKED_JS} fetch",
        under(4, 32): "media other",
        under(5, 32): "css-preload font-preload fetch-preload other-preload",
        under(5, 22): "image-preload",
    },
    # Placeholders: 1 urgent-start, 2 leaders, 3 followers, 4 unblocked, 5 background,
    # 6 speculative.
    "firefox-figure": {
        under(1, 255): "html",
        under(2, 32): FIGURE_LEADERS,
        under(3, 42): "font",
        under(3, 22): FIREFOX_IMAGES,
        under(4, 32): FIGURE_UNBLOCKED,
        under(5, 16): "media other",
        under(6, 42): "font-preload",
        under(6, 22): "image-preload",
        under(6, 32): "css-preload fetch-preload other-preload",
    },
    # Placeholders: 1 high, 2 normal, 3 low.
    "p+": {
        under(1, 256): f"html {CSS} {FONTS} {FETCH} {JS_SYNC_EARLY}",
        under(2, 183): "js-late",
        under(3, 110): f"{JS_ASYNC} {IMAGES} {REST}",
    },
    # Placeholders: 1 high, 2 medium, 3 low, 4 leaders, 5 followers, 6 unblocked, 7 background,
    # 8 speculative.
    "s+": {
        under(1, 16): f"{CSS} js-head",
        under(2, 16): f"js js-critical js-late js-preload {JS_ASYNC} {FETCH}",
        under(5, 16): "html font image image-visible image-late",
        under(7, 16): "media other",
        under(8, 16): "font-preload image-preload other-preload",
    },
    "bucket": meenan(documents=(31, 2)),
    "bucket-html": meenan(documents=(63, 2)),
    "zeroweight": {
        weighing(255): "css-critical js-critical js-critical-async",
        weighing(128): f"{FONTS} image-visible",
        weighing(16): (
            f"css css-head css-preload js js-head js-preload js-head-defer js-head-async js-defer"
            f" js-async js-late js-late-async {FETCH}"
        ),
        weighing(0): f"html image image-late image-preload {REST}",
    },
    "zeroweight-simple": {
        weighing(254): f"html {CSS}",
        weighing(24): JS,
        weighing(16): FONTS,
        weighing(8): "image-visible",
        weighing(1): "image image-late image-preload",
        weighing(0): f"{FETCH} {REST}",
    },
    # Sander 2022 § IV-B1: seven levels in one chain; the page model has the first five.
    "sander-chrome": dict(
        zip(
            map(strict, (256, 220, 183, 147, 110)),
            (
                f"html {CSS} font",
                f"{JS_SYNC_EARLY} {FETCH} font-preload",
                "js-late",
                f"{JS_ASYNC} {IMAGES} media",
                "other other-preload",
            ),
            strict=True,
        )
    ),
    "sander-rr": {weighing(16): " ".join(RESOURCES)},
    "sander-batched-rr": {weighing(16): " ".join(RESOURCES)},
    # Sander 2022's server: HTML 255, then CSS and script 24, fonts and fetches 16, the rest 8.
    "sander-wrr": {
        weighing(255): "html",
        weighing(24): f"{CSS} {JS}",
        weighing(16): f"{FONTS} {FETCH}",
        weighing(8): f"{IMAGES} {REST}",
    },
    # Fig. 3: leaders, unblocked, background, speculative, followers, urgent-start; 0 is the root.
    "sander-firefox": {
        under(1, 32): f"{CSS} js-head",
        under(2, 32): f"{NOT_LEADING_JS} {FETCH}",
        under(5, 42): FONTS,
        under(5, 22): f"html {IMAGES} media",
        under(3, 12): "other other-preload",
    },
    "sander-firefox-eps": {
        eps(2, incremental=True): f"{CSS} js-head",
        eps(3, incremental=True): f"html {IMAGES} {FONTS} media",
        eps(4, incremental=True): f"{NOT_LEADING_JS} {FETCH}",
        eps(5, incremental=True): "other other-preload",
    },
}

# Each stream below the one before it.
CHAINS = {"fifo-h2": True, "fifo-draft-20": False, "fifo-draft-22": True}
EXPECTED |= {
    scheme: {H2Priority(depends_on=0, exclusive=exclusive): " ".join(RESOURCES)}
    for scheme, exclusive in CHAINS.items()
}
EXPECTED["zeroweight-2723"] = EXPECTED["zeroweight-simple"]
# A placeholder for level 3 of each bucket, and two halves of another for its levels 2 and 1.
# Where streams go one at a time, the first has strict priority 255; the `other` that is first here
# has taken that of its class.
EXPECTED["swett"] = {
    StrictPriority(strict=255, depends_on=-1): "css-head css-critical js-head js-critical",
    StrictPriority(strict=255, depends_on=-3): "html font",
    StrictPriority(depends_on=-4): "image-visible",
    StrictPriority(strict=255, depends_on=-5): f"css css-preload js js-late js-preload {FETCH}",
    StrictPriority(strict=255, depends_on=-7): f"{JS_ASYNC} font-preload",
    StrictPriority(depends_on=-8): "image image-late image-preload media",
    StrictPriority(strict=254, depends_on=-9): "other other-preload",
}

# One client, several servers.
SERVERS = ("nghttp2", "h2o-h2", "ats")
EXPECTED |= dict.fromkeys(SERVERS, EXPECTED["firefox-figure"])


def test_every_scheme_has_an_expectation_for_every_resource() -> None:
    elsewhere = [*test_scheme_browsers.EXPECTED, "critical-path", "atf-first", "adaptive-rr"]
    # What was recorded is played as it was said (test_recorded_priorities.py).
    names = [scheme.name for scheme in h3sim.list_schemes()]
    elsewhere += [name for name in names if name.startswith("recorded")]
    assert sorted([*EXPECTED, *elsewhere]) == sorted(names)
    for scheme, table in EXPECTED.items():
        assert sorted(" ".join(table.values()).split()) == sorted(RESOURCES), scheme


@pytest.mark.parametrize("scheme", EXPECTED)
def test_a_resource_is_put_into_the_class_of_its_row(scheme: str) -> None:
    table = EXPECTED[scheme].items()
    rows = [(name, signal) for signal, names in table for name in names.split()]
    signals = []
    for name, _ in rows:
        kind, flags = RESOURCES[name]
        load = replay([(0, "other", 1), (0, kind, 1, flags)], scheme)
        signals += [(name, s.signal) for s in load.trace.signals if s.element_id == 4]
    assert signals == rows


@pytest.mark.parametrize("scheme", ["zeroweight", "zeroweight-simple", "zeroweight-2723"])
@pytest.mark.parametrize("kind", ["document", "image", "other"])
def test_the_root_goes_first_whatever_its_kind(scheme: str, kind: str) -> None:
    load = replay([(0, kind, 1)], scheme)
    assert [s.signal for s in load.trace.signals] == [weighing(255)]


ROOT, LEADERS = None, -1
PLACEHOLDERS: dict[str, list[tuple[int, int | None]]] = {
    "firefox": [(201, ROOT), (1, LEADERS), (101, ROOT), (1, ROOT), (1, -4)],
    "firefox-figure": [(240, ROOT), (201, ROOT), (1, -2), (101, ROOT), (1, ROOT), (1, -5)],
    "p+": [(256, ROOT), (256, ROOT), (1, ROOT)],
    "sander-firefox": [(201, ROOT), (101, ROOT), (1, ROOT), (1, -3), (1, LEADERS), (241, ROOT)],
    "s+": [
        *((256, ROOT), (256, ROOT), (1, ROOT)),
        *((201, -3), (1, -4), (101, -3), (1, -3), (1, -7)),
    ],
}
PLACEHOLDERS |= dict.fromkeys(SERVERS, PLACEHOLDERS["firefox-figure"])


@pytest.mark.parametrize("scheme", [name for name in EXPECTED if name != "swett"])
def test_placeholders_are_declared_before_the_first_request(scheme: str) -> None:
    load = replay([(0, "other", 1)], scheme)
    declared = [(s.element_id, s.signal) for s in load.trace.signals if s.element_id < 0]
    assert declared == [
        (-1 - position, H2Priority(weight=weight, depends_on=parent))
        for position, (weight, parent) in enumerate(PLACEHOLDERS.get(scheme, []))
    ]


def test_swetts_placeholders_have_strict_priorities() -> None:
    load = replay([(0, "other", 1)], "swett")
    declared = [(s.element_id, s.signal) for s in load.trace.signals if s.element_id < 0]
    assert declared == [
        (-1, StrictPriority(strict=255)),
        (-2, StrictPriority(strict=254)),
        (-3, StrictPriority(depends_on=-2)),
        (-4, StrictPriority(depends_on=-2)),
        (-5, StrictPriority(strict=127)),
        (-6, StrictPriority(strict=126)),
        (-7, StrictPriority(depends_on=-6)),
        (-8, StrictPriority(depends_on=-6)),
        (-9, StrictPriority(strict=2)),
    ]


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (3, "must be a list of pairs of a flag and true or false, is 3"),
        ([("async",)], "must be pairs of a flag and true or false, has ('async',)"),
        ([("async", True, 1)], "must be pairs of a flag and true or false, has ('async', True, 1)"),
        ([("quick", True)], "must be pairs of a flag and true or false, has ('quick', True)"),
        ([("async", 1)], "must be pairs of a flag and true or false, has ('async', 1)"),
    ],
)
def test_flags_of_a_rule_are_pairs_of_a_name_and_whether_it_is_set(
    flags: Any, problem: str
) -> None:
    assert Rule(class_name="x", flags=[["async", True]]).flags == (("async", True),)  # type: ignore[arg-type]
    with pytest.raises(SchemeError) as raised:
        Rule(class_name="x", flags=flags)
    assert problem in str(raised.value)


def test_a_hint_of_a_server_names_what_it_is_about_by_a_text() -> None:
    assert ServerHint(path="*.png", server_priority=ServerPriority(urgency=1)).matches("a.png")
    with pytest.raises(SchemeError, match="path"):
        ServerHint(path=3, server_priority=ServerPriority(urgency=1))  # type: ignore[arg-type]
