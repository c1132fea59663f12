"""Facts and measurements that tests and validation compare with; README.md describes them."""

from __future__ import annotations

from pathlib import Path

__all__ = ["PAGES", "SCHEDULES", "STACKS"]

_FOLDER = Path(__file__).resolve().parent

PAGES = tuple(sorted((_FOLDER / "pages").glob("*-*.json"), key=lambda path: path.name))
"""The fact tables of real page loads."""
SCHEDULES = _FOLDER / "schedules" / "schedules.json"
"""When the code behind Marx 2019 finished each response."""
STACKS = _FOLDER / "stacks"
"""Downloads measured with real stacks."""
