"""CSS: rules, selectors, and the fonts and images that they request."""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim.importers.media_queries import matches
from h3sim.values.errors import needing_extra

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from h3sim.importers.html import Scan


BOLD_ELEMENTS = "h1, h2, h3, h4, h5, h6, b, strong, th"
"""Selector of the elements that browsers set in bold by default."""
SLANTED_ELEMENTS = "i, em, cite, var, dfn, address"
"""Selector of the elements that browsers set in italics by default."""
NORMAL, BOLD = 400, 700
"""Font weights by name (CSS Fonts 4 § 2.2)."""
_MEDIUM_WEIGHT = 500
"""Boundary in the matching of weights: from 400 to it, heavier ones up to it come first (§ 5.2)."""


def chosen_faces(faces: Sequence[Face], weights: Iterable[int], *, is_slanted: bool) -> list[Face]:
    """Return the faces of one family used for text of these weights and slants.

    Slanted text is assumed to have normal weight. All faces of one weight and slant are returned,
    as they may cover different characters.
    """
    styles = [(weight, False) for weight in weights]
    if is_slanted:
        styles.append((NORMAL, True))
    matching: set[Face] = set()
    for weight, slanted in styles:
        same_slant = [face for face in faces if face.is_slanted is slanted] or list(faces)
        best = nearest_weights([face.weights for face in same_slant], weight)
        matching.update(face for face in same_slant if face.weights == best)
    return [face for face in faces if face in matching]


def nearest_weights(given: Sequence[tuple[float, float]], target: float) -> tuple[float, float]:
    """Return the range of available weights that is used for weight *target*.

    >>> nearest_weights([(300, 300), (500, 500), (700, 700)], 400)
    (500, 500)
    >>> nearest_weights([(300, 300), (500, 500), (700, 700)], 600)
    (700, 700)
    """

    def rank(weights: tuple[float, float]) -> tuple[float, float]:
        """Return a sort key by CSS Fonts 4 § 5.2: the direction first, then the distance."""
        low, high = weights
        if low <= target <= high:
            return (0, 0)
        is_above = low > target
        distance = low - target if is_above else target - high
        if NORMAL <= target <= _MEDIUM_WEIGHT:
            return (1 if is_above and low <= _MEDIUM_WEIGHT else 2 if not is_above else 3, distance)
        return (1 if is_above == (target > _MEDIUM_WEIGHT) else 2, distance)

    return min(given, key=rank)


_MAX_RULE_DEPTH = 20
"""Deepest nesting of rules that is processed."""
_MAX_BRACKET_DEPTH = 100
"""Deepest nesting of brackets; real stylesheets stay below it, and the parser is recursive."""
_BRACKET = re.compile(
    rb"[\[({]|[\])}]|/\*(?:.*?\*/|.*)"
    rb"|\"[^\"\\\n]*+(?:\\.[^\"\\\n]*+)*+\"?|'[^'\\\n]*+(?:\\.[^'\\\n]*+)*+'?|\\.",
    re.DOTALL,
)
"""Bracket, or a token whose brackets do not count: comment, string, escape."""
# Other tokens of the pattern do not change the depth.
_DEPTH_CHANGE = {b"(": 1, b"[": 1, b"{": 1, b")": -1, b"]": -1, b"}": -1}
_WEIGHT_BY_WORD = {"normal": NORMAL, "bold": BOLD, "bolder": BOLD}
_ASSUMED_CONDITIONS = ("supports", "layer", "container", "scope", "starting-style")
"""At-rules whose conditions are assumed to hold."""
_MIN_FONT_WEIGHT = 100
_MAX_FONT_WEIGHT = 1000
"""Bounds of the numbers that are read as font weights."""
_FONT_FORMATS = ("woff2", "woff", "truetype", "opentype")
"""Font formats that current browsers support."""
_NOT_WEB_FONTS = frozenset(
    (
        "serif",
        "sans-serif",
        "monospace",
        "cursive",
        "fantasy",
        "system-ui",
        "inherit",
        "initial",
        "unset",
        "normal",
    )
)
"""Generic families and keywords at the end of a font list, which name no font to load."""


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


def _tinycss2() -> Any:
    with needing_extra("tinycss2", "import"):
        import tinycss2
    return tinycss2


def _serialize(tokens: Iterable[Any]) -> str:
    return str(_tinycss2().serialize(tokens))


def _parse_block(content: Any) -> Any:
    """Return the declarations and nested rules in the content of a rule."""
    return _tinycss2().parse_blocks_contents(content, skip_comments=True, skip_whitespace=True)


