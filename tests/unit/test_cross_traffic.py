"""Flows of others beside a load, worked out by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.engine import cross_traffic
from h3sim.http import StreamSender
from h3sim.transport import LinkProfile, Network
from h3sim.transport.network import CrossFlow, parse_cross_traffic
from h3sim.transport.quic.settings import QuicSettings
from h3sim.values.errors import InputError
from h3sim.values.units import mbps, ms
from h3sim.values.versions import build
from tests.helpers import page_of

PAGE = page_of({"id": "/", "kind": "document", "bytes": 600})
LINKS = Network(
    name="x",
    rtt_ns=ms(20),
    down=LinkProfile(rate_bps=mbps(1), burst_bytes=0, queue_bytes=100_000),
    up=LinkProfile(),
)


def loaded(flows: str | None = None, **options: Any) -> h3sim.Load:
    return h3sim.simulate(PAGE, network=LINKS, handshake=False, cross_traffic=flows, **options)


def test_what_another_flow_sends_is_waited_for() -> None:
    quic = QuicSettings()
    # A STREAM frame has its type, the stream and a length of two bytes (RFC 9000 § 19.8).
    wire_bytes = quic.ip_bytes + quic.header_bytes + 4 + 1000
    # A segment of 0.8 Mbit/s for 10 ms leaves at 9 ms, for `wire_bytes` at 1 Mbit/s; the request
    # comes at 10.
    load = loaded("on-off:0.8:10@9")
    late_ms = 9 + wire_bytes * 8 / 1000 - 10
    assert load.page_load_ms == pytest.approx(loaded().page_load_ms + late_ms, abs=1e-6)
    (carried,) = load.cross_traffic
    assert (carried.n_bytes, carried.flow.segment_bytes) == (1000, 1000)


@pytest.mark.skipif(build() == "compiled", reason="no part of it can be replaced")
def test_a_flow_keeps_no_segment_that_was_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []

    class Watched(StreamSender):
        def close(self, stream_id: int) -> None:
            closed.append(stream_id)
            super().close(stream_id)

    monkeypatch.setattr(cross_traffic, "StreamSender", Watched)
    # Segments of 1,000 bytes at 0, 100, 200, ... ms; the page's bytes stand in the queue, too.
    page = PAGE.with_("/", bytes=60_000)
    load = h3sim.simulate(
        page, network=LINKS, handshake=False, cross_traffic="on-off:0.08:100", scheme="fifo"
    )
    (carried,) = load.cross_traffic
    assert carried.n_bytes == 3000
    assert closed == [0, 4, 8]


def test_a_flow_that_comes_too_late_changes_nothing() -> None:
    load = loaded("cubic@500 + on-off:1@600")
    assert load.trace.digest() == loaded().trace.digest()
    assert [(each.n_bytes, each.rate_mbps) for each in load.cross_traffic] == [(0, None)] * 2


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_it_shares_with_every_connection(transport: str) -> None:
    options: Any = {"network": "fibre", "rate_mbps": 10, "transport": transport}
    page = h3sim.load_page("creative").with_("css/styles.css", host="cdn")
    quiet, busy = (
        h3sim.simulate(page, connections="per-host", cross_traffic=flows, **options)
        for flows in (None, "bbr")
    )
    assert len(busy.connections) == 2
    assert busy.page_load_ms > 1.05 * quiet.page_load_ms
    assert busy.cross_traffic[0].n_bytes > 0


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_a_flow_and_the_page_together_fill_the_link(transport: str) -> None:
    page = h3sim.load_page("http2rulez")
    load = h3sim.simulate(
        page, network="fibre", rate_mbps=3, transport=transport, cross_traffic="cubic"
    )
    capacity_bytes = load.page_load_ms * 3_000 / 8
    carried_bytes = load.cross_traffic[0].n_bytes + page.total_bytes
    assert 0.8 * capacity_bytes < carried_bytes < capacity_bytes


def test_flows_are_stated_in_text() -> None:
    flows = parse_cross_traffic(" cubic+newreno@1.5 + on-off:3:4000@100")
    video = CrossFlow(cc="cubic", starts_at_ns=ms(100), mean_bps=mbps(3), period_ns=ms(4000))
    assert flows == (CrossFlow(cc="cubic"), CrossFlow(cc="newreno", starts_at_ns=ms(1.5)), video)
    assert video.segment_bytes == 1_500_000
    assert parse_cross_traffic(" + ".join(flow.text for flow in flows)) == flows


def test_a_load_describes_its_flows_and_runs_again(capsys: Any) -> None:
    load = loaded("cubic + on-off:0.5")
    document = json.loads(json.dumps(load.to_dict()))
    assert document["configuration"]["cross_traffic"] == "cubic + on-off:0.5:2000"
    assert [each["flow"] for each in document["cross_traffic"]] == ["cubic", "on-off:0.5:2000"]
    assert h3sim.export.load_from_dict(document).run().to_dict() == load.to_dict()
    assert main(("run", "davies-meenan", "--network", "fibre", "--cross-traffic", "cubic")) == 0
    assert "beside cubic" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("text", "issues"),
    [
        ("", ["must be such as cubic"]),
        ("cubic@-1", ["must be such as cubic"]),
        ("cubic:3", ["only on-off has a rate"]),
        ("reno", ["there is no controller 'reno'"]),
        ("on-off", ["on-off needs its mean in Mbit/s"]),
        ("on-off:0 + on-off:1:0", ["0 must be more than 0", "0 must be more than 0"]),
        ("on-off:1.2.3@900000", ["1.2.3 must be more than 0", "900000 must be 0 to 600,000"]),
    ],
)
def test_every_error_is_reported(text: str, issues: list[str]) -> None:
    with pytest.raises(InputError) as caught:
        h3sim.LoadConfig(network="fibre", cross_traffic=text)
    assert [problem.key for problem in caught.value.problems] == ["cross_traffic"] * len(issues)
    for problem, start in zip(caught.value.problems, issues, strict=True):
        assert problem.message.startswith(start)


def test_a_constant_rate_is_shared_with_nobody() -> None:
    with pytest.raises(InputError, match="cross_traffic: needs links"):
        h3sim.simulate(PAGE, network="marx-2019", cross_traffic="cubic")


def test_a_link_without_a_rate_is_shared_with_nobody() -> None:
    without = Network(name="x", rtt_ns=ms(20), down=LinkProfile(), up=LinkProfile(rate_bps=mbps(1)))
    for flows in ("cubic", "on-off:3 + bbr@500"):
        with pytest.raises(InputError) as caught:
            h3sim.simulate(PAGE, network=without, cross_traffic=flows)
        assert [problem.key for problem in caught.value.problems] == ["cross_traffic"]
        assert "needs a downlink with a rate" in caught.value.problems[0].message
    # Opportunities of a trace are a rate as well, and so is one that the load is given.
    trace = Network(name="x", down=LinkProfile(mahimahi=(1, 2)), up=LinkProfile())
    load = h3sim.simulate(PAGE, network=trace, cross_traffic="cubic")
    assert load.configuration["cross_traffic"] == "cubic"


def test_a_load_over_such_a_link_is_refused_before_it_begins() -> None:
    with pytest.raises(InputError, match="cross_traffic: needs a downlink with a rate"):
        h3sim.simulate(PAGE, network=replace(LINKS, down=LinkProfile()), cross_traffic="bbr")
