"""Today's browsers by hand: what each asks for, and what servers make of Chrome's signals.

The expectations are read off the browsers' tables (Chromium's and WebKit's levels, Firefox's
groups), not off the shipped files.
"""

from __future__ import annotations

from typing import Any

import pytest

import h3sim
from h3sim.page import with_first_layout
from h3sim.schedulers import Mixed, Quantum, Retransmit
from h3sim.schemes import Scheme, make_policy
from h3sim.signals import BucketPriority, Eps, H2Priority, Signal
from tests.helpers import finished_ms, replay, scripted_page

HIGH, LOW = {"fetchpriority": "high"}, {"fetchpriority": "low"}
LATE, ASYNC, DEFER = {"after_first_image": True}, {"async": True}, {"defer": True}
PRELOAD, BLOCKS = {"preload": True}, {"render_blocking": True}

RESOURCES = {
    "html": ("document", {}),
    "css": ("stylesheet", {}),
    "css-high": ("stylesheet", HIGH),
    "css-low": ("stylesheet", LOW),
    "css-late": ("stylesheet", LATE),
    "css-late-blocks": ("stylesheet", LATE | BLOCKS),
    "css-late-high": ("stylesheet", LATE | HIGH),
    "css-late-low": ("stylesheet", LATE | LOW),
    "js": ("script", {}),
    "js-head": ("script", {"in_head": True}),
    "js-high": ("script", HIGH),
    "js-low": ("script", LOW),
    "js-late": ("script", LATE),
    "js-late-high": ("script", LATE | HIGH),
    "js-defer": ("script", DEFER),
    "js-async": ("script", ASYNC),
    "js-async-high": ("script", ASYNC | HIGH),
    "js-async-low": ("script", ASYNC | LOW),
    "js-async-blocks": ("script", ASYNC | BLOCKS),
    "font": ("font", {}),
    "font-preload": ("font", PRELOAD),
    "font-preload-low": ("font", PRELOAD | LOW),
    "image": ("image", {}),
    "image-visible": ("image", {"above_the_fold": True, "hero": True}),
    "image-high": ("image", HIGH),
    "image-low": ("image", LOW),
    "fetch": ("fetch", {}),
    "fetch-high": ("fetch", HIGH),
    "fetch-low": ("fetch", LOW),
    "media": ("media", {}),
    "other": ("other", {}),
}


def eps(urgency: int, *, incremental: bool = False) -> Eps:
    return Eps(urgency=urgency, incremental=incremental)


# Blink's levels, with what of each is incremental. One image is among the first five.
CHROME = {
    (0, True): "html",
    (0, False): "css css-high font",
    (1, False): "css-low css-late-blocks css-late-high js js-head js-high js-late-high"
    " js-async-high js-async-blocks font-preload",
    (1, True): "image-high fetch fetch-high",
    (2, False): "css-late js-late",
    (2, True): "image image-visible",
    (3, False): "css-late-low js-low js-defer js-async js-async-low font-preload-low",
    (3, True): "image-low fetch-low media",
    (4, True): "other",
}
# The weights of SPDY's priorities 0 to 4; only the lowest goes below the `other` that is first.
CHROME_WEIGHTS = (256, 220, 183, 147, 110)
# Urgencies of Firefox's groups: 1 to 4 and 6; the highest priority is two less, a step is one.
# Of scripts only those lead that block the parser in the head; all others, and fetches, are
# unblocked.
FIREFOX = {
    (1, False): "css-high css-late-high",
    (2, False): "css css-late css-late-blocks js-head js-high js-late-high js-async-high fetch-high"
    " font font-preload font-preload-low",
    (3, False): "css-low css-late-low js js-late js-defer js-async js-async-blocks fetch",
    (3, True): "image-high",
    (4, False): "html js-low js-async-low fetch-low media",
    (4, True): "image image-visible",
    (5, True): "image-low",
    (6, False): "other",
}
# The groups over HTTP/2: leaders 1, unblocked 2, background 3, followers 5.
FIREFOX_TREE = {
    (1, 42): "css-high css-late-high",
    (1, 32): "css css-late css-late-blocks js-head",
    (1, 22): "css-low css-late-low",
    (2, 42): "js-high js-late-high js-async-high fetch-high",
    (2, 32): "js js-late js-defer js-async js-async-blocks fetch",
    (2, 22): "js-low js-async-low fetch-low",
    (5, 42): "font font-preload font-preload-low",
    (5, 32): "image-high",
    (5, 22): "html image image-visible media",
    (5, 12): "image-low",
    (3, 22): "other",
}
# WebKit's levels, very high to very low.
SAFARI = (
    "html css-high css-late-high js-high js-late-high js-async-high",
    "css css-late css-late-blocks js js-head js-late js-defer js-async js-async-blocks fetch-high",
    "css-low css-late-low js-low js-async-low font font-preload fetch media image-high",
    "image image-visible fetch-low font-preload-low",
    "image-low other",
)

