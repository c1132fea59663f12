"""The hosts of a recording, in each dialect that tells of them, worked out by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.cli import main
from h3sim.importers import import_page
from h3sim.importers.path_estimation import hosts_of
from h3sim.importers.recorded_request import ConnectionInfo, RecordedRequest
from tests.recordings import SITE, entry, har, write_recording
from validation.fact_table import facts_from_dict

if TYPE_CHECKING:
    from pathlib import Path

WWW, IMG, ADS = "www.shop.example", "img.shop.example", "ads.example"
NEAR, FAR = "192.0.2.1", "198.51.100.7"


def seen(host: str, **reached: Any) -> RecordedRequest:
    """Return a request over HTTP/2."""
    request = RecordedRequest(key="", url=f"https://{host}/", protocol="h2")
    request.reached = ConnectionInfo(**reached)
    return request


def groups(*requests: RecordedRequest) -> list[set[str]]:
    """Return which hosts share a connection, of those that share one."""
    names = [request.url.split("/")[2] for request in requests]
    found: dict[str, set[str]] = {}
    for host in hosts_of(requests, names, 0, rtt_ms=None).known:
        if host.certificate:
            found.setdefault(f"{host.certificate} {host.server}", set()).add(host.name)
    return list(found.values())


class TestWhoSharesAConnection:
    def test_hosts_that_were_seen_on_one_do(self) -> None:
        on = {"address": NEAR, "connection": "17"}
        assert groups(seen(WWW, **on), seen(IMG, **on)) == [{WWW, IMG}]

    def test_one_number_on_two_servers_is_two_connections(self) -> None:
        # Some recorders count the connections of each server by themselves.
        first = seen(WWW, address=NEAR, connection="1")
        assert groups(first, seen(ADS, address=FAR, connection="1")) == []

    def test_a_certificate_for_both_at_one_address_lets_them(self) -> None:
        for names in ((WWW, IMG), ("*.shop.example",), ("IMG.shop.example",)):
            first = seen(WWW, address=NEAR, certificate_names=names)
            assert groups(first, seen(IMG, address=NEAR)) == [{WWW, IMG}], names

    def test_equal_certificates_at_one_address_let_them(self) -> None:
        on = {"address": NEAR, "certificate": "CN=shop 2026 2027"}
        assert groups(seen(WWW, **on), seen(IMG, **on)) == [{WWW, IMG}]

    @pytest.mark.parametrize(
        "names",
        [("shop.example",), ("*.example",), ("*",), ("*.img.shop.example",), (WWW,), ()],
        ids=str,
    )
    def test_a_certificate_that_is_not_for_both_does_not(self, names: tuple[str, ...]) -> None:
        first = seen(WWW, address=NEAR, certificate_names=names)
        assert groups(first, seen(IMG, address=NEAR)) == []

    def test_another_address_or_none_does_not(self) -> None:
        for address in (FAR, ""):
            first = seen(WWW, address=NEAR, certificate_names=("*.shop.example",))
            assert groups(first, seen(IMG, address=address)) == []

    def test_a_port_of_its_own_is_another_origin(self) -> None:
        first = seen(WWW, address=NEAR, certificate_names=("*.shop.example",))
        assert groups(first, seen(f"{IMG}:8443", address=NEAR)) == []

    def test_what_was_seen_apart_stays_apart_whatever_would_be_allowed(self) -> None:
        allowed: dict[str, Any] = {"address": NEAR, "certificate_names": ("*.shop.example",)}
        apart = seen(WWW, connection="1", **allowed), seen(IMG, connection="2", **allowed)
        assert groups(*apart) == []

    def test_connections_of_http_1_have_no_information(self) -> None:
        allowed: dict[str, Any] = {"address": NEAR, "certificate_names": ("*.shop.example",)}
        apart = seen(WWW, connection="1", **allowed), seen(IMG, connection="2", **allowed)
        for request in apart:
            request.protocol = "http/1.1"
        assert groups(*apart) == [{WWW, IMG}]

    def test_addresses_are_equal_however_they_are_written(self) -> None:
        first = seen(WWW, address="[2001:db8::1]", certificate_names=(IMG,))
        assert groups(first, seen(IMG, address="2001:DB8:0::1")) == [{WWW, IMG}]


def from_hosts(*, protocol: str = "h2", **of_image: Any) -> Any:
    """Return a HAR of a page, and of an image that another host has."""
    image = entry(
        f"https://{ADS}/a.png", 120, 60, mime="image/png", response_httpVersion=protocol, **of_image
    )
    return har(entry("/", 0, 100, mime="text/html", response_httpVersion=protocol), image)


def timings(dns: float, connect: float, ssl: float) -> dict[str, float]:
    return {"blocked": 0, "dns": dns, "connect": connect, "ssl": ssl, "send": 0, "wait": 10,
            "receive": 20}  # fmt: skip


class TestAHar:
    def test_another_host_has_its_own_time_there_and_back(self, tmp_path: Path) -> None:
        document = from_hosts(timings=timings(15, 90, 60), serverIPAddress=FAR)
        document["log"]["entries"][0]["timings"] = timings(33, 50, 30)
        page = import_page(write_recording(tmp_path, document)).page
        assert [resource.host for resource in page.resources] == ["shop.example", ADS]
        # The page's own host is as far as the network is, and known when the load begins.
        assert [(host.name, host.rtt_ns, host.dns_ns) for host in page.hosts] == [
            (ADS, 30_000_000, 15_000_000)
        ]
        assert page.hosts[0].server == FAR

    @pytest.mark.parametrize("name", ["connection", "_connectionId", "_socket"])
    def test_a_connection_has_a_number(self, tmp_path: Path, name: str) -> None:
        document = from_hosts(serverIPAddress=NEAR)
        document["log"]["entries"][0] |= {"serverIPAddress": NEAR, name: "71"}
        document["log"]["entries"][1][name] = 71
        page = import_page(write_recording(tmp_path, document)).page
        assert {host.certificate for host in page.hosts} == {"shop.example"}

    def test_the_port_of_a_server_is_no_number_of_a_connection(self, tmp_path: Path) -> None:
        # Firefox and Chrome write it there.
        document = from_hosts(serverIPAddress=NEAR, connection="443")
        document["log"]["entries"][0] |= {"serverIPAddress": NEAR, "connection": "443"}
        page = import_page(write_recording(tmp_path, document)).page
        assert {host.certificate for host in page.hosts} == {""}

    def test_a_certificate_stands_with_the_entry_or_the_response(self, tmp_path: Path) -> None:
        for where in ("entry", "response"):
            document = from_hosts(serverIPAddress=NEAR)
            first = document["log"]["entries"][0]
            first["serverIPAddress"] = NEAR
            at = first if where == "entry" else first["response"]
            at["_securityDetails"] = {"subjectName": "shop.example", "sanList": [ADS]}
            page = import_page(write_recording(tmp_path, document)).page
            assert {host.certificate for host in page.hosts} == {"shop.example"}

    def test_a_page_of_one_host_lists_no_hosts(self, tmp_path: Path) -> None:
        document = har(entry("/", 0, 100, mime="text/html", serverIPAddress=NEAR,
                             timings=timings(15, 90, 60)))  # fmt: skip
        page = import_page(write_recording(tmp_path, document)).page
        assert page.hosts == ()
        assert page.resources[0].host == ""

    def test_the_requests_to_one_host_alone_have_no_information_of_hosts(
        self, tmp_path: Path
    ) -> None:
        path = write_recording(tmp_path, from_hosts(serverIPAddress=FAR))
        page = import_page(path, host="shop.example").page
        assert page.hosts == ()
        assert page.resources[0].host == ""

    def test_what_is_no_address_is_left_out(self, tmp_path: Path) -> None:
        page = import_page(write_recording(tmp_path, from_hosts(serverIPAddress="SECRET"))).page
        assert "SECRET" not in page.to_json()


def events(number: str, url: str, at_s: float, type_: str, **answer: Any) -> list[Any]:
    """Return the events of a request of 1,000 bytes that takes 100 ms."""
    answer = {"status": 200, "mimeType": "", "headers": {}, "encodedDataLength": 150} | answer
    base = {"requestId": number, "type": type_}
    asked = {"url": url, "method": "GET", "headers": {}}
    return [
        {"method": f"Network.{method}", "params": {**base, "timestamp": at_s + after_s, **more}}
        for method, after_s, more in (
            ("requestWillBeSent", 0, {"request": asked}),
            ("responseReceived", 0.06, {"response": answer}),
            ("loadingFinished", 0.1, {"encodedDataLength": 1150}),
        )
    ]


def test_a_log_of_devtools_reports_connection_certificate_and_times(tmp_path: Path) -> None:
    names = {"subjectName": "shop.example", "sanList": ["shop.example", "*.shop.example"],
             "issuer": "CA", "validFrom": 1, "validTo": 2}  # fmt: skip
    timing = {"requestTime": 5.1, "dnsStart": 1, "dnsEnd": 13, "connectStart": 13,
              "sslStart": 53, "connectEnd": 93, "sendEnd": 94, "receiveHeadersEnd": 99}  # fmt: skip
    near: dict[str, Any] = {"remoteIPAddress": NEAR, "protocol": "h2"}
    log = [
        *events("1", f"{SITE}/", 5.0, "Document", connectionId=9, securityDetails=names, **near),
        *events("2", "https://img.shop.example/a", 5.2, "Image", connectionId=9, **near),
        *events("3", "https://font.shop.example/f", 5.2, "Font", connectionId=0, **near),
        *events("4", f"https://{ADS}/b", 5.2, "Image", connectionId=12, remoteIPAddress=FAR,
                protocol="h3", timing=timing),
    ]  # fmt: skip
    page = import_page(write_recording(tmp_path, log, "log.json")).page
    # The font came over no connection (0), but from that address, with that certificate.
    assert [(host.name, host.certificate, host.server) for host in page.hosts] == [
        ("shop.example", "shop.example", NEAR),
        ("img.shop.example", "shop.example", NEAR),
        ("font.shop.example", "shop.example", NEAR),
        (ADS, "", FAR),
    ]
    assert (page.hosts[3].rtt_ns, page.hosts[3].dns_ns) == (40_000_000, 12_000_000)


def test_a_table_of_facts_keeps_that_hosts_differ_and_not_their_names() -> None:
    row = {"type": "image", "body_bytes": 10, "start_ms": 9, "end_ms": 12, "first_byte_ms": 11}
    rows = [
        {**row, "id": "r0", "parent": None, "type": "html", "start_ms": 0, "host": "SECRET"},
        {**row, "id": "r1", "parent": "r0", "host": "SECRET too"},
        {**row, "id": "r2", "parent": "r0"},
    ]
    page = facts_from_dict({"name": "f", "resources": rows}).page
    assert [resource.host for resource in page.resources] == ["host-1", "host-2", ""]
    assert "SECRET" not in page.to_json()


def test_a_recording_runs_over_the_connections_that_it_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = from_hosts(timings=timings(15, 90, 60), response_bodySize=40_000)
    document["log"]["entries"][0]["timings"] = timings(0, 50, 30)
    path = str(write_recording(tmp_path, document))
    assert main(["run", path, "--connections", "per-host", "--network", "fibre"]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", ADS, "30.0"] in [row[:3] for row in rows]
    assert main(["run", path, "--network", "fibre"]) == 0
    usual = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1", ADS, "30.0"] in [row[:3] for row in usual]
    assert main(["run", path, "--network", "fibre", "--connections", "single"]) == 0
    note = "share one connection here: with connections = per-host they have 2"
    assert note in " ".join(capsys.readouterr().out.split())
    advised = ["recommend", path, "--seeds", "1", "--scheme", "rr,fifo"]
    assert main([*advised, "--set", "connections=single"]) == 0
    assert note in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("transport", ["quic", "tcp"])
def test_one_host_as_recorded_is_todays_load_byte_for_byte(tmp_path: Path, transport: Any) -> None:
    image = entry("/a.png", 120, 60, mime="image/png", response_bodySize=90_000,
                  timings=timings(15, 90, 60), serverIPAddress=NEAR)  # fmt: skip
    path = write_recording(tmp_path, har(entry("/", 0, 100, mime="text/html"), image))
    page = h3sim.importers.read_har(path)
    options: Any = {"network": "sander-2mbps-100ms-2pct", "transport": transport}
    as_one = h3sim.simulate(page, **options)
    as_recorded = h3sim.simulate(page, connections="per-host", **options)
    assert as_recorded.trace == as_one.trace
    assert as_recorded.trace.digest() == as_one.trace.digest()
