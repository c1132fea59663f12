"""Builds the folders that are recorded: packages put together, other hosts replaced by packages."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.registries import fetch

__all__ = ["PageSource", "SiteSource", "build", "read_sources"]

SOURCES = Path(__file__).with_name("corpus.toml")
_INNER = {"npm": "package", "pypi": ".", "debian": "."}
_VENDOR = "vendor"


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteSource:
    """Some packages in one folder, part of which is served."""

    packages: tuple[str, ...]
    root: str
    licence: str
    vendor: tuple[tuple[str, str], ...]

    @property
    def key(self) -> str:
        """A name for its folder, another one for other packages."""
        text = repr((self.packages, self.vendor))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True, kw_only=True)
class PageSource:
    """A page of a site: its name in the corpus, and its path below the site's root."""

    name: str
    site: SiteSource
    path: str

    @property
    def source(self) -> str:
        """Where the page comes from, in words."""
        registry, package, version = self.site.packages[0].split()[:3]
        return f"{registry} package {package} {version}, {self.path}"


def read_sources(path: Path = SOURCES) -> list[PageSource]:
    """Return the pages of the list, by name."""
    document: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    vendor = tuple(document["vendor"].items())
    pages = []
    for entry in document["site"]:
        site = SiteSource(
            packages=tuple(entry["packages"]),
            root=entry.get("root", "."),
            licence=entry["licence"],
            vendor=vendor,
        )
        for name, file in entry["pages"].items():
            pages.append(PageSource(name=name, site=site, path=file))
    return sorted(pages, key=lambda page: page.name)


def build(page: PageSource, cache: Path) -> tuple[Path, list[str]]:
    """Return the folder that is to be served for *page*, and which packages replace other hosts.

    Raises:
        FetchError: if a package cannot be fetched.
    """
    site = page.site
    folder = cache / "sites" / site.key
    done = folder / ".built"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        for text in site.packages:
            _put_together(text, folder, cache)
        done.touch()
    root = folder / site.root
    return root, _vendored(root, page, cache)


def _put_together(text: str, folder: Path, cache: Path) -> None:
    registry, package, version, *rest = text.split()
    unpacked = fetch(registry, package, version, cache) / _INNER[registry]
    at = rest[1] if rest[:1] == ["at"] else "."
    shutil.copytree(
        unpacked,
        folder / at,
        symlinks=True,
        ignore=shutil.ignore_patterns(".unpacked"),
        copy_function=_link,
        dirs_exist_ok=True,
    )


def _link(source: str, target: str) -> None:
    """Two packages may bring the same file; the first one stays."""
    if not os.path.lexists(target):
        os.link(source, target)


def _vendored(root: Path, page: PageSource, cache: Path) -> list[str]:
    """Replace other hosts' addresses in the page's HTML; return the packages in their place."""
    file = root / page.path
    original = file.with_name(file.name + ".original")
    if not original.exists():
        os.link(file, original)
    text = original.read_text(encoding="utf-8", errors="surrogateescape")
    used: dict[str, None] = {}

    def replace(match: re.Match[str]) -> str:
        for part, target in page.site.vendor:
            if part in match[2]:
                package, *files = target.split()
                used[package] = None
                return f"{match[1]}/{_vendor_file(root, package, files, cache)}{match[3]}"
        return match[0]

    pattern = r"""((?:href|src)\s*=\s*["'])((?:https?:)?//[^"']+)(["'])"""
    changed = re.sub(pattern, replace, text)
    file.unlink()  # not written over: the file is one with that in the unpacked package
    file.write_text(changed, encoding="utf-8", errors="surrogateescape")
    return list(used)


def _vendor_file(root: Path, package: str, files: list[str], cache: Path) -> str:
    """Put a package below the root; return the path of its file, or of its files joined."""
    name, _, version = package.rpartition("@")
    folder = root / _VENDOR / package
    if not folder.exists():
        unpacked = fetch("npm", name, version, cache) / "package"
        shutil.copytree(unpacked, folder, copy_function=os.link)
    if len(files) == 1:
        return f"{_VENDOR}/{package}/{files[0]}"
    joined = "".join((folder / file).read_text(encoding="utf-8") for file in files)
    digest = hashlib.sha256(joined.encode()).hexdigest()[:8]
    (folder / f"joined-{digest}.css").write_text(joined, encoding="utf-8")
    return f"{_VENDOR}/{package}/joined-{digest}.css"
