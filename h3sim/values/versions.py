"""Versions of the software in use, for a bug report."""

from __future__ import annotations

import platform
import re
from importlib import metadata

from h3sim._version import build, identity

__all__ = ["build", "show_versions", "versions"]

_DEVELOPER_EXTRAS = ('"dev"', '"docs"', '"fuzz"', '"release"')
"""Extras for developers only, quoted as in the requirement lines of the package's metadata."""


def versions() -> dict[str, str]:
    """Return the versions of h3sim, Python, the system, and each library that h3sim may use.

    The version of a missing one is "-"; libraries for developers only are left out.
    """
    basics = {
        "h3sim": identity().removeprefix("h3sim "),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
    }
    return basics | {name: _version(name) for name in _libraries()}


def show_versions() -> None:
    """Print the versions of the software in use, for a bug report.

    >>> show_versions()  # doctest: +ELLIPSIS
    h3sim       ...
    Python      ...
    """
    found = versions()
    width = max(map(len, found))
    for name, version in found.items():
        print(f"{name:<{width}}  {version}")


def _libraries() -> list[str]:
    """Return the names of the libraries that h3sim requires: first always, then for an extra."""
    try:
        requirements = metadata.requires("h3sim") or []
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return []
    names: dict[str, None] = {}  # an ordered set: several extras may require a library
    for requirement in sorted(requirements, key=lambda line: "extra ==" in line):
        match = re.match(r"[A-Za-z0-9._-]+", requirement)
        is_for_developers = any(extra in requirement for extra in _DEVELOPER_EXTRAS)
        # An extra that includes other extras requires h3sim itself.
        if match is not None and match[0] != "h3sim" and not is_for_developers:
            names[match[0]] = None
    return list(names)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
