"""The version, the commit and the build: a module that imports nothing else of h3sim."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__version__ = "0.2.0"

_MODULE_OF_COMPILED_BUILD = "h3sim.values.ranges"
"""One of the modules in compiled.txt, which are all compiled or none."""


def build() -> str:
    """Return how the h3sim that runs was built: "pure" or "compiled".

    Both give the same results, byte for byte; the build compiled by mypyc is faster.

    >>> build() in ("pure", "compiled")
    True
    """
    from importlib.util import find_spec

    spec = find_spec(_MODULE_OF_COMPILED_BUILD)
    is_pure = spec is None or spec.origin is None or spec.origin.endswith(".py")
    return "pure" if is_pure else "compiled"


def commit() -> str:
    """Return the commit of this h3sim, with the suffix `-dirty` if files have been changed.

    Distributions have it in a file that setup.py writes; in a checkout Git is asked. In a plain
    copy of the files it is "unknown".

    >>> len(commit()) > 6
    True
    """
    from pathlib import Path

    package = Path(__file__).resolve().parent
    commit_file = package / "commit.txt"
    if commit_file.is_file():
        return commit_file.read_text("utf-8").strip()
    return _commit_from_git(package.parent) if (package.parent / ".git").exists() else "unknown"


def _commit_from_git(checkout: Path) -> str:
    import subprocess

    # Without tags (`--exclude=*`), so that the result is the commit, of the same length everywhere.
    command = ("git", "describe", "--always", "--dirty", "--exclude=*", "--abbrev=10")
    try:
        process = subprocess.run(  # noqa: S603
            command, cwd=checkout, capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return process.stdout.strip()


def identity() -> str:
    """Return the line that `h3sim --version` prints: version, commit and build.

    >>> identity().startswith(f"h3sim {__version__} (commit ")
    True
    """
    kind = {"pure": "pure Python", "compiled": "compiled"}[build()]
    return f"h3sim {__version__} (commit {commit()}, {kind})"
