"""`make validate-headers`: header compression beside what ls-qpack and Frindell 2017 published."""

from __future__ import annotations

from tabulate import tabulate

from h3sim.papers.report import claim_rows
from validation.frindell import judgements, spacing_rows, transport_rows
from validation.header_ratios import (
    MISSING,
    PUBLISHED,
    SETTINGS,
    lists,
    measure,
    shipped_lists,
)

_POINTS = 2.0
"""So many percentage points may lie between ls-qpack's ratio then and now."""


def main() -> None:
    """Print the tables."""
    _print_ratios()
    _print_frindell()


def _print_ratios() -> None:
    print("QPACK, bytes sent over bytes uncompressed, in percent")
    rows = []
    for name, published in PUBLISHED.items():
        sections = lists(name)
        if sections is None:
            print(f"{name}: left out; {MISSING}")
            continue
        for setting, then in published.items():
            now = measure(sections, setting)
            verdict = "met" if abs(now.percent - then) <= _POINTS else "differs"
            row = (name, str(setting), f"{then:.1f}", f"{now.percent:.1f}", now.n_referring)
            rows.append((*row, verdict))
    if rows:
        headers = ("lists", "table/blocked/acks", "ls-qpack", "h3sim", "refer to the table", "")
        print(
            tabulate(rows, headers, disable_numparse=True, colalign=("left",) * 2 + ("right",) * 3)
        )
    print("\nthe same of the shipped lists")
    own = {kind: shipped_lists(kind) for kind in ("req", "resp")}
    shares = [
        (str(setting), *(f"{measure(sections, setting).percent:.1f}" for sections in own.values()))
        for setting in SETTINGS
    ]
    counts = [f"{len(sections)} {kind}" for kind, sections in own.items()]
    print(tabulate(shares, ("table/blocked/acks", *counts), disable_numparse=True))


def _print_frindell() -> None:
    print("\nFrindell 2017")
    found = judgements()
    if found is None:
        print(f"left out; {MISSING}")
        return
    rows = [
        (judgement.finding.id, judgement.verdict.value, *row)
        for judgement in found
        for row in claim_rows(judgement)
    ]
    headers = ("finding", "verdict", "", "claim", "h3sim", "expected")
    print(tabulate(rows, headers, disable_numparse=True))
    print("\nHPACK's HOL delay a request, in ms, by the time between requests")
    spaced = [(f"{spacing:g} ms", f"{a:.0f}", f"{b:.0f}") for spacing, a, b in spacing_rows()]
    print(
        tabulate(
            spaced,
            ("a request every", "100 ms, 2 %", "200 ms, 5 %"),
            disable_numparse=True,
            colalign=("left", "right", "right"),
        )
    )
    print("\nHOL delay a request, in ms, in the model and over QUIC next to response bodies")
    over = [(path, scheme, f"{a:.1f}", f"{b:.1f}") for path, scheme, a, b in transport_rows()]
    print(
        tabulate(
            over,
            ("path", "scheme", "model", "QUIC over 4g"),
            disable_numparse=True,
            colalign=("left", "left", "right", "right"),
        )
    )


if __name__ == "__main__":
    main()
