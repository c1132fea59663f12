"""Media queries, `sizes` and `srcset` for one screen: 1366x768 CSS pixels, one device pixel each.

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
HEIGHT_PX = 768
_EM_PX = 16.0
_UNITS_PX = {
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
_LENGTH = re.compile(r"([+-]?\d*\.?\d+)\s*([a-z]*)")
_RATIO = re.compile(r"(\d+)\s*/\s*(\d+)")
_FEATURES = {
    **dict.fromkeys(("width", "device-width"), float(WIDTH_PX)),
    **dict.fromkeys(("height", "device-height"), float(HEIGHT_PX)),
    **dict.fromkeys(("resolution", "-webkit-device-pixel-ratio"), 1.0),
    **dict.fromkeys(("aspect-ratio", "device-aspect-ratio"), WIDTH_PX / HEIGHT_PX),
    "color": 8.0,
    **dict.fromkeys(("monochrome", "grid"), 0.0),
}
_WORDS = {
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
_TYPES = ("", "all", "screen")
_CANDIDATE = re.compile(r"[\s,]*+([^\s]++)([^,]*+)")
_LONGEST = 10_000


def matches(query: str) -> bool:
    """Return whether a media query list holds for the screen; an empty one does."""
    query = re.sub(r"/\*.*?\*/", " ", query[:_LONGEST], flags=re.DOTALL).strip().lower()
    return not query or any(_one(part.strip()) for part in query.split(","))


def _one(query: str) -> bool:
    is_not = query.startswith("not ") and not query.startswith("not (")
    query = re.sub(r"^(only|not)\s+(?!\()", "", query)
    medium = re.match(r"[a-z-]*", query)
    word = medium.group() if medium else ""
    holds = (word in _TYPES or word == "not") and _condition(query[len(word) :].strip(), word)
    return holds != is_not


def _condition(text: str, before: str = "") -> bool:
    """Return whether all of "(a) and (b)" hold, or any of "(a) or (b)"."""
    parts = re.findall(r"(not\s+)?\(([^()]*)\)", text)
    if not parts:
        return not text
    is_first_negated = before == "not"
    results = [_feature(inner) != bool(negated) for negated, inner in parts]
    results[0] = results[0] != is_first_negated
    return any(results) if re.search(r"\)\s*or\s*(not\s+)?\(", text) else all(results)


def _feature(text: str) -> bool:
    name, colon, value = (part.strip() for part in text.partition(":"))
    if not colon:
        return _range(text)
    if name in _WORDS:
        return _WORDS[name] == value
    number, bound = _number(value), re.match(r"(-webkit-)?(min|max)-", name)
    plain = name if bound is None else (bound[1] or "") + name[bound.end() :]
    known = _FEATURES.get(plain)
    if number is None or known is None:
        return False
    if bound is None:
        return known == number
    return known >= number if bound[2] == "min" else known <= number


def _range(text: str) -> bool:
    """Return whether "400px <= width < 900px" holds, or the feature alone is not none."""
    words = [part.strip() for part in re.split(r"(<=|>=|<|>|=)", text)]
    if len(words) == 1:
        name = words[0]
        return _WORDS.get(name, "none") not in ("none", "no-preference") or bool(
            _FEATURES.get(name)
        )
    values = [_FEATURES[w] if w in _FEATURES else _number(w) for w in words[::2]]
    for left, sign, right in zip(values, words[1::2], values[1:], strict=False):
        if left is None or right is None:
            return False
        holds = {"<=": left <= right, ">=": left >= right, "<": left < right, ">": left > right}
        if not holds.get(sign, left == right):
            return False
    return True


def _number(text: str) -> float | None:
    ratio = _RATIO.fullmatch(text)
    if ratio:
        return int(ratio[1]) / int(ratio[2]) if int(ratio[2]) else None
    length = _LENGTH.fullmatch(text)
    unit = _UNITS_PX.get(length[2]) if length else None
    return float(length[1]) * unit if length and unit is not None else None


def chosen(srcset: str, sizes: str = "") -> str:
    """Return the URL that a `srcset` leads to: the smallest that is large enough; "" for none."""
    if not srcset:
        return ""
    width_px = _source_width_px(sizes)
    best, best_density = "", 0.0
    for url, descriptor in _candidates(srcset[: _LONGEST * 10]):
        density = _density(descriptor, width_px)
        if density is None:
            continue
        # Up to 1 more is better; once there is enough less is, but never less than 1.
        is_better = density < best_density if best_density >= 1 else density > best_density
        if not best or (is_better and (density >= 1 or best_density < 1)):
            best, best_density = url, density
    return best


def candidates(srcset: str) -> list[str]:
    """Return all URLs that a `srcset` names.

    >>> candidates("b.png 1x, c,d.png 2x,")
    ['b.png', 'c,d.png']
    """
    return [url for url, _ in _candidates(srcset[: _LONGEST * 10])]


def _candidates(srcset: str) -> Iterator[tuple[str, str]]:
    """Yield (URL, descriptor) of each candidate; a URL may hold commas, but not end in one."""
    at = 0
    while found := _CANDIDATE.match(srcset, at):
        url, descriptor = found.groups()
        if url.endswith(","):
            yield url.rstrip(","), ""
            at = found.end(1)
        else:
            yield url, descriptor.strip()
            at = found.end()


def _density(descriptor: str, width_px: float) -> float | None:
    if not descriptor:
        return 1.0
    number = re.fullmatch(r"(\d*\.?\d+)([wx])(?:\s+\d+h)?", descriptor)
    if number is None:
        return None
    value = float(number[1])
    return value if number[2] == "x" else value / width_px


def _source_width_px(sizes: str) -> float:
    for part in sizes[:_LONGEST].split(","):
        media, _, length = part.strip().rpartition(" ") if " " in part.strip() else ("", "", part)
        size_px = _number(length.strip().lower())
        if size_px and size_px > 0 and (not media or matches(media)):
            return size_px
    return float(WIDTH_PX)
