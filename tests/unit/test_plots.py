from __future__ import annotations

import io
import re
import sys
from collections import defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import h3sim
from h3sim.page import Kind, page_from_dict
from h3sim.reporting import LoadPlots, labels, lane_layout, output
from h3sim.reporting.labels import CLASSES, KINDS, MAX_RESOURCE_COLOURS, Paint, paint
from h3sim.reporting.trees import nodes_of
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


def resource(name: str, n_bytes: int, **more: Any) -> dict[Any, Any]:
    more.setdefault("kind", "image")
    return {"id": name, "bytes": n_bytes, **more}


def page_of(*resources: Any, name: str = "small") -> Any:
    return page_from_dict({"format": "h3sim-page/1", "name": name, "resources": list(resources)})


def after(parent: Any, **more: Any) -> dict[str, Any]:
    return {"discovered": {"by": parent, "at": "request", **more}}


SMALL = page_of(
    resource("index.html", 5000, kind="document", above_the_fold=True),
    resource("a.css", 4000, above_the_fold=True, **after("index.html")),
    resource("b.jpg", 9000, **after("index.html", delay_ms=15)),
)
JITTER = "4:1-3"


def collections_of(ax: Any, what: Any) -> Any:
    """The collections that are faces, edges or marks, by lane and number of the resource."""
    found = {}
    for collection in ax.collections:
        _, lane, *rest = collection.get_gid().split("-")
        kind = {"resource": "face"}.get(rest[0], rest[0])
        if kind == what:
            found[int(lane), int(rest[1]) if len(rest) > 1 else None] = collection
    return found


def rectangles(ax: Any, lane: Any) -> list[Any]:
    """The corners (left, bottom, right, top) of the lane's rectangles, with their resources."""
    return [
        (*path.vertices.min(axis=0), *path.vertices.max(axis=0), position)
        for (number, position), collection in collections_of(ax, "face").items()
        if number == lane
        for path in collection.get_paths()
    ]


def area_above(xs: Any, ys: Any) -> Any:
    return sum((1 - y) * (right - left) for left, right, y in zip(xs, xs[1:], ys, strict=False))


# The strip


@pytest.mark.parametrize("transport", ["quic", "tcp"])
@pytest.mark.parametrize("jitter", ["none", JITTER])
def test_a_small_page_has_a_rectangle_per_packet_that_ends_when_its_bytes_were_handed_over(
    transport: Any, jitter: Any
) -> None:
    load = h3sim.simulate(SMALL, scheme="rr", transport=transport, reorder=jitter, rtt_ms=30)
    ax = load.plot.multiplexing()
    drawn = sorted((round(right, 6), position) for _, _, right, _, position in rectangles(ax, 1))
    positions = {request.stream_id: request.resource + 1 for request in load.trace.requests}
    packets = zip(load.trace.delivered_at_ns, load.trace.order, strict=True)
    assert drawn == sorted((at_ns / 1e6, positions[stream]) for at_ns, stream in packets)
    assert len(collections_of(ax, "edges")[1, None].get_paths()) == len(load.trace.packet_rows)


def test_a_rectangle_is_as_wide_as_a_send_interval() -> None:
    ax = h3sim.simulate(SMALL, scheme="fifo").plot.multiplexing()
    assert [right - left for left, _, right, _, _ in rectangles(ax, 1)] == pytest.approx([10] * 14)


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_no_two_rectangles_of_a_lane_overlap(transport: Any) -> None:
    load = h3sim.simulate(SMALL, scheme="rr", transport=transport, reorder=JITTER, seed=3)
    boxes = sorted(rectangles(load.plot.multiplexing(), 1))
    assert len(boxes) == len(load.trace.packet_rows)
    for number, (left, bottom, right, top, _) in enumerate(boxes):
        assert left < right
        for other in boxes[number + 1 :]:
            apart_in_time = other[0] >= right - 1e-6 or other[2] <= left + 1e-6
            assert apart_in_time or other[1] >= top - 1e-6 or other[3] <= bottom + 1e-6


