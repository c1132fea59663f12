"""`h3sim identify` names the scheduler behind a log; `h3sim workload` tells them apart."""

from __future__ import annotations

import itertools
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.export.qlog_file import write_load_qlog
from h3sim.identification import identification
from h3sim.identification.identification import (
    candidates_for,
    identification_of,
    identify,
    needed_responses,
    predictions,
)
from h3sim.identification.mechanism import Mechanism
from h3sim.identification.send_order import send_orders
from h3sim.identification.workload import EPS_WORKLOAD, TREE_WORKLOAD, order_by, write_workload
from h3sim.page import page_from_dict, read_page
from h3sim.qlog.lost_packets import LostRoom, Missing
from h3sim.schedulers import Mixed, Quantum
from h3sim.schemes import SchedulerKind
from h3sim.values.errors import InputError
from tests.effort import some
from tests.recordings import net_event, net_log, net_request
from tests.schemas import schema_problems

if TYPE_CHECKING:
    from pathlib import Path

FIFO = Mechanism(kind=SchedulerKind.FIFO)
ROUND_ROBIN = Mechanism(kind=SchedulerKind.ROUND_ROBIN, turn=Quantum())
EPS = tuple(Mechanism(kind=SchedulerKind.EPS, mixed=mixed, turn=Quantum()) for mixed in Mixed)
TREES = tuple(
    Mechanism(kind=kind)
    for kind in (
        *(SchedulerKind.TREE, SchedulerKind.NGHTTP2_TREE),
        *(SchedulerKind.H2O_CALENDAR, SchedulerKind.ATS_HEAP),
    )
)


def logged(path: Path, page: str = "davies-meenan", **options: Any) -> Path:
    load = h3sim.simulate(page, record_packets=True, **options)
    write_load_qlog(load, path)
    return path


def server_log(path: Path, order: str, **more: list[tuple[float, str, dict[str, Any]]]) -> Path:
    """Write the qlog of a server that sends a packet per letter of *order*, one per ms.

    Streams are a, b, c ...; all are requested at 0 but a, which is requested alone at -10.
    """
    ids = {letter: 4 * index for index, letter in enumerate(sorted(set(order)))}
    events: list[tuple[float, str, dict[str, Any]]] = []
    for letter, stream_id in ids.items():
        at_ms = -10.0 if letter == "a" else 0.0
        headers = [{"name": ":path", "value": f"/{letter}"}]
        frame = {"frame_type": "headers", "headers": headers}
        events.append((at_ms, "http:frame_parsed", {"stream_id": stream_id, "frame": frame}))
    offsets = dict.fromkeys(ids, 0)
    for number, letter in enumerate(order):
        frames = [
            {
                "frame_type": "stream",
                "stream_id": ids[letter],
                "offset": offsets[letter],
                "length": 1000,
            }
        ]
        header = {"packet_type": "1RTT", "packet_number": number}
        at_ms = -10.0 if not number else float(number)
        events.append((at_ms, "transport:packet_sent", {"header": header, "frames": frames}))
        offsets[letter] += 1000
    events += more.get("more", [])
    events.sort(key=lambda event: event[0])
    trace = {
        "vantage_point": {"type": "server"},
        "common_fields": {"time_format": "relative", "reference_time": 0},
        "events": [{"time": at, "name": name, "data": data} for at, name, data in events],
    }
    path.write_text(json.dumps({"qlog_version": "0.3", "traces": [trace]}))
    return path


BY_SIDE = [
    ("rr", "round-robin", 1),
    ("rr", "round-robin", 2),
    ("chrome-eps", "eps, non-incremental-first", 1),
    ("chrome-eps", "eps, non-incremental-first", 2),
    ("google-quiche", "eps, all-share", 1),
    ("google-quiche", "eps, all-share", 2),
    # Not from the client's side: it cannot know when streams joined a tree of virtual times.
    ("firefox-h2", "tree", 1),
]


@pytest.mark.parametrize(
    ("scheme", "mechanism", "trace"),
    some([BY_SIDE[0], *BY_SIDE[2:4], BY_SIDE[-1]], BY_SIDE),
)
def test_a_load_with_losses_is_named_from_both_sides(
    tmp_path: Path, scheme: str, mechanism: str, trace: int
) -> None:
    options = {"network": "sander-5mbps-100ms", "transport_profile": "default", "loss": 0.01}
    log = logged(tmp_path / "load.qlog", "http2rulez", scheme=scheme, **options)
    found = identify(log, trace=trace)
    assert found.candidates == (mechanism,)
    assert found.share > 0.9
    assert found.heeds_signals is (None if scheme == "rr" else True)


