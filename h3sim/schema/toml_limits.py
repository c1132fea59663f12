"""Limits of TOML files, checked by a light scan of the text before it is parsed.

The memory and time of the standard library's parser grow with the square of the parts of a dotted
key (80 kB of `a.a.a... = 1` took 5.5 GB), plus about a kilobyte per key. Files of h3sim have a few
hundred short keys and at most four levels.
"""

from __future__ import annotations

import re

MAX_BYTES = 8 * 2**20
"""Largest TOML file, in bytes."""
MAX_KEY_PARTS = 16
"""Most parts of a dotted key or table name."""
MAX_NESTING = 16
"""Deepest nesting of arrays and inline tables."""
MAX_KEYS = 50_000
"""Most keys of a file; each part of a dotted key counts."""

_MARK = re.compile(
    r"""
    (?P<skipped>
        \#[^\n]*+                                       # a comment
        | \"\"\" (?: [^"\\] | \\. | "(?!"") )*+ (?: "{3,5} | \Z )  # strings of several lines
        | ''' (?: [^'] | '(?!'') )*+ (?: '{3,5} | \Z )
        | " (?: [^"\\\n] | \\. )*+ "?                   # strings of one line
        | ' [^'\n]*+ '?
    )
    | [.=,\[\]{}\n]
    """,
    re.VERBOSE | re.DOTALL,
)
"""Tokens of the scan; bare keys, numbers, dates and spaces lie between them."""


def exceeded_limit(text: str) -> str:
    r"""Return the limit that TOML *text* exceeds, with its line; "" if none.

    The text need not be valid TOML: the parser checks that.

    >>> exceeded_limit("a.b = [[1.5, 2.5], [3.5]]")
    ''
    >>> exceeded_limit("x = 1\n" + "a." * 20 + "a = 1")
    'line 2: a key has more than 16 parts'
    >>> exceeded_limit("x = " + "[" * 20 + "]" * 20)
    'line 1: arrays and tables are nested more than 16 deep'
    """
    if len(text) > MAX_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        return f"is larger than {MAX_BYTES >> 20} MiB, the most for TOML"
    depth = n_dots = n_keys = 0
    is_header = is_value = False
    for match in _MARK.finditer(text):
        if match["skipped"] is not None:
            continue
        mark = match[0]
        if mark == ".":
            n_dots += 1
            # More dots than this between two separators are in a key: a number has only one.
            if n_dots >= MAX_KEY_PARTS:
                return _at(match, f"a key has more than {MAX_KEY_PARTS} parts")
            continue
        if mark == "=" or (mark == "\n" and is_header):
            n_keys += n_dots + 1
            if n_keys > MAX_KEYS:
                return _at(match, f"there are more than {MAX_KEYS:,} keys")
        elif mark in "[{":
            # The name of a table is in brackets at the beginning of a line.
            is_header = is_header or (depth == 0 and not is_value)
            depth += 1
            if depth > MAX_NESTING:
                return _at(match, f"arrays and tables are nested more than {MAX_NESTING} deep")
        elif mark in "]}":
            depth = max(0, depth - 1)
        is_value = mark == "=" or (is_value and not (mark == "\n" and depth == 0))
        is_header = is_header and mark != "\n"
        if not (is_header and mark in "[]"):
            n_dots = 0
    return ""


def _at(match: re.Match[str], message: str) -> str:
    line = match.string.count("\n", 0, match.start()) + 1
    return f"line {line}: {message}"