def test_packets_handed_over_together_are_stacked_and_the_highest_stack_fills_its_lane() -> None:
    loads = [h3sim.simulate(SMALL, transport=name, reorder=JITTER) for name in ("quic", "tcp")]
    ax = LoadPlots(loads).multiplexing()
    tops = []
    for lane, load in enumerate(loads, start=1):
        stacks = defaultdict(list)
        for _, bottom, right, top, _ in rectangles(ax, lane):
            stacks[round(right, 6)].append((bottom, top))
        heights = sorted(len(set(stack)) for stack in stacks.values())
        histogram = load.hol.stack_histogram
        assert heights == [height for height, n in histogram.items() for _ in range(n)]
        assert all(2 - lane <= low < high <= 3 - lane for s in stacks.values() for low, high in s)
        tops.append(max(high for s in stacks.values() for _, high in s) - (2 - lane))
    assert max(tops) == pytest.approx(0.92)
    assert max(loads[1].hol.stack_histogram) > 1


def test_a_packet_alone_keeps_its_height_beside_stacks_of_up_to_eight() -> None:
    assert lane_layout.stack_share(1, 1) == 1
    assert lane_layout.stack_share(1000, 1000) == pytest.approx(1)
    assert lane_layout.stack_share(1, 1000) == lane_layout.stack_share(1, 8)
    shares = [lane_layout.stack_share(height, 1000) for height in range(1, 1001)]
    assert shares == sorted(set(shares))
    heights_in = []
    for jitter in ("none", "2:1-1", JITTER):
        load = h3sim.simulate(SMALL, scheme="rr", transport="tcp", reorder=jitter)
        figure = LoadPlots([load] * 4).multiplexing().figure
        figure.draw_without_rendering()
        (ax,) = (ax for ax in figure.axes if ax.collections)
        _, low, _, high, _ = min(rectangles(ax, 1), key=lambda corners: corners[0])
        pixels = ax.transData.transform([(0, low), (0, high)])[:, 1]
        heights_in.append((pixels[1] - pixels[0]) / figure.dpi)
    assert max(load.hol.stack_histogram) > 2
    assert heights_in == pytest.approx([heights_in[0]] * 3, rel=0.15)


def test_a_resource_has_one_colour_in_all_lanes_and_in_the_legend() -> None:
    # Asked for in another order than the page's, so that stream ids do not tell the resource.
    page = page_of(
        resource("index.html", 5000, kind="document"),
        resource("last.jpg", 4000, **after("index.html", delay_ms=25)),
        resource("first.jpg", 4000, **after("index.html")),
    )
    loads = [h3sim.simulate(page, scheme=scheme) for scheme in ("rr", "fifo")]
    ax = LoadPlots(loads).multiplexing()
    keys = [(lane, position) for lane in (1, 2) for position in (1, 2, 3)]
    faces = collections_of(ax, "face").items()
    assert {key: to_hex(face.get_facecolor()[0]) for key, face in faces} == {
        (lane, position): paint(position - 1).face for lane, position in keys
    }
    legend = next(axes.get_legend() for axes in ax.figure.axes if axes.get_legend())
    patches = [to_hex(patch.get_facecolor()) for patch in legend.get_patches()]
    assert patches == [paint(number).face for number in range(3)]
    assert [request.resource for request in loads[0].trace.requests] == [0, 2, 1]


