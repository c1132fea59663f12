"""Draws every figure for small and large pages: `python -m tools.figures [FOLDER] [PAGE...]`.

Each figure is written to FOLDER as a PNG at full size, 800 pixels wide, and in grey, with an index
that has their alternative texts. Measurable mistakes are printed below each: labels that overlap
or are cut off, and legends that cover something.
"""

from __future__ import annotations

import argparse
import html
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

import h3sim
from h3sim.catalog.resources import root
from h3sim.export.qlog_file import write_load_qlog
from h3sim.headers.base import HeaderLists
from h3sim.importers.header_lists import read_exchanges
from h3sim.reporting import LoadPlots, LogPlots, alt_text
from h3sim.reporting.output import save_figure
from h3sim.reporting.study_plots import header_figure
from h3sim.study.header_study import header_rows
from tools.picture_check import errors_in

if TYPE_CHECKING:
    from collections.abc import Iterator
__all__ = ["FOLDER", "PAGES", "drawn", "main", "many", "page_named"]

FOLDER = Path(__file__).parents[1] / "build" / "figures"
PAGES = (
    "davies-meenan",
    "synthetic-60",
    "dijit-bidi-inheritance",
    "synthetic-289",
    "synthetic-1200",
)
"""Of 9, 60, 111, 289 and 1,200 resources."""
_SMALL_PX = 800
_LOSSY: dict[str, Any] = {"network": "cable", "loss": 0.05, "seed": 1, "record_packets": True}


def main() -> None:
    """Draw the figures of the pages named, or of `PAGES`, and end with 1 if one looks wrong."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=FOLDER, metavar="FOLDER")
    parser.add_argument("pages", nargs="*", metavar="PAGE", help="shipped, or synthetic-N")
    options = parser.parse_args()
    folder = options.folder
    folder.mkdir(parents=True, exist_ok=True)
    named = options.pages or PAGES
    entries = []
    errors = 0
    for name, pictures in [*((name, drawn(page_named(name))) for name in named), ("study", many())]:
        for what, figure in pictures:
            path = folder / f"{name}-{what}.png"
            save_figure(figure, path)
            _shrink(path)
            entries.append((path, alt_text(figure)))
            print(f"{path.name}: {alt_text(figure)}")
            for error in errors_in(figure):
                errors += 1
                print(f"  {error}")
    (folder / "index.html").write_text(_index(entries), encoding="utf-8")
    print(f"{len(entries)} figures, {errors} mistakes; look at {folder / 'index.html'}")
    sys.exit(1 if errors else 0)


def page_named(name: str) -> h3sim.Page:
    """Return a shipped page, or one of so many resources that is made up."""
    made_up, _, n_resources = name.partition("synthetic-")
    if made_up or not n_resources:
        return h3sim.load_page(name)
    return h3sim.page.synthetic(seed=1, n_resources=int(n_resources))


def drawn(page: h3sim.Page) -> Iterator[tuple[str, Any]]:
    """Yield what each figure of a page and its loads is called, and the figure."""
    schemes = h3sim.catalog.scheme_set("marx-2019") or ()
    yield "schemes", LoadPlots([h3sim.simulate(page, scheme=s) for s in schemes]).figure()
    lossy = LoadPlots([h3sim.simulate(page, scheme=s, **_LOSSY) for s in schemes])
    yield "schemes-5-percent", lossy.figure()
    load = h3sim.simulate(page, scheme="rr", **_LOSSY)
    other = h3sim.simulate(page, scheme="chrome-eps", **_LOSSY)
    one = load.plot
    yield "load", one.figure()
    tcp = _LOSSY | {"transport": "tcp", "browser": "parse"}
    yield "load-tcp", h3sim.simulate(page, scheme="chrome-eps", **tcp).plot.figure()
    for name in ("byte_ranges", "throughput", "congestion", "dependencies", "priority_tree"):
        yield name, getattr(one, name)().figure
    tree = h3sim.simulate(page, scheme="firefox", **_LOSSY).plot
    yield "priority_tree-firefox", tree.priority_tree().figure
    yield "deltas", LoadPlots([load, other]).deltas().figure
    yield "against", one.against(other)
    for fold in ("kind", "host"):
        yield f"waterfall-{fold}", one.waterfall(fold=fold).figure
    yield "page", page.plot.figure()
    yield "logs", LogPlots([_measured(load), _measured(other)]).figure()


def _measured(load: h3sim.Load) -> h3sim.load.qlog_metrics.Measurement:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{load.scheme.name}.qlog"
        write_load_qlog(load, path)
        return h3sim.read_qlog(path)


def many() -> Iterator[tuple[str, Any]]:
    """Yield what each figure of many loads is called, and the figure."""
    schemes = ("rr", "fifo", "dfifo", "chrome-eps", "bucket-html")
    pages = ("davies-meenan", "http2rulez", *(h3sim.catalog.page_set("corpus:small") or ())[:4])
    study: dict[str, Any] = {"schemes": schemes, "rtt_ms": [20, 100], "executor": "serial"}
    results = h3sim.sweep(
        pages, **study, send_buffer_kb=[0, 280], network="cable", loss=0.02, seeds=3
    )
    pool = ["rtt_ms", "send_buffer_kb"]
    for name in ("cdf", "scatter", "ranks"):
        yield name, getattr(results.plot, name)(pool=pool).figure
    near = results.filter(rtt_ms=20)
    yield "buffers", near.plot.buffers().figure
    yield "forest", near.filter(send_buffer_kb=0).plot.forest().figure
    yield "lines", results.plot.lines("rtt_ms", pool=["send_buffer_kb"]).figure
    yield "lines-categories", results.plot.lines("page", pool=pool).figure
    yield "heat", results.plot.heat("scheme", "page", pool=pool).figure
    values = ("byte_index_all_ms", "hol_sander_stream_bytes")
    yield "correlations", results.filter(scheme="rr").plot.correlations(*values).figure
    regret = h3sim.optimality(pages, schemes=schemes, networks=["cable", "4g"])
    yield "regret", regret.plot.schemes().figure
    yield "regret-classes", regret.plot.classes("size").figure
    lists = root("corpora") / "headers" / "sneat-cards.req.qif"
    sent = h3sim.sweep(
        HeaderLists(exchanges=read_exchanges(str(lists), interval_ns=0)),
        schemes="rr",
        header_compression=("hpack", "qpack", "qcram"),
        rtt_ms=(20, 100, 200),
        loss=(0.0, 0.05),
        seeds=5,
        resources=True,
        executor="serial",
    )
    yield "headers", header_figure(header_rows(sent, sent.resources()))


def _shrink(path: Path) -> None:
    """Write the figure at *path* at 800 pixels, and in grey, beside it."""
    with Image.open(path) as image:
        height = max(1, image.height * _SMALL_PX // image.width)
        small = image.convert("RGB").resize((_SMALL_PX, height), Image.Resampling.LANCZOS)
        small.save(path.with_name(f"{path.stem}.800.png"))
        small.convert("L").save(path.with_name(f"{path.stem}.grey.png"))


def _index(entries: list[tuple[Path, str]]) -> str:
    figures = "".join(
        f'<figure><img src="{html.escape(path.name)}" alt="{html.escape(alt)}" width="800">'
        f"<figcaption>{html.escape(path.stem)}</figcaption></figure>\n"
        for path, alt in entries
    )
    return f'<!DOCTYPE html><html lang="en"><title>Figures</title><body>\n{figures}</body></html>\n'


if __name__ == "__main__":
    main()