# What docs/generated/h3sim-1.md argues for: each urgency, one at a time.
H3SIM_1 = {
    0: "image-high",
    1: "js-head",
    2: "css css-high css-late css-late-blocks css-late-high font",
    3: "js js-high js-late js-late-high js-async js-async-high js-async-blocks font-preload",
    4: "image image-visible media",
    5: "html",  # one in a frame
    6: "css-low css-late-low js-low js-async-low js-defer font-preload-low image-low fetch"
    " fetch-high fetch-low",
    7: "other",
}


def strict(weight: int) -> H2Priority:
    return H2Priority(weight=weight, depends_on=0 if weight == 110 else None, exclusive=True)


# Chrome before 2023 raised no image for being among the first five, and nothing was incremental.
CHROME_2022 = {
    0: "html css css-high font",
    1: f"{CHROME[1, False]} {CHROME[1, True]}",
    2: "css-late js-late",
    3: f"{CHROME[3, False]} {CHROME[3, True]} image image-visible",
    4: "other",
}
# Firefox's groups alone: leaders 2, unblocked 3, followers 4, background 6.
FIREFOX_2021 = {
    2: "css css-high css-low css-late css-late-blocks css-late-high css-late-low js-head",
    3: "js js-high js-low js-late js-late-high js-defer js-async js-async-high js-async-low"
    " js-async-blocks fetch fetch-high fetch-low",
    4: "html font font-preload font-preload-low image image-visible image-high image-low media",
    6: "other",
}
# Before fetchpriority, by weight.
CHROME_50 = {
    256: "html css css-high css-low font",
    220: "css-late-blocks js js-head js-high js-low js-async-blocks font-preload font-preload-low"
    " fetch fetch-high fetch-low",
    183: "css-late css-late-high css-late-low js-late js-late-high",
    147: "js-defer js-async js-async-high js-async-low image image-visible image-high image-low"
    " media",
    110: "other",
}
CHROME_EPS: dict[Signal, str] = {eps(u, incremental=i): names for (u, i), names in CHROME.items()}
EXPECTED: dict[str, dict[Signal, str]] = {
    "chrome-eps": CHROME_EPS,
    "chrome-h2": {
        strict(weight): " ".join(CHROME.get((level, flag), "") for flag in (True, False))
        for level, weight in enumerate(CHROME_WEIGHTS)
    },
    "spdy": {
        eps(level): " ".join(CHROME.get((level, flag), "") for flag in (True, False))
        for level in range(5)
    },
    "firefox-eps": {eps(u, incremental=i): names for (u, i), names in FIREFOX.items()},
    "firefox-h2": {
        H2Priority(weight=weight, depends_on=-group): names
        for (group, weight), names in FIREFOX_TREE.items()
    },
    "chrome-eps-2022": {eps(urgency): names for urgency, names in CHROME_2022.items()},
    "firefox-eps-2021": {eps(urgency): names for urgency, names in FIREFOX_2021.items()},
    "chrome-50-h2": {H2Priority(weight=weight): names for weight, names in CHROME_50.items()},
    "h3sim-1": {eps(urgency): names for urgency, names in H3SIM_1.items()},
    "safari-eps": {
        eps(urgency, incremental=True): names
        for urgency, names in zip((0, 1, 3, 5, 7), SAFARI, strict=True)
    },
    "safari-h2": {
        H2Priority(weight=255): SAFARI[0],
        H2Priority(weight=24): SAFARI[1],
        H2Priority(weight=16): SAFARI[2],
        H2Priority(weight=8): f"{SAFARI[3]} {SAFARI[4]}",
    },
    "edge-h2": {H2Priority(weight=16): " ".join(RESOURCES)},
    **dict.fromkeys(
        (
            *("nghttp3", "quiche", "google-quiche", "lsquic", "h2o", "quic-go", "go-h2"),
            *("nghttp2-eps", "mvfst"),
        ),
        CHROME_EPS,
    ),
}
EXPECTED["firefox-draft-20"] = EXPECTED["firefox-draft-22"] = EXPECTED["firefox-h2"]
# Chrome's levels as buckets 4 to 0; what is incremental shares, the rest goes one at a time.
EXPECTED["cloudflare"] = {
    BucketPriority(bucket=4 - level, level=1 if incremental else 3): names
    for (level, incremental), names in CHROME.items()
}


