"""Saved loads (`h3sim-load/2`): reading them back and running them again."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from h3sim.browser import BROWSER_OPTIONS, BrowserMode
from h3sim.load import FORMAT, Load
from h3sim.load.configuration import LoadIdentity, LoadInputs
from h3sim.load.load_config import LoadConfig
from h3sim.load.network_path import resolve_path
from h3sim.load.options import file_key
from h3sim.load.run import SchemeLike, resolve, resolve_scheme, run_spec
from h3sim.page import ConnectionMode, Page
from h3sim.schema import open_input, parse_json, read_text
from h3sim.schema.errors import RejectedValueError
from h3sim.schema.fields import Record, keys_of, read_document, validate
from h3sim.schema.files import DIGEST, digest_problem
from h3sim.values.errors import InputError, ValidationIssue

if TYPE_CHECKING:
    from pathlib import Path

    from h3sim.schemes import Scheme

    ProgressCallback = Callable[[int, int], None]


_NO_INPUTS: Any = None
"""Default of the inputs, of documents without them."""
_HEAD_BYTES = 1000
"""Beginning of a saved load that is read to recognize it: the format is its first key."""
_OWN_OPTIONS = (
    *("send_buffer_kb", "send_buffer_refill", "handshake", "header_compression", "connections"),
    *("max_connections_per_host", "dns_ms", "cross_traffic", "time_limit_s"),
)
"""Options that neither page, network and profile nor scheme and browser of a load have."""
_VERSION_KEYS = ("version", "build", DIGEST)
"""Keys that may differ between equal loads: the version of h3sim, and the digest that covers it."""


class SavedLoadError(InputError):
    """A saved load cannot be read, or cannot be run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDocument(LoadIdentity):
    """The settings and inputs of a saved load."""

    # Of wrong inputs, what can be read is kept, so that `issues` checks it as well.
    inputs: LoadInputs = file_key(
        Record(LoadInputs, keeps_partial=True),
        "the page, scheme, network and profile in full",
        default=_NO_INPUTS,
    )

    def __post_init__(self) -> None:
        validate(self, SavedLoadError)

    def issues(self) -> Iterator[ValidationIssue]:
        """Yield the reasons why the load cannot be run again."""
        if self.inputs is _NO_INPUTS:
            message = "is missing: a load that was computed from a log cannot be run again"
            yield ValidationIssue(key="inputs", message=message)
            return
        # Values that could not be read are None.
        page, network = self.inputs.page, self.inputs.network
        if page is not None and page.digest != self.page_digest:
            message = "differs from the digest of inputs.page: one of them was edited"
            yield ValidationIssue(key="page_digest", message=message)
        if network is not None:
            try:
                resolve_path(self.inputs.page, self.config())
            except InputError as error:
                yield from RejectedValueError(error.problems).under("configuration")

    def config(self) -> LoadConfig:
        """Return the config that reproduces the load's settings.

        Raises:
            InputError: listing every setting out of range.
        """
        given = self.configuration or {}
        of_browser = {key: given[key] for key in BROWSER_OPTIONS if given.get(key) is not None}
        browser = LoadConfig(browser=given.get("browser", BrowserMode.REPLAY.value)).browser_model
        own = {name: given[name] for name in _OWN_OPTIONS if given.get(name) is not None}
        return LoadConfig(
            network=self.inputs.network,
            transport_profile=self.inputs.transport_profile,
            transport=self.transport,
            seed=self.seed or 0,  # a bad seed was reported under its own key
            browser=replace(browser, **of_browser),
            **{"connections": ConnectionMode.SINGLE.value, **own},
        )


@dataclass(frozen=True, kw_only=True, repr=False)
class SavedLoad:
    """Saved load: its results in `document`, its inputs in the other attributes.

    *scheme* is None if it was defined in code: then pass it to `run`.
    """

    document: dict[str, Any] = field(hash=False)
    page: Page
    scheme: Scheme | None
    config: LoadConfig

    @property
    def version(self) -> str:
        """Version of h3sim that made it."""
        return str(self.document["version"])

    def run(
        self,
        *,
        scheme: SchemeLike | None = None,
        record_packets: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Load:
        """Run the load again, optionally with another *scheme*.

        The same version of h3sim gives the same load, byte for byte.

        Raises:
            SavedLoadError: if the scheme was defined in code and none is given.
        """
        resolved = self.scheme if scheme is None else resolve_scheme(scheme)
        if resolved is None:
            message = "was defined in code and cannot be read from the file: pass it to run()"
            raise SavedLoadError.at("inputs.scheme", message)
        spec = resolve(self.page, resolved, self.config)
        return run_spec(spec, record_packets=record_packets, progress=progress)

    def differences(self, load: Load) -> list[str]:
        """Return the keys of the document whose values differ in *load*; none if it is equal."""
        document = load.to_dict(order="order" in self.document)
        keys = dict.fromkeys((*self.document, *document))
        return [
            key
            for key in keys
            if key not in _VERSION_KEYS
            and self.document.get(key) != _through_json(document.get(key))
        ]

    def __repr__(self) -> str:
        names = " ".join(str(self.document.get(key)) for key in ("page", "scheme", "network"))
        return f"<SavedLoad of h3sim {self.version}: {names}>"


def read_load(path: str | Path) -> SavedLoad:
    """Read a load that was saved with `h3sim run PAGE --json > path`.

    Raises:
        SavedLoadError: if the file cannot be read or does not match its digest, if it has one; or
            listing every error in it.
    """
    text = read_text(path, SavedLoadError)
    document = parse_json(text, SavedLoadError, source=str(path))
    if problem := digest_problem(document):
        raise SavedLoadError([problem], str(path))
    return load_from_dict(document, source=str(path))


def is_saved_load(path: str) -> bool:
    """Return whether the file at *path* begins like a saved load."""
    try:
        with open_input(path, SavedLoadError) as file:
            head = file.read(_HEAD_BYTES)
    except InputError:
        return False
    # A byte order mark and white space may precede the brace.
    return re.search(rb'^[^{]{0,9}\{\s*"format"\s*:\s*"h3sim-load/', head) is not None


def load_from_dict(document: Any, *, source: str = "load") -> SavedLoad:
    """Return the load described by *document*, of format `h3sim-load/2`; its digest is not checked.

    Raises:
        SavedLoadError: listing every error in its inputs.

    >>> import h3sim
    >>> load = h3sim.simulate("davies-meenan", scheme="fifo", rtt_ms=40)
    >>> saved = load_from_dict(load.to_dict())
    >>> saved.run().to_dict() == load.to_dict()
    True
    """
    tables = document
    if isinstance(document, Mapping):  # results are not needed
        known = ("format", *keys_of(LoadDocument))
        tables = {key: document[key] for key in known if key in document}
    read = read_document(LoadDocument, tables, SavedLoadError, source=source, format_=FORMAT)
    inputs, config = read.inputs, read.config()
    return SavedLoad(document=document, page=inputs.page, scheme=inputs.scheme, config=config)


def _through_json(value: Any) -> Any:
    """Return *value* after a JSON round trip, which turns tuples into lists."""
    import json  # lazy: keeps imports fast

    return json.loads(json.dumps(value))
