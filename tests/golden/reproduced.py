"""A tiny reproduction, recorded: experiments of a few loads, their figures and verdicts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from h3sim.papers import reproduce

__all__ = ["RECORDED", "compute", "text_of"]

RECORDED = Path(__file__).with_name("reproduction.json")
EXPERIMENTS = ("marx-2019-case-study-1", "marx-2019-fig-11", "koshiba-2016")


def compute() -> dict[str, Any]:
    """Return what the experiments come to now, but for the version."""
    document = reproduce(EXPERIMENTS, executor="serial").to_dict()
    del document["version"]
    return document


def text_of(document: dict[str, Any]) -> str:
    """Return the document as it is recorded."""
    return json.dumps(document, indent=1) + "\n"
