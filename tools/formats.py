"""Writes what comes of the declarations of formats: `python -m tools.formats`."""

from __future__ import annotations

import json
from pathlib import Path

from h3sim.page import schema

PAGE_SCHEMA = Path(__file__).parents[1] / "h3sim" / "page" / "h3sim-page-1.schema.json"


def main() -> None:
    """Write the published schema of pages."""
    text = json.dumps(schema(), indent=2, ensure_ascii=False)
    PAGE_SCHEMA.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
