"""Reads the [down] and [up] tables of a network file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from h3sim.documents import DocumentReader, is_quantity, read_text, shown
from h3sim.errors import NetworkError, Problem
from h3sim.transport.jitter import Distribution, Jitter, LinkJitter
from h3sim.transport.link_profile import CoDel, LinkProfile
from h3sim.units import mbps, ms

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["LINK_KEYS", "IntegerReader", "read_link"]

_WHOLE = (
    *("burst_bytes", "queue_bytes", "queue_packets", "frame_overhead_bytes"),
    "loss_list_from_bytes",
)
_NUMBERS = ("queue_bdp", "loss", "loss_burst")
_JITTER = ("jitter_ms", "jitter_deviation_ms", "jitter_distribution", "reorder")
LINK_KEYS = ("rate_mbps", *_WHOLE, *_NUMBERS, "loss_list", *_JITTER, "hold", "mahimahi", "codel")
_MAX_DIGITS = 15
_CODEL_KEYS = ("target_ms", "interval_ms")


def read_link(key: str, entry: Any, folder: Path) -> tuple[LinkProfile, list[Problem]]:
    """Return the link that table *key* describes, or a stand-in, and what is wrong with it.

    A Mahimahi trace is a list of milliseconds, or a file in *folder* with one on each line.
    """
    reader = _LinkReader(folder)
    values = reader.values(entry)
    profile = LinkProfile()
    try:
        profile = LinkProfile(**values)
    except NetworkError as error:
        reader.add(error.problems)
    return profile, [
        Problem(key=f"{key}.{problem.key}" if problem.key else key, message=problem.message)
        for problem in reader.problems
    ]


class IntegerReader(DocumentReader):
    """Reads whole numbers whose range the value that they are for checks itself."""

    def integer(self, key: str, value: Any) -> int:
        """Return a whole number, 1 in place of anything else; None says that there is none."""
        if type(value) is int and is_quantity(value):
            return value
        self.report(key, "is missing" if value is None else f"must be whole, is {shown(value)}")
        return 1

    def integers(self, key: str, value: Any) -> tuple[int, ...]:
        """Return the whole numbers of a list, none in place of anything else."""
        if not isinstance(value, list):
            self.report(key, f"must be a list of whole numbers, is {shown(value)}")
            return ()
        wrong = [item for item in value if type(item) is not int or not is_quantity(item)]
        if wrong:
            self.report(key, f"must hold whole numbers only, holds {shown(wrong[0])}")
            return ()
        return tuple(value)


class _LinkReader(IntegerReader):
    """Reads one table; keys are without that of the table."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder

    def values(self, entry: Any) -> dict[str, Any]:
        if not isinstance(entry, dict):
            self.report("", f"must be a table, is {shown(entry)}")
            return {}
        self.keys("", entry, LINK_KEYS)
        values: dict[str, Any] = {
            **{name: self.integer(name, entry[name]) for name in _WHOLE if name in entry},
            **{name: self.number(name, entry[name]) for name in _NUMBERS if name in entry},
            "jitter": self._jitter(entry),
        }
        if "rate_mbps" in entry:
            values["rate_bps"] = mbps(self.number("rate_mbps", entry["rate_mbps"]))
        if "loss_list" in entry:
            values["loss_list"] = self.integers("loss_list", entry["loss_list"])
        for name, read in (("mahimahi", self._trace), ("codel", self._codel), ("hold", self._hold)):
            if name in entry:
                values[name] = read(entry[name])
        return values

    def _jitter(self, entry: dict[str, Any]) -> LinkJitter | None:
        """The deviation is half of the mean unless it is given."""
        given = [name for name in _JITTER if name in entry]
        if not given:
            return None
        if "jitter_ms" not in entry:
            for name in given:
                self.report(name, "says something about jitter_ms, which is missing")
            return None
        mean_ms = self.number("jitter_ms", entry["jitter_ms"])
        deviation_ms = entry.get("jitter_deviation_ms", mean_ms / 2)
        name = entry.get("jitter_distribution", Distribution.UNIFORM.value)
        return LinkJitter(
            mean_ns=ms(mean_ms),
            deviation_ns=ms(self.number("jitter_deviation_ms", deviation_ms)),
            distribution=self.choice("jitter_distribution", name, Distribution),
            reorder=self.flag("reorder", entry.get("reorder", False)),
        )

    def _hold(self, value: Any) -> Jitter | None:
        try:
            return Jitter.parse(self.text("hold", value) or "none")
        except NetworkError as error:
            for problem in error.problems:
                self.report(f"hold{problem.key.removeprefix('jitter')}", problem.message)
        return None

    def _codel(self, value: Any) -> CoDel | None:
        if isinstance(value, bool):
            return CoDel() if value else None
        if not isinstance(value, dict):
            keys = " and ".join(_CODEL_KEYS)
            self.report("codel", f"must be true, false, or a table with {keys}, is {shown(value)}")
            return None
        self.keys("codel", value, _CODEL_KEYS)
        given = {
            f"{name.removesuffix('_ms')}_ns": ms(self.number(f"codel.{name}", value[name]))
            for name in _CODEL_KEYS
            if name in value
        }
        return CoDel(**given)

    # Mahimahi traces

    def _trace(self, value: Any) -> tuple[int, ...] | None:
        if isinstance(value, list):
            return self.integers("mahimahi", value)
        if isinstance(value, str):
            return self._trace_file(self._folder / value)
        self.report("mahimahi", f"must be a path, or a list of milliseconds, is {shown(value)}")
        return None

    def _trace_file(self, path: Path) -> tuple[int, ...] | None:
        try:
            lines = read_text(path, NetworkError).splitlines()
        except NetworkError as error:
            self.report("mahimahi", str(error))
            return None
        found: list[int] = []
        for number, line in enumerate(lines, start=1):
            if not (line.isascii() and line.isdigit() and len(line) <= _MAX_DIGITS):
                message = f"{path}, line {number}: must be whole milliseconds, is {shown(line)}"
                self.report("mahimahi", message)
                return None
            found.append(int(line))
        return tuple(found)
