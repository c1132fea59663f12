"""The version, the commit and the build, apart: to read them nothing else is imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__version__ = "0.2.0"

_COMPILED_IF_ANY = "h3sim.ranges"
"""One of the modules of compiled.txt: they are compiled together, or not at all."""


def build() -> str:
    """Return how the h3sim that runs was built: "pure" or "compiled".

    Both say the same, byte for byte; what is compiled (by mypyc) is quicker.

    >>> build() in ("pure", "compiled")
    True
    """
    from importlib.util import find_spec

    spec = find_spec(_COMPILED_IF_ANY)
    is_source = spec is None or spec.origin is None or spec.origin.endswith(".py")
    return "pure" if is_source else "compiled"


def commit() -> str:
    """Return the commit that this h3sim was built from, `-dirty` behind it if files were changed.

    Distributions have it in a file that setup.py writes; in a checkout Git is asked. Where neither
    knows, as in a copy of the files, it is "unknown".

    >>> len(commit()) > 6
    True
    """
    from pathlib import Path

    package = Path(__file__).resolve().parent
    written = package / "commit.txt"
    if written.is_file():
        return written.read_text("utf-8").strip()
    return _asked_of_git(package.parent) if (package.parent / ".git").exists() else "unknown"


def _asked_of_git(checkout: Path) -> str:
    import subprocess

    # No tags: the commit alone, abbreviated alike everywhere.
    command = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=10")
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=checkout, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def identity() -> str:
    """Return what `h3sim --version` says: version, commit and build.

    >>> identity().startswith(f"h3sim {__version__} (commit ")
    True
    """
    kind = {"pure": "pure Python", "compiled": "compiled"}[build()]
    return f"h3sim {__version__} (commit {commit()}, {kind})"
