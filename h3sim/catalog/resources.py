"""Location of the shipped files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable


_H3SIM_FOLDER = Path(__file__).resolve().parents[1]


def root(kind: str) -> Traversable:
    """Return the folder of *kind*, "models" or "corpora".

    It is in the installed package `h3sim/`; in a checkout it is next to that.
    """
    for folder in (_H3SIM_FOLDER / kind, _H3SIM_FOLDER.parent / kind):
        if (folder / "__init__.py").is_file():
            return folder
    # A package inside a zip file. Lazy: the import takes longer than loading a page.
    from importlib.resources import files

    return files(f"h3sim.{kind}")
