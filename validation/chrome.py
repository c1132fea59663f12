"""`make validate-chrome`: made-up sites in a real Chromium over a link, beside h3sim.

Each site of `validation.chrome_sites` is loaded over HTTP/2 with TLS through an emulated link
(`validation.http2_site`), from a server that goes by the `priority` field; so one knows when each
request came, and how urgent it was. The recording is made into a page, which h3sim loads as Chrome
does (`--browser parse`, scheme chrome-eps) over the same link. Edits are made in the markup and
loaded, too; h3sim makes them in the page that was recorded without them. Where Chromium or the
server's library is missing, the command says so and ends. With `--recordings FOLDER` what is
recorded is kept there, and what is there is not recorded again.
"""

from __future__ import annotations

import argparse
import pickle
import statistics
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tabulate import tabulate

import h3sim
from h3sim.advice.edits import Edit as PageEdit
from h3sim.importers.chromium.browser import ChromiumError, find_chromium, running_chromium
from h3sim.importers.chromium.navigation import Timeouts, visit
from h3sim.importers.chromium.recording import recorded_of
from h3sim.importers.chromium.web_server import Site, address_of
from h3sim.signals import Eps
from validation.chrome_sites import made_sites
from validation.recordings import order_alike

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from h3sim.importers.chromium import Recorded
    from h3sim.importers.chromium.navigation import Navigation
    from h3sim.load import Load
    from h3sim.page import Page
    from h3sim.study.runner import LoadTask
    from validation.chrome_sites import Edit, MadeSite
    from validation.http2_site import RequestLog

_RATE_MBPS = 1.6
_RTT_MS = 150.0
_MS = 1000
_FRAMING = 1.03
"""What frames and TLS records of 1400 bytes add to bodies: 9 and 22 bytes each, and headers."""
_ROOT = "index.html"
_NO_CHANGE = 0.03
"""A largest paint that moves by less, or by less than 30 ms, has not moved."""
_NO_CHANGE_MS = 30.0
_MATTERS = 0.02
"""A paint that moves by more in Chromium has a sign that h3sim should have, too."""


@dataclass(frozen=True, slots=True)
class Visit:
    """One load in Chromium: what the browser saw, and what the server saw."""

    navigation: Navigation
    log: RequestLog

    def recorded(self, name: str) -> Recorded:
        """Return it as h3sim imports it."""
        return recorded_of(self.navigation, name)

    @property
    def largest_paint_ms(self) -> float:
        """The largest contentful paint, since navigation start."""
        return float((self.navigation.measured["largest"] or {}).get("at_ms", 0.0))

    @property
    def fcp_ms(self) -> float:
        """The first contentful paint, since navigation start."""
        return float(self.navigation.measured["paints"].get("first-contentful-paint") or 0.0)


class SiteRow(NamedTuple):
    """One site: how alike are the requests, their urgencies and the paints."""

    site: str
    n_requests: int
    order: float
    offset_ms: float
    n_urgent: int
    n_urgent_right: int
    measured_fcp_ms: float
    fcp_ms: float
    measured_lcp_ms: float
    lcp_ms: float
    measured_load_ms: float
    load_ms: float


class EditRow(NamedTuple):
    """One edit: how the largest paint moved in Chromium, and in h3sim."""

    site: str
    edit: str
    before_ms: float
    measured_ms: float
    simulated_ms: float
    fcp_ms: float = 0.0
    measured_fcp_ms: float = 0.0
    simulated_fcp_ms: float = 0.0

    @property
    def sign(self) -> bool | None:
        """Whether h3sim's LCP moves the same way; None where Chromium's moves by at most 2 %."""
        if abs(self.measured_ms) <= _MATTERS * self.before_ms:
            return None
        return self.measured_ms * self.simulated_ms > 0

    @property
    def fcp_sign(self) -> bool | None:
        """Whether h3sim's FCP moves the same way; None as for `sign`."""
        if abs(self.measured_fcp_ms) <= _MATTERS * self.fcp_ms:
            return None
        return self.measured_fcp_ms * self.simulated_fcp_ms > 0

    @property
    def verdict(self) -> str:
        """Whether both moved the same way: "right", "opposite", or "missed" if one stood still."""
        return _verdict(self.measured_ms, self.simulated_ms, self.before_ms)

    @property
    def fcp_verdict(self) -> str:
        """The same of FCP."""
        return _verdict(self.measured_fcp_ms, self.simulated_fcp_ms, self.fcp_ms)