def test_every_browser_has_an_expectation_for_every_resource() -> None:
    for scheme, table in EXPECTED.items():
        assert sorted(" ".join(table.values()).split()) == sorted(RESOURCES), scheme


@pytest.mark.parametrize("scheme", EXPECTED)
def test_every_resource_is_put_into_the_class_of_its_row(scheme: str) -> None:
    row = h3sim.load_scheme(scheme)
    message = {name: signal_of(row, *RESOURCES[name]) for name in RESOURCES}  # type: ignore[arg-type]
    assert message == {
        name: signal for signal, names in EXPECTED[scheme].items() for name in names.split()
    }


def signal_of(scheme: Scheme, kind: str, flags: dict[str, Any]) -> Signal:
    """Return what is said of a resource that is requested second, after one of kind `other`."""
    page = scripted_page([(0, "other", 1), (0, kind, 1, flags)])
    policy = make_policy(scheme, page)
    policy.on_connected()
    policy.on_requested(0, page.resources[0])
    changes = policy.on_requested(4, page.resources[1])
    assert [element_id for element_id, _ in changes] == [4]
    return changes[0][1]


@pytest.mark.parametrize(
    ("scheme", "signal"),
    [
        ("chrome-eps", eps(0, incremental=True)),
        ("firefox-eps", eps(0, incremental=True)),
        ("safari-eps", eps(0, incremental=True)),
        ("firefox-h2", H2Priority(weight=42, depends_on=-6)),
    ],
)
def test_the_main_document(scheme: str, signal: Signal) -> None:
    load = replay([(0, "document", 1)], scheme)
    assert [s.signal for s in load.trace.signals if s.element_id == 0] == [signal]


def test_only_the_first_five_images_are_raised() -> None:
    steps = [(0, "document", 1), *[(0, "image", 1)] * 5, (0, "script", 1), *[(0, "image", 1)] * 2]
    message = {s.element_id: s.signal for s in replay(steps, "chrome-eps").trace.signals}
    assert [message[4 * n] for n in range(1, 6)] == [eps(2, incremental=True)] * 5
    assert [message[4 * n] for n in (7, 8)] == [eps(3, incremental=True)] * 2


SETTINGS = {
    "nghttp3": (Mixed.SHARED_LIST, Quantum(size_bytes=800), None),
    "quiche": (Mixed.NON_INCREMENTAL_FIRST, None, Retransmit.TURN),
    "google-quiche": (Mixed.ALL_SHARE, Quantum(size_bytes=16_000), None),
    "mvfst": (Mixed.NON_INCREMENTAL_FIRST, None, None),
    "lsquic": (Mixed.NON_INCREMENTAL_FIRST, None, None),
    "h2o": (Mixed.FIRST_TURN, None, Retransmit.TURN),
    "quic-go": (Mixed.HALVES_INCREMENTAL_FIRST, None, Retransmit.PRIORITY),
    "go-h2": (None, None, None),
    "nghttp2-eps": (None, None, None),
}


