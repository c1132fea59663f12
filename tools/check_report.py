"""Holds reports and animations to what readers need: `python -m tools.check_report [AXE.js]`.

Each is opened in an installed Chromium: no error in the console, no request but for the file
itself, all that can be scrolled or operated reached by keyboard, no name of a page taken for
markup; and nothing that axe-core, where it is given, calls serious or critical.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.export.qlog_file import write_load_qlog
from h3sim.page import page_from_dict
from h3sim.reporting import LoadPlots
from tools.open_page import browser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tools.open_page import OpenPage

__all__ = ["errors_in", "hostile_page", "main", "subjects"]

_MARKUP = (
    "</title><img src=x onerror=document.title='taken'><script>document.title='taken'</script>"
)
_SERIOUS = ("serious", "critical")
_STOPS = "a[href], button, input, select, summary, [tabindex='0']"
_TAKEN = "document.title === 'taken' || document.querySelectorAll('img[onerror]').length > 0"
_UNREACHED = f"""
[...document.querySelectorAll("{_STOPS}")].filter((e) => e.tabIndex < 0 && !e.disabled).length
+ [...document.querySelectorAll("*")].filter((e) => e.scrollWidth > e.clientWidth + 1
  && getComputedStyle(e).overflowX === "auto" && e.tabIndex < 0).length
"""


def main() -> None:
    """Write the reports, look at each, and end with 1 if anything is wrong."""
    axe = Path(sys.argv[1]).read_text("utf-8") if len(sys.argv) > 1 else None
    wrong = 0
    with tempfile.TemporaryDirectory() as folder, browser() as open_page:
        for path in subjects(Path(folder)):
            errors = list(errors_in(open_page(path), axe))
            wrong += len(errors)
            size = path.stat().st_size / 1000
            print(f"{path.name}: {size:,.0f} kB, {len(errors)} mistakes")
            for line in errors:
                print(f"  {line}")
    if axe is None:
        print("axe-core was not given, and has not looked")
    sys.exit(1 if wrong else 0)


def hostile_page() -> h3sim.Page:
    """Return a page whose name and ids are markup."""
    root = {"id": f"/{_MARKUP}", "kind": "document", "bytes": 5000, "above_the_fold": True}
    image = {
        "id": f"a.png{_MARKUP}",
        "kind": "image",
        "bytes": 50_000,
        "discovered": {"by": root["id"], "at": "complete"},
    }
    return page_from_dict(
        {"format": "h3sim-page/1", "name": f"shop{_MARKUP}", "resources": [root, image]}
    )


def subjects(folder: Path) -> Iterator[Path]:
    """Write one of each kind of file into *folder*, and yield their paths."""
    page = hostile_page()
    lossy: dict[str, Any] = {"network": "sander-2mbps-100ms-2pct", "record_packets": True}
    one, other = (h3sim.simulate(page, scheme=name, **lossy) for name in ("rr", "fifo"))
    write_load_qlog(one, folder / "client.qlog")
    made: dict[str, Any] = {
        "one-load": one,
        "two-loads": [one, other],
        "log": h3sim.read_qlog(folder / "client.qlog"),
        "large-page": h3sim.simulate("dijit-bidi-inheritance", scheme="chrome-eps"),
        "comparison": h3sim.compare(
            [page, "davies-meenan"], schemes=("rr", "fifo"), keep_loads=True
        ),
        "study": h3sim.sweep(
            [page, "davies-meenan"],
            schemes=("rr", "fifo"),
            rtt_ms=[20, 100],
            seeds=2,
            network="cable",
            executor="serial",
        ),
    }
    for name, of in made.items():
        path = folder / f"{name}.html"
        h3sim.report(of).save(path)
        yield path
    path = folder / "animation.html"
    one.plot.animation(path)
    yield path
    path = folder / "race.html"
    LoadPlots([one, other]).race(path)
    yield path


def errors_in(page: OpenPage, axe: str | None = None) -> Iterator[str]:
    """Yield what is wrong with an open file of HTML, a line each; *axe* is axe-core's source."""
    yield from (f"console: {text}" for text in page.problems)
    own = page.evaluate("location.href")
    others = [url for url in page.requests if url != own and not url.startswith("data:")]
    yield from (f"asks for {url}" for url in others)
    if page.evaluate(_TAKEN):
        yield "a name was taken for markup"
    if page.evaluate(_UNREACHED):
        yield "something cannot be reached by keyboard"
    if axe is not None:
        yield from _axe_violations(page, axe)


def _axe_violations(page: OpenPage, axe: str) -> Iterator[str]:
    page.evaluate(axe)
    found = page.evaluate("axe.run(document).then((r) => JSON.stringify(r.violations))")
    for violation in json.loads(found):
        if violation["impact"] in _SERIOUS:
            where = violation["nodes"][0]["target"]
            n = len(violation["nodes"])
            yield f"axe: {violation['id']}, {violation['help']}: {n} times, as at {where}"


if __name__ == "__main__":
    main()
