"""Network logs of Chromium: requests, redirects, priorities and connections."""

from __future__ import annotations

import asyncio
import json
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.importers.chromium import Timeouts
from h3sim.importers.chromium.browser import find_chromium, running_chromium
from h3sim.importers.chromium.navigation import visit
from h3sim.importers.chromium.web_server import Site, address_of, served
from h3sim.importers.detect import read_recording
from h3sim.importers.path_estimation import path_of
from h3sim.importers.recorded_request import RequestOutcome
from tests.recordings import (
    SAMPLES,
    SITE,
    net_event,
    net_log,
    net_request,
    resources_of,
    write_recording,
)
from tests.unit.recorded_site import png

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from h3sim import Page
    from h3sim.importers.chromium.navigation import Navigation
    from h3sim.importers.recorded_request import RecordedRequest

PAGE = net_request(1, "/", 1000, "text/html", type_="main frame")
IMAGE = net_request(2, "/a.png", 1100, "image/png", f"referer: {SITE}/", "sec-fetch-dest: image")


def requests_of(folder: Path, *events: dict[str, Any]) -> list[RecordedRequest]:
    return read_recording(write_recording(folder, net_log(*events))).requests


def test_the_first_request_of_a_connection_has_its_handshake(tmp_path: Path) -> None:
    found = read_recording(write_recording(tmp_path, SAMPLES["net-log"])).requests
    assert [each.reached.handshake_ms for each in found] == [40, None, None]
    assert {(each.reached.connection, each.reached.ip) for each in found} == {("90", "192.0.2.1")}


def test_a_changed_priority_has_its_time(tmp_path: Path) -> None:
    changed = net_event("URL_REQUEST_SET_PRIORITY", 1130, 2, priority="HIGHEST")
    image = requests_of(tmp_path, *PAGE, *IMAGE[:6], changed, *IMAGE[6:])[1]
    assert image.priority == "high"
    assert image.later_priorities == ((1130, "veryhigh"),)


def test_a_redirect_is_a_request_of_its_own(tmp_path: Path) -> None:
    alive, _, _, fields = PAGE[:4]
    job = {"url": f"{SITE}/old", "request_type": "main frame"}
    moved = [
        net_event("URL_REQUEST_START_JOB", 900, 1, 1, **job, network_isolation_key=f"{SITE} x"),
        fields,
        net_event("HTTP_TRANSACTION_READ_RESPONSE_HEADERS", 950, 1, headers=["HTTP/1.1 301"]),
        net_event("URL_REQUEST_REDIRECTED", 960, 1, location=f"{SITE}/"),
    ]
    events = [alive | {"time": "900"}, *moved, *PAGE[1:]]
    first, second = requests_of(tmp_path, *events)
    assert (first.url, first.status, first.body_bytes, first.end_ms) == (f"{SITE}/old", 301, 0, 960)
    assert (second.redirect_of, second.start_ms) == (0, 1000)
    parents = {
        id_: each.get("discovered", {}).get("by")
        for id_, each in resources_of(tmp_path, net_log(*events, *IMAGE)).items()
    }
    assert parents == {"old": None, "/": "old", "a.png": "/"}


def test_requests_of_other_tabs_and_of_the_browser_are_left_out(tmp_path: Path) -> None:
    own = net_request(5, "/update", 1050, "text/plain", network_isolation_key="null null")
    tab = net_request(6, "/b.png", 1060, "image/png", network_isolation_key="https://b x")
    recording = read_recording(write_recording(tmp_path, net_log(*PAGE, *own, *tab, *IMAGE)))
    assert [each.url for each in recording.requests] == [
        f"{SITE}/?q=SECRET",
        f"{SITE}/a.png?q=SECRET",
    ]
    assert recording.left_out["of the browser or another tab"] == 2


