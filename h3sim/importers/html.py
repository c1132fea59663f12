"""HTML: the tags of a document, by byte, and the requests that they cause.

It implements the tokenization of the HTML standard § 13.2.5 for tags, attributes, comments and raw
text. Available parsers do not report byte offsets of tags, which determine when a browser requests
a resource. The time is linear in the document's length for any input.

>>> for tag in scan(b'<p>a<img src=a.png><!-- <img src=no.png> -->').tags:
...     print(tag.name, tag.attributes, tag.end)
img {'src': 'a.png'} 19
"""

from __future__ import annotations

import html
import math
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim.importers.media_queries import candidates, chosen, matches
from h3sim.importers.request_fields import joined, kind_of_word
from h3sim.page import FetchPriority, Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


_TAG = re.compile(
    rb"<(/?)([A-Za-z][^\s/>]*+)"
    # Blanks and slashes, or an attribute with or without a value; not without one before a =, so
    # that there is only one way to match, and the time is linear.
    rb"((?:[\s/]++|[^\s/>][^\s/>=]*+"
    rb"(?:\s*+=\s*+(?:\"[^\"]*+\"|'[^']*+'|[^\s>\"'][^\s>]*+|(?=>))|(?!\s*+=)))*+)>"
)
_OPENING = re.compile(rb"<(?=[A-Za-z/!?])")
_ATTRIBUTE = re.compile(
    rb"([^\s/>][^\s/>=]*+)(?:\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s>\"'][^\s>]*+))?+)?+"
)
_RAW_TEXT_END = {
    name: re.compile(rb"</" + name + rb"(?=[\s/>])", re.IGNORECASE)
    for name in b"script style textarea title xmp iframe noembed noframes noscript".split()
}
"""End tags of raw text elements, which include `noscript`, as the browser runs scripts."""
_COMMENT_END = re.compile(rb"--(!?)>")
_SCRIPT_DATA_TOKEN = re.compile(rb"(<!--)|(-->)|<(/?)script(?=[\s/>])", re.IGNORECASE)
_READ_TAGS = frozenset(
    b"base body link script style img image source picture video audio track iframe embed object"
    b" input use template head frame table td".split()
)
"""Tags that are returned by `scan`: they load something, or are needed to tell what is loaded."""
_HEAD_TAGS = frozenset(
    b"html head title meta link script style base noscript template basefont bgsound".split()
)
"""Elements allowed in the head: any other tag ends it (HTML standard § 13.2.6.4.4)."""
_CONTENT_TAGS = frozenset(
    b"img image video canvas embed object input select textarea use"
    b" path rect circle ellipse line polygon polyline".split()
)
"""Elements that are painted without any text; a frame has a first contentful paint of its own."""
_UNRENDERED_TAGS = frozenset((b"template", b"defs", b"symbol"))
"""Elements whose contents are not painted where they are."""
_TAGS_WITH_READ_END = frozenset((b"picture", b"video", b"audio", b"template", b"head"))
"""Tags whose end tags are returned, too."""
_VOID_TAGS = frozenset(b"area base br col embed hr img input link meta source track wbr".split())
_IMPLICITLY_CLOSED_TAGS = frozenset(
    b"p li dd dt option tr td th tbody thead tfoot colgroup".split()
)
"""Elements that are closed implicitly by the next of their kind, so they do not nest."""
_TAGS_WITHOUT_DEPTH = _VOID_TAGS | _IMPLICITLY_CLOSED_TAGS
_MAX_ATTRIBUTE_BYTES = 1 << 16
"""Attributes of a tag after so many bytes are not read, to bound memory."""
_LONG_TAG_BYTES = 1 << 12
"""Shorter tags cannot have so many attributes that they matter."""


class Tag(NamedTuple):
    """Start or end tag."""

    name: str
    attributes: dict[str, str]
    end: int
    """Offset after the tag."""
    is_end: bool = False
    text: str = ""
    """Contents of a `style` element, or of a module script without `src`."""
    text_end: int = 0
    """Offset after the contents of a raw text element, otherwise after the tag."""