def lightness(look: Any) -> Any:
    parts = [int(look.face[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    return sum(share * part for share, part in zip((0.21, 0.72, 0.07), parts, strict=True))


def test_resources_look_different_in_grey_where_they_stand_side_by_side() -> None:
    for position in range(MAX_RESOURCE_COLOURS):
        following = paint((position + 1) % MAX_RESOURCE_COLOURS)
        assert abs(lightness(paint(position)) - lightness(following)) > 0.1


def test_each_shade_of_each_class_differs_in_grey() -> None:
    shades = [Paint(face, "", "") for each in CLASSES for face in each.shades]
    grey = [lightness(shade) for shade in shades]
    assert grey == sorted(grey)
    assert min(after - before for before, after in pairwise(grey)) > 0.04


def large_page(n: int, size: int = 6000) -> Any:
    """A page of *n* resources of *size* bytes: a third above the fold, a fourth render-blocking."""
    rest = (
        resource(
            f"r{i}",
            size,
            above_the_fold=i % 3 == 0,
            render_blocking=i % 4 == 0,
            kind="stylesheet",
            **after("r0"),
        )
        for i in range(1, n)
    )
    return page_of(resource("r0", size, kind="document", above_the_fold=True), *rest)


def pixels_of(ax: Any, n_lanes: int) -> list[Any]:
    """The row of pixels in the middle of each lane, in colour, with the axes' width."""
    figure = ax.figure
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[:, :, :3].astype(int)
    # A little above the middle: numbers stand there.
    ys = [ax.transData.transform((0, n_lanes - n - 0.2))[1] for n in range(n_lanes)]
    left, right = (round(ax.transAxes.transform((x, 0))[0]) for x in (0, 1))
    return [picture[picture.shape[0] - round(y), left:right] for y in ys]


def share_unchanged(row: Any) -> float:
    """The share of pixels that look as those on their left: high for long blocks."""
    return float((abs(np.diff(row, axis=0)).sum(axis=1) < 12).mean())


@pytest.mark.parametrize("page", ["kicad-eeschema", 12, 46, 120, 200, 600])
def test_schemes_that_differ_look_different_on_pages_of_any_size(page: Any) -> None:
    if isinstance(page, int):
        page = large_page(page, size=3_000_000 // page)
    loads = [h3sim.simulate(page, scheme=scheme, rate_mbps=5) for scheme in ("rr", "fifo")]
    rr, fifo = pixels_of(LoadPlots(loads).multiplexing(annotate=False), 2)
    differing = float((abs(rr - fifo).sum(axis=1) > 30).mean())
    assert differing > 0.4
    # fifo has blocks, rr has stripes.
    assert share_unchanged(fifo) > share_unchanged(rr) + 0.1
    grey = [row @ np.array([0.21, 0.72, 0.07]) for row in (rr, fifo)]
    assert float((abs(grey[0] - grey[1]) > 10).mean()) > 0.4


def test_the_end_of_what_is_above_the_fold_is_marked_in_each_lane() -> None:
    loads = [h3sim.simulate("davies-meenan", scheme=scheme) for scheme in ("rr", "bucket-html")]
    marks = collections_of(LoadPlots(loads).multiplexing(), "fold")
    assert [marks[lane, None].get_segments()[0][0, 0] for lane in (1, 2)] == [
        max(row.finished_ms for row in load.timings if row.above_the_fold) for load in loads
    ]
    page = page_of(resource("/", 3000))
    assert not collections_of(h3sim.simulate(page).plot.multiplexing(), "fold")


def test_many_packets_are_drawn_joined_and_cover_the_same_time() -> None:
    ax = h3sim.simulate(page_of(resource("/", 1400 * 600))).plot.multiplexing()
    ((left, _, right, _, _),) = rectangles(ax, 1)
    assert (left, right) == pytest.approx((0, 6000))
    assert "joined" in ax.get_xlabel()
    assert not collections_of(ax, "edges")


def test_lanes_stand_in_the_order_of_the_loads_and_say_what_they_differ_in() -> None:
    loads = [
        h3sim.simulate(SMALL, scheme=scheme, transport=transport, send_buffer_kb=send_buffer_kb)
        for scheme, transport, send_buffer_kb in [("rr", "quic", 0), ("fifo", "tcp", 14)]
    ]
    ax = LoadPlots(loads).multiplexing()
    ticks = dict(zip(ax.get_yticks(), (t.get_text() for t in ax.get_yticklabels()), strict=True))
    assert ticks == {1.5: "rr\nQUIC, no buffer", 0.5: "fifo\nTCP, 14 kB buffer"}
    alike = LoadPlots([h3sim.simulate(SMALL, scheme=scheme) for scheme in ("rr", "p+")])
    assert [t.get_text() for t in alike.multiplexing().get_yticklabels()] == ["rr", "p+"]
    shared = (
        "marx-2019, 1.12 Mbit/s, packets of 1400 bytes, RTT 0 ms, no reordering, 1-RTT handshake"
        f", seed 0, h3sim {h3sim.__version__}, page {SMALL.digest[:8]}"
    )
    assert labels.title(loads).endswith(f"\n{shared}")


def test_numbers_stand_on_long_runs_and_only_if_wanted() -> None:
    load = h3sim.simulate(SMALL, scheme="fifo")
    assert [text.get_text() for text in load.plot.multiplexing().texts] == ["1", "2", "3"]
    assert not load.plot.multiplexing(annotate=False).texts


# The ByteIndex


@pytest.mark.parametrize("which", ["all", "atf"])
@pytest.mark.parametrize("setting", [{}, {"rtt_ms": 60, "transport": "tcp", "reorder": JITTER}])
def test_the_curve_rises_to_1_and_the_area_above_it_is_the_exact_byte_index(
    which: Any, setting: Any
) -> None:
    loads = [h3sim.simulate(SMALL, scheme=scheme, **setting) for scheme in ("rr", "fifo")]
    ax = LoadPlots(loads).byte_index(which=which)
    for line, load in zip(ax.get_lines(), loads, strict=True):
        xs, ys = (list(data) for data in line.get_data())  # type: ignore[arg-type]
        assert (ys[0], ys[-1]) == (0, 1)
        assert xs == sorted(xs)  # type: ignore[type-var]
        assert ys == sorted(ys)  # type: ignore[type-var]
        assert line.get_drawstyle() == "steps-post"
        # Sums of floats: nine digits are as many as can be asked for.
        exact = load.byte_index(which)
        assert area_above(xs, ys) == pytest.approx(exact, rel=1e-9)


def test_the_legend_is_sorted_by_byte_index_and_five_lines_differ_without_colour() -> None:
    schemes = h3sim.list_schemes()[:13]
    loads = [h3sim.simulate("davies-meenan", scheme=scheme) for scheme in schemes]
    ax = LoadPlots(loads).byte_index()
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    ranked = sorted(loads, key=lambda load: load.byte_index("atf"))
    assert names == [f"{load.scheme.name}: {load.byte_index('atf'):,.0f} ms" for load in ranked]
    assert names[0] == "bucket-html: 915 ms"
    lines = ax.get_lines()
    assert len({line.get_marker() for line in lines}) == len(lines) == 5
    assert {names[0], names[-1]} <= {line.get_label() for line in lines}


def test_few_lines_have_their_names_at_their_ends() -> None:
    loads = [h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "bucket-html")]
    ax = LoadPlots(loads).byte_index()
    assert ax.get_legend() is None
    assert {text.get_text() for text in ax.texts} == {"rr: 3,411 ms", "bucket-html: 915 ms"}


def test_without_a_legend_there_is_none() -> None:
    loads = [h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "fifo")]
    plots = LoadPlots(loads)
    for figure in (plots.figure(legend=False), plots.figure(legend=False, style="paper")):
        assert not [ax for ax in figure.axes if ax.get_legend()]
        assert not figure.legends


def test_a_figure_in_a_column_fits_a_page_of_a_paper() -> None:
    load = h3sim.simulate("http2rulez", network="cable", loss=0.02)
    figure = load.plot.figure(style="paper", width="column")
    assert figure.get_size_inches()[1] < 9


def test_resources_share_boxes_only_on_large_pages() -> None:
    for n_resources, folds in ((60, False), (200, True)):
        page = h3sim.page.synthetic(seed=1, n_resources=n_resources)
        nodes = nodes_of(page)
        assert any(len(node.resources) > 1 for node in nodes) is folds
        assert len(nodes) <= 100


def test_a_page_with_nothing_above_the_fold_shows_all_and_says_so() -> None:
    page = page_of(resource("/", 3000), resource("empty", 0, above_the_fold=True, **after("/")))
    load = h3sim.simulate(page)
    ax = load.plot.byte_index()
    title = ax.get_title(loc="left")
    of = "ByteIndex of all resources (above the fold: the labelled resources have no bytes)"
    assert title == f"{of}: 40 ms"
    sampled = load.plot.byte_index(sample_ms=100).get_title(loc="left")
    assert sampled == f"{of}: 100 ms, sampled every 100 ms"
    assert area_above(*ax.get_lines()[0].get_data()) == load.byte_index("all")
    assert "above" not in load.plot.byte_index(which="all").get_title(loc="left")


@pytest.mark.parametrize("which", ["atd", "", None])
def test_an_unknown_set_of_resources_is_refused(which: Any) -> None:
    with pytest.raises(InputError, match="which: must be 'all' or 'atf'"):
        h3sim.simulate(SMALL).plot.byte_index(which=which)


# The waterfall


def test_a_waterfall_has_a_row_per_resource_in_request_order_with_marks_in_words() -> None:
    load = h3sim.simulate(SMALL, scheme="rr", rtt_ms=20)
    ax: Any = load.plot.waterfall()
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names[:-1] == ["1  index.html \u25b2", "2  a.css \u25b2", "3  b.jpg"]
    # 1400 bytes each 10 ms are 1.12 Mbit/s: what is shown is never faster than the link.
    peak = re.fullmatch(r"bandwidth, up to (.*) Mbit/s", names[-1])
    assert 0 < float(peak[1]) <= 1.12
    assert ax.get_ylim()[0] > ax.get_ylim()[1]
    waits, *drawn = ax.collections
    (frames,) = ax.containers
    for row, timing in enumerate(load.timings):
        wait = [[timing.requested_ms, row], [timing.first_byte_ms, row]]
        assert waits.get_segments()[row].tolist() == wait
        frame, light, chunks = frames[row], drawn[2 * row], drawn[2 * row + 1]
        span = (frame.get_x(), frame.get_x() + frame.get_width())
        assert span == pytest.approx((timing.first_byte_ms, timing.finished_ms))
        xs = light.get_paths()[0].vertices[:, 0]
        assert (xs.min(), xs.max()) == pytest.approx(span)
        assert chunks.get_gid() == f"chunks-{row + 1}"
        assert to_hex(chunks.get_facecolor()[0]) == paint(row).face
        assert frame.get_linewidth() > 0


# Everything together


def n_resources(n: Any) -> Any:
    return page_of(resource("/", 0), *(resource(f"r{i}", 10, **after("/")) for i in range(1, n)))


def test_one_load_comes_with_its_waterfall_and_several_do_not() -> None:
    def n_titles(plots: Any) -> Any:
        return sum(bool(ax.get_title(loc="left")) for ax in plots.figure().axes)

    small, other = h3sim.simulate(SMALL), h3sim.simulate(SMALL, scheme="fifo")
    assert n_titles(LoadPlots([small])) == 2
    assert n_titles(LoadPlots([small, other])) == 1
    assert n_titles(h3sim.simulate(n_resources(61)).plot) == 2


@pytest.mark.parametrize(("n", "n_rows"), [(60, 60), (61, 60), (300, 60), (1200, 60)])
def test_a_waterfall_of_many_resources_folds_the_smallest_with_their_neighbours(
    n: Any, n_rows: int
) -> None:
    big = [resource(f"big{i}", 5000 + i, above_the_fold=True, **after("/")) for i in range(20)]
    rest = n_resources(n - 20).resources
    page = page_of(resource("/", 0), *big, *(resource(r.id, 10, **after("/")) for r in rest[1:]))
    load = h3sim.simulate(page)
    *names, bandwidth = [text.get_text() for text in load.plot.waterfall().get_yticklabels()]
    assert bandwidth.startswith("bandwidth")
    assert len(names) <= n_rows
    assert sum("big" in name for name in names) == 20
    counted = [1 if "  " in name else int(name.split()[0].rstrip(":")) for name in names]
    assert sum(counted) == n
    assert names[0] == "1  /"


def test_up_to_12_resources_have_colours_of_their_own_and_more_a_shade_of_their_class() -> None:
    def legend_of(load: Any) -> Any:
        figure = load.plot.figure()
        legends = (ax.get_legend() for ax in figure.axes if not ax.get_title(loc="left"))
        (legend,) = (legend for legend in legends if legend)
        return legend

    def entries(load: Any) -> list[str]:
        return [text.get_text() for text in legend_of(load).get_texts()]

    small = h3sim.simulate(n_resources(12))
    assert entries(small) == ["1  /", *(f"{i + 1}  r{i}" for i in range(1, 12))]
    load = h3sim.simulate(large_page(16), scheme="fifo")
    assert entries(load) == [
        "above the fold, not render-blocking: 5, 30 kB",
        "render-blocking: 3, 18 kB",
        "rest: 8, 48 kB",
    ]
    ax: Any = load.plot.multiplexing()
    collections = [c for c in ax.collections if "shade" in c.get_gid()]
    drawn = {to_hex(c.get_facecolor()[0]) for c in collections}
    patches: Any = legend_of(load).findobj(Rectangle)
    assert drawn == {to_hex(patch.get_facecolor()) for patch in patches}
    assert len(drawn) == 9


def test_kinds_look_different_in_grey() -> None:
    looks = [KINDS[kind] for kind in Kind]
    for number, look in enumerate(looks):
        for other in looks[number + 1 :]:
            assert look.hatch != other.hatch or abs(lightness(look) - lightness(other)) > 0.1


def test_a_late_beacon_is_cut_off_and_said() -> None:
    late = resource("beacon", 10, discovered={"at": "time", "delay_ms": 60_000})
    load = h3sim.simulate(page_of(resource("/", 14_000), late))
    ax = load.plot.multiplexing()
    # Ten packets at 10 ms each; the beacon comes at the tick of the minute.
    assert ax.get_xlim() == pytest.approx((0, 100.5))
    note = "cut here: 1 resource is complete later, the last at 60,000 ms"
    assert note in ax.get_xlabel()
    assert {axes.get_xlim() for axes in load.plot.figure().axes if axes.axison} == {ax.get_xlim()}
    complete = load.plot.multiplexing(until_ms=70_000)
    assert complete.get_xlim()[1] == pytest.approx(60_000 * 1.005)
    assert "cut" not in complete.get_xlabel()
    # What is late and large stays.
    large = resource("video", 1400, discovered={"at": "time", "delay_ms": 60_000})
    kept = h3sim.simulate(page_of(resource("/", 14_000), large)).plot.multiplexing()
    assert kept.get_xlim()[1] > 60_000


def test_lost_packets_are_marked_when_they_were_sent_and_what_came_again_when_it_arrived() -> None:
    load = h3sim.simulate("davies-meenan", scheme="fifo", network="sander-2mbps-100ms-5pct")
    ax: Any = load.plot.multiplexing()
    lost, again = (line.get_xdata() for line in ax.get_lines())
    rows = load.trace.packet_rows
    assert sorted(lost) == sorted({row[5]: row[0] / 1e6 for row in rows if row[1] is None}.values())
    assert load.packets.lost == len(lost) > 0
    assert 0 < len(again) <= load.packets.retransmitted
    several = LoadPlots([load, load]).multiplexing()
    assert len(several.get_lines()) == 2
    assert "lost" in several.get_xlabel()
    assert not h3sim.simulate(SMALL).plot.multiplexing().get_lines()


def test_paints_and_load_event_are_lines_of_the_waterfall() -> None:
    load = h3sim.simulate("davies-meenan", scheme="dfifo", browser="parse")
    lines = {line.get_label(): line.get_xdata()[0] for line in load.plot.waterfall().get_lines()}
    assert next(iter(lines.values())) == load.first_paint_ms
    assert f"load event: {load.load_event_ms:,.0f} ms" in lines


def test_a_figure_names_page_network_and_transport_and_has_one_axis_of_time() -> None:
    figure = h3sim.simulate(SMALL, scheme="fifo", transport="tcp", rtt_ms=50).plot.figure()
    head, settings, _ = figure.get_suptitle().split("\n")
    assert head == "small: 3 resources, 18 kB, scheme fifo"
    assert settings.startswith("marx-2019 with rtt_ms=50, TCP, 1.12 Mbit/s")
    assert len({ax.get_xlim() for ax in figure.axes if ax.axison}) == 1


def test_labels_do_not_overlap() -> None:
    schemes = ["rr", "fifo", "bucket-html", "zeroweight-simple"]
    figure = LoadPlots([h3sim.simulate(SMALL, scheme=s, reorder=JITTER) for s in schemes]).figure()
    figure.draw_without_rendering()
    shown = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]
    boxes = [text.get_window_extent() for text in shown]
    assert len(boxes) > 40
    for number, box in enumerate(boxes):
        assert figure.bbox.x0 <= box.x0 < box.x1 <= figure.bbox.x1
        assert not any(box.overlaps(other) for other in boxes[number + 1 :])


def test_the_longest_label_of_a_file_lies_within_the_picture() -> None:
    figure = output.new_figure(2.0)
    ax = figure.subplots()
    ax.set_yticks([0, 1], ["m" * 60, "a.css"])
    output.set_alt_text(ax, "Two rows.")
    file = io.BytesIO()
    output.render(figure, file, "png")
    file.seek(0)
    pixels = image.imread(file)
    assert pixels.shape[1] == 12 * output.DPI
    assert np.all(pixels[:, :4] == 1.0)
    assert not np.all(pixels[:, :20] == 1.0), "the label begins at the edge"


@pytest.mark.parametrize("method", ["multiplexing", "byte_index", "waterfall"])
def test_each_part_draws_on_the_axes_it_is_given(method: Any) -> None:
    figure = Figure()
    ax = figure.subplots()
    assert getattr(h3sim.simulate(SMALL).plot, method)(ax) is ax
    assert figure.axes == [ax]
    assert ax.has_data()


def test_a_notebook_shows_the_figure_without_pyplot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "matplotlib.pyplot", raising=False)
    assert h3sim.simulate(SMALL).plot._repr_png_().startswith(b"\x89PNG")
    assert "matplotlib.pyplot" not in sys.modules