def _verdict(measured_ms: float, simulated_ms: float, before_ms: float) -> str:
    ways = [_way(moved_ms, before_ms) for moved_ms in (measured_ms, simulated_ms)]
    if ways[0] == ways[1]:
        return "right"
    return "opposite" if ways[0] == -ways[1] else "missed"


def _way(moved_ms: float, before_ms: float) -> int:
    if abs(moved_ms) < max(_NO_CHANGE_MS, _NO_CHANGE * before_ms):
        return 0
    return 1 if moved_ms > 0 else -1


_NONE = "none"
"""The best edit of a site that is best left as it is."""


class HintedSite(NamedTuple):
    """One site: the best of its edits in Chromium, and the one that h3sim's hints rank first."""

    site: str
    n_edits: int
    before_ms: float
    best: str
    best_ms: float
    hint: str
    hint_ms: float
    """How far the largest paint moved in Chromium with the first hint."""

    @property
    def is_found(self) -> bool:
        """True if the first hint is the best edit, or as good within what counts as no move."""
        return self.hint == self.best or not _way(self.hint_ms - self.best_ms, self.before_ms)


def hinted(
    site: MadeSite, page: Page, edits: Sequence[EditRow], options: argparse.Namespace
) -> HintedSite:
    """Return what `h3sim.hints` ranks first of a site's edits, and what Chromium does."""
    tried = [
        PageEdit(edit.name, "measured", "", _changing(edit), frozenset({edit.name}))
        for edit in site.edits
    ]
    over = _over(options) | {"network_within": 1, "n_seeds": 3}
    found = h3sim.hints(page, edits=tried, progress=False, **over)
    before_ms = edits[0].before_ms
    measured_ms = {_NONE: 0.0} | {row.edit: row.measured_ms for row in edits}
    best = min(measured_ms, key=lambda name: measured_ms[name])
    if not _way(measured_ms[best], before_ms):
        best = _NONE
    # Of the single edits, as pairs were not loaded in Chromium.
    first = next(
        (row.edit for row in found.rows if row.ratio < 1 and row.edit in measured_ms), _NONE
    )
    moved_ms = {best: measured_ms[best], first: measured_ms[first]}
    return HintedSite(
        site.name, len(tried), before_ms, best, moved_ms[best], first, moved_ms[first]
    )


def _changing(edit: Edit) -> Callable[[LoadTask], LoadTask]:
    return lambda task: task._replace(spec=replace(task.spec, page=edit.change(task.spec.page)))


def measure(
    folder: Path,
    program: str,
    rate_mbps: float,
    rtt_ms: float,
    think_ms: float,
    early_hints: tuple[str, ...],
) -> Visit:
    """Return one load of the site in *folder* over the link.

    Raises:
        ChromiumError: if the page does not load.
    """
    # On use: their library need not be there.
    from validation.http2_site import Order, RequestLog, flag_of_certificate, served_over_link

    log = RequestLog()
    link = served_over_link(
        Site(folder, "none"),
        rate_bps=round(rate_mbps * 1e6),
        rtt_s=rtt_ms / _MS,
        log=log,
        order=Order.PRIORITY,
        think_s=think_ms / _MS,
        early_hints=early_hints,
    )
    flags = (flag_of_certificate(),)
    with link as base, running_chromium(program, local_only=True, flags=flags) as address:
        seen = visit(address, address_of(base, _ROOT), Timeouts(late_s=8.0))
    return Visit(seen, log)


