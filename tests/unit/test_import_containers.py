"""Recordings within something else: archives, reports, responses, and logs in another order."""

from __future__ import annotations

import copy
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import import_page
from h3sim.importers.result import RecordingError
from tests.recordings import SAMPLES, SITE, net_log, net_request, write_recording

if TYPE_CHECKING:
    from pathlib import Path

RESULT = SAMPLES["lighthouse"]
HAR = json.dumps(SAMPLES["har-firefox"])


def zipped(compression: int = zipfile.ZIP_DEFLATED, **files: str) -> bytes:
    """Return an archive; names have "__" in place of a dot."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", compression) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("__", "."), text)
    return packed.getvalue()


def report(variable: str, result: Any, title: str = "Lighthouse Report") -> str:
    """Return an HTML report like those of Lighthouse, whose scripts cannot contain a `<`."""
    text = json.dumps(result).replace("<", "\\u003c")
    head = f"<!doctype html><html><head><title>{title}</title></head><body><div id=root></div>"
    script = f"<script>window.{variable} = {text};</script>"
    return f"{head}{script}\n<script>(function(){{render({{}})}})()</script></body></html>\n"


def test_the_only_har_of_an_archive_is_read(tmp_path: Path) -> None:
    whole = import_page(write_recording(tmp_path, HAR)).page
    for packed in (
        zipped(har__har=HAR),
        zipped(zipfile.ZIP_STORED, har__har=HAR),
        zipped(har__har=HAR, body__html="<p>x", a__png="x"),
        zipped(recording__json=HAR),
    ):
        page = import_page(write_recording(tmp_path, packed, "packed.har.zip")).page
        assert page.resources == whole.resources


@pytest.mark.parametrize(
    ("packed", "why"),
    [
        (zipped(a__har=HAR, b__har=HAR), "2 files, of which 2 are HARs"),
        (zipped(a__json=HAR, b__txt="x"), "2 files, of which 0 are HARs"),
        (zipped(index__html="<!doctype html><p>x"), "site in a zip archive"),
        (b"PK\x03\x04 and nothing else", "cannot be unpacked"),
    ],
)
def test_an_archive_without_one_recording_is_refused(
    tmp_path: Path, packed: bytes, why: str
) -> None:
    with pytest.raises(RecordingError, match=why):
        import_page(write_recording(tmp_path, packed, "packed.zip"))


def test_an_archive_expands_to_the_same_limit_as_gzip(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("h3sim.importers.source._MAX_UNPACKED_BYTES", 2 << 20)
    padded = HAR[:-2] + " " * (5 << 20) + "}}"
    found = import_page(write_recording(tmp_path, zipped(har__har=padded), "packed.zip"))
    assert any("is longer than 2 MiB" in str(problem) for problem in found.skipped)
    assert found.n_resources == 2


def test_a_damaged_archive_gives_what_comes_before_the_damage(tmp_path: Path) -> None:
    packed = bytearray(zipped(zipfile.ZIP_STORED, har__har=HAR + " " * 50_000))
    packed[40_000] = 0  # so that the checksum is wrong
    found = import_page(write_recording(tmp_path, bytes(packed), "packed.zip"))
    assert found.n_resources == 2
    assert any("cannot be unpacked further" in str(problem) for problem in found.skipped)


@pytest.mark.parametrize(
    "document",
    [
        {"lhr": RESULT, "artifacts": {"URL": {}}},
        {"artifacts": {"URL": {}}, "report": "<html>", "lhr": RESULT},
        {"kind": "pagespeedonline#result", "id": SITE, "lighthouseResult": RESULT},
        {"name": "flow", "steps": [{"name": "first", "lhr": RESULT}]},
    ],
)
def test_a_result_of_lighthouse_is_read_from_what_holds_it(
    tmp_path: Path, document: dict[str, Any]
) -> None:
    imported = import_page(write_recording(tmp_path, document))
    assert (imported.dialect, imported.n_resources) == ("lighthouse", 3)
    assert imported.page.provenance["tool"] == "Lighthouse 13.4.1"


@pytest.mark.parametrize(
    ("variable", "result"),
    [
        ("__LIGHTHOUSE_JSON__", RESULT),
        ("__LIGHTHOUSE_FLOW_JSON__", {"steps": [{"lhr": RESULT}]}),
        ("__LIGHTHOUSE_JSON__", {"padding": "x" * 3_000_000, **RESULT}),
    ],
)
def test_the_result_in_a_report_of_lighthouse_is_read(
    tmp_path: Path, variable: str, result: dict[str, Any]
) -> None:
    text = report(variable, result)
    for name in ("report.html", "report"):
        imported = import_page(write_recording(tmp_path, text, name))
        assert (imported.dialect, imported.n_resources) == ("lighthouse", 3)
        assert imported.skipped == ()


def test_a_step_of_a_user_flow_is_a_page_if_it_loaded_something(tmp_path: Path) -> None:
    snapshot = {"lhr": {"lighthouseVersion": "13.4.1", "audits": {}}}
    steps = [{"lhr": RESULT}, snapshot, {"lhr": RESULT}]
    path = write_recording(tmp_path, {"steps": steps})
    assert import_page(path).found["pages"] == 2
    assert import_page(path, page=2).n_resources == 3
    with pytest.raises(RecordingError, match="no page 3"):
        import_page(path, page=3)


@pytest.mark.parametrize(
    "text",
    [
        "<html><head><title>Lighthouse Report</title></head><body>saved without scripts</body>",
        "<html><head><meta name='generator' content='h3sim 1.0'></head><body><p>a load",
        report("playwrightReportBase64", "UEs", title="Playwright Test Report"),
    ],
)
def test_a_report_without_a_recording_is_refused_and_not_taken_for_a_site(
    tmp_path: Path, text: str
) -> None:
    path = write_recording(tmp_path, text, "report.html")
    with pytest.raises(RecordingError, match=r"is a report of .*, not a site"):
        import_page(path)
    assert import_page(path, dialect="site").n_resources == 1


def test_a_site_about_lighthouses_is_a_site(tmp_path: Path) -> None:
    text = "<html><head><title>Lighthouse Hotel: our report</title></head><body>rooms</body>"
    assert import_page(write_recording(tmp_path, text, "index.html")).dialect == "site"


@pytest.mark.parametrize("sample", ["devtools-log", "chrome-trace"])
def test_an_empty_first_entry_of_a_log_is_passed_over(tmp_path: Path, sample: str) -> None:
    events = SAMPLES[sample]
    events = events["traceEvents"] if isinstance(events, dict) else events
    found = import_page(write_recording(tmp_path, [{}, *events]))
    assert (found.dialect, found.n_resources) == (sample, 3)


def test_an_empty_first_line_of_a_log_is_passed_over(tmp_path: Path) -> None:
    lines = "".join(f"{json.dumps(each)}\n" for each in ({}, *SAMPLES["devtools-log"]))
    assert import_page(write_recording(tmp_path, lines)).n_resources == 3


def test_a_list_of_other_objects_is_still_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="must have method"):
        import_page(write_recording(tmp_path, [{}, {"name": "x"}]))


def test_a_network_log_may_have_its_constants_after_its_events(tmp_path: Path) -> None:
    log = SAMPLES["net-log"]
    found = [
        import_page(write_recording(tmp_path, {key: log[key] for key in keys}))
        for keys in (
            ("constants", "events"),
            ("events", "constants"),
            ("polledData", *reversed(log)),
        )
    ]
    assert found[0].page == found[1].page == found[2].page
    assert found[0].found == found[1].found == found[2].found


def test_a_network_log_that_ends_before_its_constants_is_refused_for_that(tmp_path: Path) -> None:
    text = json.dumps({"events": SAMPLES["net-log"]["events"]})
    for cut in (text, text[:-20]):
        with pytest.raises(RecordingError, match="constants: are missing"):
            import_page(write_recording(tmp_path, cut))


def test_old_network_logs_have_header_fields_as_an_object(tmp_path: Path) -> None:
    events = net_request(1, "/", 5000, "text/html", type_="main frame")
    lists = import_page(write_recording(tmp_path, net_log(*events))).page
    for event in events:
        lines = event["params"].pop("headers", None)
        if lines is not None:
            pairs = [line.split(": ", 1) for line in lines if ": " in line]
            status = {} if len(pairs) == len(lines) else {":status": "200 OK"}
            event["params"]["headers"] = {**status, **dict(pairs)}
    found = import_page(write_recording(tmp_path, net_log(*events)))
    assert found.skipped == ()
    assert found.page == lists


def test_old_network_logs_call_http_2_spdy(tmp_path: Path) -> None:
    log = SAMPLES["net-log"]
    numbers = log["constants"]["logEventTypes"]
    old = {name.replace("HTTP2_SESSION_SEND_HEADERS", "SPDY_SESSION_SYN_STREAM")
           .replace("HTTP2", "SPDY"): number for name, number in numbers.items()}  # fmt: skip
    renamed = {**log, "constants": {**log["constants"], "logEventTypes": old}}
    pages = [import_page(write_recording(tmp_path, each)).page for each in (log, renamed)]
    assert pages[0] == pages[1]


def test_the_observed_times_of_lighthouse_are_kept_for_comparison(tmp_path: Path) -> None:
    result = copy.deepcopy(RESULT)
    (metrics,) = result["audits"]["metrics"]["details"]["items"]
    metrics["observedFirstContentfulPaint"] = 170
    load = import_page(write_recording(tmp_path, {"lhr": result})).page.recorded_load
    assert load is not None
    times_ns = (load.fcp_ns, load.largest_paint_ns, load.speed_index_ns, load.load_event_ns)
    assert times_ns == (170_000_000, 200_000_000, 180_000_000, 250_000_000)
    assert {id_: at_ns // 10**6 for id_, at_ns in load.completed_ns.items()} == {
        "/": 60,
        "app.js": 110,
        "api": 230,
    }


@pytest.mark.parametrize(
    "page",
    [
        {"pageTimings": {"_firstContentfulPaint": 170}},
        {"_firstContentfulPaint": 170},
        {"_googleWebVitals": {"firstContentfulPaint": 170}},
    ],
)
def test_the_first_paint_of_a_har_is_kept(tmp_path: Path, page: dict[str, Any]) -> None:
    entries = [{**each, "pageref": "p"} for each in SAMPLES["har-firefox"]["log"]["entries"]]
    document = {"log": {"pages": [{"id": "p", **page}], "entries": entries}}
    load = import_page(write_recording(tmp_path, document)).page.recorded_load
    assert load is not None
    assert load.fcp_ns == 170_000_000


def test_the_first_paint_of_a_trace_is_kept(tmp_path: Path) -> None:
    trace = copy.deepcopy(SAMPLES["chrome-trace"])
    start = next(each for each in trace["traceEvents"] if each["name"] == "navigationStart")
    painted = {**start, "name": "firstContentfulPaint", "ts": start["ts"] + 170_000}
    trace["traceEvents"].append(painted)
    load = import_page(write_recording(tmp_path, trace)).page.recorded_load
    assert load is not None
    assert load.fcp_ns == 168_000_000  # the navigation began 2 ms before the request
