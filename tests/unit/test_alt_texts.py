"""Every picture in words, and what files of pictures hold."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.errors import InputError
from h3sim.plots import LoadPlots, LogPlots
from h3sim.results.document import write_load_qlog
from tests.helpers import page_of

if TYPE_CHECKING:
    from pathlib import Path

CHILD = {"by": "/", "at": "complete"}
PAGE = page_of(
    {"id": "/", "kind": "document", "bytes": 1400, "above_the_fold": True},
    {"id": "a.png", "kind": "image", "bytes": 2800, "discovered": CHILD},
    {"id": "b.js", "kind": "script", "bytes": 1400, "discovered": CHILD},
)


def test_each_picture_is_told_in_words() -> None:
    loads = [h3sim.simulate(PAGE, scheme=scheme) for scheme in ("fifo", "rr")]
    one, two = LoadPlots(loads[:1]), LoadPlots(loads)
    # A packet each 10 ms: the document, then the image and the script, or both in turn.
    assert two.alt_text("multiplexing") == (
        "A lane per load, a rectangle per packet, coloured by resource. fifo: 2 changes from one"
        " resource to another among 4 packets; rr: 3 changes from one resource to another among 4"
        " packets."
    )
    assert one.alt_text("waterfall") == (
        "A row per resource, in request order: b.js ends last, at 40 ms; b.js waits longest for its"
        " first byte, 30 ms."
    )
    assert two.alt_text("deltas") == (
        "A bar per resource: 1 of 3 are complete sooner with rr, 1 later."
    )
    assert one.alt_text("dependencies") == "A tree of requests; the end waited for /, then b.js."
    assert one.alt_text("byte_index").startswith("A line per load rises from 0 to 1: fifo has a")
    assert one.alt_text("priority_tree").startswith("A tree from left to right, 10 ms after")
    assert one.alt_text("throughput").startswith("Arriving bytes peak at ")
    assert one.alt_text("byte_ranges").endswith(" 0 bytes waited for others of their stream.")
    assert one.alt_text() == " ".join(
        one.alt_text(name) for name in ("multiplexing", "byte_index", "waterfall")
    )
    with pytest.raises(InputError, match="must be one of figure, multiplexing"):
        one.alt_text("portrait")


def test_windows_are_told_where_recovery_was_recorded() -> None:
    load = h3sim.simulate(PAGE, network="cable", records_wire=True)
    assert re.fullmatch(
        r"The window grows to [\d,]+ bytes at most; 0 packets were declared lost.",
        load.plot.alt_text("congestion"),
    )


def test_pages_and_logs_are_told_as_well(tmp_path: Path) -> None:
    assert PAGE.plot.alt_text() == (
        "A bar per kind: 1 of kind image with 3 kB, 1 of kind document with 1 kB, 1 of kind script"
        " with 1 kB. Below, what asks for what, in 2 steps."
    )
    write_load_qlog(h3sim.simulate(PAGE), tmp_path / "a.qlog")
    told = LogPlots([h3sim.measure(tmp_path / "a.qlog")]).alt_text()
    assert told.startswith("A row per stream, in which its bytes rise over time. page: 3 responses")


def test_files_hold_the_words(tmp_path: Path) -> None:
    from PIL import Image

    plots: Any = h3sim.simulate(PAGE).plot
    plots.save(tmp_path / "a.png")
    with Image.open(tmp_path / "a.png") as image:
        assert image.info["Description"] == plots.alt_text()
    plots.save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    assert f"<dc:description>{plots.alt_text()}</dc:description>" in text
    plots.save(tmp_path / "a.pdf")
    assert b"/Subject" in (tmp_path / "a.pdf").read_bytes()


def test_a_hatch_of_dots_is_one_tile_that_repeats(tmp_path: Path) -> None:
    # Stylesheets are dotted, the third resource of a small page as well.
    h3sim.load_page("http2rulez").plot.save(tmp_path / "a.svg")
    text = (tmp_path / "a.svg").read_text("utf-8")
    patterns = re.findall(r"<pattern.*?</pattern>", text, flags=re.DOTALL)
    dotted = [pattern for pattern in patterns if "<circle" in pattern]
    assert dotted
    assert max(map(len, patterns)) < 5000
    # 72 points have 30 dots in a row, and rows are as far apart, shifted by half a step.
    assert all('width="2.4" height="4.8"' in pattern for pattern in dotted)


def test_reports_do_not_round_the_scale_of_letters() -> None:
    text = h3sim.report(h3sim.simulate(PAGE)).to_html()
    scales = set(re.findall(r"scale\(([^)]*)\)", text))
    assert "0.015625" in scales
    assert "0.01" not in scales
