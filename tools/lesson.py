"""Makes the slides and the handout of docs/lesson.md: `python -m tools.lesson` fills build/lesson.

Slides are sections of notebooks/lesson-slides.md; their Python runs here, and the figure that it
leaves in `figure` is shown in its place. reveal.js (npm), which turns them, is part of the file.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import html
import io
import itertools
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from markdown_it import MarkdownIt

from h3sim.reporting.output import alt_text, rendered
from tools.registries import FetchError, fetch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


__all__ = ["handout", "main", "slides"]

ROOT = Path(__file__).parents[1]
SLIDES = ROOT / "notebooks" / "lesson-slides.md"
LESSON = ROOT / "docs" / "lesson.md"
OUTPUT = ROOT / "build" / "lesson"
PLAYGROUND = "http://127.0.0.1:8765/"
"""Where `make playground` serves it, and where the links of the plan lead."""
_REVEAL = ("npm", "reveal.js", "5.2.1")
_FIGURE_INCHES = (9.5, 4.6)
"""What fills a slide below its title, with letters that the last row can read."""
_STYLE = """
.reveal { font-size: 26px; }
.reveal h2 { font-size: 1.6em; text-transform: none; text-align: left; }
.reveal section { text-align: left; }
.reveal pre { font-size: 0.75em; width: 100%; box-shadow: none; }
.reveal section img { display: block; margin: 0 auto; max-height: 430px; border: 0; }
.reveal ul, .reveal ol { display: block; }
"""
_PRINTED = """
body { font: 12pt/1.5 sans-serif; max-width: 17cm; margin: 0 auto; }
table { border-collapse: collapse; width: 100%; } th, td { border: 1px solid #666; padding: 0.5em; }
td { height: 1.6em; } h2:nth-of-type(n+2) { break-before: page; } p { margin-bottom: 2em; }
"""


def _markdown() -> MarkdownIt:
    return MarkdownIt().enable("table")


def slides(text: str) -> Iterator[str]:
    """Yield the HTML of each slide: the sections of *text* below its title, in order.

    Python blocks of all slides share their names, as in a notebook. A figure that a block leaves in
    `figure` is shown where the block stands, and the text block below it shows what it prints.
    """
    markdown, names = _markdown(), {"__name__": "lesson"}
    _, *sections = text.split("\n## ")
    for section in sections:
        tokens = markdown.parse(f"## {section}")
        for token, after in itertools.zip_longest(tokens, tokens[1:]):
            if token.type == "fence" and token.info == "python":
                claimed = after.content if after is not None and after.info == "text" else ""
                token.type, token.content = "html_block", _shown(token.content, claimed, names)
        yield markdown.renderer.render(tokens, markdown.options, {})


def _shown(code: str, claimed: str, names: dict[str, Any]) -> str:
    """Run *code*, which must print what is *claimed*, and return its figure as HTML."""
    names.pop("figure", None)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, SLIDES.name, "exec"), names)  # noqa: S102 - our own page
    if printed.getvalue() != claimed:
        raise ValueError(f"{SLIDES.name}: shows\n{claimed}but prints\n{printed.getvalue()}")
    figure = names.get("figure")
    if figure is None:
        return ""
    figure.set_size_inches(*_FIGURE_INCHES)
    data = base64.b64encode(rendered(figure, "png")).decode()
    return f'<img alt="{html.escape(alt_text(figure))}" src="data:image/png;base64,{data}">\n'


def handout(text: str) -> str:
    """Return the HTML of the handout: the last section of the lesson's page, two printed pages."""
    _, _, section = text.partition("\n## Handout\n")
    return _page(_PRINTED, _markdown().render(section.replace("\n### ", "\n## ")))


def _page(style: str, body: str) -> str:
    head = f'<meta charset="utf-8"><title>Whose bytes go next?</title><style>{style}</style>'
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>{body}</body></html>\n'


def _deck(reveal: Path, sections: Sequence[str]) -> str:
    dist = reveal / "package" / "dist"
    style = "".join((dist / name).read_text("utf-8") for name in ("reveal.css", "theme/white.css"))
    script = (dist / "reveal.js").read_text("utf-8")
    body = "".join(f"<section>\n{each}</section>\n" for each in sections)
    return _page(
        style + _STYLE,
        f'<div class="reveal"><div class="slides">\n{body}</div></div>\n<script>{script}</script>\n'
        "<script>Reveal.initialize({hash: true, slideNumber: true, center: false});</script>",
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Write slides.html, handout.html and plan.html."""
    parser = argparse.ArgumentParser(prog="python -m tools.lesson", description=__doc__)
    parser.add_argument(
        *("--playground", "-p"),
        default=PLAYGROUND,
        metavar="URL",
        help="where the playground stands, for the plan's links (default: %(default)s)",
    )
    options = parser.parse_args(argv)
    mpl.use("agg")
    lesson = LESSON.read_text("utf-8")
    try:
        reveal = fetch(*_REVEAL, ROOT / "build" / "packages")
    except FetchError as error:
        print(f"tools.lesson: {error}", file=sys.stderr)
        return 1
    OUTPUT.mkdir(parents=True, exist_ok=True)
    plan = lesson.partition("\n## Handout\n")[0].replace(PLAYGROUND, options.playground)
    pages = {
        "slides.html": _deck(reveal, list(slides(SLIDES.read_text("utf-8")))),
        "handout.html": handout(lesson),
        "plan.html": _page(_PRINTED, _markdown().render(plan)),
    }
    for name, page in pages.items():
        (OUTPUT / name).write_text(page, "utf-8")
        print(f"wrote {OUTPUT.relative_to(ROOT) / name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
