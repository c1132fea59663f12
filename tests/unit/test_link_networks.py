"""Networks as values, as files, and those that are shipped."""

from __future__ import annotations

import math
import random
import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from h3sim.schema.fields import keys_of
from h3sim.transport.link import Link, make_link
from h3sim.transport.link_profile import CoDel, Distribution, Jitter, LinkJitter, LinkProfile
from h3sim.transport.network import (
    ConstantRate,
    Network,
    network_from_dict,
    network_from_toml,
    read_network,
)
from h3sim.values.errors import NetworkError
from h3sim.values.units import ms, to_ms
from tests.helpers import unworded

NETWORKS = Path(__file__).parents[2] / "models" / "networks"
SHIPPED = {path.stem: read_network(path) for path in sorted(NETWORKS.glob("*.toml"))}
CONSTANT_RATE = ConstantRate(packet_bytes=1400, interval_ns=Fraction(ms(10)))

# Values


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({}, "x: constant_rate: is missing: a network needs [constant_rate], or [down] for links"),
        (
            {"constant_rate": CONSTANT_RATE, "down": LinkProfile()},
            "x: down: cannot be combined with constant_rate: give only one",
        ),
        (
            {"down": LinkProfile(), "jitter": Jitter.parse("4:1")},
            "x: jitter: holds packets of a constant rate; a link takes jitter_ms or hold",
        ),
        (
            {"down": LinkProfile(rate_bps=8000, queue_bdp=1), "up": LinkProfile(), "rtt_ns": ms(9)},
            "x: down.queue_bdp: must be at least a packet (1514 bytes) at this rate and RTT, is 9",
        ),
        (
            {"constant_rate": CONSTANT_RATE, "up": LinkProfile()},
            "x: up: cannot be combined with constant_rate: give only one",
        ),
        ({"up": LinkProfile()}, "x: down: is missing: a network with up needs it"),
    ],
)
def test_a_network_has_either_a_pace_or_links(values: Any, line: Any) -> None:
    with pytest.raises(NetworkError) as caught:
        Network(name="x", **values)
    assert unworded(caught.value.lines()) == unworded([line])


def test_the_link_upward_is_as_the_one_downward_unless_it_is_given() -> None:
    down, up = LinkProfile(rate_bps=5000), LinkProfile(rate_bps=1000)
    assert Network(name="x", down=down).up == down
    assert Network(name="x", down=down, up=up).up == up


def test_a_constant_pace_becomes_links_that_deliver_at_its_ticks() -> None:
    network = replace(SHIPPED["marx-2019-jitter-fixed"], rtt_ns=ms(30), cc="newreno").as_links()
    assert (network.constant_rate, network.jitter, network.cc) == (None, None, "newreno")
    down = make_link(network.down, rtt_ns=network.rtt_ns, streams=random.Random)  # type: ignore[arg-type]
    # Every fourth is held for 25 ms; ticks are 10 ms apart, and one way takes 15 ms.
    assert [down.send(0, 1400) for _ in range(5)] == list(map(ms, (25, 35, 45, 80, 65)))
    up = make_link(network.up, rtt_ns=network.rtt_ns, streams=random.Random, upward=True)  # type: ignore[arg-type]
    assert [up.send(0, 1400) for _ in range(2)] == [ms(15), ms(15)]
    assert network.as_links() is network


# Files


def links(**tables: Any) -> Any:
    return {"format": "h3sim-network/1", "name": "x", "rtt_ms": 100} | tables


def test_every_key_of_a_link_is_read() -> None:
    network = network_from_dict(
        links(
            cc="bbr",
            profile="quicly",
            down={
                "rate_mbps": 1.5,
                "burst_bytes": 0,
                "queue_packets": 50,
                "frame_overhead_bytes": 14,
                "loss": 0.02,
                "loss_burst": 5,
                "jitter_ms": 4,
                "jitter_deviation_ms": 1,
                "jitter_distribution": "pareto",
                "reorder": True,
                "codel": {"target_ms": 20, "interval_ms": 200},
            },
            up={"mahimahi": [1, 1, 3], "queue_bdp": 0.5, "loss_list": [7], "codel": True},
        )
    )
    assert network == Network(
        name="x",
        rtt_ns=ms(100),
        cc="bbr",
        profile="quicly",
        down=LinkProfile(
            rate_bps=1_500_000,
            burst_bytes=0,
            queue_packets=50,
            frame_overhead_bytes=14,
            loss=0.02,
            loss_burst=5,
            jitter=LinkJitter(
                mean_ns=ms(4),
                deviation_ns=ms(1),
                distribution=Distribution.PARETO,
                reorder=True,
            ),
            codel=CoDel(target_ns=ms(20), interval_ns=ms(200)),
        ),
        up=LinkProfile(mahimahi=(1, 1, 3), queue_bdp=0.5, loss_list=(7,), codel=CoDel()),
    )


