"""Tree drawings: a page's dependency graph, and the scheduler's state at an instant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import networkx as nx

from h3sim.reporting.labels import plain, shortened
from h3sim.reporting.paper import paper_in
from h3sim.reporting.style import SMALL, text_size
from h3sim.schedulers import TreeScheduler
from h3sim.schedulers.tree.options import DEFAULT_TURN_BYTES
from h3sim.schedulers.tree.scheduler import ROOT
from h3sim.schemes.registry import SignalKind
from h3sim.signals import ORPHANS, BucketPriority, Eps, Rank, StrictPriority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from matplotlib.axes import Axes

    from h3sim.load import Load
    from h3sim.page import Kind, Page, Resource
    from h3sim.reporting.labels import Paint, Palette
    from h3sim.signals import Signal


_ROW_HEIGHT_IN = 0.36
"""Height of a row of boxes."""
_TITLE_HEIGHT_IN = 0.5
_CHAIN_COLOUR = "#c00000"
_BOX_WIDTH, _BOX_HEIGHT = 0.74, 0.72
"""Size of a box, as shares of its column and row."""
_COLUMN_WIDTH_IN = 2.0
"""Width of a box with the gap to its right."""


def _n_columns() -> int:
    """Return how many columns fit; deeper trees become an outline of indented lines."""
    return int((paper_in() or 12.0) / _COLUMN_WIDTH_IN) + (paper_in() is not None)


class Position(NamedTuple):
    """Position of a box in a drawing of a tree."""

    depth: int
    """Number of its ancestors."""
    row: float
    """Row from the top."""
    left: float
    """Distance from the left, in columns."""


def positions_of(parents: Sequence[int | None]) -> list[Position]:
    """Return the positions of boxes, given the index of each box's parent, which precedes it.

    The children of a box follow it immediately. A parent is level with its first child, so that
    chains are straight.

    >>> [(at.row, at.left) for at in positions_of([None, 0, 0])]
    [(0.0, 0), (0.0, 1), (1.0, 1)]
    """
    depths: list[int] = []
    rows: list[float] = []
    has_child = [False] * len(parents)
    next_row = 0.0
    for index, parent in enumerate(parents):
        depths.append(0 if parent is None else depths[parent] + 1)
        if (parent is not None and has_child[parent]) or (parent is None and index):
            next_row += 1
        if parent is not None:
            has_child[parent] = True
        rows.append(next_row)
    if max(depths, default=0) < _n_columns():
        return [Position(*at) for at in zip(depths, rows, depths, strict=True)]
    # An outline, the deepest box in the last column.
    step = (_n_columns() - 1) / max(depths)
    return [Position(depth, float(row), depth * step) for row, depth in enumerate(depths)]


def height_in(positions: Iterable[Position | ResourceBox]) -> float:
    """Return the height in inches of a figure of boxes at *positions*."""
    return _ROW_HEIGHT_IN * (max(at.row for at in positions) + 1) + _TITLE_HEIGHT_IN


def _draw_edge(
    ax: Axes, parent: Position, child: Position, *, dashes: str = "-", is_on_chain: bool = False
) -> None:
    """Draw the line from a parent to its child."""
    if child.left - parent.left < 1:
        # In an outline: down from the left end of the parent, and into the child.
        middle = (parent.left + child.left) / 2
        xs = [middle, middle, child.left]
        ys = [parent.row + _BOX_HEIGHT / 2, child.row, child.row]
    else:
        start, middle = parent.left + _BOX_WIDTH, parent.left + (1 + _BOX_WIDTH) / 2
        xs, ys = [start, middle, middle, child.left], [parent.row, parent.row, child.row, child.row]
    ax.plot(
        xs,
        ys,
        color=_CHAIN_COLOUR if is_on_chain else "0.55",
        linewidth=2.0 if is_on_chain else 0.8,
        linestyle=dashes,
        zorder=2 if is_on_chain else 1,
        solid_joinstyle="round",
    )


def _draw_box(
    ax: Axes,
    at: Position,
    text: str,
    look: Paint | None = None,
    *,
    face: str = "white",
    dashes: str = "-",
    is_on_chain: bool = False,
) -> None:
    """Draw a box with its text, and at its left edge a band in the colour of *look*.

    A thick frame marks boxes on the chain that decided when the load ended.
    """
    from matplotlib.patches import Rectangle

    low = at.row - _BOX_HEIGHT / 2
    frame = Rectangle((at.left, low), _BOX_WIDTH, _BOX_HEIGHT, facecolor=face)
    frame.set(
        edgecolor=_CHAIN_COLOUR if is_on_chain else "0.4", linewidth=2.0 if is_on_chain else 0.8
    )
    frame.set(linestyle=dashes, zorder=3)
    ax.add_patch(frame)
    if look is not None:
        # Only a band, as text would be illegible on some colours.
        band = Rectangle(
            (at.left, low), 0.045, _BOX_HEIGHT, facecolor=look.face, edgecolor=look.ink
        )
        band.set(hatch=look.hatch, linewidth=0, zorder=4)
        ax.add_patch(band)
    left = at.left + 0.06
    ax.text(left, at.row, text, fontsize=text_size(1.5), va="center", linespacing=1.05, zorder=5)


def _finish(ax: Axes, positions: Sequence[Position], title: str) -> None:
    """Set the limits to show all boxes, and show the title in place of the axes."""
    # Shallow trees are not stretched over the whole width.
    min_left = min(3.0, _n_columns() - 1)
    ax.set_xlim(-0.05, max(min_left, max(at.left for at in positions)) + _BOX_WIDTH + 0.05)
    ax.set_ylim(max(at.row for at in positions) + 0.6, -0.6)
    ax.set_axis_off()
    ax.set_title(title, fontsize=SMALL + 1, loc="left")


_MAX_NAME_CHARS = 22
_MIN_FOLDED = 3
"""In larger graphs, at least so many leaves of one kind below one parent share a node."""
_MAX_NODES = 100
"""Larger graphs are folded, and cut at some depth if that is not enough."""
_EDGE_DASHES = {"time": ":", "request": ":", "offset": "-", "complete": "-", "executed": "--"}
"""Dashes of the edge to a resource, by its trigger."""
_EDGE_GUIDE = "dotted: asked for with its parent; dashed: once that was executed"
_CHAIN_GUIDE = "red: what the end waited for; "


class ResourceBox(NamedTuple):
    """Box with a resource, or with several leaves of a kind below one parent."""

    resources: tuple[int, ...]
    parent: int | None
    """Index of another box."""
    depth: int
    row: float
    left: float
    """The box's `Position`, as depth, row and left."""
    is_on_chain: bool
    """True if the end of the load waited for one of them."""
    n_below: int = 0
    """Number of descendants without a box."""

    @property
    def position(self) -> Position:
        """Its position in the drawing."""
        return Position(self.depth, self.row, self.left)


