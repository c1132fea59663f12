"""Versions of the software in use, for a bug report."""

from __future__ import annotations

import platform
import re
from importlib import metadata

from h3sim._version import identity

_DEVELOPERS = ('"dev"', '"docs"', '"fuzz"', '"release"')
"""As their extras stand in the lines of what h3sim asks for."""


def versions() -> dict[str, str]:
    """Return the versions of h3sim, Python, the system, and each library that h3sim may use.

    What is not installed is "-"; libraries for developers only are left out.
    """
    found = {
        "h3sim": identity().removeprefix("h3sim "),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()} ({platform.machine()})",
    }
    return found | {name: _version(name) for name in _libraries()}


def show_versions() -> None:
    """Print the versions that are at work, as a report of a mistake should have them.

    >>> show_versions()  # doctest: +ELLIPSIS
    h3sim       ...
    Python      ...
    """
    found = versions()
    width = max(map(len, found))
    for name, version in found.items():
        print(f"{name:<{width}}  {version}")


def _libraries() -> list[str]:
    """Return the names of what h3sim asks for: without an extra first, then by extra."""
    try:
        lines = metadata.requires("h3sim") or []
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        return []
    names: dict[str, None] = {}
    for line in sorted(lines, key=lambda line: "extra ==" in line):
        name = re.match(r"[A-Za-z0-9._-]+", line)
        if (
            name is not None
            and name[0] != "h3sim"
            and not any(each in line for each in _DEVELOPERS)
        ):
            names[name[0]] = None
    return list(names)


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "-"
