"""The made-up sites of `make validate-chrome`, each for something that Chrome does; their edits.

A site is a folder of files that are the same in each run: style sheets and scripts with as many
bytes of comments as it takes, PNGs of noise, and a font cut out of DejaVu Sans. An edit is told
twice: as other markup for Chromium, and as a change of the recorded page for h3sim.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.page import Discovery, FetchPriority, TriggerEvent
from h3sim.page.transforms import with_early_hints

if TYPE_CHECKING:
    from collections.abc import Callable

    from h3sim.page import Page, Resource

_WORDS = [
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consetetur",
    "sadipscing",
    "elitr",
    "sed",
    "diam",
    "nonumy",
    "eirmod",
    "tempor",
]


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the markup, from one text to another, and the same in the recorded page."""

    name: str
    markup: tuple[tuple[str, str], ...]
    change: Callable[[Page], Page]
    early_hints: tuple[str, ...] = ()
    """Values of the Link fields that the server sends in a 103 response before the document."""


@dataclass(slots=True)
class MadeSite:
    """A site: its HTML, its other files, its edits, and the time its server needs for the HTML."""

    name: str
    html: str
    files: dict[str, bytes] = field(default_factory=dict)
    edits: tuple[Edit, ...] = ()
    think_ms: float = 0.0

    def write(self, folder: Path, edit: Edit | None = None) -> None:
        """Write it into *folder*, edited or as it is."""
        html = self.html
        for old, new in edit.markup if edit is not None else ():
            if old not in html:
                raise ValueError(f"{self.name}: {old!r} is not in the markup")
            html = html.replace(old, new)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "index.html").write_text(html, encoding="utf-8")
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


def _noise(seed: str, n_bytes: int) -> bytes:
    return random.Random(seed).randbytes(n_bytes)  # noqa: S311 - the same bytes in each run