class Scan(NamedTuple):
    """Tags of a document that matter for loading, with properties of the whole document."""

    tags: list[Tag]
    depth: int
    """Upper bound of the nesting depth of elements."""
    head_end: int
    """End of the head: its end tag, or the first tag not allowed in it."""
    unscripted: list[tuple[int, int]]
    """Ranges of the contents of `noscript`."""
    max_attributes: int = 0
    """Most attributes of a tag; they are counted in long tags only."""
    has_content: bool = False
    """True if there is a text or an element to paint, which no rule of CSS need show."""


def scan(data: bytes) -> Scan:
    """Return the tags of *data* that matter for loading, in document order."""
    tags: list[Tag] = []
    unscripted: list[tuple[int, int]] = []
    depth = _DepthCounter()
    head_end, n_templates, max_attributes = len(data), 0, 0
    has_content, after, n_unrendered = False, 0, 0
    opening = _OPENING.search(data)
    while opening is not None:
        in_body = head_end < len(data) and n_unrendered <= 0
        has_content |= in_body and _is_text(data[after : opening.start()])
        after = opening.start()
        found = _TAG.match(data, opening.start())
        if found is None:
            at = _end_of_non_tag(data, opening.start())
            if at < 0:
                max_attributes = max(max_attributes, _count_attributes(data[opening.end() :]))
            after = len(data) if at < 0 else at
            opening = None if at < 0 else _OPENING.search(data, at)
            continue
        slash, name, attributes = found.groups()
        max_attributes = max(max_attributes, _count_attributes(attributes))
        name, text_end = name.lower(), found.end()
        if not slash and name in _RAW_TEXT_END:
            text_end = _end_of_raw_text(data, name, text_end)
            if name == b"noscript":
                unscripted.append((found.end(), text_end))
        if name in _UNRENDERED_TAGS and not attributes.endswith(b"/"):
            n_unrendered += -1 if slash else 1
        has_content |= not slash and n_unrendered <= 0 and name in _CONTENT_TAGS
        if head_end == len(data):
            n_templates += (name == b"template") * (-1 if slash else 1)
            # Tags in a template, even in the head, do not end the head.
            starts_body = not slash and name not in _HEAD_TAGS and n_templates <= 0
            if starts_body or (slash and name == b"head"):
                head_end = opening.start()
        if name not in _TAGS_WITHOUT_DEPTH:
            depth.add(name, is_end=bool(slash))
        if name in (_TAGS_WITH_READ_END if slash else _READ_TAGS):
            text = ""
            values = _attributes(attributes) if attributes else {}
            is_inline_module = name == b"script" and "src" not in values and _is_module(values)
            if name == b"style" or (is_inline_module and not slash):
                text = data[found.end() : text_end].decode("utf-8", "replace")
            tags.append(Tag(name.decode(), values, found.end(), bool(slash), text, text_end))
        elif not slash and b"style" in attributes.lower():
            values = _attributes(attributes)
            if "style" in values:
                tags.append(Tag(name.decode("utf-8", "replace"), values, found.end()))
        after = text_end
        opening = _OPENING.search(data, text_end)
    has_content |= _is_text(data[after:])
    return Scan(tags, depth.most, head_end, unscripted, max_attributes, has_content)


def _is_text(data: bytes) -> bool:
    """Return whether there is more than white space between two tags.

    >>> _is_text(b" &nbsp; "), _is_text(b" x ")
    (False, True)
    """
    data = data.strip()
    return bool(data) and bool(html.unescape(data.decode("utf-8", "replace")).strip())


def _end_of_raw_text(data: bytes, name: bytes, start: int) -> int:
    """Return the offset of the end tag of a raw text element, or of the document's end."""
    if name != b"script":
        close = _RAW_TEXT_END[name].search(data, start)
        return len(data) if close is None else close.start()
    # Within a comment in a script, tags of another script are text (the states "script data
    # escaped" and "double escaped" of the HTML standard § 13.2.5).
    is_escaped = is_double_escaped = False
    found = _SCRIPT_DATA_TOKEN.search(data, start)
    while found is not None:
        comment, comment_end, slash = found.groups()
        continue_at = found.end()
        if comment:
            is_escaped, continue_at = True, found.start() + 2  # its dashes may be those of -->
        elif comment_end:
            is_escaped = is_double_escaped = False
        elif not slash:
            is_double_escaped = is_escaped
        elif is_double_escaped:
            is_double_escaped = False
        else:
            return found.start()
        found = _SCRIPT_DATA_TOKEN.search(data, continue_at)
    return len(data)


