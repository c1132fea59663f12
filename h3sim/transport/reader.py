"""Reads networks from TOML and lists every mistake of a file."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from h3sim.documents import parse_toml, read_text, shown
from h3sim.errors import NetworkError
from h3sim.transport.jitter import Jitter
from h3sim.transport.link_reader import IntegerReader, read_link
from h3sim.transport.network import ConstantRate, Network
from h3sim.units import mbps, ms

if TYPE_CHECKING:
    from h3sim.transport.link_profile import LinkProfile

__all__ = ["FORMAT", "network_from_dict", "network_from_toml", "read_network"]

FORMAT = "h3sim-network/1"
_NAMES = ("name", "title", "source")
_CHOICES = ("cc", "profile")
_KEYS = ("format", *_NAMES, "rtt_ms", "constant_rate", "jitter", "down", "up", *_CHOICES)


def read_network(path: str | Path) -> Network:
    """Return the network that the file at *path* describes.

    Raises:
        NetworkError: if the file cannot be read, or listing every mistake in it.
    """
    text = read_text(path, NetworkError)
    return network_from_toml(text, source=str(path), folder=Path(path).parent)


def network_from_toml(text: str, *, source: str, folder: Path | None = None) -> Network:
    """Return the network that *text* describes; *folder* and errors as `network_from_dict`."""
    document = parse_toml(text, NetworkError, source=source)
    return network_from_dict(document, source=source, folder=folder)


def network_from_dict(
    document: dict[str, Any], *, source: str = "network", folder: Path | None = None
) -> Network:
    """Return the network that *document*, a parsed network file, describes.

    The files that it names are looked for in *folder*, or where the process stands.

    Raises:
        NetworkError: listing every mistake in it.
    """
    reader = _Reader(folder or Path())
    values = reader.network(document)
    try:
        network = Network(**values)
    except NetworkError as error:
        reader.add(error.problems)
        raise NetworkError(reader.problems, source) from error
    if reader.problems:
        raise NetworkError(reader.problems, source)
    return network


class _Reader(IntegerReader):
    """Reads a whole document."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def network(self, document: dict[str, Any]) -> dict[str, Any]:
        if document.get("format") != FORMAT:
            self.report("format", f"must be {FORMAT!r}, is {shown(document.get('format'))}")
        self.keys("", document, _KEYS)
        if "name" not in document:
            self.report("name", "is missing")
        jitter = document.get("jitter")
        links = "down" in document or "up" in document
        return {
            **{name: self.text(name, document.get(name, "")) for name in _NAMES},
            **{name: self.text(name, document[name]) for name in _CHOICES if name in document},
            "rtt_ns": ms(self.number("rtt_ms", document.get("rtt_ms", 0))),
            "constant_rate": self._constant_rate(document, is_optional=links),
            "jitter": None if jitter is None else self._jitter(jitter),
            **{
                name: self._link(name, document[name])
                for name in ("down", "up")
                if name in document
            },
        }

    def _constant_rate(self, document: dict[str, Any], *, is_optional: bool) -> ConstantRate | None:
        stand_in = ConstantRate(packet_bytes=1, interval_ns=Fraction(1))
        if is_optional and "constant_rate" not in document:
            return None
        entry = document.get("constant_rate")
        if not isinstance(entry, dict):
            what = "packet_bytes, and interval_ms or rate_mbps"
            self.report(
                "constant_rate", f"needs {what}" if "constant_rate" in document else _NEITHER
            )
            return stand_in
        keys = ("packet_bytes", "interval_ms", "rate_mbps", "interval_ns")
        self.keys("constant_rate", entry, keys)
        packet_bytes = self.integer("constant_rate.packet_bytes", entry.get("packet_bytes"))
        if "interval_ns" in entry and not entry.keys() & {"interval_ms", "rate_mbps"}:
            return self._exact_rate(packet_bytes, entry["interval_ns"])
        if ("interval_ms" in entry) == ("rate_mbps" in entry):
            self.report("constant_rate", "needs interval_ms or rate_mbps, and not both")
            return stand_in
        known = len(self.problems)
        key = "rate_mbps" if "rate_mbps" in entry else "interval_ms"
        value = self.number(f"constant_rate.{key}", entry[key])
        # In whole bits per second or nanoseconds, which is what the simulation counts in.
        amount = mbps(value) if key == "rate_mbps" else ms(value)
        if len(self.problems) > known:
            return stand_in
        if amount <= 0:
            self.report(f"constant_rate.{key}", f"must be more than 0, is {value:g}")
            return stand_in
        if key == "interval_ms" or packet_bytes < 1:
            return ConstantRate(packet_bytes=packet_bytes, interval_ns=Fraction(max(amount, 1)))
        return ConstantRate.at_rate(packet_bytes=packet_bytes, rate_bps=amount)

    def _exact_rate(self, packet_bytes: int, parts: Any) -> ConstantRate:
        """Return the rate whose interval is a fraction, as a saved load says it."""
        key = "constant_rate.interval_ns"
        known = len(self.problems)
        numbers = self.integers(key, parts)
        if len(self.problems) == known and (len(numbers) != 2 or min(numbers) < 1):
            self.report(key, f"must be two numbers above 0, is {shown(parts)}")
        if len(self.problems) > known:
            return ConstantRate(packet_bytes=1, interval_ns=Fraction(1))
        return ConstantRate(packet_bytes=packet_bytes, interval_ns=Fraction(*numbers))

    def _jitter(self, entry: Any) -> Jitter:
        names = ("every", "min_overtaken", "max_overtaken")
        if not isinstance(entry, dict):
            self.report("jitter", f"must be a table, is {shown(entry)}")
            return Jitter(every=1, min_overtaken=0, max_overtaken=0)
        self.keys("jitter", entry, names)
        every, low, high = (self.integer(f"jitter.{name}", entry.get(name)) for name in names)
        return Jitter(every=every, min_overtaken=low, max_overtaken=high)

    def _link(self, key: str, entry: Any) -> LinkProfile:
        profile, problems = read_link(key, entry, self._folder)
        self.problems += problems
        return profile


_NEITHER = "is missing: a network needs [constant_rate], or [down] for links"
