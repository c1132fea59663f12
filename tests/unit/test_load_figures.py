"""Figures of one load, or of two: byte ranges, throughput, windows, what moved, what asked."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_rgb

import h3sim
from h3sim.engine.requests import priority_text
from h3sim.page import page_from_dict
from h3sim.reporting import LoadPlots, time_series, trees, waterfall
from h3sim.reporting.labels import Palette
from h3sim.reporting.lane_layout import window_of
from h3sim.reporting.waterfall import rows_of
from h3sim.trace import Delivery, PacketRows, Request, Trace
from h3sim.values.errors import InputError, NothingToMeasureError
from tests.helpers import page_of

MS = 1_000_000


def trace_of(*rows: tuple[int, int | None, int, int, int, int, int | None]) -> Trace:
    """Times in ms, for one's eyes."""
    in_ns = [
        (
            *(sent * MS, None if came is None else came * MS, stream_id, offset, n_bytes, number),
            None if given is None else given * MS,
        )
        for sent, came, stream_id, offset, n_bytes, number, given in rows
    ]
    streams = dict.fromkeys(row[2] for row in rows)
    ends = {s: max(row[3] + row[4] for row in rows if row[2] == s) for s in streams}
    requests = tuple(Request(s, n, 0, 0, ends[s]) for n, s in enumerate(streams))
    packets = PacketRows.of(in_ns)
    return Trace(delivery=Delivery.STREAM, requests=requests, signals=(), packet_rows=packets)


LOST_AND_SENT_AGAIN = trace_of(
    (0, None, 0, 0, 1000, 0, None),
    (10, 30, 0, 1000, 1000, 1, 60),
    (20, 40, 4, 0, 500, 2, 40),
    (40, 60, 0, 0, 1000, 3, 60),
)


def chain_page() -> Any:
    def after(by: str, at: str = "complete") -> dict[str, Any]:
        return {"discovered": {"by": by, "at": at}}

    leaves = [
        {"id": f"{n}.jpg", "bytes": 100, "kind": "image", **after("index.html")} for n in range(3)
    ]
    return page_from_dict(
        {
            "format": "h3sim-page/1",
            "name": "chain",
            "resources": [
                {"id": "index.html", "bytes": 5000, "kind": "document"},
                {"id": "a.css", "bytes": 5000, "kind": "stylesheet", **after("index.html")},
                *leaves,
                {"id": "b.woff2", "bytes": 90000, "kind": "font", **after("a.css")},
            ],
        }
    )


def lossy(scheme: str = "rr", **more: Any) -> Any:
    network = "sander-2mbps-100ms-2pct"
    return h3sim.simulate("davies-meenan", scheme=scheme, network=network, **more)


def test_throughput_counts_what_arrived_and_apart_from_it_what_was_delivered() -> None:
    bins = time_series.bins_of(LOST_AND_SENT_AGAIN, 60.0)
    width_ms = bins[1].start_ms
    bytes_of = [
        {span.start_ms: round(span[column] * width_ms * 1000 / 8) for span in bins if span[column]}
        for column in (1, 2)
    ]
    # What comes at the end of the axis belongs to the last span.
    last = bins[-1].start_ms
    assert bytes_of == [{30.0: 1000, 40.0: 500, last: 1000}, {40.0: 500, last: 2000}]


def test_no_byte_that_arrived_is_left_out_of_the_throughput() -> None:
    load = lossy()
    columns = load.trace.packet_rows.columns
    for column, times in ((1, columns.arrived_at_ns), (2, columns.delivered_at_ns)):
        bins = time_series.bins_of(load.trace, load.page_load_ms)
        n_bytes = sum(span[column] * bins[1].start_ms * 1000 / 8 for span in bins)
        came = zip(times, columns.length_bytes, strict=True)
        assert n_bytes == pytest.approx(sum(n for at_ns, n in came if at_ns is not None))


