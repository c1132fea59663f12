"""The cells of a study of header compression: scheme, round-trip time, loss and seed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib import metadata, resources
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from h3sim._version import __version__
from h3sim.compression import make_codec
from h3sim.compression.base import Held
from h3sim.compression.wire import LIBRARIES
from h3sim.study.header_delays import DelayModel, simulate_headers
from h3sim.study.header_loads import carry_headers
from h3sim.study.identity import digest, model_version
from h3sim.study.work import StudyWork
from h3sim.transport import network_to_dict
from h3sim.units import ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.compression import CodecSettings
    from h3sim.compression.exchanges import Exchange, TimedSection
    from h3sim.compression.header_run import HeaderRun
    from h3sim.transport import Network

__all__ = ["HeaderCell", "HeaderCells", "HeaderFigures", "HeaderPath", "OverModel", "OverQuic"]

_SAY = ("header_cells.py", "header_delays.py", "header_loads.py")
"""What of this package has a say in what a cell comes to, beside the model."""


class HeaderCell(NamedTuple):
    """One run of a scheme over a path."""

    scheme: str
    rtt_ms: float
    loss: float
    seed: int


class HeaderPath(Protocol):
    """Over what lists go; the lists are a part of it."""

    @property
    def network_name(self) -> str | None:
        """The network, None for the model of Frindell 2017."""

    def identity(self) -> str:
        """Return what tells these lists and this path from others."""

    def carry(self, cell: HeaderCell, settings: CodecSettings) -> HeaderRun:
        """Return what comes of the lists."""


@dataclass(frozen=True, slots=True)
class OverModel:
    """Lists over the model of Frindell 2017."""

    sections: tuple[TimedSection, ...]
    network_name: None = field(default=None, init=False)

    def identity(self) -> str:
        """Return what tells these lists from others."""
        return repr(self.sections)

    def carry(self, cell: HeaderCell, settings: CodecSettings) -> HeaderRun:
        """Return what comes of the lists."""
        model = DelayModel(rtt_ns=ms(cell.rtt_ms), loss=cell.loss)
        return simulate_headers(
            self.sections, cell.scheme, model, settings=settings, seed=cell.seed
        )


@dataclass(frozen=True, slots=True)
class OverQuic:
    """Lists over QUIC, next to response bodies; those of one direction are looked at."""

    exchanges: tuple[Exchange, ...]
    network: Network
    of_responses: bool = False

    @property
    def network_name(self) -> str:
        """The network, of which round-trip time and loss are replaced."""
        return self.network.name

    def identity(self) -> str:
        """Return what tells these lists and this path from others."""
        return repr((self.exchanges, network_to_dict(self.network), self.of_responses))

    def carry(self, cell: HeaderCell, settings: CodecSettings) -> HeaderRun:
        """Return what comes of the lists."""
        both = carry_headers(
            self.exchanges,
            cell.scheme,
            rtt_ms=cell.rtt_ms,
            loss=cell.loss,
            network=self.network,
            settings=settings,
            seed=cell.seed,
        )
        return both[self.of_responses]


@dataclass(frozen=True, kw_only=True)
class HeaderCells:
    """Every run: each scheme with each round-trip time, each loss and each seed (the fastest).

    All schemes meet the same accidents. *name* is what lists and rows call it.

    Raises:
        UnknownNameError: if there is no such scheme.
        MissingExtraError: if a library that one needs is not installed.
    """

    path: HeaderPath
    schemes: Sequence[str]
    rtts_ms: Sequence[float]
    losses: Sequence[float]
    seeds: Sequence[int]
    settings: CodecSettings
    name: str = ""
    model: str = field(default_factory=model_version)
    has_resources: bool = field(default=True, init=False)
    """How long each list waited is what the rows of a study are made of."""

    def __post_init__(self) -> None:
        # Now, rather than once for each cell in a worker.
        for scheme in self.schemes:
            make_codec(scheme, self.settings)

    def __len__(self) -> int:
        return len(self.schemes) * len(self.rtts_ms) * len(self.losses) * len(self.seeds)

    def __getitem__(self, index: int) -> HeaderCell:
        # By the range, so that indices from behind and beyond the end do what they do in lists.
        rest, seed = divmod(range(len(self))[index], len(self.seeds))
        rest, loss = divmod(rest, len(self.losses))
        scheme, rtt = divmod(rest, len(self.rtts_ms))
        return HeaderCell(
            self.schemes[scheme], self.rtts_ms[rtt], self.losses[loss], self.seeds[seed]
        )

    @property
    def axes(self) -> tuple[str, ...]:
        """The columns in which the cells differ, slowest first."""
        axes = (self.schemes, self.rtts_ms, self.losses, self.seeds)
        return tuple(
            name for name, values in zip(HeaderCell._fields, axes, strict=True) if len(values) > 1
        )

    @property
    def figures(self) -> tuple[str, ...]:
        """The columns of figures that each row must have."""
        return (*_COUNTS, "sections", "held_compressed_bytes", "held_decompressed_bytes")

    def columns(self, index: int) -> dict[str, Any]:
        """Return what the row of the cell at *index* must have in some of its columns."""
        return {"page": self.name, "network": self.path.network_name, **self[index]._asdict()}

    def told(self, index: int) -> str:
        """Return what an error calls the cell at *index*."""
        cell = self[index]
        path = f"rtt_ms={cell.rtt_ms:g}, loss={cell.loss:g}"
        return ", ".join(filter(None, (self.name, cell.scheme, path, f"seed {cell.seed}")))

    def keys(self) -> HeaderKeys:
        """Return by what cells are known again."""
        return HeaderKeys(self)

    def work(self) -> HeaderWork:
        """Return what a worker needs to know."""
        return HeaderWork(cells=self)


class HeaderKeys:
    """The keys of cells: lists, path, scheme, settings, seed, and the code that runs them."""

    def __init__(self, cells: HeaderCells) -> None:
        self._cells = cells
        path, settings = cells.path.identity(), repr(cells.settings)
        self._head = digest(cells.model, _code(), cells.name, path, settings).hex()

    def key(self, index: int) -> bytes:
        """Return the key of the cell at *index*."""
        cell = self._cells[index]
        # 20 and 20.0 are one cell, and known again as such.
        numbers = (float(cell.rtt_ms), float(cell.loss), cell.seed)
        return digest(self._head, cell.scheme, *map(repr, numbers))

    def token(self) -> str:
        """Return what tells this study from others: all that its cells are made of, in order."""
        cells = self._cells
        numbers = (cells.rtts_ms, cells.losses)
        axes = (*(repr([float(value) for value in axis]) for axis in numbers), repr([*cells.seeds]))
        return digest(self._head, repr([*cells.schemes]), *axes).hex()


@cache
def _code() -> str:
    """Return what tells the code that has a say from other code: ours here, and the libraries'."""
    folder = resources.files("h3sim.study")
    sources = ((folder / name).read_text(encoding="utf-8") for name in _SAY)
    # Of what is not installed there is none, and no error: other schemes run without it.
    versions = (next(_versions(name), "-") for name in LIBRARIES)
    return digest(*sources, *versions).hex()