def _end_of_non_tag(data: bytes, at: int) -> int:
    """Return the offset after a comment or stray <; -1 if the rest of the document is none."""
    if data.startswith(b"<!--", at):
        # <!--> and <!---> are complete comments, <!--!> and <!---!> are not.
        closing = _COMMENT_END.search(data, at + 2)
        while closing is not None and closing[1] and closing.start() < at + 4:
            closing = _COMMENT_END.search(data, closing.start() + 1)
        return -1 if closing is None else closing.end()
    sign, letter = data[at + 1 : at + 2], data[at + 1 : at + 3].lstrip(b"/")[:1]
    if letter.isalpha():
        return -1  # a tag that is not closed
    if sign not in (b"!", b"?", b"/"):
        return at + 1
    end = data.find(b">", at)
    return -1 if end < 0 else end + 1


def _count_attributes(raw: bytes) -> int:
    """Return the number of attributes of a long tag; 0 for others, which cannot have many."""
    return sum(1 for _ in _ATTRIBUTE.finditer(raw)) if len(raw) > _LONG_TAG_BYTES else 0


def _attributes(raw: bytes) -> dict[str, str]:
    """Return the attributes with names in lower case; the first of each name counts."""
    values: dict[str, str] = {}
    for found in _ATTRIBUTE.finditer(raw[:_MAX_ATTRIBUTE_BYTES]):
        name, *quotings = found.groups()  # the value is in one of them
        value = next((each for each in quotings if each is not None), b"")
        text = value.decode("utf-8", "replace")
        values.setdefault(name.decode("utf-8", "replace").lower(), html.unescape(text))
    return values


def _is_module(attributes: dict[str, str]) -> bool:
    """Return whether the attributes of a script tag make it a module."""
    return attributes.get("type", "").strip().lower() == "module"


class _DepthCounter:
    """Upper bound of the nesting depth; implicitly closed elements are not counted."""

    def __init__(self) -> None:
        self._open: Counter[bytes] = Counter()
        self._depth = 0
        self.most = 0
        """Greatest depth so far."""

    def add(self, name: bytes, *, is_end: bool) -> None:
        if not is_end:
            self._open[name] += 1
            self._depth += 1
            self.most = max(self.most, self._depth)
        elif self._open[name]:
            self._open[name] -= 1
            self._depth -= 1


