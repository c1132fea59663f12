"""Media queries, `sizes` and `srcset`, for one screen.

It has 1366x768 CSS pixels, one device pixel each.

>>> matches("(min-width: 60em) and (orientation: landscape)"), matches("print, (max-width: 9px)")
(True, False)
>>> chosen("s.jpg 400w, m.jpg 800w, l.jpg 1600w", "(max-width: 600px) 400px, 50vw")
'm.jpg'
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


WIDTH_PX = 1366
"""Width of the screen."""
HEIGHT_PX = 768
"""Height of the screen."""
_EM_PX = 16.0
_PX_BY_UNIT = {
    "px": 1.0,
    "em": _EM_PX,
    "rem": _EM_PX,
    "vw": WIDTH_PX / 100,
    "vh": HEIGHT_PX / 100,
    "pt": 4 / 3,
    "cm": 96 / 2.54,
    "mm": 96 / 25.4,
    "in": 96.0,
    "": 1.0,
    "dppx": 1.0,
    "x": 1.0,
    "dpi": 1 / 96,
}
"""Pixels (or device pixels per pixel) of a unit in media queries; a number alone counts as such."""
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)\s*([a-z]*)")
_RATIO = re.compile(r"(\d+)\s*/\s*(\d+)")
_NUMBER_BY_FEATURE = {
    **dict.fromkeys(("width", "device-width"), float(WIDTH_PX)),
    **dict.fromkeys(("height", "device-height"), float(HEIGHT_PX)),
    **dict.fromkeys(("resolution", "-webkit-device-pixel-ratio"), 1.0),
    **dict.fromkeys(("aspect-ratio", "device-aspect-ratio"), WIDTH_PX / HEIGHT_PX),
    "color": 8.0,
    **dict.fromkeys(("monochrome", "grid"), 0.0),
}
"""Values of the screen for media features with numbers, in pixels for lengths."""
_WORD_BY_FEATURE = {
    "orientation": "landscape",
    "prefers-color-scheme": "light",
    **dict.fromkeys(("prefers-reduced-motion", "prefers-contrast"), "no-preference"),
    **dict.fromkeys(("hover", "any-hover"), "hover"),
    **dict.fromkeys(("pointer", "any-pointer"), "fine"),
    "scripting": "enabled",
    "update": "fast",
    "display-mode": "browser",
    "forced-colors": "none",
    "color-gamut": "srgb",
}
"""Values of the screen for media features with words."""
_MATCHING_MEDIA = ("", "all", "screen")
_SRCSET_CANDIDATE = re.compile(r"[\s,]*+([^\s]++)([^,]*+)")
_MAX_QUERY_CHARS = 10_000
"""Longest media query or `sizes` that is read, to bound the time of the patterns."""
_MAX_SRCSET_CHARS = 100_000
"""Characters of a `srcset` that are read: a hostile page may have megabytes of it."""


def matches(query: str) -> bool:
    """Return whether a media query list holds for the screen; an empty one does."""
    query = re.sub(r"/\*.*?\*/", " ", query[:_MAX_QUERY_CHARS], flags=re.DOTALL).strip().lower()
    return not query or any(_query_matches(part.strip()) for part in query.split(","))


def _query_matches(query: str) -> bool:
    """Return whether one media query holds: medium and condition, possibly negated."""
    is_not = query.startswith("not ") and not query.startswith("not (")
    query = re.sub(r"^(only|not)\s+(?!\()", "", query)
    medium = re.match(r"[a-z-]*", query)
    word = medium.group() if medium else ""
    holds = (word in _MATCHING_MEDIA or word == "not") and _condition_holds(
        query[len(word) :].strip(), word
    )
    return holds != is_not


def _condition_holds(text: str, before: str = "") -> bool:
    """Return whether all of "(a) and (b)" hold, or any of "(a) or (b)".

    *before* is the word in front of the first part, which it negates if it is "not".
    """
    parts = re.findall(r"(not\s+)?\(([^()]*)\)", text)
    if not parts:
        return not text
    is_first_negated = before == "not"
    results = [_feature_holds(inner) != bool(negated) for negated, inner in parts]
    results[0] = results[0] != is_first_negated
    has_or = re.search(r"\)\s*or\s*(not\s+)?\(", text)
    return any(results) if has_or else all(results)


def _feature_holds(text: str) -> bool:
    """Return whether "min-width: 60em" holds, or another feature with or without a value."""
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon:
        return _range_holds(text)
    if name in _WORD_BY_FEATURE:
        return _WORD_BY_FEATURE[name] == value
    number, bound = _parse_length(value), re.match(r"(-webkit-)?(min|max)-", name)
    plain = name if bound is None else (bound[1] or "") + name[bound.end() :]
    known = _NUMBER_BY_FEATURE.get(plain)
    if number is None or known is None:
        return False
    if bound is None:
        return known == number
    return known >= number if bound[2] == "min" else known <= number


def _range_holds(text: str) -> bool:
    """Return whether "400px <= width < 900px" holds, or a feature alone is neither none nor 0."""
    words = [part.strip() for part in re.split(r"(<=|>=|<|>|=)", text)]
    if len(words) == 1:
        name = words[0]
        is_set = _WORD_BY_FEATURE.get(name, "none") not in ("none", "no-preference")
        return is_set or bool(_NUMBER_BY_FEATURE.get(name))
    values = [
        _NUMBER_BY_FEATURE[word] if word in _NUMBER_BY_FEATURE else _parse_length(word)
        for word in words[::2]
    ]
    for left, sign, right in zip(values, words[1::2], values[1:], strict=False):
        if left is None or right is None:
            return False
        holds = {"<=": left <= right, ">=": left >= right, "<": left < right, ">": left > right}
        if not holds.get(sign, left == right):
            return False
    return True


def _parse_length(text: str) -> float | None:
    """Return a length in pixels, a resolution, a ratio or a number; None for anything else."""
    ratio = _RATIO.fullmatch(text)
    if ratio:
        width, height = map(int, ratio.groups())
        return width / height if height else None
    length = _LENGTH.fullmatch(text)
    if length is None:
        return None
    number, unit = length.groups()
    return float(number) * _PX_BY_UNIT[unit] if unit in _PX_BY_UNIT else None


def chosen(srcset: str, sizes: str = "") -> str:
    """Return the URL that the screen selects from a `srcset`; "" if it is empty.

    It is the one of the lowest density of at least 1, or else of the highest.
    """
    if not srcset:
        return ""
    width_px = _source_width_px(sizes)
    best, best_density = "", 0.0
    for url, descriptor in _candidates(srcset[:_MAX_SRCSET_CHARS]):
        density = _density(descriptor, width_px)
        if density is None:
            continue
        is_better = density < best_density if best_density >= 1 else density > best_density
        if not best or (is_better and (density >= 1 or best_density < 1)):
            best, best_density = url, density
    return best


def candidates(srcset: str) -> list[str]:
    """Return all URLs in a `srcset`.

    >>> candidates("b.png 1x, c,d.png 2x,")
    ['b.png', 'c,d.png']
    """
    return [url for url, _ in _candidates(srcset[:_MAX_SRCSET_CHARS])]


def _candidates(srcset: str) -> Iterator[tuple[str, str]]:
    """Yield (URL, descriptor) of each candidate; a URL may hold commas, but not end in one."""
    at = 0
    while found := _SRCSET_CANDIDATE.match(srcset, at):
        url, descriptor = found.groups()
        if url.endswith(","):
            yield url.rstrip(","), ""
            at = found.end(1)
        else:
            yield url, descriptor.strip()
            at = found.end()


def _density(descriptor: str, width_px: float) -> float | None:
    """Return the pixel density of a candidate "2x" or "800w"; None if the descriptor is invalid."""
    if not descriptor:
        return 1.0
    match = re.fullmatch(r"(\d*\.?\d+)([wx])(?:\s+\d+h)?", descriptor)
    if match is None:
        return None
    number, unit = match.groups()
    return float(number) if unit == "x" else float(number) / width_px


def _source_width_px(sizes: str) -> float:
    """Return the width that `sizes` gives to the image: by default the screen's."""
    for part in sizes[:_MAX_QUERY_CHARS].split(","):
        media, _, length = part.strip().rpartition(" ") if " " in part.strip() else ("", "", part)
        size_px = _parse_length(length.strip().lower())
        if size_px and size_px > 0 and (not media or matches(media)):
            return size_px
    return float(WIDTH_PX)
