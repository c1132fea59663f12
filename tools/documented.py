"""Pages of docs/generated, the commands that write them, and tables that a command puts there.

Such a table is between two lines, of which the first names its command.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from validation.__main__ import LONG, SHORT

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["COMMANDS", "GENERATED", "pages", "put"]

GENERATED = Path(__file__).resolve().parents[1] / "docs" / "generated"
_END = "<!-- end of the table -->"

COMMANDS = {
    **dict.fromkeys(
        (
            *("README", "clients", "servers", "schemes", "format-keys", "load-options"),
            *("metric-names", "transport-settings", "page-keys", "scheme-keys"),
            *("network-keys", "shipped-networks"),
        ),
        "make docs-tables",
    ),
    "findings": "make findings",
    "answers": "make validate-answers",
    "adaptive-turns": "python -m validation.adaptive_turns 6",
    "corpus": "make corpus-figure",
    "frindell-2017": "h3sim reproduce frindell-2017",
    "h3sim-1": "make validate-h3sim-1",
    "optimality": "h3sim optimality",
    "paint-bounds": "make validate-paint-bounds",
    "several-connections": "make validate-hosts",
    "planted-bugs": "python -m tests.mutants.planted 5",
    "server-priorities": "make validate-server-priorities",
    "late-signals": "its examples",
    "full-runs": "make findings-full",
    "client-server": "make client-server",
    "qmux": "make qmux",
}
"""The command that writes a page, by name; those of other pages are in `validation.__main__`."""


def pages() -> Iterator[tuple[str, ...]]:
    """Yield a row per generated page: its title, what writes it or prints its tables."""
    yield "page", "written, or its tables printed, by"
    for path in sorted(GENERATED.glob("*.md")):
        text = path.read_text("utf-8")
        title = text.partition("\n")[0].removeprefix("# ")
        modules = [*SHORT.get(title, ()), *LONG.get(title, ())]
        made = re.findall(r"^<!-- (python -m .*?) -->$", text, re.M)
        known = COMMANDS.get(path.stem)
        commands = [known] if known else made or [*map(_command, modules)]
        words = ", ".join(f"`{each}`" for each in commands or (f"make validate ARGS='{title}'",))
        yield f"[{title}]({path.name})", words


def _command(module: str) -> str:
    return module if module.startswith("h3sim ") else f"python -m {module}"


def put(command: str, table: str) -> None:
    """Replace the table of *command* in the generated page that has it.

    Raises:
        LookupError: if no page has the line of *command*.
    """
    begin = f"<!-- {command} -->\n"
    for path in sorted(GENERATED.glob("*.md")):
        before, found, rest = path.read_text("utf-8").partition(begin)
        if found:
            _, end, after = rest.partition(_END)
            path.write_text(f"{before}{begin}{table}\n{end}{after}", "utf-8")
            return
    raise LookupError(f"{GENERATED}: no line {begin}")
