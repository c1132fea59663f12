"""Reads networks from TOML and lists every mistake of a file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.documents import is_quantity
from h3sim.errors import NetworkError, Problem
from h3sim.transport.network import Jitter, Network, Pacing
from h3sim.units import mbps, ms

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["FORMAT", "network_from_dict", "network_from_toml", "read_network"]

FORMAT = "h3sim-network/1"
_KEYS = ("format", "name", "title", "source", "rtt_ms", "pacing", "jitter")


def read_network(path: str | Path) -> Network:
    """Return the network that the file at *path* describes.

    Raises:
        NetworkError: if the file cannot be read, or listing every mistake in it.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
        raise NetworkError([Problem(key="", message=message)], str(path)) from error
    except UnicodeDecodeError as error:
        raise NetworkError([Problem(key="", message="is not UTF-8")], str(path)) from error
    return network_from_toml(text, source=str(path))


def network_from_toml(text: str, *, source: str) -> Network:
    """Return the network that *text* describes; errors as `read_network`."""
    import tomllib  # on use: importing h3sim should stay quick

    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NetworkError([Problem(key="", message=f"is not TOML: {error}")], source) from error
    return network_from_dict(document, source=source)


def network_from_dict(document: dict[str, Any], *, source: str = "network") -> Network:
    """Return the network that *document*, a parsed network file, describes.

    Raises:
        NetworkError: listing every mistake in it.
    """
    reader = _Reader()
    values = reader.network(document)
    try:
        network = Network(**values)
    except NetworkError as error:
        told = {problem.key for problem in reader.problems}
        reader.problems += [problem for problem in error.problems if problem.key not in told]
        raise NetworkError(reader.problems, source) from error
    if reader.problems:
        raise NetworkError(reader.problems, source)
    return network


class _Reader:
    """Collects the mistakes instead of stopping at the first."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def network(self, document: dict[str, Any]) -> dict[str, Any]:
        if document.get("format") != FORMAT:
            self._report("format", f"must be {FORMAT!r}, is {document.get('format')!r}")
        self._keys("", document, _KEYS)
        if "name" not in document:
            self._report("name", "is missing")
        jitter = document.get("jitter")
        return {
            **{name: self._text(document, name) for name in ("name", "title", "source")},
            "rtt_ns": ms(self._number("rtt_ms", document.get("rtt_ms", 0))),
            "pacing": self._pacing(document.get("pacing")),
            "jitter": None if jitter is None else self._jitter(jitter),
        }

    def _pacing(self, entry: Any) -> Pacing:
        stand_in = Pacing(packet_bytes=1, interval_ns=Fraction(1))
        if not isinstance(entry, dict):
            self._report("pacing", "needs packet_bytes, and interval_ms or rate_mbps")
            return stand_in
        self._keys("pacing", entry, ("packet_bytes", "interval_ms", "rate_mbps"))
        packet_bytes = self._whole("pacing.packet_bytes", entry.get("packet_bytes"))
        if ("interval_ms" in entry) == ("rate_mbps" in entry):
            self._report("pacing", "needs interval_ms or rate_mbps, and not both")
            return stand_in
        known = len(self.problems)
        key = "rate_mbps" if "rate_mbps" in entry else "interval_ms"
        value = self._number(f"pacing.{key}", entry[key])
        # In whole bits per second or nanoseconds, which is what the simulation counts in.
        amount = mbps(value) if key == "rate_mbps" else ms(value)
        if len(self.problems) > known:
            return stand_in
        if amount <= 0:
            self._report(f"pacing.{key}", f"must be more than 0, is {value:g}")
            return stand_in
        if key == "interval_ms" or packet_bytes < 1:
            return Pacing(packet_bytes=packet_bytes, interval_ns=Fraction(max(amount, 1)))
        return Pacing.at_rate(packet_bytes=packet_bytes, rate_bps=amount)

    def _jitter(self, entry: Any) -> Jitter:
        names = ("every", "min_overtaken", "max_overtaken")
        if not isinstance(entry, dict):
            self._report("jitter", f"must be a table, is {entry!r}")
            return Jitter(every=1, min_overtaken=0, max_overtaken=0)
        self._keys("jitter", entry, names)
        every, low, high = (self._whole(f"jitter.{name}", entry.get(name)) for name in names)
        return Jitter(every=every, min_overtaken=low, max_overtaken=high)

    # Single values: each is returned, or a stand-in after reporting.

    def _text(self, document: dict[str, Any], name: str) -> str:
        value = document.get(name, "")
        if isinstance(value, str):
            return value
        self._report(name, f"must be text, is {value!r}")
        return ""

    def _number(self, key: str, value: Any) -> float:
        if is_quantity(value):
            return float(value)
        self._report(key, f"must be a number, is {value!r}")
        return 0

    def _whole(self, key: str, value: Any) -> int:
        if type(value) is int:
            return value
        self._report(key, "is missing" if value is None else f"must be whole, is {value!r}")
        return 1

    def _keys(self, key: str, entry: dict[str, Any], known: Iterable[str]) -> None:
        for name in entry:
            if name not in known:
                message = f"unknown key; allowed are {', '.join(known)}"
                self._report(f"{key}.{name}" if key else name, message)

    def _report(self, key: str, message: str) -> None:
        self.problems.append(Problem(key=key, message=message))