EMPTY = resource("/", 0, kind="document")
ODD = "a$b$\n^{x"


@pytest.mark.parametrize(
    "page",
    [
        page_of(EMPTY),
        page_of(resource("/", 1, kind="document")),
        page_of(EMPTY, resource("b", 2000, **after("/"))),
        page_of(resource(ODD, 10), resource("\u65e5\u672c", 10, **after(ODD)), name="$_$"),
        page_of(EMPTY, *(resource("x" * 500 + str(i), 90, **after("/")) for i in range(80))),
    ],
    ids=["nothing", "one", "an empty root", "odd names", "long names"],
)
def test_any_page_can_be_drawn(page: Any, tmp_path: Path) -> None:
    h3sim.simulate(page).plot.save(tmp_path / "load.png")
    assert (tmp_path / "load.png").read_bytes().startswith(b"\x89PNG")


def test_loads_of_several_pages_and_none_at_all_are_refused() -> None:
    other = h3sim.simulate(page_of(EMPTY, name="other"))
    with pytest.raises(InputError, match="must be of one page, are of small, other"):
        LoadPlots([h3sim.simulate(SMALL), other])
    with pytest.raises(InputError, match="at least one"):
        LoadPlots([])


# Files


@pytest.mark.parametrize("ending", ["PNG", "svg", "pdf"])
def test_equal_loads_give_equal_files(ending: Any, tmp_path: Path) -> None:
    paths = [tmp_path / f"{name}.{ending}" for name in ("one", "two")]
    for path in paths:
        h3sim.simulate(SMALL, reorder=JITTER, seed=5).plot.save(path)
    one, two = (path.read_bytes() for path in paths)
    assert one == two
    assert b"CreationDate" not in one
    assert one.startswith({"svg": b"<?xml", "pdf": b"%PDF"}.get(ending, b"\x89PNG"))
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"one.{ending}", f"two.{ending}"]


