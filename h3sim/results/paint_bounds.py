"""Lower bounds on the paints of a page: no order of bytes can paint it sooner over this link.

A bound follows from the page's dependency graph, the rules of the browser and the link, and from
nothing that a server or a scheme decides. So it holds for every load of the page with the same
browser, network, handshake and CPU, whatever their schemes. Three facts are relaxed.

1. The link carries at most its rate, and a burst on top. Slow start, loss, queues, limits of
   concurrent requests and handshakes with other hosts than the page's only delay.
2. Bytes are useful from a time on (their *head*), and a milestone follows the last of them after a
   time (their *tail*). A head is the time at which a byte can arrive if everything that leads to
   its request had link and main thread to itself. A tail is what must happen after it: parsing,
   running and laying out, and requests with their round trips and bytes, each alone.
3. A set of bytes that all must arrive before a milestone takes its least head, its length on the
   link, and its least tail. The greatest such sum over all sets is the makespan of Jackson's
   preemptive schedule, which always sends what has the longest tail (Carlier 1982).

The SpeedIndex is an average over paints, so it is at least the average of their bounds. And it is
at least its value in the best schedule of the following relaxation: the first paint comes at its
bound f, and what it needs is sent as early as possible. What an image shows with a byte that is
there at c costs its share times max(0, c - (f - frame)). The least sum of these costs is that of
sending the densest of what is available (exchange two bytes in any other schedule: the sum does
not rise). A later first paint raises the sum: each nanosecond costs 1, and saves at most the share
of images that it makes free. Last, a part of an image that shows only once it is complete takes
half its length on the link longer than its mean byte; the sum of these halves is least if those
sent behind f have equal products of density and length, which is added.

Both bounds of the SpeedIndex hold, and the greater is taken. `validation/paint_bounds.py` compares
all with the best of every order on small pages, and with the shipped schemes on the corpus.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from h3sim.browser import BrowserMode, PaintMode
from h3sim.browser.document import DocumentParser, Styles, references, scripts_in_order
from h3sim.browser.requests import LAYOUT_KINDS, is_lazy
from h3sim.constants import IP_HEADER_BYTES
from h3sim.page import Kind, TriggerEvent
from h3sim.results.painting import BLOCK_PERIOD_NS, PICTURES, painted_share
from h3sim.transport.tcp.records import HEADER_BYTES as TCP_HEADER_BYTES
from h3sim.units import BITS_PER_BYTE, NS_PER_S, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.page import Page, Resource
    from h3sim.results.load import Load


_ROUNDING_NS = 100
"""Taken off each bound: events fall on whole nanoseconds, and each may be rounded down."""


class Transmission(NamedTuple):
    """Bytes that take *length_ns* of the link, from *head_ns* on, and *tail_ns* before the end."""

    head_ns: int
    length_ns: int
    tail_ns: int


def _preemptive_schedule(
    jobs: Iterable[tuple[int, int, float]], begins_ns: int
) -> Iterator[tuple[int, int, float, bool]]:
    """Yield the pieces in which the link sends *jobs*: of those released, the least key goes first.

    Jobs are times of release, lengths and keys; pieces are begin, end and key, and whether the job
    is complete. The link is free from *begins_ns* on.
    """
    order = sorted(jobs)
    ready: list[tuple[float, int]] = []
    now_ns, n_released = begins_ns, 0
    while ready or n_released < len(order):
        if not ready:
            now_ns = max(now_ns, order[n_released][0])
        while n_released < len(order) and order[n_released][0] <= now_ns:
            _, length_ns, key = order[n_released]
            heappush(ready, (key, length_ns))
            n_released += 1
        key, length_ns = heappop(ready)
        until_ns = now_ns + length_ns
        is_complete = n_released == len(order) or order[n_released][0] >= until_ns
        if not is_complete:
            until_ns = order[n_released][0]
            heappush(ready, (key, length_ns - (until_ns - now_ns)))
        yield now_ns, until_ns, key, is_complete
        now_ns = until_ns


def preemptive_makespan_ns(transmissions: Iterable[Transmission]) -> int:
    """Return the least time at which all are sent and their tails are over.

    The longest tail among those whose head has passed goes first (Jackson's preemptive schedule).

    >>> preemptive_makespan_ns([Transmission(0, 10, 0), Transmission(4, 2, 20)])
    26
    >>> preemptive_makespan_ns([])
    0
    """
    jobs = [(head_ns, length_ns, -tail_ns) for head_ns, length_ns, tail_ns in transmissions]
    pieces = _preemptive_schedule(jobs, min((job[0] for job in jobs), default=0))
    ends_ns = (int(end_ns - key) for _, end_ns, key, is_complete in pieces if is_complete)
    return max((0, *ends_ns))


class Increment(NamedTuple):
    """A *share* of the viewport, which shows after *length_ns* of the link from *head_ns* on."""

    head_ns: int
    length_ns: int
    share: float


def least_delay_ns(increments: Sequence[Increment], *, begins_ns: int, free_until_ns: int) -> float:
    """Return the least sum of share times lateness behind *free_until_ns*, of any schedule.

    The link sends increments from *begins_ns* on. See this module for the proof.

    >>> two = [Increment(0, 10, 0.5), Increment(0, 20, 0.5)]
    >>> least_delay_ns(two, begins_ns=0, free_until_ns=0)  # 0.5 * 10 + 0.5 * 30
    20.0
    >>> least_delay_ns(two, begins_ns=0, free_until_ns=30)
    0.0
    """
    late = _mean_lateness_ns(increments, begins_ns, free_until_ns)
    return late + _half_lengths_ns(increments, max(0, free_until_ns - begins_ns))


def _mean_lateness_ns(increments: Sequence[Increment], begins_ns: int, free_until_ns: int) -> float:
    """Return the part of the sum that is due to the mean byte of each increment."""
    # The density is that of the complete increment, and does not change as it is sent.
    jobs = (
        (head_ns, length_ns, -share / length_ns)
        for head_ns, length_ns, share in increments
        if length_ns and share
    )
    late = 0.0
    for begin_ns, end_ns, density, _ in _preemptive_schedule(jobs, begins_ns):
        from_ns = max(begin_ns, free_until_ns)
        if end_ns > from_ns:
            late -= density * (end_ns - from_ns) * ((from_ns + end_ns) / 2 - free_until_ns)
    return late


def _half_lengths_ns(increments: Iterable[Increment], free_ns: int) -> float:
    """Return the least sum of share/length * late length squared / 2 with *free_ns* not late."""
    some = [each for each in increments if each.length_ns and each.share]
    # The product of density and late length is equal for all that are not late altogether; those
    # for which it would be greater than their share are late altogether.
    some.sort(key=lambda each: each.share)
    late_ns = float(sum(each.length_ns for each in some) - free_ns)
    if late_ns <= 0:
        return 0.0
    slack = sum(each.length_ns / each.share for each in some)
    total = 0.0
    for each in some:
        level = late_ns / slack if slack > 0 else each.share
        part = min(1.0, level / each.share)
        total += each.share * part * part * each.length_ns / 2
        late_ns -= part * each.length_ns
        slack -= each.length_ns / each.share
    return total


class _Channel(NamedTuple):
    """The downlink: a byte takes *ns_per_byte*, and *credit_ns* of them may come at once.

    At a constant rate a packet of *packet_bytes* leaves at each multiple of *interval_ns*, and the
    credit is one packet: it is complete at the tick at which it leaves.
    """

    ns_per_byte: float
    credit_ns: int
    packet_bytes: int | None = None
    interval_ns: Fraction = Fraction(1)

    @classmethod
    def of(cls, load: Load) -> _Channel:
        rate, down = load.network.constant_rate, load.network.down
        if rate is not None:
            interval_ns = rate.interval_ns
            return cls(0.0, -int(-interval_ns // 1), rate.packet_bytes, interval_ns)
        if down is None or down.rate_bps is None:  # the rate of a trace changes: none is assumed
            return cls(0.0, 0)
        wire_ns = BITS_PER_BYTE * NS_PER_S / down.rate_bps
        payload_bytes, packet_bytes = _packet_sizes(load)
        per_byte = (packet_bytes + down.frame_overhead_bytes) / payload_bytes
        return cls(wire_ns * per_byte, round(wire_ns * down.burst_bytes) + 1)

    def length_ns(self, n_bytes: int) -> int:
        """Return the time that the link needs for so many bytes of a stream."""
        if self.packet_bytes is None:
            return int(n_bytes * self.ns_per_byte)
        # A response without bytes takes a packet, too.
        return int(max(1, -(-n_bytes // self.packet_bytes)) * self.interval_ns)

    def alone_ns(self, n_bytes: int) -> int:
        """Return how long after the first possible byte so many are there, if nothing else is."""
        return max(0, self.length_ns(n_bytes) - self.credit_ns)

    def first_ns(self, ready_ns: int) -> int:
        """Return when what is ready at *ready_ns* may leave."""
        if self.packet_bytes is None:
            return ready_ns
        return int(max(1, -(-ready_ns // self.interval_ns)) * self.interval_ns)


def _packet_sizes(load: Load) -> tuple[int, int]:
    """Return the most stream bytes of a packet, and its size with the IP header."""
    profile = load.spec.link_profile
    if load.protocol.is_over_tcp:
        mss_bytes = profile.tcp.mss_bytes
        return mss_bytes, mss_bytes + TCP_HEADER_BYTES + IP_HEADER_BYTES
    quic = profile.quic
    return quic.datagram_bytes - quic.header_bytes, quic.datagram_bytes + quic.ip_bytes


class _Demand(NamedTuple):
    """The first *n_bytes* of a stream must be there *tail_ns* before the milestone."""

    n_bytes: int
    tail_ns: int


_Demands = dict[int, list[_Demand]]


class _Bounds:
    """The bounds of one page with one browser over one link; see this module."""

    def __init__(self, load: Load) -> None:
        self._page = page = load.page
        self._load = load
        self._channel = _Channel.of(load)
        self._slowdown = load.spec.browser.cpu_slowdown
        browser = load.spec.browser
        self._paint = browser.paint
        self._commit_ns = ms(browser.commit_ms * browser.cpu_slowdown)
        self._frame_ns = ms(browser.paint_ms * browser.cpu_slowdown)
        self._has_headers = load.spec.header_compression is None
        self._latency_ns, self._begins_ns = self._paths()
        self._order = _parents_first(page)
        self._parser = DocumentParser(page, cost_ns=self._cost_ns(page.root))
        self._paint_demands = self._of_first_paint()
        self._asked_ns, self._first_ns = self._heads(0)
        self.first_paint_ns = self._makespan_ns(self._paint_demands)
        # Some requests wait for a layout, which comes with the first paint.
        self._asked_ns, self._first_ns = self._heads(self.first_paint_ns)

    def largest_paint_ns(self) -> int:
        """Return the bound of the largest paint, as `h3sim.metrics.largest_paint_ns` defines it."""
        elements = [*enumerate(self._page.resources)]
        heroes = [self._hero_ns(index, each) for index, each in elements if each.hero]
        shares = [each.viewport or 0 for each in self._page.resources if each.kind in PICTURES]
        largest = max(shares, default=0)
        if heroes:
            return max(self.first_paint_ns, *heroes)
        if not largest:
            return self.first_paint_ns
        # Of several that are equally large, the one that is there first counts.
        return min(
            self._shown_ns(index, each.size_bytes)
            for index, each in elements
            if each.kind in PICTURES and each.viewport == largest
        )

    def speed_index_ns(self) -> float | None:
        """Return the bound of the SpeedIndex; None if no element has a share."""
        steps = [
            (index, n_bytes, share)
            for index, each in enumerate(self._page.resources)
            for n_bytes, share in _shown_with(each, self._paint)
        ]
        covered = sum(share for _, _, share in steps)
        scale = max(1.0, covered + self._text_of_fonts)
        if not covered:
            return None
        paint_ns = self.first_paint_ns
        each_alone = sum(share * self._shown_ns(index, n) for index, n, share in steps)
        each_alone += (scale - covered) * paint_ns
        together = scale * paint_ns + self._lateness_ns(steps)
        return max(each_alone, together) / scale

    @property
    def _text_of_fonts(self) -> float:
        """The share of the viewport with text of web fonts, which appears with the first paint.

        Where paint is complete, such shares do not count.
        """
        if self._paint is PaintMode.COMPLETE:
            return 0.0
        fonts = (each for each in self._page.resources if each.kind is Kind.FONT)
        return sum(float(each.viewport or 0) for each in fonts)

    def _lateness_ns(self, steps: Iterable[tuple[int, int, float]]) -> float:
        """Return how late the shares come together behind the first paint, at least."""
        length_ns, credit_ns = self._channel.length_ns, self._channel.credit_ns
        sent: dict[int, int] = {}
        increments = []
        for index, n_bytes, share in steps:
            head_ns = self._first_ns[index] - credit_ns
            until_ns = length_ns(self._bytes(index, n_bytes))
            increments.append(Increment(head_ns, until_ns - sent.get(index, 0), share))
            sent[index] = until_ns
        before = self._transmissions(self._paint_demands)
        begins_ns = min(each.head_ns for each in before)
        return least_delay_ns(
            increments,
            # What the first paint needs comes before: it is there when that is painted.
            begins_ns=begins_ns + sum(each.length_ns for each in before),
            free_until_ns=self.first_paint_ns - self._frame_ns,
        )

    def _hero_ns(self, index: int, resource: Resource) -> int:
        if resource.kind in PICTURES:
            return self._shown_ns(index, resource.size_bytes)
        if resource.kind is not Kind.FONT or not resource.font_display.hides_text:
            return self.first_paint_ns
        with_font_ns = self._shown_ns(index, resource.size_bytes)
        return min(with_font_ns, self._asked_ns[index] + BLOCK_PERIOD_NS + self._frame_ns)

    def _shown_ns(self, index: int, n_bytes: int) -> int:
        """Return the bound of the paint that shows so many bytes of a resource."""
        own = {index: [_Demand(self._bytes(index, n_bytes), self._frame_ns)]}
        demands, after_paint_ns = self._spread(own)
        for other, entries in self._paint_demands.items():
            later = [entry._replace(tail_ns=entry.tail_ns + after_paint_ns) for entry in entries]
            demands[other] = [*demands.get(other, ()), *later]
        return max(self.first_paint_ns + after_paint_ns, self._makespan_ns(demands))

    # The first paint

    def _of_first_paint(self) -> _Demands:
        """Return the demands of the first paint; each tail lasts until the end of its frame."""
        page, parser = self._page, self._parser
        root, styles, in_order = page.resources[page.root], Styles(page), scripts_in_order(page)
        head_bytes = min(parser.head_bytes + 1, root.size_bytes)
        demands: _Demands = defaultdict(list)
        tail_ns, main_thread_ns = self._frame_ns, self._parse_ns(head_bytes)
        for offset, index in reversed(references(page)):
            resource, cost_ns = page.resources[index], self._cost_ns(index)
            if resource.kind is Kind.STYLESHEET and offset <= parser.head_bytes + 1:
                if styles.blocks(index):
                    main_thread_ns += cost_ns
                    self._add_sheet(demands, styles, index, tail_ns)
            elif index in in_order and not resource.is_defer and offset <= parser.head_bytes:
                # Later scripts and the rest of the head are still to come. A script runs only
                # after the stylesheets before it, so their tails are at least as long.
                run_ns = sum(
                    self._cost_ns(other)
                    for at, other in references(page)
                    if (at, other) >= (offset, index)
                    and at <= parser.head_bytes
                    and other in in_order
                    and not page.resources[other].is_defer
                )
                parse_ns = self._parse_ns(head_bytes) - self._parse_ns(offset)
                tail_ns = self._frame_ns + run_ns + parse_ns
                main_thread_ns += cost_ns
                demands[index].append(_Demand(self._bytes(index), tail_ns))
        header_bytes = self._bytes(page.root, 0)
        demands[page.root] += [
            _Demand(header_bytes + head_bytes, self._frame_ns),
            # From the first byte of the body on: the commit, all that the main thread does before
            # the paint, and the frame.
            _Demand(
                n_bytes=min(header_bytes + 1, self._bytes(page.root)),
                tail_ns=self._commit_ns + main_thread_ns + self._frame_ns,
            ),
        ]
        return self._spread(demands)[0]

    def _add_sheet(self, demands: _Demands, styles: Styles, index: int, tail_ns: int) -> None:
        """Add a stylesheet and its imports: all must be parsed before the tail."""
        waiting = [index]
        while waiting:
            sheet = waiting.pop()
            demands[sheet].append(_Demand(self._bytes(sheet), self._cost_ns(sheet) + tail_ns))
            waiting += styles.imports(sheet)

    def _parse_ns(self, n_bytes: int) -> int:
        """Return the time to parse so many bytes of the document."""
        size_bytes = self._page.resources[self._page.root].size_bytes
        return self._cost_ns(self._page.root) * n_bytes // size_bytes if size_bytes else 0

    # Heads and tails

    def _heads(self, painted_ns: int) -> tuple[list[int], list[int]]:
        """Return when each resource can be requested, and when its first byte can arrive.

        The first paint comes no sooner than *painted_ns*.
        """
        first_ns = [0] * len(self._page.resources)
        asked_ns = [0] * len(self._page.resources)
        for index in self._order:
            discovery = self._page.resources[index].discovered
            if discovery is None or discovery.at is TriggerEvent.TIME:
                at_ns = 0 if discovery is None else max(0, discovery.delay_ns)
            else:
                parent = self._page.index[discovery.by or ""]
                at_ns = asked_ns[parent] if discovery.at is TriggerEvent.REQUEST else 0
                for n_bytes, delay_ns in self._triggers(index):
                    arrived_ns = first_ns[parent] + self._channel.alone_ns(n_bytes)
                    at_ns = max(at_ns, arrived_ns + delay_ns)
            if self._waits_for_layout(index):
                at_ns = max(at_ns, painted_ns)
            asked_ns[index] = max(at_ns, self._begins_ns[index])
            down_ns = self._down_ns(index)
            ready_ns = asked_ns[index] + self._latency_ns[index] - down_ns
            first_ns[index] = self._channel.first_ns(ready_ns) + down_ns
        return asked_ns, first_ns

    def _spread(self, demands: Mapping[int, Sequence[_Demand]]) -> tuple[_Demands, int]:
        """Return the demands with those on all ancestors, and what follows the first paint."""
        found: _Demands = {index: [*entries] for index, entries in demands.items()}
        asked_ns: dict[int, int] = {}
        after_paint_ns = 0
        for index in reversed(self._order):
            discovery = self._page.resources[index].discovered
            if index not in found and index not in asked_ns:
                continue
            tails = [
                self._latency_ns[index] + self._channel.alone_ns(n_bytes) + tail_ns
                for n_bytes, tail_ns in found.get(index, ())
            ]
            tail_ns = max([*tails, *([asked_ns[index]] if index in asked_ns else ())])
            if self._waits_for_layout(index):
                after_paint_ns = max(after_paint_ns, tail_ns)
            if discovery is None or discovery.by is None or discovery.at is TriggerEvent.TIME:
                continue
            parent = self._page.index[discovery.by]
            if discovery.at is TriggerEvent.REQUEST:
                asked_ns[parent] = max(tail_ns, asked_ns.get(parent, tail_ns))
            for n_bytes, delay_ns in self._triggers(index):
                found.setdefault(parent, []).append(_Demand(n_bytes, delay_ns + tail_ns))
        return found, after_paint_ns

    def _makespan_ns(self, demands: Mapping[int, Sequence[_Demand]]) -> int:
        return preemptive_makespan_ns(self._transmissions(demands))

    def _transmissions(self, demands: Mapping[int, Sequence[_Demand]]) -> list[Transmission]:
        """Return the streams, cut where the tails change."""
        found = []
        for index, entries in demands.items():
            head_ns = self._first_ns[index] - self._channel.credit_ns
            by_length: dict[int, int] = {}
            for n_bytes, tail_ns in entries:
                length_ns = self._channel.length_ns(n_bytes)
                by_length[length_ns] = max(tail_ns, by_length.get(length_ns, tail_ns))
            tail_ns, cuts = 0, sorted(by_length, reverse=True)
            for end_ns, next_ns in zip(cuts, [*cuts[1:], 0], strict=True):
                tail_ns = max(tail_ns, by_length[end_ns])
                found.append(Transmission(head_ns, end_ns - next_ns, tail_ns))
                # What comes before it on the stream waits for it, too.
                tail_ns += end_ns - next_ns
        return found

    def _triggers(self, index: int) -> Iterator[tuple[int, int]]:
        """Yield what a request waits for: bytes of its parent, and the time behind them."""
        page, discovery = self._page, self._page.resources[index].discovered
        if discovery is None or discovery.by is None:
            return
        parent = page.index[discovery.by]
        by, cost_ns = page.resources[parent], self._cost_ns(parent)
        at_end, delay_ns = self._bytes(parent), discovery.delay_ns
        is_of_sheet = by.kind is Kind.STYLESHEET
        is_of_layout = page.resources[index].kind in LAYOUT_KINDS
        committed_ns = 0
        match discovery.at:
            case TriggerEvent.OFFSET if is_of_sheet and is_of_layout:
                yield at_end, cost_ns
            case TriggerEvent.OFFSET:
                is_frame = by.kind is Kind.DOCUMENT and parent != page.root
                offset_bytes = self._bytes(parent, discovery.offset_bytes or 0)
                yield offset_bytes, self._commit_ns if is_frame else 0
            case TriggerEvent.COMPLETE | TriggerEvent.EXECUTED if is_of_sheet:
                yield at_end, cost_ns
            case TriggerEvent.COMPLETE:
                committed_ns = delay_ns
                yield at_end, delay_ns
            case TriggerEvent.EXECUTED if parent == page.root:
                committed_ns = cost_ns
                yield at_end, 0
            case TriggerEvent.EXECUTED:
                yield at_end, cost_ns + delay_ns
            case _:
                return
        if parent == page.root:
            # The browser reads the document once it is committed.
            first_bytes = min(self._bytes(parent, 0) + 1, at_end)
            yield first_bytes, self._commit_ns + committed_ns

    def _waits_for_layout(self, index: int) -> bool:
        """Return whether a resource is requested once there is a layout, or later."""
        resource = self._page.resources[index]
        discovery = resource.discovered
        if discovery is None or discovery.by is None or discovery.at is TriggerEvent.TIME:
            return False
        is_of_sheet = self._page.resources[self._page.index[discovery.by]].kind is Kind.STYLESHEET
        is_of_layout = is_of_sheet and resource.kind in LAYOUT_KINDS
        return is_lazy(resource) or (is_of_layout and discovery.at is not TriggerEvent.REQUEST)

    def _bytes(self, index: int, body_bytes: int | None = None) -> int:
        """Return the stream bytes up to so many of the body, or all."""
        resource = self._page.resources[index]
        body_bytes = resource.size_bytes if body_bytes is None else body_bytes
        # Compressed headers may be shorter than those of the page.
        return body_bytes + (resource.header_bytes if self._has_headers else 0)

    def _cost_ns(self, index: int) -> int:
        resource = self._page.resources[index]
        return round((resource.parse_ns + resource.execute_ns) * self._slowdown)

    def _paths(self) -> tuple[list[int], list[int]]:
        """Return the latency of each resource, and when it may be requested at the earliest."""
        network, resources = self._load.network, self._page.resources
        latency_ns = [network.rtt_ns + each.server_ns for each in resources]
        begins_ns = [0] * len(resources)
        for connection in self._load.connections:
            requests = [request.resource for request in connection.trace.requests]
            is_own = self._page.root in requests
            for index in requests:
                latency_ns[index] = connection.rtt_ns + resources[index].server_ns
                # That others are ready depends on what asked for them.
                begins_ns[index] = connection.ready_at_ns if is_own else 0
        return latency_ns, begins_ns

    def _down_ns(self, index: int) -> int:
        return (self._latency_ns[index] - self._page.resources[index].server_ns) // 2


_N_PIECES = 16
"""So many pieces stand for the bytes of an image that is painted as it loads."""


def _shown_with(resource: Resource, paint: PaintMode) -> Iterator[tuple[int, float]]:
    """Yield the shares of the viewport that an element adds, each with the bytes that it needs.

    Of an image that is painted as it loads, what the end of a piece shows counts from the first
    byte of the piece on: that is never later than a browser paints it.
    """
    if resource.kind not in PICTURES or not resource.viewport:
        return
    share, size_bytes = float(resource.viewport), resource.size_bytes
    image_format = resource.painted_format
    is_gradual = (
        paint is PaintMode.PROGRESSIVE
        and resource.kind is Kind.IMAGE
        and size_bytes > 1
        and painted_share(image_format, size_bytes - 1, size_bytes) > 0
    )
    if not is_gradual:
        yield size_bytes, share
        return
    shown = 0.0
    for piece in range(_N_PIECES):
        begin, end = (size_bytes * at // _N_PIECES for at in (piece, piece + 1))
        # A scan may be painted less complete than the one before it.
        until = max(shown, float(painted_share(image_format, end, size_bytes)))
        if until > shown:
            yield max(begin, 1), share * (until - shown)
            shown = until


def _parents_first(page: Page) -> list[int]:
    """Return the resources in an order in which each follows the one that triggers it."""
    order = [
        index
        for index, resource in enumerate(page.resources)
        if resource.discovered is None
        or resource.discovered.by is None
        or resource.discovered.at is TriggerEvent.TIME
    ]
    for index in order:
        order += (child for child in page.children.get(index, ()) if child not in order)
    return order


class PaintBounds(NamedTuple):
    """Lower bounds on the paints of a page, in ms, and how many times later this load painted.

    Values are None where the load has no such paint.
    """

    first_paint_ms: float | None
    largest_paint_ms: float | None
    speed_index_ms: float | None
    first_paint_ratio: float | None
    largest_paint_ratio: float | None
    speed_index_ratio: float | None


def paint_bounds(load: Load) -> PaintBounds | None:
    """Return the bounds of a load; None unless the browser computed it, from a single document."""
    page = load.page
    is_document = len(page.roots) == 1 and page.resources[page.root].kind is Kind.DOCUMENT
    if load.spec.browser.mode is not BrowserMode.PARSE or not is_document:
        return None
    bounds = _Bounds(load)
    values = (load.first_paint_ms, load.largest_paint_ms, load.speed_index_ms)
    least_ns = (
        bounds.first_paint_ns,
        None if load.largest_paint_ms is None else bounds.largest_paint_ns(),
        None if load.speed_index_ms is None else bounds.speed_index_ns(),
    )
    found = [
        None if value is None or bound is None else max(0.0, to_ms(int(bound) - _ROUNDING_NS))
        for value, bound in zip(values, least_ns, strict=True)
    ]
    ratios = [
        value / bound if value is not None and bound else None
        for value, bound in zip(values, found, strict=True)
    ]
    return PaintBounds(*found, *ratios)