def test_a_range_has_its_arrival_its_delivery_and_whether_it_was_retransmitted() -> None:
    assert [tuple(part) for part in time_series.ranges_of(LOST_AND_SENT_AGAIN)] == [
        (0, 30.0, 60.0, 1000, 1000, False),
        (4, 40.0, 40.0, 0, 500, False),
        (0, 60.0, 60.0, 0, 1000, True),
    ]


def test_what_was_sent_again_is_drawn_where_it_is_less_than_a_pixel_of_its_stream() -> None:
    again = [part for part in time_series.ranges_of(lossy().trace) if part.is_again]
    axes = lossy().plot.byte_ranges()
    (marks,) = (each for each in axes.collections if each.get_gid() == "ranges-again")
    axes.figure.set_dpi(60)
    canvas: Any = FigureCanvasAgg(axes.figure)
    canvas.draw()
    picture = numpy.asarray(canvas.buffer_rgba()).astype(int)[::-1, :, :3]
    colour = [round(255 * part) for part in to_rgb(marks.get_color()[0])]
    x, y = axes.transData.transform([line.mean(axis=0) for line in marks.get_segments()]).T
    found = picture[y.astype(int), x.astype(int)]
    assert len(found) == len(again) > 5
    assert abs(found - colour).max() < 20


def test_of_many_streams_the_largest_are_shown_in_request_order() -> None:
    n = time_series.MAX_STREAMS + 5
    trace = trace_of(*((k, k, 4 * k, 0, 100 + k % 7, k, k) for k in range(n)))
    shown = time_series.shown_streams(trace)
    assert shown == sorted(shown)
    assert len(shown) == time_series.MAX_STREAMS
    size = {request.stream_id: request.length_bytes for request in trace.requests}
    assert min(size[s] for s in shown) >= max(size[s] for s in size if s not in shown)


def test_the_window_and_what_is_in_flight_are_those_of_the_recovery() -> None:
    load = lossy(record_packets=True)
    samples = time_series.samples_of(load.trace)
    assert [s.bytes_in_flight for s in samples] == [r.bytes_in_flight for r in load.trace.recovery]
    assert sum(s.n_lost for s in samples) == sum(len(r.lost) for r in load.trace.recovery) > 0
    lines = {line.get_label(): line for line in load.plot.congestion().get_lines()}
    assert len(lines["declared lost"].get_xdata()) == sum(s.n_lost > 0 for s in samples)
    drawn = [float(kb) for kb in lines["congestion window"].get_ydata()]
    assert drawn == [s.congestion_window / 1000 for s in samples]


def test_without_a_record_of_the_recovery_there_is_no_window() -> None:
    with pytest.raises(NothingToMeasureError, match="record_packets=True"):
        h3sim.simulate("davies-meenan").plot.congestion()


def test_a_bar_is_how_much_sooner_or_later_a_resource_was_complete() -> None:
    loads = [h3sim.simulate("davies-meenan", scheme=name) for name in ("rr", "fifo")]
    rows = waterfall.deltas_of(*loads)
    times = [{row.id: row.finished_ms for row in load.timings} for load in loads]
    assert [row.delta_ms for row in rows] == [
        times[1][r.id] - times[0][r.id] for r in loads[0].page.resources
    ]
    ax: Any = LoadPlots(loads).deltas()
    (drawn,) = ax.containers
    bars = [bar.get_width() for bar in drawn]
    assert bars == [row.delta_ms for row in rows]
    labels = [text.get_text() for text in ax.texts]
    assert [float(label.replace(",", "")) for label in labels] == [round(bar) for bar in bars]
    unmoved: Any = LoadPlots([loads[0], loads[0]]).deltas()
    assert {text.get_text() for text in unmoved.texts} == {"0"}


def test_what_moved_is_drawn_of_two_loads_and_no_other_number() -> None:
    with pytest.raises(InputError, match="must be two"):
        h3sim.simulate("davies-meenan").plot.deltas()


