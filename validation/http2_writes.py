"""`make validate-writes`: what servers of HTTP/2 write where many responses begin at once.

h2o writes 12 segments at a time on paths of 50 ms and more, and nghttpd 64 KiB: HEADERS and DATA
share the first write. Both servers, from Debian's packages, answer 30 requests that arrive in one
segment, and a simulated load has to write the same frames: each stream's parts in the same order,
and of the same length. With `--record` what was measured is kept in `http2_writes.json`, which the
tests hold the model to.
"""

from __future__ import annotations

import json
import random
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

import h3sim
from h3sim.page import page_from_dict
from h3sim.schemes import scheme_from_dict
from h3sim.signals import H2Priority
from h3sim.transport import LinkProfile, Network
from h3sim.values.units import mbps, ms
from validation.http2_frames import FrameClient
from validation.tree_scripts import WIDE
from validation.tree_servers import PACKAGES, path_of, serving, version_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from h3sim.schemes import Scheme

__all__ = ["RECORDED", "SIZES", "WORKLOADS", "Written", "main", "modelled", "read_recorded"]

_SERVERS = ("nghttpd", "h2o")

RECORDED = Path(__file__).with_suffix(".json")
SIZES = (30_000, *[20_000] * 4, *[60_000] * 6, *[40_000] * 20)
"""The document, and what is asked for at once when it is there."""
_KINDS = ("script", "image")
_SEGMENT_BYTES = 1460
"""As Ethernet has it; 12 bytes of it are TCP's timestamps."""
_SCHEMES = {"h2o": "h2o-calendar", "nghttpd": "nghttp2-tree"}
_REQUEST_BYTES = 14
"""30 requests came in 414 bytes without their frames' headers and priorities, so in one segment."""
_STREAM_STEP = {"real": 2, "simulated": 4}


@dataclass(frozen=True, slots=True)
class _Workload:
    """A server, the weights that responses have in turn, and how long an extra header is."""

    server: str
    weights: tuple[int, ...]
    padding: int = 0

    @property
    def name(self) -> str:
        """What it is called in the table and in the file."""
        weights = " and ".join(map(str, self.weights))
        return f"{self.server}, weights {weights}, padding {self.padding}"


WORKLOADS = (
    *(
        _Workload("h2o", weights, padding)
        for weights in ((16,), (24, 8))
        for padding in (8, 80, 400, 800)
    ),
    *(_Workload("nghttpd", weights) for weights in ((16,), (24, 8))),
)


@dataclass(frozen=True, slots=True)
class Written:
    """What a server wrote after the document: (response, bytes) of DATA, in order.

    *header_bytes* are the lengths of all HEADERS, that of the document's first.
    """

    header_bytes: tuple[int, ...]
    data: tuple[tuple[int, int], ...]


