"""What the schemes promise beyond any load's laws: strictness, shares, one order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from h3sim.conformance import pages
from h3sim.page import TriggerEvent
from h3sim.values.units import ms
from tests.effort import law
from tests.helpers import page_of, replay
from tests.property import laws
from tests.property.runs import Case, usual_scheduler
from tests.property.scheduler_laws import check_pick_is_pure
from tests.property.strategies import DIFFERENT, SCHEMES, cases, full_packets, links

each_scheme = pytest.mark.parametrize("scheme", DIFFERENT)
no_jitter = st.just("none")
no_buffer = st.just(0)


def first_come(page: Any, resource: Any, stream_id: int) -> Any:
    """One at a time, in the order of the requests."""
    return (stream_id,)


def class_by_class(scheme: Any) -> Any:
    """Classes in the order of the file, first come first served in each (dfifo)."""
    names = [entry.name for entry in scheme.classes]

    def rank(page: Any, resource: Any, stream_id: int) -> Any:
        found = scheme.classify(resource, images_before=page.images_before[resource.id])
        return (names.index(found.name), stream_id)

    return rank


def bucket_by_bucket(scheme: Any) -> Any:
    """The higher bucket first, and in each level 3 one at a time before levels 2 and 1."""

    def rank(page: Any, resource: Any, stream_id: int) -> Any:
        position = scheme.classify(resource)
        is_exclusive = position.level == 3
        return (-position.bucket, not is_exclusive, stream_id if is_exclusive else 0)

    return rank


def sequential_level(scheme: Any, bucket: Any) -> Any:
    """The streams of level 2 of one bucket, one at a time; others have no rank."""

    def rank(page: Any, resource: Any, stream_id: int) -> Any:
        position = scheme.classify(resource)
        return (stream_id,) if (position.bucket, position.level) == (bucket, 2) else None

    return rank


def zero_weights(scheme: Any) -> Any:
    """Weight 255 first and 0 last, each one at a time; the others between."""

    def rank(page: Any, resource: Any, stream_id: int) -> Any:
        weight = scheme.classify(resource).weight
        turn = {255: 0, 0: 2}.get(weight, 1)
        return (turn, 0 if turn == 1 else stream_id)

    return rank


def chain_of(scheme: Any, class_name: Any) -> Any:
    """The streams of a class that stands in a chain (p+, s+), one at a time."""

    def rank(page: Any, resource: Any, stream_id: int) -> Any:
        return (stream_id,) if scheme.classify(resource).name == class_name else None

    return rank


def urgency_by_urgency(scheme: Any) -> Any:
    """The lowest urgency first, and in each those that are not incremental one at a time."""

    def rank(page: Any, resource: Any, stream_id: int) -> Any:
        expected = scheme.classify(resource)
        return (expected.urgency, 0 if expected.incremental else stream_id)

    return rank


STRICT: dict[str, list[Any]] = {
    "fifo": [first_come],
    "chrome-h2": [class_by_class(SCHEMES["chrome-h2"])],
    "spdyrr": [bucket_by_bucket(SCHEMES["spdyrr"])],
    "zeroweight": [zero_weights(SCHEMES["zeroweight"])],
    "zeroweight-simple": [zero_weights(SCHEMES["zeroweight-simple"])],
    "sander-chrome": [class_by_class(SCHEMES["sander-chrome"])],
    "sander-firefox-eps": [urgency_by_urgency(SCHEMES["sander-firefox-eps"])],
    "safari-eps": [urgency_by_urgency(SCHEMES["safari-eps"])],
    "p+": [chain_of(SCHEMES["p+"], "high")],
    "s+": [chain_of(SCHEMES["s+"], "high"), chain_of(SCHEMES["s+"], "medium")],
    "bucket": [
        bucket_by_bucket(SCHEMES["bucket"]),
        sequential_level(SCHEMES["bucket"], 31),
        sequential_level(SCHEMES["bucket"], 63),
    ],
    "bucket-html": [
        bucket_by_bucket(SCHEMES["bucket-html"]),
        sequential_level(SCHEMES["bucket-html"], 31),
        sequential_level(SCHEMES["bucket-html"], 63),
    ],
}
"""By scheme, the orders of which each load of it keeps every one."""


@pytest.mark.parametrize("scheme", STRICT)
@law(60, usual=40)
@given(case=cases(send_buffers_kb=no_buffer))
def test_a_strict_class_is_never_overtaken(scheme: str, case: Any) -> None:
    load = case.but(scheme=scheme).run()
    for rank in STRICT[scheme]:
        laws.check_none_is_overtaken(load, rank)


@law(50, usual=15)
@given(cases(pages=pages(at=(TriggerEvent.TIME,)), jitters=no_jitter))
def test_all_schemes_load_a_timed_page_in_the_same_time(case: Any) -> None:
    different = DIFFERENT
    laws.check_page_loads_take_equally_long([case.but(scheme=name).run() for name in different])


@each_scheme
@law(25, usual=8)
@given(case=cases(send_buffers_kb=st.just(1000)))
def test_a_buffer_larger_than_the_page_makes_every_scheme_fifo(scheme: Any, case: Any) -> None:
    laws.check_large_buffers_hide_the_scheme(
        case.but(scheme=scheme).run(), case.but(scheme="fifo").run()
    )


def test_of_two_that_are_ready_at_once_the_first_may_decide_what_is_asked_for_next() -> None:
    """The one that has no bytes, and is there at once, names a third."""
    done = {"by": "/", "at": "complete"}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 8000},
        {"id": "a", "kind": "document", "bytes": 0, "server_ms": 10, "discovered": done},
        {"id": "b", "kind": "document", "bytes": 8000, "discovered": {**done, "delay_ms": 10}},
        {"id": "c", "kind": "document", "bytes": 0, "discovered": {"by": "a", "at": "complete"}},
    )
    loads = {s: Case(page, s, send_buffer_kb=1000).but(rtt_ms=0).run() for s in ("nghttp2", "fifo")}
    assert [laws.when_ready(load)[12] / ms(1) for load in loads.values()] == [70, 130]
    laws.check_large_buffers_hide_the_scheme(loads["nghttp2"], loads["fifo"])


@law(40)
@given(cases(pages=pages(bare=True)))
def test_fifo_needs_no_buffer_to_send_in_the_order_of_the_requests(case: Any) -> None:
    """Where no response takes thought: else the order of responses is not that of requests."""
    buffered = case.but(scheme="rr", send_buffer_kb=1000).run()
    fifo = case.but(scheme="fifo", send_buffer_kb=0).run()
    assert buffered.trace.order == fifo.trace.order
    laws.check_large_buffers_hide_the_scheme(buffered, fifo)


@each_scheme
@law(25, usual=8)
@given(case=cases())
def test_pick_is_pure_and_each_pick_is_charged_once(scheme: Any, case: Any) -> None:
    check_pick_is_pure(case.but(scheme=scheme), usual_scheduler)


@law(60)
@given(
    cases(pages=pages(at=(TriggerEvent.TIME,), sizes=full_packets, bare=True), jitters=no_jitter)
)
def test_fifo_attains_the_bound_on_whole_packets(case: Any) -> None:
    assume(case.link["packet_bytes"] is None)
    laws.check_bound_is_attained(case.but(scheme="fifo").run())


@pytest.mark.parametrize("scheme", ["dfifo", "fifo"])
@law(30)
@given(sizes=st.lists(st.integers(1, 20), min_size=1, max_size=6), link=links(jitters=no_jitter))
def test_any_order_one_at_a_time_attains_the_bound(scheme: Any, sizes: Any, link: Any) -> None:
    assume(link["packet_bytes"] is None)
    steps = [(0, "image" if n else "document", size) for n, size in enumerate(sizes)]
    laws.check_bound_is_attained(replay(steps, scheme, **link))


WRR_WEIGHTS = {"stylesheet": 256, "script": 24, "font": 16, "image": 8, "fetch": 8, "media": 8}


@law(40)
@given(st.lists(st.sampled_from(list(WRR_WEIGHTS)), min_size=1, max_size=6))
def test_shares_of_wrr_follow_its_weights(kinds: Any) -> None:
    steps = [(0, "document", 300), *((0, kind, 300) for kind in kinds)]
    load = replay(steps, "wrr", handshake=False)
    weights = [256, *(WRR_WEIGHTS[kind] for kind in kinds)]
    laws.check_shares_follow_weights(
        load.trace.order, {4 * n: weight for n, weight in enumerate(weights)}
    )


FIREFOX_GROUPS = {"stylesheet": "leaders", "document": "leaders", "image": "leaders"} | {
    "fetch": "unblocked",
    "media": "background",
}
FIREFOX_WEIGHTS = {"leaders": 201, "unblocked": 101, "background": 1}


@law(40)
@given(st.lists(st.sampled_from(["stylesheet", "image", "fetch", "media"]), max_size=4))
def test_shares_of_firefoxs_placeholders_follow_their_weights(more: Any) -> None:
    kinds = ["document", "fetch", "media", *more]
    load = replay([(0, kind, 250) for kind in kinds], "firefox", handshake=False)
    turns = [FIREFOX_GROUPS[kinds[stream_id // 4]] for stream_id in load.trace.order]
    laws.check_shares_follow_weights(turns, FIREFOX_WEIGHTS)


@law(40)
@given(st.lists(st.sampled_from(["normal", "low"]), max_size=4))
def test_placeholders_of_p_plus_yield_as_long_as_high_has_a_stream(more: Any) -> None:
    groups = ["high", "normal", "low", *more]
    late_script = ("script", 600, {"after_first_image": True})
    steps = {"high": ("document", 600), "normal": late_script, "low": ("image", 600)}
    load = replay([(0, *steps[group]) for group in groups], "p+", handshake=False)
    turns = [groups[stream_id // 4] for stream_id in load.trace.order]
    laws.check_shares_follow_weights(turns, {"high": 256, "normal": 1, "low": 1})


@law(40)
@given(st.integers(2, 9), st.integers(1, 12))
def test_round_robin_shares_equally(n_streams: int, n_packets: int) -> None:
    steps = [(0, "image" if n else "document", n_packets) for n in range(n_streams)]
    load = replay(steps, "rr", handshake=False)
    laws.check_shares_follow_weights(load.trace.order, {4 * n: 1 for n in range(n_streams)})


@pytest.mark.parametrize("scheme", ["chrome-eps", "nghttp3", "google-quiche", "h2o", "mvfst"])
@law(10)
@given(n_images=st.integers(2, 5), n_packets=st.integers(12, 60))
def test_images_of_one_urgency_share_equally(scheme: Any, n_images: int, n_packets: int) -> None:
    """RFC 9218 § 10; as far as turns allow."""
    steps = [(0, "document", 1), *[(0, "image", n_packets)] * n_images]
    order = replay(steps, scheme, handshake=False).trace.order[1:]
    turns = order if scheme != "google-quiche" else order[: 12 * n_images : 12]
    laws.check_shares_follow_weights(turns, {4 * n: 1 for n in range(1, n_images + 1)})


@law(60, usual=30)
@given(
    cases(pages=pages(at=(TriggerEvent.TIME,), sizes=full_packets, bare=True), jitters=no_jitter)
)
def test_atf_first_attains_the_bound_of_what_is_above_the_fold(case: Any) -> None:
    """As if the rest were not there: it takes no instant from what is above the fold."""
    assume(case.link["packet_bytes"] is None)
    load = case.but(scheme="atf-first", send_buffer_kb=0).run()
    # The root is asked for at 0 whatever it is; every other resource waits for nothing but time.
    laws.check_bound_above_the_fold_is_attained(load)


def test_random_cases_are_told_apart_by_their_scheme() -> None:
    """Else the laws above would look at one scheme many times."""
    steps = [(0, kind, 9) for kind in ("document", "image", "script", "font", "stylesheet")]
    orders = {tuple(replay(steps, name).trace.order) for name in SCHEMES}
    assert len(orders) >= 10


def test_a_case_changes_only_what_is_named() -> None:
    case = Case(page=replay([(0, "document", 1)], "rr").page, link={"rtt_ms": 5})
    assert case.but(scheme="fifo", seed=2) == Case(
        page=case.page, scheme="fifo", link={"rtt_ms": 5, "seed": 2}
    )
