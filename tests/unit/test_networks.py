"""Network files, and networks as values."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.load import in_words
from h3sim.load.configuration import configuration
from h3sim.transport import ConstantRate, Jitter, Network, network_from_dict, network_from_toml
from h3sim.transport.network import network_to_dict
from h3sim.values.errors import InputError, NetworkError, UnknownNameError
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """\
format = "h3sim-network/1"
name = "lab"
title = "A link"
source = "made up"
rtt_ms = 12.5

[constant_rate]
packet_bytes = 1200
rate_mbps = 3

[jitter]
every = 4
min_overtaken = 1
max_overtaken = 3
"""


def positions(text: str) -> list[str]:
    """Return the places of the mistakes in a network file."""
    with pytest.raises(NetworkError) as caught:
        network_from_toml(text, source="lab.toml")
    assert all(line.startswith("lab.toml: ") for line in caught.value.lines())
    return [problem.key for problem in caught.value.problems]


def test_every_field_is_read() -> None:
    # 1200 bytes at 3 Mbit/s: 9600 / 3 = 3200 microseconds.
    assert network_from_toml(GOOD, source="lab.toml") == Network(
        name="lab",
        title="A link",
        source="made up",
        rtt_ns=12_500_000,
        constant_rate=ConstantRate(packet_bytes=1200, interval_ns=Fraction(3_200_000)),
        jitter=Jitter(every=4, min_overtaken=1, max_overtaken=3),
    )


def test_a_share_of_packets_to_hold_is_read_and_written_back() -> None:
    network = network_from_toml(GOOD.replace("every = 4", "share = 0.25"), source="x")
    assert network.jitter == Jitter(share=0.25, min_overtaken=1, max_overtaken=3)
    assert network_from_dict(network_to_dict(network)) == network
    link = {"rate_mbps": 2, "hold": "25%:1-3"}
    document = {"format": "h3sim-network/1", "name": "x", "down": link}
    links = network_from_dict(document)
    assert links.down is not None
    assert links.down.hold == network.jitter
    assert network_from_dict(network_to_dict(links)) == links


def test_the_held_packets_are_every_nth_or_a_share_and_not_both_or_neither() -> None:
    assert positions(GOOD.replace("every = 4", "every = 4\nshare = 0.5")) == ["jitter.share"]
    assert positions(GOOD.replace("every = 4\n", "")) == ["jitter.every"]
    assert positions(GOOD.replace("every = 4", "share = 0")) == ["jitter.share"]
    assert positions(GOOD.replace("every = 4", "share = 1.5")) == ["jitter.share"]


def test_a_rate_that_is_written_reads_back_exactly() -> None:
    network = network_from_toml(GOOD.replace("rate_mbps = 3", "rate_mbps = 7"), source="x")
    assert network.constant_rate.interval_ns == Fraction(1200 * 8 * 1000, 7)
    assert network_from_dict(network_to_dict(network)) == network


def test_a_pace_may_be_an_interval() -> None:
    network = network_from_toml(GOOD.replace("rate_mbps = 3", "interval_ms = 2.5"), source="x")
    assert network.constant_rate.interval_ns == 2_500_000
    assert network.constant_rate.rate_bps == 3_840_000


@pytest.mark.parametrize(
    ("message", "interval_ns"),
    [
        # 1200 bytes are 9600 bits: 19.2 ms at half of a Mbit/s.
        ("rate_mbps = 0.5", 19_200_000),
        ("interval_ms = 0.5", 500_000),
        ("interval_ms = 60000", 60_000_000_000),
        ("interval_ns = [7, 3]", Fraction(7, 3)),
        ("interval_ns = [7, 2]", Fraction(7, 2)),
        ("interval_ns = [7, 1]", 7),
    ],
)
def test_a_pace_may_be_stated_in_parts_of_a_unit(message: str, interval_ns: int | Fraction) -> None:
    network = network_from_toml(GOOD.replace("rate_mbps = 3", message), source="x")
    assert network.constant_rate.interval_ns == interval_ns
    assert type(network.constant_rate.interval_ns) is Fraction


def test_marx_2019_is_1400_bytes_every_10_ms_and_no_round_trip() -> None:
    network = h3sim.load_network("marx-2019")
    assert network.constant_rate == ConstantRate(
        packet_bytes=1400, interval_ns=Fraction(10_000_000)
    )
    assert (network.rtt_ns, network.jitter) == (0, None)
    # 1.12 Mbit/s
    assert network.constant_rate.rate_bps == 1_120_000


@pytest.mark.parametrize(
    ("name", "overtaken"), [("marx-2019-jitter", (1, 3)), ("marx-2019-jitter-fixed", (2, 2))]
)
def test_the_jitter_networks_hold_every_fourth_packet(
    name: str, overtaken: tuple[int, int]
) -> None:
    network = h3sim.load_network(name)
    low, high = overtaken
    assert network.jitter == Jitter(every=4, min_overtaken=low, max_overtaken=high)
    assert network.constant_rate == h3sim.load_network("marx-2019").constant_rate


@pytest.mark.parametrize(
    ("old", "new", "position"),
    [
        ("h3sim-network/1", "h3sim-network/9", "format"),
        ('name = "lab"\n', "", "name"),
        ('title = "A link"', "title = 3", "title"),
        ("rtt_ms = 12.5", "rtt_ms = -1", "rtt_ms"),
        ("rtt_ms = 12.5", "rtt_ms = nan", "rtt_ms"),
        ("rtt_ms = 12.5", "rtt_ms = 1e308", "rtt_ms"),
        ("rtt_ms = 12.5", "rtt_ms = true", "rtt_ms"),
        ("rtt_ms = 12.5", "rtt_ms = 600001", "rtt_ms"),
        ("rtt_ms = 12.5", "delay_ms = 1", "delay_ms"),
        ("packet_bytes = 1200", "packet_bytes = 0", "constant_rate.packet_bytes"),
        ("packet_bytes = 1200", "packet_bytes = 1.5", "constant_rate.packet_bytes"),
        ("packet_bytes = 1200\n", "", "constant_rate.packet_bytes"),
        ("rate_mbps = 3", "rate_mbps = 0", "constant_rate.rate_mbps"),
        ("rate_mbps = 3", "rate_mbps = 1e-9", "constant_rate.rate_mbps"),
        ("rate_mbps = 3", "rate_mbps = 'fast'", "constant_rate.rate_mbps"),
        ("rate_mbps = 3\n", "", "constant_rate"),
        ("rate_mbps = 3", "rate_mbps = 3\ninterval_ms = 1", "constant_rate"),
        ("rate_mbps = 3", "interval_ms = 1e305", "constant_rate.interval_ms"),
        ("rate_mbps = 3", "rate_mbps = 3\nburst = 1", "constant_rate.burst"),
        ("every = 4", "every = 0", "jitter.every"),
        ("min_overtaken = 1", "min_overtaken = 4", "jitter.max_overtaken"),
        ("min_overtaken = 1", "min_overtaken = -1", "jitter.min_overtaken"),
        ("max_overtaken = 3", "max_overtaken = 3\nseed = 1", "jitter.seed"),
    ],
)
def test_a_single_error_is_reported_with_its_place(old: str, new: str, position: str) -> None:
    assert old in GOOD
    assert positions(GOOD.replace(old, new)) == [position]


def test_every_error_is_reported_at_once() -> None:
    text = (
        GOOD.replace("rtt_ms = 12.5", "rtt_ms = -1")
        .replace("packet_bytes = 1200", "packet_bytes = 0")
        .replace("every = 4", "every = 'four'")
        .replace("source", "sauce")
    )
    assert sorted(positions(text)) == [
        "constant_rate.packet_bytes",
        "jitter.every",
        "rtt_ms",
        "sauce",
    ]


@pytest.mark.parametrize(
    ("content", "message"), [(b"rtt_ms = ", "not TOML"), (b'name = "\xff"', "not UTF-8")]
)
def test_a_file_that_is_no_network_is_reported_in_one_line(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "lab.toml"
    path.write_bytes(content)
    with pytest.raises(NetworkError) as caught:
        h3sim.transport.read_network(path)
    (line,) = caught.value.lines()
    assert line.startswith(f"{path}: ")
    assert message in line


def test_a_file_that_is_not_there_is_reported_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(NetworkError, match=r"none\.toml: .*No such file"):
        h3sim.transport.read_network(tmp_path / "none.toml")


def network_of(**options: Any) -> h3sim.Network:
    page, scheme = h3sim.load_page("creative"), h3sim.load_scheme("rr")
    return h3sim.load.resolve(page, scheme, h3sim.LoadConfig(**options)).network


class TestSettings:
    def test_what_is_not_stated_stays_as_the_network_has_it(self) -> None:
        network = network_of(network="marx-2019-jitter")
        assert network == h3sim.load_network("marx-2019-jitter")

    def test_overrides_replace_single_values(self) -> None:
        network = network_of(
            network="marx-2019-jitter", rtt_ms=7, reorder="none", packet_bytes=700, interval_ms=3
        )
        assert (network.rtt_ns, network.jitter) == (7_000_000, None)
        assert network.constant_rate == ConstantRate(
            packet_bytes=700, interval_ns=Fraction(3_000_000)
        )

    def test_a_rate_counts_with_the_packet_size_that_is_given(self) -> None:
        # 700 bytes at 1.12 Mbit/s: 5 ms.
        network = network_of(packet_bytes=700, rate_mbps=1.12)
        assert network.constant_rate.interval_ns == 5_000_000

    def test_every_error_is_reported_at_once(self) -> None:
        with pytest.raises(InputError) as caught:
            h3sim.LoadConfig(
                transport="sctp",
                rate_mbps=0,
                interval_ms=-1,
                packet_bytes=0,
                rtt_ms=float("nan"),
                reorder="often",
                send_buffer_kb=-1,
            )
        assert {problem.key for problem in caught.value.problems} == {
            *("transport", "rate_mbps", "interval_ms", "packet_bytes"),
            *("rtt_ms", "reorder", "send_buffer_kb"),
        }

    def test_rate_and_interval_agree_and_only_one_is_taken(self) -> None:
        with pytest.raises(InputError, match="only one"):
            h3sim.LoadConfig(rate_mbps=1, interval_ms=1)

    def test_an_unknown_network_is_an_error(self) -> None:
        with pytest.raises(UnknownNameError, match="marx-2019"):
            network_of(network="marx-2020")


def test_ticks_fall_on_integer_multiples_and_are_cut_to_nanoseconds() -> None:
    constant_rate = ConstantRate.at_rate(packet_bytes=1400, rate_bps=3_000_000)
    assert [constant_rate.tick_at_ns(n) for n in (0, 1, 3)] == [0, 3_733_333, 11_200_000]
    # The first tick from an instant on: at it, or the next.
    assert [constant_rate.first_tick_from(at_ns) for at_ns in (0, 1, 11_200_000, 11_200_001)] == [
        *(0, 1, 3, 4)
    ]


@pytest.mark.parametrize(
    ("network", "reorder", "words"),
    [
        ({"jitter_ms": 2}, None, {"jitter": "jitter uniform 2 ms, deviation 1 ms, in order"}),
        (
            {"jitter_ms": 2, "reorder": True},
            "uniform 2 ms, deviation 1 ms",
            {"reordering": "reordering uniform 2 ms, deviation 1 ms"},
        ),
        ({"hold": "25%:1-3"}, "25%:1-3", {"reordering": "reordering 25%:1-3"}),
        ({}, None, {}),
    ],
)
def test_reordering_is_reported_only_where_packets_may_overtake(
    network: Any, reorder: str | None, words: dict[str, str]
) -> None:
    link = {"rate_mbps": 2, **network}
    links = network_from_dict({"format": "h3sim-network/1", "name": "x", "down": link})
    load = h3sim.simulate(page_of({"id": "/", "kind": "document", "bytes": 9}), network=links)
    assert configuration(load.spec)["reorder"] == reorder
    found = in_words(load.spec)
    assert {key: found[key] for key in ("jitter", "reordering") if key in found} == words
