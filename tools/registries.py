"""Fetches packages from public registries with their own tools, and unpacks them, once."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["FetchError", "fetch", "tools_of"]

_TOOLS = {"npm": ("npm",), "pypi": ("pip",), "debian": ("apt-get", "dpkg-deb")}
_DONE = ".unpacked"
_FETCH_S = 600


class FetchError(RuntimeError):
    """A package could not be fetched; the message is one line."""


def tools_of(registry: str) -> tuple[str, ...]:
    """Return the commands that fetching from *registry* needs."""
    return _TOOLS[registry]


def fetch(registry: str, package: str, version: str, into: Path) -> Path:
    """Return the folder below *into* that holds the unpacked package; fetch it if it is not there.

    Raises:
        FetchError: if the registry's tool fails.
    """
    folder = into / registry / f"{package.replace('/', '__')}@{version.replace(':', '_')}"
    if (folder / _DONE).exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    download = folder / ".download"
    download.mkdir(parents=True)
    if registry == "npm":
        _run(["npm", "pack", "--silent", f"{package}@{version}"], download)
    elif registry == "pypi":
        _run(["pip", "download", "--quiet", "--no-deps", f"{package}=={version}"], download)
    else:
        _run(["apt-get", "-qq", "download", f"{package}={version}"], download)
    _unpack(next(file for file in download.iterdir()), folder)
    shutil.rmtree(download)
    (folder / _DONE).touch()
    return folder


def _unpack(archive: Path, folder: Path) -> None:
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            wheel.extractall(folder)  # noqa: S202 - zipfile keeps names below the folder
    elif archive.suffix == ".deb":
        _run(["dpkg-deb", "-x", str(archive), str(folder)], folder)
    else:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")


def _run(command: list[str], folder: Path) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the registries' own tools, with fixed arguments
            command, cwd=folder, capture_output=True, text=True, timeout=_FETCH_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise FetchError(f"{command[0]}: {error}") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise FetchError(f"{' '.join(command)}: {last}")