def test_each_page_of_a_log_can_be_chosen(tmp_path: Path) -> None:
    later = net_request(7, "/next", 5000, "text/html", type_="main frame")
    path = write_recording(tmp_path, net_log(*PAGE, *IMAGE, *later))
    ids = [
        [resource.id for resource in import_page(path, page=number).page.resources]
        for number in (1, 2)
    ]
    assert ids == [["/", "a.png"], ["next"]]
    with pytest.raises(ValueError, match="no page 3"):
        import_page(path, page=3)


def test_old_logs_mark_the_page_by_a_load_flag(tmp_path: Path) -> None:
    old = [json.loads(json.dumps(event)) for event in (*PAGE, *IMAGE)]
    for event in old:
        for name in ("request_type", "network_isolation_key"):
            event["params"].pop(name, None)
    old[1]["params"]["load_flags"] = 256 + 2
    assert [*resources_of(tmp_path, net_log(*old))] == ["/", "a.png"]


@pytest.mark.parametrize(
    "event",
    [
        net_event("FAILED", 1150, 2, net_error=-100),
        net_event("HTTP_TRANSACTION_READ_BODY", 1150, 2, 2, net_error=-100),
        net_event("REQUEST_ALIVE", 1150, 2, 2, net_error=-100),
    ],
)
def test_a_request_that_fails_is_left_out(tmp_path: Path, event: dict[str, Any]) -> None:
    image = requests_of(tmp_path, *PAGE, *IMAGE[:9], event)[1]
    assert image.outcome is RequestOutcome.FAILED


def test_what_was_not_sent_came_from_the_cache(tmp_path: Path) -> None:
    cached = [IMAGE[0], IMAGE[1], IMAGE[-1]]
    assert requests_of(tmp_path, *PAGE, *cached)[1].outcome is RequestOutcome.CACHE


def over_http3(
    data: list[tuple[int, int, int]], frames: list[tuple[int, int, int]]
) -> list[dict[str, Any]]:
    """Return the events of a request over HTTP/3.

    *data* are the times, streams and sizes of DATA frames, and *frames* the times, offsets and
    lengths of STREAM frames.
    """
    sent = net_event("HTTP_TRANSACTION_QUIC_SEND_REQUEST_HEADERS", 1005, 1, headers=["a: b"])
    sent["params"]["quic_stream_id"] = 0
    end_ms = max(at_ms for at_ms, *_ in data)
    return [
        net_event("QUIC_SESSION", 970, 80, 1, peer_address="[2001:db8::1]:443"),
        net_event("QUIC_SESSION_CRYPTO_HANDSHAKE_COMPLETE", 1000, 80),
        *PAGE[:2],
        net_event("HTTP_STREAM_REQUEST_BOUND_TO_QUIC_SESSION", 1001, 1)
        | {"params": {"source_dependency": {"id": 80}}},
        sent,
        PAGE[6],
        *(
            net_event(
                *("HTTP3_DATA_FRAME_RECEIVED", at_ms, 80), stream_id=stream_id, payload_length=size
            )
            for at_ms, stream_id, size in data
        ),
        *(
            net_event(
                *("QUIC_SESSION_STREAM_FRAME_RECEIVED", at_ms, 80),
                stream_id=0,
                offset=offset,
                length=length,
            )
            for at_ms, offset, length in frames
        ),
        net_event("HTTP_TRANSACTION_READ_BODY", end_ms, 1, 2),
        net_event("REQUEST_ALIVE", end_ms + 1, 1, 2),
    ]


DATA = [(1070, 0, 700), (1071, 4, 99), (1080, 0, 300)]


def test_http3_frames_have_the_size_of_the_body(tmp_path: Path) -> None:
    # A gap is filled later, and the last frame comes twice.
    frames = [(1070, 0, 250), (1070, 700, 350), (1080, 250, 450), (1081, 250, 450)]
    (page,) = requests_of(tmp_path, *over_http3(DATA, frames))
    assert (page.protocol, page.body_bytes, page.reached.handshake_ms) == ("h3", 1000, 30)
    # The first 50 bytes are the fields of the response.
    assert [n_bytes for _, n_bytes in page.pieces] == [200, 350, 450]
    assert page.reached.ip == "2001:db8::1"