def test_an_svg_is_well_formed_and_has_an_element_per_lane_and_resource(tmp_path: Path) -> None:
    h3sim.simulate(SMALL).plot.save(tmp_path / "load.svg")
    ids = [e.get("id") for e in ElementTree.parse(tmp_path / "load.svg").iter() if e.get("id")]
    assert len(ids) == len(set(ids))
    assert {f"lane-1-resource-{position}" for position in (1, 2, 3)} <= set(ids)


def test_a_save_that_fails_leaves_the_old_file_and_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = h3sim.simulate(SMALL).plot
    (tmp_path / "old.svg").write_text("old")

    def broken(figure: Any, file: Any, kind: Any) -> None:
        file.write(b"half")
        raise ZeroDivisionError

    monkeypatch.setattr(output, "render", broken)
    for name in ("old.svg", "new.svg"):
        with pytest.raises(ZeroDivisionError):
            plots.save(tmp_path / name)
    assert [path.name for path in tmp_path.iterdir()] == ["old.svg"]
    assert (tmp_path / "old.svg").read_text() == "old"


def test_a_full_disk_is_an_error_that_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(figure: Any, file: Any, kind: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(output, "render", full)
    with pytest.raises(InputError, match=r"load\.png: .*No space left"):
        h3sim.simulate(SMALL).plot.save(tmp_path / "load.png")
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"load\.png: .*No such file"):
        h3sim.simulate(SMALL).plot.save(tmp_path / "none" / "load.png")