@pytest.mark.parametrize(("scheme", "settings"), SETTINGS.items())
def test_a_server_has_its_settings(scheme: str, settings: tuple[object, ...]) -> None:
    row = h3sim.load_scheme(scheme)
    assert (row.mixed, row.turn, row.retransmission) == settings


# Packet orders. One packet every 10 ms; what is asked for at 0 goes from 10.


def test_chrome_eps_shares_among_images_and_not_among_scripts() -> None:
    steps = [
        (0, "document", 2),  # 0, incremental
        (0, "image", 2),  # 2, incremental
        (0, "script", 2),  # 1
        (0, "image", 2),  # 2, incremental
        (0, "script", 1),  # 1
        (0, "stylesheet", 1),  # 0
        (0, "script", 1, ASYNC),  # 3
    ]
    load = replay(steps, "chrome-eps")
    # At 0 the stylesheet goes before the incremental document.
    assert load.trace.order == [20, 0, 0, 8, 8, 16, 4, 12, 4, 12, 24]
    assert finished_ms(load)[0] == 30


def test_chrome_eps_puts_a_hinted_image_before_others() -> None:
    steps = [(0, "document", 1), (0, "image", 2), (15, "image", 2, HIGH), (15, "script", 1)]
    load = replay(steps, "chrome-eps")
    # 20: at urgency 1, the script before the incremental image.
    assert load.trace.order == [0, 12, 8, 8, 4, 4]


def test_chrome_h2_sends_images_one_at_a_time() -> None:
    steps = [(0, "document", 1), (0, "image", 2), (0, "image", 2), (25, "stylesheet", 1)]
    assert replay(steps, "chrome-h2").trace.order == [0, 4, 12, 4, 8, 8]


def test_chrome_h2_sends_the_sixth_image_after_a_late_script() -> None:
    steps = [(0, "document", 1), *[(0, "image", 1)] * 6, (0, "script", 1, LATE)]
    # Images one to five and the script are of one level, the sixth image is below.
    assert replay(steps, "chrome-h2").trace.order == [0, 4, 8, 12, 16, 20, 28, 24]


def test_firefox_eps_goes_group_by_group() -> None:
    steps = [
        (0, "document", 1),  # 0
        (0, "image", 2),  # 4, incremental
        (0, "image", 1),  # 4, incremental
        (0, "script", 1, ASYNC),  # 3
        (0, "fetch", 1),  # 4
        (0, "font", 1),  # 2
        (0, "stylesheet", 1),  # 2
    ]
    assert replay(steps, "firefox-eps").trace.order == [0, 20, 24, 12, 16, 4, 8, 4]


def test_firefox_eps_moves_a_hinted_script_up() -> None:
    steps = [(0, "document", 1), (0, "script", 1), (0, "script", 2, HIGH), (0, "fetch", 1, LOW)]
    assert replay(steps, "firefox-eps").trace.order == [0, 8, 8, 4, 12]


def test_firefox_h2_shares_201_to_101_between_leaders_and_unblocked() -> None:
    steps = [(0, "document", 1), (0, "stylesheet", 4), (0, "script", 2, ASYNC)]
    # Virtual time 256/w a packet: urgent 1.06; leaders 1.27 2.55 3.82 5.09; unblocked 2.53 5.07.
    assert replay(steps, "firefox-h2").trace.order == [0, 4, 8, 4, 4, 8, 4]


def test_firefox_h2_shares_by_weight_among_followers() -> None:
    # Font 42, image 22 (units of 1/462): 11 22 33 44, 21 42.
    steps = [(0, "document", 1), (0, "font", 4), (0, "image", 2)]
    assert replay(steps, "firefox-h2").trace.order == [0, 4, 8, 4, 4, 8, 4]


