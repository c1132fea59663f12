"""Loads that were saved as `h3sim-load/1`: read back, and run again from themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim import transport
from h3sim.browser import OF_BROWSER, BrowserMode, BrowserModel
from h3sim.documents import DocumentReader, listed, open_input, parse_json, read_text
from h3sim.errors import InputError, Problem
from h3sim.http import BufferModel
from h3sim.page import HostMode, page_from_dict
from h3sim.results import FORMAT
from h3sim.schemes import scheme_from_dict
from h3sim.study.config import LoadConfig
from h3sim.study.run import resolve_scheme, run_config
from h3sim.transport import Mode, network_from_dict

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from h3sim.page import Page
    from h3sim.results import Load
    from h3sim.schemes import Scheme
    from h3sim.study.run import SchemeLike

    Progress = Callable[[int, int], None]

__all__ = ["SavedLoad", "SavedLoadError", "is_saved_load", "load_from_dict", "read_load"]

_NEEDED = ("version", "page_digest", "transport", "seed", "configuration", "inputs")
_INPUTS = ("page", "scheme", "network", "transport_profile")
_HEAD_BYTES = 1000
"""Documents have their format first, so a file need not be read to be told from others."""
_OWN = ("version", "build")
"""What may differ between equal loads: who made them."""


class SavedLoadError(InputError):
    """A saved load cannot be read, or not run again."""


@dataclass(frozen=True, kw_only=True, repr=False)
class SavedLoad:
    """A load as it was saved: `document` has its figures, and the rest what it was run with.

    *scheme* is None where it was code: then `run` must be given it.
    """

    document: dict[str, Any] = field(hash=False)
    page: Page
    scheme: Scheme | None
    config: LoadConfig

    @property
    def version(self) -> str:
        """The version of h3sim that made it."""
        return str(self.document["version"])

    def run(
        self,
        *,
        scheme: SchemeLike | None = None,
        records_wire: bool = False,
        progress: Progress | None = None,
    ) -> Load:
        """Load the page again as it was loaded, or with another *scheme*.

        The same version of h3sim gives the same load, byte for byte.

        Raises:
            SavedLoadError: if the scheme was code, and none is given.
        """
        wanted = self.scheme if scheme is None else resolve_scheme(scheme)
        if wanted is None:
            message = "was code, and cannot be read back: give it to run()"
            raise SavedLoadError([Problem(key="inputs.scheme", message=message)])
        return run_config(
            self.page, wanted, self.config, records_wire=records_wire, progress=progress
        )

    def differences(self, load: Load) -> list[str]:
        """Return the keys of the document that *load* has other values for; no keys: it is it."""
        document = load.to_dict(order="order" in self.document)
        keys = dict.fromkeys((*self.document, *document))
        return [
            key
            for key in keys
            if key not in _OWN and self.document.get(key) != _through_json(document.get(key))
        ]

    def __repr__(self) -> str:
        names = " ".join(str(self.document.get(key)) for key in ("page", "scheme", "network"))
        return f"<SavedLoad of h3sim {self.version}: {names}>"


def read_load(path: str | Path) -> SavedLoad:
    """Return the load that was saved in the file at *path* (`h3sim run PAGE --json > path`).

    Raises:
        SavedLoadError: if the file cannot be read, or listing every mistake in it.
    """
    text = read_text(path, SavedLoadError)
    document = parse_json(text, SavedLoadError, source=str(path))
    return load_from_dict(document, source=str(path))


def is_saved_load(path: str) -> bool:
    """Return whether the file at *path* says at its beginning that it is a saved load."""
    try:
        with open_input(path, SavedLoadError) as file:
            head = file.read(_HEAD_BYTES)
    except InputError:
        return False
    # Before the brace there may be a byte order mark and some white space.
    return re.search(rb'^[^{]{0,9}\{\s*"format"\s*:\s*"h3sim-load/', head) is not None


def load_from_dict(document: Any, *, source: str = "load") -> SavedLoad:
    """Return the load that *document*, of format `h3sim-load/1`, describes.

    Raises:
        SavedLoadError: listing every mistake in what it was run with.

    >>> import h3sim
    >>> load = h3sim.simulate("davies-meenan", scheme="fifo", rtt_ms=40)
    >>> saved = load_from_dict(load.to_dict())
    >>> saved.run().to_dict() == load.to_dict()
    True
    """
    _check_keys(document, source)
    problems: list[Problem] = []
    inputs = document["inputs"]
    page = _input(problems, "page", page_from_dict, inputs["page"])
    network = _input(problems, "network", network_from_dict, inputs["network"])
    scheme = _input(problems, "scheme", scheme_from_dict, inputs["scheme"])
    profile = _input(
        problems, "transport_profile", transport.profile_from_dict, inputs["transport_profile"]
    )
    if page is not None and page.digest != document["page_digest"]:
        message = "is not that of inputs.page: one of the two was edited"
        problems.append(Problem(key="page_digest", message=message))
    config = None
    if network is not None:
        try:
            config = _config(document, network=network, transport_profile=profile)
        except InputError as error:
            problems += [
                Problem(key=f"configuration.{problem.key}", message=problem.message)
                for problem in error.problems
            ]
    if problems or page is None or config is None:
        raise SavedLoadError(problems, source)
    return SavedLoad(document=document, page=page, scheme=scheme, config=config)


def _check_keys(document: Any, source: str) -> None:
    reader = DocumentReader()
    table = reader.table("", document)
    if not reader.problems and table.get("format") != FORMAT:
        reader.report("format", f"must be {FORMAT!r}, is {table.get('format')!r}")
    for key in _NEEDED:
        if not reader.problems and key not in table:
            reader.report(key, "is missing: a load of h3sim 0.1, or measured, cannot run again")
    inputs = reader.table("inputs", table.get("inputs", {}))
    reader.table("configuration", table.get("configuration", {}))
    if not reader.problems:
        for key in _INPUTS:
            if key not in inputs:
                reader.report(f"inputs.{key}", "is missing")
    if reader.problems:
        raise SavedLoadError(reader.problems, source)


def _input(problems: list[Problem], name: str, read: Callable[..., Any], entry: Any) -> Any:
    """Return what *read* makes of an input; None for None, or after noting what is wrong."""
    # There is none of these where the scheme was code, or at a constant rate.
    if entry is None and name in ("scheme", "transport_profile"):
        return None
    if not isinstance(entry, dict):
        problems.append(Problem(key=f"inputs.{name}", message="must be an object"))
        return None
    try:
        return read(entry, source="")
    except InputError as error:
        problems += [
            Problem(key=f"inputs.{name}.{problem.key}".rstrip("."), message=problem.message)
            for problem in error.problems
        ]
        return None


def _config(document: dict[str, Any], **resolved: Any) -> LoadConfig:
    """Return the config that resolves to what the load was run with: most is in *resolved*."""
    given = document["configuration"]
    mode = given.get("browser", "replay")
    known = [member.value for member in BrowserMode]
    if mode not in known:
        message = f"must be one of {listed(known)}, is {mode!r}"
        raise InputError([Problem(key="browser", message=message)])
    of_browser = {key: given[key] for key in OF_BROWSER if given.get(key) is not None}
    return LoadConfig(
        **resolved,
        transport=document["transport"],
        buffer_kb=given.get("buffer_kb", 0.0),
        # `or`: it is there as null where there was no buffer.
        buffer_model=given.get("buffer_model") or BufferModel.REFILLED.value,
        handshake=given.get("handshake", Mode.ONE_RTT.value),
        seed=document["seed"],
        browser=BrowserModel(mode=BrowserMode(mode), **of_browser),
        headers=given.get("headers"),
        hosts=given.get("hosts", HostMode.ONE.value),
        dns_ms=given.get("dns_ms"),
        cross_traffic=given.get("cross_traffic"),
    )


def _through_json(value: Any) -> Any:
    """Return *value* as it comes back from a file: tuples are lists there."""
    import json  # on use: importing h3sim should stay quick

    return json.loads(json.dumps(value))
