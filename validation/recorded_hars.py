"""Holds replays of recordings against them: HARs that h3sim wrote itself, and those of a folder.

`python -m validation.recorded_hars FOLDER` prints two tables. The first is of thirty HARs of loads
(five networks, three pages, QUIC and TCP), of which the network is known. The second is of every
HAR of the folder, by who wrote it; it names no file. Each ends in a verdict or in why there is
none. With `--write` both go into docs/generated/replays-of-recordings.md; the folder may also stand
in `H3SIM_HARS`.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim import catalog
from h3sim.browser import BrowserMode, BrowserModel
from h3sim.page.har_facts import FACTS
from h3sim.study.fidelity import GOOD_FACTOR, Grade, fidelity
from h3sim.values.errors import H3SimError
from h3sim.values.text import plural
from h3sim.values.units import to_mbps, to_ms
from tools.documented import put

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from h3sim.importers import ImportedPage
    from h3sim.study.fidelity import Fidelity

__all__ = ["main", "of_folder", "written_by_h3sim"]

_TRANSPORTS = ("quic", "tcp")
NETWORKS = ("dsl", "cable", "4g", "fibre", "fast-3g")
PAGES = ("davies-meenan", "gentelella-index", "sneat-index")
_SELF = (
    *("network", "page", "transport", "RTT, times true", "rate, times true", "load event"),
    "grade",
)
_REAL = (
    *("writer", "protocol", "resources", "RTT ms", "Mbit/s", "load event", "above the fold"),
    *("rho", "bytes %", "computed: load event", "above the fold", "ends in"),
)
_REPLAYED, _COMPUTED = slice(5, 7), slice(9, 11)
"""Columns of `_REAL` with the milestones relative to those recorded."""
_BROWSER = BrowserModel(mode=BrowserMode.PARSE)


def written_by_h3sim(networks: Iterable[str], pages: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield a row for the HAR of each load, with what was estimated divided by what is true."""
    for transport, network, name in itertools.product(_TRANSPORTS, networks, pages):
        truth = catalog.load_network(network)
        load = h3sim.simulate(name, scheme="chrome-eps", network=network, transport=transport)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "load.har"
            path.write_text(json.dumps(_as_others_write_it(load.to_har())), encoding="utf-8")
            page = h3sim.import_page(path).page
        known, judged, down = page.recorded_load, fidelity(page), truth.down
        rate_bps = None if down is None else down.rate_bps
        if known is None or judged is None or known.rtt_ns is None:
            yield (network, name, transport, "-", "-", "-", "none")
            continue
        rtt = known.rtt_ns / truth.rtt_ns
        rate = (known.rate_bps or 0) / (rate_bps or 1)
        at = _times(judged, "load event")
        yield (network, name, transport, f"{rtt:.2f}", f"{rate:.2f}", at, judged.grade.value)


def _as_others_write_it(document: dict[str, Any]) -> dict[str, Any]:
    """Return a HAR without the facts that only h3sim writes, so that all has to be inferred."""
    log = document["log"]
    for each in (*log["pages"], *log["entries"]):
        each.pop(FACTS, None)
    return document


def of_folder(folder: Path) -> Iterator[tuple[str, ...]]:
    """Yield a row for each HAR of *folder*, the larger first within a writer."""
    rows: list[tuple[str, ...]] = []
    for path in sorted(folder.glob("**/*.har")):
        try:
            imported = h3sim.import_page(path)
        except H3SimError as error:
            reason = str(error).partition("\n")[0].removeprefix(f"{path}: ")
            rows.append((_writer(path), *("-",) * (len(_REAL) - 2), f"refused: {reason}"))
            continue
        judged = fidelity(imported.page)
        if judged is not None:
            computed = fidelity(imported.page, _BROWSER) or judged
            rows.append(_row(path, imported, judged, computed))
    yield from sorted(rows, key=lambda row: row[0].lower())


def _row(
    path: Path, imported: ImportedPage, judged: Fidelity, computed: Fidelity
) -> tuple[str, ...]:
    known, rho, share = imported.page.recorded_load, judged.rank_correlation, judged.bytes_share
    rtt_ns, rate_bps = (None, None) if known is None else (known.rtt_ns, known.rate_bps)
    return (
        _writer(path),
        "-" if known is None else known.protocol or "-",
        str(imported.n_resources),
        "-" if rtt_ns is None else f"{to_ms(rtt_ns):g}",
        "-" if rate_bps is None else f"{to_mbps(rate_bps):g}",
        _times(judged, "load event"),
        _times(judged, "last above the fold"),
        "-" if rho is None else f"{rho:.2f}",
        "-" if share is None else f"{100 * share:.0f}",
        _times(computed, "load event"),
        _times(computed, "last above the fold"),
        _ending(judged),
    )


def _ending(judged: Fidelity) -> str:
    if judged.grade is Grade.GOOD:
        return "verdict"
    if judged.grade is Grade.FAIR:
        return "verdict, with how far off"
    if not judged.milestones:
        return f"none: {'; '.join(judged.lacks) or 'it tells no times'}"
    return f"none: {judged.sentence.partition(': ')[2].rstrip('.')}"


def _times(judged: Fidelity, milestone: str) -> str:
    found = (row for row in judged.milestones if row.milestone == milestone)
    return next((f"{row.replayed_ms / row.recorded_ms:.2f}" for row in found), "-")


def _writer(path: Path) -> str:
    """Return who signed a HAR, and for whom."""
    try:
        log = json.loads(path.read_text(encoding="utf-8-sig", errors="replace"))["log"]
    except (ValueError, KeyError, TypeError):
        return "unknown"
    named = (str((log.get(key) or {}).get("name") or "") for key in ("creator", "browser"))
    return re.sub(r"[|\n]", " ", " of ".join(dict.fromkeys(filter(None, named)))) or "unknown"


def summary(rows: Sequence[tuple[str, ...]]) -> str:
    """Return how many ended how, and of how many with a network both milestones are within."""
    endings = Counter(row[-1].partition(":")[0] for row in rows)
    estimated = [row for row in rows if row[3] != "-"]
    near, computed = (
        sum(all(_is_near(text) for text in row[columns]) for row in estimated)
        for columns in (_REPLAYED, _COMPUTED)
    )
    reported = ", ".join(f"{ending} {number}" for ending, number in sorted(endings.items()))
    return (
        f"{plural(len(rows), 'recording')}: {reported}. Of {len(estimated)} with an estimated"
        f" network, load event and last above the fold are within"
        f" {100 * (GOOD_FACTOR - 1):.0f} % in {near} when replayed, and in {computed} when a"
        " browser computes them."
    )


def _is_near(text: str) -> bool:
    return text == "-" or 1 / GOOD_FACTOR <= float(text) <= GOOD_FACTOR


def _table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> int:
    """Print the tables, or write them."""
    parser = argparse.ArgumentParser(prog="python -m validation.recorded_hars")
    parser.add_argument("folder", nargs="?", default=os.environ.get("H3SIM_HARS"), type=Path)
    parser.add_argument(
        "--write", action="store_true", help="write into docs/generated/replays-of-recordings.md"
    )
    options = parser.parse_args()
    text = _table(_SELF, written_by_h3sim(NETWORKS, PAGES))
    if options.folder is not None:
        if not options.folder.is_dir():
            sys.stderr.write(f"{options.folder}: is no folder\n")
            return 2
        rows = list(of_folder(options.folder))
        text += f"\n\n{summary(rows)}\n\n{_table(_REAL, rows)}"
    if not options.write:
        sys.stdout.write(f"{text}\n")
        return 0
    put("recorded hars", f"\n{text}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
