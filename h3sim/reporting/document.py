"""A report as a value, and as one accessible HTML file.

All text from users, such as names of pages, is escaped here and nowhere else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from h3sim._version import __version__
from h3sim.schema import write_atomically
from h3sim.schema.arguments import PATH, check_arguments
from h3sim.values.errors import InputError

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Sequence

    from h3sim.reporting.timeline import Timeline
    from h3sim.values.table import Table


_PAGE_CSS = """
:root { color-scheme: light dark; --paper: #fff; --ink: #1b1b1b; --accent: #0b4f8c;
  --shade: #f2f6fa; --line: #d6d6d6; --edge: #767676; --chosen: #fbdbe9; }
@media screen and (prefers-color-scheme: dark) {
  :root { --paper: #161616; --ink: #f2f2f2; --accent: #7db8f0; --shade: #1f262d;
    --line: #3a3a3a; --edge: #8a8a8a; --chosen: #5a2440; }
  /* Figures keep the paper for which their colours were chosen. */
  .scroll > svg, .stage, .lanes canvas, .film canvas { background: #fff; }
}
body { margin: 0 auto; padding: 1rem; max-width: %srem; background: var(--paper); color: var(--ink);
  font: 1rem/1.5 system-ui, "DejaVu Sans", Arial, sans-serif; }
h1 { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; max-width: 100%%; }
.scroll svg { display: block; width: 100%%; height: auto; }
table { border-collapse: collapse; font-size: 0.875rem; }
caption { text-align: left; font-weight: 600; }
a:focus-visible, button:focus-visible, select:focus-visible, input:focus-visible,
summary:focus-visible, .scroll:focus-visible {
  outline: 3px solid var(--accent); outline-offset: 2px; }
"""


def html_page(title: str, body: str, *, style: str, width_rem: int, script: str = "") -> str:
    """Return a complete HTML file; *title* is escaped here, *body* and *style* are HTML and CSS.

    *script* is the name of a file of this package. The content security policy forbids all network
    access and all other scripts, whatever names of pages contain.
    """
    scripts = end = ""
    if script:
        code = "\n" + files("h3sim.reporting").joinpath(script).read_text(encoding="utf-8")
        # The policy allows the script by its hash.
        digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
        scripts, end = f"script-src 'sha256-{digest}'; ", f"<script>{code}</script>\n"
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}img-src data:"
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="h3sim {html.escape(__version__)}">\n'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}</title>\n'
        f"<style>{_PAGE_CSS % width_rem}{style}</style>\n"
        f"</head>\n<body>\n{body}{end}</body>\n</html>\n"
    )


def scrolled(label: str, body: str, kind: str = "scroll") -> str:
    """Return a scrollable region, which can also be reached by keyboard (WCAG 2.1.1)."""
    return f'<div class="{kind}" tabindex="0" role="group" aria-label="{label}">{body}</div>'


def paragraphs(sentences: Iterable[str]) -> str:
    """Return a paragraph for each sentence."""
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)


MAX_ROWS = 2000
"""Longer tables are cut, with a note, since browsers lay out tables slowly."""
_MAX_MAGNIFICATION = 1.1
"""Largest scale of a figure, at which its text has 9 points."""
_MIN_WIDTH_PT = 560.0
"""Least width of a figure, so that it can be read."""
_REPORT_CSS = """
h1 { font-size: 1.6rem; line-height: 1.25; }
h2 { font-size: 1.25rem; margin-top: 2.5rem; border-bottom: 1px solid var(--edge);
  overflow-wrap: anywhere; }
h3 { font-size: 1.05rem; overflow-wrap: anywhere; }
a { color: var(--accent); }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; }
.verdict > p:first-of-type { font-size: 1.15rem; font-weight: 600; }
.verdict { border-left: 0.4rem solid var(--accent); padding: 0.1rem 1rem;
  background: var(--shade); }
figure { margin: 1.5rem 0; }
figcaption { font-weight: 600; overflow-wrap: anywhere; }
table { margin: 0.5rem 0 1rem; }
caption { padding: 0.25rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.15rem 0.75rem 0.15rem 0;
  border-bottom: 1px solid var(--line); overflow-wrap: break-word; min-width: 3rem;
  max-width: 36rem; }
[style] { font-variant-numeric: tabular-nums; white-space: nowrap; }
thead th[style] { white-space: normal; }
thead th { border-bottom: 2px solid var(--edge); vertical-align: bottom; }
code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere; }
pre { white-space: pre-wrap; background: var(--shade); padding: 0.5rem; }
@media print { .skip, nav { display: none; } h2, h3, figcaption, caption { break-after: avoid; }
  figure { break-inside: avoid; } .scroll { overflow: visible; }
  .scroll svg { min-width: 0 !important; } }
"""
_WIDTH_REM = 76


def report_html(report: Report) -> str:
    """Return *report* as a complete HTML file."""
    skip = '<a class="skip" href="#verdict">Skip to the verdict</a>\n'
    body = f"{skip}{body_of(report, has_timelines=True)}"
    timelines = [part.timeline for part in report.parts if part.timeline is not None]
    return html_page(
        report.title,
        body,
        style=_REPORT_CSS + (timelines[0].style if timelines else ""),
        width_rem=_WIDTH_REM,
        script="timeline.js" if timelines else "",
    )


def body_of(report: Report, *, has_timelines: bool = False) -> str:
    """Return the body of the file; without timelines, as notebooks do not run their script."""
    # The first screen has the answer, what could change it, and one figure; evidence follows.
    caveats = list(dict.fromkeys(text for part in report.parts for text in part.words))
    lead = next((part.pictures[0] for part in report.parts if part.pictures), None)
    leading = "" if lead is None else _picture_html("lead", lead)
    numbered = list(enumerate(report.parts, start=1))
    links = [("verdict", "Verdict"), *((f"part-{n}", part.title) for n, part in numbered)]
    contents = "".join(
        f'<li><a href="#{anchor}">{html.escape(title)}</a></li>'
        for anchor, title in (*links, ("made", "Configuration"))
    )
    command = f"<pre><code>{html.escape(report.command)}</code></pre>" if report.command else ""
    return (
        f"<header><h1>{html.escape(report.title)}</h1></header>\n"
        f'<main>\n<section id="verdict" class="verdict" aria-labelledby="verdict-title"'
        f' tabindex="-1"><h2 id="verdict-title">Verdict</h2>{paragraphs(report.verdict)}'
        f"{_caveats_html(caveats)}{leading}</section>\n"
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav>\n'
        + "".join(_section_html(number, part, lead, has_timelines) for number, part in numbered)
        + '<section id="made" aria-labelledby="made-title"><h2 id="made-title">Configuration</h2>'
        + f"{command}{_table_html(report.made)}</section>\n</main>\n"
    )


def _caveats_html(caveats: Sequence[str]) -> str:
    if not caveats:
        return ""
    items = "".join(f"<li>{html.escape(text)}</li>" for text in caveats)
    return f"<h3>What could change it</h3><ul>{items}</ul>\n"


def _section_html(number: int, part: Section, lead: Picture | None, has_timeline: bool) -> str:
    name = f"part-{number}"
    interactive = ""
    if has_timeline and part.timeline is not None:
        interactive = part.timeline.to_html(f"{name}-timeline")
    pictures = "".join(
        _picture_html(f"{name}-figure-{n}", picture)
        for n, picture in enumerate(part.pictures, start=1)
        if picture is not lead
    )
    return (
        f'<section id="{name}" aria-labelledby="{name}-title">'
        f'<h2 id="{name}-title">{html.escape(part.title)}</h2>\n'
        f"{paragraphs(part.answer)}{interactive}{pictures}"
        f"{''.join(map(_table_html, part.tables))}</section>\n"
    )


def _picture_html(name: str, picture: Picture) -> str:
    title = html.escape(picture.title)
    return (
        f'<figure aria-labelledby="{name}-title"><figcaption id="{name}-title">{title}</figcaption>'
        f"{scrolled(title, _inline_svg(name, picture))}"
        f"<details><summary>The data of this figure: {title}</summary>"
        f"{_table_html(picture.data)}</details></figure>\n"
    )


def _inline_svg(name: str, picture: Picture) -> str:
    """Return the SVG as an element of the page, with unique ids and a size that fits the screen."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", picture.svg, flags=re.DOTALL)
    # Without the XML prolog, which is not allowed in HTML.
    svg = svg[svg.index("<svg") :]
    # Coordinates are cut to hundredths, which halves the file; factors of scales are kept.
    svg = re.sub(r"scale\([^)]*\)|(\d\.\d\d)\d+", lambda number: number[1] or number[0], svg)
    svg = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', svg)
    svg = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', svg)
    svg = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", svg)
    box = re.search(r'viewBox="[^"]*"', svg)
    width = re.search(r'width="([0-9.]+)pt"', svg)
    attributes = "" if box is None else f" {box.group()}"
    if width is not None:
        points = float(width.group(1))
        # On a narrow screen a wide figure is scrolled, so that its text stays legible.
        attributes += f' style="max-width: {points * _MAX_MAGNIFICATION:.0f}pt;'
        attributes += f' min-width: {min(points, _MIN_WIDTH_PT):.0f}pt"'
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink"'
        f'{attributes} role="img" aria-label="{html.escape(picture.alt)}">'
    )
    return opening + svg[svg.index(">") + 1 :].strip()


