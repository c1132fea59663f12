"""Animations of a load: the packets in flight, as one HTML file.

Both orders of delivery are shown for the same packets: that of the load's
own transport, and that of the other (the comparison of Sander 2022 § 4).
"""

from __future__ import annotations

import html
from bisect import bisect_left
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from h3sim.export.tables import describe_losses
from h3sim.reporting.document import check_suffix, html_page, paragraphs, scrolled
from h3sim.reporting.script_data import data_element
from h3sim.schema import write_atomically
from h3sim.trace import Delivery, delivered_in_one_order, delivered_per_stream
from h3sim.values.units import to_ms

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from h3sim.load import Load
    from h3sim.page import Page
    from h3sim.reporting.labels import Palette


ORDERS = ("QUIC: each stream in its own order", "TCP: all streams in one order")
"""Orders of delivery that are compared; values for each of them are in this order."""
_MIN_FLIGHT_INTERVALS = 6
"""Displayed flight time of packets without delay, in send intervals."""


class Flight(NamedTuple):
    """A packet, or the part of one stream in it; times are in ms."""

    shown_ms: float
    """Time from which it is drawn on the wire."""
    arrived_ms: float | None
    """None if it was lost."""
    gone_ms: float
    """Time from which it is drawn as lost, if it was."""
    resource: int
    n_bytes: int
    delivered_ms: tuple[float | None, ...]
    """For each of `ORDERS`, when the application gets its bytes; None if they are duplicates."""


class LostPacket(NamedTuple):
    """A packet that was lost, whose bytes arrived in a later one."""

    flight: int
    """Its index among the flights."""
    is_dropped: bool
    """True if the queue of the bottleneck dropped it."""
    sent_ms: float
    mended_ms: float
    """Time when its bytes arrived."""
    waiting: tuple[int, ...]
    """For each of `ORDERS`, the number of packets that are held back until then."""


class Scene(NamedTuple):
    """All packets of a load in the order sent, and the losses among them."""

    flights: list[Flight]
    losses: list[LostPacket]
    interval_ms: float
    end_ms: float


def scene_of(load: Load) -> Scene:
    """Return the packets that an animation of *load* shows."""
    rows = load.trace.packet_rows
    own_times_ns = list(rows.columns.delivered_at_ns)
    if load.trace.delivery is Delivery.STREAM:
        orders = (own_times_ns, delivered_in_one_order(rows, own_times_ns))
    else:
        orders = (delivered_per_stream(rows), own_times_ns)
    resource_of = {request.stream_id: request.resource for request in load.trace.requests}
    interval_ns = load.network.packet_interval_ns
    flights_ns = [arrived - sent for sent, arrived, *_ in rows if arrived is not None]
    usual_ns = max(median(flights_ns) if flights_ns else 0, _MIN_FLIGHT_INTERVALS * interval_ns)
    flights = []
    for index, (sent_at_ns, arrived_at_ns, stream_id, _, n_bytes, *_) in enumerate(rows):
        arrived_ms = None if arrived_at_ns is None else to_ms(arrived_at_ns)
        # A lost packet would have arrived after the usual time.
        lands_ms = to_ms(sent_at_ns + int(usual_ns)) if arrived_ms is None else arrived_ms
        shown_ms = min(to_ms(sent_at_ns), lands_ms - _MIN_FLIGHT_INTERVALS * interval_ns / 1e6)
        delivered_at_ns = (order[index] for order in orders)
        flights.append(
            Flight(
                shown_ms,
                arrived_ms,
                (shown_ms + lands_ms) / 2,
                resource_of[stream_id],
                n_bytes,
                tuple(None if at_ns is None else to_ms(at_ns) for at_ns in delivered_at_ns),
            )
        )
    delivered_ms = [
        at_ms for flight in flights for at_ms in flight.delivered_ms if at_ms is not None
    ]
    losses = _lost_packets(load, flights)
    return Scene(flights, losses, interval_ns / 1e6, max(delivered_ms, default=0.0))


