"""What takes the place of a load where the machinery of studies is tested; workers import it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from h3sim.study.design import DesignPoint

__all__ = [
    *("die_always", "die_once", "large", "measured", "reported", "waiting"),
    "waiting_and_marking",
]

FIGURES = ("page_load_ms", "byte_index_all_ms", "byte_index_atf_ms")


def reported(cell: DesignPoint) -> dict[str, Any]:
    """Return a row that says which cell it is."""
    return {"page": cell.page.name, "scheme": cell.scheme.name, "seed": cell.seed}


def die_once(cell: DesignPoint) -> dict[str, Any]:
    """Kill the process at seed 5, but only once: marks stand in a folder that the page names."""
    mark = Path(cell.page.provenance["marks"]) / f"{cell.scheme.name}-{cell.seed}"
    if cell.seed == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return reported(cell)


def be_asked_to_end(cell: DesignPoint) -> dict[str, Any]:
    """Ask this process to end, at seed 5."""
    if cell.seed == 5:
        os.kill(os.getpid(), signal.SIGTERM)
    return reported(cell)


def die_always(cell: DesignPoint) -> dict[str, Any]:
    """Kill the process at seed 5, whenever."""
    if cell.seed == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return reported(cell)


def waiting(cell: DesignPoint) -> dict[str, Any]:
    """Take a while, as a load does."""
    import time

    time.sleep(0.01)
    return reported(cell)


def large(cell: DesignPoint) -> dict[str, Any]:
    """Return a row as large as that of a load."""
    return reported(cell) | {"text": f"{cell.seed:04}" * 500}


def waiting_and_marking(cell: DesignPoint) -> dict[str, Any]:
    """Take a while, and leave a mark of the process in the folder that the page names."""
    (Path(cell.page.provenance["marks"]) / str(os.getpid())).touch()
    return waiting(cell)


def measured(cell: DesignPoint) -> dict[str, Any]:
    """Return a row with numbers, as a load's has."""
    base = 100 * cell.seed + len(cell.scheme.name)
    figures = {name: base + n / 8 for n, name in enumerate(FIGURES)}
    return {**reported(cell), "page_digest": cell.page.digest, **figures}
