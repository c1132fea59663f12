"""`make validate-stacks`: simulated downloads beside downloads measured with real stacks.

For each setting the same bodies are loaded over the same link with the profile of the stack. Total
time, mean completion and head-of-line bytes are compared with what was measured: medians, and where
the link added loss also run by run with the losses that were recorded.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from tabulate import tabulate

from validation import measured
from validation.acks import acks_table
from validation.comparing import Compared, compare, replay
from validation.mechanisms import mechanisms_table
from validation.summary import summary

if TYPE_CHECKING:
    from collections.abc import Sequence

_HEADERS = (
    *("setting", "total", "mean", "worst run", "to fifo", "measured"),
    *("HOL kB", "measured", "HOL to fifo", "measured"),
)
_FORMATS = ("", ".3f", ".3f", ".3f", ".3f", ".3f", ".0f", ".0f", ".2f", ".2f")


def main(argv: list[str]) -> int:
    """Print the tables; arguments pick the settings whose names contain one of them.

    With `--mechanisms` print what single mechanisms do.
    """
    settings = measured.read_settings()
    if argv and argv[0] == "--mechanisms":
        print(mechanisms_table(settings))
        return 0
    expected = [s for s in settings if not argv or any(part in s.name for part in argv)]
    medians = compare(expected)
    print("Medians\n")
    print(_table(medians))
    replayed = replay(expected)
    print("\nRun by run, with the random losses that were recorded\n")
    print(_table(replayed))
    print("\nACKs of the QUIC client\n")
    print(acks_table(expected))
    print("\nSummary\n")
    print(summary(medians, replayed))
    return 0


def _table(rows: Sequence[Compared]) -> str:
    return tabulate([_row(row) for row in rows], _HEADERS, floatfmt=_FORMATS, missingval="-")


def _row(row: Compared) -> tuple[str | float | None, ...]:
    kilobytes = [n_bytes / 1000 for n_bytes in row.hol_bytes]
    return (
        *(row.setting.name, row.total, row.mean, row.worst),
        *(row.mean_to_fifo or (None, None)),
        *kilobytes,
        *(row.hol_to_fifo or (None, None)),
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
