"""Schemes of HTTP/3 before EPS by hand: chains, Firefox's tree, Swett's, buckets, zero weights.

One packet every 10 ms, at 10, 20, ...; requests and signals arrive at once, unless an RTT is said.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import h3sim
from h3sim import catalog
from h3sim.catalog import scheme_from_toml
from h3sim.cli import main
from h3sim.values.errors import SchemeError
from tests.helpers import finished_ms, replay, scripted_page

CRITICAL, VISIBLE = {"critical": True}, {"above_the_fold": True}
CHAINS = ("fifo-h2", "fifo-draft-20", "fifo-draft-22")
FIREFOX = ("firefox-h2", "firefox-draft-20", "firefox-draft-22")


@pytest.mark.parametrize("scheme", CHAINS)
def test_a_chain_is_sent_in_the_order_of_requests(scheme: str) -> None:
    steps = [(0, "document", 2), (0, "image", 2), (15, "script", 1), (35, "stylesheet", 1)]
    load = replay(steps, scheme, handshake=False)
    assert load.trace.order == [0, 0, 4, 4, 8, 12]
    assert finished_ms(load) == {0: 20, 4: 40, 8: 50, 12: 60}


@pytest.mark.parametrize("scheme", CHAINS)
def test_what_is_behind_in_a_chain_goes_while_its_parent_is_not_ready(scheme: str) -> None:
    steps = [(0, "document", 2, {"server_ms": 15}), (0, "image", 3), (0, "image", 1)]
    load = replay(steps, scheme, handshake=False)
    # 10: image 4; from 15 on the document, then image 4 again.
    assert load.trace.order == [4, 0, 0, 4, 4, 8]


@pytest.mark.parametrize("signalling", ["draft-20-control", "draft-22-root"])
def test_the_stages_between_the_drafts_can_be_chosen_in_a_scheme_file(signalling: str) -> None:
    text = catalog.text_of("scheme", "fifo-draft-20").replace('"draft-20"', f'"{signalling}"')
    scheme = scheme_from_toml(text, source="x")
    assert scheme.signalling.value == signalling
    steps = [(0, "document", 2), (0, "image", 2), (15, "script", 1)]
    load = h3sim.simulate(scripted_page(steps), scheme=scheme, handshake=False)
    assert load.trace.order == [0, 0, 4, 4, 8]


def test_only_from_draft_22_on_dependencies_can_be_exclusive() -> None:
    text = catalog.text_of("scheme", "fifo-draft-22")
    for signalling in ("draft-20", "draft-20-control"):
        with pytest.raises(SchemeError, match=f"which '{signalling}' lacks"):
            scheme_from_toml(text.replace('"draft-22"', f'"{signalling}"'), source="x")
    scheme_from_toml(text.replace('"draft-22"', '"draft-22-root"'), source="x")


@pytest.mark.parametrize("scheme", FIREFOX)
def test_firefoxs_groups_share_by_weight_in_either_signalling(scheme: str) -> None:
    steps = [(0, "document", 2), (0, "stylesheet", 4), (0, "script", 3, {"async": True})]
    load = replay(steps, scheme, rtt_ms=40, handshake=False)
    # Weights 241, 201 and 101. In units of 1/241: document at 1 and 2; leaders at 1.2, 2.4, 3.6
    # and 4.8; unblocked at 2.39, 4.77 and, when it is alone, 7.2.
    assert load.trace.order == [0, 4, 0, 8, 4, 4, 8, 4, 8]


def test_swetts_priorities_are_strict_and_images_share_with_what_goes_one_at_a_time() -> None:
    load = replay(
        [
            (0, "document", 2),  # 254, one at a time
            (0, "image", 2, VISIBLE),  # 254, by turns
            (0, "image", 2),  # 126, by turns
            (0, "media", 2),  # 126, by turns
            (0, "fetch", 1),  # 127
            (15, "script", 1, CRITICAL),  # 255
            (0, "other", 1),  # 2
        ],
        "swett",
    )
    # Asked for at 15, the script is stream 24. 10: document, 20: script, then 254 by turns.
    assert load.trace.order == [0, 24, 4, 0, 4, 16, 8, 12, 8, 12, 20]


@pytest.mark.parametrize("scheme", ["swett", "bucket-html"])
def test_swetts_streams_go_one_at_a_time_where_those_of_buckets_do(scheme: str) -> None:
    steps = [(0, "other", 1), (0, "fetch", 2), (0, "fetch", 2)]
    assert replay(steps, scheme).trace.order == [4, 4, 8, 8, 0]


def test_swetts_next_stream_stands_one_below_the_last_of_its_class_that_is_there() -> None:
    fetches = [(0, "fetch", 1), (0, "fetch", 1), (15, "fetch", 60), (610, "fetch", 1)]
    load = replay([*fetches, (1400, "fetch", 1)], "swett")
    message = {s.element_id: s.signal for s in load.trace.signals if s.element_id >= 0}
    # The third goes from 30 to 620, so it is there at 610; by 1400 all have left.
    assert [message[4 * n].strict for n in range(5)] == [255, 254, 253, 252, 255]


@pytest.mark.parametrize("yields", [False, True])
def test_swetts_images_all_have_the_priority_of_their_class(yields: bool) -> None:
    scheme = h3sim.load_scheme("swett")
    if yields:  # then it is known which streams a class has, chain or not
        *others, idle = scheme.placeholders
        idle = replace(idle, yields_to="critical", yielding_weight=1)
        scheme = replace(scheme, placeholders=(*others, idle))
    steps = [(0, "document", 1), *[(0, "image", 1)] * 3]
    load = h3sim.simulate(scripted_page(steps), scheme=scheme)
    message = {s.element_id: s.signal for s in load.trace.signals if s.element_id >= 0}
    assert [message[4 * n].strict for n in range(4)] == [255, 16, 16, 16]


def test_swetts_three_hundredth_stream_has_nothing_lower_and_shares() -> None:
    load = replay([(0, "fetch", 1)] * 300, "swett")
    message = {s.element_id: s.signal for s in load.trace.signals if s.element_id >= 0}
    assert [message[4 * n].strict for n in (0, 255, 256, 299)] == [255, 0, 0, 0]


def test_cloudflares_buckets_take_chromes_levels_and_what_is_incremental_shares() -> None:
    load = replay(
        [
            (0, "document", 2),  # bucket 4, level 1
            (0, "media", 2),  # bucket 1, level 1
            (0, "media", 2),  # bucket 1, level 1
            (0, "stylesheet", 1),  # bucket 4, level 3
            (0, "script", 2),  # bucket 3, level 3
            (0, "script", 1, {"defer": True}),  # bucket 1, level 3
        ],
        "cloudflare",
    )
    assert load.trace.order == [12, 0, 0, 16, 16, 20, 4, 8, 4, 8]


def test_255_is_a_share_in_pr_2723_and_goes_first_in_the_code_of_marx_2019() -> None:
    steps = [(0, "document", 3), (0, "stylesheet", 2), (0, "fetch", 1)]
    # Weights 255, 254 and 0. 1/255 < 1/254 < 2/255 < 2/254.
    assert replay(steps, "zeroweight-2723").trace.order == [0, 4, 0, 4, 0, 8]
    assert replay(steps, "zeroweight-simple").trace.order == [0, 0, 0, 4, 4, 8]


@pytest.mark.parametrize(
    ("scheme", "words"),
    [
        ("bucket-html", "higher buckets go first"),
        ("chrome-eps", "lower urgencies go first"),
        ("swett", "higher strict priorities go first"),
        ("dfifo", "parents go before children"),
        ("zeroweight", "weight 255 first, of 0 last"),
        ("atf-first", "lower ranks go first"),
    ],
)
def test_a_scheme_that_is_shown_says_which_priorities_go_first(
    scheme: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "scheme", scheme]) == 0
    out = capsys.readouterr().out
    assert words in " ".join(out.split())
    assert main(["show", "scheme", scheme, "--toml"]) == 0
    assert words not in capsys.readouterr().out