def _padded(text: str, seed: str, n_bytes: int) -> bytes:
    n_more = max(0, n_bytes - len(text) - 4)
    return (text + "/*" + _noise(seed, n_more // 2 + 1).hex()[:n_more] + "*/").encode()


def _css(seed: str, kilobytes: float, text: str = "") -> bytes:
    return _padded(text, seed, round(kilobytes * 1000))


def _js(seed: str, kilobytes: float, text: str = "") -> bytes:
    return _padded(text, seed, round(kilobytes * 1000))


def _png(seed: str, width: int, height: int, kilobytes: float) -> bytes:
    """Return a picture of noise in its upper part, so that it has about as many bytes."""
    from PIL import Image

    rows = min(height, round(kilobytes * 1000 * 8 / width))  # a bit for each pixel
    bits = _noise(seed, (width + 7) // 8 * rows) + bytes((width + 7) // 8 * (height - rows))
    file = io.BytesIO()
    Image.frombytes("1", (width, height), bits).save(file, "PNG")
    return file.getvalue()


def _font(n_glyphs: int = 350) -> bytes:
    from fontTools import subset
    from fontTools.ttLib import TTFont
    from matplotlib import get_data_path

    font = TTFont(Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans.ttf", recalcTimestamp=False)
    options = subset.Options()
    options.hinting, options.drop_tables = False, ["FFTM", *subset.Options().drop_tables]
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=range(32, 32 + n_glyphs))
    cutter.subset(font)
    file = io.BytesIO()
    font.save(file)
    return file.getvalue()


def _text(n_words: int, seed: str) -> str:
    chosen = random.Random(seed).choices(_WORDS, k=n_words)  # noqa: S311 - as above
    return " ".join(chosen)


def _html(head: str, body: str) -> str:
    return (
        '<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>made up</title>\n'
        f"{head}\n</head><body>\n{body}\n</body></html>\n"
    )


def _image(name: str, width: int, height: int, more: str = "") -> str:
    return f'<img src="{name}" width="{width}" height="{height}" alt=""{more}>\n'


# Edits, as changes of the page


def _changed(page: Page, id_: str, change: Callable[[Resource], Resource]) -> Page:
    return page.with_resources(
        change(resource) if resource.id == id_ else resource for resource in page.resources
    )


def _marked(tag: str, attribute: str, ids: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((f'<{tag} src="{id_}"', f'<{tag} {attribute} src="{id_}"') for id_ in ids)


def _each(ids: tuple[str, ...], **changes: Any) -> Callable[[Page], Page]:
    """Return the change that sets attributes of some resources."""

    def change(page: Page) -> Page:
        for id_ in ids:
            page = _changed(page, id_, lambda each: replace(each, **changes))
        return page

    return change


def _named(what: str, ids: tuple[str, ...]) -> str:
    return f"{what} {ids[0]}" + ("…" if len(ids) > 1 else "")


def hint(id_: str, priority: FetchPriority, old: str, new: str) -> Edit:
    """Return the edit that gives a file a fetchpriority."""
    return Edit(f"{priority.value} {id_}", ((old, new),), _each((id_,), fetchpriority=priority))


def _hinted(priority: FetchPriority, ids: tuple[str, ...]) -> Edit:
    attribute = f'fetchpriority="{priority.value}"'
    change = _each(ids, fetchpriority=priority)
    return Edit(_named(priority.value, ids), _marked("img", attribute, ids), change)


def _high(*ids: str) -> Edit:
    return _hinted(FetchPriority.HIGH, ids)


def _low(*ids: str) -> Edit:
    return _hinted(FetchPriority.LOW, ids)


def preload(id_: str, kind: str, *, is_high: bool = False) -> Edit:
    """Return the edit that preloads a file at the start of the head."""
    cross = " crossorigin" if kind == "font" else ""
    raised = ' fetchpriority="high"' if is_high else ""
    link = f'<link rel="preload" as="{kind}" href="{id_}"{cross}{raised}>'
    found = Discovery(at=TriggerEvent.OFFSET, by="index.html", offset_bytes=200)
    changes: dict[str, Any] = {"preload": True, "in_head": True, "discovered": found}
    if is_high:
        changes["fetchpriority"] = FetchPriority.HIGH
    return Edit(
        f"preload{' high' if is_high else ''} {id_}",
        (("<title>made up</title>\n", f"<title>made up</title>\n{link}\n"),),
        _each((id_,), **changes),
    )


def _preload_high(id_: str) -> Edit:
    return preload(id_, "image", is_high=True)


def defer(id_: str) -> Edit:
    """Return the edit that defers a script."""
    change = _each((id_,), is_defer=True, render_blocking=False)
    return Edit(f"defer {id_}", _marked("script", "defer", (id_,)), change)


def run_async(id_: str, old: str = "<script") -> Edit:
    """Return the edit that makes a script async; *old* is how its tag begins."""
    markup = ((f'{old} src="{id_}"', f'<script async src="{id_}"'),)
    change = _each((id_,), is_async=True, is_defer=False, render_blocking=False)
    return Edit(f"async {id_}", markup, change)


def lazy(*ids: str) -> Edit:
    """Return the edit that makes images lazy."""
    markup = _marked("img", 'loading="lazy"', ids)
    return Edit(f"lazy {ids[0]}…", markup, _each(ids, is_lazy=True))


def early_hints(**kinds: str) -> Edit:
    """Return the edit that announces files in a 103 response; *kinds* are `as` by file name."""
    names = {name.replace("_", "."): kind for name, kind in kinds.items()}
    return Edit(
        f"103 {' '.join(names)}",
        (),
        lambda page: with_early_hints(page, list(names)),
        tuple(
            f"</{name}>; rel=preload; as={kind}" + ("; crossorigin" if kind == "font" else "")
            for name, kind in names.items()
        ),
    )


_LINK = '<link rel="stylesheet" href="{}">\n'
_SCRIPT = '<script src="{}"></script>\n'


def _pictures(
    prefix: str, count: int, width: int, height: int, kilobytes: float
) -> dict[str, bytes]:
    return {
        f"{prefix}{n}.png": _png(f"{prefix}{n}", width, height, kilobytes)
        for n in range(1, count + 1)
    }


def _numbered(prefix: str, first: int, last: int) -> tuple[str, ...]:
    return tuple(f"{prefix}{n}.png" for n in range(first, last + 1))


def _shown(prefix: str, count: int, width: int, height: int, more: str = "") -> str:
    return "".join(_image(f"{prefix}{n}.png", width, height, more) for n in range(1, count + 1))


def made_sites() -> list[MadeSite]:
    """Return the sites."""
    hero = {"hero.png": _png("hero", 1000, 500, 60)}
    hero_tag = _image("hero.png", 1000, 500)
    return [
        _plain(hero, hero_tag),
        _background(),
        _icons(hero, hero_tag),
        _lazy_site(hero, hero_tag),
        *(_text_site(display) for display in ("block", "swap", "")),
        _promise(hero),
        _promise_markup(hero),
        _modules(hero, hero_tag),
        _imports(hero, hero_tag),
        _frames(hero, hero_tag),
        _body_scripts(hero, hero_tag),
        _inserted(hero),
        _preloads(hero, hero_tag),
        _late_styles(hero, hero_tag),
        _many(hero, hero_tag),
        _hints(hero, hero_tag),
        _thinking(hero, hero_tag),
        _thinking_styles(),
    ]


def _plain(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 12),
        "b.css": _css("b", 18),
        "a.js": _js("a", 25),
        **hero,
        **_pictures("i", 8, 300, 200, 14),
    }
    head = _LINK.format("a.css") + _LINK.format("b.css") + _SCRIPT.format("a.js")
    body = f"<h1>{_text(5, 'h')}</h1>" + _shown("i", 4, 300, 200) + hero_tag
    body += (
        "".join(_image(f"i{n}.png", 300, 200) for n in range(5, 9)) + f"<p>{_text(300, 'p')}</p>"
    )
    edits = (
        *(_high("hero.png"), preload("hero.png", "image"), defer("a.js")),
        *(_preload_high("hero.png"), _low(*_numbered("i", 1, 4))),
    )
    return MadeSite("plain", _html(head, body), files, edits)


def _background() -> MadeSite:
    style = ".hero{width:1000px;height:500px;background:url(hero.png)}"
    style += ".b{width:300px;height:200px;float:left}"
    style += "".join(f".b{n}{{background:url(i{n}.png)}}" for n in range(1, 5))
    files = {
        "a.css": _css("a", 15, style),
        "a.js": _js("a", 20),
        "hero.png": _png("hero", 1000, 500, 60),
        "s.png": _png("s", 300, 200, 12),
        **_pictures("i", 6, 300, 200, 18),
    }
    head = _LINK.format("a.css") + '<script defer src="a.js"></script>'
    body = '<div class="b" style="background:url(s.png)"></div><div class="hero"></div>'
    body += "".join(f'<div class="b b{n}"></div>' for n in range(1, 5))
    body += f"<p>{_text(100, 'p')}</p>" + _image("i5.png", 300, 200) + _image("i6.png", 300, 200)
    edits = (
        *(preload("hero.png", "image"), _preload_high("hero.png"), _high("i5.png")),
        *(lazy("i5.png", "i6.png"), run_async("a.js", "<script defer")),
    )
    return MadeSite("background", _html(head, body), files, edits)


def _icons(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 20),
        "a.js": _js("a", 30),
        **hero,
        **_pictures("icon", 6, 40, 40, 5),
        **_pictures("i", 5, 300, 200, 20),
    }
    head = _LINK.format("a.css") + _SCRIPT.format("a.js")
    body = (
        _shown("icon", 6, 40, 40) + hero_tag + _shown("i", 5, 300, 200) + f"<p>{_text(80, 'p')}</p>"
    )
    edits = (
        *(_high("hero.png"), _low("i1.png"), _preload_high("hero.png")),
        *(defer("a.js"), lazy(*_numbered("i", 1, 5))),
    )
    return MadeSite("icons", _html(head, body), files, edits)


def _lazy_site(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 14),
        "a.js": _js("a", 18),
        **hero,
        **_pictures("i", 10, 300, 200, 12),
    }
    files |= _pictures("far", 4, 300, 200, 12)
    head = _LINK.format("a.css") + '<script async src="a.js"></script>'
    body = f"<h1>{_text(4, 'h')}</h1>" + _shown("i", 3, 300, 200) + hero_tag
    body += "".join(_image(f"i{n}.png", 300, 200, ' loading="lazy"') for n in range(4, 11))
    body += f'<div style="height:9000px">{_text(50, "p")}</div>' + _shown(
        "far", 4, 300, 200, ' loading="lazy"'
    )
    edits = (
        *(lazy(*_numbered("i", 1, 3)), lazy("hero.png"), _high("hero.png")),
        *(_preload_high("hero.png"), _low(*_numbered("i", 1, 3))),
    )
    return MadeSite("lazy", _html(head, body), files, edits)


def _text_site(display: str) -> MadeSite:
    rule = f"font-display:{display};" if display else ""
    style = f"@font-face{{font-family:W;{rule}src:url(w.ttf)}}"
    style += "body{font-family:W,serif;font-size:22px}"
    files = {
        "a.css": _css("a", 10, style),
        "w.ttf": _font(),
        "a.js": _js("a", 22),
        **_pictures("i", 4, 200, 150, 14),
    }
    head = _LINK.format("a.css") + '<script defer src="a.js"></script>'
    body = f"<p>{_text(220, 'p')}</p>" + _shown("i", 4, 200, 150)
    name = f"text-{display or 'auto'}"
    edits = (
        *(preload("w.ttf", "font"), _low(*_numbered("i", 1, 4)), lazy(*_numbered("i", 1, 4))),
        *(_high("i1.png"), run_async("a.js", "<script defer")),
    )
    return MadeSite(name, _html(head, body), files, edits)


def _promise_markup(hero: dict[str, bytes]) -> MadeSite:
    """Return a site whose images are inserted as markup, in a promise's callback."""
    script = (
        "fetch('list.json').then(r=>r.json())"
        ".then(l=>{document.body.insertAdjacentHTML('beforeend',"
        'l.map(u=>`<img src="${u[0]}" width=${u[1]} height=${u[2]} alt="">`).join(\'\'))});'
    )
    site = _promise(hero)
    files = {**site.files, "a.js": _js("a", 16, script)}
    return MadeSite("promise-markup", site.html, files, site.edits)


def _promise(hero: dict[str, bytes]) -> MadeSite:
    script = (
        "fetch('list.json').then(r=>r.json())"
        ".then(l=>{for(const u of l){const i=new Image();i.width=u[1];"
        "i.height=u[2];i.src=u[0];document.body.append(i)}});"
    )
    listed = '[["hero.png",1000,500],["i1.png",300,200],["i2.png",300,200],["i3.png",300,200]]'
    files = {
        "a.css": _css("a", 12),
        "a.js": _js("a", 16, script),
        "list.json": listed.encode(),
        **hero,
        **_pictures("i", 5, 300, 200, 14),
    }
    head = _LINK.format("a.css") + '<script defer src="a.js"></script>'
    body = f"<p>{_text(60, 'p')}</p>" + _image("i4.png", 300, 200) + _image("i5.png", 300, 200)
    edits = (
        *(preload("hero.png", "image"), _preload_high("hero.png"), _low("i4.png", "i5.png")),
        *(lazy("i4.png", "i5.png"), run_async("a.js", "<script defer")),
    )
    return MadeSite("promise", _html(head, body), files, edits)


def _modules(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 12),
        "m.js": _js("m", 14, "import './n.js';import './o.js';"),
        "n.js": _js("n", 12, "export const n=1;"),
        "o.js": _js("o", 12, "export const o=1;"),
        **hero,
        **_pictures("i", 6, 300, 200, 14),
    }
    head = _LINK.format("a.css") + '<script type="module" src="m.js"></script>'
    body = hero_tag + _shown("i", 6, 300, 200) + f"<p>{_text(60, 'p')}</p>"
    edits = (
        *(_high("hero.png"), _preload_high("hero.png"), preload("hero.png", "image")),
        *(_low(*_numbered("i", 1, 6)), lazy(*_numbered("i", 1, 6))),
    )
    return MadeSite("modules", _html(head, body), files, edits)