def test_a_link_of_a_file_has_what_it_does_not_state_by_default() -> None:
    network = network_from_dict(links(down={"jitter_ms": 4, "codel": False}, up={}))
    jitter = LinkJitter(mean_ns=ms(4), deviation_ns=ms(2))
    assert (network.down, network.up) == (LinkProfile(jitter=jitter), LinkProfile())
    assert (network.cc, network.profile, network.constant_rate) == (None, None, None)
    held = network_from_dict(links(down={"rate_mbps": 1, "hold": "4:1-3"}))
    assert held.down.hold == Jitter(every=4, min_overtaken=1, max_overtaken=3)


def test_every_error_of_a_file_is_listed_with_its_key() -> None:
    document = links(
        cc=5,
        rtt_ms="fast",
        down={
            "rate_mbps": 0,
            "queue_bytes": "big",
            "loss": True,
            "loss_list": [1, 2.5],
            "codel": 1,
            "hold": "often",
            "delay_ms": 3,
            "reorder": True,
        },
        up={
            "rate_mbps": "1",
            "burst_bytes": 1.5,
            "loss_list": 3,
            "jitter_ms": 5,
            "jitter_distribution": "gamma",
            "reorder": 1,
            "mahimahi": 3,
            "codel": {"target": 5, "target_ms": -1},
        },
    )
    with pytest.raises(NetworkError) as caught:
        network_from_dict(document, source="f.toml")
    count = len(keys_of(LinkProfile))
    assert unworded(caught.value.lines()) == unworded(
        [
            "f.toml: rtt_ms: is 'fast'",
            f"f.toml: down.delay_ms: unknown key (docs/formats.md has all {count})",
            "f.toml: down.rate_mbps: must be 1e-06 to 1e+07, is 0",
            "f.toml: down.queue_bytes: is 'big'",
            "f.toml: down.codel: must be true, false, or a table with target_ms and interval_ms,"
            " is 1",
            "f.toml: down.loss: is True",
            "f.toml: down.loss_list[1]: is 2.5",
            "f.toml: down.reorder: says something about jitter_ms, which is missing",
            "f.toml: down.hold: must be 'none', or like '4:1-3', '4:2' or '25%:1-3', is 'often'",
            "f.toml: up.rate_mbps: is '1'",
            "f.toml: up.mahimahi: must be a path, or a list of milliseconds, is 3",
            "f.toml: up.burst_bytes: is 1.5",
            "f.toml: up.codel.target: unknown key; allowed are target_ms, interval_ms",
            "f.toml: up.codel.target_ms: must be more than 0, to 60,000, is -1",
            "f.toml: up.loss_list: is 3",
            "f.toml: up.jitter_distribution: 'gamma' is not one of uniform, normal, pareto",
            "f.toml: up.reorder: is 1",
            "f.toml: cc: is 5",
        ]
    )


@pytest.mark.parametrize(
    ("tables", "line"),
    [
        ({}, "x: constant_rate: is missing: a network needs [constant_rate], or [down] for links"),
        ({"down": 5}, "x: down: must be a table, is 5"),
        ({"up": {}}, "x: down: is missing: a network with up needs it"),
        (
            {"down": {"rate_mbps": 1, "queue_bdp": 0.1}},
            "x: down.queue_bdp: must be at least a packet (1514 bytes) at this rate and RTT, "
            "is 1250",
        ),
    ],
)
def test_a_file_without_a_network_in_it_is_one_line(tables: Any, line: Any) -> None:
    with pytest.raises(NetworkError) as caught:
        network_from_dict(links(**tables), source="x")
    assert unworded(caught.value.lines()) == unworded([line])


HEAD = 'format = "h3sim-network/1"\nname = "x"\n'