def chain_of(load: Load) -> list[int]:
    """Return the resources that led to the end of the load, first to last, by index in the page.

    In a computed load they are those of its critical path, otherwise the last completed resource
    with its ancestors.
    """
    page = load.page
    if load.load_event_ms is not None:
        ids = dict.fromkeys(step.id for step in load.critical_path() if step.id is not None)
        return [page.index[id_] for id_ in ids]
    last = max(load.timings, key=lambda row: row.finished_ms)
    chain = [page.index[last.id]]
    while (by := _parent_id(page.resources[chain[-1]])) is not None:
        chain.append(page.index[by])
    return chain[::-1]


def nodes_of(page: Page, chain: Sequence[int] = ()) -> list[ResourceBox]:
    """Return the nodes of the page's graph, parents before their children.

    Each resource of *chain* has a node of its own.
    """
    on_chain = dict.fromkeys(chain)
    nodes = _make_nodes(page, on_chain, None, folds=len(page.resources) > _MAX_NODES)
    deepest = max(node.depth for node in nodes)
    # Large graphs lose their deepest nodes first, except the chain.
    while len(nodes) > _MAX_NODES and deepest > 1:
        deepest -= 1
        nodes = _make_nodes(page, on_chain, deepest, folds=True)
    return nodes


def _make_nodes(
    page: Page, on_chain: dict[int, None], deepest: int | None, *, folds: bool
) -> list[ResourceBox]:
    """Return the nodes; below depth *deepest* only those of the chain.

    Without *folds*, each resource has its own.
    """
    groups: list[tuple[tuple[int, ...], int | None, int]] = []
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(page.resources)))
    graph.add_edges_from(
        (index, child) for index in page.children for child in page.children[index]
    )

    least = _MIN_FOLDED if folds else len(page.resources) + 1

    def add(resources: tuple[int, ...], parent: int | None, depth: int) -> None:
        number = len(groups)
        is_cut = depth == deepest and resources[0] not in on_chain
        below = [len(nx.descendants(graph, index)) for index in resources] if is_cut else []
        groups.append((resources, parent, sum(below)))
        folds_all = deepest is not None and depth + 1 >= deepest
        for group in (
            ()
            if is_cut
            else _child_groups(page, resources, on_chain, least=least, folds_all=folds_all)
        ):
            add(group, number, depth + 1)

    for group in _child_groups(page, (), on_chain, least=least):
        add(group, None, 0)
    positions = positions_of([parent for _, parent, _ in groups])
    return [
        ResourceBox(resources, parent, *at, any(index in on_chain for index in resources), n_below)
        for (resources, parent, n_below), at in zip(groups, positions, strict=True)
    ]