def measured(site: MadeSite, edit: Edit | None, options: argparse.Namespace) -> Visit:
    """Return the middle one of the loads of a site, by its largest paint."""
    loads = sorted(loads_of(site, edit, options), key=lambda load: load.largest_paint_ms)
    return loads[len(loads) // 2]


def measured_fcp_ms(site: MadeSite, edit: Edit | None, options: argparse.Namespace) -> float:
    """Return the median FCP of the loads of a site: another load may be the middle one by it."""
    return statistics.median(load.fcp_ms for load in loads_of(site, edit, options))


_LOADED: dict[tuple[str, str], list[Visit]] = {}


def loads_of(site: MadeSite, edit: Edit | None, options: argparse.Namespace) -> list[Visit]:
    """Return the loads of a site with an edit, each recorded once."""
    key = (site.name, "" if edit is None else edit.name)
    if key not in _LOADED:
        _LOADED[key] = _recorded_loads(site, edit, options)
    return _LOADED[key]


def _recorded_loads(site: MadeSite, edit: Edit | None, options: argparse.Namespace) -> list[Visit]:
    loads: list[Visit] = []
    for n in range(options.loads):
        what = "" if edit is None else "_" + edit.name.replace(" ", "-").replace("…", "")
        file = None if options.recordings is None else options.recordings / f"{site.name}{what}_{n}"
        if file is not None and file.exists():
            kept: Visit = pickle.loads(file.read_bytes())  # noqa: S301 - of an earlier run
            loads.append(kept)
            continue
        with tempfile.TemporaryDirectory() as folder:
            site.write(Path(folder), edit)
            link = (find_chromium(), options.rate_mbps, options.rtt_ms)
            hints = () if edit is None else edit.early_hints
            loads.append(measure(Path(folder), *link, site.think_ms, hints))
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(pickle.dumps(loads[-1]))
    return loads


def simulated(page: Page, options: argparse.Namespace) -> Load:
    """Return the load of a page over the link, as Chrome does it."""
    return h3sim.simulate(page, browser="parse", **_over(options))


def _over(options: argparse.Namespace) -> dict[str, Any]:
    """Return the scheme, the transport and the link of each simulated load."""
    over: dict[str, Any] = {"network": "marx-2019", "rtt_ms": options.rtt_ms}
    over["rate_mbps"] = options.rate_mbps / _FRAMING
    return {**over, "scheme": "chrome-eps", "transport": "tcp"}


def compare(site: MadeSite, seen: Visit, load: Load, *, is_known: bool) -> SiteRow:
    """Return how alike a load in Chromium and one in h3sim are."""
    recorded = seen.recorded(site.name)
    came: dict[str, float] = {}
    urgencies: dict[str, str] = {}
    for at_s, target, priority in seen.log.requests:
        came.setdefault(target.lstrip("/"), at_s * _MS)
        urgencies.setdefault(target.lstrip("/"), priority)
    left = {timing.id: timing.requested_ms for timing in load.timings}
    message: dict[str, int] = {}
    streams = {timing.stream_id: timing.id for timing in load.timings}
    for _, stream_id, signal in load.trace.signals:
        if isinstance(signal, Eps) and stream_id in streams:
            message.setdefault(streams[stream_id], signal.urgency)
    ids = [id_ for id_ in came if id_ in left and id_ != _ROOT]
    offsets = {id_: (left[id_] - left[_ROOT]) - (came[id_] - came[_ROOT]) for id_ in ids}
    right = [id_ for id_ in ids if f"u={message.get(id_)}" in urgencies[id_].split(", ")[:1]]
    right += [id_ for id_ in ids if message.get(id_) == 3 and "u=" not in urgencies[id_]]
    if is_known:
        rows = [
            (
                id_,
                round(came[id_] - came[_ROOT]),
                round(left[id_] - left[_ROOT]),
                urgencies[id_],
                message.get(id_),
            )
            for id_ in sorted(ids, key=came.__getitem__)
        ]
        print(f"\n{site.name}\n" + tabulate(rows, ("id", "came", "h3sim", "priority", "u")))
    return SiteRow(
        site.name,
        len(ids),
        order_alike(_places(came), _places(left)),
        statistics.fmean(map(abs, offsets.values())),
        len(ids),
        len(right),
        recorded.first_paint_ms or 0.0,
        load.fcp_ms or 0.0,
        recorded.largest_paint_ms or 0.0,
        load.largest_paint_ms or load.first_paint_ms or 0.0,
        recorded.onload_ms,
        load.load_event_ms or 0.0,
    )


def _places(times_ms: Mapping[str, float]) -> dict[str, float]:
    """Return the place of each request in their order; those of one instant are as they came."""
    return {id_: float(n) for n, id_ in enumerate(sorted(times_ms, key=times_ms.__getitem__))}


def main(argv: list[str]) -> int:
    """Measure and compare; print tables and what they come to."""
    parser = argparse.ArgumentParser(prog="validate-chrome", description=__doc__)
    parser.add_argument("sites", nargs="*", metavar="SITE")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER")
    parser.add_argument("--rate-mbps", type=float, default=_RATE_MBPS)
    parser.add_argument("--rtt-ms", type=float, default=_RTT_MS)
    parser.add_argument("--loads", type=int, default=3, help="of which the middle one counts")
    parser.add_argument("--no-edits", action="store_true", help="only the sites as they are")
    parser.add_argument("--requests", action="store_true", help="print each request")
    options = parser.parse_args(argv)
    try:
        import h2  # noqa: F401 - asked for ahead of minutes of work

        find_chromium()
    except ImportError:
        print("validate-chrome: skipped: the h2 library is not installed")
        return 0
    except ChromiumError as error:
        print(f"validate-chrome: skipped: {error}")
        return 0
    rows: list[SiteRow] = []
    edits: list[EditRow] = []
    hints: list[HintedSite] = []
    frames = [0, 0]
    for site in made_sites():
        if options.sites and site.name not in options.sites:
            continue
        seen = measured(site, None, options)
        frames[0] += len(seen.log.priority_frames)
        frames[1] += seen.log.n_priority_updates
        page = _thinking(seen.recorded(site.name).page, site)
        load = simulated(page, options)
        rows.append(compare(site, seen, load, is_known=options.requests))
        tried = () if options.no_edits else site.edits
        of_site = [_edited(site, edit, seen, load, options) for edit in tried]
        edits += of_site
        if of_site:
            hints.append(hinted(site, load.page, of_site, options))
        print(f"validate-chrome: {site.name} done", file=sys.stderr)
    _show(rows, edits)
    if hints:
        _show_hints(hints)
    print(
        f"\nover HTTP/2 came {frames[0]} PRIORITY frames about open streams,"
        f" {frames[1]} PRIORITY_UPDATE"
    )
    return 0


def _thinking(page: Page, site: MadeSite) -> Page:
    """Return the page with the think time of its server, which a recording over a link lacks."""
    return page.with_(_ROOT, server_ms=site.think_ms) if site.think_ms else page


def _edited(
    site: MadeSite, edit: Edit, seen: Visit, load: Load, options: argparse.Namespace
) -> EditRow:
    after, fcp_ms = measured(site, edit, options), measured_fcp_ms(site, None, options)
    changed = simulated(edit.change(load.page), options)
    paints = [each.largest_paint_ms or each.first_paint_ms or 0.0 for each in (load, changed)]
    return EditRow(
        site.name,
        edit.name,
        seen.largest_paint_ms,
        after.largest_paint_ms - seen.largest_paint_ms,
        paints[1] - paints[0],
        fcp_ms,
        measured_fcp_ms(site, edit, options) - fcp_ms,
        (changed.fcp_ms or 0.0) - (load.fcp_ms or 0.0),
    )


def _show(rows: Sequence[SiteRow], edits: Sequence[EditRow]) -> None:
    heads = (
        "site",
        "requests",
        "order",
        "offset ms",
        "urgency",
        "FCP ms",
        "h3sim",
        "LCP ms",
        "h3sim",
        "load ms",
        "h3sim",
    )
    body = [
        (
            row.site,
            row.n_requests,
            f"{row.order:.2f}",
            f"{row.offset_ms:,.0f}",
            f"{row.n_urgent_right}/{row.n_urgent}",
            *(f"{ms:,.0f}" for ms in row[-6:]),
        )
        for row in rows
    ]
    print(
        tabulate(body, heads, "github", disable_numparse=True, colalign=["left"] + ["right"] * 10)
    )
    n = sum(row.n_requests for row in rows)
    offset_ms = sum(row.offset_ms * row.n_requests for row in rows) / n
    fcp = statistics.fmean(abs(r.fcp_ms / r.measured_fcp_ms - 1) for r in rows)
    lcp = statistics.fmean(abs(r.lcp_ms / r.measured_lcp_ms - 1) for r in rows)
    order = statistics.fmean(row.order for row in rows)
    loaded = statistics.fmean(abs(r.load_ms / r.measured_load_ms - 1) for r in rows)
    right = sum(row.n_urgent_right for row in rows)
    print(
        f"\n{len(rows)} sites: order of requests: mean rho {order:.2f};"
        f" requests off by {offset_ms:,.0f} ms on average;"
        f" urgency right for {right} of {n} ({100 * right / n:.1f} %);"
        f" FCP off by {100 * fcp:.1f} %, LCP by {100 * lcp:.1f} %,"
        f" the load event by {100 * loaded:.1f} %"
    )
    if edits:
        _show_edits(edits)


def _show_edits(edits: Sequence[EditRow]) -> None:
    body = [
        (
            *(e.site, e.edit, *(f"{ms:,.0f}" for ms in e[2:5])),
            *(e.verdict, *(f"{ms:,.0f}" for ms in e[5:]), e.fcp_verdict),
        )
        for e in edits
    ]
    heads = ("site", "edit", "LCP ms", "moves by", "h3sim", "", "FCP ms", "moves by", "h3sim", "")
    align = ("left", "left", *(["right"] * 3 + ["left"]) * 2)
    print("\n" + tabulate(body, heads, "github", disable_numparse=True, colalign=align))
    for name, verdicts, signs in (
        ("LCP", [edit.verdict for edit in edits], [edit.sign for edit in edits]),
        ("FCP", [edit.fcp_verdict for edit in edits], [edit.fcp_sign for edit in edits]),
    ):
        counts = ", ".join(f"{verdicts.count(v)} {v}" for v in ("right", "missed", "opposite"))
        moved = [is_right for is_right in signs if is_right is not None]
        print(
            f"\n{name} with {len(edits)} edits: {counts};"
            f" of {len(moved)} that move it by more than 2 %, the sign of {sum(moved)} is right"
        )


def _show_hints(hints: Sequence[HintedSite]) -> None:
    body = [
        (
            *(row.site, row.n_edits, row.best, f"{row.best_ms:,.0f}"),
            *(row.hint, f"{row.hint_ms:,.0f}", "yes" if row.is_found else "no"),
        )
        for row in hints
    ]
    heads = ("site", "edits", "best in Chromium", "moves by", "first hint", "moves by", "found")
    align = ("left", "right", "left", "right", "left", "right", "left")
    print("\n" + tabulate(body, heads, "github", disable_numparse=True, colalign=align))
    n_found = sum(row.is_found for row in hints)
    several = [row for row in hints if row.n_edits > 1]
    print(
        f"\nbest edit found on {n_found} of {len(hints)} sites,"
        f" {sum(row.is_found for row in several)} of the {len(several)} with several edits"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