def _imports(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 9, "@import url(b.css);"),
        "b.css": _css("b", 12),
        "print.css": _css("print", 10),
        "late.css": _css("late", 8),
        "a.js": _js(
            "a",
            10,
            "const l=document.createElement('link');l.rel='stylesheet';l.href='late.css';"
            "document.head.append(l);",
        ),
        **hero,
        **_pictures("i", 5, 300, 200, 14),
    }
    head = _LINK.format("a.css") + '<link rel="stylesheet" media="print" href="print.css">\n'
    head += '<script async src="a.js"></script>'
    body = hero_tag + _shown("i", 5, 300, 200) + f"<p>{_text(60, 'p')}</p>"
    edits = (
        *(preload("b.css", "style"), _high("hero.png"), _preload_high("hero.png")),
        *(_low(*_numbered("i", 1, 5)), lazy(*_numbered("i", 1, 5))),
    )
    return MadeSite("imports", _html(head, body), files, edits)


def _frames(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    inner = _html(_LINK.format("f.css"), _shown("f", 2, 200, 150) + _text(40, "f"))
    files = {
        "a.css": _css("a", 12),
        "a.js": _js("a", 24),
        "frame.html": inner.encode(),
        "f.css": _css("f", 8),
        **_pictures("f", 2, 200, 150, 10),
        **hero,
        **_pictures("i", 4, 300, 200, 14),
    }
    head = _LINK.format("a.css") + _SCRIPT.format("a.js")
    body = (
        f"<h1>{_text(4, 'h')}</h1>" + '<iframe src="frame.html" width="400" height="200"></iframe>'
    )
    body += hero_tag + _shown("i", 4, 300, 200)
    edits = (
        *(_high("hero.png"), defer("a.js"), _preload_high("hero.png")),
        *(_low(*_numbered("i", 1, 4)), lazy(*_numbered("i", 1, 4))),
    )
    return MadeSite("frames", _html(head, body), files, edits)


def _body_scripts(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 12),
        **{f"s{n}.js": _js(f"s{n}", 15) for n in range(1, 5)},
        "x.js": _js("x", 12),
        "d.js": _js("d", 12),
        **hero,
        **_pictures("i", 5, 300, 200, 14),
    }
    head = (
        _LINK.format("a.css")
        + '<script async src="x.js"></script><script defer src="d.js"></script>'
    )
    body = f"<h1>{_text(4, 'h')}</h1>" + _image("i1.png", 300, 200) + hero_tag
    body += "".join(_image(f"i{n}.png", 300, 200) for n in range(2, 6))
    body += "".join(_SCRIPT.format(f"s{n}.js") for n in range(1, 5))
    edits = (
        *(_high("hero.png"), preload("hero.png", "image"), _preload_high("hero.png")),
        *(_low("i1.png"), defer("s1.js")),
    )
    return MadeSite("body-scripts", _html(head, body), files, edits)


