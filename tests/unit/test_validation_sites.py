"""Sites of packages: their list and parts, the link's queue, SpeedIndex and the measurements."""

from __future__ import annotations

import base64
import io
import re
from collections import Counter, defaultdict

from PIL import Image

from h3sim.transport import LinkProfile
from h3sim.values.units import mbps, ms
from validation.http2_site import Order
from validation.sites.errors import CALIBRATION, measured_times
from validation.sites.link import LINKS, Direction
from validation.sites.load import speed_index
from validation.sites.measuring import N_LOADS, measurements
from validation.sites.packages import Part, all_sites
from validation.two_orders import change, rows_measured


class TestList:
    def test_names_are_unique_and_hashes_whole(self) -> None:
        sites = all_sites()
        assert len({site.name for site in sites}) == len(sites)
        assert all(re.fullmatch("[0-9a-f]{64}", site.sha256) for site in sites)

    def test_all_sites_of_a_package_are_in_one_part(self) -> None:
        parts = defaultdict(set)
        for site in all_sites():
            parts[site.package].add(site.part)
        assert all(len(found) == 1 for found in parts.values())
        assert set.union(*parts.values()) == set(Part)


class TestMeasurements:
    def test_each_is_of_a_listed_site_and_link(self) -> None:
        names = {site.name for site in all_sites()}
        for each in measurements():
            assert each.site in names
            assert each.link in LINKS
            assert 0 <= each.load <= N_LOADS

    def test_no_first_paint_is_earlier_than_four_round_trips(self) -> None:
        # TCP, TLS and the request take three; the navigation starts before them.
        for (_, link, metric), times in measured_times().items():
            if metric == "fcp":
                assert times.median_ms * 1e6 >= 3 * LINKS[link].rtt_ns

    def test_the_calibration_names_the_links(self) -> None:
        assert all(f'"{link}"' in CALIBRATION.read_text("utf-8") for link in LINKS)


class TestOrders:
    def test_each_site_to_develop_on_is_measured_as_often_under_either_order(self) -> None:
        names = {site.name for site in all_sites() if site.part == Part.DEVELOP}
        counts = Counter((row["site"], row["order"]) for row in rows_measured())
        assert {site for site, _ in counts} <= names
        assert {order for _, order in counts} == {Order.PRIORITY, Order.TURNS}
        assert len(set(counts.values())) == 1

    def test_a_change_is_that_of_the_medians(self) -> None:
        times = {"priority": {"fcp_ms": 200.0}, "turns": {"fcp_ms": 250.0}}
        assert change(times, "fcp_ms") == 25.0


class TestDirection:
    def test_a_packet_arrives_after_its_transmission_and_the_delay(self) -> None:
        way = Direction(LinkProfile(rate_bps=mbps(12), queue_bytes=4000), ms(10))
        way.take(bytes(1500), 0)
        way.take(bytes(1500), 0)
        assert way.next_at_ns == ms(11)

    def test_a_full_queue_drops_and_an_idle_one_never_does(self) -> None:
        way = Direction(LinkProfile(rate_bps=mbps(12), queue_bytes=2000), 0)
        assert [way.take(bytes(1500), now_ns) for now_ns in (0, 0, ms(1))] == [True, False, True]


class TestSpeedIndex:
    def test_it_is_the_integral_of_what_is_not_yet_painted(self) -> None:
        trace = [
            {"name": "navigationStart", "ts": 1_000_000},
            _frame(999_000, 0),
            _frame(1_100_000, 5),
            _frame(1_300_000, 10),
        ]
        # 100 ms with nothing, 200 ms with half of it.
        assert speed_index(trace) == {"speed_index_ms": 200.0}


def _frame(at_us: int, n_black_rows: int) -> dict[str, object]:
    image = Image.new("RGB", (10, 10), "white")
    image.paste("black", (0, 0, 10, n_black_rows))
    file = io.BytesIO()
    image.save(file, "PNG")
    snapshot = base64.b64encode(file.getvalue()).decode()
    return {"name": "Screenshot", "ts": at_us, "args": {"snapshot": snapshot}}