def test_safari_eps_shares_in_each_level() -> None:
    steps = [
        (0, "document", 1),  # 0
        (0, "stylesheet", 2),  # 1
        (0, "image", 2),  # 5
        (0, "script", 2),  # 1
        (0, "font", 2),  # 3
        (0, "fetch", 1),  # 3
    ]
    assert replay(steps, "safari-eps").trace.order == [0, 4, 12, 4, 12, 16, 20, 16, 8, 8]


def test_safari_eps_moves_a_hinted_image_up_to_fonts() -> None:
    steps = [(0, "document", 1), (0, "image", 1), (0, "image", 2, HIGH), (0, "font", 2)]
    assert replay(steps, "safari-eps").trace.order == [0, 8, 12, 8, 12, 4]


def test_safari_h2_gives_a_script_three_packets_for_two_of_a_font_and_one_of_an_image() -> None:
    steps = [(0, "image", 2), (0, "font", 4), (0, "script", 6)]
    # Units of 1/48: image (8) 6 12, font (16) 3 6 9 12, script (24) 2 4 6 8 10 12.
    order = [8, 4, 8, 0, 4, 8, 8, 4, 8, 0, 4, 8]
    assert replay(steps, "safari-h2").trace.order == order


def test_safari_h2_shares_between_media_and_fonts() -> None:
    steps = [(0, "media", 2), (0, "font", 2), (0, "image", 1)]
    assert replay(steps, "safari-h2").trace.order == [0, 4, 0, 4, 8]


def test_edge_h2_is_round_robin() -> None:
    steps = [(0, "document", 2), (0, "image", 2), (0, "script", 1)]
    assert replay(steps, "edge-h2").trace.order == [0, 4, 8, 0, 4]
    later = [(0, "document", 3), (5, "image", 4), (15, "script", 5), (15, "font", 2)]
    assert replay(later, "edge-h2").trace.order == replay(later, "rr").trace.order


def test_spdy_shares_in_each_level() -> None:
    steps = [(0, "document", 2), (0, "script", 2), (0, "stylesheet", 1), (0, "fetch", 1)]
    assert replay(steps, "spdy").trace.order == [0, 8, 0, 4, 12, 4]


def test_spdy_lets_a_higher_level_overtake() -> None:
    steps = [(0, "document", 1), (0, "image", 3), (25, "script", 1)]
    assert replay(steps, "spdy").trace.order == [0, 4, 8, 4, 4]


# Urgency 1: a fetch (incremental) before a script (not), and a fetch after it.
MIXED = [(0, "document", 1), (0, "fetch", 3), (0, "script", 3), (0, "fetch", 3)]
# Urgency 2: two images that share, and one that comes once each has had turns.
SHARED = [(0, "document", 1), (0, "image", 4), (0, "image", 4), (45, "image", 2)]


@pytest.mark.parametrize(
    ("scheme", "order"),
    [
        # One list by round and then by id: 4 in round 0, 8 stays in it, 12; then rounds 1 and 2.
        ("nghttp3", [0, 4, 8, 8, 8, 12, 4, 12, 4, 12]),
        ("quiche", [0, 8, 8, 8, 4, 12, 4, 12, 4, 12]),
        ("mvfst", [0, 8, 8, 8, 4, 12, 4, 12, 4, 12]),
        ("lsquic", [0, 8, 8, 8, 4, 12, 4, 12, 4, 12]),
        # The first turn of 4, then 8, then the first turn of 12.
        ("h2o", [0, 4, 8, 8, 8, 12, 4, 12, 4, 12]),
        # None has 16,000 bytes, so each is sent in one turn.
        ("google-quiche", [0, 4, 4, 4, 8, 8, 8, 12, 12, 12]),
        # An incremental frame, one that is not, and so on.
        ("quic-go", [0, 4, 8, 12, 8, 4, 8, 12, 4, 12]),
        # The same, but the document had the first incremental turn of the connection.
        ("go-h2", [0, 8, 4, 8, 12, 8, 4, 12, 4, 12]),
        # All at cycle 0: 4 goes back by its frame, 8 stays at the head until it is done.
        ("nghttp2-eps", [0, 4, 8, 8, 8, 12, 4, 12, 4, 12]),
    ],
)
def test_servers_differ_where_both_kinds_have_one_urgency(scheme: str, order: list[int]) -> None:
    assert replay(MIXED, scheme).trace.order == order