def draw_dependencies(
    ax: Axes,
    page: Page,
    palette: Palette,
    title: str,
    note_of: Callable[[tuple[int, ...]], str],
    *,
    chain: Sequence[int] = (),
) -> None:
    """Draw a box per node from left to right by depth, and a line from each parent.

    *note_of* says what stands below the name of those resources; *chain* is drawn in red.
    """
    nodes = nodes_of(page, chain)
    positions = [node.position for node in nodes]
    for node, at in zip(nodes, positions, strict=True):
        resources = [page.resources[index] for index in node.resources]
        if node.parent is not None:
            discovered = resources[0].discovered
            dashes = "-" if discovered is None else _EDGE_DASHES[discovered.at.value]
            is_on_chain = nodes[node.parent].is_on_chain and node.is_on_chain
            _draw_edge(ax, positions[node.parent], at, dashes=dashes, is_on_chain=is_on_chain)
        more = f", and {node.n_below} below" if node.n_below else ""
        text = f"{_box_name(resources)}\n{note_of(node.resources)}{more}"
        look = palette.look_of_all(node.resources)
        _draw_box(ax, at, text, look, is_on_chain=node.is_on_chain)
    _finish(ax, positions, f"{title}\n{_CHAIN_GUIDE * bool(chain)}{_EDGE_GUIDE}")


def _box_name(resources: Sequence[Resource]) -> str:
    """Return the name of a box of resources of one kind."""
    first = resources[0]
    name = first.id if len(resources) == 1 else f"{len(resources)} x {first.kind.value}"
    return plain(shortened(name, _MAX_NAME_CHARS))


def _parent_id(resource: Resource) -> str | None:
    return None if resource.discovered is None else resource.discovered.first_parent


def _child_groups(
    page: Page,
    parents: tuple[int, ...],
    chain: dict[int, None],
    *,
    least: int,
    folds_all: bool = False,
) -> Iterator[tuple[int, ...]]:
    """Yield the groups of children of a node that share a box, in the order of the page.

    At least *least* of one kind share one. Without *parents*, the children are the resources
    without a parent. With *folds_all*, resources with children are grouped like leaves.
    """
    if len(parents) > 1:
        return
    requested = page.resources[parents[0]].id if parents else None
    triggers = dict.fromkeys(map(_parent_id, page.resources))
    children = [i for i, r in enumerate(page.resources) if _parent_id(r) == requested]
    leaves: dict[Kind, list[int]] = {}
    for index in children:
        resource = page.resources[index]
        if index not in chain and (folds_all or resource.id not in triggers):
            leaves.setdefault(resource.kind, []).append(index)
    for index in children:
        same_kind = leaves.get(page.resources[index].kind, [])
        if index not in same_kind or len(same_kind) < least:
            yield (index,)
        elif index == same_kind[0]:  # the group is in the place of its first member
            yield tuple(same_kind)


