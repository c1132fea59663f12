"""CSS: rules, selectors, the fonts and images that they request, and media queries.

Queries, `sizes` and `srcset` are for one screen: 1366x768 CSS pixels, one device pixel each.

>>> matches("(min-width: 60em) and (orientation: landscape)"), matches("print, (max-width: 9px)")
(True, False)
>>> chosen("s.jpg 400w, m.jpg 800w, l.jpg 1600w", "(max-width: 600px) 400px, 50vw")
'm.jpg'
"""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim.errors import needing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.importers.html import Scan


BOLD_ELEMENTS = "h1, h2, h3, h4, h5, h6, b, strong, th"
SLANTED_ELEMENTS = "i, em, cite, var, dfn, address"
"""Elements that browsers set in bold, and in italics, by default."""
NORMAL, BOLD = 400, 700
"""Font weights by name (CSS Fonts 4 § 2.2)."""
_MEDIUM = 500


def chosen_faces(faces: Sequence[Face], weights: Iterable[int], *, is_slanted: bool) -> list[Face]:
    """Return the faces of one family used for text of these weights and slants.

    Slanted text is assumed to have normal weight. All faces of one weight and slant are returned,
    as they may cover different characters.
    """
    target = [(weight, False) for weight in weights] + [(NORMAL, True)] * is_slanted
    matching: dict[Face, None] = {}
    for weight, slanted in target:
        alike = [face for face in faces if face.is_slanted is slanted] or list(faces)
        best = nearest_weights([face.weights for face in alike], weight)
        matching |= dict.fromkeys(face for face in alike if face.weights == best)
    return [face for face in faces if face in matching]


def nearest_weights(given: Sequence[tuple[float, float]], target: float) -> tuple[float, float]:
    """Return the range of available weights that is used for weight *target*.

    >>> nearest_weights([(300, 300), (500, 500), (700, 700)], 400)
    (500, 500)
    >>> nearest_weights([(300, 300), (500, 500), (700, 700)], 600)
    (700, 700)
    """

    def rank(weights: tuple[float, float]) -> tuple[float, float]:
        low, high = weights
        if low <= target <= high:
            return (0, 0)
        is_above = low > target
        distance = low - target if is_above else target - high
        if NORMAL <= target <= _MEDIUM:
            return (1 if is_above and low <= _MEDIUM else 2 if not is_above else 3, distance)
        return (1 if is_above == (target > _MEDIUM) else 2, distance)

    return min(given, key=rank)