def _lost_packets(load: Load, flights: Sequence[Flight]) -> list[LostPacket]:
    """Return the lost packets whose bytes arrived in a later one, in the order sent."""
    rows = load.trace.packet_rows
    offsets, lengths = rows.columns.offset, rows.columns.length_bytes
    rows_of_stream: dict[int, list[int]] = {}
    for index, stream_id in enumerate(rows.columns.stream_id):
        rows_of_stream.setdefault(stream_id, []).append(index)
    waits = [_arrivals_and_deliveries(flights, order) for order in range(len(ORDERS))]
    dropped = set(load.trace.queue_drops)
    found = []
    for index, row in enumerate(rows):
        sent_at_ns, arrived_at_ns, stream_id, offset, n_bytes, number, _ = row
        if arrived_at_ns is not None:
            continue
        end = offset + n_bytes
        of_stream = rows_of_stream[stream_id]
        mended_at_ms = [
            at_ms
            for other in of_stream[bisect_left(of_stream, index) + 1 :]
            # By its last byte, as retransmissions may be split otherwise.
            if offsets[other] < end <= offsets[other] + lengths[other]
            and (at_ms := flights[other].arrived_ms) is not None
        ]
        if mended_at_ms:
            mended_ms = min(mended_at_ms)
            # The packets that have arrived, less those that were delivered.
            waiting = tuple(
                bisect_left(arrived_ms, mended_ms) - bisect_left(delivered_ms, mended_ms)
                for arrived_ms, delivered_ms in waits
            )
            is_dropped = number in dropped
            found.append(LostPacket(index, is_dropped, to_ms(sent_at_ns), mended_ms, waiting))
    return found


def _arrivals_and_deliveries(
    flights: Iterable[Flight], order: int
) -> tuple[list[float], list[float]]:
    """Return when packets arrive and when an *order* delivers them, each sorted."""
    pairs = [
        (flight.arrived_ms, delivered_ms)
        for flight in flights
        if flight.arrived_ms is not None
        and (delivered_ms := flight.delivered_ms[order]) is not None
    ]
    return sorted(arrived_ms for arrived_ms, _ in pairs), sorted(
        delivered_ms for _, delivered_ms in pairs
    )


_MAX_LISTED_LOSSES = 200
STYLE = """
h1 { font-size: 1.4rem; }
h2 { font-size: 1.1rem; }
svg text { font-family: system-ui, "DejaVu Sans", Arial, sans-serif; }
.scroll svg { min-width: 40rem; }
.controls { display: flex; flex-wrap: wrap; gap: 0.5rem; align-items: center; margin: 0.75rem 0; }
.controls input[type=range] { flex: 1 1 16rem; }
button, select { font: inherit; padding: 0.25rem 0.75rem; min-height: 2.25rem; }
ul.legend { display: flex; flex-wrap: wrap; gap: 0.25rem 1rem; list-style: none; padding: 0; }
.swatch { display: inline-block; width: 1.1em; height: 1.1em; vertical-align: -0.2em;
  border: 1px solid #5a5a5a; margin-right: 0.3em; text-align: center; font-size: 0.8em;
  line-height: 1.1em; }
th, td { text-align: right; padding: 0.15rem 0.75rem 0.15rem 0; border-bottom: 1px solid #d6d6d6; }
th:first-child { text-align: left; overflow-wrap: anywhere; min-width: 8rem; }
kbd { border: 1px solid #767676; border-radius: 3px; padding: 0 0.3em; }
"""
_WIDTH_REM = 64
_SPEEDS = (("slowly", 4), ("steadily", 12), ("fast", 60), ("very fast", 300))


def animation_html(load: Load, palette: Palette) -> str:
    """Return the animation of *load* as a complete HTML file."""
    scene = scene_of(load)
    title = f"Packets of {load.page.name} with {load.scheme.name} over {load.network.name}"
    heading = html.escape(title)
    body = (
        f"<main>\n<h1>{heading}</h1>\n{paragraphs(words_of(load, scene))}\n"
        f"{_stage_svg(heading)}{_controls_html(scene)}{legend_of(load.page, palette)}"
        f"{_loss_table(load, scene)}"
        f"</main>\n{data_element(_script_data(scene, palette), 'scene')}\n"
    )
    return html_page(title, body, style=STYLE, width_rem=_WIDTH_REM, script="animation.js")