class PrioritizedElement(NamedTuple):
    """A stream, a placeholder, or a group of streams that the scheduler treats alike."""

    id: int | None
    parent: int | None
    """Index of another element, which precedes this one."""
    label: str
    state: str
    """ "waits" (it has bytes to send), "done" (all were sent), "idle" (it has no bytes yet), or
    "group"."""
    resource: int | None = None
    """Index in the page."""
    sent: float = 0.0
    """Share of its response that was sent."""


class _Stream(NamedTuple):
    resource: int
    ready_at_ns: int
    sent: list[tuple[int, int]]
    """Progress of sending, by time: (time in ns, highest offset)."""
    length_bytes: int

    def sent_share(self, at_ns: int) -> float:
        sent_bytes = max((end for sent_at_ns, end in self.sent if sent_at_ns <= at_ns), default=0)
        return sent_bytes / self.length_bytes if self.length_bytes else 1.0

    @property
    def done_at_ns(self) -> int:
        return self.sent[-1][0] if self.sent else self.ready_at_ns

    def state(self, at_ns: int) -> str:
        if at_ns < self.ready_at_ns:
            return "idle"
        return "waits" if at_ns < self.done_at_ns else "done"


def busiest_ns(load: Load) -> int:
    """Return the first instant at which most responses had bytes to send."""
    changes = [
        change
        for stream in _streams_of(load).values()
        for change in ((stream.ready_at_ns, 1), (stream.done_at_ns, -1))
    ]
    changes.sort()  # at equal times, ends (-1) precede starts (1)
    busiest_at_ns = n_waiting = max_waiting = 0
    for at_ns, change in changes:
        n_waiting += change
        if n_waiting > max_waiting:
            busiest_at_ns, max_waiting = at_ns, n_waiting
    return busiest_at_ns


def elements_of(load: Load, at_ns: int) -> list[PrioritizedElement]:
    """Return the state of the scheduler at *at_ns*, parents before their children.

    It is a dependency tree, without finished streams that have no unfinished descendants; or else
    the groups of streams in the order in which they are served, without finished streams.
    """
    streams = _streams_of(load)
    if load.scheme.mechanism.signal_kind is SignalKind.TREE:
        return list(_tree_elements(load, streams, at_ns))
    return _state_groups(load, streams, at_ns)


def _streams_of(load: Load) -> dict[int, _Stream]:
    resources = load.page.resources
    streams = {
        request.stream_id: _Stream(
            request.resource,
            request.arrived_at_ns + resources[request.resource].server_ns,
            [],
            request.length_bytes,
        )
        for request in load.trace.requests
    }
    for sent_at_ns, _, stream_id, offset, n_bytes, *_ in load.trace.packet_rows:
        sent, end = streams[stream_id].sent, offset + n_bytes
        # Retransmissions are no progress.
        if not sent or end > sent[-1][1]:
            sent.append((sent_at_ns, end))
    return streams


def _tree_elements(
    load: Load, streams: dict[int, _Stream], at_ns: int
) -> Iterator[PrioritizedElement]:
    """Yield the nodes of the dependency tree that are unfinished, or have such descendants."""
    graph: Any = _tree_at(load, streams, at_ns).to_networkx()
    pending = [
        node
        for node in graph
        if node == ROOT or node < 0 or node not in streams or streams[node].state(at_ns) != "done"
    ]
    retained = {*pending}.union(*(nx.ancestors(graph, node) for node in pending))
    waiting: list[tuple[Any, int | None]] = [(ROOT, None)]
    # Without recursion, as an exclusive chain may be as long as the page has resources.
    number = 0
    while waiting:
        node, parent = waiting.pop()
        yield _tree_element(graph, node, parent, streams, at_ns)
        below = [child for child in graph.successors(node) if child in retained]
        below.sort(key=lambda child: graph.nodes[child]["position"], reverse=True)
        waiting += [(child, number) for child in below]
        number += 1


