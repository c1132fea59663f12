"""What single mechanisms do to the comparison: `make validate-stacks ARGS=--mechanisms`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tabulate import tabulate

from validation.comparing import compare, replay
from validation.modelled import MECHANISMS
from validation.summary import STACKS, deviations

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validation.measured import Setting

__all__ = ["mechanisms_table"]

_HEADERS = ("mechanism", "stack", "settings", "total without", "with", "mean without", "with")


def mechanisms_table(settings: Sequence[Setting]) -> str:
    """Return deviations without and with each mechanism, each the median and the largest.

    Settings without added loss are compared as they are, the others run by run with the losses
    that were recorded.
    """
    lines = []
    for name, labels in MECHANISMS.items():
        for label in labels:
            own = [setting for setting in settings if setting.label == label]
            lossless = [setting for setting in own if not setting.loss]
            for kind, chosen, make in (("no loss", lossless, compare), ("replayed", own, replay)):
                before, after = make(chosen, without=name), make(chosen)
                if before:
                    pairs = zip(deviations(before), deviations(after), strict=True)
                    figures = (figure for pair in pairs for figure in pair)
                    lines.append((name, STACKS[label], kind, *figures))
    return tabulate(lines, _HEADERS, tablefmt="github", disable_numparse=True)
