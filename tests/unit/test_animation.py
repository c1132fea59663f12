"""Animations: what QUIC delivers and TCP holds back, as data, as a page and as a GIF."""

from __future__ import annotations

import io
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.reporting.animation import (
    Flight,
    Scene,
    animation_html,
    gif_of,
    scene_of,
    shown_times,
    state_of,
    words_of,
)
from h3sim.reporting.labels import Palette
from h3sim.trace import Delivery, Request, with_delivery
from h3sim.values.errors import InputError
from tests.helpers import page_of as page_from
from tools.check_report import errors_in, hostile_page
from tools.open_page import browser

if TYPE_CHECKING:
    from pathlib import Path

MS = 1_000_000
LOSSY: dict[str, Any] = {"network": "sander-2mbps-100ms-2pct", "seed": 1}


class OneLoss:
    """A load by hand: two streams, of which the first loses a packet that comes again at 60 ms."""

    page = page_from(
        {"id": "/", "kind": "document", "bytes": 2000},
        {
            "id": "a.png",
            "kind": "image",
            "bytes": 1000,
            "discovered": {"by": "/", "at": "request"},
        },
    )
    network = h3sim.load_network("marx-2019")

    def __init__(self, delivery: Delivery) -> None:
        rows = [
            (10 * MS, None, 0, 0, 1000, 0),
            (20 * MS, 40 * MS, 4, 0, 1000, 1),
            (30 * MS, 50 * MS, 0, 1000, 1000, 2),
            (40 * MS, 60 * MS, 0, 0, 1000, 3),
        ]

        class TraceOfRows:
            requests = (Request(0, 0, 0, 0, 2000), Request(4, 1, 0, 0, 1000))
            packet_rows = with_delivery(rows, delivery)
            queue_drops = ()

        self.trace = TraceOfRows()
        self.trace.delivery = delivery  # type: ignore[attr-defined]


def held_at(scene: Scene, order: int, at_ms: float) -> list[int]:
    """Return the sizes of the packets that have come by then and are held back."""
    return [each.n_bytes for each in scene.flights if state_of(each, order, at_ms) == "held"]


@pytest.mark.parametrize("delivery", Delivery)
def test_both_orders_are_shown_whatever_the_load_ran_over(delivery: Delivery) -> None:
    scene = scene_of(OneLoss(delivery))  # type: ignore[arg-type]
    # The image waits for nothing with QUIC, and with TCP for the document's lost packet.
    assert [flight.delivered_ms for flight in scene.flights] == [
        (None, None),
        (40.0, 60.0),
        (60.0, 60.0),
        (60.0, 60.0),
    ]
    assert [loss[:4] for loss in scene.losses] == [(0, False, 10.0, 60.0)]
    assert scene.losses[0].waiting == (1, 2)
    assert [held_at(scene, order, 55.0) for order in (0, 1)] == [[1000], [1000, 1000]]


def test_the_states_of_a_packet_follow_one_another() -> None:
    flight = Flight(0.0, 10.0, 5.0, 0, 1400, (20.0, 30.0))
    states = [state_of(flight, 1, at_ms) for at_ms in (-1.0, 0.0, 10.0, 30.0)]
    assert states == ["ahead", "wire", "held", "given"]
    lost, copy = flight._replace(arrived_ms=None), flight._replace(delivered_ms=(None, None))
    assert [state_of(lost, 0, at_ms) for at_ms in (4.0, 5.0)] == ["wire", "lost"]
    assert state_of(copy, 0, 10.0) == "copy"


def test_what_is_held_back_is_what_the_figures_of_the_load_count() -> None:
    load = h3sim.simulate("davies-meenan", scheme="rr", **LOSSY)
    scene = scene_of(load)
    for order, blocked_bytes in enumerate((load.hol.stream_bytes, load.hol.connection_bytes)):
        held = [
            flight.n_bytes
            for flight in scene.flights
            if flight.arrived_ms is not None
            and (flight.delivered_ms[order] or 0) > flight.arrived_ms
        ]
        assert sum(held) == blocked_bytes