def _inserted(hero: dict[str, bytes]) -> MadeSite:
    script = (
        "for(const [u,w,h] of [['hero.png',1000,500],['i1.png',300,200],['i2.png',300,200]])"
        "{const i=new Image();"
        "i.width=w;i.height=h;i.src=u;document.body.append(i)}"
    )
    files = {
        "a.css": _css("a", 14),
        "a.js": _js("a", 20, script),
        **hero,
        **_pictures("i", 6, 300, 200, 14),
    }
    head = _LINK.format("a.css")
    body = f"<p>{_text(60, 'p')}</p>" + "".join(_image(f"i{n}.png", 300, 200) for n in range(3, 7))
    body += _SCRIPT.format("a.js")
    edits = (
        *(preload("hero.png", "image"), preload("a.js", "script"), _preload_high("hero.png")),
        *(_low(*_numbered("i", 3, 6)), lazy(*_numbered("i", 3, 6))),
    )
    return MadeSite("inserted", _html(head, body), files, edits)


def _preloads(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    style = "@font-face{font-family:W;font-display:swap;src:url(w.ttf)}h1{font-family:W,serif}"
    files = {
        "a.css": _css("a", 16, style),
        "w.ttf": _font(200),
        "a.js": _js("a", 20),
        **hero,
        **_pictures("i", 6, 300, 200, 14),
    }
    head = '<link rel="preload" as="image" href="hero.png">'
    head += '<link rel="preload" as="font" href="w.ttf" crossorigin>\n'
    head += _LINK.format("a.css") + _SCRIPT.format("a.js")
    body = f"<h1>{_text(4, 'h')}</h1>" + _shown("i", 6, 300, 200) + hero_tag
    link = '<link rel="preload" as="image" href="hero.png">'
    raised = hint(
        "hero.png", FetchPriority.HIGH, link, link.replace(" as=", ' fetchpriority="high" as=')
    )
    images = _numbered("i", 1, 6)
    edits = (raised, _low(*images), lazy(*images), defer("a.js"), run_async("a.js"))
    return MadeSite("preloads", _html(head, body), files, edits)


def _late_styles(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 12),
        "b.css": _css("b", 12),
        "a.js": _js("a", 15),
        **hero,
        **_pictures("i", 6, 300, 200, 14),
    }
    head = _LINK.format("a.css")
    body = f"<h1>{_text(4, 'h')}</h1>" + _shown("i", 3, 300, 200) + _LINK.format("b.css") + hero_tag
    body += _SCRIPT.format("a.js") + "".join(_image(f"i{n}.png", 300, 200) for n in range(4, 7))
    edits = (
        *(_high("hero.png"), lazy(*_numbered("i", 4, 6)), _preload_high("hero.png")),
        *(_low(*_numbered("i", 1, 3)), defer("a.js")),
    )
    return MadeSite("late-styles", _html(head, body), files, edits)


