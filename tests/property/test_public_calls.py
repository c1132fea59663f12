"""Whatever a public function or class is called with, what comes out is an error of h3sim, or none.

A wrong type is somebody's mistake, and is told like one: by a message that names what was given.
`TypeError` is left for calls that do not fit the signature, and names the argument.
"""

from __future__ import annotations

import inspect
import pathlib
from enum import EnumMeta
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
import h3sim.page
import h3sim.schemes
import h3sim.transport
from h3sim import catalog
from h3sim.page import (
    Discovery,
    Kind,
    Layout,
    Page,
    PriorityChange,
    RecordedGroup,
    RecordedLoad,
    RecordedPriority,
    Rectangle,
    Resource,
    ServerPriority,
    TriggerEvent,
)
from h3sim.reporting import alt_text
from h3sim.schedulers import FifoScheduler
from h3sim.schemes import SchedulerKind
from h3sim.signals import Signalling
from h3sim.transport import ConstantRate, IndependentPackets, Jitter, LinkProfile
from h3sim.transport.link_profile import CoDel, LinkJitter
from h3sim.transport.quic import QuicSettings
from h3sim.transport.tcp import TcpSettings
from h3sim.values.errors import H3SimError
from tests.effort import some

if TYPE_CHECKING:
    import types
    from collections.abc import Callable

WRONG: list[Any] = [
    None, True, -1, 0, 1.5, 10**400, float("nan"), float("inf"), "", "x", "\x1b[2J", "a\0b",
    "\ud800", b"x", [], ["x"], [1, None], {}, {"x": 1}, {1: 2}, (), object(), Kind.IMAGE,
    Kind, len, Fraction(1, 3), pathlib.Path("no/such/file"), pathlib.Path("a\0b"),
]  # fmt: skip

ROOT = Resource(id="/", kind=Kind.DOCUMENT, size_bytes=3000)
PAGE = Page(
    name="two",
    resources=(
        ROOT,
        Resource(
            id="a.js",
            kind=Kind.SCRIPT,
            size_bytes=2000,
            discovered=Discovery(at=TriggerEvent.OFFSET, by="/", offset_bytes=10),
        ),
    ),
)
NETWORK = h3sim.load_network("4g")
SIGNAL = h3sim.schemes.SignalClass(name="all")
HALF = {"name": "x", "title": "", "version": "", "date": "", "source": ""}
SCHEME = h3sim.load_scheme("p+")
PROFILE = h3sim.load_profile("quicly")
RESOURCE = {"id": "/", "kind": "document", "bytes": 3}
DOCUMENT = {"format": "h3sim-page/1", "name": "x", "resources": [RESOURCE]}
LOAD = h3sim.simulate(PAGE, scheme="fifo")
MANY: dict[str, Any] = {"network": "4g", "cc": "newreno", "loss": 0.02}

STUDY: dict[str, Any] = {"schemes": "fifo", "executor": "serial"}
RESULTS = h3sim.sweep(PAGE, schemes=["rr", "fifo", "dfifo"], seeds=3, executor="serial", **MANY)


def report_of_a_load(of: Any, baseline: Any = None) -> object:
    """Return a report with the figures of a load, of which no other argument takes part."""
    return h3sim.report(of, baseline=baseline)


CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "simulate": (h3sim.simulate, {"page": PAGE, "scheme": "fifo"}),
    "simulate, parsing": (h3sim.simulate, {"page": PAGE, "browser": "parse"}),
    "simulate, over links": (h3sim.simulate, {"page": PAGE, **MANY}),
    "compare": (h3sim.compare, {"pages": PAGE, "schemes": "fifo", "baseline": "fifo"}),
    "optimality": (h3sim.optimality, {"pages": PAGE, "schemes": "fifo"}),
    "what_if": (h3sim.what_if, {"pages": PAGE, "scheme": "fifo"}),
    "search": (
        h3sim.search,
        {
            "pages": PAGE,
            "schemes": "fifo",
            "which": "all",
            "n_seeds": 2,
            "networks": ["4g"],
            "vary": {"send_buffer_kb": [0]},
        },
    ),
    "recommend": (
        h3sim.recommend,
        {"page": PAGE, "schemes": "fifo", "baseline": "fifo", "n_seeds": 2},
    ),
    "predict": (h3sim.predict, {"page": PAGE, "networks": ("4g",)}),
    "hints": (h3sim.hints, {"page": PAGE, "network": "4g", "n_seeds": 2, "edits": []}),
    "identify": (h3sim.identify, {"path": "no-such.qlog"}),
    "merge_pages": (
        h3sim.page.merge_pages,
        {"page": PAGE, "other": PAGE, "after_ms": 5, "opened": "front", "name": "both"},
    ),
    "with_first_layout": (h3sim.page.with_first_layout, {"page": PAGE}),
    "generate": (h3sim.page.generate, {"generator": h3sim.page.synthetic}),
    "site_of": (h3sim.page.site_of, {"page": PAGE}),
    "split_by_site": (h3sim.page.split_by_site, {"pages": [PAGE], "seed": 1}),
    "with_cached": (h3sim.page.with_cached, {"page": PAGE, "names": "a.js"}),
    "with_early_hints": (h3sim.page.with_early_hints, {"page": PAGE, "names": "a.js"}),
    "with_inlined_styles": (h3sim.page.with_inlined_styles, {"page": PAGE, "share": 0.5}),
    "with_inlined": (h3sim.page.with_inlined, {"page": PAGE, "names": "a.css"}),
    "with_preconnect": (
        h3sim.page.with_preconnect,
        {"page": PAGE.with_("a.js", host="cdn"), "host": "cdn"},
    ),
    "with_same_host": (h3sim.page.with_same_host, {"page": PAGE, "names": "a.js"}),
    "with_push": (h3sim.page.with_push, {"page": PAGE, "names": "a.js"}),
    "with_revalidated": (h3sim.page.with_revalidated, {"page": PAGE, "names": "a.js"}),
    "with_staged_hints": (h3sim.page.with_staged_hints, {"page": PAGE}),
    "Page.with_resources": (PAGE.with_resources, {"resources": (ROOT,)}),
    "report": (h3sim.report, {"of": RESULTS, "title": "x"}),
    "report, of a load": (report_of_a_load, {"of": LOAD, "baseline": "fifo"}),
    "reproduce": (h3sim.reproduce, {"names": "no-such-experiment"}),
    "prioritization_test": (h3sim.advice.prioritization_test, {"schemes": "fifo"}),
    "LoadConfig": (h3sim.LoadConfig, {}),
    "import_page": (h3sim.import_page, {"path": "no-such.har"}),
    "read_har": (h3sim.importers.read_har, {"path": "no-such.har"}),
    "read_load": (h3sim.read_load, {"path": "no-such.json"}),
    "read_qlog": (h3sim.read_qlog, {"path": "no-such.qlog"}),
    "load_page": (h3sim.load_page, {"name": "http2rulez"}),
    "load_network": (h3sim.load_network, {"name": "4g"}),
    "load_scheme": (h3sim.load_scheme, {"name": "rr"}),
    "load_profile": (h3sim.load_profile, {"name": "quicly"}),
    "page_set": (catalog.page_set, {"name": "corpus"}),
    "scheme_set": (catalog.scheme_set, {"name": "marx-2019"}),
    "list_pages": (h3sim.list_pages, {}),
    "list_networks": (h3sim.list_networks, {}),
    "list_schemes": (h3sim.list_schemes, {}),
    "list_profiles": (h3sim.list_profiles, {}),
    "show_versions": (h3sim.show_versions, {}),
    # Pages
    "Page": (Page, {"name": "x", "resources": (ROOT,)}),
    "Resource": (Resource, {"id": "/", "kind": Kind.DOCUMENT, "size_bytes": 3}),
    "Rectangle": (Rectangle, {"x": 0, "y": 0, "width": 1, "height": 1}),
    "Layout": (Layout, {"width": 100, "height": 100}),
    "Discovery": (Discovery, {"at": TriggerEvent.OFFSET, "by": "/", "offset_bytes": 1}),
    "ServerPriority": (ServerPriority, {"urgency": 1}),
    "RecordedPriority": (RecordedPriority, {"urgency": 1}),
    "RecordedGroup": (RecordedGroup, {"name": "leaders", "weight": 201}),
    "RecordedLoad": (RecordedLoad, {"rtt_ns": 10**6, "rate_bps": 10**6, "protocol": "h2"}),
    "validate_scheme": (h3sim.advice.validate_scheme, {"pages": PAGE}),
    "PriorityChange": (PriorityChange, {"when": Discovery(at=TriggerEvent.TIME), "visible": True}),
    "Page.from_dict": (Page.from_dict, {"document": DOCUMENT}),
    "Page.from_json": (Page.from_json, {"text": "{}"}),
    "Page.from_file": (Page.from_file, {"path": "no-such.json"}),
    "Page.with_": (PAGE.with_, {"id_": "a.js", "bytes": 3, "defer": True, "discovered": {}}),
    "Page.without": (PAGE.without, {"id_": "a.js"}),
    "read_page": (h3sim.page.read_page, {"path": "no-such.json"}),
    "Host": (h3sim.page.Host, {"name": "cdn.example"}),
    "page_from_dict": (h3sim.page.page_from_dict, {"document": DOCUMENT}),
    "schema": (h3sim.page.schema, {}),
    "synthetic": (h3sim.page.synthetic, {"seed": 1}),
    # Schemes
    "Scheme": (
        h3sim.Scheme,
        {
            "name": "x",
            "title": "",
            "source": "",
            "mechanism": SchedulerKind.FIFO,
            "signalling": Signalling.SERVER,
            "classes": SCHEME.classes,
        },
    ),
    "Rule": (h3sim.schemes.Rule, {"class_name": "x"}),
    "Placeholder": (h3sim.schemes.Placeholder, {"name": "x", "weight": 3}),
    "PriorityClass": (h3sim.schemes.PriorityClass, {"name": "x"}),
    "SignalClass": (h3sim.schemes.SignalClass, {"name": "x", "of": ("y",)}),
    "SignalTable": (h3sim.schemes.SignalTable, {"classes": (SIGNAL,), "updates": ("hidden",)}),
    "Client": (
        h3sim.schemes.Client,
        {**HALF, "eps": h3sim.schemes.SignalTable(classes=(SIGNAL,))},
    ),
    "Server": (
        h3sim.schemes.Server,
        {**HALF, "mechanism": h3sim.schemes.SchedulerKind.EPS, "reads": h3sim.schemes.Reads.EPS},
    ),
    "read_scheme": (h3sim.catalog.read_scheme, {"path": "no-such.toml"}),
    "scheme_from_dict": (
        h3sim.schemes.scheme_from_dict,
        {"document": h3sim.schemes.scheme_to_dict(SCHEME)},
    ),
    "scheduler_kind_named": (h3sim.schemes.scheduler_kind_named, {"name": "fifo"}),
    "scheduler_named": (h3sim.schemes.scheduler_named, {"scheduler_or_factory": FifoScheduler}),
    # Networks and profiles
    "Network": (h3sim.Network, {"name": "x", "down": NETWORK.down}),
    "ConstantRate": (ConstantRate, {"packet_bytes": 1400, "interval_ns": Fraction(10)}),
    "ConstantRate.at_rate": (ConstantRate.at_rate, {"packet_bytes": 1400, "rate_bps": 10}),
    "IndependentPackets": (IndependentPackets, {}),
    "Jitter": (Jitter, {"every": 4, "min_overtaken": 1, "max_overtaken": 3}),
    "Jitter.parse": (Jitter.parse, {"text": "4:1"}),
    "LinkProfile": (LinkProfile, {"rate_bps": 10**6}),
    "LinkJitter": (LinkJitter, {"mean_ns": 10}),
    "CoDel": (CoDel, {}),
    "TransportProfile": (h3sim.transport.TransportProfile, {"name": "x"}),
    "QuicSettings": (QuicSettings, {}),
    "TcpSettings": (TcpSettings, {}),
    "read_network": (h3sim.transport.read_network, {"path": "no-such.toml"}),
    "network_from_dict": (
        h3sim.transport.network_from_dict,
        {"document": h3sim.transport.network_to_dict(NETWORK)},
    ),
    "network_from_toml": (h3sim.transport.network_from_toml, {"text": "", "source": "x"}),
    "profile_from_dict": (
        h3sim.transport.profile_from_dict,
        {"document": h3sim.transport.profile_to_dict(PROFILE)},
    ),
    "profile_from_toml": (h3sim.transport.profile_from_toml, {"text": "", "source": "x"}),
    # Studies
    "Range": (h3sim.study.Range, {"low": 1, "high": 2}),
    "load_study": (
        h3sim.load_study,
        {"pages": PAGE, "schemes": "fifo", "cells": None, "rtt_ms": 5, "network": "4g", "loss": 0},
    ),
    "load_study, sampled": (
        h3sim.load_study,
        {
            "pages": PAGE,
            "schemes": "fifo",
            "samples": 2,
            "rtt_ms": h3sim.study.Range(low=1, high=2),
        },
    ),
    "sweep": (h3sim.sweep, {"pages": PAGE, **STUDY, "timeout_s": 9, "resources": True}),
    "sequential_sweep": (
        h3sim.study.sequential_sweep,
        {"pages": PAGE, **STUDY, "schemes": ["rr", "fifo"], "width": 0.5, "most_seeds": 2},
    ),
    "sensitivity": (
        h3sim.study.sensitivity,
        {
            "page": PAGE,
            "samples": 2,
            "executor": "serial",
            "rtt_ms": h3sim.study.Range(low=1, high=200),
            "rate_mbps": h3sim.study.Range(low=1, high=9),
        },
    ),
    "read_results": (h3sim.read_results, {"path": "no-such.db"}),
    "Results.compare": (RESULTS.compare, {}),
    "Results.relative_medians": (RESULTS.relative_medians, {}),
    "Results.power": (RESULTS.power, {}),
    "Results.ranks": (RESULTS.ranks, {}),
    "Results.to_csv": (RESULTS.to_csv, {"path": "rows.csv"}),
    "Results.save": (RESULTS.save, {"path": "rows.jsonl"}),
    "Results.to_parquet": (RESULTS.to_parquet, {"path": "rows.parquet"}),
    # Loads
    "Load.byte_index": (LOAD.byte_index, {"which": "all"}),
    "Load.to_dict": (LOAD.to_dict, {}),
    "Load.to_har": (LOAD.to_har, {}),
    "Load.to_chrome_trace": (LOAD.to_chrome_trace, {}),
    "plots.alt_text": (alt_text, {"drawn": PAGE.plot.kinds()}),
}
TAKE_LONG = {
    *("search", "recommend", "hints", "compare", "optimality", "what_if", "prioritization_test"),
    *("sensitivity", "report", "Results.to_parquet"),
    *("simulate", "simulate, parsing", "simulate, over links"),
}
"""Calls that do their work with many of the values."""
TAKE_CODE = ("progress", "processes", "first_result")
NOT_CALLED_WITH_VALUES = {
    # What h3sim makes, or takes from its own parts, and not from people.
    *("Comparison", "H3SimError", "Load", "Measurement", "Results", "SavedLoad"),
    *(
        "Recommendation",
        "PrioritizationTest",
        "SchemeValidation",
        "Optimality",
        "WhatIf",
        "Hints",
        "Identification",
        "SearchResult",
        "Report",
        "parameters_of",
        "recorded_class",
        "RecordedTreeClass",
    ),
    *("page_to_dict", "network_to_dict", "network_to_toml", "profile_to_dict", "scheme_to_dict"),
    *("ResourceState", "Policy", "make_policy", "new_scheduler", "CustomScheduler"),
    *("Handshake", "PacketHold", "Link", "QuicEndpoint", "MessageReassembler"),
    # Made by `load_study`, which checks what it is made of.
    "Study",
}