def read_sheet(css: bytes) -> Sheet:
    """Return the rules, faces and imports of a stylesheet.

    Raises:
        MissingExtraError: if tinycss2 is not installed.

    >>> sheet = read_sheet(b'@import "a.css" print; .x {background: url(b.png)}')
    >>> sheet.imports, sheet.rules[0].selector, sheet.rules[0].urls
    ([], '.x', ('b.png',))
    """
    parse = _tinycss2().parse_stylesheet_bytes
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
    return _style_rule("", _parse_block(css))


def _is_too_deep(css: bytes) -> bool:
    """Return whether brackets nest too deeply for the recursive parser."""
    depth = 0
    for found in _BRACKET.finditer(css):
        depth = max(0, depth + _DEPTH_CHANGE.get(found[0], 0))
        if depth > _MAX_BRACKET_DEPTH:
            return True
    return False


def _read_rules(rules: Iterable[Any], sheet: Sheet, depth: int) -> None:
    may_import = depth == 0
    for rule in rules:
        # Imports are valid only before everything except layers (CSS Cascade 5 § 2).
        precedes_imports = rule.type == "at-rule" and (
            rule.lower_at_keyword in ("charset", "import")
            or (rule.lower_at_keyword == "layer" and rule.content is None)
        )
        is_rule = rule.type in ("at-rule", "qualified-rule")
        may_import = may_import and (precedes_imports or not is_rule)
        if rule.type == "qualified-rule":
            parts = _parse_block(rule.content)
            style_rule = _style_rule(_serialize(rule.prelude).strip(), parts)
            has_effect = style_rule.urls or style_rule.families or style_rule.weights
            if has_effect or style_rule.is_slanted:
                sheet.rules.append(style_rule)
            if depth < _MAX_RULE_DEPTH:
                _read_rules(parts, sheet, depth + 1)
        elif rule.type == "at-rule":
            _read_at_rule(rule, sheet, depth, may_import=may_import)


def _read_at_rule(rule: Any, sheet: Sheet, depth: int, *, may_import: bool) -> None:
    word = rule.lower_at_keyword
    if word == "import":
        url, rest = _read_import(rule.prelude)
        if url and may_import and matches(_serialize(rest)):
            sheet.imports.append(url)
    elif rule.content is None or depth >= _MAX_RULE_DEPTH:
        return
    elif word == "font-face":
        sheet.faces += _faces_in(_parse_block(rule.content))
    elif word in _ASSUMED_CONDITIONS or (word == "media" and matches(_serialize(rule.prelude))):
        _read_rules(_parse_block(rule.content), sheet, depth + 1)


def _read_import(prelude: list[Any]) -> tuple[str, list[Any]]:
    """Return the URL and media query of an import, skipping `layer` and `supports`."""
    tokens = [*itertools.dropwhile(lambda each: each.type in ("comment", "whitespace"), prelude)]
    rest = [
        each
        for each in tokens[1:]
        if not (each.type == "function" and each.lower_name in ("layer", "supports"))
        and not (each.type == "ident" and each.lower_value == "layer")
    ]
    if tokens and tokens[0].type == "string":
        return tokens[0].value, rest
    return next(_urls(tokens[:1]), ""), rest


def _style_rule(selector: str, parts: Iterable[Any]) -> StyleRule:
    declarations = [(part.lower_name, part.value) for part in parts if part.type == "declaration"]

    def of(what: str, read: Callable[[Any], Iterable[Any]]) -> tuple[Any, ...]:
        """Return the values of one font property; a family may also be in a variable."""
        names = (what, "font")
        return tuple(
            found
            for name, value in declarations
            if name in names or (what == "font-family" and name.startswith("--"))
            for found in read(value)
        )

    # Not requested with the page: cursors wait for the pointer, variables may be unused, and `src`
    # has a meaning only in faces.
    values = (
        value
        for name, value in declarations
        if name not in ("src", "cursor") and not name.startswith("--")
    )
    return StyleRule(
        selector=selector,
        urls=tuple(url for value in values for url in _urls(value)),
        families=of("font-family", _families_in),
        weights=of("font-weight", _weights_in),
        is_slanted=any(of("font-style", lambda value: [_is_slanted(value)])),
    )