def _measured(workload: _Workload) -> Written:
    """Return what the real server writes."""
    rng = random.Random(workload.name)  # noqa: S311 - a test
    # No two are alike, and Huffman's code makes nothing of them: HPACK sends each whole.
    paddings = ["".join(rng.choices("XZ&*", k=workload.padding)) for _ in SIZES if workload.padding]
    with (
        serving(workload.server, SIZES, paddings) as port,
        FrameClient(port, WIDE, mss_bytes=_SEGMENT_BYTES) as client,
    ):
        client.open_window(WIDE)
        for position, size in enumerate(SIZES):
            weight = workload.weights[position % len(workload.weights)]
            folder = f"/{position}" if paddings else ""
            stream_id = 1 + _STREAM_STEP["real"] * position
            client.ask(stream_id, folder + path_of(size), H2Priority(weight=weight))
            if not position:
                client.flush(answered=[stream_id])
                client.receive(size)
                n_before = len(client.data)
        client.send()
        client.receive(sum(SIZES[1:]))
        lengths = tuple(length for _, length in sorted(client.header_bytes.items()))
        data = [(stream // _STREAM_STEP["real"], n) for stream, n in client.data[n_before:]]
    return Written(lengths, _joined(data))


def modelled(workload: _Workload, header_bytes: Sequence[int]) -> Written:
    """Return what a simulated load writes whose HEADERS have these lengths."""
    load = simulated(workload, header_bytes)
    data = []
    for _, _, stream_id, offset, length, *_ in load.trace.packet_rows:
        position = stream_id // _STREAM_STEP["simulated"]
        n_bytes = offset + length - max(offset, header_bytes[position])
        if position and n_bytes > 0:
            data.append((position, n_bytes))
    return Written(tuple(header_bytes), _joined(data))


def simulated(
    workload: _Workload, header_bytes: Sequence[int], queue_bytes: int | None = None
) -> h3sim.Load:
    """Return a load over 2 Mbit/s and 100 ms, where the queue drops nothing unless it is given."""
    link = LinkProfile(rate_bps=mbps(2), queue_bytes=queue_bytes, frame_overhead_bytes=14)
    return h3sim.simulate(
        _page(workload, header_bytes),
        scheme=_scheme(workload),
        network=Network(name="2 Mbit/s", rtt_ns=ms(100), down=link, up=link),
        transport_profile=f"linux-tcp-{workload.server}",
        handshake="none",
    )


def _page(workload: _Workload, header_bytes: Sequence[int]) -> h3sim.Page:
    resources: list[dict[str, Any]] = []
    for position, (size, section) in enumerate(zip(SIZES, header_bytes, strict=True)):
        resource = {
            "id": str(position),
            "kind": _KINDS[position % len(workload.weights)] if position else "document",
            "bytes": size,
            "request_bytes": _REQUEST_BYTES,
            "header_bytes": section,
        }
        if position:
            resource["discovered"] = {"at": "complete", "by": "0"}
        resources.append(resource)
    return page_from_dict({"format": "h3sim-page/1", "name": "thirty", "resources": resources})


def _scheme(workload: _Workload) -> Scheme:
    weights = dict(zip(_KINDS, workload.weights, strict=False))
    return scheme_from_dict(
        {
            "format": "h3sim-scheme/1",
            "name": "weights",
            "title": "weights",
            "mechanism": _SCHEMES[workload.server],
            "signalling": "server",
            "source": "the measurement",
            "otherwise": "script",
            "classes": {kind: {"weight": weight} for kind, weight in weights.items()},
            "rules": [{"kind": kind, "class": kind} for kind in weights],
        }
    )


def _joined(data: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the parts with those of one response joined that stand side by side."""
    joined: list[tuple[int, int]] = []
    for position, n_bytes in data:
        if joined and joined[-1][0] == position:
            n_bytes += joined.pop()[1]
        joined.append((position, n_bytes))
    return tuple(joined)


def read_recorded() -> dict[str, Written]:
    """Return what was measured, by the names of `WORKLOADS`."""
    recorded = json.loads(RECORDED.read_text("utf-8"))["workloads"]
    return {
        name: Written(tuple(each["header_bytes"]), tuple(map(tuple, each["data"])))
        for name, each in recorded.items()
    }


def _record(measured: dict[str, Written], versions: Sequence[str]) -> None:
    workloads = {
        name: {"header_bytes": each.header_bytes, "data": each.data}
        for name, each in measured.items()
    }
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in workloads.items()]
    message = json.dumps(list(versions))
    RECORDED.write_text(
        '{"servers": ' + message + ', "workloads": {\n' + ",\n".join(lines) + "\n}}\n", "utf-8"
    )


def main(argv: Sequence[str]) -> int:
    """Drive both servers, print a table; return 1 if any load writes other frames."""
    try:
        versions = [f"{server} {version_of(server)}" for server in _SERVERS]
    except FileNotFoundError:
        print(f"skipped: apt-get install {' '.join(PACKAGES[server] for server in _SERVERS)}")
        return 0
    measured = {workload.name: _measured(workload) for workload in WORKLOADS}
    if "--record" in argv:
        _record(measured, versions)
    rows, n_other = [], 0
    for workload in WORKLOADS:
        real = measured[workload.name]
        made = modelled(workload, real.header_bytes)
        same = sum(a == b for a, b in zip(real.data, made.data, strict=False))
        n_other += real.data != made.data
        section_bytes = sum(real.header_bytes[1:])
        rows.append([workload.name, section_bytes, len(real.data), len(made.data), same])
    print(f"{'; '.join(versions)}\n")
    headings = ("workload", "bytes of HEADERS", "parts", "simulated", "the same")
    print(tabulate(rows, headings, "github"))
    return int(bool(n_other))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
