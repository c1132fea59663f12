"""A small site in a real Chromium: what is recorded of it, each time again.

These tests need a Chromium, and are skipped where none starts; `pytest -m "not chromium"` leaves
them out.
"""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import pytest

from h3sim.cli import main
from h3sim.importers.chromium import RecordedSource, Timeouts, record
from h3sim.importers.chromium.recording import graph_of
from h3sim.page import read_page
from tests.unit.recorded_site import FILES, INDEX, png, write_site

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.importers.chromium import PageRecording
    from h3sim.page import Page

pytestmark = pytest.mark.chromium

QUICK = Timeouts(settle_s=0.3, quiet_s=0.3)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_site(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="module")
def recording(site: Path) -> PageRecording:
    return record(RecordedSource.of(str(site)), name="everything", repeat=2, patience=QUICK)


@pytest.fixture(scope="module")
def page(recording: PageRecording) -> Page:
    return recording.page


# id, kind, parent, event, flags
GRAPH = """
index.html    document    -           -         above_the_fold critical
main.css      stylesheet  index.html  offset    in_head render_blocking above_the_fold critical
more.css      stylesheet  main.css    complete  render_blocking above_the_fold critical
bold.ttf      font        main.css    complete  above_the_fold
hero.png      image       index.html  offset    in_head preload above_the_fold hero
head.js       script      index.html  offset    in_head render_blocking above_the_fold critical
async.js      script      index.html  offset    in_head async
defer.js      script      index.html  offset    in_head defer
module.mjs    script      index.html  offset    in_head defer module
imported.mjs  script      module.mjs  complete  module
back.png      image       index.html  offset    in_style above_the_fold
low.png       image       index.html  offset
frame.html    document    index.html  offset    after_first_image
framed.png    image       frame.html  offset
bottom.js     script      index.html  offset    after_first_image
data.json     fetch       index.html  offset
missing.json  fetch       index.html  offset
late.png      image       defer.js    executed
injected.js   script      defer.js    executed  async
"""


def test_the_graph_is_that_of_the_site(page: Page) -> None:
    expected = {}
    for line in GRAPH.strip().splitlines():
        id_, kind, parent, at, *flags = line.split()
        expected[id_] = (kind, None if parent == "-" else (parent, at), set(flags))
    found = {
        id_: (kind, trigger, set(flags))  # type: ignore[call-overload]
        for id_, (kind, trigger, flags, _) in graph_of(page).items()
    }
    assert found == expected


def test_two_recordings_agree_on_the_graph(recording: PageRecording) -> None:
    first, second = (graph_of(load.page) for load in recording.loads)
    assert first == second
    assert recording.differences == ()


def test_offsets_and_sizes_are_those_on_the_wire(page: Page) -> None:
    by_id = {resource.id: resource for resource in page.resources}
    root = by_id["index.html"]
    assert root.size_bytes == len(gzip.compress(INDEX.encode(), 6))
    assert by_id["hero.png"].size_bytes == len(png(300, 150))
    assert by_id["head.js"].size_bytes == len(gzip.compress(FILES["head.js"].encode(), 6))
    named = [r.discovered for r in page.resources if r.discovered and r.discovered.by == root.id]
    offsets = [found.offset_bytes or 0 for found in named if found.offset_bytes is not None]
    assert all(0 < offset <= root.size_bytes for offset in offsets)
    assert by_id["main.css"].discovered.offset_bytes < by_id["low.png"].discovered.offset_bytes
    assert all(100 < r.header_bytes < 500 < r.request_bytes < 1500 for r in page.resources[1:])


def test_the_visible_share_of_an_image_is_its_box(page: Page) -> None:
    shares = {resource.id: resource.viewport for resource in page.resources}
    assert shares["hero.png"] == pytest.approx(800 * 400 / (1366 * 768), abs=0.0001)
    assert shares["back.png"] == pytest.approx(50 * 50 / (1366 * 768), abs=0.0001)
    assert (shares["low.png"], shares["late.png"], shares["head.js"]) == (None, None, None)


def test_scripts_take_time_and_the_document_is_parsed(page: Page) -> None:
    by_id = {resource.id: resource for resource in page.resources}
    assert 0 < by_id["defer.js"].execute_ns < 10**9
    assert 0 < by_id["index.html"].parse_ns < 10**9
    assert by_id["hero.png"].parse_ns == by_id["hero.png"].execute_ns == 0


def test_no_other_host_is_contacted_and_the_recording_reports_it(recording: PageRecording) -> None:
    assert "blocked requests to other hosts: 1" in recording.load.notes
    assert not any("elsewhere" in resource.id for resource in recording.page.resources)


def test_no_query_string_and_no_local_address_is_kept(page: Page) -> None:
    text = repr(page)
    assert "secret" not in text
    assert "127.0.0.1" not in text


def test_priorities_are_kept_with_their_times(recording: PageRecording) -> None:
    words = {
        timing.id: [word for _, word in timing.priorities] for timing in recording.load.timings
    }
    assert words["main.css"] == ["VeryHigh"]
    assert words["hero.png"] == ["High"]  # the document asks for that
    assert words["async.js"] == ["Low"]
    assert "defer.js:1" in next(t.stack for t in recording.load.timings if t.id == "late.png")


def test_the_command_writes_what_it_states(
    site: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, log = tmp_path / "page.json", tmp_path / "log.json"
    arguments = [str(site / "frame.html"), "-o", str(output), "--log", str(log), "--headers"]
    assert main(["record", *arguments, "--licence", "MIT", "--compression", "none"]) == 0
    assert "frame: 2 resources, 135 kB" in capsys.readouterr().out
    written = read_page(output)
    assert [resource.id for resource in written.resources] == ["frame.html", "framed.png"]
    assert written.resources[0].size_bytes == len(FILES["frame.html"])
    assert written.provenance["licence"] == "MIT"
    assert json.loads(log.read_text())["resources"][1]["priorities"][0][1] == "Medium"
    requests = (tmp_path / "page.req.qif").read_text()
    assert requests.count(":method\tGET") == 2
    assert ":path\t/framed.png" in requests
    assert ":status\t200" in (tmp_path / "page.resp.qif").read_text()


HOSTILE = """<!DOCTYPE html><script>
JSON.stringify = JSON.parse = () => { throw "no" };
Map = Promise = Array = undefined; window.getComputedStyle = null;
Document.prototype.querySelectorAll = () => [];
PerformanceObserver = performance.getEntriesByType = undefined;
Object.defineProperty(window, "__h3sim_waited", { value: { toJSON() { throw "no" } } });
</script><h1>A heading</h1><img src="hero.png" width="800" height="400">
"""


def test_a_page_that_replaces_what_measures_it_is_measured_all_the_same(
    site: Path, tmp_path: Path
) -> None:
    (tmp_path / "hostile.html").write_text(HOSTILE, encoding="utf-8")
    (tmp_path / "hero.png").write_bytes((site / "hero.png").read_bytes())
    page = record(RecordedSource.of(str(tmp_path / "hostile.html")), patience=QUICK).page
    hero = next(resource for resource in page.resources if resource.id == "hero.png")
    assert hero.viewport == pytest.approx(800 * 400 / (1366 * 768), abs=0.0001)
    assert hero.hero