_DEEPEST = 20
"""Deepest nesting of rules that is processed."""
_DEEPEST_BRACKETS = 100
"""Deepest nesting of brackets; real stylesheets stay below it, and the parser is recursive."""
_BRACKET = re.compile(
    rb"[\[({]|[\])}]|/\*(?:.*?\*/|.*)"
    rb"|\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"?|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?|\\.",
    re.DOTALL,
)
"""Bracket, or a token whose brackets do not count: comment, string, escape."""
_DEPTH_OF_BRACKET = {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}
_WEIGHTS = {"normal": NORMAL, "bold": BOLD, "bolder": BOLD}
_CONDITIONS = ("supports", "layer", "container", "scope", "starting-style")
"""Rules whose rules are assumed to apply."""
_LIGHTEST, _HEAVIEST = 100, 1000
_FORMATS = ("woff2", "woff", "truetype", "opentype")
"""Font formats that current browsers support."""
_GENERIC = frozenset(
    (
        *("serif", "sans-serif", "monospace", "cursive", "fantasy", "system-ui"),
        *("inherit", "initial", "unset", "normal"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Face:
    """Font face: its family in lower case, the selected URL and its descriptors."""

    family: str
    url: str
    ranges: tuple[tuple[int, int], ...] = ()
    """Character ranges; empty for all characters."""
    weights: tuple[int, int] = (400, 400)
    is_slanted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StyleRule:
    """Rule that requests images or sets fonts; *selector* is its text, "" for any element."""

    selector: str
    urls: tuple[str, ...]
    families: tuple[str, ...]
    weights: tuple[int, ...] = ()
    is_slanted: bool = False


@dataclass(slots=True, kw_only=True)
class Sheet:
    """Parts of a stylesheet that apply to the screen, in order."""

    is_read: bool = True
    """True if it was parsed; False if it nests too deeply."""
    imports: list[str] = field(default_factory=list)
    faces: list[Face] = field(default_factory=list)
    rules: list[StyleRule] = field(default_factory=list)


def _library() -> Any:
    with needing_extra("tinycss2", "import"):
        import tinycss2
    return tinycss2


def _text(tokens: Iterable[Any]) -> str:
    return str(_library().serialize(tokens))


def _parts(content: Any) -> Any:
    return _library().parse_blocks_contents(content, skip_comments=True, skip_whitespace=True)


def read_sheet(css: bytes) -> Sheet:
    """Return the rules, faces and imports of a stylesheet.

    Raises:
        MissingExtraError: if tinycss2 is not installed.

    >>> sheet = read_sheet(b'@import "a.css" print; .x {background: url(b.png)}')
    >>> sheet.imports, sheet.rules[0].selector, sheet.rules[0].urls
    ([], '.x', ('b.png',))
    """
    parse = _library().parse_stylesheet_bytes
    if _is_too_deep(css):
        return Sheet(is_read=False)
    rules, _ = parse(css, skip_comments=True, skip_whitespace=True)
    sheet = Sheet()
    _read_rules(rules, sheet, 0)
    return sheet


def read_declarations(css: str) -> StyleRule:
    """Return the references of a `style` attribute."""
    if _is_too_deep(css.encode()):
        return StyleRule(selector="", urls=(), families=())
    return _rule("", _parts(css))


def _is_too_deep(css: bytes) -> bool:
    depth = 0
    for found in _BRACKET.finditer(css):
        depth = max(0, depth + _DEPTH_OF_BRACKET.get(found[0], 0))
        if depth > _DEEPEST_BRACKETS:
            return True
    return False


def _read_rules(rules: Iterable[Any], sheet: Sheet, depth: int) -> None:
    may_import = depth == 0
    for rule in rules:
        # Imports precede everything except layers (CSS Cascade 5 § 2).
        is_in_front = rule.type == "at-rule" and (
            rule.lower_at_keyword in ("charset", "import")
            or (rule.lower_at_keyword == "layer" and rule.content is None)
        )
        may_import = may_import and (is_in_front or rule.type not in ("at-rule", "qualified-rule"))
        if rule.type == "qualified-rule":
            parts = _parts(rule.content)
            found = _rule(_text(rule.prelude).strip(), parts)
            if found.urls or found.families or found.weights or found.is_slanted:
                sheet.rules.append(found)
            if depth < _DEEPEST:
                _read_rules(parts, sheet, depth + 1)
        elif rule.type == "at-rule":
            _read_at_rule(rule, sheet, depth, may_import=may_import)


def _read_at_rule(rule: Any, sheet: Sheet, depth: int, *, may_import: bool) -> None:
    word = rule.lower_at_keyword
    if word == "import":
        url, rest = _import(rule.prelude)
        if url and may_import and matches(_text(rest)):
            sheet.imports.append(url)
    elif rule.content is None or depth >= _DEEPEST:
        return
    elif word == "font-face":
        sheet.faces += _faces(_parts(rule.content))
    elif word in _CONDITIONS or (word == "media" and matches(_text(rule.prelude))):
        _read_rules(_parts(rule.content), sheet, depth + 1)


def _import(prelude: list[Any]) -> tuple[str, list[Any]]:
    """Return the URL and media query of an import, skipping `layer` and `supports`."""
    tokens = [*itertools.dropwhile(lambda each: each.type in ("comment", "whitespace"), prelude)]
    rest = [
        each
        for each in tokens[1:]
        if not (each.type == "function" and each.lower_name in ("layer", "supports"))
        and not (each.type == "ident" and each.lower_value == "layer")
    ]
    first = tokens[:1]
    is_text = bool(first) and first[0].type == "string"
    return first[0].value if is_text else next(_urls(first), ""), rest


def _rule(selector: str, parts: Iterable[Any]) -> StyleRule:
    declarations = [(p.lower_name, p.value) for p in parts if p.type == "declaration"]

    def of(what: str, read: Callable[[Any], Iterable[Any]]) -> tuple[Any, ...]:
        """Return the font properties in declarations; the family may be a variable."""
        names = (what, "font")
        return tuple(
            found
            for name, value in declarations
            if name in names or (what == "font-family" and name.startswith("--"))
            for found in read(value)
        )

    plain = (
        v for name, v in declarations if name not in ("src", "cursor") and not name.startswith("--")
    )
    return StyleRule(
        selector=selector,
        urls=tuple(url for value in plain for url in _urls(value)),
        families=of("font-family", _families),
        weights=of("font-weight", _weights),
        is_slanted=any(of("font-style", lambda value: [_is_slanted(value)])),
    )


def _weights(tokens: Iterable[Any]) -> Iterator[int]:
    """Yield the weights in a value: words, and whole numbers that can be weights."""
    for token in tokens:
        if token.type == "ident" and token.lower_value in _WEIGHTS:
            yield _WEIGHTS[token.lower_value]
        elif token.type == "number" and _LIGHTEST <= (token.int_value or 0) <= _HEAVIEST:
            yield token.int_value


def _is_slanted(tokens: Iterable[Any]) -> bool:
    return any(t.type == "ident" and t.lower_value in ("italic", "oblique") for t in tokens)


def _urls(tokens: Iterable[Any]) -> Iterator[str]:
    """Yield the URLs in a value; for an image-set only the first, assumed to be 1x."""
    # Reversed, as items are popped from its end: URLs come in file order.
    waiting = list(tokens)[::-1]
    while waiting:
        token = waiting.pop()
        if token.type == "url":
            yield token.value
        elif token.type == "function":
            strings = (each.value for each in token.arguments if each.type == "string")
            if token.lower_name == "url":
                yield from strings
            elif token.lower_name.endswith("image-set"):
                if inner := next(_urls(token.arguments), "") or next(strings, ""):
                    yield inner
            else:
                waiting += token.arguments[::-1]
        elif hasattr(token, "content") and isinstance(token.content, list):
            waiting += token.content[::-1]


def _families(tokens: Iterable[Any]) -> Iterator[str]:
    """Yield the font families in a value, in lower case: strings, or words between commas."""
    words: list[str] = []
    for token in tokens:
        if token.type == "string":
            yield token.value.lower()
        elif token.type == "ident":
            words.append(token.lower_value)
        elif token.type in ("literal", "dimension", "number", "percentage"):
            # In `font`, weight and style precede the size: they are not names.
            if token.type == "literal" and token.value == "," and words:
                yield " ".join(words)
            words = []
    if words and words[-1] not in _GENERIC:
        yield " ".join(words)


def _faces(parts: Iterable[Any]) -> Iterator[Face]:
    """Yield the face of a `@font-face`, if it has a family and a supported source."""
    values = {part.lower_name: part.value for part in parts if part.type == "declaration"}
    family = next(_families(values.get("font-family", ())), "")
    url = _source(values.get("src", []))
    if family and url:
        text = _text(values.get("unicode-range", []))
        weights = list(_weights(values.get("font-weight", ()))) or [NORMAL]
        yield Face(
            family=family,
            url=url,
            ranges=tuple(_ranges(text)),
            weights=(min(weights), max(weights)),
            is_slanted=_is_slanted(values.get("font-style", ())),
        )


def _source(tokens: list[Any]) -> str:
    """Return the first supported source; `local()` is ignored."""
    part: list[Any] = []
    # None ends the last part, which has no comma after it.
    for token in [*tokens, None]:
        if token is not None and not (token.type == "literal" and token.value == ","):
            part.append(token)
            continue
        url = next(_urls(part), "")
        formats = [t for t in part if t.type == "function" and t.lower_name == "format"]
        words = [_text(each.arguments).strip("'\" ").lower() for each in formats]
        is_old = url.partition("?")[0].lower().endswith(".eot") or url.startswith("data:")
        if url and not is_old and all(word.startswith(_FORMATS) for word in words):
            return url
        part = []
    return ""


def _ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `unicode-range`: U+26, U+0-7F, U+4??."""
    for part in text.upper().split(","):
        first, _, last = part.strip().removeprefix("U+").partition("-")
        try:
            low = int(first.replace("?", "0"), 16)
            high = int(last or first.replace("?", "F"), 16)
        except ValueError:
            continue
        yield low, high


_SELECTORS_DEEPEST = 512
"""Deepest document that is parsed: the time grows with depth times length."""
_LONGEST = 8 << 20
_MOST_WORK = 1_000_000_000
"""Budget of searched document bytes; after that all selectors are assumed to match."""
_MOST_WAYS = 1_000_000
"""Most combinator steps: the library backtracks over an element's ancestors."""
_COUNTING = re.compile(r":nth-[\w-]+\([^()]*\)|:(?:first|last|only)-of-type|:only-child")
"""Pseudo-classes that make it count the siblings of each element."""
_NOT_NOW = re.compile(
    r":(hover|focus|focus-within|focus-visible|active|visited|target|checked|disabled|invalid)\b"
)
_PSEUDO_ELEMENT = re.compile(
    r"::?(before|after|first-line|first-letter|marker|placeholder)\b|::[\w-]+"
)
_TAGS = re.compile(r"<[^>]*+>")
_MOST_ATTRIBUTES = 2_000


class StyledDocument:
    """HTML document against which selectors are matched.

    A document that is too long or deep, or has a tag with thousands of attributes, is not parsed:
    then every rule is assumed to apply, and `is_parsed` is false.
    """

    def __init__(self, data: bytes, scan: Scan) -> None:
        self.is_parsed = (
            len(data) <= _LONGEST
            and scan.depth <= _SELECTORS_DEEPEST
            # The parser compares each attribute with all previous ones.
            and scan.most_attributes <= _MOST_ATTRIBUTES
        )
        self.n_guessed = 0
        self._depth = scan.depth
        self._size = max(1, len(data))
        self._work = 0
        self._known: dict[str, bool] = {}
        self._tree = _tree(_scripted(data, scan)) if self.is_parsed else None
        self._characters: set[int] | None = None
        self._data = data

    def applies(self, selector: str) -> bool:
        """Return whether any element matches *selector* when the page is first shown."""
        if selector not in self._known:
            parts = _split(selector)
            self._known[selector] = any(self._one_applies(part) for part in parts)
        return self._known[selector]

    def shows(self, face: Face) -> bool:
        """Return whether any character of the document is in the ranges of *face*."""
        if not face.ranges:
            return True
        if self._characters is None:
            text = _TAGS.sub("", self._data.decode("utf-8", "replace"))
            self._characters = set(map(ord, text))
        return any(low <= c <= high for c in self._characters for low, high in face.ranges)

    def _one_applies(self, selector: str) -> bool:
        # `:not(:hover)` matches when the page is first shown.
        if _NOT_NOW.search(re.sub(r":not\([^()]*\)", "", selector)):
            return False
        plain = _PSEUDO_ELEMENT.sub("", selector).strip()
        # `::before` alone, or after a combinator, leaves any element.
        plain = plain if plain and plain[-1] not in ">+~" else f"{plain}*"
        simple = _simple(plain, self._depth)
        self._work += self._size
        is_there, is_sure = True, False
        if self._tree is not None and self._work <= _MOST_WORK and simple:
            with contextlib.suppress(Exception):  # the library has its own for invalid selectors
                is_there = self._tree.css_first(simple) is not None
                is_sure = not is_there or simple == plain
        self.n_guessed += not is_sure
        return is_there


def _simple(selector: str, depth: int) -> str:
    """Return a fast selector that matches at least what *selector* matches.

    Slow conditions are dropped from the left; "" if no fast one is left.

    >>> _simple("body .a > li:nth-child(2) b", 10), _simple("ul li div p b", 200)
    ('body .a > li b', 'div p b')
    """
    if "&" in selector or ":has(" in selector:
        return ""
    plain = _COUNTING.sub("", selector).rpartition("~")[2].strip()
    words = [word for word in re.split(r"\s+|(?=[>+])|(?<=[>+])", plain) if word]
    is_way = [
        index > 0 and word not in ">+" and words[index - 1] not in ">+"
        for index, word in enumerate(words)
    ]
    most = 1
    while max(2, depth) ** (most + 1) <= _MOST_WAYS:
        most += 1
    if sum(is_way) <= most:
        return plain
    if "(" in plain or "[" in plain:
        return ""
    ways = [index for index, each in enumerate(is_way) if each]
    return " ".join(words[ways[-most - 1] :])


def _tree(data: bytes) -> Any:
    with needing_extra("selectolax", "import"):
        from selectolax.lexbor import LexborHTMLParser
    return LexborHTMLParser(data)


def _scripted(data: bytes, scan: Scan) -> bytes:
    """Return the document without the contents of `noscript`: the parser assumes no scripting."""
    parts, at = [], 0
    for begin, end in scan.unscripted:
        parts.append(data[at:begin])
        at = end
    return b"".join([*parts, data[at:]])


def _split(selector: str) -> list[str]:
    """Split a selector list at commas outside parentheses."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(selector):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append(selector[begin:index])
            begin = index + 1
    return [*parts, selector[begin:]]


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
_LONGEST_QUERY = 10_000


def matches(query: str) -> bool:
    """Return whether a media query list holds for the screen; an empty one does."""
    query = re.sub(r"/\*.*?\*/", " ", query[:_LONGEST_QUERY], flags=re.DOTALL).strip().lower()
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
        is_set = _WORDS.get(name, "none") not in ("none", "no-preference")
        return is_set or bool(_FEATURES.get(name))
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
    for url, descriptor in _candidates(srcset[: _LONGEST_QUERY * 10]):
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
    return [url for url, _ in _candidates(srcset[: _LONGEST_QUERY * 10])]


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
    for part in sizes[:_LONGEST_QUERY].split(","):
        media, _, length = part.strip().rpartition(" ") if " " in part.strip() else ("", "", part)
        size_px = _number(length.strip().lower())
        if size_px and size_px > 0 and (not media or matches(media)):
            return size_px
    return float(WIDTH_PX)
