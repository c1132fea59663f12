"""The list of sites: which package has them, and which of them may be developed on.

`validation/data/sites/sites.csv` names packages of registries with version, page and hash; their
files are unpacked to `build/sites/packages` and never committed. Pages of the shipped corpora are
not among them. A package's hash decides the part of all its sites: `develop` (60 %), or `test`
(40 %), which is loaded for the published table only.
"""

from __future__ import annotations

import csv
import hashlib
import subprocess
import sys
import tarfile
import zipfile
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from h3sim.importers.chromium.web_server import compressed
from h3sim.importers.content_encoding import is_compressible, mime_of_extension

DATA = Path(__file__).resolve().parents[1] / "data" / "sites"
BUILD = Path(__file__).resolve().parents[2] / "build" / "sites"
"""What may not be committed: packages, recordings and working files."""
_SHARE_OF_DEVELOP = 0.6
_HASHES = 1 << 32


class Part(StrEnum):
    """The part of the set that a site belongs to."""

    DEVELOP = "develop"
    TEST = "test"


class Site(NamedTuple):
    """A page of a package; *root* is the folder that is served."""

    name: str
    registry: str
    package: str
    version: str
    root: str
    page: str
    sha256: str

    @property
    def part(self) -> Part:
        """Return the part of the set.

        >>> {page: Site("a", "npm", "a", "1", ".", page, "").part.value for page in "xy"}
        {'x': 'test', 'y': 'test'}
        """
        number = int(hashlib.sha256(self.package.encode()).hexdigest()[:8], 16)
        return Part.DEVELOP if number < _SHARE_OF_DEVELOP * _HASHES else Part.TEST

    @property
    def folder(self) -> Path:
        """The served folder, once it is unpacked."""
        # npm's archives have one folder, source archives of Python one of any name.
        return (self._unpacked / self.root).resolve()

    @property
    def recordings(self) -> Path:
        """The folder of its recordings."""
        return BUILD / "recordings" / self.name

    @property
    def _unpacked(self) -> Path:
        return BUILD / "packages" / f"{self.package.replace('/', '+')}@{self.version}"

    def unpack(self) -> None:
        """Download and unpack the package, unless that was done; compress the texts of the site.

        Raises:
            ValueError: if it is another file than the list's.
        """
        if not self._unpacked.exists():
            self._download()
        done = self._unpacked / f"{self.root.replace('/', '+')}.compressed"
        if not done.exists():
            compress_texts(self.folder)
            done.touch()

    def _download(self) -> None:
        folder = self._unpacked
        downloads = BUILD / "downloads" / folder.name
        downloads.mkdir(parents=True, exist_ok=True)
        if not any(downloads.iterdir()):
            named = f"{self.package}@{self.version}"
            npm = ("npm", "pack", named, "--silent", "--pack-destination")
            download = (sys.executable, "-m", "pip", "download", "--quiet", "--no-deps")
            pip = (*download, f"{self.package}=={self.version}", "--dest")
            words = (*(npm if self.registry == "npm" else pip), str(downloads))
            subprocess.run(words, check=True, capture_output=True)  # noqa: S603
        archive = next(downloads.iterdir())
        found = hashlib.sha256(archive.read_bytes()).hexdigest()
        if found != self.sha256:
            raise ValueError(f"{self.name}: {archive.name} has the hash {found}")
        unpacking = folder.with_suffix(".part")
        if archive.suffix == ".whl":
            with zipfile.ZipFile(archive) as wheel:
                wheel.extractall(unpacking)  # noqa: S202 - a package whose hash is known
            unpacking.rename(folder)
            return
        with tarfile.open(archive) as tar:
            tar.extractall(unpacking, filter="data")
        next(unpacking.iterdir()).rename(folder)
        unpacking.rmdir()


def all_sites() -> list[Site]:
    """Return the list, in the order of names."""
    with (DATA / "sites.csv").open(encoding="utf-8") as file:
        return [Site(**row) for row in csv.DictReader(file)]


def compress_texts(root: Path) -> None:
    """Write each text of a folder compressed beside it, which h2o sends as `h3sim record` does."""
    for file in sorted(root.rglob("*")):
        mime = mime_of_extension(file.suffix[1:]) if file.is_file() else None
        if mime is not None and is_compressible(mime):
            file.with_name(f"{file.name}.gz").write_bytes(compressed(file.read_bytes(), "gzip"))
