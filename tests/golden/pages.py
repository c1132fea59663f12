"""Made-up pages, recorded: who names a seed means the same page in every version."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from h3sim.page import Page, synthetic

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("pages.json")
MADE: tuple[dict[str, Any], ...] = (
    *({"seed": seed} for seed in range(4)),
    {"seed": 5, "n_resources": 1},
    {"seed": 5, "n_resources": 2, "hero_bytes": 50_000},
    {"seed": 6, "n_resources": 60, "max_depth": 5, "script_share": 0.5, "hero_bytes": 0},
    {"seed": 7, "n_resources": 40, "total_bytes": 700_001, "html_bytes": 20_000, "max_depth": 1},
    {"seed": 8, "n_resources": 30, "total_bytes": 400_003, "hero_bytes": 90_000, "script_share": 0},
)


def compute() -> dict[str, Any]:
    """Return, by the arguments that made it, how large each page is and what it is made of."""
    return {
        ", ".join(f"{key} {value}" for key, value in made.items()): _summary(synthetic(**made))
        for made in MADE
    }


def _summary(page: Page) -> dict[str, Any]:
    digest = hashlib.sha256(page.to_json().encode()).hexdigest()
    return {
        "resources": len(page.resources),
        "bytes": page.total_bytes,
        "hero_bytes": [resource.size_bytes for resource in page.resources if resource.hero],
        "digest": digest[:16],
    }


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded."""
    return json.dumps(document, indent=1) + "\n"
