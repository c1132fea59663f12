"""Edits of markup, among them the first of `h3sim hints`, applied and measured in Chromium."""

from __future__ import annotations

import csv
import hashlib
import shutil
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import h3sim
from h3sim.advice.applying import apply_edits, is_markup
from h3sim.advice.edits import edits_of
from h3sim.advice.prediction import SCHEME, prepared, settings_for
from h3sim.load import resolve
from h3sim.load.run import run_spec
from h3sim.study.runner import LoadTask
from h3sim.values.errors import H3SimError
from validation.sites.errors import is_steady
from validation.sites.link import CLIENT, LINKS, linked, served
from validation.sites.measuring import N_LOADS, load_site, measuring_environment, run_folder
from validation.sites.packages import BUILD, DATA, compress_texts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from h3sim.advice.edits import Edit
    from h3sim.engine import LoadSpec
    from validation.sites.packages import Site

HINTS, EDITS = DATA / "hints.csv", DATA / "edits.csv"
"""What was measured: of first hints, and of two edits of each site."""
LINK = "4g"
_STAYS = "no move"
_MOVES, _MOVES_MS = 0.03, 30
"""From both on a time has moved: as a share, and in ms."""


class EditLoads(NamedTuple):
    """LCP of a site over `LINK` in ms: predicted and measured, before and after an edit.

    *edit* is empty if there is none; measured times are of each load, separated by spaces.
    """

    site: str
    edit: str
    predicted_ms: str
    predicted_after_ms: str
    measured_ms: str
    measured_after_ms: str


def edit_loads(file: Path) -> list[EditLoads]:
    """Return all measurements so far in `HINTS` or `EDITS`."""
    if not file.exists():
        return []
    with file.open(encoding="utf-8", newline="") as text:
        return [EditLoads(**row) for row in csv.DictReader(text)]


def measure_hints(sites: Sequence[Site]) -> None:
    """Apply the first hint of each recorded site, and load the site with and without it."""
    _measure(sites, HINTS, _first_hint)


def measure_edits(sites: Sequence[Site]) -> None:
    """Load each recorded site with and without two edits of its markup.

    These are the one that moves the predicted LCP most and, of another kind, one by its hash.
    """
    _measure(sites, EDITS, _two_edits)


class _Choice(NamedTuple):
    """An edited copy of a site: its folder, the edits in words, and LCP before and after."""

    copy: Path
    text: str
    before_ms: float
    after_ms: float


def _measure(
    sites: Sequence[Site], file: Path, choose: Callable[[Site, LoadSpec], list[_Choice]]
) -> None:
    done = {each.site for each in edit_loads(file)}
    with measuring_environment() as flag:
        for site in sites:
            if site.name in done or not (site.recordings / "record.json").exists():
                continue
            page = prepared(h3sim.load_page(site.recordings / "record.json"))
            config = replace(settings_for(LINKS[LINK]), network=LINKS[LINK])
            spec = resolve(page, h3sim.load_scheme(SCHEME), config)
            try:
                choices = choose(site, spec)
            except H3SimError as error:
                print(f"{site.name}: {str(error).splitlines()[0]}", flush=True)
                continue
            _append(file, _loaded(site, choices, flag) or [EditLoads(site.name, *[""] * 5)])


def _loaded(site: Site, choices: Sequence[_Choice], flag: str) -> list[EditLoads]:
    times: dict[Path, list[str]] = {site.folder: [], **{each.copy: [] for each in choices}}
    for _ in range(N_LOADS if choices else 0):  # in turn, so that all see the same machine
        for folder, measured in times.items():
            with linked(LINK), served(folder, run_folder()):
                load = load_site(site, flag, "times", CLIENT)
            if load is not None and load["lcp_ms"]:
                measured.append(f"{load['lcp_ms']:.0f}")
    measured_ms = " ".join(times[site.folder])
    return [
        EditLoads(
            site.name,
            each.text,
            f"{each.before_ms:.0f}",
            f"{each.after_ms:.0f}",
            measured_ms,
            " ".join(times[each.copy]),
        )
        for each in choices
    ]


