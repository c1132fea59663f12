"""Where the shipped data stands: in the installed package, or beside it in a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

__all__ = ["root"]

_CHECKOUT = Path(__file__).resolve().parents[2]


def root(kind: str) -> Traversable:
    """Return the folder of *kind*, "models" or "corpora".

    Where Python starts inside a checkout its `h3sim/` hides an installed one, which has the data;
    then the folder beside it is taken.
    """
    from importlib.resources import files  # on use: importing h3sim should stay quick

    try:
        return files(f"h3sim.{kind}")
    except ModuleNotFoundError:
        checkout = _CHECKOUT / kind
        if not (checkout / "__init__.py").is_file():
            raise
        return checkout
