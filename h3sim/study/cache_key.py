"""Cache keys of loads: digests of every input that affects the result, user code included."""

from __future__ import annotations

import hashlib
import itertools
import json
from contextlib import suppress
from functools import cache, lru_cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any

from h3sim import catalog
from h3sim._version import __version__
from h3sim.headers.base import HeaderLists
from h3sim.headers.wire import LIBRARIES
from h3sim.load.configuration import configuration
from h3sim.load.network_path import config_of, is_file_key, recorded_network, resolve_path
from h3sim.load.run import resolve
from h3sim.page.recording import RECORDED_NETWORK
from h3sim.study.code_identity import PACKAGES_WITHOUT_INFLUENCE, CodeDigests, source_digest
from h3sim.study.setting_digests import (
    KEY_BYTES,
    digest,
    network_text,
    plain_text,
    process_name,
    scheme_digest,
    setting_digests,
    settings_text,
)
from h3sim.transport import network_to_dict
from h3sim.values.errors import H3SimError
from h3sim.values.plugins import entry_points_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.engine import LoadSpec
    from h3sim.headers import HeaderCompression
    from h3sim.page import Page
    from h3sim.schemes import Scheme
    from h3sim.study.design import Design


_STUDY_MODULES_WITH_INFLUENCE = tuple(
    f"study/{name}.py"
    for name in ("code_identity", "header_models", "run", "setting_digests", "worker")
)
"""Modules of the study package that affect results: they resolve loads and build rows."""
_ENTRY_POINT_GROUPS = ("h3sim.schedulers", "h3sim.congestion")


@cache
def model_version() -> str:
    """Return a text that identifies the model: h3sim's version, a source digest, dependencies.

    The digest includes shipped networks and profiles; the dependencies are the installed plug-ins
    and header compression libraries.

    Results of another model are never reused, even between two commits of one version.
    """
    digest = hashlib.blake2b(digest_size=6)
    # Sorted: directory order is undefined.
    for name, source in sorted(_source_files(resources.files("h3sim"), "")):
        digest.update(name.encode() + b"\0" + source + b"\0")
    # Options need not name them: the default network, and the profiles that networks refer to.
    codes = CodeDigests()  # of which shipped profiles have none
    for value in (*catalog.list_networks(), *catalog.list_profiles()):
        digest.update(plain_text(value, codes).encode() + b"\0")
    return " ".join((f"h3sim {__version__}", digest.hexdigest(), *sorted({*_dependencies()})))


def _source_files(folder: Any, prefix: str) -> Iterator[tuple[str, bytes]]:
    """Yield the Python files of a folder that can affect a result."""
    for entry in folder.iterdir():
        name = f"{prefix}{entry.name}"
        if entry.is_dir():
            yield from _source_files(entry, f"{name}/")
        elif name.endswith(".py"):
            package = name.partition("/")[0]
            is_irrelevant = package in PACKAGES_WITHOUT_INFLUENCE
            if not is_irrelevant or name in _STUDY_MODULES_WITH_INFLUENCE:
                yield name, entry.read_bytes()


def _dependencies() -> Iterator[str]:
    """Yield the versions of header compression libraries, and of plug-ins with their source."""
    for name in LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            yield f"{name} {metadata.version(name)}"
    for entry in itertools.chain(*map(entry_points_of, _ENTRY_POINT_GROUPS)):
        if entry.dist is not None:
            # In an editable install the source changes while the version stays.
            match = entry.pattern.match(entry.value)
            source = source_digest(match["module"] if match else "")
            yield f"{entry.dist.name} {entry.dist.version} {source}"


_MAX_CACHED_DIGESTS = 4096
"""Most digests of resolved settings that are cached for the next pages and seeds."""
_SEPARATE_SETTINGS = ("network", "seed")
"""Settings of a load that are other parts of its key."""