def _weights_in(tokens: Iterable[Any]) -> Iterator[int]:
    """Yield the weights in a value: words, and whole numbers that can be weights."""
    for token in tokens:
        if token.type == "ident" and token.lower_value in _WEIGHT_BY_WORD:
            yield _WEIGHT_BY_WORD[token.lower_value]
        elif (
            token.type == "number"
            and _MIN_FONT_WEIGHT <= (token.int_value or 0) <= _MAX_FONT_WEIGHT
        ):
            yield token.int_value


def _is_slanted(tokens: Iterable[Any]) -> bool:
    return any(
        token.type == "ident" and token.lower_value in ("italic", "oblique") for token in tokens
    )


def _urls(tokens: Iterable[Any]) -> Iterator[str]:
    """Yield the URLs in a value; for an image-set only the first, assumed to be 1x."""
    # Reversed, as tokens are popped from the end, so that URLs come in file order.
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


def _families_in(tokens: Iterable[Any]) -> Iterator[str]:
    """Yield the font families in a value, in lower case: strings, or words between commas."""
    words: list[str] = []
    for token in tokens:
        if token.type == "string":
            yield token.value.lower()
        elif token.type == "ident":
            words.append(token.lower_value)
        elif token.type in ("literal", "dimension", "number", "percentage"):
            # In `font`, words before the size are weight and style, not names.
            if token.type == "literal" and token.value == "," and words:
                yield " ".join(words)
            words = []
    if words and words[-1] not in _NOT_WEB_FONTS:
        yield " ".join(words)


def _faces_in(parts: Iterable[Any]) -> Iterator[Face]:
    """Yield the face of a `@font-face`, if it has a family and a supported source."""
    values = {part.lower_name: part.value for part in parts if part.type == "declaration"}
    family = next(_families_in(values.get("font-family", ())), "")
    url = _first_source(values.get("src", []))
    if family and url:
        text = _serialize(values.get("unicode-range", []))
        weights = list(_weights_in(values.get("font-weight", ()))) or [NORMAL]
        yield Face(
            family=family,
            url=url,
            ranges=tuple(_parse_ranges(text)),
            weights=(min(weights), max(weights)),
            is_slanted=_is_slanted(values.get("font-style", ())),
        )


def _first_source(tokens: list[Any]) -> str:
    """Return the first supported source; `local()` is ignored."""
    source: list[Any] = []
    # None ends the last source, which has no comma after it.
    for token in [*tokens, None]:
        if token is not None and not (token.type == "literal" and token.value == ","):
            source.append(token)
            continue
        url = next(_urls(source), "")
        formats = [
            token for token in source if token.type == "function" and token.lower_name == "format"
        ]
        words = [_serialize(each.arguments).strip("'\" ").lower() for each in formats]
        # Only old browsers read .eot; a data: URL needs no request.
        is_unused = url.partition("?")[0].lower().endswith(".eot") or url.startswith("data:")
        if url and not is_unused and all(word.startswith(_FONT_FORMATS) for word in words):
            return url
        source = []
    return ""