def _versions(library: str) -> Any:
    return (found.version for found in metadata.distributions(name=library))


@dataclass(kw_only=True)
class HeaderWork(StudyWork):
    """The cells of a study of header compression."""

    cells: HeaderCells

    def row(self, index: int) -> tuple[str, str]:
        """Return the row of the cell at *index*, and one for each list that waited."""
        cells, cell = self.cells, self.cells[index]
        run = cells.path.carry(cell, cells.settings)
        row = {
            "page": cells.name,
            **cell._asdict(),
            "network": cells.path.network_name,
            "table_bytes": cells.settings.table_bytes,
            "blocked_streams": cells.settings.blocked_streams,
            "version": __version__,
            "sections": len(run.sections),
            "hol_total_ms": to_ms(sum(section.hol_ns for section in run.sections)),
            "blocked": sum(section.hol_ns > 0 for section in run.sections),
            **{name: getattr(run, name) for name in _COUNTS},
            "held_compressed_bytes": run.max_held.compressed,
            "held_decompressed_bytes": run.max_held.decompressed,
        }
        waited = [
            {"id": str(number), "hol_ns": times.hol_ns, **asdict(times)}
            for number, times in enumerate(run.sections)
            if times.hol_ns
        ]
        return json.dumps(row, allow_nan=False), json.dumps(waited)


_COUNTS = ("n_bytes", "uncompressed_bytes", "n_packets", "n_lost")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderFigures:
    """What a row and the lists that waited say of a run; *hol_ns* has those that waited only."""

    n_sections: int
    hol_ns: tuple[int, ...]
    n_bytes: int
    uncompressed_bytes: int
    n_packets: int
    n_lost: int
    max_held: Held

    @classmethod
    def of(cls, row: str, waited: str) -> HeaderFigures:
        """Return what `HeaderWork.row` wrote."""
        figures = json.loads(row)
        return cls(
            n_sections=figures["sections"],
            hol_ns=tuple(times["hol_ns"] for times in json.loads(waited)),
            max_held=Held(figures["held_compressed_bytes"], figures["held_decompressed_bytes"]),
            **{name: figures[name] for name in _COUNTS},
        )