def test_bytes_that_are_sent_again_in_other_frames_count_once(tmp_path: Path) -> None:
    frames = [(1070, 0, 250), (1070, 700, 350), (1080, 150, 400), (1081, 450, 500)]
    (page,) = requests_of(tmp_path, *over_http3(DATA, frames))
    assert [n_bytes for _, n_bytes in page.pieces] == [200, 350, 300, 150]


def test_frames_of_one_millisecond_keep_their_order(tmp_path: Path) -> None:
    frames = [(1070, 0, 250), (1070, 700, 350), (1080, 250, 450)]
    (page,) = requests_of(tmp_path, *over_http3(DATA, frames))
    assert [at_ms for at_ms, _ in page.pieces] == pytest.approx([1070, 1070 + 1e-6, 1080], abs=1e-7)


def test_the_rate_is_that_of_all_frames_of_a_millisecond(tmp_path: Path) -> None:
    times = [1070 + number // 4 for number in range(400)]
    frames = [(at_ms, 1200 * number, 1200) for number, at_ms in enumerate(times)]
    requests = requests_of(tmp_path, *over_http3([(times[-1], 0, 480_000)], frames))
    path = path_of(requests, 0)
    assert path is not None
    # Four packets of 1,200 bytes and their headers.
    assert path.rate_bps == pytest.approx(40e6, rel=0.02)


def test_the_rate_of_http2_is_that_of_all_frames_of_a_millisecond(tmp_path: Path) -> None:
    windows = [
        net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", 1070 + number // 4, 1, delta=-8000)
        for number in range(400)
    ]
    ends = [
        net_event("HTTP_TRANSACTION_READ_BODY", 1170, 1, 2),
        net_event("REQUEST_ALIVE", 1171, 1, 2),
    ]
    path = path_of(requests_of(tmp_path, *PAGE[:8], *windows, *ends), 0)
    assert path is not None
    # Four records of 8,000 bytes, which take 22 packets with headers of 58 bytes.
    assert path.rate_bps == pytest.approx(266e6, rel=0.02)


def test_bytes_of_the_millisecond_of_a_request_arrived_before_it(tmp_path: Path) -> None:
    windows = [
        net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", at_ms, 1, delta=-200)
        for at_ms in (1080, 1080, 1080, 1090, 1100)
    ]
    image = net_request(2, "/a.png", 1080, "image/png", f"referer: {SITE}/")
    page = resources_of(tmp_path, net_log(*PAGE[:8], *windows, *image, *PAGE[-2:]))
    assert page["a.png"]["discovered"]["offset_bytes"] == 600


def test_a_log_that_was_cut_off_has_what_came_before(tmp_path: Path) -> None:
    text = json.dumps(net_log(*PAGE, *IMAGE)).partition(', "polledData"')[0]
    imported = import_page(write_recording(tmp_path, text.removesuffix("]")))
    assert len(imported.page.resources) == 2


# One load in a real Chromium, in four formats


INDEX = """<!doctype html><html><head><title>x</title><link rel="icon" href="data:,">
<link rel="stylesheet" href="main.css"><script defer src="app.js"></script></head>
<body><h1>x</h1><img src="a.png" width="300" height="200"></body></html>"""
LATE = """function late() {
  const added = document.createElement("script")
  added.src = "late.js"
  document.head.append(added)
}
fetch("data.json")
setTimeout(late, 100)"""


def write_small_site(site: Path) -> None:
    site.mkdir()
    (site / "index.html").write_text(INDEX)
    (site / "main.css").write_text("h1 { background: url(back.png) }")
    (site / "app.js").write_text(LATE)
    (site / "data.json").write_text("{}")
    (site / "late.js").write_text("var late = 1")
    for name in ("a.png", "back.png"):
        (site / name).write_bytes(png(64, 48))


@pytest.fixture(scope="module", name="load")
def _load(tmp_path_factory: pytest.TempPathFactory) -> tuple[Navigation, Path, str]:
    """Return what DevTools and the trace say of a load, and its network log."""
    folder = tmp_path_factory.mktemp("load")
    site, log = folder / "site", folder / "netlog.json"
    write_small_site(site)
    with served(Site(site, "none")) as base:
        flags = (f"--log-net-log={log}",)
        with running_chromium(find_chromium(), local_only=True, flags=flags) as address:
            seen = visit(address, address_of(base, "index.html"), Timeouts(late_s=2.0))
    return seen, log, base


@contextmanager
def served_over_http3(site: Site, folder: Path) -> Iterator[int]:
    """Serve *site* with aioquic; yield its port."""
    quic = pytest.importorskip("aioquic.asyncio")
    h3 = pytest.importorskip("aioquic.h3.connection")
    events = pytest.importorskip("aioquic.h3.events")
    certificates = pytest.importorskip("validation.http2_site")  # needs h2
    from aioquic.quic.configuration import QuicConfiguration

    class Handler(quic.QuicConnectionProtocol):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: Any, **more: Any) -> None:
            super().__init__(*arguments, **more)
            self._http: Any = None

        def quic_event_received(self, event: Any) -> None:
            # The connection is ready for HTTP/3 once TLS has agreed on it.
            if self._http is None and type(event).__name__ == "ProtocolNegotiated":
                self._http = h3.H3Connection(self._quic)
            for each in [] if self._http is None else self._http.handle_event(event):
                if isinstance(each, events.HeadersReceived):
                    self._respond(each.stream_id, dict(each.headers)[b":path"].decode())
            self.transmit()

        def _respond(self, stream_id: int, target: str) -> None:
            answer = site.answer(target)
            head = [(b":status", str(answer.status.value).encode())]
            head += [(name.lower().encode(), value.encode()) for name, value in answer.fields]
            self._http.send_headers(stream_id, head)
            self._http.send_data(stream_id, answer.body, end_stream=True)

    names = [folder / "certificate.pem", folder / "key.pem"]
    for path, content in zip(names, certificates.site_certificate(), strict=False):
        path.write_bytes(content)
    configuration = QuicConfiguration(is_client=False, alpn_protocols=h3.H3_ALPN)
    configuration.load_cert_chain(*map(str, names))
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        started = quic.serve("127.0.0.1", 0, configuration=configuration, create_protocol=Handler)
        server = asyncio.run_coroutine_threadsafe(started, loop).result(timeout=30)
        yield server._transport.get_extra_info("sockname")[1]

        async def close() -> None:
            server.close()
            await asyncio.sleep(0.01)  # the transport closes its socket in the next turn

        asyncio.run_coroutine_threadsafe(close(), loop).result(timeout=30)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


