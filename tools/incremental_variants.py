"""Writes the schemes of the study incremental-flag: chrome-eps with the flag sent for other things.

`python -m tools.incremental_variants`, whenever chrome-eps has changed.
"""

from __future__ import annotations

import re
from pathlib import Path

MODELS = Path(__file__).parents[1] / "models"
VARIANTS = {
    "none": "no request is incremental",
    "documents": "only documents are incremental",
    "images": "only images, media and what is unknown are incremental",
    "all": "every request is incremental",
}
_OF_IMAGES = ("high-incremental", "normal-incremental", "low-incremental", "lowest")


def variant(chrome: str, name: str) -> str:
    """Return *chrome*, the file of chrome-eps, as the variant of that name."""
    classes, _, rules = chrome.partition("[[rules]]")
    urgencies = re.findall(r"\[classes\.([\w-]+)\]\nurgency = (\d)", classes)
    flagged = {
        "none": (),
        "documents": ("document",),
        "images": _OF_IMAGES,
        "all": [found for found, _ in urgencies],
    }[name]
    if name == "images":  # fetches take the classes of the same urgencies without the flag
        of_fetch = r'(kind = "fetch"\n(?:\w+ = \S+\n)*class = "\w+)-incremental"'
        rules = re.sub(of_fetch, r'\1"', rules)
    head = f"""\
format = "h3sim-scheme/1"
name = "chrome-eps-{name}"
title = "Chrome's urgencies; {VARIANTS[name]}"
mechanism = "eps"
signalling = "eps"
updates = []
source = "h3sim, for the study incremental-flag: chrome-eps but for the flag"
otherwise = "lowest"
"""
    rows = [
        f"\n[classes.{found}]\nurgency = {urgency}\n"
        + ("incremental = true\n" if found in flagged else "")
        for found, urgency in urgencies
    ]
    return f"{head}{''.join(rows)}\n[[rules]]{rules}"


def main() -> None:
    """Write all variants."""
    chrome = (MODELS / "schemes" / "chrome-eps.toml").read_text("utf-8")
    for name in VARIANTS:
        path = MODELS / "studies" / "schemes" / f"chrome-eps-{name}.toml"
        path.write_text(variant(chrome, name), encoding="utf-8")
        print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
