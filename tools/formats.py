"""Writes what comes of the declarations of formats: `python -m tools.formats`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim.cli.schemas import result_schemas, study_schemas
from h3sim.page.model import FORMAT as PAGE
from h3sim.papers import findings_schemas
from h3sim.schedulers.driver import PROTOCOL, protocol_schema

if TYPE_CHECKING:
    from collections.abc import Mapping

_PACKAGE = Path(__file__).parents[1] / "h3sim"


def published() -> dict[Path, dict[str, Any]]:
    """Return the schema of each format by the file that it is published in, beside the code."""
    of_models = catalog.schemas()
    packages: Mapping[str, Mapping[str, dict[str, Any]]] = {
        "page": {PAGE: of_models.pop(PAGE)},
        "catalog": of_models,
        "study": study_schemas() | result_schemas(),
        "papers": findings_schemas(),
        "schedulers": {PROTOCOL: protocol_schema()},
    }
    return {
        _PACKAGE / package / f"{format_.replace('/', '-')}.schema.json": found
        for package, schemas in packages.items()
        for format_, found in schemas.items()
    }


def main() -> None:
    """Write every schema anew."""
    for path, found in published().items():
        text = json.dumps(found, indent=2, ensure_ascii=False)
        path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