def _first_hint(site: Site, spec: LoadSpec) -> list[_Choice]:
    edits = [edit for edit in edits_of(LoadTask(spec)) if is_markup(edit)]
    found = h3sim.hints(
        spec.page,
        scheme=SCHEME,
        config=replace(settings_for(LINKS[LINK]), network=LINKS[LINK]),
        edits=edits,
        network_within=1.1,
        n_seeds=4,
    )
    if not found.in_markup:
        return []
    copy, chosen = _applied(site, spec, found.in_markup, "hint")
    text = " and ".join(edit.text for edit in chosen)
    effect = next(each for each in found.effects if (each.edit, each.metric) == (text, "LCP"))
    return [_Choice(copy, text, effect.before_ms, effect.after_ms)]


def _two_edits(site: Site, spec: LoadSpec) -> list[_Choice]:
    before_ms = run_spec(spec).largest_paint_ms
    if before_ms is None:
        return []
    after_ms = {
        edit: run_spec(edit.change(LoadTask(spec)).spec).largest_paint_ms or before_ms
        for edit in edits_of(LoadTask(spec))
        if is_markup(edit)
    }
    moving = sorted(after_ms, key=lambda edit: -abs(after_ms[edit] - before_ms))
    any_of = sorted(after_ms, key=lambda edit: hashlib.sha256(edit.text.encode()).digest())
    choices: list[_Choice] = []
    kinds: set[str] = set()
    for name, in_order in (("moving", moving), ("any", any_of)):
        rest = [[edit] for edit in in_order if edit.kind not in kinds]
        if rest:
            copy, (edit,) = _applied(site, spec, rest, name)
            kinds.add(edit.kind)
            choices.append(_Choice(copy, edit.text, before_ms, after_ms[edit]))
    return choices


def _applied(
    site: Site, spec: LoadSpec, choices: Sequence[Sequence[Edit]], name: str
) -> tuple[Path, Sequence[Edit]]:
    """Return an edited copy of the site, and the first of the choices that its document allows."""
    copy = BUILD / "hinted" / site.name / name
    shutil.rmtree(copy, ignore_errors=True)
    chosen = apply_edits(site.folder, spec.page, choices, copy)
    compress_texts(copy)
    return copy, chosen


def _append(path: Path, rows: Iterable[EditLoads]) -> None:
    is_new = not path.exists()
    with path.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(EditLoads._fields)
        for row in rows:
            writer.writerow(row)
            print(*row, sep=", ", flush=True)


def edit_rows(found: Sequence[EditLoads]) -> Iterator[list[str]]:
    """Yield per edit how far it moves LCP, predicted and measured, whether it helps, and the sign.

    The sign of the prediction is told only where LCP was measured to move. A question mark follows
    a verdict whose loads were disturbed, so far apart that the other tables leave them out.

    >>> row = EditLoads("a", "preload b.png", "500", "400", "500 520 510", "430 420 410")
    >>> list(edit_rows([row]))
    [['a', 'preload b.png', '-20 %', '-18 %', 'helps', 'right']]
    """
    for each in found:
        before, after = (
            [float(time) for time in times.split()]
            for times in (each.measured_ms, each.measured_after_ms)
        )
        if len(before) == len(after) == N_LOADS:
            measured_ms, changed_ms = statistics.median(before), statistics.median(after)
            moved_ms = changed_ms - measured_ms
            verdict = _direction(moved_ms, measured_ms)
            predicted_ms = float(each.predicted_ms)
            predicted_moved_ms = float(each.predicted_after_ms) - predicted_ms
            predicted = _direction(predicted_moved_ms, predicted_ms)
            sign = "right" if predicted == verdict else "missed"
            if _STAYS not in (predicted, verdict) and predicted != verdict:
                sign = "opposite"
            yield [
                each.site,
                each.edit,
                f"{100 * predicted_moved_ms / predicted_ms:+.0f} %",
                f"{100 * moved_ms / measured_ms:+.0f} %",
                verdict if is_steady(before) and is_steady(after) else f"{verdict} ?",
                "-" if verdict == _STAYS else sign,
            ]


def _direction(moved_ms: float, time_ms: float) -> str:
    if abs(moved_ms) <= max(_MOVES_MS, _MOVES * time_ms):
        return _STAYS
    return "harms" if moved_ms > 0 else "helps"
