"""Notebooks: whether this process serves one, and sliders."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook.

    >>> in_notebook()
    False
    """
    # The modules of a kernel are loaded in programs that only start one, too: what is asked is the
    # shell that runs, as tqdm does.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


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