@pytest.mark.chromium
def test_a_load_over_http3_has_one_graph_in_both_logs(tmp_path: Path) -> None:
    site, log = tmp_path / "site", tmp_path / "netlog.json"
    write_small_site(site)
    with served_over_http3(Site(site, "none"), tmp_path) as port:
        from validation.http2_site import flag_of_certificate  # needs h2

        quic = f"--origin-to-force-quic-on=127.0.0.1:{port}"
        flags = (flag_of_certificate(), quic, "--enable-quic", f"--log-net-log={log}")
        with running_chromium(find_chromium(), local_only=True, flags=flags) as address:
            url = address_of(f"https://127.0.0.1:{port}", "index.html")
            seen = visit(address, url, Timeouts(late_s=2.0))
    protocol = [{"method": event.method, "params": event.params} for event in seen.events]
    path = write_recording(tmp_path, protocol, "protocol.json")
    requests = read_recording(log).requests
    assert {each.protocol for each in requests if each.outcome is RequestOutcome.ANSWERED} == {"h3"}
    graphs = [graph_of(import_page(each).page) for each in (log, path)]
    assert set(graphs[0]) == {
        *("index.html", "main.css", "app.js", "a.png", "back.png", "data.json", "late.js")
    }
    # As over HTTP/1.1: a network log has no stack.
    assert graphs[0].pop("late.js")[0] == graphs[1].pop("late.js")[0]
    assert graphs[0] == graphs[1]