@pytest.mark.parametrize(
    ("scheme", "order"),
    [
        # At 45: 4 and 8 have had two turns and one; 8 is at the head, in round 1, and so is 12.
        ("nghttp3", [0, 4, 8, 4, 8, 12, 4, 8, 12, 4, 8]),
        # 12 goes behind 8, which goes behind 4's second turn.
        ("quiche", [0, 4, 8, 4, 8, 4, 12, 8, 4, 12, 8]),
        ("mvfst", [0, 4, 8, 4, 8, 4, 12, 8, 4, 12, 8]),
        ("lsquic", [0, 4, 8, 4, 8, 4, 12, 8, 4, 12, 8]),
        # 12 has its first turn at once.
        ("h2o", [0, 4, 8, 4, 12, 8, 4, 12, 8, 4, 8]),
        ("google-quiche", [0, 4, 4, 4, 4, 8, 8, 8, 8, 12, 12]),
        ("quic-go", [0, 4, 8, 4, 8, 4, 12, 8, 4, 12, 8]),
        ("go-h2", [0, 4, 8, 4, 8, 4, 12, 8, 4, 12, 8]),
        # At 45: 4 has sent two frames and 8 one, so 8 is first, and 12 joins level with it.
        ("nghttp2-eps", [0, 4, 8, 4, 8, 12, 4, 8, 12, 4, 8]),
    ],
)
def test_servers_differ_in_where_a_new_stream_stands(scheme: str, order: list[int]) -> None:
    assert replay(SHARED, scheme).trace.order == order


def test_only_mvfst_lets_streams_without_a_signal_of_chrome_share() -> None:
    steps = [(0, "document", 1), (0, "script", 2, ASYNC), (0, "script", 2, ASYNC)]
    assert replay(steps, "mvfst").trace.order == [0, 4, 8, 4, 8]
    assert replay(steps, "lsquic").trace.order == [0, 4, 4, 8, 8]


@pytest.mark.parametrize("scheme", ["quic-go", "go-h2"])
def test_a_client_without_signals_so_far_gets_quanta(scheme: str) -> None:
    """Chrome sends no field for the default; after any field the default is that of RFC 9218."""
    silent = [(0, "script", 2, ASYNC), (0, "script", 2, ASYNC)]
    assert replay(silent, scheme).trace.order == [0, 4, 0, 4]
    assert replay(silent, "lsquic").trace.order == [0, 0, 4, 4]
    aware = [(0, "document", 1), *silent]
    assert replay(aware, scheme).trace.order == [0, 4, 4, 8, 8]
    assert replay(aware, "mvfst").trace.order == [0, 4, 8, 4, 8]


def test_google_quiche_passes_the_turn_on_after_twelve_packets() -> None:
    steps = [(0, "document", 1), (0, "image", 14), (0, "script", 1, LATE)]
    assert replay(steps, "google-quiche").trace.order == [0] + [4] * 12 + [8] + [4] * 2


def test_h3sim_1_sends_what_is_seen_first_once_layout_reports_it() -> None:
    # One packet of the document; a stylesheet of 2 blocks layout. Of two images of 4 packets the
    # second is seen: until layout nobody knows, and the stylesheet goes first anyway. A script of
    # the body would go before images that nobody knows to be seen, and goes behind the one that is.
    page = scripted_page(
        [
            (0, "document", 1),
            (0, "stylesheet", 2, {"in_head": True}),
            (0, "image", 4),
            (0, "image", 4, {"above_the_fold": True}),
            (0, "script", 2),
        ]
    )
    load = h3sim.simulate(with_first_layout(page), scheme="h3sim-1")
    assert load.trace.order == [0, 4, 4, *[12] * 4, 16, 16, *[8] * 4]
    blind = h3sim.simulate(page, scheme="h3sim-1")
    assert blind.trace.order == [0, 4, 4, 16, 16, *[8] * 4, *[12] * 4]