def test_the_chain_leads_to_the_last_resource_and_each_of_a_few_has_a_box() -> None:
    load = h3sim.simulate(chain_page(), scheme="fifo")
    ids = [load.page.resources[index].id for index in trees.chain_of(load)]
    assert ids == ["index.html", "a.css", "b.woff2"]
    nodes = trees.nodes_of(load.page, trees.chain_of(load))
    assert [node.resources for node in nodes] == [(0,), (1,), (5,), (2,), (3,), (4,)]
    assert [node.is_on_chain for node in nodes] == [True, True, True, False, False, False]
    assert [node.parent for node in nodes] == [None, 0, 1, 0, 0, 0]


@pytest.mark.parametrize("name", ["davies-meenan", "http2rulez", "dijit-bidi-inheritance"])
def test_each_resource_stands_in_one_box_and_no_two_boxes_overlap(name: str) -> None:
    load = h3sim.simulate(name, scheme="fifo")
    nodes = trees.nodes_of(load.page, trees.chain_of(load))
    indexes = sorted(index for node in nodes for index in node.resources)
    assert indexes == list(range(len(load.page.resources)))
    assert len({(node.row, node.left) for node in nodes}) == len(nodes)
    for node in nodes:
        assert node.parent is None or nodes[node.parent].depth == node.depth - 1


def test_of_a_large_graph_what_is_deep_is_counted_and_not_drawn() -> None:
    page = h3sim.page.synthetic(seed=1, n_resources=600)
    nodes = trees.nodes_of(page)
    assert len(nodes) <= 100
    shown = sum(len(node.resources) for node in nodes)
    assert shown + sum(node.n_below for node in nodes) == 600
    chain = trees.chain_of(h3sim.simulate(page, scheme="fifo"))
    on_chain = [node.resources for node in trees.nodes_of(page, chain) if node.is_on_chain]
    assert on_chain == [(index,) for index in chain]


def test_the_chunks_of_a_bar_are_when_its_bytes_came() -> None:
    load = h3sim.simulate("davies-meenan", scheme="rr", reorder="4:1-3")
    rows = rows_of(load, Palette(load.page))
    columns = load.trace.packet_rows.columns
    for row, timing in zip(rows, load.timings, strict=True):
        came = sorted(
            at_ns / MS
            for at_ns, stream_id in zip(columns.delivered_at_ns, columns.stream_id, strict=True)
            if stream_id == timing.stream_id and at_ns is not None
        )
        assert (row.chunks[0].start_ms, row.chunks[-1].stop_ms) == (came[0], came[-1])
        assert all(any(low <= at <= high for low, high in row.chunks) for at in came)
        # Between two chunks at least one packet was another's.
        ends = zip(row.chunks, row.chunks[1:], strict=False)
        assert all(after.start_ms - before.stop_ms > 10 for before, after in ends)


def test_a_response_that_comes_in_one_piece_is_one_chunk() -> None:
    load = h3sim.simulate("davies-meenan", scheme="fifo")
    assert {len(row.chunks) for row in rows_of(load, Palette(load.page))} == {1}


def test_a_name_comes_with_its_priority_where_priorities_differ() -> None:
    labels = h3sim.simulate("davies-meenan", scheme="chrome-eps").plot.waterfall()
    assert [label.get_text().rpartition("  ")[2] for label in labels.get_yticklabels()][:2] == [
        "u=0,i",
        "u=1",
    ]
    plain = h3sim.simulate("davies-meenan", scheme="fifo").plot.waterfall().get_yticklabels()
    assert plain[0].get_text().endswith("index.html \N{BLACK UP-POINTING TRIANGLE}")