def test_the_server_s_log_is_explained_without_a_contradiction(tmp_path: Path) -> None:
    options = {"network": "sander-2mbps-100ms-2pct", "transport_profile": "quicly-chrome"}
    found = identify(logged(tmp_path / "load.qlog", scheme="chrome-eps", **options))
    assert (found.share, len(found.contradictions)) == (1.0, 0)
    assert found.retransmissions == ("turn",)
    assert found.requeues is True
    assert found.runner_up is not None
    assert found.runner_up.percent < 90


def test_what_is_sent_decides_by_hand(tmp_path: Path) -> None:
    fifo = identify(server_log(tmp_path / "fifo.qlog", "aa" + "b" * 20 + "c" * 20))
    assert fifo.candidates == ("fifo",)
    turns = identify(server_log(tmp_path / "turns.qlog", "aa" + "bc" * 20))
    assert (turns.candidates, turns.quantum) == (("round-robin",), "1 packet")
    batches = identify(server_log(tmp_path / "batches.qlog", "aa" + "bbbbcccc" * 8))
    assert batches.candidates == ("round-robin",)
    assert "4 packets" in batches.quantum


@pytest.mark.parametrize("side", ["server", "client"])
def test_over_several_paths_only_the_server_s_log_has_the_order(tmp_path: Path, side: str) -> None:
    path = server_log(tmp_path / "turns.qlog", "aa" + "bc" * 20)
    document = json.loads(path.read_text())
    (trace,) = document["traces"]
    trace["vantage_point"]["type"] = side
    numbers = [0, 0]
    sent = [event for event in trace["events"] if event["name"] == "transport:packet_sent"]
    for index, event in enumerate(sent):
        # Three packets on each path in turn, which tells nothing of the streams.
        event["path_id"] = index // 3 % 2
        event["data"]["header"]["packet_number"] = numbers[event["path_id"]]
        numbers[event["path_id"]] += 1
        if side == "client":
            event["name"] = "transport:packet_received"
    frames = [{"frame_type": "mp_ack", "path_id": 1, "acked_ranges": [[0, 2]]}]
    header = {"packet_type": "1RTT", "packet_number": 0}
    name = "transport:packet_received" if side == "server" else "transport:packet_sent"
    acked = {"time": 8.5, "name": name, "data": {"header": header, "frames": frames}}
    trace["events"] = sorted([*trace["events"], acked], key=lambda event: event["time"])
    path.write_text(json.dumps(document))
    if side == "client":
        with pytest.raises(InputError, match="the order of sending is in the server's"):
            identify(path)
    else:
        found = identify(path)
        assert (found.candidates, found.quantum) == (("round-robin",), "1 packet")


@pytest.mark.parametrize(("rounds", "names"), [(4, ()), (9, ("round-robin",))])
def test_a_server_s_order_with_exceptions_is_named_if_these_are_fewer_than_one_in_forty(
    tmp_path: Path, rounds: int, names: tuple[str, ...]
) -> None:
    # Of 6 * rounds + 1 picks one repeats the stream before.
    found = identify(server_log(tmp_path / "a.qlog", "aa" + ("bcdefg" * rounds + "b") * 6))
    assert found.candidates == names
    assert found.rows[0].mechanism == "round-robin"
    assert found.saved > 0.7


def test_the_quantum_is_not_guessed_where_none_ends(tmp_path: Path) -> None:
    found = identify(logged(tmp_path / "load.qlog", scheme="chrome-eps-2022"))
    assert found.quantum == ""


def test_an_order_that_no_mechanism_has_is_not_named(tmp_path: Path) -> None:
    newest_first = "aa" + "b" * 3 + "".join(f"{letter}" * 20 for letter in "gfedc")
    found = identify(server_log(tmp_path / "last.qlog", newest_first))
    assert found.candidates == ()
    assert found.mechanism is None