def _tree_at(load: Load, streams: dict[int, _Stream], at_ns: int) -> TreeScheduler:
    """Return the tree after all signals and closed streams up to that instant."""
    scheduler = load.scheme.make_scheduler(turn_bytes=DEFAULT_TURN_BYTES)
    # For a user's scheduler without a visible tree, it is the one of RFC 7540 § 5.3.
    tree = scheduler if isinstance(scheduler, TreeScheduler) else TreeScheduler()
    retention_ns = load.scheme.resolved_retention_ns
    # At equal times, signals (0) precede the ends of streams (1).
    events: list[tuple[int, int, int, int, Signal | None]] = [
        (each.at_ns, 0, number, each.element_id, each.signal)
        for number, each in enumerate(load.trace.signals)
    ]
    events += [
        (stream.done_at_ns + retention_ns, 1, stream_id, stream_id, None)
        for stream_id, stream in streams.items()
    ]
    events.sort(key=lambda event: event[:3])
    is_open: dict[int, bool] = {}
    for now_ns, _, _, element_id, signal in events:
        if now_ns > at_ns:
            break
        if signal is None:
            if is_open.get(element_id):
                is_open[element_id] = False
                tree.close(element_id)
        elif element_id not in is_open:
            is_open[element_id] = True
            tree.open(element_id, signal)
        elif is_open[element_id]:
            tree.update(element_id, signal)
    return tree


def _tree_element(
    graph: Any, node: Any, parent: int | None, streams: dict[int, _Stream], at_ns: int
) -> PrioritizedElement:
    if node == ROOT:
        return PrioritizedElement(None, None, "root", "group")
    if node == ORPHANS:
        return PrioritizedElement(node, parent, "orphan placeholder", "group")
    weight = graph.nodes[node]["weight"]
    if node < 0:
        return PrioritizedElement(node, parent, f"placeholder {-1 - node}, w={weight}", "group")
    if node not in streams:
        return PrioritizedElement(node, parent, f"stream {node}, w={weight}", "idle")
    return _stream_element(node, parent, f"w={weight}", streams[node], at_ns)


def _stream_element(
    stream_id: int, parent: int | None, label: str, stream: _Stream, at_ns: int
) -> PrioritizedElement:
    state, share = stream.state(at_ns), stream.sent_share(at_ns)
    return PrioritizedElement(stream_id, parent, label, state, stream.resource, share)


def _state_groups(load: Load, streams: dict[int, _Stream], at_ns: int) -> list[PrioritizedElement]:
    """Return the groups, the first to be served first, each with its streams."""
    signals = {
        element_id: signal
        for signalled_ns, element_id, signal in load.trace.signals
        if signalled_ns <= at_ns and element_id >= 0
    }
    groups: dict[tuple[tuple[int, ...], str], list[int]] = {}
    for stream_id, signal in signals.items():
        if streams[stream_id].state(at_ns) != "done":
            groups.setdefault(_group_of_signal(signal), []).append(stream_id)
    label = f"scheduler: {load.scheme.mechanism.value}"
    found = [PrioritizedElement(None, None, label, "group")]
    for (_, label), members in sorted(groups.items()):
        parent = len(found)
        found.append(PrioritizedElement(None, 0, label, "group"))
        found += (
            _stream_element(
                stream_id, parent, _position_in_group(signals[stream_id]), streams[stream_id], at_ns
            )
            for stream_id in sorted(members)
        )
    return found


def _group_of_signal(signal: Signal) -> tuple[tuple[int, ...], str]:
    """Return the group of a stream: a sort key for the order of service, and its label."""
    match signal:
        case Eps():
            how = "incremental" if signal.incremental else "one by one"
            return (signal.urgency, signal.incremental), f"u={signal.urgency}, {how}"
        case BucketPriority():
            how = {3: "before all others", 2: "one by one", 1: "in turn"}[signal.level]
            label = f"bucket {signal.bucket}.{signal.level}, {how}"
            return (-signal.bucket, -signal.level), label
        case StrictPriority():
            return (-signal.strict,), f"strict {signal.strict}"
        case Rank():
            return (0,), "by rank"
    return (0,), "no priorities"


