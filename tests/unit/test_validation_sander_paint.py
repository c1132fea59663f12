"""What `make validate-sander-paint` says of a load: images count as they load, or once complete."""

from __future__ import annotations

import pytest

import h3sim
from h3sim.page import page_from_dict
from validation.sander_paint import painted


def test_an_image_counts_as_it_arrives_or_when_it_is_complete() -> None:
    page = page_from_dict(
        {
            "format": "h3sim-page/1",
            "name": "shop",
            "resources": [
                {"id": "/", "kind": "document", "bytes": 1400},
                {"id": "jpg", "kind": "image", "bytes": 14000, "viewport": 0.5,
                 "image_format": "jpeg", "discovered": {"by": "/", "at": "complete"}},
            ],
        }
    )  # fmt: skip
    load = h3sim.simulate(page, scheme="fifo", network="marx-2019", browser="parse")
    seen = painted(load)
    assert seen is not None
    finished_ms = {timing.id: timing.finished_ms for timing in load.timings}
    assert seen.first_paint == load.first_paint_ms
    # Half of the viewport is text, there at first paint; the other half is the image, which is
    # seen with the next frame.
    frame_ms = 15
    complete_ms = finished_ms["jpg"] + frame_ms
    assert seen.speed_index == pytest.approx((seen.first_paint + complete_ms) / 2)
    # Ten packets, 10 ms apart: the mean one is 45 ms before the last, where painting had begun.
    arrivals = [complete_ms - 10 * n for n in range(10)]
    shown = sum(max(seen.first_paint, at) for at in arrivals) / 10
    assert seen.as_bytes_arrive == pytest.approx((seen.first_paint + shown) / 2)
    # Chrome paints the first packet, and then only the complete image: it takes less than a second.
    chrome = (max(seen.first_paint, arrivals[-1]) + 9 * complete_ms) / 10
    assert seen.as_chrome_paints == pytest.approx((seen.first_paint + chrome) / 2)
    assert seen.as_bytes_arrive < seen.as_chrome_paints < seen.speed_index