@pytest.mark.parametrize("name", ["load.gif", "load", ".png"])
def test_other_endings_are_refused_before_anything_is_drawn(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plots = h3sim.simulate(SMALL).plot
    monkeypatch.setattr(LoadPlots, "figure", lambda self: pytest.fail("it was drawn"))
    with pytest.raises(InputError, match=r"\.png, \.svg, \.pdf"):
        plots.save(tmp_path / name)


def test_a_figure_has_the_rights_of_any_new_file_and_a_link_to_it_stays(tmp_path: Path) -> None:
    (tmp_path / "link.png").symlink_to("target.png")
    h3sim.simulate(SMALL).plot.save(tmp_path / "link.png")
    (tmp_path / "other").touch()
    assert (tmp_path / "link.png").is_symlink()
    assert (tmp_path / "target.png").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.parametrize("draw", [LoadPlots.multiplexing, LoadPlots.waterfall])
def test_what_stands_below_narrow_axes_is_no_wider_than_their_figure(draw: Any) -> None:
    figure = Figure(figsize=(5, 4), layout="constrained")
    ax = draw(LoadPlots([h3sim.simulate("davies-meenan")]), figure.subplots())
    figure.draw_without_rendering()
    below = ax.xaxis.label.get_window_extent()
    assert 0 <= below.x0 < below.x1 <= figure.bbox.width