def parameters(function: Callable[..., Any], valid: dict[str, Any]) -> list[str]:
    found = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return list(dict.fromkeys([*(p.name for p in found if p.kind not in kinds), *valid]))


def wrong_values(name: str, number: int) -> list[Any]:
    """Return what a parameter is given: a third, and the next a further third, if it takes long."""
    return some(WRONG[number % 3 :: 3], WRONG) if name in TAKE_LONG else WRONG


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("unpainted")
def test_a_wrong_value_is_an_error_of_h3sim_or_none(
    name: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # odd names are names of files, too
    function, valid = CALLS[name]
    leaked: list[str] = []
    for number, parameter in enumerate(parameters(function, valid)):
        for wrong in wrong_values(name, number):
            if parameter in TAKE_CODE and callable(wrong):
                continue  # it may be right, and what it raises is its own
            try:
                function(**{**valid, parameter: wrong})
            except H3SimError as error:
                if not all(line.isprintable() for line in str(error).split("\n")):
                    leaked.append(f"{parameter}={wrong!r} is shown raw: {error!r}")
            except Exception as error:  # noqa: BLE001 - any other is what is looked for
                if not isinstance(error, TypeError) or f"'{parameter}'" not in str(error):
                    leaked.append(f"{parameter}={wrong!r}: {type(error).__name__}: {error}")
    assert leaked == []


@pytest.mark.parametrize(
    "module",
    [h3sim, h3sim.page, h3sim.schemes, h3sim.transport],
    ids=lambda module: module.__name__,
)
def test_every_public_callable_is_called(module: types.ModuleType) -> None:
    public = {
        name
        for name in module.__all__
        if callable(value := getattr(module, name)) and not isinstance(value, EnumMeta)
    }
    called = {name.partition(",")[0] for name in CALLS}
    assert public - called - NOT_CALLED_WITH_VALUES == set()
