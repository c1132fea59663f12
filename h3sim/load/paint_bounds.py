"""Lower bounds on the paints of a page: no order of bytes can paint it sooner over this link.

A bound follows from the page's dependency graph, the rules of the browser and the link, and from
nothing that a server or a scheme decides. So it holds for every load of the page with the same
browser, network, handshake and CPU, whatever their schemes. Three facts are relaxed.

1. The link carries at most its rate, and a burst on top. Slow start, loss, queues, limits of
   concurrent requests, and handshakes with hosts other than the page's are left out: they only
   delay.
2. Bytes are useful from a time on (their *head*), and a milestone follows the last of them after a
   time (their *tail*). A head is the time at which a byte can arrive if everything that leads to
   its request had link and main thread to itself. A tail is what must happen after it: parsing,
   running and laying out, and requests with their round trips and bytes, each alone.
3. A set of bytes that all must arrive before a milestone takes its least head, its length on the
   link, and its least tail. The greatest such sum over all sets is the makespan of Jackson's
   preemptive schedule, which always sends what has the longest tail (Carlier 1982).

The SpeedIndex is an average over paints, so it is at least the average of their bounds. And it is
at least its value in the best schedule of the following relaxation: the first paint comes at its
bound f, and the bytes it needs are sent as early as possible. A part of an image that is shown with
a byte that arrives at c costs its share times max(0, c - (f - frame)). The least sum of these costs
is that of always sending the densest available part (exchange two bytes in any other schedule: the
sum does not rise). A later first paint raises the sum: each nanosecond costs 1, and saves at most
the share of images that it makes free. Finally, a part of an image that is shown only once it is
complete takes half its length on the link longer than its mean byte; the sum of these halves is
least if the parts sent after f have equal products of density and length, and this sum is added.

Both bounds of the SpeedIndex hold, and the greater is used. `validation/paint_bounds.py` compares
all bounds with the best of every order on small pages, and with the shipped schemes on the corpus.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from heapq import heappop, heappush
from typing import TYPE_CHECKING, NamedTuple

from h3sim.browser import BrowserMode, PaintMode
from h3sim.browser.document import DocumentParser, Styles, references, scripts_in_order
from h3sim.browser.requests import LAYOUT_KINDS, is_lazy
from h3sim.load.painting import BLOCK_PERIOD_NS, PICTURES, painted_share
from h3sim.page import Kind, TriggerEvent
from h3sim.transport.tcp.records import HEADER_BYTES as TCP_HEADER_BYTES
from h3sim.values.constants import IP_HEADER_BYTES
from h3sim.values.units import BITS_PER_BYTE, NS_PER_S, ms, to_ms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from h3sim.load.milestones import WithMilestones
    from h3sim.page import Page, Resource


_ROUNDING_NS = 100
"""Subtracted from each bound: events fall on whole nanoseconds, and each may be rounded down."""


class Transmission(NamedTuple):
    """Bytes that must all arrive before a milestone."""

    head_ns: int
    """Earliest time at which the link can send them."""
    length_ns: int
    """Time that they take on the link."""
    tail_ns: int
    """Least time from their arrival to the milestone."""


class _LinkJob(NamedTuple):
    """Something that the link sends, and can interrupt; the least *key* goes first."""

    release_ns: int
    length_ns: int
    key: float


class _SentPiece(NamedTuple):
    """A piece of a job that the link sends without interruption."""

    begin_ns: int
    end_ns: int
    key: float
    completes_job: bool


def _preemptive_schedule(jobs: Iterable[_LinkJob], begins_ns: int) -> Iterator[_SentPiece]:
    """Yield the pieces in which the link, free from *begins_ns* on, sends *jobs*.

    It always sends the released job with the least key, and interrupts it for a lesser one,
    whatever the packets are: a relaxation of what a server could do, so the result is a bound.
    """
    by_release = sorted(jobs)
    ready: list[tuple[float, int]] = []  # a heap of keys and remaining lengths
    now_ns, n_released = begins_ns, 0
    while ready or n_released < len(by_release):
        if not ready:
            now_ns = max(now_ns, by_release[n_released].release_ns)
        while n_released < len(by_release) and by_release[n_released].release_ns <= now_ns:
            job = by_release[n_released]
            heappush(ready, (job.key, job.length_ns))
            n_released += 1
        key, length_ns = heappop(ready)
        until_ns = now_ns + length_ns
        completes_job = (
            n_released == len(by_release) or by_release[n_released].release_ns >= until_ns
        )
        if not completes_job:
            until_ns = by_release[n_released].release_ns
            heappush(ready, (key, length_ns - (until_ns - now_ns)))
        yield _SentPiece(now_ns, until_ns, key, completes_job)
        now_ns = until_ns


def preemptive_makespan_ns(transmissions: Iterable[Transmission]) -> int:
    """Return the least time at which all have been sent and their tails have passed.

    Among those whose head has passed, the longest tail goes first (Jackson's preemptive schedule).

    >>> preemptive_makespan_ns([Transmission(0, 10, 0), Transmission(4, 2, 20)])
    26
    >>> preemptive_makespan_ns([])
    0
    """
    jobs = [_LinkJob(head_ns, length_ns, -tail_ns) for head_ns, length_ns, tail_ns in transmissions]
    pieces = _preemptive_schedule(jobs, min((job.release_ns for job in jobs), default=0))
    # The key of a job is its negative tail.
    milestones_ns = (int(piece.end_ns - piece.key) for piece in pieces if piece.completes_job)
    return max((0, *milestones_ns))


class Increment(NamedTuple):
    """A *share* of the viewport that is shown once its bytes have been sent."""

    head_ns: int
    """Earliest time at which the link can send them."""
    length_ns: int
    """Time that they take on the link."""
    share: float


def least_delay_ns(increments: Sequence[Increment], *, begins_ns: int, free_until_ns: int) -> float:
    """Return the least sum, over all schedules, of share times time after *free_until_ns*.

    The link sends increments from *begins_ns* on. The docstring of this module has the proof.

    >>> two = [Increment(0, 10, 0.5), Increment(0, 20, 0.5)]
    >>> least_delay_ns(two, begins_ns=0, free_until_ns=0)  # 0.5 * 10 + 0.5 * 30
    20.0
    >>> least_delay_ns(two, begins_ns=0, free_until_ns=30)
    0.0
    """
    mean_bytes_ns = _mean_lateness_ns(increments, begins_ns, free_until_ns)
    return mean_bytes_ns + _half_lengths_ns(increments, max(0, free_until_ns - begins_ns))


def _mean_lateness_ns(increments: Sequence[Increment], begins_ns: int, free_until_ns: int) -> float:
    """Return the part of the sum that is due to the mean byte of each increment."""
    jobs = (
        _LinkJob(head_ns, length_ns, -share / length_ns)  # the densest first
        for head_ns, length_ns, share in increments
        if length_ns and share
    )
    lateness_ns = 0.0
    for piece in _preemptive_schedule(jobs, begins_ns):
        late_from_ns = max(piece.begin_ns, free_until_ns)
        if piece.end_ns > late_from_ns:
            density, length_ns = -piece.key, piece.end_ns - late_from_ns
            mean_ns = (late_from_ns + piece.end_ns) / 2
            lateness_ns += density * length_ns * (mean_ns - free_until_ns)
    return lateness_ns


def _half_lengths_ns(increments: Iterable[Increment], free_ns: int) -> float:
    """Return the least sum of density * (late length)² / 2 over all increments.

    *free_ns* of their total length on the link are not late.
    """
    sent = [each for each in increments if each.length_ns and each.share]
    # In the minimum, the product of density and late length is equal (the *level*) for all
    # increments that are late in part; those whose share is below it are late altogether. So they
    # are taken by rising share.
    sent.sort(key=lambda each: each.share)
    late_ns = float(sum(each.length_ns for each in sent) - free_ns)
    if late_ns <= 0:
        return 0.0
    inverse_density_ns = sum(each.length_ns / each.share for each in sent)
    total_ns = 0.0
    for each in sent:
        level = late_ns / inverse_density_ns if inverse_density_ns > 0 else each.share
        late_part = min(1.0, level / each.share)
        total_ns += each.share * late_part * late_part * each.length_ns / 2
        late_ns -= late_part * each.length_ns
        inverse_density_ns -= each.length_ns / each.share
    return total_ns


class _Channel(NamedTuple):
    """The downlink: links with a rate, or packets at a constant rate.

    At a constant rate a packet of *packet_bytes* leaves at each multiple of *interval_ns*, and the
    credit is one packet: it is complete at the tick at which it leaves.
    """

    ns_per_byte: float
    credit_ns: int
    """Length of the bytes that may arrive at once, without taking time on the link."""
    packet_bytes: int | None = None
    """None over links."""
    interval_ns: Fraction = Fraction(1)

    @classmethod
    def of(cls, load: WithMilestones) -> _Channel:
        rate, down = load.spec.network.constant_rate, load.spec.network.down
        if rate is not None:
            interval_ns = rate.interval_ns
            return cls(0.0, -int(-interval_ns // 1), rate.packet_bytes, interval_ns)
        if down is None or down.rate_bps is None:  # a rate that changes does not bound anything
            return cls(0.0, 0)
        wire_ns_per_byte = BITS_PER_BYTE * NS_PER_S / down.rate_bps
        payload_bytes, packet_bytes = _packet_sizes(load)
        wire_bytes_per_byte = (packet_bytes + down.frame_overhead_bytes) / payload_bytes
        credit_ns = round(wire_ns_per_byte * down.burst_bytes) + 1
        return cls(wire_ns_per_byte * wire_bytes_per_byte, credit_ns)

    def length_ns(self, n_bytes: int) -> int:
        """Return the time that *n_bytes* of a stream take on the link."""
        if self.packet_bytes is None:
            return int(n_bytes * self.ns_per_byte)
        # A response without bytes takes a packet, too.
        return int(max(1, -(-n_bytes // self.packet_bytes)) * self.interval_ns)

    def alone_ns(self, n_bytes: int) -> int:
        """Return the time from the first possible arrival to that of all bytes on an idle link."""
        return max(0, self.length_ns(n_bytes) - self.credit_ns)

    def departure_ns(self, ready_ns: int) -> int:
        """Return the earliest departure of a response that is ready at *ready_ns*."""
        if self.packet_bytes is None:
            return ready_ns
        return int(max(1, -(-ready_ns // self.interval_ns)) * self.interval_ns)


def _packet_sizes(load: WithMilestones) -> tuple[int, int]:
    """Return the stream bytes in a full packet, and the size of that packet with its IP header."""
    profile = load.spec.link_profile
    if load.spec.protocol.is_over_tcp:
        mss_bytes = profile.tcp.mss_bytes
        return mss_bytes, mss_bytes + TCP_HEADER_BYTES + IP_HEADER_BYTES
    quic = profile.quic
    return quic.datagram_bytes - quic.header_bytes, quic.datagram_bytes + quic.ip_bytes


class _Demand(NamedTuple):
    """The first *n_bytes* of a stream must have arrived *tail_ns* before the milestone."""

    n_bytes: int
    tail_ns: int


_Demands = dict[int, list[_Demand]]
"""The demands of a milestone by resource."""


class _Bounds:
    """The bounds of one page with one browser over one link, as this module derives them."""

    def __init__(self, load: WithMilestones) -> None:
        self._page = page = load.spec.page
        self._load = load
        self._channel = _Channel.of(load)
        self._slowdown = load.spec.browser.cpu_slowdown
        browser = load.spec.browser
        self._paint_mode = browser.paint
        self._commit_ns = ms(browser.commit_ms * browser.cpu_slowdown)
        self._frame_ns = ms(browser.paint_ms * browser.cpu_slowdown)
        # What a page knows of its first paint replaces the usual frame; scripts that it waited for
        # only delay it.
        cause = page.first_paint
        self._delay_ns = 0 if cause is None else cause.delay_ns
        """The time from the layout to the first paint."""
        self._paint_ns = self._frame_ns
        if cause is not None:
            self._paint_ns = round(cause.work_ns * self._slowdown) + self._delay_ns
        self._counts_headers = load.spec.header_compression is None
        self._latency_ns, self._requestable_ns = self._paths()
        self._parents_first = _parents_first(page)
        self._parser = DocumentParser(page, cost_ns=self._cost_ns(page.root))
        self._first_paint_demands = self._of_first_paint()
        self._requested_ns, self._first_byte_ns = self._heads(0)
        self.first_paint_ns = self._makespan_ns(self._first_paint_demands)
        # Again, now that the first paint is bounded: some requests wait for a layout, which comes
        # with it.
        self._laid_out_ns = self.first_paint_ns - self._delay_ns
        self._requested_ns, self._first_byte_ns = self._heads(self._laid_out_ns)

    def largest_paint_ns(self) -> int:
        """Return the bound of the largest paint, as `h3sim.metrics.largest_paint_ns` defines it."""
        resources = [*enumerate(self._page.resources)]
        heroes = [self._hero_ns(index, each) for index, each in resources if each.hero]
        shares = [each.viewport or 0 for _, each in resources if each.kind in PICTURES]
        largest_share = max(shares, default=0)
        if heroes:
            return max(self.first_paint_ns, *heroes)
        if not largest_share:
            return self.first_paint_ns
        # Of several that are equally large, the first one to be complete counts.
        return min(
            self._shown_ns(index, each.size_bytes)
            for index, each in resources
            if each.kind in PICTURES and each.viewport == largest_share
        )

    def speed_index_ns(self) -> float | None:
        """Return the bound of the SpeedIndex; None if no element has a share."""
        steps = [
            (index, n_bytes, share)
            for index, each in enumerate(self._page.resources)
            for n_bytes, share in _shares_by_bytes(each, self._paint_mode)
        ]
        covered = sum(share for _, _, share in steps)
        total = max(1.0, covered + self._font_text_share)
        if not covered:
            return None
        paint_ns = self.first_paint_ns
        # First bound: the average of the bounds of all paints. Second: the relaxation in which
        # images share the link.
        each_alone = sum(share * self._shown_ns(index, n) for index, n, share in steps)
        each_alone += (total - covered) * paint_ns
        together = total * paint_ns + self._lateness_ns(steps)
        return max(each_alone, together) / total

    @property
    def _font_text_share(self) -> float:
        """The share of the viewport with text in web fonts, which can appear with the first paint.

        With complete paints such shares are not part of the SpeedIndex.
        """
        if self._paint_mode is PaintMode.COMPLETE:
            return 0.0
        fonts = (each for each in self._page.resources if each.kind is Kind.FONT)
        return sum(float(each.viewport or 0) for each in fonts)

    def _lateness_ns(self, steps: Iterable[tuple[int, int, float]]) -> float:
        """Return the least sum of share times time after the first paint.

        *steps* are a resource, a number of bytes of its body, and the share that these add.
        """
        length_ns, credit_ns = self._channel.length_ns, self._channel.credit_ns
        length_so_far_ns: dict[int, int] = {}
        increments = []
        for index, n_bytes, share in steps:
            head_ns = self._first_byte_ns[index] - credit_ns
            until_ns = length_ns(self._bytes(index, n_bytes))
            added_ns = until_ns - length_so_far_ns.get(index, 0)
            increments.append(Increment(head_ns, added_ns, share))
            length_so_far_ns[index] = until_ns
        of_first_paint = self._transmissions(self._first_paint_demands)
        begins_ns = min(each.head_ns for each in of_first_paint)
        return least_delay_ns(
            increments,
            # The bytes that the first paint needs are sent first.
            begins_ns=begins_ns + sum(each.length_ns for each in of_first_paint),
            free_until_ns=self.first_paint_ns - self._frame_ns,
        )

    def _hero_ns(self, index: int, resource: Resource) -> int:
        """Return the bound of the paint of an element marked as the largest: picture or text."""
        if resource.kind in PICTURES:
            return self._shown_ns(index, resource.size_bytes)
        if resource.kind is not Kind.FONT or not resource.font_display.hides_text:
            return self.first_paint_ns
        with_font_ns = self._shown_ns(index, resource.size_bytes)
        return min(with_font_ns, self._requested_ns[index] + BLOCK_PERIOD_NS + self._frame_ns)

    def _shown_ns(self, index: int, n_bytes: int) -> int:
        """Return the bound of the paint that shows the first *n_bytes* of a resource's body."""
        own = {index: [_Demand(self._bytes(index, n_bytes), self._frame_ns)]}
        demands, after_paint_ns = self._with_ancestors(own)
        # The layout precedes this paint, by the time that follows it, and so does the first paint.
        added_ns = max(0, after_paint_ns - self._delay_ns)
        for other, entries in self._first_paint_demands.items():
            later = [entry._replace(tail_ns=entry.tail_ns + added_ns) for entry in entries]
            demands[other] = [*demands.get(other, ()), *later]
        return max(self.first_paint_ns + added_ns, self._makespan_ns(demands))

    # The first paint

    def _of_first_paint(self) -> _Demands:
        """Return the demands of the first paint; each tail lasts until the end of its frame."""
        page, parser = self._page, self._parser
        root, styles = page.resources[page.root], Styles(page)
        ordered_scripts = scripts_in_order(page)
        head_bytes = min(parser.head_bytes + 1, root.size_bytes)
        demands: _Demands = defaultdict(list)
        tail_ns, main_thread_ns = self._paint_ns, self._parse_ns(head_bytes)
        for offset, index in reversed(references(page)):
            resource, cost_ns = page.resources[index], self._cost_ns(index)
            blocks_parser = index in ordered_scripts and not resource.is_deferred
            if resource.kind is Kind.STYLESHEET and offset <= parser.head_bytes + 1:
                if styles.blocks(index):
                    main_thread_ns += cost_ns
                    self._add_sheet(demands, styles, index, tail_ns)
            elif blocks_parser and offset <= parser.head_bytes:
                # This script, later ones and the rest of the head must run or be parsed before the
                # paint. Scripts wait for the stylesheets before them, which come next in this loop
                # and so get tails that are at least as long.
                run_ns = sum(
                    self._cost_ns(other)
                    for other_offset, other in references(page)
                    if (other_offset, other) >= (offset, index)
                    and other_offset <= parser.head_bytes
                    and other in ordered_scripts
                    and not page.resources[other].is_deferred
                )
                parse_ns = self._parse_ns(head_bytes) - self._parse_ns(offset)
                tail_ns = self._paint_ns + run_ns + parse_ns
                main_thread_ns += cost_ns
                demands[index].append(_Demand(self._bytes(index), tail_ns))
        header_bytes = self._bytes(page.root, 0)
        demands[page.root] += [
            _Demand(header_bytes + head_bytes, self._paint_ns),
            # The first byte of the body precedes the commit, all that the main thread does before
            # the paint, and the frame.
            _Demand(
                n_bytes=min(header_bytes + 1, self._bytes(page.root)),
                tail_ns=self._commit_ns + main_thread_ns + self._paint_ns,
            ),
        ]
        demands, _ = self._with_ancestors(demands)
        return demands

    def _add_sheet(self, demands: _Demands, styles: Styles, index: int, tail_ns: int) -> None:
        """Add a stylesheet and its imports: all must be parsed before the tail."""
        for sheet in styles.with_imports(index):
            demands[sheet].append(_Demand(self._bytes(sheet), self._cost_ns(sheet) + tail_ns))

    def _parse_ns(self, n_bytes: int) -> int:
        """Return the time to parse *n_bytes* of the document."""
        size_bytes = self._page.resources[self._page.root].size_bytes
        return self._cost_ns(self._page.root) * n_bytes // size_bytes if size_bytes else 0

    # Heads and tails

    def _heads(self, painted_ns: int) -> tuple[list[int], list[int]]:
        """Return when each resource can be requested, and when its first byte can arrive.

        The first paint comes no sooner than *painted_ns*.
        """
        first_byte_ns = [0] * len(self._page.resources)
        requested_ns = [0] * len(self._page.resources)
        for index in self._parents_first:
            discovery = self._page.resources[index].discovered
            if discovery is None or discovery.at is TriggerEvent.TIME:
                is_timer = discovery is not None and not discovery.or_else
                at_ns = max(0, discovery.delay_ns) if discovery and is_timer else 0
            else:
                parents = _necessary_parents(self._page, index)
                is_with_parents = parents and discovery.at is TriggerEvent.REQUEST
                at_ns = max(requested_ns[each] for each in parents) if is_with_parents else 0
                for parent, n_bytes, delay_ns in self._triggers(index):
                    arrived_ns = first_byte_ns[parent] + self._channel.alone_ns(n_bytes)
                    at_ns = max(at_ns, arrived_ns + delay_ns)
            if self._waits_for_layout(index):
                at_ns = max(at_ns, painted_ns)
            requested_ns[index] = max(at_ns, self._requestable_ns[index])
            down_ns = self._down_ns(index)
            ready_ns = requested_ns[index] + self._latency_ns[index] - down_ns
            first_byte_ns[index] = self._channel.departure_ns(ready_ns) + down_ns
        return requested_ns, first_byte_ns

    def _with_ancestors(self, demands: Mapping[int, Sequence[_Demand]]) -> tuple[_Demands, int]:
        """Return the demands with those on all ancestors, and the least time after the first paint.

        The latter is 0 unless a request waits for the layout that comes with the first paint.
        """
        result: _Demands = {index: [*entries] for index, entries in demands.items()}
        # Tails from the request for a resource on, if that alone triggers others.
        request_tails_ns: dict[int, int] = {}
        after_paint_ns = 0
        for index in reversed(self._parents_first):
            discovery = self._page.resources[index].discovered
            # The longest time from the request for this resource to the milestone.
            tails_ns = [
                self._latency_ns[index] + self._channel.alone_ns(n_bytes) + tail_ns
                for n_bytes, tail_ns in result.get(index, ())
            ]
            if index in request_tails_ns:
                tails_ns.append(request_tails_ns[index])
            if not tails_ns:
                continue
            tail_ns = max(tails_ns)
            if self._waits_for_layout(index):
                after_paint_ns = max(after_paint_ns, tail_ns)
            if discovery is not None and discovery.at is TriggerEvent.REQUEST:
                for parent in _necessary_parents(self._page, index):
                    request_tails_ns[parent] = max(tail_ns, request_tails_ns.get(parent, tail_ns))
            for parent, n_bytes, delay_ns in self._triggers(index):
                result.setdefault(parent, []).append(_Demand(n_bytes, delay_ns + tail_ns))
        return result, after_paint_ns

    def _makespan_ns(self, demands: Mapping[int, Sequence[_Demand]]) -> int:
        return preemptive_makespan_ns(self._transmissions(demands))

    def _transmissions(self, demands: Mapping[int, Sequence[_Demand]]) -> list[Transmission]:
        """Return the demanded bytes of each stream, cut where the tails change."""
        transmissions = []
        for index, entries in demands.items():
            head_ns = self._first_byte_ns[index] - self._channel.credit_ns
            tail_by_length: dict[int, int] = {}
            for n_bytes, tail_ns in entries:
                length_ns = self._channel.length_ns(n_bytes)
                tail_by_length[length_ns] = max(tail_ns, tail_by_length.get(length_ns, tail_ns))
            tail_ns, cuts_ns = 0, sorted(tail_by_length, reverse=True)
            for end_ns, begin_ns in zip(cuts_ns, [*cuts_ns[1:], 0], strict=True):
                tail_ns = max(tail_ns, tail_by_length[end_ns])
                transmissions.append(Transmission(head_ns, end_ns - begin_ns, tail_ns))
                # The bytes before are followed by these, and then by their tail.
                tail_ns += end_ns - begin_ns
        return transmissions

    def _triggers(self, index: int) -> Iterator[tuple[int, int, int]]:
        """Yield the conditions of a request: a parent, bytes of it, and a time after they arrive.

        A request with alternatives has none: it need not wait for any one of them.
        """
        for parent in _necessary_parents(self._page, index):
            for n_bytes, delay_ns in self._conditions(index, parent):
                yield parent, n_bytes, delay_ns

    def _conditions(self, index: int, parent_index: int) -> Iterator[tuple[int, int]]:
        """Yield the conditions of a request on one of its parents."""
        page, discovery = self._page, self._page.resources[index].discovered
        if discovery is None:
            return
        parent, cost_ns = page.resources[parent_index], self._cost_ns(parent_index)
        all_bytes, delay_ns = self._bytes(parent_index), discovery.delay_ns
        is_in_sheet = parent.kind is Kind.STYLESHEET
        needs_layout = page.resources[index].kind in LAYOUT_KINDS
        after_commit_ns = 0
        match discovery.at:
            case TriggerEvent.OFFSET if is_in_sheet and needs_layout:
                yield all_bytes, cost_ns
            case TriggerEvent.OFFSET:
                is_frame = parent.kind is Kind.DOCUMENT and parent_index != page.root
                offset_bytes = self._bytes(parent_index, discovery.offset_bytes or 0)
                yield offset_bytes, self._commit_ns if is_frame else 0
            case TriggerEvent.COMPLETE | TriggerEvent.EXECUTED if is_in_sheet:
                yield all_bytes, cost_ns
            case TriggerEvent.COMPLETE:
                after_commit_ns = delay_ns
                yield all_bytes, delay_ns
            case TriggerEvent.EXECUTED if parent_index == page.root:
                after_commit_ns = cost_ns
                yield all_bytes, 0
            case TriggerEvent.EXECUTED:
                yield all_bytes, cost_ns + delay_ns
            case _:
                return
        if parent_index == page.root:
            # The browser reads the document once its navigation is committed, which takes time
            # from the first byte of the body on.
            first_bytes = min(self._bytes(parent_index, 0) + 1, all_bytes)
            yield first_bytes, self._commit_ns + after_commit_ns

    def _waits_for_layout(self, index: int) -> bool:
        """Return whether the request for a resource waits for a layout."""
        resource = self._page.resources[index]
        discovery, parents = resource.discovered, _necessary_parents(self._page, index)
        if discovery is None or not parents:
            return False
        needs_layout = resource.kind in LAYOUT_KINDS and any(
            self._page.resources[parent].kind is Kind.STYLESHEET for parent in parents
        )
        return is_lazy(resource) or (needs_layout and discovery.at is not TriggerEvent.REQUEST)

    def _bytes(self, index: int, body_bytes: int | None = None) -> int:
        """Return the bytes of a stream up to *body_bytes* of the body, or all of them."""
        resource = self._page.resources[index]
        body_bytes = resource.size_bytes if body_bytes is None else body_bytes
        # Compressed headers may be shorter than those of the page, so they are not counted.
        return body_bytes + (resource.header_bytes if self._counts_headers else 0)

    def _cost_ns(self, index: int) -> int:
        resource = self._page.resources[index]
        return round((resource.parse_ns + resource.execute_ns) * self._slowdown)

    def _paths(self) -> tuple[list[int], list[int]]:
        """Return the latency of each resource, and the earliest time of its request."""
        network, resources = self._load.spec.network, self._page.resources
        latency_ns = [network.rtt_ns + each.server_ns for each in resources]
        requestable_ns = [0] * len(resources)
        for connection in self._load.connections:
            requests = [request.resource for request in connection.trace.requests]
            is_of_page = self._page.root in requests
            for index in requests:
                latency_ns[index] = connection.rtt_ns + resources[index].server_ns
                # Other connections are opened by requests, whose times differ between schemes.
                requestable_ns[index] = connection.ready_at_ns if is_of_page else 0
        return latency_ns, requestable_ns

    def _down_ns(self, index: int) -> int:
        """Return the one-way delay from the server of a resource."""
        return (self._latency_ns[index] - self._page.resources[index].server_ns) // 2


_N_PIECES_OF_IMAGE = 16
"""The number of pieces into which an image is divided that is painted as it loads."""


def _shares_by_bytes(resource: Resource, paint: PaintMode) -> Iterator[tuple[int, float]]:
    """Yield the steps in which an element appears: bytes of its body, and the share they add.

    For an image that is painted as it loads, the share of a whole piece counts from the first byte
    of the piece on, which is never later than a browser paints it.
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
    painted = 0.0
    for piece in range(_N_PIECES_OF_IMAGE):
        begin = size_bytes * piece // _N_PIECES_OF_IMAGE
        end = size_bytes * (piece + 1) // _N_PIECES_OF_IMAGE
        painted_at_end = float(painted_share(image_format, end, size_bytes))
        if painted_at_end > painted:
            yield max(begin, 1), share * (painted_at_end - painted)
            painted = painted_at_end


def _parents_first(page: Page) -> list[int]:
    """Return the resources in an order in which each follows the one that triggers it."""
    n_missing: list[int] = []
    children: dict[int, list[int]] = {}
    for index in range(len(page.resources)):
        parents = _necessary_parents(page, index)
        n_missing.append(len(parents))
        for parent in parents:
            children.setdefault(parent, []).append(index)
    order = [index for index, n in enumerate(n_missing) if not n]
    for index in order:
        for child in children.get(index, ()):
            n_missing[child] -= 1
            if not n_missing[child]:
                order.append(child)
    return order


def _necessary_parents(page: Page, index: int) -> tuple[int, ...]:
    """Return the resources without which another cannot be requested; none with alternatives.

    A module has not run before all that it imports has arrived.
    """
    discovery = page.resources[index].discovered
    if discovery is None or discovery.or_else:
        return ()
    parents = [page.index[by] for by in discovery.waits_for]
    if discovery.at is TriggerEvent.EXECUTED:
        graphs = page.module_graphs
        parents = [each for parent in parents for each in graphs.get(parent, (parent,))]
    return tuple(dict.fromkeys(parents))


class PaintBounds(NamedTuple):
    """Lower bounds on the paints of a page in ms, and the ratios of this load's paints to them.

    Values are None if the load has no such paint.
    """

    first_paint_ms: float | None
    largest_paint_ms: float | None
    speed_index_ms: float | None
    first_paint_ratio: float | None
    largest_paint_ratio: float | None
    speed_index_ratio: float | None


def paint_bounds(load: WithMilestones) -> PaintBounds | None:
    """Return the bounds of a load; None unless the browser computed it, from a single document."""
    page = load.spec.page
    is_document = len(page.roots) == 1 and page.resources[page.root].kind is Kind.DOCUMENT
    if load.spec.browser.mode is not BrowserMode.PARSE or not is_document:
        return None
    bounds = _Bounds(load)
    values_ms = (load.first_paint_ms, load.largest_paint_ms, load.speed_index_ms)
    bounds_ns = (
        bounds.first_paint_ns,
        None if load.largest_paint_ms is None else bounds.largest_paint_ns(),
        None if load.speed_index_ms is None else bounds.speed_index_ns(),
    )
    bounds_ms = [
        None if value is None or bound is None else max(0.0, to_ms(int(bound) - _ROUNDING_NS))
        for value, bound in zip(values_ms, bounds_ns, strict=True)
    ]
    ratios = [
        value / bound if value is not None and bound else None
        for value, bound in zip(values_ms, bounds_ms, strict=True)
    ]
    return PaintBounds(*bounds_ms, *ratios)