def test_a_trace_is_looked_for_next_to_the_file_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "lte.trace").write_text("2\n2\n5\n")
    file = tmp_path / "network.toml"
    file.write_text(HEAD + '[down]\nmahimahi = "lte.trace"\n')
    assert read_network(file).down.mahimahi == (2, 2, 5)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"1\n\n3\n", "line 2: must be whole milliseconds, is ''"),
        (b"1\n-3\n", "line 2: must be whole milliseconds, is '-3'"),
        (b"1 \n", "line 1: must be whole milliseconds, is '1 '"),
        (b"9" * 5000, "line 1: must be whole milliseconds, is '99999"),
        (b"1\n\xff", "is not UTF-8"),
        (b"", "has no delivery opportunity"),
        (b"3\n1\n", "must not fall, but 1 comes after 3"),
    ],
)
def test_a_trace_that_cannot_be_used_is_one_line(
    tmp_path: Path, content: Any, message: Any
) -> None:
    if content is not None:
        (tmp_path / "t").write_bytes(content)
    text = HEAD + '[down]\nmahimahi = "t"\n'
    with pytest.raises(NetworkError, match=re.escape(message)) as caught:
        network_from_toml(text, source="x.toml", folder=tmp_path)
    assert [line.partition("mahimahi:")[0] for line in caught.value.lines()] == ["x.toml: down."]


# Those that are shipped


@pytest.mark.parametrize("name", SHIPPED)
def test_a_shipped_network_goes_by_the_name_of_its_file_and_states_where_it_is_from(
    name: str,
) -> None:
    network = SHIPPED[name]
    assert network.name == name
    assert network.title
    assert network.source


def sander(mbps: Any, rtt_ms: float, loss_percent: Any, burst: Any) -> Any:
    pieces = [f"sander-{mbps}mbps-{rtt_ms}ms"]
    pieces += [f"{loss_percent}pct"] if loss_percent else []
    pieces += [f"burst{burst}"] if burst else []
    return SHIPPED["-".join(pieces)]


@pytest.mark.parametrize(
    ("mbps", "rtt_ms", "loss_percent", "burst", "limit_bytes"),
    [
        (1, 100, 0, None, 13_108),
        (2, 100, 0, None, 26_215),
        (5, 100, 0, None, 65_536),
        (10, 100, 0, None, 131_072),
        (50, 100, 0, None, 655_360),
        (2, 100, 1, None, 26_215),
        (2, 100, 2, None, 26_215),
        (2, 100, 5, None, 26_215),
        (2, 10, 2, None, 2622),
        (2, 50, 2, None, 13_108),
        (2, 100, 2, 5, 26_215),
        (2, 100, 2, 10, 26_215),
        (2, 100, 2, 15, 26_215),
    ],
)
def test_each_cell_of_sander_has_its_rate_loss_and_queue_both_ways(
    mbps: Any, rtt_ms: float, loss_percent: Any, burst: Any, limit_bytes: int
) -> None:
    assert limit_bytes == math.ceil(Fraction(mbps, 8) * 1024**2 * Fraction(rtt_ms, 1000))  # type: ignore[call-overload]
    network = sander(mbps, rtt_ms, loss_percent, burst)
    expected = LinkProfile(
        rate_bps=mbps * 10**6,
        burst_bytes=1514,
        queue_bytes=limit_bytes,
        frame_overhead_bytes=14,
        loss=loss_percent / 100,
        loss_burst=burst,
    )
    assert (network.down, network.up, network.rtt_ns) == (expected, expected, ms(rtt_ms))
    assert (network.cc, network.profile) == ("cubic-quicly", "quicly-chrome")


