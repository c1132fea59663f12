"""Models of header compression: Frindell's lossy path, and header lists over a connection.

A packet carries up to 1400 bytes and takes half a round trip, plus 1.1 to 2 round trips each time
it is lost. Requests made within a millisecond leave together. When a section is decoded, an
acknowledgement returns under the same model (Frindell 2017; proxygen,
compress/experimental/simulator).
"""

from __future__ import annotations

import heapq
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__
from h3sim.headers import CodecSettings, DecodingEnd, EncodingEnd, field_bytes, make_codec
from h3sim.headers.base import HeaderLists, HeaderRun, SectionTimes, TimedSection
from h3sim.load.run import run_spec
from h3sim.values import rng
from h3sim.values.constants import STREAM_ID_STEP
from h3sim.values.units import ms, to_ms

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Sequence

    from h3sim.engine import LoadSpec
    from h3sim.headers import Decoded, FieldSection, StreamPart
    from h3sim.transport import Network


_MAX_PAUSE_NS = ms(1000)
"""Longest pause between requests that is simulated; longer ones are user think time."""
_TRAIN_GAP_NS = ms(1)
"""Longest gap between two requests that leave together."""
_MIN_LOSS_RTTS, _MAX_LOSS_RTTS = 1.1, 2.0
"""Limits of the delay by a loss, in round trips."""


def simulate_headers(
    sections: Sequence[TimedSection],
    scheme: str,
    network: Network,
    *,
    settings: CodecSettings | None = None,
    seed: int = 0,
) -> HeaderRun:
    """Simulate sending *sections* over *network*, compressed by *scheme*.

    The network must have independent packets. Common random numbers: the n-th packet of a run has
    the same fate in all schemes.

    >>> from h3sim.catalog import load_network
    >>> from h3sim.headers.base import TimedSection
    >>> lists, path = [TimedSection(0, ((b"a", b"b"),))], load_network("frindell-2017")
    >>> simulate_headers(lists, "static", path).sections[0].decoded_at_ns
    50000000
    """
    return _Run(sections, scheme, network, settings, seed).run()


