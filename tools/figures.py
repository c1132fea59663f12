"""Draws every figure for pages small and large: `python -m tools.figures [FOLDER] [PAGE...]`.

For slides, and to be looked at: each stands in FOLDER as a PNG at full size, 800 pixels wide, and
in grey, with an index that has their alternative texts.
"""

from __future__ import annotations

import html
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PIL import Image

import h3sim
from h3sim.plots import LoadPlots, alt_text
from h3sim.plots.files import save_figure
from h3sim.plots.style import in_style

if TYPE_CHECKING:
    from collections.abc import Iterator
__all__ = ["FOLDER", "PAGES", "drawn", "main", "page_named"]

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
_LOSSY: dict[str, Any] = {"network": "cable", "loss": 0.05, "seed": 1, "records_wire": True}


def main() -> None:
    """Draw all figures of the pages that were named, or of `PAGES`."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    entries = []
    for name in sys.argv[2:] or PAGES:
        for what, figure in drawn(page_named(name)):
            path = folder / f"{name}-{what}.png"
            with in_style():
                save_figure(figure, path)
            _shrink(path)
            entries.append((path, alt_text(figure)))
            print(f"{path.name}: {alt_text(figure)}")
    (folder / "index.html").write_text(_index(entries), encoding="utf-8")


def page_named(name: str) -> h3sim.Page:
    """Return a shipped page, or one of so many resources that is made up."""
    made_up, _, n_resources = name.partition("synthetic-")
    if made_up or not n_resources:
        return h3sim.load_page(name)
    return h3sim.page.synthetic(seed=1, n_resources=int(n_resources))


def drawn(page: h3sim.Page) -> Iterator[tuple[str, Any]]:
    """Yield what each figure is called, and the figure."""
    schemes = h3sim.catalog.scheme_set("marx-2019")
    yield "schemes", LoadPlots([h3sim.simulate(page, scheme=s) for s in schemes or ()]).figure()
    load = h3sim.simulate(page, scheme="rr", **_LOSSY)
    other = h3sim.simulate(page, scheme="chrome-eps", **_LOSSY)
    one = load.plot
    yield "load", one.figure()
    for name in ("byte_ranges", "throughput", "congestion", "dependencies", "priority_tree"):
        yield name, getattr(one, name)().figure
    tree = h3sim.simulate(page, scheme="firefox", **_LOSSY).plot
    yield "priority_tree-firefox", tree.priority_tree().figure
    yield "deltas", LoadPlots([load, other]).deltas().figure
    yield "against", one.against(other)
    for fold in ("kind", "host"):
        yield f"waterfall-{fold}", one.waterfall(fold=fold).figure
    yield "page", page.plot.figure()


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
