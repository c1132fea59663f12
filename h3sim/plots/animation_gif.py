"""An animation as a GIF, for slides: some packets around the first moment at which one waits."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, NamedTuple

from h3sim.plots.animation import ORDERS, scene_of, state_of

if TYPE_CHECKING:
    from PIL import ImageDraw, ImageFont

    from h3sim.plots.animation import Flight, Scene
    from h3sim.plots.palette import Palette
    from h3sim.results import Load

__all__ = ["gif_of", "shown_times"]

_WIDTH, _HEIGHT = 960, 300
_COLUMNS, _LEFT, _CELL, _SIZE = 50, 12, 18, 15
_WIRE_Y, _WIRE_LEFT, _WIRE_RIGHT = 44, 70, 885
_TOPS = (132, 234)
_DROP = 26
_COLOURS, _EVERY = 128, 10
_FRAMES, _FRAME_MS, _LAST_MS = 120, 100, 2000
_BEFORE_PACKETS, _AFTER_PACKETS = 14, 10
_RED, _GREY, _TEXT = "#c00000", "#8a8a8a", "#1b1b1b"


class _Pen(NamedTuple):
    draw: ImageDraw.ImageDraw
    font: ImageFont.FreeTypeFont
    small: ImageFont.FreeTypeFont


def shown_times(scene: Scene) -> list[float]:
    """Return the instants of the frames: from before the first loss until nothing waits for it.

    Where nothing waits in any order it is the first packets.
    """
    flights = scene.flights
    waiting = [
        index
        for index, flight in enumerate(flights)
        if flight.came_ms is not None and any((at or 0) > flight.came_ms for at in flight.given_ms)
    ]
    first = waiting[0] if waiting else 0
    begin_ms = flights[max(0, first - _BEFORE_PACKETS)].shown_ms
    shown = flights[max(0, first - _BEFORE_PACKETS) : first + _COLUMNS - _BEFORE_PACKETS]
    ends = [at for flight in shown for at in flight.given_ms if at is not None]
    end_ms = max(ends, default=begin_ms) + _AFTER_PACKETS * scene.interval_ms
    return [begin_ms + (end_ms - begin_ms) * n / (_FRAMES - 1) for n in range(_FRAMES)]


def gif_of(load: Load, palette: Palette) -> bytes:
    """Return the animation of *load* as a GIF; equal loads give equal bytes."""
    # On use, and there because matplotlib needs it.
    from matplotlib.font_manager import findfont
    from PIL import Image, ImageDraw, ImageFont

    path = findfont("DejaVu Sans")
    fonts = ImageFont.truetype(path, 13), ImageFont.truetype(path, 9)
    scene = scene_of(load)
    frames = []
    for at_ms in shown_times(scene):
        image = Image.new("RGB", (_WIDTH, _HEIGHT), "white")
        _draw_frame(_Pen(ImageDraw.Draw(image), *fonts), scene, palette, at_ms)
        frames.append(image)
    # One palette for all: what does not change from frame to frame then takes no room.
    sheet = Image.new("RGB", (_WIDTH, _HEIGHT * len(frames[::_EVERY])))
    for number, image in enumerate(frames[::_EVERY]):
        sheet.paste(image, (0, _HEIGHT * number))
    palette_of_all = sheet.quantize(_COLOURS, dither=Image.Dither.NONE)
    frames = [image.quantize(palette=palette_of_all, dither=Image.Dither.NONE) for image in frames]
    file = io.BytesIO()
    times = [_FRAME_MS] * (len(frames) - 1) + [_LAST_MS]
    frames[0].save(
        file, "GIF", save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False
    )
    return file.getvalue()


def _draw_frame(pen: _Pen, scene: Scene, palette: Palette, at_ms: float) -> None:
    flights = scene.flights
    pen.draw.text((_LEFT, 8), "On the wire", _TEXT, pen.font)
    pen.draw.text((_WIDTH - _LEFT, 8), f"{at_ms:,.0f} ms", _TEXT, pen.font, anchor="ra")
    pen.draw.text((_LEFT, _WIRE_Y), "server", _TEXT, pen.font)
    pen.draw.text((_WIRE_RIGHT + 8, _WIRE_Y), "browser", _TEXT, pen.font)
    line_y = _WIRE_Y + _SIZE + 5
    pen.draw.line((_WIRE_LEFT, line_y, _WIRE_RIGHT, line_y), _GREY)
    for flight in flights:
        until_ms = (
            2 * flight.gone_ms - flight.shown_ms if flight.came_ms is None else flight.came_ms
        )
        if flight.shown_ms <= at_ms < until_ms:
            way = (at_ms - flight.shown_ms) / (until_ms - flight.shown_ms)
            x = _WIRE_LEFT + (_WIRE_RIGHT - _WIRE_LEFT - _SIZE) * way
            look = "lost" if flight.came_ms is None and at_ms >= flight.gone_ms else "given"
            _draw_packet(pen, round(x), _WIRE_Y, flight, palette, look)
    sent = sum(flight.shown_ms <= at_ms for flight in flights)
    # It moves on by four packets at once: one by one, each frame would be another picture.
    first = max(0, min(len(flights) - _COLUMNS, (sent - _COLUMNS + 8) // 4 * 4))
    for order, (name, top) in enumerate(zip(ORDERS, _TOPS, strict=True)):
        looks = [state_of(flight, order, at_ms) for flight in flights]
        held = looks.count("held")
        given = sum(f.n_bytes for f, look in zip(flights, looks, strict=True) if look == "given")
        words = f"holds back {held} packet{'s' * (held != 1)}, has delivered {given / 1000:,.0f} kB"
        pen.draw.text((_LEFT, top - 22), f"{name}: {words}", _TEXT, pen.font)
        for column, index in enumerate(range(first, min(len(flights), first + _COLUMNS))):
            y = top + _DROP * (looks[index] in ("given", "copy"))
            x = _LEFT + column * _CELL
            _draw_packet(pen, x, y, flights[index], palette, looks[index])


def _draw_packet(pen: _Pen, x: int, y: int, flight: Flight, palette: Palette, look: str) -> None:
    paint = palette.look(palette.groups[flight.resource])
    box = (x, y, x + _SIZE, y + _SIZE)
    if look in ("ahead", "lost", "copy"):
        pen.draw.rectangle(box, "white", "#d0d0d0" if look == "ahead" else _GREY)
    else:
        face = _pale(paint.face) if look == "wire" else paint.face
        pen.draw.rectangle(box, face, _RED if look == "held" else _GREY, 3 if look == "held" else 1)
    if look == "lost":
        inner = (x + 3, y + 3, x + _SIZE - 3, y + _SIZE - 3)
        pen.draw.line(inner, _RED, 2)
        pen.draw.line((inner[0], inner[3], inner[2], inner[1]), _RED, 2)
    elif look in ("held", "given") and not palette.is_by_kind:
        middle = (x + _SIZE / 2, y + _SIZE / 2 + 1)
        pen.draw.text(middle, str(flight.resource + 1), paint.ink, pen.small, anchor="mm")


def _pale(colour: str) -> tuple[int, ...]:
    """Return a colour as it looks through mist."""
    parts = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
    return tuple(round(255 - (255 - part) * 0.45) for part in parts)