def _many(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        **{f"{n}.css": _css(n, 10) for n in "abc"},
        **{f"{n}.js": _js(n, 14) for n in "abc"},
        **hero,
        **_pictures("i", 20, 200, 150, 6),
    }
    head = "".join(_LINK.format(f"{n}.css") for n in "abc") + "".join(
        _SCRIPT.format(f"{n}.js") for n in "abc"
    )
    body = (
        "".join(f'<img src="i{n}.png" alt="">' for n in range(1, 11))
        + hero_tag
        + f"<p>{_text(90, 'p')}</p>"
    )
    body += "".join(f'<img src="i{n}.png" alt="">' for n in range(11, 21))
    edits = (
        *(_high("hero.png"), defer("c.js"), _preload_high("hero.png")),
        *(_low(*_numbered("i", 1, 10)), lazy(*_numbered("i", 11, 20))),
    )
    return MadeSite("many", _html(head, body), files, edits)


def _hints(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    files = {
        "a.css": _css("a", 14),
        "a.js": _js("a", 26),
        **hero,
        **_pictures("i", 6, 300, 200, 16),
    }
    head = _LINK.format("a.css") + _SCRIPT.format("a.js")
    body = f"<h1>{_text(4, 'h')}</h1>" + _image("i1.png", 300, 200, ' fetchpriority="low"')
    body += _image("i2.png", 300, 200, ' fetchpriority="low"') + hero_tag.replace(
        "<img", '<img fetchpriority="high"'
    )
    body += "".join(_image(f"i{n}.png", 300, 200) for n in range(3, 7))
    plain = hint(
        "hero.png",
        FetchPriority.AUTO,
        '<img fetchpriority="high" src="hero.png"',
        '<img src="hero.png"',
    )
    edits = (
        *(plain, _preload_high("hero.png"), defer("a.js")),
        *(lazy(*_numbered("i", 3, 6)), _high("i1.png")),
    )
    return MadeSite("hints", _html(head, body), files, edits)


def _thinking(hero: dict[str, bytes], hero_tag: str) -> MadeSite:
    """Return a site whose server takes 400 ms for the document, so that it may send a 103 first."""
    files = {
        "a.css": _css("a", 20),
        "a.js": _js("a", 25),
        **hero,
        **_pictures("i", 6, 300, 200, 14),
    }
    head = _LINK.format("a.css") + _SCRIPT.format("a.js")
    body = f"<h1>{_text(5, 'h')}</h1>" + _shown("i", 3, 300, 200) + hero_tag
    body += "".join(_image(f"i{n}.png", 300, 200) for n in range(4, 7))
    edits = (
        *(early_hints(a_css="style"), early_hints(a_css="style", a_js="script")),
        *(early_hints(hero_png="image"), _high("hero.png"), preload("hero.png", "image")),
    )
    return MadeSite("thinking", _html(head, body), files, edits, think_ms=400.0)


def _thinking_styles() -> MadeSite:
    """Return a site like it whose stylesheet names the main image and a font."""
    style = "@font-face{font-family:W;font-display:block;src:url(w.ttf)}h1{font-family:W,serif}"
    style += ".hero{width:1000px;height:500px;background:url(hero.png)}"
    files = {
        "a.css": _css("a", 24, style),
        "w.ttf": _font(120),
        "a.js": _js("a", 20),
        "hero.png": _png("hero", 1000, 500, 50),
        **_pictures("i", 4, 300, 200, 14),
    }
    head = _LINK.format("a.css") + '<script async src="a.js"></script>'
    body = f'<h1>{_text(5, "h")}</h1><div class="hero"></div>' + _shown("i", 4, 300, 200)
    edits = (
        *(early_hints(a_css="style"), early_hints(hero_png="image"), early_hints(w_ttf="font")),
        *(early_hints(a_js="script"), preload("hero.png", "image")),
    )
    return MadeSite("thinking-styles", _html(head, body), files, edits, think_ms=250.0)