def _parse_ranges(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of `unicode-range`: U+26, U+0-7F, U+4??."""
    for part in text.upper().split(","):
        first, _, last = part.strip().removeprefix("U+").partition("-")
        try:
            low = int(first.replace("?", "0"), 16)
            high = int(last or first.replace("?", "F"), 16)
        except ValueError:
            continue
        yield low, high


_MAX_DOCUMENT_DEPTH = 512
"""Deepest document that is parsed: the time grows with depth times length."""
_MAX_DOCUMENT_BYTES = 8 << 20
"""Longest document that is parsed."""
_MAX_SEARCHED_BYTES = 1_000_000_000
"""Budget of searched document bytes; after that all selectors are assumed to match."""
_MAX_COMBINATOR_STEPS = 1_000_000
"""Most steps per element for a selector: the library backtracks over the element's ancestors."""
_SIBLING_COUNTING = re.compile(r":nth-[\w-]+\([^()]*\)|:(?:first|last|only)-of-type|:only-child")
"""Pseudo-classes for which the library counts the siblings of each element, in quadratic time."""
_NOT_INITIALLY = re.compile(
    r":(hover|focus|focus-within|focus-visible|active|visited|target|checked|disabled|invalid)\b"
)
"""Pseudo-classes of states in which no element is when the page is first shown."""
_PSEUDO_ELEMENT = re.compile(
    r"::?(before|after|first-line|first-letter|marker|placeholder)\b|::[\w-]+"
)
_ANY_TAG = re.compile(r"<[^>]*+>")
_MAX_ATTRIBUTES = 2_000
"""Most attributes of a tag; the parser compares each with all before it."""


class StyledDocument:
    """HTML document against which selectors are matched.

    A document that is too long or deep, or has a tag with thousands of attributes, is not parsed:
    then every rule is assumed to apply, and `is_parsed` is false.
    """

    def __init__(self, data: bytes, scan: Scan) -> None:
        self.is_parsed = (
            len(data) <= _MAX_DOCUMENT_BYTES
            and scan.depth <= _MAX_DOCUMENT_DEPTH
            and scan.max_attributes <= _MAX_ATTRIBUTES
        )
        self.n_guessed = 0
        """Number of selectors that are only assumed to match."""
        self._depth = scan.depth
        self._size = max(1, len(data))
        self._searched_bytes = 0
        self._applies_by_selector: dict[str, bool] = {}
        self._tree = _parse_document(_without_noscript(data, scan)) if self.is_parsed else None
        self._characters: set[int] | None = None
        self._data = data

    def applies(self, selector: str) -> bool:
        """Return whether any element matches *selector* when the page is first shown."""
        if selector not in self._applies_by_selector:
            parts = _split_selectors(selector)
            self._applies_by_selector[selector] = any(
                self._selector_applies(part) for part in parts
            )
        return self._applies_by_selector[selector]

    def shows(self, face: Face) -> bool:
        """Return whether any character of the document is in the ranges of *face*."""
        if not face.ranges:
            return True
        if self._characters is None:
            text = _ANY_TAG.sub("", self._data.decode("utf-8", "replace"))
            self._characters = set(map(ord, text))
        return any(
            low <= character <= high for character in self._characters for low, high in face.ranges
        )

    def _selector_applies(self, selector: str) -> bool:
        # `:not(:hover)` matches when the page is first shown.
        if _NOT_INITIALLY.search(re.sub(r":not\([^()]*\)", "", selector)):
            return False
        plain = _PSEUDO_ELEMENT.sub("", selector).strip()
        # `::before` alone, or after a combinator, leaves any element.
        plain = plain if plain and plain[-1] not in ">+~" else f"{plain}*"
        fast = _fast_selector(plain, self._depth)
        self._searched_bytes += self._size
        matches_any, is_sure = True, False
        if self._tree is not None and self._searched_bytes <= _MAX_SEARCHED_BYTES and fast:
            with contextlib.suppress(Exception):  # the library has its own for invalid selectors
                matches_any = self._tree.css_first(fast) is not None
                # The fast selector matches more, so only its failures are certain.
                is_sure = not matches_any or fast == plain
        self.n_guessed += not is_sure
        return matches_any


def _fast_selector(selector: str, depth: int) -> str:
    """Return a fast selector that matches at least what *selector* matches.

    Slow conditions are dropped from the left; "" if no fast one is left.

    >>> _fast_selector("body .a > li:nth-child(2) b", 10), _fast_selector("ul li div p b", 200)
    ('body .a > li b', 'div p b')
    """
    if "&" in selector or ":has(" in selector:
        return ""
    plain = _SIBLING_COUNTING.sub("", selector).rpartition("~")[2].strip()
    words = [word for word in re.split(r"\s+|(?=[>+])|(?<=[>+])", plain) if word]
    # Each descendant combinator (a blank) multiplies the ancestors to try by the depth.
    descendants = [
        index
        for index, word in enumerate(words)
        if index > 0 and word not in ">+" and words[index - 1] not in ">+"
    ]
    max_descendants = 1
    while max(2, depth) ** (max_descendants + 1) <= _MAX_COMBINATOR_STEPS:
        max_descendants += 1
    if len(descendants) <= max_descendants:
        return plain
    if "(" in plain or "[" in plain:  # these may have blanks that are no combinators
        return ""
    return " ".join(words[descendants[-max_descendants - 1] :])


def _parse_document(data: bytes) -> Any:
    with needing_extra("selectolax", "import"):
        from selectolax.lexbor import LexborHTMLParser
    return LexborHTMLParser(data)


def _without_noscript(data: bytes, scan: Scan) -> bytes:
    """Return the document without the contents of `noscript`: the parser assumes no scripting."""
    parts, at = [], 0
    for start, end in scan.unscripted:
        parts.append(data[at:start])
        at = end
    return b"".join([*parts, data[at:]])


def _split_selectors(selector: str) -> list[str]:
    """Split a selector list at commas outside parentheses."""
    parts, depth, begin = [], 0, 0
    for index, character in enumerate(selector):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth <= 0:
            parts.append(selector[begin:index])
            begin = index + 1
    return [*parts, selector[begin:]]
