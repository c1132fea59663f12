"""An animation as one file of HTML that needs no other and no network."""

from __future__ import annotations

import html
import json
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from h3sim.plots.animation import ORDERS, scene_of
from h3sim.plots.html_page import html_page

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.plots.animation import LostPacket, Scene
    from h3sim.plots.palette import Palette
    from h3sim.results import Load

__all__ = ["page_of", "words_of"]

_MAX_ROWS = 200
_STYLE = """
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
th:first-child { text-align: left; overflow-wrap: anywhere; }
kbd { border: 1px solid #767676; border-radius: 3px; padding: 0 0.3em; }
"""
_WIDTH_REM = 64
_SPEEDS = (("slowly", 4), ("steadily", 12), ("fast", 60), ("very fast", 300))


def page_of(load: Load, palette: Palette) -> str:
    """Return the animation of *load* as a whole file."""
    scene = scene_of(load)
    title = _title(load)
    heading = html.escape(title)
    words = "".join(f"<p>{html.escape(sentence)}</p>" for sentence in words_of(load, scene))
    body = (
        f"<main>\n<h1>{heading}</h1>\n{words}\n"
        f"{_stage(heading)}{_controls(scene)}{_legend(load, palette)}{_losses(load, scene)}"
        f'</main>\n<script type="application/json" id="scene">{_data(scene, palette)}</script>\n'
    )
    script = files("h3sim.plots").joinpath("animation.js").read_text(encoding="utf-8")
    return html_page(title, body, style=_STYLE, width_rem=_WIDTH_REM, script=script)


def words_of(load: Load, scene: Scene) -> list[str]:
    """Return in sentences what the animation shows, for who does not see it."""
    n, n_lost, _ = load.packets
    own = "QUIC" if load.protocol.value == "quic" else "TCP"
    said = [
        f"{n:,} packets go from the server to the browser, {n_lost:,} of them are lost. The load"
        f" ran over {own}; below the wire stands what either order of delivery makes of these"
        " packets."
    ]
    for order, name in enumerate(ORDERS):
        waits = [
            given_ms - flight.came_ms
            for flight in scene.flights
            if flight.came_ms is not None
            and (given_ms := flight.given_ms[order]) is not None
            and given_ms > flight.came_ms
        ]
        longest = f", the longest {max(waits):,.1f} ms" if waits else ""
        said.append(
            f"{name}: {len(waits):,} packets are held back for {sum(waits):,.1f} ms in"
            f" sum{longest}."
        )
    return said


def _title(load: Load) -> str:
    return f"Packets of {load.page.name} with {load.scheme.name} over {load.network.name}"


def _stage(title: str) -> str:
    rows = "".join(
        f'<text x="16" y="{top - 24}" font-size="14" font-weight="600">{html.escape(name)}</text>'
        f'<text x="16" y="{top - 7}" font-size="13" id="count-{order}"></text>'
        f'<text x="956" y="{top + 12}" font-size="11" fill="#555" text-anchor="start">held</text>'
        f'<text x="956" y="{top + 42}" font-size="11" fill="#555">delivered</text>'
        f'<g id="order-{order}"></g>'
        for order, (name, top) in enumerate(zip(ORDERS, (148, 258), strict=True))
    )
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{title}">'
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1024 320" role="img" '
        'aria-label="Packets under way, and which of them either order of delivery holds back; '
        'the text below says the same in numbers">'
        '<text x="16" y="24" font-size="14" font-weight="600">On the wire</text>'
        '<text x="1008" y="24" font-size="14" text-anchor="end" id="clock"></text>'
        '<text x="16" y="64" font-size="12">server</text>'
        '<text x="898" y="64" font-size="12">browser</text>'
        '<line x1="70" x2="890" y1="74" y2="74" stroke="#767676"/><g id="wire"></g>'
        f"{rows}</svg></div>\n"
    )


