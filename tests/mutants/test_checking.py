"""Each rule of the checker of loads finds out a trace that is broken in one way."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.load import resolve, run_spec
from h3sim.trace import PacketRows
from h3sim.transport import LinkProfile, Network
from h3sim.values.units import mbps, ms
from tests.checking.path import lanes
from tests.checking.rules import RULES, Checked, delays, violations
from tests.helpers import page_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.trace import Trace

PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 9000},
    {"id": "a", "kind": "image", "bytes": 9000, "discovered": {"by": "/", "at": "request"}},
    {"id": "b", "kind": "script", "bytes": 50, "discovered": {"by": "/", "at": "complete"}},
)
LINK = LinkProfile(rate_bps=mbps(1), burst_bytes=0, queue_bytes=8000)
NETWORK = Network(name="n", rtt_ns=ms(20), down=LINK, up=LINK)


def complete(transport: str = "quic", page: h3sim.Page = PAGE) -> Checked:
    """Return a load that keeps every rule."""
    config = h3sim.LoadConfig(network=NETWORK, transport=transport)
    load = run_spec(resolve(page, h3sim.load_scheme("rr"), config), record_packets=True)
    ip_bytes = 28 if transport == "quic" else 20
    return Checked(page, load.trace, lanes(NETWORK, (), ip_bytes), 1500)


def rows_changed(trace: Trace, change: Callable[[list[Any]], Any]) -> Trace:
    """Return the trace after *change* was made to its rows."""
    rows = [row._asdict() for row in trace.packets]
    change(rows)
    return replace(trace, packet_rows=PacketRows.of([tuple(row.values()) for row in rows]))


def wire_changed(trace: Trace, **changed: Any) -> Trace:
    """Return the trace with another last packet down the wire, whichever bytes it has."""
    wire = list(trace.wire)
    last = max(n for n, row in enumerate(wire) if row.is_down)
    wire[last] = wire[last]._replace(**changed)
    return replace(trace, wire=tuple(wire))


def recovery_changed(trace: Trace, change: Callable[[Any], int]) -> Trace:
    """Return the trace with other bytes in flight in the row with the most."""
    rows = list(trace.recovery)
    most = max(range(len(rows)), key=lambda n: rows[n].bytes_in_flight)
    rows[most] = rows[most]._replace(bytes_in_flight=change(rows[most]))
    return replace(trace, recovery=tuple(rows))


def drop_a_row(rows: list[Any]) -> None:
    del rows[3]


def repeat_a_row(rows: list[Any]) -> None:
    rows.insert(4, rows[3])


def deliver_twice(rows: list[Any]) -> None:
    rows.append({**rows[3], "arrived_at_ns": rows[-1]["arrived_at_ns"]})


def deliver_before_arrival(rows: list[Any]) -> None:
    rows[3]["delivered_at_ns"] = rows[3]["arrived_at_ns"] - 1


def lose_what_was_delivered(rows: list[Any]) -> None:
    rows[3]["arrived_at_ns"] = None


def deliver_late(rows: list[Any]) -> None:
    rows[3]["delivered_at_ns"] += 1


def deliver_past_a_gap(rows: list[Any]) -> None:
    rows[2]["arrived_at_ns"] = rows[2]["delivered_at_ns"] = rows[-1]["arrived_at_ns"]


def swap_offsets(rows: list[Any]) -> None:
    first, then = [row for row in rows if row["stream_id"] == 0][2:4]
    first["offset"], then["offset"] = then["offset"], first["offset"]


def give_to_another_stream(rows: list[Any]) -> None:
    rows[3]["stream_id"] = 400


def cut_a_row(rows: list[Any]) -> None:
    rows[3]["length_bytes"] -= 1


def send_later(rows: list[Any]) -> None:
    rows[3]["sent_at_ns"] += 1


def number_anew(rows: list[Any]) -> None:
    rows[3]["number"] += 1000


BROKEN_ROWS: list[tuple[str, Callable[[list[Any]], None]]] = [
    ("every_byte_once_in_order", drop_a_row),
    ("every_byte_once_in_order", repeat_a_row),
    ("every_byte_once_in_order", deliver_twice),
    ("every_byte_once_in_order", give_to_another_stream),
    ("every_byte_once_in_order", cut_a_row),
    ("every_byte_once_in_order", swap_offsets),
    ("nothing_before_it_arrived", lose_what_was_delivered),
    ("nothing_before_it_arrived", deliver_before_arrival),
    ("nothing_before_it_arrived", deliver_late),
    ("nothing_before_it_arrived", deliver_past_a_gap),
    ("wire_and_rows_agree", send_later),
    ("wire_and_rows_agree", number_anew),
]


def request_changed(trace: Trace, **changed: Any) -> Trace:
    return replace(trace, requests=(*trace.requests[:-1], trace.requests[-1]._replace(**changed)))


def wire_reversed(trace: Trace) -> Trace:
    return replace(trace, wire=trace.wire[::-1])


BROKEN: list[tuple[str, Callable[[Trace], Trace]]] = [
    ("every_byte_once_in_order", lambda t: request_changed(t, length_bytes=51)),
    ("every_byte_once_in_order", lambda t: replace(t, requests=t.requests[:-1])),
    ("wire_and_rows_agree", wire_reversed),
    ("no_link_outrun", lambda t: wire_changed(t, size_bytes=60_000)),
    ("no_link_outrun", lambda t: wire_changed(t, arrived_at_ns=t.wire[-1].sent_at_ns)),
    ("no_queue_overfull", lambda t: wire_changed(t, arrived_at_ns=ms(10_000))),
    ("windows_kept", lambda t: recovery_changed(t, lambda row: row.congestion_window + 10_000)),
    ("windows_kept", lambda t: recovery_changed(t, lambda row: 0)),
    ("requests_at_their_triggers", lambda t: request_changed(t, requested_at_ns=1)),
]


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_a_complete_load_keeps_every_rule(transport: str) -> None:
    assert violations(complete(transport)) == []


@pytest.mark.parametrize(("rule", "change"), BROKEN_ROWS)
def test_a_rule_finds_broken_rows(rule: str, change: Callable[[list[Any]], None]) -> None:
    load = complete()
    assert list(RULES[rule](load._replace(trace=rows_changed(load.trace, change))))


@pytest.mark.parametrize(("rule", "change"), BROKEN)
def test_a_rule_finds_a_broken_trace(rule: str, change: Callable[[Trace], Trace]) -> None:
    load = complete()
    assert list(RULES[rule](load._replace(trace=change(load.trace))))


def test_a_row_may_begin_with_bytes_of_an_earlier_one() -> None:
    """A retransmission of lost bytes has others next to them that arrived."""
    made = complete()

    def resend(rows: list[Any]) -> None:
        last = rows.pop()
        for n, (start, stop) in enumerate(((0, 30), (30, 40), (0, 50))):
            at_ns = last["arrived_at_ns"] + n
            times = {"arrived_at_ns": at_ns, "delivered_at_ns": at_ns}
            rows.append({**last, "offset": start, "length_bytes": stop - start, **times})

    trace = rows_changed(made.trace, resend)
    assert not [*RULES["every_byte_once_in_order"](made._replace(trace=trace))]


def test_over_tcp_no_stream_is_delivered_past_a_gap_in_another() -> None:
    load = complete("tcp")

    def hold_up_the_first(rows: list[Any]) -> None:
        late = next(row for row in rows if row["stream_id"] == 0)
        late["arrived_at_ns"] = late["delivered_at_ns"] = rows[-1]["arrived_at_ns"]

    broken = load._replace(trace=rows_changed(load.trace, hold_up_the_first))
    early = RULES["nothing_before_it_arrived"](broken)
    assert any("stream_id=4" in text for text in early)


def test_over_tcp_a_rule_finds_a_row_that_waits_for_nothing() -> None:
    load = complete("tcp")
    assert violations(load) == []

    def hold_up_the_last(rows: list[Any]) -> None:
        rows[-1]["delivered_at_ns"] += 1

    broken = load._replace(trace=rows_changed(load.trace, hold_up_the_last))
    assert delays(broken.trace) == {"later, otherwise"} | delays(load.trace)
    assert list(RULES["tcp_no_later_than_explained"](broken))


def test_over_tcp_a_row_may_wait_for_its_record_and_not_for_one_behind() -> None:
    load = complete("tcp", page_of({"id": "/", "kind": "document", "bytes": 60_000}))
    assert delays(load.trace) == {"for the rest of a record"}

    def wait_for_the_end(rows: list[Any]) -> None:
        rows[0]["delivered_at_ns"] = rows[-1]["arrived_at_ns"]

    broken = load._replace(trace=rows_changed(load.trace, wait_for_the_end))
    assert list(RULES["tcp_no_later_than_explained"](broken))


def test_over_tcp_a_row_may_wait_for_the_handshake() -> None:
    """The server's flight is lost, and the answer to a request of 0-RTT comes before its copy."""
    down = replace(LINK, queue_bytes=None, loss_list=(2,))
    network = replace(NETWORK, down=down)
    config = h3sim.LoadConfig(network=network, transport="tcp", handshake="0-rtt")
    load = run_spec(resolve(PAGE, h3sim.load_scheme("rr"), config), record_packets=True)
    found = Checked(PAGE, load.trace, lanes(network, (), 20), 1500)
    assert "for the server's handshake flight" in delays(load.trace)
    assert violations(found) == []


def test_a_rule_finds_a_request_that_waits_for_the_wrong_event() -> None:
    load = complete()
    first, *others = load.page.resources
    assert others[1].discovered is not None
    delayed = replace(others[1].discovered, delay_ns=1)
    page = replace(load.page, resources=(first, others[0], replace(others[1], discovered=delayed)))
    assert list(RULES["requests_at_their_triggers"](load._replace(page=page)))


def test_every_rule_is_broken_by_something() -> None:
    of_tcp = {"tcp_no_later_than_explained"}
    assert {rule for rule, _ in (*BROKEN_ROWS, *BROKEN)} | of_tcp == set(RULES)
