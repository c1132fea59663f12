"""HTTP/1.1: hand-worked loads over pools of connections."""

from __future__ import annotations

import json
from typing import Any

import pytest

import h3sim
from h3sim.engine.host_connections import RequestPriorities
from h3sim.signals import BucketPriority
from h3sim.transport import LinkProfile, Network
from h3sim.values.errors import InputError
from h3sim.values.units import ms
from tests.helpers import page_of

RTT_MS = 100.0
IDEAL = Network(
    name="ideal", rtt_ns=ms(RTT_MS), down=LinkProfile(), up=LinkProfile(), title="no bottleneck"
)
"""Links without a rate: a packet takes half a round trip, and no more."""


def image(name: str, n_bytes: int = 1000, **more: Any) -> dict[str, Any]:
    by_root = {"by": "/", "at": "complete"}
    return {"id": name, "kind": "image", "bytes": n_bytes, "discovered": by_root, **more}


def page_with(*resources: dict[str, Any]) -> h3sim.Page:
    return page_of({"id": "/", "kind": "document", "bytes": 1000}, *resources)


def load_of(page: h3sim.Page, scheme: str = "fifo", **options: Any) -> h3sim.Load:
    return h3sim.simulate(
        page, scheme=scheme, **{"network": IDEAL, "transport": "http1", **options}
    )


def finished(load: h3sim.Load) -> dict[str, float]:
    return {row.id: row.finished_ms for row in load.timings}


def test_requests_wait_for_connections_and_these_for_their_handshakes() -> None:
    page = page_with(*(image(f"{n}.png") for n in range(4)))
    done = finished(load_of(page, max_connections_per_host=2))
    # Two round trips of TCP and TLS 1.3, and one for the document.
    assert done["/"] == 3 * RTT_MS
    # The first image follows on the same connection, the third after it; for the second a
    # connection is opened, but before that is ready the first one is idle again, and again.
    assert [done[f"{n}.png"] for n in range(4)] == [4 * RTT_MS, 5 * RTT_MS, 6 * RTT_MS, 6 * RTT_MS]


def test_a_single_connection_serves_one_after_the_other() -> None:
    page = page_with(*(image(f"{n}.png") for n in range(3)))
    load = load_of(page, max_connections_per_host=1)
    assert list(finished(load).values()) == [n * RTT_MS for n in (3, 4, 5, 6)]
    assert len(load.connections) == 1


@pytest.mark.parametrize(("n_images", "n_connections"), [(0, 1), (1, 1), (2, 2), (4, 4), (9, 6)])
def test_no_more_connections_are_opened_than_requests_wait(
    n_images: int, n_connections: int
) -> None:
    # The document's connection takes one image, each of the others that wait one of its own.
    page = page_with(*(image(f"{n}.png") for n in range(n_images)))
    assert len(load_of(page, max_connections_per_host=6).connections) == n_connections


def test_a_connection_that_a_load_does_not_wait_for_was_never_ready() -> None:
    # The first image follows on the document's connection, from 300 to 400 ms, and then the second,
    # to 500 ms; the connection that was opened for it at 310 ms would be ready at 510 ms.
    later = {"by": "/", "at": "complete", "delay_ms": 10}
    page = page_with(image("0.png"), image("1.png", discovered=later))
    first, second = load_of(page, max_connections_per_host=6).connections
    assert (first.ready_ms, first.n_requests) == (2 * RTT_MS, 3)
    assert (second.opened_ms, second.ready_ms, second.n_requests) == (310, 0, 0)


def test_a_request_is_left_to_a_connection_that_is_being_opened() -> None:
    # The first of three images is complete a round trip after it was requested; its connection
    # takes the second. Two are being opened then: for the third image, and for one found 10 ms on.
    later = {"by": "0.png", "at": "complete", "delay_ms": 10}
    page = page_with(*(image(f"{n}.png") for n in range(3)), image("3.png", discovered=later))
    load = load_of(page, max_connections_per_host=6)
    assert len(load.connections) == 3
    # The document takes 3 round trips; so do these, of which 2 are for the connection.
    assert [finished(load)[f"{n}.png"] for n in (2, 3)] == [6 * RTT_MS, 6 * RTT_MS]