def _table_html(table: Table[Any]) -> str:
    return f"{scrolled(html.escape(table.title), table.to_html(most_rows=MAX_ROWS))}\n"


SUFFIXES = (".html", ".htm")


@dataclass(frozen=True, kw_only=True)
class Picture:
    """A figure as SVG, with its alternative text and its data."""

    title: str
    alt: str
    svg: str
    data: Table[Any]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A section of a report: its own *answer* in sentences, timeline, pictures and tables.

    Its *words*, which could change the verdict, follow the verdict.
    """

    title: str
    answer: Sequence[str] = ()
    words: Sequence[str] = ()
    timeline: Timeline | None = None
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table[Any]] = ()


class ReportParts(NamedTuple):
    """Parts of a report about a page, a study or a log, and the settings behind them."""

    name: str
    verdict: Sequence[str]
    section: Section
    settings: Sequence[tuple[str, Any]] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class Report:
    """A report: the *verdict* in sentences, *parts* with the evidence, and *made*, the settings.

    A notebook shows it; `save` writes it.
    """

    title: str
    verdict: Sequence[str]
    parts: Sequence[Section]
    made: Table[Any]
    command: str = field(default="")

    def to_html(self) -> str:
        """Return the report as an HTML file that needs no other file and no network.

        Its only script draws the timelines.
        """
        return report_html(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the report to *path*, which ends in .html, atomically.

        Raises:
            InputError: if the ending is another, or the file cannot be written.
        """
        check_suffix(path)
        write_atomically(path, self.to_html())

    def _repr_html_(self) -> str:
        return body_of(self)

    def __repr__(self) -> str:
        return f"<Report {self.title!r}: {' '.join(self.verdict)}>"


def check_suffix(path: str | os.PathLike[str], *, key: str = "") -> None:
    """Refuse a path without an ending of HTML files.

    Raises:
        InputError: naming the endings; *key* is the option with the path.
    """
    check_arguments(InputError, **{key or "path": (PATH, path)})
    if Path(path).suffix.lower() not in SUFFIXES:
        message = f"must end in {' or '.join(SUFFIXES)}, is {str(path)!r}"
        raise InputError.at(key, message)