def _position_in_group(signal: Signal) -> str:
    """Return the label that distinguishes a stream from others of its group."""
    match signal:
        case StrictPriority():
            return f"w={signal.weight}"
        case Rank():
            return f"rank {signal.value}"
    return ""


_MAX_BOXES = 60
"""Most elements that are drawn; the number of others is shown."""
_FACE_BY_STATE = {"waits": "white", "done": "#e4e4e4", "idle": "white", "group": "#eef2f7"}
_DASHES_BY_STATE = {"waits": "-", "done": "-", "idle": ":", "group": "-"}
_STATE_DESCRIPTIONS = {"idle": "nothing to send yet", "done": "all sent"}
_TREE_GUIDE = "percent: what was sent of the response; grey: all sent; dotted: nothing to send yet"


class ElementBox(NamedTuple):
    """Box with an element, or several similar ones; *parent* is the index of another box."""

    elements: tuple[int, ...]
    parent: int | None
    text: str
    state: str
    resources: tuple[int, ...]


def boxes_of(page: Page, elements: Sequence[PrioritizedElement]) -> list[ElementBox]:
    """Return the boxes of *elements*, parents before their children."""
    parents = {element.parent for element in elements}
    found: list[ElementBox] = []
    box_of: dict[int | None, int | None] = {None: None}
    leaves: dict[object, list[int]] = {}
    for index, element in enumerate(elements):
        if element.resource is not None and index not in parents:
            leaves.setdefault(_sharing_key(page, element), []).append(index)
    for index, element in enumerate(elements):
        members = leaves.get(_sharing_key(page, element), [])
        if index not in members or len(members) < _MIN_FOLDED:
            members = [index]
        first, *_ = members
        if first != index:  # its box is that of an earlier element
            continue
        parent = box_of.get(element.parent)
        if len(found) == _MAX_BOXES:
            more = len(elements) - sum(len(box.elements) for box in found)
            found.append(ElementBox((), parent, f"{more} more below", "group", ()))
            break
        box_of[index] = len(found)
        text = _box_text(page, [elements[member] for member in members])
        resources = [elements[member].resource for member in members]
        shown = tuple(index for index in resources if index is not None)
        found.append(ElementBox(tuple(members), parent, text, element.state, shown))
    return found


def _sharing_key(page: Page, element: PrioritizedElement) -> tuple[object, ...]:
    """Return a key that is equal for elements that may share a box."""
    kind = None if element.resource is None else page.resources[element.resource].kind
    has_begun = element.state == "waits" and element.sent > 0
    return element.parent, element.label, element.state, kind, has_begun


def _box_text(page: Page, elements: Sequence[PrioritizedElement]) -> str:
    first = elements[0]
    resources = [page.resources[each.resource] for each in elements if each.resource is not None]
    if not resources:
        return plain(first.label)
    low, high = (pick(element.sent for element in elements) for pick in (min, max))
    share = f"{low:.0%}" if low == high else f"{low:.0%} to {high:.0%}"
    description = _STATE_DESCRIPTIONS.get(first.state, f"{share} sent")
    return f"{_box_name(resources)}\n{', '.join(filter(None, (first.label, description)))}"


def draw_tree(ax: Axes, found: Sequence[ElementBox], palette: Palette, title: str) -> None:
    """Draw the boxes from left to right, those that are served first at the top."""
    positions = positions_of([box.parent for box in found])
    for box, at in zip(found, positions, strict=True):
        if box.parent is not None:
            _draw_edge(ax, positions[box.parent], at)
        look = palette.look_of_all(box.resources)
        face, dashes = _FACE_BY_STATE[box.state], _DASHES_BY_STATE[box.state]
        _draw_box(ax, at, box.text, look, face=face, dashes=dashes)
    _finish(ax, positions, f"{title}\n{_TREE_GUIDE}")
