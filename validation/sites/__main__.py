"""`python -m validation.sites COMMAND`: sites of packages in Chromium over links, and predicted.

collect unpacks the packages, record loads each site once without throttling, measure loads it over
three links (both as root, with h2o and Chromium; what is done is not done again). Of recordings and
measurements, calibrate computes the intervals of `h3sim predict` anew (develop part), and table
prints errors and coverage; neither needs a browser. hints applies the first hint of each site to
its files and measures it over one link, edits two edits of each site, whether they help or not.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tabulate import tabulate

from h3sim.cli.command import Parser
from validation.sites.errors import (
    calibrate,
    cells,
    folder_cells,
    log_use,
    measured_sites,
    summary,
    without_own,
)
from validation.sites.hinting import (
    EDITS,
    HINTS,
    edit_loads,
    edit_rows,
    measure_edits,
    measure_hints,
)
from validation.sites.measuring import measure, record
from validation.sites.packages import Part, all_sites

_HEADERS = (
    "recording",
    "metric",
    "link",
    "sites",
    "error: median / 90 %",
    "rho",
    "noise",
    "covered",
)

_EDIT_HEADERS = ("site", "edit", "LCP: h3sim", "Chromium", "verdict", "sign")


def main() -> int:
    """Run one step."""
    parser = Parser(prog="python -m validation.sites", description=__doc__)
    steps = ("collect", "record", "measure", "calibrate", "table", "hints", "edits")
    parser.add_argument("command", choices=steps)
    parser.add_argument("sites", nargs="*", metavar="SITE", help="names (default: all)")
    parser.add_argument("--again", action="store_true", help="record what was recorded")
    parser.add_argument(
        "--part",
        choices=list(Part),
        default=Part.DEVELOP,
        help="of the table; each use of the test part is logged",
    )
    parser.add_argument("--folder", type=Path, help="print the table of sites measured elsewhere")
    options = parser.parse_args()
    sites = [site for site in all_sites() if not options.sites or site.name in options.sites]
    if options.command == "collect":
        for site in sites:
            site.unpack()
    elif options.command == "record":
        record(sites, is_again=options.again)
    elif options.command == "measure":
        measure(sites)
    elif options.command in ("hints", "edits"):
        own = [site for site in sites if site.part == Part.DEVELOP]
        is_hints = options.command == "hints"
        (measure_hints if is_hints else measure_edits)(own)
        _print_edits(list(edit_rows(edit_loads(HINTS if is_hints else EDITS))))
    elif options.command == "calibrate":
        calibrate(measured_sites(Part.DEVELOP))
    else:
        _print_table(options.part, options.folder)
    return 0


def _print_edits(rows: list[list[str]]) -> None:
    print(tabulate(rows, _EDIT_HEADERS, disable_numparse=True))
    for what, own in (
        ("that moved LCP", rows),
        ("of which were not disturbed", [row for row in rows if not row[-2].endswith("?")]),
    ):
        signs = [row[-1] for row in own if row[-1] != "-"]
        n_right, n_opposite = signs.count("right"), signs.count("opposite")
        print(f"\nsign right for {n_right} of {len(signs)} {what}, opposite for {n_opposite}")


def _print_table(part: str, folder: Path | None) -> None:
    if folder is not None:
        found = list(folder_cells(folder))
    else:
        own = measured_sites(part)
        if part == Part.TEST:
            log_use(own)
        found = list(cells(own))
        if part == Part.DEVELOP:
            found = without_own(found)
        print(f"{part}: {len(own)} sites of {len({site.package for site in own})} packages\n")
    print(tabulate(list(summary(found)), _HEADERS, disable_numparse=True))
    known = [(each.measured.median_ms, each.interval_ms) for each in found if each.interval_ms]
    n_covered = sum(low_ms <= time_ms <= high_ms for time_ms, (low_ms, high_ms) in known)
    print(f"\ncovered: {n_covered:,} of {len(known):,}")


if __name__ == "__main__":
    sys.exit(main())