class _Run:
    """Run of the model: the path and both endpoints."""

    def __init__(
        self,
        sections: Sequence[TimedSection],
        scheme: str,
        network: Network,
        settings: CodecSettings | None,
        seed: int,
    ) -> None:
        codec = make_codec(scheme, settings)
        assert network.independent_packets is not None, "independent packets only"  # noqa: S101
        self._path = network.independent_packets
        self._rtt_ns = network.rtt_ns
        self._sender = EncodingEnd(codec.encoder)
        self._receiver = DecodingEnd(codec.decoder)
        self._packet_fates = rng.substream(seed, "headers.packets")
        # Separate random numbers: schemes cause different numbers of acknowledgements, which must
        # not change the fates of packets.
        self._ack_fates = rng.substream(seed, "headers.acks")
        self._events: list[tuple[int, int, Callable[[int, Any], None], Any]] = []
        """A heap of events: time, number (for ties), function and its argument."""
        self._n_events = 0
        self._missing_bytes: dict[int, int] = {}
        """Bytes of each section that have not arrived, by stream."""
        self._result = HeaderRun()
        for train in _trains(sections):
            self._schedule(train[0].at_ns, self._send, train)

    def run(self) -> HeaderRun:
        """Process all scheduled events."""
        while self._events:
            now_ns, _, call, value = heapq.heappop(self._events)
            call(now_ns, value)
        self._result.n_evicted = self._sender.encoder.n_evicted
        return self._result

    def _schedule(self, at_ns: int, call: Callable[[int, Any], None], value: object) -> None:
        heapq.heappush(self._events, (at_ns, self._n_events, call, value))
        self._n_events += 1

    def _send(self, now_ns: int, train: Sequence[TimedSection]) -> None:
        """Encode the sections of a train into as few packets as possible."""
        packet: list[StreamPart] = []
        free_bytes = self._path.packet_bytes
        self._sender.encoder.on_packet_boundary()
        for section in train:
            for part in self._encode(now_ns, section):
                rest = part
                while len(rest.data) > free_bytes:
                    first, rest = rest.split(free_bytes)
                    self._send_packet(now_ns, [*packet, first])
                    packet, free_bytes = [], self._path.packet_bytes
                    self._sender.encoder.on_packet_boundary()
                packet.append(rest)
                free_bytes -= len(rest.data)
        self._send_packet(now_ns, packet)

    def _encode(self, now_ns: int, section: TimedSection) -> list[StreamPart]:
        """Return the parts that carry a field section and its inserts."""
        stream_id = STREAM_ID_STEP * len(self._result.sections)
        parts = self._sender.encode(stream_id, section.fields)
        *_, section_part = parts  # those before it are for the encoder stream
        self._missing_bytes[stream_id] = len(section_part.data)
        self._result.sections.append(SectionTimes(now_ns))
        self._result.n_bytes += sum(len(part.data) for part in parts)
        self._result.uncompressed_bytes += field_bytes(section.fields)
        return parts

    def _send_packet(self, now_ns: int, packet: list[StreamPart]) -> None:
        n_losses, delay_ns = self._draw_fate(self._packet_fates)
        self._result.n_packets += 1 + n_losses
        self._result.n_lost += n_losses
        self._schedule(now_ns + delay_ns, self._arrive, packet)

    def _draw_fate(self, source: random.Random) -> tuple[int, int]:
        """Draw the number of losses of a packet; return it, and the total delay of the packet."""
        n_losses, delay_ns = 0, self._rtt_ns // 2
        while source.random() < self._path.loss:
            n_losses += 1
            delay_ns += round(source.uniform(_MIN_LOSS_RTTS, _MAX_LOSS_RTTS) * self._rtt_ns)
        return n_losses, delay_ns

    def _arrive(self, now_ns: int, packet: Sequence[StreamPart]) -> None:
        """Decode the sections that a packet completes, and acknowledge them."""
        decoded: list[Decoded] = []
        for part in packet:
            if part.stream_id is not None:
                self._missing_bytes[part.stream_id] -= len(part.data)
                if not self._missing_bytes[part.stream_id]:
                    self._times(part.stream_id).arrived_at_ns = now_ns
            decoded += self._receiver.deliver(part)
        for stream_id, _ in decoded:
            self._times(stream_id).decoded_at_ns = now_ns
        self._acknowledge(now_ns, decoded)
        self._result.note_held(self._receiver.decoder.held)

    def _times(self, stream_id: int) -> SectionTimes:
        return self._result.sections[stream_id // STREAM_ID_STEP]

    def _acknowledge(self, now_ns: int, decoded: Sequence[Decoded]) -> None:
        """Send one acknowledgement per section, the first with the decoder stream's data."""
        feedback = self._receiver.take_feedback()
        streams: list[int | None] = [stream_id for stream_id, _ in decoded]
        for stream_id in streams or ([None] if feedback else []):
            _, delay_ns = self._draw_fate(self._ack_fates)
            self._schedule(now_ns + delay_ns, self._on_ack, (stream_id, feedback))
            feedback = None

    def _on_ack(self, now_ns: int, ack: tuple[int | None, StreamPart | None]) -> None:
        del now_ns  # an argument of every event
        stream_id, feedback = ack
        if stream_id is not None:
            self._sender.encoder.on_acked(stream_id)
        if feedback is not None:
            self._sender.on_feedback(feedback)


def _trains(sections: Sequence[TimedSection]) -> Iterator[list[TimedSection]]:
    """Yield trains of sections that leave together; longer pauses become `_MAX_PAUSE_NS`."""
    train: list[TimedSection] = []
    last_ns = removed_ns = 0
    for section in sections:
        # Removed parts of pauses accumulate, and shift all later sections.
        removed_ns += max(0, section.at_ns - last_ns - _MAX_PAUSE_NS)
        if train and section.at_ns - last_ns > _TRAIN_GAP_NS:
            yield train
            train = []
        last_ns = section.at_ns
        train.append(section._replace(at_ns=section.at_ns - removed_ns))
    if train:
        yield train


SETTING_COLUMNS = (
    "page",
    "network",
    "header_compression",
    "table_bytes",
    "blocked_streams",
    "rtt_ms",
    "loss",
)
"""Columns that identify runs which differ only in their seeds."""

HEADER_FIGURES = (
    "sections",
    "hol_total_ms",
    "blocked",
    "n_bytes",
    "uncompressed_bytes",
    "n_packets",
    "n_lost",
    "n_evicted",
    "held_compressed_bytes",
    "held_decompressed_bytes",
)
"""Columns with the results of header lists, present in each of their rows."""
_DEFAULT_RESPONSE: FieldSection = ((b":status", b"200"),)
"""Header list of a response that is missing in the source."""


def send_headers(lists: HeaderLists, spec: LoadSpec) -> HeaderRun:
    """Simulate sending *lists*, whose load is *spec*.

    Over links, a transport carries them together with response bodies, which the scheme schedules;
    packet counts are then those of the whole downlink. Independent packets carry only the lists.
    """
    compression = spec.header_compression
    assert compression is not None, "`resolve` requires it"  # noqa: S101
    network, seed = spec.network, spec.seed
    if network.independent_packets is not None:
        codec, settings = compression.codec, compression.settings
        return simulate_headers(lists.sections, codec, network, settings=settings, seed=seed)
    pairs = tuple((entry.request, entry.response or _DEFAULT_RESPONSE) for entry in lists.in_order)
    load = run_spec(replace(spec, header_compression=replace(compression, lists=pairs)))
    assert load.header_runs is not None, "headers were compressed"  # noqa: S101
    requests_run, responses_run = load.header_runs
    run = responses_run if lists.of_responses else requests_run
    run.n_packets, run.n_lost = load.packets.sent, load.packets.lost
    return run


def header_row(
    lists: HeaderLists, spec: LoadSpec, named: dict[str, Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the row of one run, with the columns *named* as given, and one per blocked list."""
    run = send_headers(lists, spec)
    compression, network = spec.header_compression, spec.network
    assert compression is not None, "it was sent"  # noqa: S101
    path = network.independent_packets or network.down
    row = {
        "page": lists.name,
        "page_digest": lists.digest,
        "scheme": spec.scheme.name,
        "header_compression": compression.codec,
        "rtt_ms": to_ms(network.rtt_ns),
        "loss": None if path is None else path.loss,
        "seed": spec.seed,
        "network": network.name,
        "of": "responses" if lists.of_responses else "requests",
        **asdict(compression.settings),
        "version": __version__,
        "sections": len(run.sections),
        "hol_total_ms": to_ms(sum(section.hol_ns for section in run.sections)),
        "blocked": sum(section.hol_ns > 0 for section in run.sections),
        "n_bytes": run.n_bytes,
        "uncompressed_bytes": run.uncompressed_bytes,
        "n_packets": run.n_packets,
        "n_lost": run.n_lost,
        "n_evicted": run.n_evicted,
        "held_compressed_bytes": run.max_held.compressed,
        "held_decompressed_bytes": run.max_held.decompressed,
        **named,
    }
    setting = {column: row[column] for column in SETTING_COLUMNS}
    blocked = [
        setting | {"id": str(number), "hol_ns": times.hol_ns, **asdict(times)}
        for number, times in enumerate(run.sections)
        if times.hol_ns
    ]
    return row, blocked
