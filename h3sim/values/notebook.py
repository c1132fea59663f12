"""Notebooks: detection, sliders, and checks of exercises."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook.

    >>> in_notebook()
    False
    """
    # Programs that only start a kernel also import its modules, so the running shell is examined,
    # as tqdm does.
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return "IPKernelApp" in getattr(shell, "config", ())


class CellOutput:
    """File that shows the last line written to it below a notebook's cell.

    tqdm's widgets and its text bars remain in a saved notebook; this output is empty once a blank
    line is written, as tqdm does at the end.
    """

    def __init__(self) -> None:
        display = importlib.import_module("IPython.display").display  # every kernel has it
        self._shown: Any = display({"text/plain": ""}, raw=True, display_id=True)

    def write(self, text: str) -> None:
        """Show *text* in place of what was shown."""
        self._shown.update({"text/plain": text.strip()}, raw=True)

    def flush(self) -> None:
        """Do nothing: `write` shows at once."""


def with_sliders(show: Callable[..., Any], **choices: Sequence[Any]) -> Any:
    """Display the result of *show* for selected arguments, with a slider for each argument.

    *choices* are the values of each argument; initially the first is selected. Without ipywidgets
    the result for these is returned, so that a notebook also runs without sliders.

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
        # Simulating takes a moment: only when the mouse is released, not at all values it passes.
        name: widgets.SelectionSlider(
            options=list(values), description=name, continuous_update=False
        )
        for name, values in choices.items()
    }
    widgets.interact(show, **sliders)
    return None


def exercise(check: Callable[..., None]) -> Callable[..., None]:
    """Return *check*, a function named `check_<number>`, as the check of a course's exercise.

    It is called with a student's answers. While one of them is `...` it prints what to do; a failed
    `assert` is raised again with the number of the exercise before its message.

    >>> @exercise
    ... def check_1(total):
    ...     assert total == 4, "add two and two"
    >>> check_1(total=...)
    Exercise 1: replace each ... with your answer, and run this cell again.
    >>> check_1(total=4)
    Exercise 1: correct.
    >>> check_1(total=5)
    Traceback (most recent call last):
    AssertionError: Exercise 1, not yet: add two and two
    """
    title = f"Exercise {check.__name__.rpartition('_')[2]}"

    @functools.wraps(check)
    def checked(*answers: Any, **named: Any) -> None:
        if _has_blank((answers, named)):
            print(f"{title}: replace each ... with your answer, and run this cell again.")
            return
        try:
            check(*answers, **named)
        except AssertionError as error:
            raise AssertionError(f"{title}, not yet: {error}") from None
        print(f"{title}: correct.")

    return checked


def _has_blank(answer: Any) -> bool:
    """Return whether a student left a `...` in an answer or in the lists and dicts within it."""
    if isinstance(answer, Mapping):
        return _has_blank(list(answer.values()))
    if isinstance(answer, list | tuple):
        return any(_has_blank(each) for each in answer)
    return answer is ...


def reporting() -> Any:
    """Return `h3sim.reporting`, which imports matplotlib and is above what it draws.

    Results return its figures as their attribute `plot`, whose types are in `plots.pyi`.
    """
    return importlib.import_module("h3sim.reporting")


def export() -> Any:
    """Return `h3sim.export`, which is above the loads that it writes: `to_har`, `to_dict`."""
    return importlib.import_module("h3sim.export")


def load_options() -> Any:
    """Return the module of changes to networks, which is above the networks."""
    return importlib.import_module("h3sim.load.network_path")