def words_of(load: Load, scene: Scene) -> list[str]:
    """Describe the animation in sentences, for those who cannot see it."""
    packets = load.packets
    own = "QUIC" if load.protocol.value == "quic" else "TCP"
    stated = [
        f"{packets.sent:,} packets go from the server to the browser: {describe_losses(packets)}."
        f" The load ran over {own}; below the wire stands what either order of delivery makes of"
        " these packets."
    ]
    for order, name in enumerate(ORDERS):
        waits = [
            delivered_ms - flight.arrived_ms
            for flight in scene.flights
            if flight.arrived_ms is not None
            and (delivered_ms := flight.delivered_ms[order]) is not None
            and delivered_ms > flight.arrived_ms
        ]
        longest = f", the longest {max(waits):,.1f} ms" if waits else ""
        stated.append(
            f"{name}: {len(waits):,} packets are held back for {sum(waits):,.1f} ms in"
            f" sum{longest}."
        )
    return stated


def _stage_svg(title: str) -> str:
    rows = "".join(
        f'<text x="16" y="{top - 24}" font-size="14" font-weight="600">{html.escape(name)}</text>'
        f'<text x="16" y="{top - 7}" font-size="13" id="count-{order}"></text>'
        f'<text x="956" y="{top + 12}" font-size="11" fill="#555" text-anchor="start">held</text>'
        f'<text x="956" y="{top + 42}" font-size="11" fill="#555">delivered</text>'
        f'<g id="order-{order}"></g>'
        for order, (name, top) in enumerate(zip(ORDERS, (148, 258), strict=True))
    )
    picture = (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1024 320" role="img" '
        'aria-label="Packets under way, and which of them either order of delivery holds back; '
        'the text below says the same in numbers">'
        '<text x="16" y="24" font-size="14" font-weight="600">On the wire</text>'
        '<text x="1008" y="24" font-size="14" text-anchor="end" id="clock"></text>'
        '<text x="16" y="64" font-size="12">server</text>'
        '<text x="898" y="64" font-size="12">browser</text>'
        '<line x1="70" x2="890" y1="74" y2="74" stroke="#767676"/><g id="wire"></g>'
        f"{rows}</svg>"
    )
    return f"{scrolled(title, picture)}\n"


def player_controls(
    speeds: Iterable[tuple[str, float]], chosen: str, jump: tuple[str, str, str], end_ms: float
) -> str:
    """Return the buttons, speeds and time of a player.

    *jump* has id, name and key of a button that goes to the next event of some kind.
    """
    options = "".join(
        f'<option value="{rate}"{" selected" * (name == chosen)}>{name}</option>'
        for name, rate in speeds
    )
    buttons = (
        ("play", "Play", "Space"),
        ("back", "Step back", "ArrowLeft"),
        ("forward", "Step", "ArrowRight"),
        jump,
        ("restart", "Restart", "Home"),
    )
    shown = "".join(
        f'<button type="button" id="{id_}" aria-keyshortcuts="{keys}" disabled>{name}</button>'
        for id_, name, keys in buttons
    )
    return (
        f'<div class="controls" role="group" aria-label="Controls">{shown}'
        f'<label>Speed <select id="speed" disabled>{options}</select></label>'
        f'<input type="range" id="time" min="0" max="{end_ms:.3f}" step="any" value="0" '
        'aria-label="time in ms since navigation start" disabled></div>\n'
        '<p id="status" role="status"></p>\n'
    )


