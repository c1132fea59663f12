"""Where the shipped data stands: in the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["root"]

_PACKAGE = Path(__file__).resolve().parents[1]


def root(kind: str) -> Traversable:
    """Return the folder of *kind*, "models" or "corpora".

    Where Python starts inside a checkout its `h3sim/` hides an installed one, which has the data;
    then the folder beside it is taken.
    """
    for folder in (_PACKAGE / kind, _PACKAGE.parent / kind):
        if (folder / "__init__.py").is_file():
            return folder
    # A package that is no folder, as in a zip file. On use: it takes longer than loading a page.
    from importlib.resources import files

    return files(f"h3sim.{kind}")
