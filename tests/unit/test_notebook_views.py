"""What `help`, completion and a notebook show of h3sim's names and values."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.importers import ImportedPage
from h3sim.values.errors import InputError
from h3sim.values.notebook import with_sliders
from h3sim.values.table import Listing, Table
from tests.effort import HANG_S
from tests.helpers import page_of
from tools.notebooks import RunningNotebook

if TYPE_CHECKING:
    from pathlib import Path

_WITHOUT_EXTRAS = """
import sys
for extra in ("hypothesis", "pandas", "selectolax", "tinycss2", "websocket", "pytest"):
    sys.modules[extra] = None
import inspect, pydoc
import h3sim
assert not hasattr(h3sim, "conformance")
assert len(inspect.getmembers(h3sim)) > 30
assert "simulate" in pydoc.render_doc(h3sim)
try:
    import h3sim.conformance
except ImportError as error:
    assert "h3sim[testing]" in str(error), error
else:
    raise AssertionError("it needs Hypothesis")
"""


def test_help_and_completion_work_without_any_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRAS], capture_output=True, text=True, timeout=HANG_S
    )
    assert done.returncode == 0, done.stderr


def test_every_figure_is_a_picture_in_a_notebook() -> None:
    load = h3sim.simulate("davies-meenan", network="4g")
    pictures = [load.plot, load.plot.multiplexing().figure, load.plot.throughput().figure]
    assert [picture._repr_png_()[:4] for picture in pictures] == [b"\x89PNG"] * 3


def test_sliders_choose_among_what_is_given_and_show_the_first_without_widgets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made: dict[str, Any] = {}
    widgets = SimpleNamespace(
        SelectionSlider=lambda **settings: settings,
        interact=lambda show, **sliders: made.update(sliders),
    )
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    assert with_sliders(str, loss=[0.02, 0.0]) is None
    assert made["loss"]["options"] == [0.02, 0.0]
    assert made["loss"]["description"] == "loss"
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    assert with_sliders(lambda loss: f"loss {loss}", loss=[0.02, 0.0]) == "loss 0.02"
    assert "pip install 'h3sim[notebook]'" in capsys.readouterr().out


def test_lists_and_traces_are_short_when_printed() -> None:
    assert len(repr(h3sim.list_schemes())) < 10_000
    assert len(repr(h3sim.simulate("davies-meenan").trace)) < 200
    assert repr(h3sim.load_scheme("rr")).startswith("<Scheme rr: ")


def test_what_is_found_is_a_line_when_it_is_printed() -> None:
    pages = ["davies-meenan", "http2rulez"]
    found = {
        "<Comparison of davies-meenan: 1 row>": h3sim.compare(
            pages[0], schemes="fifo", send_buffers_kb=[0], baseline="fifo"
        ),
        "<Optimality of 2 pages: 2 rows>": h3sim.optimality(pages, schemes="fifo"),
        "<SearchResult of davies-meenan: 2 rows>": h3sim.search(
            pages[0], schemes=["fifo", "rr"], baseline="rr", networks=None
        ),
        "<WhatIf of davies-meenan: 5 rows>": h3sim.what_if(pages[0], scheme="fifo"),
    }
    assert [repr(value) for value in found.values()] == list(found)
    advice = h3sim.recommend(pages[0], schemes="fifo", n_seeds=1)
    assert repr(advice) == f"<Recommendation: {advice.sentence}>"
    imported = ImportedPage(page=h3sim.load_page(pages[0]), dialect="har", found={"requests": 9})
    assert repr(imported) == "<ImportedPage davies-meenan: 9 resources, 634,522 bytes, from har>"


def test_a_notebook_shows_lists_as_tables() -> None:
    for shown in (h3sim.list_schemes(), h3sim.list_networks(), h3sim.list_pages()):
        assert shown._repr_html_().count("<tr>") == len(shown) + 1
    assert "otherwise" in h3sim.load_scheme("p+")._repr_html_()


def test_text_is_shown_as_it_is_and_numbers_rounded() -> None:
    shown = Table(("id", "ms"), [("007", 1.23456), ("<b>", 1e6), ("1e5", None)]).to_html()
    assert ">007<" in shown
    assert ">1.235<" in shown
    assert ">&lt;b&gt;<" in shown
    assert ">1,000,000.0<" in shown
    assert ">1e5<" in shown


def test_an_id_of_digits_keeps_its_zeros() -> None:
    page = page_of({"id": "007", "kind": "document", "bytes": 10})
    assert ">007<" in page._repr_html_()
    assert ">007<" in h3sim.simulate(page).timings._repr_html_()


def test_long_tables_are_cut_and_counted() -> None:
    shown = Table(("n",), [(n,) for n in range(1000)]).to_html()
    assert shown.count("<tr>") == 201
    assert "and 800 rows more" in shown


def test_a_listing_is_a_line_for_each_value_at_a_prompt() -> None:
    schemes = h3sim.list_schemes()
    lines = repr(schemes).splitlines()
    assert len(lines) == len(schemes)
    assert [line.split()[0] for line in lines] == [scheme.name for scheme in schemes]
    assert lines[0].endswith("  Round robin (Edge, HTTP/2's default)")


def test_a_listing_in_a_notebook_says_what_tells_schemes_apart() -> None:
    shown = h3sim.list_schemes()._repr_html_()
    assert '<th scope="col">mechanism</th><th scope="col">signalling</th>' in shown
    assert ">round-robin<" in shown


def test_a_listing_of_nothing_shows_as_an_empty_list() -> None:
    assert repr(Listing([])) == "[]"


def test_networks_and_profiles_are_shown_by_the_keys_that_are_set() -> None:
    shown = h3sim.load_network("cable")._repr_html_()
    assert 'down.rate_mbps</th><td style="text-align: right">5<' in shown
    assert "jitter" not in shown
    profile = h3sim.load_profile("default").with_(quic={"datagram_bytes": 1234})
    assert ">quic.datagram_bytes</th>" in profile._repr_html_()
    assert ">1,234<" in profile._repr_html_()


def test_a_study_is_shown_by_its_axes() -> None:
    study = h3sim.load_study(
        "davies-meenan", schemes=["rr", "fifo"], seeds=10**8, cells=[{"rtt_ms": 30}, {"rtt_ms": 60}]
    )
    shown = study._repr_html_()
    assert shown.count("<tr>") == 4
    assert ">30, 60<" in shown
    assert ">100,000,000</td><td>0, 1, 2, 3, 4, ...<" in shown


def test_means_come_first_and_many_rows_are_folded() -> None:
    pages = [page.name for page in h3sim.list_pages()[:6]]
    shown = h3sim.compare(pages, schemes=["rr", "fifo"])._repr_html_()
    means, _, rows = shown.partition("<details><summary>24 rows</summary>")
    assert "mean_all" in means
    assert "page_load_ms" in rows
    few = h3sim.compare(pages[:2], schemes=["rr", "fifo"])._repr_html_()
    assert "<details>" not in few


@pytest.mark.filterwarnings("ignore")  # what the kernel's client warns of is not ours
def test_a_saved_notebook_has_no_progress_bar(tmp_path: Path) -> None:
    sweep = "h3sim.sweep('davies-meenan', schemes='rr', executor='serial', progress=True)"
    with RunningNotebook(tmp_path, {}, patience_s=HANG_S) as kernel:
        bar, result = kernel.run(f"import h3sim\n{sweep}")
    assert bar["data"] == {"text/plain": ""}
    assert "1 row" in result["data"]["text/plain"]


def test_pages_without_marks_are_named_where_they_leave_a_table() -> None:
    marked = h3sim.load_page("davies-meenan")
    bare = page_of({"id": "index", "kind": "document", "bytes": 9_000})
    assert not bare.knows_above_the_fold
    both = [marked, bare]
    results = h3sim.sweep(both, schemes=["rr", "fifo"], executor="serial")
    for rows in (
        results.compare("rr", value="byte_index_atf_ms"),
        results.relative_medians("rr", value="byte_index_atf_ms"),
    ):
        assert rows.note.endswith(f": {bare.name}.")
        assert rows.note in str(rows)
        assert rows.note in rows._repr_html_()
    assert results.compare("rr", value="page_load_ms").note == ""
    for found in (
        h3sim.compare(both, schemes=["rr", "fifo"]),
        h3sim.compare(both, schemes=["rr", "fifo"], seeds=2),
        h3sim.optimality(both, schemes=["rr"]),
        h3sim.search(both, schemes=["rr", "fifo"], networks=None),
    ):
        assert f"nothing above the fold for {bare.name}" in found.describe()


@pytest.mark.parametrize("schemes", [["rr", "rr"], ["rr", h3sim.load_scheme("rr")]])
def test_a_scheme_that_is_given_twice_is_refused_everywhere(schemes: Any) -> None:
    for call in (h3sim.sweep, h3sim.compare, h3sim.optimality, h3sim.search, h3sim.recommend):
        with pytest.raises(InputError, match="'rr' is given twice"):
            call("davies-meenan", schemes=schemes)
    assert len(h3sim.sweep("davies-meenan", schemes=["marx-2019", "rr"], executor="serial")) == 11