def _controls_html(scene: Scene) -> str:
    controls = player_controls(_SPEEDS, "steadily", ("loss", "Next loss", "L"), scene.end_ms)
    return (
        f"{controls}"
        "<p>Keys: <kbd>Space</kbd> plays and pauses, <kbd>&larr;</kbd> and <kbd>&rarr;</kbd> go to"
        " the next thing that happens, <kbd>L</kbd> to the next moment at which the bytes of a lost"
        " packet are about to come, <kbd>Home</kbd> to the start. Packets stand in the order sent;"
        " dotted: not sent yet, pale: under way, red cross: lost or dropped, red frame: held back;"
        " what was delivered stands lower.</p>\n"
        "<noscript><p>The picture needs JavaScript; the sentences above and the table below do"
        " not.</p></noscript>\n"
    )


def legend_of(page: Page, palette: Palette) -> str:
    """Return the legend of the colours of *page* as HTML."""
    entries = []
    for entry in palette.legend():
        swatches = ""
        for group in entry.groups:
            look = palette.look(group)
            number = "" if palette.is_shared else str(group + 1)
            style = f"background:{look.face};color:{look.ink}"
            swatches += f'<span class="swatch" style="{style}">{number}</span>'
        # Labels are escaped for matplotlib, in which a dollar begins a formula.
        label = html.escape(entry.label.replace("\\$", "$"))
        entries.append(f"<li>{swatches}{label}</li>")
    name = html.escape(page.name)
    return f'<ul class="legend" aria-label="Colours of {name}">{"".join(entries)}</ul>\n'


def _loss_table(load: Load, scene: Scene) -> str:
    """Return the table of losses, which has the animation's content in numbers."""
    if not scene.losses:
        return "<p>Nothing was lost.</p>\n"
    rows = ""
    for loss in scene.losses[:_MAX_LISTED_LOSSES]:
        name = html.escape(load.page.resources[scene.flights[loss.flight].resource].id)
        where = "in the queue" if loss.is_dropped else "on the way"
        times = (f"{loss.sent_ms:,.1f}", f"{loss.mended_ms:,.1f}")
        cells = (where, *times, *map(str, loss.waiting))
        data = "".join(f"<td>{cell}</td>" for cell in cells)
        rows += f'<tr><th scope="row">{name}</th>{data}</tr>'
    left = len(scene.losses) - _MAX_LISTED_LOSSES
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    names = (
        "lost packet of",
        "where",
        "left at ms",
        "its bytes came at ms",
        "packets held back until then by QUIC",
        "by TCP",
    )
    heads = "".join(f'<th scope="col">{name}</th>' for name in names)
    table = (
        "<table><caption>What was lost, and what waited for it</caption>"
        f"<thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>"
    )
    return f"{scrolled('What was lost', table)}{more}\n"


def _script_data(scene: Scene, palette: Palette) -> dict[str, object]:
    """Return the data that `animation.js` draws; it has no text from the page."""
    looks = (palette.look(group) for group in palette.groups)
    # Most packets wait just before lost bytes arrive.
    mended = sorted({loss.mended_ms for loss in scene.losses})
    moments = [round(at_ms - 0.002, 3) for at_ms in mended]
    return {
        "packets": [
            [
                *(rounded(at_ms, 3) for at_ms in flight[:3]),
                *flight[3:5],
                *(rounded(at_ms, 3) for at_ms in flight.delivered_ms),
            ]
            for flight in scene.flights
        ],
        "orders": ORDERS,
        "colours": [{"face": look.face, "ink": look.ink} for look in looks],
        "numbers": not palette.is_shared,
        "interval": scene.interval_ms,
        "moments": moments,
        "start": moments[0] if moments else 0,
        "end": scene.end_ms,
    }


def rounded(at_ms: float | None, digits: int) -> float | None:
    """Return a rounded time; None stays None."""
    return None if at_ms is None else round(at_ms, digits)


def write(load: Load, palette: Palette, path: str | os.PathLike[str]) -> None:
    """Write the animation of *load* to *path*, whole or not at all.

    Raises:
        InputError: if the ending is not .html, or the file cannot be written.
    """
    check_suffix(path)
    write_atomically(path, animation_html(load, palette))