def test_more_hosts_have_more_connections() -> None:
    """Domain sharding: four images of four hosts take as long as one."""
    page = page_with(*(image(f"{n}.png", host=f"h{n}") for n in range(4)))
    sharded = load_of(page, max_connections_per_host=1, connections="per-host")
    # Each host is connected to when its image is requested, at 300 ms.
    assert {finished(sharded)[f"{n}.png"] for n in range(4)} == {6 * RTT_MS}
    assert [connection.hosts for connection in sharded.connections] == [
        ("(page)",),
        *((f"h{n}",) for n in range(4)),
    ]


def test_the_most_urgent_request_takes_the_next_connection() -> None:
    style = {"id": "s.css", "kind": "stylesheet", "bytes": 1000, "in_head": True}
    late = {**style, "discovered": {"by": "/", "at": "complete"}}
    page = page_with(image("a.png"), image("b.png"), late)
    order = {
        scheme: sorted(finished(load), key=finished(load).__getitem__)
        for scheme in ("fifo", "chrome-eps", "firefox-h2", "safari-h2")
        for load in [load_of(page, scheme, max_connections_per_host=1)]
    }
    # The first image leaves at once; the stylesheet overtakes the second, but where all are alike.
    assert order.pop("fifo") == ["/", "a.png", "b.png", "s.css"]
    assert all(names == ["/", "a.png", "s.css", "b.png"] for names in order.values())


def test_a_request_that_waits_is_reprioritized() -> None:
    """Once there is a layout, h3sim-1 raises the visible image over those before it."""
    at = [{"by": "/", "at": "offset", "offset_bytes": 10 * n} for n in range(8)]
    images = [image(f"{n}.png", discovered=at[n], above_the_fold=n == 7) for n in range(8)]
    load = load_of(
        page_with(*images),
        "h3sim-1",
        max_connections_per_host=1,
        browser="parse",
        tight_mode="off",
        paint_ms=0,
        commit_ms=0,
    )
    order = sorted(finished(load), key=finished(load).__getitem__)
    assert order == ["/", "0.png", "7.png", *(f"{n}.png" for n in range(1, 7))]


def test_higher_buckets_and_levels_come_first_in_a_queue() -> None:
    priorities = RequestPriorities(h3sim.load_scheme("bucket"), page_with())
    signals = [BucketPriority(bucket=bucket, level=n) for bucket, n in ((1, 3), (2, 1), (2, 3))]
    assert sorted(signals, key=priorities.key_of) == signals[::-1]


def test_responses_are_not_framed() -> None:
    """A body of 16,384 bytes fills one TLS record; as an HTTP/2 frame it would need two."""
    page = page_of({"id": "/", "kind": "document", "bytes": 16_384})
    sent = {
        transport: sum(
            row.size_bytes
            for row in h3sim.simulate(
                page, network=IDEAL, transport=transport, record_packets=True
            ).trace.wire
            if row.is_down
        )
        for transport in ("http1", "tcp")
    }
    assert sent["http1"] < sent["tcp"]


def test_nothing_is_signalled_and_a_har_states_the_version() -> None:
    load = load_of(h3sim.load_page("davies-meenan"), "chrome-eps", network="cable")
    assert load.trace.signals == ()
    assert sum(connection.n_frames for connection in load.connections) == 0
    har = json.loads(load.to_har_json()) if hasattr(load, "to_har_json") else load.to_har()
    entries = har["log"]["entries"]
    assert {entry["request"]["httpVersion"] for entry in entries} == {"http/1.1"}
    assert len({entry["connection"] for entry in entries}) == len(load.connections) == 6


def test_what_http1_has_not_is_refused() -> None:
    with pytest.raises(InputError) as refused:
        load_of(page_with(), signalling="metadata", max_placeholders=3, header_compression="qpack")
    assert {problem.key for problem in refused.value.problems} == {
        "signalling",
        "max_placeholders",
        "header_compression",
    }
    with pytest.raises(InputError, match="transport: 'http1' needs links"):
        load_of(page_with(), network="marx-2019")
    with pytest.raises(InputError, match="max_connections_per_host"):
        load_of(page_with(), transport="quic", max_connections_per_host=2)
    with pytest.raises(InputError, match="max_connections_per_host"):
        load_of(page_with(), max_connections_per_host=0)


def test_a_server_has_no_say_in_what_it_is_asked_for_one_by_one() -> None:
    said = [{"urgency": 0}, {"urgency": 7, "after_bytes": 500}]
    plain = load_of(page_with(image("0.png"), image("1.png")))
    load = load_of(page_with(image("0.png", server_priorities=said), image("1.png")))
    assert finished(load) == finished(plain)
    assert load.trace.signals == ()