def test_a_waterfall_folds_by_kind_and_by_host() -> None:
    page = page_from_dict(
        {
            "format": "h3sim-page/1",
            "name": "hosts",
            "resources": [
                {"id": "https://a.test/", "bytes": 500, "kind": "document"},
                *(
                    {
                        "id": f"https://{host}.test/{n}.jpg",
                        "bytes": 500,
                        "kind": "image",
                        "discovered": {"by": "https://a.test/", "at": "request"},
                    }
                    for host in "ab"
                    for n in range(2)
                ),
            ],
        }
    )
    load = h3sim.simulate(page, scheme="fifo")
    names = [label.get_text() for label in load.plot.waterfall(fold="host").get_yticklabels()]
    assert names[:-1] == ["a.test, 3: 2 image, 1 document", "b.test, 2 x image"]
    assert len(load.plot.waterfall(fold="kind").get_yticklabels()) == 2 + 1
    with pytest.raises(InputError, match="'host' or 'kind'"):
        load.plot.waterfall(fold="colour")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "name", ["throughput", "byte_ranges", "dependencies", "congestion", "waterfall"]
)
def test_titles_state_page_scheme_and_network(name: str) -> None:
    load = lossy("chrome-eps", record_packets=True)
    title = getattr(load.plot, name)().get_title(loc="left")
    assert all(word in title for word in ("davies-meenan", "chrome-eps", "sander-2mbps"))


def _with_two_connections() -> h3sim.Load:
    early = {"by": "/", "at": "offset", "offset_bytes": 1000}
    page = page_of(
        {"id": "/", "kind": "document", "bytes": 20_000, "host": "shop.example"},
        {"id": "a.jpg", "kind": "image", "bytes": 80_000, "host": "img.example"}
        | {"discovered": early},
    )
    return h3sim.simulate(page, network="cable", connections="per-host", record_packets=True)


def test_each_connection_has_its_own_window() -> None:
    load = _with_two_connections()
    assert load.trace.recovery == ()
    for connection in load.connections:
        ax: Any = load.plot.congestion(connection=connection.number)
        (window,) = [each for each in ax.get_lines() if each.get_label() == "congestion window"]
        assert [float(kb) for kb in window.get_ydata()] == [
            row.congestion_window / 1000 for row in connection.trace.recovery
        ]
    # Without a number it is the one that carries most, and the title says which that is.
    title = load.plot.congestion().get_title(loc="left")
    assert title.startswith("Congestion window of connection 1 of 0 to 1 (img.example): page with")
    assert load.plot.alt_text("congestion").startswith("The window of connection 1 of 0 to 1 (img")
    with pytest.raises(InputError, match="connection: must be one of 0, 1, is 2"):
        load.plot.congestion(connection=2)


def test_a_report_has_the_window_of_each_connection() -> None:
    part = h3sim.report(_with_two_connections()).parts[0]
    windows = [each.title for each in part.pictures if "congestion window" in each.title]
    assert [title.rpartition(", ")[2] for title in windows] == [
        "connection 0 of 0 to 1 (shop.example)",
        "connection 1 of 0 to 1 (img.example)",
    ]


def test_a_changed_priority_is_shown_first_and_last() -> None:
    load = h3sim.simulate("davies-meenan", scheme="chrome-eps-2022", browser="parse")
    signals: dict[int, list[str]] = {}
    for _, stream_id, signal in load.trace.signals:
        signals.setdefault(stream_id, []).append(priority_text(signal))
    labels = [label.get_text() for label in load.plot.waterfall().get_yticklabels()]
    for timing, label in zip(load.timings, labels, strict=False):
        first, *_, last = [*signals[timing.stream_id], signals[timing.stream_id][-1]]
        shown = first if first == last else f"{first} \u2192 {last}"
        assert label.rpartition("  ")[2] == shown
    assert any("\u2192" in label for label in labels)


def test_the_axis_of_a_waterfall_reaches_to_the_largest_paint() -> None:
    load = h3sim.simulate("davies-meenan", scheme="chrome-eps", network="cable", browser="parse")
    assert load.largest_paint_ms is not None
    # It is painted some time after its last byte.
    assert load.largest_paint_ms > 1.005 * load.page_load_ms
    for ax in (load.plot.waterfall(), load.plot.figure().axes[-1]):
        assert ax.get_xlim()[1] >= load.largest_paint_ms