def test_the_words_say_what_is_seen() -> None:
    load = h3sim.simulate("davies-meenan", scheme="rr", **LOSSY)
    scene = scene_of(load)
    first, quic, tcp = words_of(load, scene)
    assert load.packets.queue_drops == 0
    assert f"{load.packets.lost} lost" in first
    assert quic.startswith("QUIC: each stream in its own order: ")
    assert tcp.startswith("TCP: all streams in one order: ")


def test_the_page_needs_nothing_else_and_names_are_no_markup(tmp_path: Path) -> None:
    load = h3sim.simulate(hostile_page(), scheme="rr", **LOSSY)
    text = animation_html(load, Palette(load.page))
    assert "<img" not in text
    assert re.findall(r"(?:src|href)=\"(?!data:,)", text) == []
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', text)
    assert found is not None
    data = json.loads(found[1])
    assert len(data["packets"]) == len(load.trace.packet_rows)
    path = tmp_path / "hol.html"
    load.plot.animation(path)
    assert path.read_text("utf-8") == text


def test_the_gif_runs_from_before_the_first_loss_until_nothing_waits() -> None:
    from PIL import Image

    load = h3sim.simulate("davies-meenan", scheme="rr", **LOSSY)
    scene, times = scene_of(load), shown_times(scene_of(load))
    held = [len(held_at(scene, 1, at_ms)) for at_ms in times]
    assert held[0] == 0
    assert max(held) > 2
    gif = gif_of(load, Palette(load.page))
    assert gif == gif_of(load, Palette(load.page))
    with Image.open(io.BytesIO(gif)) as image:
        assert (image.size, getattr(image, "n_frames", 0)) == ((960, 300), len(times))


def test_a_load_without_losses_is_animated_too(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", scheme="fifo")
    load.plot.animation(tmp_path / "a.gif")
    load.plot.animation(tmp_path / "a.html")
    assert "Nothing was lost" in (tmp_path / "a.html").read_text("utf-8")
    assert (tmp_path / "a.gif").read_bytes().startswith(b"GIF89a")


def test_the_command_writes_it_and_refuses_other_endings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "hol.html"
    assert main(["run", "davies-meenan", "--animate", str(path)]) == 0
    assert path.read_text("utf-8").startswith("<!DOCTYPE html>")
    capsys.readouterr()
    assert main(["run", "davies-meenan", "--animate", "hol.mp4"]) == 2
    assert ".html or .gif, is 'hol.mp4'" in capsys.readouterr().err
    with pytest.raises(InputError, match="there is no folder"):
        h3sim.simulate("davies-meenan").plot.animation(tmp_path / "no" / "a.gif")


@pytest.mark.chromium
def test_it_is_stepped_through_by_keyboard_in_a_browser(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", scheme="rr", **LOSSY)
    scene = scene_of(load)
    path = tmp_path / "hol.html"
    load.plot.animation(path)
    with browser() as open_page:
        page = open_page(path)
        assert list(errors_in(page)) == []
        first = page.evaluate("document.getElementById('status').textContent")
        loss = min(scene.losses, key=lambda each: each.mended_ms)
        quic, tcp = loss.waiting
        assert f"QUIC holds back {quic} packet" in first
        assert f"TCP holds back {tcp} packet" in first
        # What is drawn is what Python says at that instant.
        drawn = page.evaluate(
            "[0, 1].map((n) => document.querySelectorAll("
            "`#order-${n} rect[stroke-width='2.5']`).length)"
        )
        assert drawn == [quic, tcp]
        page.press("ArrowRight")
        after = page.evaluate("document.getElementById('status').textContent")
        assert after != first
        page.press("ArrowLeft")
        page.press("l")
        assert page.evaluate("document.getElementById('status').textContent") == first
        page.press(" ")
        assert page.evaluate("document.getElementById('play').textContent") == "Pause"
        page.press(" ")
        assert page.evaluate("document.getElementById('play').textContent") == "Play"
        page.press("Home")
        assert page.evaluate("Number(document.getElementById('time').value)") == min(
            flight.shown_ms for flight in scene.flights
        )
