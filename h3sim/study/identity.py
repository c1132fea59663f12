"""By what a cell is known again: everything that has a say in what it comes to."""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim._version import __version__
from h3sim.browser import BrowserModel
from h3sim.compression.wire import LIBRARIES
from h3sim.documents.declared import write_table
from h3sim.schemes import scheme_to_dict
from h3sim.study.code_identity import code_parts, source_digest
from h3sim.study.recorded_network import recorded_network
from h3sim.transport import Network, TransportProfile, network_to_dict, profile_to_dict

if TYPE_CHECKING:
    from collections.abc import Iterator

    from h3sim.compression.exchanges import HeaderLists
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study.design import Design

__all__ = ["CellKeys", "digest", "model_version"]

_NO_SAY = ("capture", "cli", "conformance", "findings", "plots", "study", "corpora", "models")
"""The packages that have no say in what a load comes to; what is shipped is told elsewhere."""
_OF_STUDY = (
    "study/cells.py",
    "study/config.py",
    "study/header_delays.py",
    "study/header_loads.py",
    "study/network_changes.py",
    "study/recorded_network.py",
    "study/run.py",
)
"""What of a study has: it makes a load of names and options, and a row of the load."""
_GROUPS = ("h3sim.schedulers", "h3sim.congestion")
_KEY_BYTES = 16


@cache
def model_version() -> str:
    """Return h3sim's version, a digest of the source of its model, and what else it rests on.

    The digest is of the shipped networks and profiles as well; the rest is the plug-ins that are
    there, and the libraries that compress headers.

    Results of another model are not reused, even between two commits of one version.
    """
    digest = hashlib.blake2b(digest_size=6)
    # Sorted: folders list their files in no order.
    for name, source in sorted(_sources(resources.files("h3sim"), "")):
        digest.update(name.encode() + b"\0" + source + b"\0")
    # Read by names that no cell says: the usual network, and the profiles that networks name.
    for named in (*catalog.list_networks(), *catalog.list_profiles()):
        digest.update(_plain_text(named).encode() + b"\0")
    others = sorted({*_plugins(), *_codecs()})
    found = (f"h3sim {__version__}", digest.hexdigest(), *others)
    return " ".join(found)


def _sources(folder: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _sources(entry, f"{name}/")
        elif name.endswith(".py") and (name.split("/")[0] not in _NO_SAY or name in _OF_STUDY):
            yield name, entry.read_bytes()


def _codecs() -> Iterator[str]:
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"


def _plugins() -> Iterator[str]:
    for group in _GROUPS:
        for entry in metadata.entry_points(group=group):
            if entry.dist is not None:
                # Its version stays while it is being written (`pip install -e`).
                source = source_digest(entry.module)
                yield f"{entry.dist.name} {entry.dist.version} {source}"


class CellKeys:
    """The keys of a design's cells: equal for equal cells of any design.

    Raises:
        InputError: if a scheme is code that could not be known again.
    """

    def __init__(self, design: Design, model: str) -> None:
        self._design = design
        self._head = digest(model, *design.metrics)  # rows that lack a column are other rows
        self._pages = [digest(page.digest, page.name, *_recorded(page)) for page in design.pages]
        self._schemes = [digest(_scheme(scheme)) for scheme in design.schemes]
        self._setting: tuple[int, bytes] = (-1, b"")

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*."""
        page, setting, scheme, seed = self._design.indices(index)
        # Cells come in order, so many in a row have one setting.
        if self._setting[0] != setting:
            self._setting = (setting, digest(_settings(self._design.settings[setting])))
        hashed = hashlib.blake2b(self._head, digest_size=_KEY_BYTES)
        hashed.update(self._pages[page] + self._schemes[scheme] + self._setting[1])
        hashed.update(str(self._design.seeds[seed]).encode())
        return hashed.digest()

    def token(self) -> str:
        """Return what tells this study from others: all that its cells are made of, in order."""
        design = self._design
        hashed = hashlib.blake2b(self._head, digest_size=_KEY_BYTES)
        for part in (*self._pages, *self._schemes):
            hashed.update(part)
        for listed in design.settings.listed:
            hashed.update(digest("listed", _settings(dict(listed))))
        for name, values in design.settings.axes.items():
            hashed.update(digest("axis", name, *(_settings({name: v}) for v in values)))
        hashed.update(digest("seeds", *map(str, design.seeds)))
        return hashed.hexdigest()


def _recorded(page: Page | HeaderLists) -> list[str]:
    """Return the network that a page brings along, which its digest does not know."""
    network = recorded_network(page)
    return [] if network is None else [json.dumps(network_to_dict(network))]


def digest(*parts: str) -> bytes:
    """Return what tells these texts, in this order, from others."""
    return hashlib.blake2b(json.dumps(parts).encode(), digest_size=_KEY_BYTES).digest()


def _settings(options: dict[str, Any]) -> str:
    return json.dumps({name: _plain(value) for name, value in sorted(options.items())})


def _plain_text(value: Any) -> str:
    return json.dumps(_plain(value))


def _plain(value: Any) -> Any:
    if isinstance(value, Network):
        return network_to_dict(value)
    if isinstance(value, TransportProfile):
        return profile_to_dict(value)
    if isinstance(value, BrowserModel):
        return repr(value)
    return value if value is None or isinstance(value, (bool, int, float, str)) else repr(value)


def _scheme(scheme: Scheme) -> str:
    document = scheme_to_dict(scheme)
    if document is not None:
        return json.dumps(document)
    factory = getattr(scheme.mechanism, "factory", None)
    return json.dumps([write_table(scheme), *code_parts(factory, scheme.name)])
