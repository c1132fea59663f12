"""Figures of a page before any load, of two variants of it, and of logs beside each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.export.qlog_file import write_load_qlog
from h3sim.page import Kind
from h3sim.reporting import LogPlots
from h3sim.reporting.page_plots import kinds_of
from h3sim.reporting.qlog_plots import delivered_curve
from h3sim.reporting.waterfall import deltas_of, unshared
from h3sim.values.errors import InputError
from tests.helpers import page_file, page_of

if TYPE_CHECKING:
    from pathlib import Path

ROOT = {"id": "/", "kind": "document", "bytes": 1000, "above_the_fold": True}
LATER = {"discovered": {"by": "/", "at": "complete"}}
PAGE = page_of(
    ROOT,
    {"id": "a.js", "kind": "script", "bytes": 3000, **LATER},
    {"id": "b.js", "kind": "script", "bytes": 500, "above_the_fold": True, **LATER},
    name="small $x$",
)


def test_kinds_are_weighed_the_heaviest_first() -> None:
    assert kinds_of(PAGE) == [(Kind.SCRIPT, 2, 3500, 500), (Kind.DOCUMENT, 1, 1000, 1000)]
    ax: Any = PAGE.plot.kinds()
    assert [label.get_text() for label in ax.get_yticklabels()] == ["script", "document"]
    assert ax.get_title(loc="left") == r"What small \$x\$ weighs: 3 resources, 4 kB"


def test_what_asks_for_what_is_drawn_without_a_load() -> None:
    ax: Any = PAGE.plot.dependencies()
    texts = [text.get_text() for text in ax.texts]
    assert texts == ["/\n1.0 kB", "a.js\n3.0 kB", "b.js\n0.5 kB"]


def test_a_page_is_shown_and_saved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert PAGE.plot._repr_png_().startswith(b"\x89PNG")
    path = tmp_path / "page.png"
    assert main(["show", "page", "davies-meenan", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert main(["show", "network", "4g", "--plot", str(path)]) == 2
    assert "--plot: is valid only with a page or a scheme" in capsys.readouterr().err


def test_a_card_of_a_scheme_has_its_strip_and_its_priorities(tmp_path: Path) -> None:
    path = tmp_path / "card.png"
    assert main(["show", "scheme", "p+", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    card = h3sim.simulate("davies-meenan", scheme="bucket-html").plot.scheme_card()
    alt = h3sim.reporting.alt_text(card)
    assert "A lane per load" in alt
    assert "A tree from left to right" in alt
    assert "It uses what no browser knows" in str(card.get_suptitle())


def test_variants_of_a_page_are_matched_by_id() -> None:
    other = PAGE.without("a.js").with_("b.js", bytes=700)
    loads = [h3sim.simulate(page, scheme="fifo") for page in (PAGE, other)]
    rows = deltas_of(*loads)
    # A packet each 10 ms: without a.js, b.js comes after the document at once.
    assert [(row.id, row.first_ms, row.second_ms, row.delta_ms) for row in rows] == [
        ("/", 10.0, 10.0, 0.0),
        ("a.js", 40.0, None, None),
        ("b.js", 50.0, 20.0, -30.0),
    ]
    assert unshared(rows) == "only in the first: a.js"
    assert unshared(deltas_of(*reversed(loads))) == "only in the second: a.js"
    figure = loads[0].plot.against(loads[1])
    above, below, _, moved = figure.axes
    assert above.get_xlim() == below.get_xlim()
    assert "only in the first: a.js" in moved.get_xlabel()


def test_the_command_draws_two_variants(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = page_file(tmp_path, ROOT, {"id": "a.js", "kind": "script", "bytes": 3000, **LATER})
    other = page_file(tmp_path, ROOT, name="other")
    path = tmp_path / "moved.png"
    assert main(["run", one, "--diff", other, "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(b"\x89PNG")
    assert main(["run", one, "--diff", other]) == 2
    assert "--diff: " in capsys.readouterr().err


def log_of(folder: Path, scheme: str) -> Path:
    path = folder / f"{scheme}.qlog"
    write_load_qlog(h3sim.simulate(PAGE, scheme=scheme), path)
    return path


def test_logs_stand_one_above_the_other_over_one_axis(tmp_path: Path) -> None:
    logs = [h3sim.read_qlog(log_of(tmp_path, scheme)) for scheme in ("rr", "fifo")]
    times, sums = delivered_curve(logs[0].trace)
    assert (times[:2], sums[:2], sums[-1]) == ([0.0, 10.0], [0, 1000], 4500)
    first, second, last = LogPlots(logs).figure().axes
    assert first.get_xlim() == second.get_xlim() == last.get_xlim()
    titles = [ax.get_title(loc="left") for ax in (first, second)]
    assert titles[0].endswith("(1)")
    assert titles[1].endswith("(2)")
    with pytest.raises(InputError, match="number: "):
        LogPlots(logs).byte_ranges(number=3)
    with pytest.raises(InputError, match="at least one"):
        LogPlots([])


def test_the_command_draws_a_log_next_to_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, simulated = (str(log_of(tmp_path, scheme)) for scheme in ("rr", "fifo"))
    path = tmp_path / "both.svg"
    assert main(["qlog", real, "--with-log", simulated, "--plot", str(path)]) == 0
    assert "<svg" in path.read_text("utf-8")
    assert main(["qlog", real, "--with-log", simulated]) == 2
    assert "--with-log: " in capsys.readouterr().err
    assert main(["qlog", real, "--with-log", "no-such.qlog", "--plot", str(path)]) == 2
    assert "no-such.qlog" in capsys.readouterr().err