class CellKeys:
    """Keys of a design's cells: equal cells have equal keys in any design.

    A load is identified by its resolved configuration, so that a study to which an axis is added
    can reuse loads.
    """

    def __init__(self, design: Design, model: str) -> None:
        self._design = design
        self._codes = CodeDigests()
        columns = (
            text
            for name, function in design.columns.items()
            for text in (name, self._codes.digest_of(function, f"column {name}"))
        )
        beside = [
            text
            for process in design.processes
            for text in ("process", self._codes.digest_of(process, process_name(process)))
        ]
        if design.keep is not None:
            keep = design.keep
            text = keep if isinstance(keep, str) else self._codes.digest_of(keep, "keep")
            beside += ("keep", text)
        self._common_digest = digest(model, *design.metrics, *columns, *beside)
        self._page_digests = [page_digest(page) for page in design.pages]
        self._scheme_digests = [scheme_digest(scheme, self._codes) for scheme in design.schemes]
        self._given_digest = lru_cache(maxsize=_MAX_CACHED_DIGESTS)(self._digest_given)
        self._setting_digest = lru_cache(maxsize=_MAX_CACHED_DIGESTS)(self._digest_setting)

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*."""
        page, setting, scheme, seed = self._design.indices(index)
        # All pages without a recording share a resolved setting, and so an entry of the cache.
        is_recorded = getattr(self._design.pages[page], "recorded_load", None) is not None
        depends_on_page = is_recorded or isinstance(self._design.pages[page], HeaderLists)
        resolved = self._setting_digest(setting, scheme, page if depends_on_page else None)
        key_hash = hashlib.blake2b(self._common_digest, digest_size=KEY_BYTES)
        key_hash.update(self._page_digests[page] + self._scheme_digests[scheme] + resolved)
        key_hash.update(str(self._design.seeds[seed]).encode())
        return key_hash.digest()

    def pair_key(self, index: int) -> bytes:
        """Return a hash of page, setting and seed of the cell, equal for any scheme and version."""
        page, setting, _, seed = self._design.indices(index)
        parts = self._page_digests[page], self._given_digest(setting)
        seed_text = str(self._design.seeds[seed]).encode()
        return hashlib.blake2b(b"".join((*parts, seed_text)), digest_size=KEY_BYTES).digest()

    def _digest_given(self, setting: int) -> bytes:
        return digest(settings_text(self._design.settings[setting], self._codes))

    def _digest_setting(self, setting: int, scheme: int, page: int | None) -> bytes:
        """Return the digest of a resolved setting; None stands for any page without a recording."""
        subject, options = self._design.pages[page or 0], self._design.settings[setting]
        return resolved_digest(subject, self._design.schemes[scheme], options, self._codes)

    def token(self) -> str:
        """Return a text that identifies this study: all inputs of its cells, in order."""
        design = self._design
        token_hash = hashlib.blake2b(self._common_digest, digest_size=KEY_BYTES)
        for part in (*self._page_digests, *self._scheme_digests):
            token_hash.update(part)
        for listed in design.settings.listed:
            token_hash.update(digest("listed", settings_text(dict(listed), self._codes)))
        for name, values in design.settings.axes.items():
            texts = (settings_text({name: value}, self._codes) for value in values)
            token_hash.update(digest("axis", name, *texts))
        token_hash.update(digest("seeds", *map(str, design.seeds)))
        if design.listed is not None:
            token_hash.update(digest("loads", *map(str, design.listed)))
        return token_hash.hexdigest()

    def warnings(self) -> Iterator[str]:
        """Yield a line for each scheduler, controller and column whose loads are not reused."""
        return self._codes.warnings()


def resolved_digest(
    subject: Page | HeaderLists, scheme: Scheme, options: Mapping[str, Any], codes: CodeDigests
) -> bytes:
    """Return a digest of a setting as resolved, which is equal however it is given.

    So `cc="cubic"` is the same load as the default over a network with CUBIC. An invalid setting
    cannot be resolved, and has a digest of the given options.
    """
    if isinstance(subject, HeaderLists):
        return digest(settings_text(options, codes))
    try:
        config = config_of(subject, options)
        path = resolve_path(subject, config)
        spec = resolve(subject, scheme, config, path=path)
    except H3SimError:
        return digest(settings_text(options, codes))
    # The name of the network in rows; that of the resolved one lists the changes.
    network = options.get("network", RECORDED_NETWORK)
    network_name = getattr(network, "name", str(network))
    codec = options.get("header_compression")
    # These columns are in rows, which are the same for equal keys.
    columns = setting_digests(path, spec.header_compression, codes)
    columns |= {name: value for name, value in options.items() if is_file_key(name)}
    return spec_digest(spec, codes, network=network_name, header_compression=codec) + digest(
        json.dumps(columns)
    )


def spec_digest(
    spec: LoadSpec,
    codes: CodeDigests,
    *,
    network: str | None = None,
    header_compression: HeaderCompression | str | None = None,
) -> bytes:
    """Return a digest of a resolved setting: all but its page, scheme and seed.

    *network* and *header_compression* are as given, for rows that show them so.
    """
    return digest(
        spec.network.name if network is None else network,
        settings_text(configuration(spec) | dict.fromkeys(_SEPARATE_SETTINGS), codes),
        network_text(spec.network),
        plain_text(spec.profile, codes),
        plain_text(spec.browser, codes),
        plain_text(header_compression or spec.header_compression, codes),
        str(spec.limit_ns),
    )


def page_digest(page: Page | HeaderLists) -> bytes:
    """Return a digest of a page, with its name and recorded network."""
    # The page's digest does not cover its recorded network.
    network = recorded_network(page)
    recorded = [] if network is None else [json.dumps(network_to_dict(network))]
    return digest(page.digest, page.name, *recorded)