def _controls(scene: Scene) -> str:
    speeds = "".join(
        f'<option value="{rate}"{" selected" * (name == "steadily")}>{name}</option>'
        for name, rate in _SPEEDS
    )
    buttons = (
        ("play", "Play", "Space"),
        ("back", "Step back", "ArrowLeft"),
        ("forward", "Step", "ArrowRight"),
        ("loss", "Next loss", "L"),
        ("restart", "Restart", "Home"),
    )
    made = "".join(
        f'<button type="button" id="{id_}" aria-keyshortcuts="{keys}" disabled>{name}</button>'
        for id_, name, keys in buttons
    )
    return (
        f'<div class="controls" role="group" aria-label="Controls">{made}'
        f'<label>speed <select id="speed" disabled>{speeds}</select></label>'
        f'<input type="range" id="time" min="0" max="{scene.end_ms:.3f}" step="any" value="0" '
        'aria-label="time in ms since navigation start" disabled></div>\n'
        '<p id="status" role="status"></p>\n'
        "<p>Keys: <kbd>Space</kbd> plays and pauses, <kbd>&larr;</kbd> and <kbd>&rarr;</kbd> go to"
        " the next thing that happens, <kbd>L</kbd> to the next moment at which the bytes of a lost"
        " packet are about to come, <kbd>Home</kbd> to the start. Packets stand in the order sent;"
        " dotted: not sent yet, pale: under way, red cross: lost, red frame: held back; what was"
        " delivered stands lower.</p>\n"
        "<noscript><p>The picture needs JavaScript; the sentences above and the table below do"
        " not.</p></noscript>\n"
    )


def _legend(load: Load, palette: Palette) -> str:
    entries = []
    for group in dict.fromkeys(sorted(palette.groups)):
        look = palette.look(group)
        number = "" if palette.is_by_kind else str(group + 1)
        style = f"background:{look.face};color:{look.ink}"
        # Labels are made for matplotlib, to which a dollar begins a formula.
        label = html.escape(palette.label(group).replace("\\$", "$"))
        entries.append(f'<li><span class="swatch" style="{style}">{number}</span>{label}</li>')
    name = html.escape(load.page.name)
    return f'<ul class="legend" aria-label="Colours of {name}">{"".join(entries)}</ul>\n'


def _losses(load: Load, scene: Scene) -> str:
    """Return the table of what was lost, which is all of the animation in numbers."""
    if not scene.losses:
        return "<p>Nothing was lost.</p>\n"
    rows = "".join(_row(load, scene, loss) for loss in scene.losses[:_MAX_ROWS])
    left = len(scene.losses) - _MAX_ROWS
    more = f"<p>and {left:,} more</p>" if left > 0 else ""
    heads = "".join(
        f'<th scope="col">{text}</th>'
        for text in (
            *("lost packet of", "left at ms", "its bytes came at ms"),
            *("packets held back until then by QUIC", "by TCP"),
        )
    )
    return (
        '<div class="scroll" tabindex="0" role="group" aria-label="What was lost"><table>'
        f"<caption>What was lost, and what waited for it</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{more}\n"
    )


def _row(load: Load, scene: Scene, loss: LostPacket) -> str:
    name = html.escape(load.page.resources[scene.flights[loss.flight].resource].id)
    cells = (f"{loss.sent_ms:,.1f}", f"{loss.mended_ms:,.1f}", *map(str, loss.waiting))
    data = "".join(f"<td>{cell}</td>" for cell in cells)
    return f'<tr><th scope="row">{name}</th>{data}</tr>'


def _data(scene: Scene, palette: Palette) -> str:
    """Return what the script reads; no text of the page is in it."""
    looks = (palette.look(group) for group in palette.groups)
    moments = list(_moments(scene))
    document: dict[str, Any] = {
        "packets": [
            [
                *(_short(at_ms) for at_ms in flight[:3]),
                *flight[3:5],
                *(_short(at_ms) for at_ms in flight.given_ms),
            ]
            for flight in scene.flights
        ],
        "orders": ORDERS,
        "colours": [{"face": look.face, "ink": look.ink} for look in looks],
        "numbers": not palette.is_by_kind,
        "interval": scene.interval_ms,
        "moments": moments,
        "start": moments[0] if moments else 0,
        "end": scene.end_ms,
    }
    # `</script>` in a text would end the element, whatever quotes stand around it.
    return json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _moments(scene: Scene) -> Iterator[float]:
    """Yield the instants just before lost bytes come, when most waits for them."""
    for at_ms in sorted({loss.mended_ms for loss in scene.losses}):
        yield round(at_ms - 0.002, 3)


def _short(at_ms: float | None) -> float | None:
    return None if at_ms is None else round(at_ms, 3)