def test_a_log_without_priorities_is_not_taken_for_one_of_an_unknown_scheduler(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newest_first = "aa" + "b" * 3 + "".join(f"{letter}" * 20 for letter in "gfedc")
    log = server_log(tmp_path / "last.qlog", newest_first)
    assert not identify(log).order.has_signals
    assert main(["identify", str(log)]) == 0
    assert "this log has none" in capsys.readouterr().out


def test_without_priorities_no_mechanism_is_tried_that_needs_them(tmp_path: Path) -> None:
    (order, *_) = send_orders(server_log(tmp_path / "turns.qlog", "aa" + "bc" * 20))
    assert order.signals
    assert not any(each.heeds_signals for each in candidates_for(order))


def test_a_log_that_would_take_too_long_is_compared_in_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = server_log(tmp_path / "long.qlog", "aa" + "bc" * 200)
    whole = identify(log)
    monkeypatch.setattr(identification, "_MOST_REPLAYED", 400)
    part = identify(log)
    assert whole.candidates == part.candidates == ("round-robin",)
    assert part.n_choices < whole.n_choices // 2
    assert [each for each in part.unknown if "not tried" in each]
    assert not [each for each in whole.unknown if "not tried" in each]


def test_one_response_at_a_time_decides_nothing(tmp_path: Path) -> None:
    found = identify(server_log(tmp_path / "one.qlog", "a" * 20))
    assert found.n_choices == 0
    assert len(found.candidates) != 1


def test_a_stream_that_flow_control_blocks_is_not_expected(tmp_path: Path) -> None:
    limited: list[tuple[float, str, dict[str, Any]]] = [
        (
            -20.0,
            "transport:parameters_set",
            {"owner": "remote", "initial_max_stream_data_bidi_local": 5000},
        ),
        (
            25.5,
            "transport:packet_received",
            {
                "header": {"packet_type": "1RTT", "packet_number": 9},
                "frames": [{"frame_type": "max_stream_data", "stream_id": 4, "maximum": 99_000}],
            },
        ),
    ]
    order = "aa" + "bbbbb" + "ccccc" + "ddddd" + "eeeee" + "fff" + "b" * 20 + "ff"
    found = identify(server_log(tmp_path / "blocked.qlog", order, more=limited))
    assert found.candidates == ("fifo",)
    assert found.share == 1.0


def test_mechanisms_that_a_log_does_not_tell_apart_are_all_named(tmp_path: Path) -> None:
    found = identify(logged(tmp_path / "load.qlog", scheme="chrome-eps-2022"))
    assert found.mechanism is None
    assert {"eps, non-incremental-first", "eps, halves"} <= set(found.candidates)
    assert all("u=" in row.needs for row in found.differences)


def test_the_chunks_of_a_har_are_enough(tmp_path: Path) -> None:
    load = h3sim.simulate("http2rulez", scheme="rr")
    path = tmp_path / "load.har"
    path.write_text(json.dumps(load.to_har()))
    found = identify(path)
    assert (found.source, found.candidates) == ("HAR", ("round-robin",))
    with zipfile.ZipFile(tmp_path / "load.har.zip", "w") as archive:
        archive.write(path, "load.har")
    zipped = identify(tmp_path / "load.har.zip")
    assert (zipped.source, zipped.candidates) == (found.source, found.candidates)
    with pytest.raises(InputError, match="trace"):
        identify(path, trace=1)


def test_the_mistakes_in_a_har_are_listed(tmp_path: Path) -> None:
    load = h3sim.simulate("http2rulez", scheme="rr", network="cable", transport="quic")
    document = load.to_har()
    document["log"]["entries"][1]["_chunks"][0]["ts"] = "soon"
    document["log"]["entries"][2]["_chunks"] = 5
    path = tmp_path / "load.har"
    path.write_text(json.dumps(document))
    unknown = identify(path).unknown
    assert "log.entries[1]._chunks[0].ts: must be a number, is 'soon'" in unknown
    assert "log.entries[2]._chunks: must be a list, is 5" in unknown


def test_a_network_log_of_a_browser_is_read(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = []
    for number in range(1, 5):
        *request, first, last, body, alive = net_request(
            number, f"/{number}", 1000, "text/html", type_="main frame" if number == 1 else "other"
        )
        events += request
        del first, last, body, alive
    for number in range(120):
        window = net_event("HTTP2_STREAM_UPDATE_RECV_WINDOW", 1100, number % 4 + 1, delta=-1400)
        events.append(window)
    path = tmp_path / "net.json"
    path.write_text(json.dumps(net_log(*events)))
    found = identify(path)
    # All have the same millisecond, and the order of the log.
    assert (found.source, found.candidates, found.share) == ("network", ("round-robin",), 1.0)


def test_a_client_of_nghttp3_shows_its_turns_of_800_bytes() -> None:
    mechanism = Mechanism(
        kind=SchedulerKind.EPS, mixed=Mixed.SHARED_LIST, turn=Quantum(size_bytes=800)
    )
    found = identification_of([order_by(mechanism, EPS_WORKLOAD)])
    assert (found.mechanism, found.share) == ("eps, shared-list", 1.0)


def test_updates_are_found_to_be_heeded_or_ignored() -> None:
    for heeds in (True, False):
        mechanism = Mechanism(
            kind=SchedulerKind.EPS,
            mixed=Mixed.NON_INCREMENTAL_FIRST,
            turn=Quantum(),
            heeds_updates=heeds,
        )
        found = identification_of([order_by(mechanism, EPS_WORKLOAD)])
        assert found.mechanism == "eps, non-incremental-first"
        assert found.heeds_updates is heeds


@pytest.mark.parametrize(
    ("mechanisms", "requests"),
    [((FIFO, ROUND_ROBIN, *EPS), EPS_WORKLOAD), ((FIFO, ROUND_ROBIN, *TREES), TREE_WORKLOAD)],
)
def test_the_workload_tells_all_mechanisms_apart(
    mechanisms: tuple[Mechanism, ...], requests: Any
) -> None:
    for mechanism in mechanisms:
        assert identification_of([order_by(mechanism, requests)]).mechanism == mechanism.name
    orders = {one: order_by(one, requests) for one in mechanisms}
    for one, other in itertools.permutations(mechanisms, 2):
        sent = [step.stream_id for step in orders[one].steps if step.is_choice]
        assert predictions(orders[one], other) != sent
        assert "ready at the same time" in needed_responses(one, other)


@pytest.mark.parametrize(("signals", "scheme"), [("eps", "recorded"), ("h2", "recorded-firefox")])
def test_a_workload_is_a_page_urls_and_files(tmp_path: Path, signals: str, scheme: str) -> None:
    written = write_workload(tmp_path / "out", signals=signals, base_url="https://a.example:1")
    page = read_page(tmp_path / "out" / "page.json")
    urls = (tmp_path / "out" / "urls.txt").read_text()
    for resource in page.resources:
        assert f"https://a.example:1/{resource.id}" in urls
        assert (tmp_path / "out" / "www" / resource.id).stat().st_size == resource.size_bytes
    assert len(written) == len(page.resources) + 2
    load = h3sim.simulate(page, scheme=scheme, network="sander-10mbps-100ms", record_packets=True)
    write_load_qlog(load, tmp_path / "load.qlog")
    names = {"eps": "eps, non-incremental-first", "h2": "tree"}
    assert identify(tmp_path / "load.qlog").mechanism == names[signals]


@pytest.mark.parametrize(
    "url",
    [
        *("a.example", "https://", "ftp://a.example", "https://a b/"),
        *("https://x\n", "https://a?b", "https://a/b?c", "https://a#b"),
    ],
)
def test_a_workload_is_of_a_url_of_http(
    tmp_path: Path, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InputError, match=r"^base_url: must be a URL like https://"):
        write_workload(tmp_path, base_url=url)
    assert main(["workload", str(tmp_path), "--base-url", url]) == 2
    assert capsys.readouterr().err.startswith("h3sim workload: --base-url: must be a URL like")
    assert not [*tmp_path.iterdir()]


def test_the_scheme_of_a_url_may_be_in_capitals(tmp_path: Path) -> None:
    write_workload(tmp_path, base_url="HTTPS://a.example/b/")
    assert "HTTPS://a.example/b/index.html" in (tmp_path / "urls.txt").read_text()


def test_the_command_prints_draws_and_writes_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = logged(tmp_path / "load.qlog", "http2rulez", scheme="chrome-eps", network="fibre")
    plot = tmp_path / "picks.svg"
    assert main(["identify", str(log), "--plot", str(plot)]) == 0
    shown = capsys.readouterr().out
    assert "eps, non-incremental-first" in shown
    assert "runner-up" in shown
    assert plot.stat().st_size > 1000
    assert main(["identify", str(log), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["mechanism"] == "eps, non-incremental-first"
    assert schema_problems(document) == []


def test_contradictions_are_drawn(tmp_path: Path) -> None:
    found = identify(server_log(tmp_path / "mixed.qlog", "aa" + "bc" * 20 + "bbbb" + "bc" * 10))
    assert len(found.contradictions) > 0
    assert "contradict" in found.plot.alt_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["identify", "missing.qlog", "--plot", "a.gif"], ["missing.qlog", "--plot"]),
        (["identify", "bad.qlog"], ["bad.qlog"]),
        (["identify", "empty.qlog"], ["holds no packet"]),
        (["identify", "bad.har"], ["bad.har"]),
        (["identify", "plain.har"], ["plain.har"]),
        (["identify", "empty.qlog", "--trace", "0"], ["trace"]),
        (["workload", "bad.qlog"], ["bad.qlog"]),
    ],
)
def test_bad_input_is_refused_in_lines(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.qlog").write_text("{]")
    (tmp_path / "bad.har").write_text("{]")
    empty = {"vantage_point": {"type": "server"}, "events": []}
    (tmp_path / "empty.qlog").write_text(json.dumps({"qlog_version": "0.3", "traces": [empty]}))
    entry = {
        "startedDateTime": "2026-01-01T00:00:00Z",
        "time": 1,
        "request": {"method": "GET", "url": "https://a.example/", "headers": []},
        "response": {"status": 200, "headers": [], "content": {"size": 1}},
        "timings": {"send": 0, "wait": 1, "receive": 0},
    }
    (tmp_path / "plain.har").write_text(json.dumps({"log": {"version": "1.2", "entries": [entry]}}))
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert all(word in error for word in words)
    assert "Traceback" not in error


def test_a_server_s_log_shows_when_responses_were_ready(tmp_path: Path) -> None:
    document = h3sim.load_page("davies-meenan").to_dict()
    for number, resource in enumerate(document["resources"]):
        resource["server_ms"] = 37 * number % 80
    load = h3sim.simulate(
        page_from_dict(document),
        scheme="chrome-eps",
        network="sander-2mbps-100ms-2pct",
        transport_profile="default",
        record_packets=True,
    )
    write_load_qlog(load, tmp_path / "late.qlog")
    found = identify(tmp_path / "late.qlog", trace=1)
    assert (found.share, found.runner_up is not None) == (1.0, True)
    assert "eps, non-incremental-first" in found.candidates


def _carried(room: LostRoom) -> list[tuple[int, int, int, int]]:
    """Return packet, stream, offset and length of the frames in lost packets."""
    return sorted(
        (number, frame.stream_id, frame.offset, frame.n_bytes)
        for number, frames in room.frames.items()
        for frame in frames
    )


def test_bytes_of_lost_packets_fill_the_room_in_them_by_their_deadlines() -> None:
    room = LostRoom([5, 6, 7], 1000)
    room.assign_gaps([Missing(9, 4, 0, 3000, 4500), Missing(8, 4, 4, 0, 500)])
    # Of an end that did not fit, nothing is placed; what was sent soon after was not lost.
    room.assign_ends([Missing(40, 4, 8, 0, 1500), Missing(10, 4, 12, 0, 1)])
    room.assign_ends([Missing(40, 4, 16, 2000, 2900)])
    gaps = [(5, 4, 0, 500), (6, 0, 3000, 1000), (7, 0, 4000, 500)]
    assert _carried(room) == sorted([*gaps, (5, 16, 2000, 500), (7, 16, 2500, 400)])


def test_gaps_share_a_lost_packet_only_if_there_are_too_few() -> None:
    """A packet in which no stream ends is full of one stream."""
    gaps = [Missing(9, 4, 0, 3000, 4500), Missing(8, 4, 4, 0, 500)]
    room = LostRoom([5, 6], 1000)
    room.assign_gaps(gaps)
    assert _carried(room) == [(5, 0, 3000, 500), (5, 4, 0, 500), (6, 0, 3500, 1000)]


def test_a_response_that_lost_its_beginning_began_just_ahead_of_the_rest() -> None:
    room = LostRoom([5, 60], 1000)
    room.assign_gaps([Missing(61, -1, 0, 0, 800)])
    assert [*room.frames] == [60]


@pytest.mark.parametrize(("trace", "is_tried"), [(1, True), (2, False)])
def test_a_quantum_that_no_response_reached_is_tried_on_servers_logs(
    tmp_path: Path, trace: int, is_tried: bool
) -> None:
    log = logged(tmp_path / "load.qlog", scheme="chrome-eps")
    order = next(send_orders(log, trace=trace))
    turns = [each.turn for each in candidates_for(order) if each.kind is SchedulerKind.ROUND_ROBIN]
    assert (Quantum(size_bytes=16_000) in turns) is is_tried


def test_a_log_over_qmux_is_called_that_and_not_judged(tmp_path: Path) -> None:
    path = logged(tmp_path / "load.qlog", scheme="rr", network="4g", transport="qmux")
    (trace, *_) = json.loads(path.read_text())["traces"]
    assert trace["common_fields"]["protocol_type"] == ["TCP", "QMUX"]
    with pytest.raises(InputError, match="QMux"):
        identify(path)