def graph_of(page: Page) -> dict[str, tuple[int, str | None]]:
    return {
        each.id: (
            each.size_bytes,
            None if each.discovered is None else each.discovered.first_parent,
        )
        for each in page.resources
    }


def _formats(seen: Navigation, log: Path, folder: Path) -> dict[str, Path]:
    """Return the files of one load: what Chromium recorded, and a HAR and a result of it."""
    protocol = [{"method": event.method, "params": event.params} for event in seen.events]
    exchanges = read_recording(write_recording(folder, protocol, "protocol.json")).requests
    entries, results = [], []
    for each in exchanges:
        start_ms = each.start_ms or 0.0
        first_ms, end_ms = each.first_byte_ms or start_ms, each.end_ms or start_ms
        entries.append(
            {
                "startedDateTime": f"2026-01-01T00:00:{start_ms % 6e4 / 1e3:09.6f}Z",
                "time": end_ms - start_ms,
                "request": {"method": each.method, "url": each.url, "headers": []},
                "response": {"status": each.status, "headers": [], "bodySize": each.body_bytes,
                             "headersSize": each.header_bytes,
                             "content": {"mimeType": each.mime, "size": each.body_bytes}},
                "timings": {"send": 0, "wait": first_ms - start_ms, "receive": end_ms - first_ms},
                "_initiator": {"type": each.initiator_type, "url": each.initiator,
                               "stack": {"callFrames": [{"url": url} for url in each.stack]}},
                "_resourceType": each.kind and each.kind.value,
            }
        )  # fmt: skip
        results.append(
            {
                "full_url": each.url, "method": each.method, "responseCode": each.status,
                "contentType": each.mime, "objectSize": each.body_bytes, "all_start": start_ms,
                "ttfb_ms": first_ms - start_ms, "download_ms": end_ms - first_ms,
                "all_ms": end_ms - start_ms, "load_start": start_ms,
                "initiator": each.initiator or next(iter(each.stack), ""),
            }
        )  # fmt: skip
    run = {"firstView": {"requests": results, "date": 1_780_000_000}}
    har = {"log": {"version": "1.2", "creator": {"name": "WebInspector"}, "entries": entries}}
    return {
        "HAR": write_recording(folder, har, "load.har"),
        "trace": write_recording(folder, {"traceEvents": seen.trace}, "trace.json"),
        "protocol": folder / "protocol.json",
        "WebPageTest": write_recording(
            folder, {"data": {"runs": {"1": run}, "median": run}}, "result.json"
        ),
        "NetLog": log,
    }


@pytest.mark.chromium
def test_one_load_has_one_graph_in_every_format(
    load: tuple[Navigation, Path, str], tmp_path: Path
) -> None:
    seen, log, _ = load
    graphs = {}
    for name, path in _formats(seen, log, tmp_path).items():
        graphs[name] = graph_of(import_page(path).page)
    assert {id_: by for id_, (_, by) in graphs["protocol"].items()} == {
        "index.html": None, "main.css": "index.html", "app.js": "index.html",
        "a.png": "index.html", "back.png": "main.css", "data.json": "app.js", "late.js": "app.js",
    }  # fmt: skip
    for name in ("HAR", "trace", "WebPageTest"):
        assert graphs[name] == graphs["protocol"], name
    # A network log has no stack: of a script that another one inserts it does not know the parent.
    n_bytes, parent = graphs["protocol"].pop("late.js")
    assert (n_bytes, parent) == (12, "app.js")
    assert graphs["NetLog"].pop("late.js")[0] == n_bytes
    assert graphs["NetLog"] == graphs["protocol"]
