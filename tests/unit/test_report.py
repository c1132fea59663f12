"""Reports say what was found, show it, list it, and fetch nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import subprocess
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.importers.chromium import find_chromium
from h3sim.page import page_from_dict
from h3sim.reporting import load_sections
from h3sim.reporting.document import MAX_ROWS
from h3sim.values.errors import H3SimError, InputError
from h3sim.values.table import Table
from tests.effort import HANG_S

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.reporting import Report

MARKUP = '</title><script>alert("x")</script><img src=//evil.test/x onerror=alert(1)> & "q"'


class Elements(HTMLParser):
    """Elements with their attributes, and the text that a reader sees."""

    VOID = ("meta", "link", "img", "br", "input")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    @property
    def pictures(self) -> list[dict[str, str | None]]:
        """The figures but for the timelines, which have a table of their own."""
        return [each for each in self.of("figure") if each.get("class") != "timeline"]

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def page_of(name: str) -> Any:
    resources = [
        {"id": "index.html", "bytes": 5000, "kind": "document", "above_the_fold": True},
        {
            "id": f"{name}.jpg",
            "bytes": 9000,
            "kind": "image",
            "discovered": {"by": "index.html", "at": "request"},
        },
        {
            "id": "b.jpg",
            "bytes": 9000,
            "kind": "image",
            "above_the_fold": True,
            "discovered": {"by": "index.html", "at": "request"},
        },
    ]
    return page_from_dict({"format": "h3sim-page/1", "name": name, "resources": resources})


def loads_of(page: Any, *schemes: str, **options: Any) -> list[Any]:
    return [h3sim.simulate(page, scheme=scheme, **options) for scheme in schemes]


def settings_of(made: Report) -> dict[str, Any]:
    return {row[0]: row[1] for row in made.made}


def small_study() -> Any:
    return h3sim.sweep(
        page_of("small"), schemes=["rr", "fifo"], rtt_ms=[0, 50], executor="serial", progress=False
    )


def small_log(folder: Path) -> Any:
    load = h3sim.simulate(page_of("small"), network="4g", record_packets=True)
    from h3sim.export.qlog_file import write_load_qlog

    write_load_qlog(load, folder / "load.qlog", dialect="0.3")
    return h3sim.read_qlog(folder / "load.qlog")


@pytest.fixture(scope="module", params=["load", "comparison", "study", "log", "markup"])
def made(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Report:
    match request.param:
        case "load":
            of: Any = loads_of(page_of("small"), "rr", network="4g", record_packets=True)
        case "comparison":
            of = h3sim.compare(page_of("small"), schemes=["rr", "fifo"], keep_loads=True)
        case "study":
            of = small_study()
        case "log":
            of = small_log(tmp_path_factory.mktemp("log"))
        case _:
            of = loads_of(page_of(MARKUP), "rr", "fifo")
    return h3sim.report(of)


def test_elements_close_in_order_and_no_id_stands_twice(made: Report) -> None:
    parsed = Elements(made.to_html())
    assert parsed.open == []
    ids = [str(attributes["id"]) for _, attributes in parsed.found if "id" in attributes]
    assert sorted(ids) == sorted(set(ids))


def test_what_is_referred_to_is_there_and_nothing_is_fetched(made: Report) -> None:
    parsed = Elements(made.to_html())
    ids = {attributes.get("id") for _, attributes in parsed.found}
    for tag, attributes in parsed.found:
        assert tag not in ("iframe", "object", "embed", "form")
        assert tag != "script" or set(attributes) <= {"type"}
        assert not [name for name in attributes if name.startswith("on")]
        for name in ("href", "xlink:href", "src", "aria-labelledby"):
            value = attributes.get(name) or ""
            if name == "aria-labelledby" and value:
                assert value in ids
            elif value.startswith("#"):
                assert value[1:] in ids
            else:
                assert value == "" or value.startswith("data:")
        for used in re.findall(r"url\(([^)]*)\)", " ".join(map(str, attributes.values()))):
            assert used[1:] in ids


def test_each_figure_says_in_words_what_it_shows_and_has_its_data(made: Report) -> None:
    parsed = Elements(made.to_html())
    figures = [picture for part in made.parts for picture in part.pictures]
    assert figures
    assert [svg.get("aria-label") for svg in parsed.of("svg")] == [p.alt for p in figures]
    assert {svg.get("role") for svg in parsed.of("svg")} == {"img"}
    assert len(parsed.pictures) == len(parsed.of("details")) == len(figures)
    for picture in figures:
        assert picture.alt
        assert picture.data
        assert all(len(row) == len(picture.data.columns) for row in picture.data)
    scrolled = [each for each in parsed.of("div") if each.get("class") == "scroll"]
    assert {(each.get("tabindex"), bool(each.get("aria-label"))) for each in scrolled} == {
        ("0", True)
    }


@pytest.mark.usefixtures("unpainted")
def test_waterfalls_beside_each_other_share_an_axis(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Any] = []

    original = load_sections.picture

    def noting(ax: Any, **words: Any) -> Any:
        drawn.append(ax)
        return original(ax, **words)

    monkeypatch.setattr("h3sim.reporting.load_sections.picture", noting)
    slow = h3sim.simulate("davies-meenan", scheme="rr")
    fast = h3sim.simulate("davies-meenan", scheme="rr", network="cable")
    assert slow.page_load_ms > 2 * fast.page_load_ms
    h3sim.report([slow, fast])
    ends = [ax.get_xlim() for ax in drawn if ax.get_title("left").startswith("Waterfall")]
    assert ends == [(0, pytest.approx(slow.page_load_ms * 1.005))] * 2


def test_equal_things_give_equal_bytes() -> None:
    texts = [h3sim.report(loads_of("davies-meenan", "rr", "fifo")).to_html() for _ in range(2)]
    assert texts[0] == texts[1]


@pytest.mark.usefixtures("unpainted")
def test_names_with_markup_are_text() -> None:
    made = h3sim.report(loads_of(page_of(MARKUP), "rr"), title=MARKUP, command=MARKUP)
    text = made.to_html()
    parsed = Elements(text)
    # The data of the timeline, and its script, which alone may run.
    assert parsed.of("script") == [{"type": "application/json"}, {}]
    script = text.rpartition("<script>")[2].partition("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}';" in text
    assert parsed.of("img") == []
    assert parsed.text.count(MARKUP) >= 3


@pytest.mark.usefixtures("unpainted")
def test_a_timeline_has_every_packet_and_resource_and_no_script_runs_in_notebooks() -> None:
    loads = loads_of(page_of("small"), "rr", "fifo", network="4g", record_packets=True)
    made = h3sim.report(loads)
    text = made.to_html()
    data = text.partition('<script type="application/json">')[2].partition("</script>")[0]
    documents = json.loads(data)
    assert [document["name"] for document in documents] == ["rr", "fifo"]
    for document, load in zip(documents, loads, strict=True):
        arrived = [at_ns for at_ns in load.trace.delivered_at_ns if at_ns is not None]
        assert document["packets"]["stop"] == sorted(round(at_ns / 1e6, 2) for at_ns in arrived)
        rows = document["resources"]
        assert [row["finished"] for row in rows] == [
            round(timing.finished_ms, 2) for timing in load.timings
        ]
        assert {len(column) for column in document["packets"].values()} == {len(arrived)}
        assert set(document["packets"]["row"]) == set(range(len(rows)))
        assert [curve["y"][-1] for curve in document["progress"]] == [1, 1]
        assert document["wire"]["y"][-1] == 0
        windows = [row.congestion_window for row in load.trace.recovery]
        assert max(document["window"]["y"]) == max(windows)
    assert "<script" not in made._repr_html_()


@pytest.mark.usefixtures("unpainted")
def test_the_verdict_names_the_fastest_scheme_and_the_ratio_to_the_baseline() -> None:
    loads = loads_of("davies-meenan", "rr", "fifo", "bucket-html")
    verdict = h3sim.report(loads).verdict
    ratio = loads[0].byte_index("atf") / loads[2].byte_index("atf")
    assert "bucket-html is fastest" in verdict[0]
    assert f"{ratio:.2f} times as fast as rr" in verdict[0]
    assert "times as fast as fifo" in h3sim.report(loads, baseline="fifo").verdict[0]


@pytest.mark.usefixtures("unpainted")
def test_where_all_are_equal_nobody_is_called_fastest() -> None:
    verdict = h3sim.report(loads_of("davies-meenan", "fifo", "fifo")).verdict
    assert all("the choice is free" in sentence for sentence in verdict[:2])
    assert not any("fastest" in sentence for sentence in verdict)


@pytest.mark.usefixtures("unpainted")
@pytest.mark.usefixtures("unpainted")
def test_loads_of_several_pages_are_answered_by_the_ratios_over_all_of_them() -> None:
    pytest.importorskip("scipy")
    schemes = ("rr", "fifo")
    pages = ["davies-meenan", "luigi-visualiser", "dygraphs-index"]
    loads = [h3sim.simulate(page, scheme=name) for page in pages for name in schemes]
    made = h3sim.report(loads)
    ratios = [
        rr.byte_index("atf") / fifo.byte_index("atf")
        for rr, fifo in zip(loads[::2], loads[1::2], strict=True)
    ]
    assert f"{math.prod(ratios) ** (1 / 3):.2f}" in made.verdict[0]
    assert "3 pages" in made.verdict[0]
    # What each page says stands with its own figures.
    assert [part.title.partition(":")[0] for part in made.parts[1:]] == pages
    for part, ratio in zip(made.parts[1:], ratios, strict=True):
        assert f"{max(ratio, 1 / ratio):.2f}" in part.answer[0]


def test_every_setting_of_a_load_is_told() -> None:
    (load,) = loads_of("davies-meenan", "rr", network="4g", seed=7)
    reported = settings_of(h3sim.report(load))
    assert set(load.configuration) <= set(reported)
    assert (reported["seed"], reported["network"], reported["h3sim"]) == (
        "7",
        "4g",
        h3sim.__version__,
    )
    assert reported["page_digest"] == load.page.digest


@pytest.mark.usefixtures("unpainted")
def test_what_loads_differ_in_is_told_load_by_load() -> None:
    reported = settings_of(h3sim.report(loads_of("davies-meenan", "rr", "fifo")))
    assert (reported["load 1"], reported["load 2"]) == ("scheme rr", "scheme fifo")


def test_a_long_table_is_cut_and_says_how_many_rows_are_left_out() -> None:
    from h3sim.reporting.document import _table_html

    long = Table(["n"], [(n,) for n in range(MAX_ROWS + 5)], title="t")
    assert _table_html(long).count("<tr>") == MAX_ROWS + 1
    assert "and 5 rows more" in _table_html(long)


@pytest.mark.parametrize("of", [[], ["davies-meenan"], 3])
def test_what_is_no_result_is_refused(of: Any) -> None:
    with pytest.raises(InputError, match="must be loads"):
        h3sim.report(of)


@pytest.mark.usefixtures("unpainted")
def test_a_baseline_that_was_not_loaded_is_refused() -> None:
    with pytest.raises(InputError, match="baseline"):
        h3sim.report(loads_of("davies-meenan", "rr"), baseline="fifo")
    with pytest.raises(InputError, match="baseline"):
        h3sim.report(small_study(), baseline="dfifo")


@pytest.mark.usefixtures("unpainted")
def test_rows_that_are_no_loads_are_refused() -> None:
    study = h3sim.sweep("davies-meenan", schemes=["rr"], resources=True, executor="serial")
    assert h3sim.report(study).verdict[-1].startswith("1 loads over ")
    with pytest.raises(InputError, match="study: must be of page loads"):
        h3sim.report(study.resources())


def test_a_comparison_without_its_loads_is_refused() -> None:
    with pytest.raises(H3SimError, match="keep_loads"):
        h3sim.report(h3sim.compare("davies-meenan", schemes=["rr"], send_buffers_kb=[0]))


@pytest.mark.usefixtures("unpainted")
def test_a_study_whose_scheme_has_a_single_load_says_why_a_figure_is_missing() -> None:
    study = h3sim.sweep("davies-meenan", schemes=["rr"], executor="serial", progress=False)
    made = h3sim.report(study)
    assert made.parts[0].words or made.parts[0].pictures
    assert made.parts[0].tables


# The command


@pytest.mark.usefixtures("unpainted")
def test_the_command_writes_what_it_says(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "report.html"
    arguments = ["report", "davies-meenan", "--scheme", "rr,fifo", "-o", str(path)]
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert "fifo is fastest" in out
    assert err == f"wrote {path}\n"
    assert f"h3sim {' '.join(arguments)}" in Elements(path.read_text()).text


@pytest.mark.usefixtures("unpainted")
def test_a_saved_load_a_study_and_a_log_are_told_apart(tmp_path: Path, capsys: Any) -> None:
    assert main(["run", "davies-meenan", "--scheme", "fifo", "--json"]) == 0
    (tmp_path / "load.json").write_text(capsys.readouterr().out)
    small_study().save(tmp_path / "rows.jsonl")
    small_log(tmp_path)
    for name, message in (
        ("load.json", "davies-meenan with fifo"),
        ("rows.jsonl", "4 loads over"),
        ("load.qlog", "a log over QUIC"),
    ):
        out = tmp_path / f"{name}.html"
        assert main(["report", str(tmp_path / name), "-o", str(out)]) == 0
        assert message in capsys.readouterr().out


def test_every_mistake_is_a_line_and_nothing_is_written(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "report.txt"
    arguments = ["report", "nowhere", "--scheme", "no-scheme", "--loss", "2", "-o", str(path)]
    assert main(arguments) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert all(line.startswith("h3sim report: ") for line in lines)
    assert list(tmp_path.iterdir()) == []


def test_options_of_a_load_do_not_go_with_what_was_kept(tmp_path: Path, capsys: Any) -> None:
    small_study().save(tmp_path / "rows.jsonl")
    out = str(tmp_path / "report.html")
    assert main(["report", str(tmp_path / "rows.jsonl"), "--rtt-ms", "50", "-o", out]) == 2
    assert "--rtt-ms" in capsys.readouterr().err


# In a browser


@pytest.mark.chromium
def test_a_browser_shows_it_without_a_word_in_its_console(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    h3sim.report(loads_of(page_of(MARKUP), "rr", "fifo")).save(path)
    done = subprocess.run(
        [
            *(
                find_chromium(),
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-logging=stderr",
            ),
            *("--v=0", f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", path.as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    assert "CONSOLE" not in done.stderr
    parsed = Elements(done.stdout)
    assert len(parsed.of("svg")) == len(parsed.pictures) > 0
    assert parsed.of("script") == [{"type": "application/json"}, {}]
    assert parsed.of("img") == []


@pytest.mark.usefixtures("unpainted")
def test_an_advice_is_reported_with_its_sentence_and_its_loads_beside_its_baseline() -> None:
    reported: dict[str, Any] = {"schemes": ["rr", "fifo"], "n_seeds": 2, "networks": []}
    plain, kept = (
        h3sim.recommend("davies-meenan", keep_loads=keep, **reported) for keep in (False, True)
    )
    short, complete = h3sim.report(plain), h3sim.report(kept)
    assert list(short.verdict) == list(complete.verdict) == [kept.sentence]
    assert "keep_loads=True" in " ".join(short.parts[0].words)
    assert [len(made.parts) for made in (short, complete)] == [1, 2]
    race, _ = complete.parts[0].tables
    assert [row[0] for row in race] == [row.scheme for row in kept.found.rows]
    assert "as an example" in complete.parts[1].words[0]
    assert "speedup to chrome-eps, all" in complete.parts[1].tables[0].columns
    assert complete.title == "h3sim: davies-meenan"


@pytest.mark.usefixtures("unpainted")
def test_what_find_found_is_reported() -> None:
    found = h3sim.search("davies-meenan", schemes=["rr", "fifo"], networks=["cable"])
    made = h3sim.report(found)
    assert made.verdict == [found.verdict]
    assert [len(table) for table in made.parts[0].tables] == [3, len(found.robustness)]
    assert ("seeds at most", 30) in made.made


@pytest.mark.usefixtures("unpainted")
def test_a_load_that_was_saved_is_run_again_for_a_report(tmp_path: Path) -> None:
    load = h3sim.simulate("davies-meenan", scheme="fifo", record_packets=True)
    path = tmp_path / "load.json"
    path.write_text(json.dumps(load.to_dict()), encoding="utf-8")
    assert h3sim.report(h3sim.read_load(path)) == h3sim.report(load)


@pytest.mark.usefixtures("unpainted")
def test_a_study_that_added_seeds_is_reported_as_its_rows() -> None:
    found = h3sim.study.sequential_sweep(
        "creative", width=0.5, schemes=["rr", "fifo"], rtt_ms=50, loss=0.02, executor="serial"
    )
    assert h3sim.report(found) == h3sim.report(found.results)