@pytest.mark.parametrize(
    ("name", "down_mbps", "up_mbps", "rtt_ms"),
    [
        ("slow-3g", 0.4, 0.4, 400),
        ("fast-3g", 1.6, 0.768, 150),
        ("4g", 9, 1.5, 60),
        ("lte", 12, 12, 70),
        ("5g", 168.27, 18.71, 50),
        ("dsl", 1.5, 0.384, 50),
        ("cable", 5, 1, 28),
        ("fibre", 20, 5, 4),
        ("wifi-lossy", 40, 33, 20),
        ("leo-satellite", 104.97, 12.02, 40),
        ("geo-satellite", 18.75, 2.96, 629),
    ],
)
def test_an_access_network_has_the_rates_of_its_source_and_a_modem_s_queue(
    name: str, down_mbps: Any, up_mbps: Any, rtt_ms: float
) -> None:
    network = SHIPPED[name]
    assert network.rtt_ns == ms(rtt_ms)
    for link, mbps in ((network.down, down_mbps), (network.up, up_mbps)):
        assert link.rate_bps == pytest.approx(mbps * 1e6)  # a decimal of the file
        bdp_bytes = math.ceil(Fraction(link.rate_bps * rtt_ms, 8000))  # type: ignore[arg-type]
        assert link.queue_limit_bytes(network.rtt_ns) == max(65_536, bdp_bytes)


@pytest.mark.parametrize("wrong", ["rate_mbps = -5", 'mahimahi = "nosuch.trace"'])
def test_an_invalid_rate_is_not_reported_as_missing(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(HEAD + f"[down]\n{wrong}\nqueue_bytes = 50000\n")
    with pytest.raises(NetworkError) as caught:
        read_network(file)
    assert [problem.key for problem in caught.value.problems] == [f"down.{wrong.split()[0]}"]


@pytest.mark.parametrize(
    ("name", "spans", "n_packets"),
    [
        ("black-hole", [(0, 2000, 10), (2000, 4000, 0), (4000, 12_000, 10)], 8333),
        ("wifi-suspension", [(0, 900, 10), (900, 1100, 0), (1100, 2000, 10)], 1500),
        ("rate-drop", [(0, 1500, 10), (1500, 3500, 5), (3500, 12_000, 10)], 9166),
        ("rate-rise", [(0, 2500, 5), (2500, 12_000, 10)], 8958),
        ("wifi-fade", [(0, 1000, 10), (1000, 3000, 9), (3000, 12_000, 10)], 9833),
    ],
)
def test_a_path_that_changes_has_the_rates_and_times_of_its_source(
    name: str, spans: Any, n_packets: int
) -> None:
    for link in (SHIPPED[name].down, SHIPPED[name].up):
        trace: Any = link.mahimahi
        assert len(trace) == n_packets
        assert trace[-1] == 12_000 or name == "wifi-suspension"
        for begin_ms, end_ms, rate_mbps in spans:
            n_bytes = 1500 * sum(begin_ms < at_ms <= end_ms for at_ms in trace)
            assert n_bytes == pytest.approx(rate_mbps * 125 * (end_ms - begin_ms), abs=1500)


def test_an_extra_delay_changes_by_its_steps() -> None:
    """1 ms for a second, 12 ms for two, and again; 10 ms of path, and 0.4 ms for 500 bytes."""
    jitter = LinkJitter(mean_ns=ms(1), deviation_ns=1, steps=((1000, 1), (2000, 12)))
    link = Link(
        LinkProfile(rate_bps=10_000_000, burst_bytes=0, jitter=jitter),
        rtt_ns=ms(20),
        streams=lambda _: random.Random(0),
    )
    sent_ms = [0, 999, 1000, 2999, 3100, 4000]
    arrived = [link.send(ms(at_ms), 500) for at_ms in sent_ms]
    delays = [to_ms((at or 0) - ms(sent)) for at, sent in zip(arrived, sent_ms, strict=True)]
    assert delays == pytest.approx([11.4, 11.4, 22.4, 22.4, 11.4, 22.4], abs=0.001)


@pytest.mark.parametrize("wrong", ["[[10]]", "[[0, 1]]", "[[10, -1]]", "[10, 1]"])
def test_steps_of_an_extra_delay_are_refused_with_their_key(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(HEAD + f"[down]\nrate_mbps = 1\njitter_ms = 1\njitter_steps = {wrong}\n")
    with pytest.raises(NetworkError, match="jitter_steps"):
        read_network(file)


@pytest.mark.parametrize(
    "wrong",
    ["[[10]]", "[[0, 1]]", "[[1.5, 1]]", "[[10, -1]]", "[[10, 1], [5, 0]]", "[[700000, 1]]"],
)
def test_spans_of_a_rate_are_refused_with_their_key(tmp_path: Path, wrong: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(HEAD + f"[down]\nmahimahi = {wrong}\n")
    with pytest.raises(NetworkError, match="mahimahi"):
        read_network(file)
