"""Notebook output: HTML tables with escaped text and right-aligned numbers; sliders."""

from __future__ import annotations

import enum
import importlib
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from h3sim.text import decimals_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


ValueT = TypeVar("ValueT")

_SHOWN = 200
"""So many rows stand in a notebook."""
_DECIMALS = 3
"""So many are shown at most, unless values would look alike."""


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook.

    >>> in_notebook()
    False
    """
    # The modules of a kernel are loaded in programs that only start one, too: what is asked is the
    # shell that runs, as tqdm does.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


class Listing(list[ValueT]):
    """A list of values with a *name* and a *title* each, which shows itself as a table.

    A prompt shows one line for each value; a notebook shows the attributes *also*, too.

    >>> from h3sim.catalog import list_schemes
    >>> repr(list_schemes()).splitlines()[0].split()
    ['rr', 'Round', 'robin', '(Edge,', "HTTP/2's", 'default)']
    """

    def __init__(self, values: Iterable[ValueT], *, also: Sequence[str] = ()) -> None:
        super().__init__(values)
        self._also = tuple(also)

    def __repr__(self) -> str:
        rows = [self._row(value)[:2] for value in self]
        width = max((len(name) for name, _ in rows), default=0)
        return "\n".join(f"{name:{width}}  {title}".rstrip() for name, title in rows) or "[]"

    def _repr_html_(self) -> str:
        return html_table(("name", "title", *self._also), [self._row(value) for value in self])

    def _row(self, value: ValueT) -> list[Any]:
        found = (getattr(value, attribute, "") for attribute in ("name", "title", *self._also))
        return [each.value if isinstance(each, enum.Enum) else each for each in found]


def escaped(text: str) -> str:
    """Return *text* as HTML."""
    import html  # on use: importing h3sim should stay quick

    return html.escape(text)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Return *rows* as a table of HTML: text as it is, no more digits than mean something.

    Rows beyond the first 200 are counted.

    >>> html_table(["id", "ms"], [("007", 1.23456)]).count("<td")
    2
    """
    head = "".join(f"<th>{escaped(str(column))}</th>" for column in columns)
    decimals = [
        decimals_of((value for value in column if isinstance(value, float)), least=_DECIMALS)
        for column in zip(*rows[:_SHOWN], strict=True)
    ]
    body = "".join(
        "<tr>" + "".join(map(_html_cell, row, decimals)) + "</tr>" for row in rows[:_SHOWN]
    )
    more = f"<p>and {len(rows) - _SHOWN:,} more</p>" if len(rows) > _SHOWN else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def with_sliders(show: Callable[..., Any], **choices: Sequence[Any]) -> Any:
    """Show what *show* returns for a choice of each of *choices*, with a slider for each.

    The first of each is chosen at first. Where ipywidgets is not installed, what *show* returns for
    these is returned, so that a notebook runs without sliders as well.

    >>> import sys
    >>> sys.modules["ipywidgets"] = None  # as if it were not installed
    >>> with_sliders(lambda loss, rtt_ms: f"{loss:.0%}, {rtt_ms} ms", loss=[0.02, 0], rtt_ms=[50])
    no sliders without ipywidgets: pip install 'h3sim[notebook]'
    '2%, 50 ms'
    >>> del sys.modules["ipywidgets"]
    """
    try:
        widgets: Any = importlib.import_module("ipywidgets")
    except ImportError:
        print("no sliders without ipywidgets: pip install 'h3sim[notebook]'")
        return show(**{name: values[0] for name, values in choices.items()})
    sliders = {
        # A move of the mouse passes many values: only where it stops is something simulated.
        name: widgets.SelectionSlider(
            options=list(values), description=name, continuous_update=False
        )
        for name, values in choices.items()
    }
    widgets.interact(show, **sliders)
    return None


def _html_cell(value: Any, decimals: int) -> str:
    if isinstance(value, float):
        return f'<td style="text-align: right">{round(value, decimals):,.12g}</td>'
    if isinstance(value, int) and not isinstance(value, bool):
        return f'<td style="text-align: right">{value:,}</td>'
    shown = "" if value is None else escaped(str(value))
    return f'<td style="text-align: left">{shown}</td>'
