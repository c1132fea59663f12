"""What takes the place of a load where the machinery of studies is tested; workers import it."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.study import Study
from h3sim.study.worker import LoadWork

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.study.design import DesignPoint

__all__ = [
    *("StandInStudy", "die_always", "die_once", "large", "measured", "reported", "standing_in"),
    *("waiting", "waiting_and_marking"),
]

FIGURES = ("page_load_ms", "byte_index_all_ms", "byte_index_atf_ms")


@dataclass(kw_only=True)
class StandInWork(LoadWork):
    """Loads of a sweep that are not run: what stands in for each gives its row."""

    stand_in: Callable[[DesignPoint], dict[str, Any]]

    def row(self, index: int) -> tuple[str, str | None]:
        return json.dumps(self.stand_in(self.design[index])), None


@dataclass(kw_only=True)
class StandInStudy(Study):
    """A study of such loads, whose rows have any columns."""

    stand_in: Callable[[DesignPoint], dict[str, Any]]

    @property
    def figures(self) -> tuple[str, ...]:
        return ()

    def work(self) -> StandInWork:
        return StandInWork(design=self.design, timeout_s=self.timeout_s, stand_in=self.stand_in)


def standing_in(study: Study, stand_in: Callable[[DesignPoint], Any]) -> StandInStudy:
    """Return *study* with what stands in for its loads."""
    given = {entry.name: getattr(study, entry.name) for entry in fields(study)}
    return StandInStudy(**given, stand_in=stand_in)


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
