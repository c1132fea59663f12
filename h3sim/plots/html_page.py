"""What every file of HTML has around its body, so that it needs no other file and no network."""

from __future__ import annotations

import html

from h3sim._version import __version__

__all__ = ["html_page"]

_STYLE = """
:root { color-scheme: light; }
body { margin: 0 auto; padding: 1rem; max-width: %srem; background: #fff; color: #1b1b1b;
  font: 1rem/1.5 system-ui, "DejaVu Sans", Arial, sans-serif; }
h1 { overflow-wrap: anywhere; }
.scroll { overflow-x: auto; max-width: 100%%; }
.scroll svg { display: block; width: 100%%; height: auto; }
table { border-collapse: collapse; font-size: 0.875rem; }
caption { text-align: left; font-weight: 600; }
a:focus-visible, button:focus-visible, select:focus-visible, input:focus-visible,
summary:focus-visible, .scroll:focus-visible { outline: 3px solid #0b4f8c; outline-offset: 2px; }
"""


def html_page(title: str, body: str, *, style: str, width_rem: int, script: str = "") -> str:
    """Return a whole file of HTML; *title* is escaped here, *body*, *style* and *script* are HTML.

    Nothing may be fetched, whatever a name in a page looks like, and nothing runs without *script*.
    """
    scripts = "script-src 'unsafe-inline'; " if script else ""
    policy = f"default-src 'none'; style-src 'unsafe-inline'; {scripts}img-src data:"
    end = f"<script>\n{script}</script>\n" if script else ""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="generator" content="h3sim {html.escape(__version__)}">\n'
        f'<link rel="icon" href="data:,">\n<title>{html.escape(title)}</title>\n'
        f"<style>{_STYLE % width_rem}{style}</style>\n"
        f"</head>\n<body>\n{body}{end}</body>\n</html>\n"
    )