_PRELOAD_TYPES = frozenset(["style", "script", "font", "image", "fetch", "video", "audio", "track"])
"""Values of the `as` attribute of preloads that load something."""
_SCRIPT_TYPES = frozenset(
    (
        "",
        "module",
        "application/ecmascript",
        "application/javascript",
        "application/x-ecmascript",
        "application/x-javascript",
        "text/ecmascript",
        "text/javascript",
        "text/javascript1.0",
        "text/javascript1.1",
        "text/javascript1.2",
        "text/javascript1.3",
        "text/javascript1.4",
        "text/javascript1.5",
        "text/jscript",
        "text/livescript",
        "text/x-ecmascript",
        "text/x-javascript",
    )
)
"""Types of scripts that browsers run (WHATWG MIME Sniffing § 4.6); none has parameters."""
_IMAGE_TYPES = frozenset(
    (
        "image/avif",
        "image/webp",
        "image/png",
        "image/apng",
        "image/jpeg",
        "image/jpg",
        "image/gif",
        "image/svg+xml",
        "image/bmp",
        "image/x-icon",
    )
)
"""Types of images that browsers display, by which they choose a source of a `picture`."""
_URL_ATTRIBUTES = {
    **dict.fromkeys(("audio", "embed", "input", "script", "track"), ("src",)),
    **dict.fromkeys(("body", "table", "td"), ("background",)),
    **dict.fromkeys(("image", "use"), ("href", "xlink:href")),
    **dict.fromkeys(("img", "source"), ("src", "srcset")),
    "link": ("href", "imagesrcset"),
    "object": ("data",),
    "video": ("src", "poster"),
}
"""Attributes of each tag that have URLs."""
_SRCSET_ATTRIBUTES = ("srcset", "imagesrcset")
_KIND_OF_TAG = {"img": Kind.IMAGE, "link": Kind.STYLESHEET, "script": Kind.SCRIPT}
_LAZY_TAGS = ("img", "iframe")
_FRAME_TAGS = ("iframe", "frame")
_FETCH_PRIORITIES = {"high": FetchPriority.HIGH, "low": FetchPriority.LOW}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Reference in a document, with the attributes of its tag."""

    url: str
    kind: Kind
    tag: str
    offset_bytes: int
    """Offset after the tag: the bytes that must arrive before the browser knows of it."""
    base: str = ""
    """URL of the `base` element in effect, unresolved; "" for none."""
    flags: dict[str, Any] = field(default_factory=dict)
    """Attributes of its tag as fields of a `Resource`, without those that are False."""

    def url_in(self, document_url: str) -> str:
        """Return its absolute URL without fragment; "" if it is invalid."""
        return joined(joined(document_url, self.base) or document_url, self.url)


class InlineModule(NamedTuple):
    """A module script in a document, which imports files."""

    text: str
    offset_bytes: int
    base: str
    is_async: bool
    in_head: bool


class Style(NamedTuple):
    """CSS in a document: of a `style` element, or the declarations of a `style` attribute."""

    text: str
    offset_bytes: int
    is_attribute: bool
    base: str = ""


@dataclass(slots=True, kw_only=True)
class Markup:
    """References of a document, in order."""

    references: list[Reference] = field(default_factory=list)
    styles: list[Style] = field(default_factory=list)
    modules: list[InlineModule] = field(default_factory=list)
    passed_over: list[str] = field(default_factory=list)
    """Descriptions of references that are not loaded for display, one for each."""


def read_markup(found: Scan, *, include_unloaded: bool = False) -> Markup:
    """Return the references in the tags of a document.

    They are those that a browser with the screen of `css` loads. With *include_unloaded* they are
    all URLs in any tag: every candidate of a `srcset`, all sources of media, links of any kind.

    >>> from h3sim.importers.html import scan
    >>> markup = read_markup(scan(b'<head><script defer src=a.js></script></head><img src=b>'))
    >>> [(each.url, each.offset_bytes, "is_defer" in each.flags) for each in markup.references]
    [('a.js', 29, True), ('b', 56, False)]
    """
    return _MarkupReader(found, include_unloaded=include_unloaded).read(found.tags)


class _MarkupReader:
    def __init__(self, found: Scan, *, include_unloaded: bool) -> None:
        self._markup = Markup()
        self._includes_unloaded = include_unloaded
        self._head_end = found.head_end
        self._base = ""
        self._after_image = False
        self._open_elements = {"picture": 0, "video": 0, "audio": 0}
        self._hides_template: list[bool] = []
        """For each open template, whether its contents stay out of the document."""
        self._known_references: set[tuple[str, Kind, bool]] = set()
        self._chosen_source = ""
        """Source chosen so far for the open `picture` or media element."""

    def read(self, tags: Iterable[Tag]) -> Markup:
        for tag in tags:
            if tag.name in self._open_elements:
                self._open_elements[tag.name] = max(
                    0, self._open_elements[tag.name] + (-1 if tag.is_end else 1)
                )
                self._chosen_source = ""
            elif tag.name == "template":
                self._open_or_close_template(tag)
            if any(self._hides_template) or tag.is_end:
                continue
            self._read_style(tag)
            found = list(self._references_of(tag))
            if self._includes_unloaded:
                urls = {each.url for each in found}
                found += (each for each in self._unloaded_references(tag) if each.url not in urls)
            for each in found:
                # A preload and the tag that uses the file are both kept: the tag says more.
                key = (each.url, each.kind, "preload" in each.flags)
                if each.url and key not in self._known_references:
                    self._known_references.add(key)
                    self._markup.references.append(each)
        self._drop_used_prefetches()
        return self._markup

    def _drop_used_prefetches(self) -> None:
        """Drop the prefetches of what the document itself loads: its elements say when."""
        references = self._markup.references
        used = {each.url for each in references if "prefetch" not in each.flags}
        self._markup.references = [
            each for each in references if "prefetch" not in each.flags or each.url not in used
        ]

    def _open_or_close_template(self, tag: Tag) -> None:
        if not tag.is_end:
            # The contents of a shadow root's template are shown (HTML standard § 4.12.3).
            mode = tag.attributes.get("shadowrootmode", "").lower()
            self._hides_template.append(mode not in ("open", "closed"))
        elif self._hides_template:
            self._hides_template.pop()

    def _read_style(self, tag: Tag) -> None:
        styles, declarations = self._markup.styles, tag.attributes.get("style", "")
        if "url(" in declarations.lower():
            styles.append(Style(declarations, tag.end, is_attribute=True, base=self._base))
        if tag.name == "style" and matches(tag.attributes.get("media", "")):
            styles.append(Style(tag.text, tag.text_end, is_attribute=False, base=self._base))

    def _unloaded_references(self, tag: Tag) -> Iterator[Reference]:
        """Yield all URLs of a tag, also those that `_references_of` leaves out."""
        for name in _URL_ATTRIBUTES.get(tag.name, ()):
            text = tag.attributes.get(name, "")
            for url in candidates(text) if name in _SRCSET_ATTRIBUTES else (text,):
                yield self._reference(tag, url, _KIND_OF_TAG.get(tag.name, Kind.OTHER))

    def _references_of(self, tag: Tag) -> Iterator[Reference]:
        values, url = tag.attributes, tag.attributes.get("src", "")
        if tag.name == "base":
            self._base = self._base or values.get("href", "")
        elif tag.name == "link":
            yield from self._of_link(tag)
        elif tag.name == "script":
            yield from self._of_script(tag, url)
        elif tag.name == "source":
            yield from self._of_source(tag, url)
        elif tag.name == "img":
            yield from self._of_image(tag)
        elif tag.name in _FRAME_TAGS:
            # `srcdoc` takes precedence over `src` (HTML standard § 4.8.5).
            if "srcdoc" in values:
                self._markup.passed_over.append("frames that hold their document")
            else:
                yield self._reference(tag, url, Kind.DOCUMENT)
        elif tag.name in ("video", "audio"):
            yield self._reference(tag, values.get("poster", ""), Kind.IMAGE)
            if self._plays(tag):
                self._chosen_source = url  # precedes `source` tags (HTML standard § 4.8.11.5)
                yield self._reference(tag, url, Kind.MEDIA)
        elif tag.name in ("embed", "object"):
            yield self._reference(tag, values.get("data", "") or url, Kind.OTHER)
        elif tag.name == "input" and values.get("type", "").lower() == "image":
            yield self._reference(tag, url, Kind.IMAGE)
        elif tag.name in ("image", "use"):
            href = values.get("href", "") or values.get("xlink:href", "")
            yield self._reference(tag, href.partition("#")[0], Kind.IMAGE)
        elif tag.name == "body":
            yield self._reference(tag, values.get("background", ""), Kind.IMAGE)

    def _of_link(self, tag: Tag) -> Iterator[Reference]:
        values = tag.attributes
        words, href = values.get("rel", "").lower().split(), values.get("href", "")
        is_css = values.get("type", "").partition(";")[0].strip().lower() in ("", "text/css")
        is_off = "alternate" in words or "disabled" in values
        if "stylesheet" in words and is_css and not is_off:
            is_shown = matches(values.get("media", ""))
            flags = {
                "render_blocking": is_shown and self._is_in_head(tag),
                "other_media": not is_shown,
            }
            yield self._reference(tag, href, Kind.STYLESHEET, **flags)
        elif "preload" in words or "modulepreload" in words:
            word = values.get("as", "").lower()
            is_module = "modulepreload" in words
            kind = (
                Kind.SCRIPT if is_module else kind_of_word(word) if word in _PRELOAD_TYPES else None
            )
            if kind is None or not matches(values.get("media", "")):
                self._markup.passed_over.append("preloads for nothing that is shown")
                return
            url = chosen(values.get("imagesrcset", ""), values.get("imagesizes", "")) or href
            yield self._reference(tag, url, kind, preload=True, module=is_module)
        elif "prefetch" in words and href:
            # Whatever it is, this page does not parse, run or paint it.
            yield self._reference(tag, href, Kind.OTHER, prefetch=True)
        elif href and words:
            self._markup.passed_over.append("links that load nothing for display")

    def _of_script(self, tag: Tag, url: str) -> Iterator[Reference]:
        values = tag.attributes
        type_ = values.get("type", "").strip().lower()
        is_module = _is_module(values)
        if not url:
            if is_module:
                module = InlineModule(
                    text=tag.text,
                    offset_bytes=tag.text_end,
                    base=self._base,
                    is_async="async" in values,
                    in_head=self._is_in_head(tag),
                )
                self._markup.modules.append(module)
            return
        if type_ not in _SCRIPT_TYPES or ("nomodule" in values and not is_module):
            self._markup.passed_over.append("scripts that are not run")
            return
        is_async = "async" in values
        # Modules are deferred by default (HTML standard § 4.12.1).
        is_defer = not is_async and ("defer" in values or is_module)
        # Any script in the head may be declared as render-blocking (§ 2.5.9).
        is_declared = "render" in values.get("blocking", "").lower().split()
        is_synchronous = not (is_async or is_defer)
        is_blocking = self._is_in_head(tag) and (is_synchronous or is_declared)
        flags = {"is_async": is_async, "is_defer": is_defer, "module": is_module}
        yield self._reference(tag, url, Kind.SCRIPT, **flags, render_blocking=is_blocking)

    def _of_source(self, tag: Tag, url: str) -> Iterator[Reference]:
        """Choose the source of the open picture, whose `img` loads it, or load that of a player.

        The first one that fits the screen counts.
        """
        values = tag.attributes
        is_for_screen = matches(values.get("media", ""))
        if self._open_elements["picture"]:
            type_ = values.get("type", "").lower()
            if not self._chosen_source and is_for_screen and (not type_ or type_ in _IMAGE_TYPES):
                self._chosen_source = chosen(values.get("srcset", ""), values.get("sizes", ""))
        elif (
            (self._open_elements["video"] or self._open_elements["audio"])
            and is_for_screen
            and not self._chosen_source
        ):
            self._chosen_source = url
            yield self._reference(tag, url, Kind.MEDIA)

    def _of_image(self, tag: Tag) -> Iterator[Reference]:
        values = tag.attributes
        url = chosen(values.get("srcset", ""), values.get("sizes", "")) or values.get("src", "")
        if self._open_elements["picture"]:
            url = self._chosen_source or url
        yield self._reference(tag, url, Kind.IMAGE, small=_is_small(values))
        self._after_image = True

    def _is_in_head(self, tag: Tag) -> bool:
        return tag.end <= self._head_end

    def _plays(self, tag: Tag) -> bool:
        """Return whether a media element loads its media without user action."""
        if tag.attributes.get("preload", "").lower() == "none" and "autoplay" not in tag.attributes:
            self._chosen_source = "none"  # so that its `source` tags are ignored
            self._markup.passed_over.append("media with preload=none")
            return False
        return True

    def _reference(self, tag: Tag, url: str, kind: Kind, **attributes: bool) -> Reference:
        values = tag.attributes
        flags = {
            "in_head": self._is_in_head(tag),
            **attributes,
            "is_lazy": tag.name in _LAZY_TAGS and values.get("loading", "").lower() == "lazy",
            "after_first_image": self._after_image and kind in (Kind.SCRIPT, Kind.STYLESHEET),
            # AUTO is listed, too: of several tags for one file the first one decides.
            "fetchpriority": _FETCH_PRIORITIES.get(
                values.get("fetchpriority", "").lower(), FetchPriority.AUTO
            ),
        }
        return Reference(
            url=url.strip(),
            kind=kind,
            tag=tag.name,
            offset_bytes=tag.end,
            base=self._base,
            flags={name: value for name, value in flags.items() if value},
        )


_MAX_SMALL_AREA_PX = 10_000
"""Largest area of images that are small for Chrome (kBoostImagePriorityImageSize)."""


def _is_small(attributes: dict[str, str]) -> bool:
    """Return whether the tag of an image declares a small area."""
    sides = [attributes.get(name, "").strip() for name in ("width", "height")]
    lengths = [int(side) for side in sides if side.isascii() and side.isdigit()]
    is_complete = len(lengths) == len(sides)
    return 0 in lengths or (is_complete and math.prod(lengths) <= _MAX_SMALL_AREA_PX)
