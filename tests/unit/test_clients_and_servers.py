"""Clients and servers as halves of schemes: any client before any server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import catalog
from h3sim.cli import main
from h3sim.page import Discovery, Kind, Resource, ResourceState, TriggerEvent
from h3sim.schemes import Reads, SchedulerKind
from h3sim.schemes.halves import client_from_toml, client_of, server_from_toml, server_of
from h3sim.signals import Signalling
from h3sim.values.errors import InputError, SchemeError, UnknownNameError

if TYPE_CHECKING:
    from pathlib import Path

PAGE = "davies-meenan"
CLIENTS = [client.name for client in catalog.list_clients()]
SERVERS = [server.name for server in catalog.list_servers()]
MINE = """
format = "h3sim-client/1"
name = "mine"
title = "Stylesheets first"
version = "1"
date = "2026-11"
source = "this test"
otherwise = "rest"

[eps.classes.first]
urgency = 1
[eps.classes.rest]
urgency = 6
incremental = true

[tree.classes.one]
of = ["first", "rest"]
weight = 99

[[rules]]
kind = "stylesheet"
class = "first"
"""


LATER = Discovery(at=TriggerEvent.TIME, delay_ns=1)
"""Otherwise it would begin the page."""


def resource(kind: Kind, **flags: Any) -> Resource:
    return Resource(id="x", kind=kind, size_bytes=1000, discovered=LATER, **flags)


def pair(client: str, server: str) -> Any:
    return h3sim.load_scheme(f"{client} before {server}")


@pytest.mark.parametrize("server", SERVERS)
def test_a_new_client_stands_before_every_server(tmp_path: Path, server: str) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(MINE, "utf-8")
    load = h3sim.simulate(PAGE, client=path, server=server)
    assert load.scheme.name == f"mine before {server}"
    assert load.scheme.mechanism is catalog.load_server(server).mechanism


@pytest.mark.parametrize("client", CLIENTS)
def test_every_client_stands_before_every_server(client: str) -> None:
    for server in SERVERS:
        scheme, half = pair(client, server), catalog.load_server(server)
        assert scheme.mechanism is half.mechanism
        assert scheme.tight_mode is catalog.load_client(client).tight_mode


def test_a_pair_asks_what_the_client_asks_and_does_what_the_server_does() -> None:
    scheme = pair("firefox", "nghttp3")
    assert scheme.classify(resource(Kind.FONT)).urgency == 2  # chrome: 0
    assert scheme.turn.size_bytes == 800
    assert pair("firefox", "nghttp2").classify(resource(Kind.FONT)).group == "followers"


def test_one_list_of_rules_is_signalled_over_both_protocols() -> None:
    """Classes that the tree does not tell apart are one class there, in one chain."""
    chrome = catalog.load_client("chrome")
    image, fetch = resource(Kind.IMAGE), resource(Kind.FETCH)
    eps, tree = pair("chrome", "rfc9218"), pair("chrome", "rfc7540")
    assert eps.classify(fetch).name == "high-incremental"
    assert tree.classify(fetch).name == "high"
    assert tree.classify(image, images_before=7).name == "low"
    assert [entry.name for entry in tree.classes] == ["highest", "high", "normal", "low", "lowest"]
    assert chrome.tree is not None
    assert chrome.tree.signal_names["document"] == "highest"


def test_the_root_document_keeps_its_group_in_a_hidden_tab_over_http2_only() -> None:
    hidden = ResourceState(hidden=True)
    root = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=1000)
    assert pair("firefox", "rfc9218").classify(root, state=hidden).urgency == 6
    assert pair("firefox", "rfc7540").classify(root, state=hidden).group == "urgent-start"


def test_who_says_nothing_gets_what_the_server_assumes() -> None:
    """RFC 9218 § 4: urgency 3, not incremental; mvfst and quic-go take it for incremental."""
    assert pair("edge", "rfc7540").signalling is Signalling.NONE
    silent = pair("chrome-50", "quic-go")
    assert silent.signalling is Signalling.EPS
    assert [(entry.urgency, entry.incremental) for entry in silent.classes] == [(3, False)]
    by_server = {name: h3sim.simulate(PAGE, client="edge", server=name) for name in SERVERS}
    fifo, rr = (h3sim.simulate(PAGE, scheme=name).trace.order for name in ("fifo", "rr"))
    assert by_server["lsquic"].trace.order == fifo
    assert by_server["mvfst"].trace.order == by_server["quic-go"].trace.order
    assert [*by_server["mvfst"].trace.order[2:7]] == [4, 8, 12, 16, 0]
    assert by_server["haproxy"].trace.order == rr


def test_a_server_with_buckets_may_read_urgencies() -> None:
    scheme = pair("safari", "cloudflare")
    levels = {entry.name: (entry.bucket, entry.level) for entry in scheme.classes}
    assert levels["very-high"] == (4, 1)  # urgency 0, incremental
    assert levels["medium"] == (1, 1)  # urgency 3
    assert levels["very-low"] == (0, 1)  # urgency 7
    chrome = pair("chrome", "cloudflare").class_named("highest")
    assert (chrome.bucket, chrome.level) == (4, 3)


def test_a_scheme_is_a_client_and_a_server_too() -> None:
    assert client_of(h3sim.load_scheme("bucket-html")).buckets is not None
    assert server_of(h3sim.load_scheme("sander-rr")).reads is Reads.NOTHING
    scheme = pair("firefox-figure", "fifo")
    assert scheme.mechanism is SchedulerKind.FIFO
    assert pair("chrome", "critical-path").knows == h3sim.load_scheme("critical-path").knows
    assert pair("chrome", "bucket-html").knows == ()
    same = h3sim.simulate(PAGE, client="bucket-html", server="bucket-html")
    assert same.trace == h3sim.simulate(PAGE, scheme="bucket-html").trace


@pytest.mark.parametrize(
    ("client", "server", "named"),
    [
        ("chrome", "nghttp3", "nghttp3"),
        ("chrome", "quic-go", "quic-go"),
        ("chrome", "go-h2", "go-h2"),
        ("firefox", "rfc9218", "firefox-eps"),
        ("firefox-figure", "nghttp2", "nghttp2"),
    ],
)
def test_a_named_pair_loads_as_its_halves(client: str, server: str, named: str) -> None:
    of_pair = h3sim.simulate(PAGE, client=client, server=server, network="4g")
    assert of_pair.trace == h3sim.simulate(PAGE, scheme=named, network="4g").trace


def test_the_default_is_chrome_before_plain_rfc_9218() -> None:
    assert catalog.pair_names(None, "quic-go") == ("chrome before quic-go",)
    assert catalog.pair_names("safari", None) == ("safari before rfc9218",)
    assert len(catalog.pair_names("all", "all")) == len(CLIENTS) * len(SERVERS)


def test_both_are_axes_wherever_schemes_are() -> None:
    halves: dict[str, Any] = {"client": ["chrome", "edge"], "server": ["lsquic", "haproxy"]}
    names = [*catalog.pair_names(**halves)]
    compared = h3sim.compare(PAGE, send_buffers_kb=[0], **halves)
    assert [row.scheme for row in compared.rows] == names
    swept = h3sim.sweep(PAGE, schemes="rr", executor="serial", **halves)
    assert [row["scheme"] for row in swept] == ["rr", *names]
    regret = h3sim.optimality(PAGE, **halves)
    assert {row.scheme for row in regret.schemes} == set(names)
    found = h3sim.search(PAGE, baseline="rr", n_seeds=3, networks=None, **halves)
    assert {row.scheme for row in found.rows} == {"rr", *names}


def test_one_load_has_one_client_and_one_server() -> None:
    with pytest.raises(InputError, match="scheme: "):
        h3sim.simulate(PAGE, scheme="rr", client="chrome")
    with pytest.raises(InputError, match="server: "):
        h3sim.simulate(PAGE, client="chrome", server="all")
    with pytest.raises(UnknownNameError, match="firefox"):
        h3sim.simulate(PAGE, client="fierfox")
    with pytest.raises(InputError, match=r"(?s)client: .*server: "):
        h3sim.simulate(PAGE, client="fierfox", server="quick-go")


def test_every_mistake_of_a_file_is_listed() -> None:
    wrong = MINE.replace('class = "first"', 'class = "frist"').replace('otherwise = "rest"', "")
    with pytest.raises(SchemeError, match=r"(?s)rules\[0\]\.class: .*otherwise: "):
        client_from_toml(wrong, source="mine.toml")
    server = 'format = "h3sim-server/1"\nname = "s"\ntitle = ""\nversion = ""\ndate = ""\n'
    server += 'source = ""\nmechanism = "tree"\nreads = "eps"\nurgency_buckets = [1]\n'
    with pytest.raises(SchemeError, match=r"(?s)reads: .*urgency_buckets: "):
        server_from_toml(server, source="s.toml")


def test_a_scheme_file_may_name_its_halves(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    head = 'format = "h3sim-scheme/1"\nname = "mine"\ntitle = ""\nsource = ""\n'
    path.write_text(f'{head}client = "safari"\nserver = "h2o"\nretransmission = "first"\n', "utf-8")
    scheme = h3sim.load_scheme(path)
    assert scheme.rules == h3sim.load_scheme("safari-eps").rules
    assert scheme.mixed is h3sim.load_scheme("h2o").mixed
    assert scheme.retransmission is not h3sim.load_scheme("h2o").retransmission
    path.write_text(f'{head}client = "safary"\nserver = "h20"\n', "utf-8")
    with pytest.raises(SchemeError, match=r"(?s)client: .*safari.*server: .*h2o"):
        h3sim.load_scheme(path)


def test_commands_take_clients_and_servers(capsys: Any, tmp_path: Path) -> None:
    arguments = ["--client", "chrome,firefox,safari", "--server", "all", "--send-buffer-kb", "0"]
    assert main(["compare", PAGE, *arguments]) == 0
    printed = capsys.readouterr().out
    assert all(f"{name} before " in printed for name in ("chrome", "firefox", "safari"))
    assert main(["run", PAGE, "--client", "edge", "--server", "nghttp3"]) == 0
    assert "edge before nghttp3" in capsys.readouterr().out
    assert main(["run", PAGE, "--client", "edge", "--scheme", "rr"]) == 2
    assert main(["run", PAGE, "--server", "all"]) == 2
    assert main(["run", PAGE, "--client", "egde", "--server", "nghttp33"]) == 2
    refused = capsys.readouterr().err
    assert all(word in refused for word in ("edge", "nghttp3"))
    for half, name in (("client", "chrome"), ("server", "quic-go")):
        assert main(["list", f"{half}s"]) == 0
        assert f"\n{name} " in capsys.readouterr().out
        assert main(["show", half, name, "--toml"]) == 0
        (tmp_path / "mine.toml").write_text(capsys.readouterr().out, "utf-8")
        assert main(["run", PAGE, f"--{half}", str(tmp_path / "mine.toml")]) == 0
        capsys.readouterr()


def test_a_pair_is_shown_and_written_as_a_file(capsys: Any, tmp_path: Path) -> None:
    name = "firefox before quic-go"
    assert main(["show", "scheme", name]) == 0
    shown = capsys.readouterr().out
    assert "halves-incremental-first" in shown
    assert "leader" in shown
    assert main(["show", "scheme", name, "--toml"]) == 0
    path = tmp_path / "pair.toml"
    path.write_text(capsys.readouterr().out, "utf-8")
    assert h3sim.load_scheme(path).rules == h3sim.load_scheme(name).rules


@pytest.mark.parametrize("server", ["quic-go", "nghttp3"])
def test_recorded_priorities_go_before_rules_before_any_server_that_reads_them(server: str) -> None:
    pair = h3sim.load_scheme(f"recorded before {server}")
    assert pair.recorded is h3sim.load_scheme("recorded").recorded is not None
    # Without a record it is what chrome is.
    assert h3sim.load_scheme(f"chrome before {server}").recorded is None


def test_recorded_priorities_say_nothing_to_a_server_that_reads_none() -> None:
    assert h3sim.load_scheme("recorded before haproxy-h3").recorded is None
