"""Says which images and fonts are seen without scrolling, and what is the largest thing seen."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from h3sim.capture.markup.fonts import BOLD, NORMAL, nearest_weights

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["largest_url", "visible_shares"]

_WEIGHTS = {"normal": NORMAL, "bold": BOLD}
_DIGITS = 4


def visible_shares(
    measured: Mapping[str, Any], fonts: Sequence[Mapping[str, Any]]
) -> dict[str, float]:
    """Return the share of the viewport's pixels that each URL covers, 1 at most.

    For an image these are its boxes, whether as an element or as a background; for a font the lines
    of text that are set in it. What lies on top of what is not looked at.
    """
    areas: dict[str, float] = {**measured["images"]}
    for style, area in measured["texts"].items():
        for url in _font_urls(json.loads(style), fonts):
            areas[url] = areas.get(url, 0.0) + area
    pixels = measured["pixels"]
    shares = {url: round(min(area / pixels, 1.0), _DIGITS) for url, area in areas.items()}
    return {url: share for url, share in shares.items() if share > 0}


def largest_url(measured: Mapping[str, Any], fonts: Sequence[Mapping[str, Any]]) -> str:
    """Return the URL of the largest contentful paint: an image, or the font of a text, or ""."""
    largest = measured.get("largest")
    if largest is None:
        return ""
    if largest["url"] or largest["font"] is None:
        return str(largest["url"])
    urls = _font_urls(largest["font"], fonts)
    return urls[0] if urls else ""


def _font_urls(style: Sequence[str], fonts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the files of the first family in the list that is a loaded web font.

    Of its faces those count that the browser takes: by slant, then by weight.
    """
    families, weight, slope = style
    for family in families.split(","):
        name = family.strip().strip("\"'").casefold()
        faces = [face for face in fonts if face["fontFamily"].strip("\"'").casefold() == name]
        if faces:
            alike = [face for face in faces if _slant(face["fontStyle"]) == _slant(slope)] or faces
            best = nearest_weights(
                [_weights(face["fontWeight"]) for face in alike], _weight(weight)
            )
            near = [face["src"] for face in alike if _weights(face["fontWeight"]) == best]
            return sorted(dict.fromkeys(near))
    return []


def _slant(style: object) -> str:
    return str(style).split()[0]


def _weights(given: object) -> tuple[float, float]:
    ends = [_weight(word) for word in str(given).split()] or [NORMAL]
    return min(ends), max(ends)


def _weight(word: str) -> float:
    try:
        return float(_WEIGHTS.get(word, word))
    except ValueError:
        return NORMAL