def test_a_waterfall_shows_what_the_link_and_the_main_thread_did() -> None:
    page = h3sim.page.synthetic(seed=1, n_resources=46)
    load = h3sim.simulate(page, scheme="chrome-eps", network="cable", browser="parse")
    ax: Any = load.plot.waterfall()
    *_, bandwidth, main_thread = [label.get_text() for label in ax.get_yticklabels()]
    assert main_thread == "main thread"
    (area,) = [patch for patch in ax.patches if patch.get_gid() == "bandwidth"]
    tops, edges, bottom = area.get_data()
    least_ms = 10 * load.network.packet_interval_ns / MS
    bins = time_series.bins_of(load.trace, window_of([load]).end_ms, min_width_ms=least_ms)
    mbps = [span.arrived_mbps for span in bins]
    assert f"up to {max(mbps):.3g} Mbit/s" in bandwidth
    assert max(mbps) <= 5  # cable
    assert edges[:-1] == pytest.approx([span.start_ms for span in bins])
    heights = [float(bottom - top) for top in tops]
    assert heights == pytest.approx([each * max(heights) / max(mbps) for each in mbps])
    busy = {
        collection.get_gid(): sum(path.get_extents().width for path in collection.get_paths())
        for collection in ax.collections
        if (collection.get_gid() or "").startswith("main-thread")
    }
    spent: dict[str, float] = {}
    for each in load.trace.activities:
        if each.work.is_computation and each.ended_at_ns > each.began_at_ns:
            gid = f"main-thread-{each.work.value}"
            spent[gid] = spent.get(gid, 0.0) + (each.ended_at_ns - each.began_at_ns) / MS
    assert busy == pytest.approx(spent)
    assert len(busy) >= 2


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_transferred_bytes_are_those_of_the_wire(transport: str) -> None:
    load = h3sim.simulate(
        "davies-meenan", scheme="rr", network="cable", loss=0.03, record_packets=True,
        transport=transport,
    )  # fmt: skip
    trace = load.connections[0].trace
    rows = time_series.transferred_of(trace)
    sizes = {row.number: row.size_bytes for row in trace.wire if row.is_down}
    acked = {
        number
        for row in trace.wire
        if not row.is_down and row.arrived_at_ns is not None
        for low, high in row.acked
        for number in range(low, high + 1)
    }
    lost = [number for row in trace.recovery for number in row.lost]
    assert rows[-1].sent == sum(sizes.values())
    assert rows[-1].acknowledged == sum(sizes.get(number, 0) for number in acked)
    assert rows[-1].lost == sum(sizes.get(number, 0) for number in lost)
    assert (rows[-1].lost > 0) == (transport == "quic")
    for before, after in pairwise(rows):
        assert all(low <= high for low, high in zip(before, after, strict=True))
        assert after.acknowledged <= after.sent
    labels = [line.get_label() for line in load.plot.transferred().get_lines()]
    assert labels == ["sent", "acknowledged", *["declared lost"] * (transport == "quic")]


def test_round_trip_times_begin_with_the_first_sample() -> None:
    load = h3sim.simulate("davies-meenan", network="cable", record_packets=True)
    rows = time_series.rtt_rows_of(load.trace)
    # RFC 9002 guesses 333 ms before: cable has 28 ms, and its queue.
    assert load.trace.recovery[0].latest_rtt_ns == 333 * MS
    assert all(28 * MS <= row.latest_rtt_ns < 333 * MS for row in rows)
    ax: Any = load.plot.rtt()
    latest, smoothed, least = ax.get_lines()
    assert list(latest.get_ydata()) == pytest.approx([row.latest_rtt_ns / MS for row in rows])
    assert list(smoothed.get_ydata()) == pytest.approx([row.smoothed_rtt_ns / MS for row in rows])
    assert min(least.get_ydata()) >= 28
    with pytest.raises(NothingToMeasureError, match="no recovery was recorded"):
        h3sim.simulate("davies-meenan", network="cable").plot.rtt()
