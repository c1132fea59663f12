"""The result of an import: the page, and the evidence for each of its values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from h3sim._version import __version__
from h3sim.schema.output import COUNT, TEXT, VERSION, ObjectType, OutputSchema, Property
from h3sim.schema.values import ListOf, TableOf
from h3sim.values.errors import InputError, ValidationIssue
from h3sim.values.text import escape_control
from h3sim.values.units import to_mbps, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from h3sim.page import Page, RecordedLoad


_COUNTS = TableOf(COUNT)
_TEXTS = ListOf(TEXT, "texts")
_PROBLEMS = ListOf(
    ObjectType(
        Property("key", TEXT, "where in the file"), Property("message", TEXT, "what is wrong")
    ),
    "problems",
)
IMPORT = OutputSchema(
    "h3sim-import/1",
    "How a page was made of a recording",
    VERSION,
    Property("page", TEXT, "the page's name", of="page.name"),
    Property("dialect", TEXT, "what the file was read as"),
    Property("resources", COUNT, "how many the page has", of="n_resources"),
    Property("bytes", COUNT, "of its bodies", of="page.total_bytes"),
    Property("found", _COUNTS, "what the recording says, by what is counted"),
    Property("inferred", _COUNTS, "what had to be worked out, and from what"),
    Property("left_out", _COUNTS, "the requests that are not in the page, and why"),
    Property("missing", _TEXTS, "what the recording cannot tell at all"),
    Property("warnings", _TEXTS, "why the page may not be what was meant", is_optional=True),
    Property("skipped", _PROBLEMS, "entries that could not be read"),
)


class RecordingError(InputError):
    """Error in a recording or site from which no page can be made."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ImportedPage:
    """Page imported from a recording, with the import report.

    *dialect* names the format of the file. The counts have descriptions as keys, in the order of
    the report: *found* counts recorded values, *inferred* inferred ones by their evidence, and
    *left_out* requests that are not in the page, by the reason. *warnings* are reasons why the page
    may not be the intended one. *missing* lists values that the recording does not have at all.
    *skipped* has a `ValidationIssue` for each entry that could not be read; its key is the position
    in the file.

    >>> from h3sim.page import Kind, Page, Resource
    >>> page = Page(name="p", resources=(Resource(id="/", kind=Kind.DOCUMENT, size_bytes=9),))
    >>> imported = ImportedPage(page=page, dialect="har", found={"requests": 1})
    >>> print(imported)
    p: 1 resource, 9 bytes, from har
    found: requests 1
    """

    page: Page
    dialect: str
    found: Mapping[str, int] = field(default_factory=dict)
    inferred: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    skipped: tuple[ValidationIssue, ...] = ()
    version: str = __version__
    """Version of h3sim that read it."""

    @property
    def n_resources(self) -> int:
        """Number of resources of the page."""
        return len(self.page.resources)

    def __repr__(self) -> str:
        return f"<ImportedPage {self.lines()[0]}>"

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def lines(self) -> list[str]:
        """Return the report as lines for people, without empty parts.

        Control characters from the recording are escaped.
        """
        noun = "resource" if self.n_resources == 1 else "resources"
        size = f"{self.n_resources:,} {noun}, {self.page.total_bytes:,} bytes"
        lines = [f"{self.page.name}: {size}, from {self.dialect}"]
        lines += [f"warning: {text}" for text in self.warnings]
        for title, counts in (
            ("found", self.found),
            ("inferred", self.inferred),
            ("left out", self.left_out),
        ):
            listed = ", ".join(f"{what} {number:,}" for what, number in counts.items() if number)
            if listed:
                lines.append(f"{title}: {listed}")
        lines += _network_lines(self.page.recorded_load)
        if self.missing:
            lines.append(f"missing: {', '.join(self.missing)}")
        lines += [f"skipped: {problem}" for problem in self.skipped]
        return [escape_control(line) for line in lines]

    def to_dict(self) -> dict[str, Any]:
        """Return the report, without the page, as JSON data."""
        return IMPORT.write(self)


def _network_lines(known: RecordedLoad | None) -> Iterator[str]:
    """Yield the network of a recording, then the other estimates and how far they are apart."""
    if known is None or known.rtt_ns is None or known.rate_bps is None:
        return
    rtt = f"RTT {to_ms(known.rtt_ns):g} ms from {known.rtt_from}"
    rate = f"{to_mbps(known.rate_bps):g} Mbit/s from {known.rate_from}"
    yield f"network, estimated: {rtt}, {rate}"
    others = [
        f"RTT {to_ms(rtt_ns):g} ms from {basis}"
        for basis, rtt_ns in known.rtt_estimates_ns.items()
        if basis != known.rtt_from
    ]
    others += [
        f"{to_mbps(rate_bps):g} Mbit/s from {basis}"
        for basis, rate_bps in known.rate_estimates_bps.items()
        if basis != known.rate_from
    ]
    if others:
        within = known.network_within or 1
        yield f"other estimates: {', '.join(others)}; verdicts allow for a factor of {within:g}"
