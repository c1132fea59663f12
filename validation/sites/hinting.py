"""First hints of `h3sim hints` that change markup, applied to sites and measured in Chromium."""

from __future__ import annotations

import csv
import shutil
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import h3sim
from h3sim.advice.applying import apply_edits, is_markup
from h3sim.advice.edits import edits_of
from h3sim.advice.prediction import SCHEME, prepared, settings_for
from h3sim.load import resolve
from h3sim.study.runner import LoadTask
from h3sim.values.errors import H3SimError
from validation.sites.link import CLIENT, LINKS, linked, served
from validation.sites.measuring import N_LOADS, load_site, measuring_environment, run_folder
from validation.sites.packages import BUILD, DATA, compress_texts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from validation.sites.packages import Site

MEASURED = DATA / "hints.csv"
LINK = "4g"
_MOVES, _MOVES_MS = 0.03, 30
"""From both on a time has moved: as a share, and in ms."""


class HintLoads(NamedTuple):
    """LCP of a site over `LINK` in ms: predicted and measured, before and after its first hint.

    *hint* is empty if there is none; measured times are of each load, separated by spaces.
    """

    site: str
    hint: str
    predicted_ms: str
    predicted_after_ms: str
    measured_ms: str
    measured_after_ms: str


def hint_loads() -> list[HintLoads]:
    """Return all measurements so far."""
    if not MEASURED.exists():
        return []
    with MEASURED.open(encoding="utf-8", newline="") as file:
        return [HintLoads(**row) for row in csv.DictReader(file)]


def measure_hints(sites: Sequence[Site]) -> None:
    """Apply the first hint of each recorded site, and load the site with and without it."""
    done = {each.site for each in hint_loads()}
    with measuring_environment() as flag:
        for site in sites:
            if site.name not in done and (site.recordings / "record.json").exists():
                try:
                    _append(_measured(site, flag))
                except H3SimError as error:
                    print(f"{site.name}: {str(error).splitlines()[0]}", flush=True)


def _measured(site: Site, flag: str) -> HintLoads:
    network = LINKS[LINK]
    page = prepared(h3sim.load_page(site.recordings / "record.json"))
    config = replace(settings_for(network), network=network)
    spec = resolve(page, h3sim.load_scheme(SCHEME), config)
    edits = [edit for edit in edits_of(LoadTask(spec)) if is_markup(edit)]
    found = h3sim.hints(
        page,
        scheme=SCHEME,
        config=config,
        edits=edits,
        network_within=1.1,
        n_seeds=4,
    )
    if not found.in_markup:
        return HintLoads(site.name, "", "", "", "", "")
    copy = BUILD / "hinted" / site.name
    shutil.rmtree(copy, ignore_errors=True)
    chosen = apply_edits(site.folder, page, found.in_markup, copy)
    compress_texts(copy)
    text = " and ".join(edit.text for edit in chosen)
    effect = next(each for each in found.effects if (each.edit, each.metric) == (text, "LCP"))
    times: dict[Path, list[str]] = {site.folder: [], copy: []}
    for _ in range(N_LOADS):  # in turn, so that both see the same machine
        for folder, measured in times.items():
            with linked(LINK), served(folder, run_folder()):
                load = load_site(site, flag, "times", CLIENT)
            if load is not None and load["lcp_ms"]:
                measured.append(f"{load['lcp_ms']:.0f}")
    before, after = (" ".join(measured) for measured in times.values())
    return HintLoads(
        site.name, text, f"{effect.before_ms:.0f}", f"{effect.after_ms:.0f}", before, after
    )


def _append(row: HintLoads) -> None:
    is_new = not MEASURED.exists()
    with MEASURED.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(HintLoads._fields)
        writer.writerow(row)
    print(*row, sep=", ", flush=True)


def hint_rows(found: Sequence[HintLoads]) -> Iterator[list[str]]:
    """Yield per site with a hint how far it moves LCP, predicted and measured, and whether right.

    >>> row = HintLoads("a", "preload b.png", "500", "400", "500 520 510", "430 420 410")
    >>> list(hint_rows([row]))
    [['a', 'preload b.png', '-20 %', '-18 %', 'helps']]
    """
    for each in found:
        before, after = (
            [float(time) for time in times.split()]
            for times in (each.measured_ms, each.measured_after_ms)
        )
        if len(before) == len(after) == N_LOADS:
            measured_ms, changed_ms = statistics.median(before), statistics.median(after)
            moved_ms = changed_ms - measured_ms
            has_moved = abs(moved_ms) > max(_MOVES_MS, _MOVES * measured_ms)
            verdict = ("harms" if moved_ms > 0 else "helps") if has_moved else "no move"
            predicted = float(each.predicted_after_ms) / float(each.predicted_ms) - 1
            yield [
                each.site,
                each.hint,
                f"{100 * predicted:+.0f} %",
                f"{100 * moved_ms / measured_ms:+.0f} %",
                verdict,
            ]
