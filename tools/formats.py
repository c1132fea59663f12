"""Writes what comes of the declarations of formats: `python -m tools.formats`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.page import schema
from h3sim.study import result_schemas

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = Path(__file__).parents[1] / "h3sim"
PAGE_SCHEMA = _PACKAGE / "page" / "h3sim-page-1.schema.json"


def result_schema(format_: str) -> Path:
    """Return where the published schema of a format of results stands."""
    return _PACKAGE / "study" / f"{format_.replace('/', '-')}.schema.json"


def main() -> None:
    """Write the published schemas of pages, and of results over many loads."""
    _write(PAGE_SCHEMA, schema())
    for format_, found in result_schemas().items():
        _write(result_schema(format_), found)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    text = json.dumps(document, indent=2, ensure_ascii=False)
    path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
