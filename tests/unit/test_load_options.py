"""The keyword arguments of `simulate` and `compare`: completed, checked, and told apart."""

from __future__ import annotations

import inspect
import re
import sys
from collections import Counter
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim import engine
from h3sim.load.load_keywords import LoadKeywords
from h3sim.load.network_path import resolve_path
from h3sim.values.errors import InputError, StalledError, UnknownOptionError
from tests.helpers import page_of
from tools import option_types

if TYPE_CHECKING:
    from types import FrameType

ROOT = {"id": "/", "kind": "document", "bytes": 2800}
IMAGE = {"id": "a.png", "kind": "image", "bytes": 1400, "discovered": {"by": "/", "at": "complete"}}
PAGE = page_of(ROOT, IMAGE)


@pytest.mark.parametrize("function", [h3sim.simulate, h3sim.compare, h3sim.sweep])
def test_a_notebook_completes_every_option_of_a_load(function: Any) -> None:
    parameters = inspect.signature(function).parameters
    assert not any(each.kind is inspect.Parameter.VAR_KEYWORD for each in parameters.values())
    for field in fields(h3sim.LoadConfig):
        if field.name == "seed" and function is h3sim.sweep:  # which has seeds
            continue
        parameter = parameters[field.name]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert parameter.default == field.default


def test_type_checkers_know_every_option() -> None:
    for path, text in option_types.modules():
        assert path.read_text("utf-8") == text, "make options writes it anew"
    types = inspect.get_annotations(LoadKeywords)
    assert list(types) == [field.name for field in fields(h3sim.LoadConfig)]


class CallCounter:
    """Counts calls of functions of h3sim until the engine begins."""

    def __init__(self) -> None:
        self.n = 0

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        if frame.f_code is engine.simulate.__code__:
            sys.setprofile(None)
        elif event == "call" and "/h3sim/" in frame.f_code.co_filename:
            self.n += 1


def test_a_load_begins_after_few_calls() -> None:
    def load() -> None:
        h3sim.simulate("davies-meenan", scheme="fifo", network="4g")

    load()  # shipped files are parsed once per process
    counter = CallCounter()
    tracer = sys.getprofile()
    sys.setprofile(counter)
    try:
        load()
    finally:
        sys.setprofile(tracer)
    assert 0 < counter.n <= 150


def test_a_recommendation_resolves_each_setting_once(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()

    def counted(cls: type) -> None:
        check: Any = cls.__post_init__  # type: ignore[attr-defined]

        def counting(value: object) -> None:
            counts[cls.__name__] += 1
            check(value)

        monkeypatch.setattr(cls, "__post_init__", counting)

    counted(h3sim.LoadConfig)
    counted(h3sim.Network)
    h3sim.recommend("davies-meenan", network="4g", n_seeds=10)
    assert 0 < counts["LoadConfig"] <= 12
    assert 0 < counts["Network"] <= 12


def test_numbers_of_numpy_are_numbers() -> None:
    numpy = pytest.importorskip("numpy")
    config = h3sim.LoadConfig(
        rtt_ms=numpy.float64(20.5), loss=numpy.float32(0.25), seed=numpy.int64(7), send_buffer_kb=1
    )
    assert config == h3sim.LoadConfig(rtt_ms=20.5, loss=0.25, seed=7, send_buffer_kb=1)
    assert [type(value) for value in (config.rtt_ms, config.loss, config.seed)] == [
        float, float, int,
    ]  # fmt: skip
    with pytest.raises(InputError, match="rtt_ms: must be 0 to 600,000, is nan"):
        h3sim.LoadConfig(rtt_ms=numpy.float64("nan"))
    with pytest.raises(InputError, match="rtt_ms: must be a number, is "):
        h3sim.LoadConfig(rtt_ms=numpy.True_)


@pytest.mark.parametrize("function", [h3sim.simulate, h3sim.compare])
def test_a_misspelt_option_is_reported_with_those_spelt_alike(function: Any) -> None:
    with pytest.raises(UnknownOptionError, match=r"rtt_m: .*did you mean rtt_ms") as caught:
        function(PAGE, rtt_m=5)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, InputError)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("rtt_ms", "abc", "must be a number, is 'abc'"),
        ("rtt_ms", True, "must be a number, is True"),
        ("rtt_ms", 10**500, "must be 0 to 600,000, is a huge number"),
        ("rate_mbps", float("nan"), "must be 1e-06 to 1e"),
        ("loss", "x%", r"must be a number \(0.02, or 2%\), is 'x%'"),
        ("seed", -1, "must not be negative, is -1"),
        ("seed", 1.5, "must be a whole number, is 1.5"),
        ("seed", None, "must be given, is None"),
        ("packet_bytes", 1400.5, "must be a whole number, is 1400.5"),
        ("reorder", 4, "must be text, is 4"),
        ("network", 4, "must be a name, a path or a Network, is 4"),
        ("browser", 4, "4 is not one of replay, parse"),
        ("preload_scanner", "yes", "must be true or false, is 'yes'"),
        ("tight_mode", "yes", "'yes' is not one of off, chrome-95, chrome-118, firefox, safari"),
    ],
)
def test_a_value_of_another_type_is_told_with_its_key(key: Any, value: Any, message: Any) -> None:
    with pytest.raises(InputError, match=f"^{key}: {message}"):
        h3sim.simulate(PAGE, **{key: value})


def test_compare_takes_the_options_of_a_load() -> None:
    rows = h3sim.compare(PAGE, schemes="fifo", send_buffers_kb=[0], network="4g", rtt_ms=80).rows
    load = h3sim.simulate(PAGE, scheme="fifo", network="4g", rtt_ms=80)
    assert rows[0].page_load_ms == load.page_load_ms


def test_compare_changes_the_setting_that_it_is_given() -> None:
    config = h3sim.LoadConfig(rtt_ms=40, transport="tcp")
    rows = h3sim.compare(PAGE, schemes="fifo", send_buffers_kb=[0], config=config, rtt_ms=80).rows
    load = h3sim.simulate(PAGE, scheme="fifo", transport="tcp", rtt_ms=80)
    assert rows[0].page_load_ms == load.page_load_ms


def test_pages_that_share_a_name_are_not_averaged() -> None:
    other = page_of(ROOT, IMAGE | {"bytes": 14_000})
    with pytest.raises(InputError, match="two pages are called 'page'"):
        h3sim.compare([PAGE, other], schemes="fifo")


def test_schemes_that_share_a_name_are_not_averaged() -> None:
    edited = replace(h3sim.load_scheme("fifo"), title="another")
    with pytest.raises(InputError, match="two schemes are called 'fifo'"):
        h3sim.compare(PAGE, schemes=["fifo", edited])


def test_the_baseline_is_the_scheme_of_the_table_that_goes_by_its_name() -> None:
    # An edited rr that is dfifo in all but name: against itself it is no faster.
    edited = replace(h3sim.load_scheme("dfifo"), name="rr")
    (row,) = h3sim.compare("davies-meenan", schemes=[edited], send_buffers_kb=[0]).rows
    assert row.speedup_all == 1


def test_a_baseline_that_is_not_the_scheme_of_its_name_is_refused() -> None:
    with pytest.raises(InputError, match="baseline: is called 'rr' like one of the schemes"):
        h3sim.compare(
            PAGE,
            schemes=[replace(h3sim.load_scheme("rr"), title="mine")],
            baseline=h3sim.load_scheme("rr"),
        )


def test_a_load_over_links_is_given_up_at_its_limit() -> None:
    network = "sander-2mbps-100ms-2pct"
    with pytest.raises(StalledError, match="given up after 3 s of simulated time"):
        h3sim.simulate("davies-meenan", network=network, time_limit_s=3)
    load = h3sim.simulate("davies-meenan", network=network)
    within = h3sim.simulate("davies-meenan", network=network, time_limit_s=60)
    assert within.trace == load.trace
    with pytest.raises(InputError, match="time_limit_s: needs links"):
        h3sim.simulate("davies-meenan", time_limit_s=60)


def test_a_study_keeps_why_a_load_was_given_up_and_goes_on() -> None:
    results = h3sim.sweep(
        "davies-meenan",
        schemes=["rr", "fifo"],
        network=["sander-2mbps-100ms-2pct", "sander-10mbps-100ms"],
        time_limit_s=3,
        executor="serial",
    )
    assert [row["network"] for row in results] == ["sander-10mbps-100ms"] * 2
    assert len(results.errors) == 2
    assert all("given up after 3 s" in error for error in results.errors)


@pytest.mark.parametrize(
    ("options", "is_read"),
    [
        ({}, False),
        ({"rate_mbps": 3.0, "transport": "tcp"}, False),
        ({"loss": 0.02}, True),
        ({"queue_bytes": 20_000}, True),
        ({"cc": "constant"}, True),
        ({"transport_profile": "quicly"}, True),
        ({"network": "sander-2mbps-100ms"}, True),
    ],
)
def test_a_profile_is_read_where_there_are_links_or_it_is_requested(
    options: dict[str, Any], is_read: bool
) -> None:
    path = resolve_path(PAGE, h3sim.LoadConfig(**options))
    assert (path.profile is not None) is is_read


def test_without_a_profile_the_transport_is_that_of_the_usual_one() -> None:
    assert resolve_path(PAGE, h3sim.LoadConfig()).protocol is h3sim.load_profile("default").protocol


@pytest.mark.parametrize("transport", ["tcp", "http1"])
def test_tcp_without_a_profile_is_that_of_linux(transport: str) -> None:
    def profile(**options: Any) -> Any:
        found = resolve_path(PAGE, h3sim.LoadConfig(transport=transport, **options)).profile
        return found and found.name

    assert profile(network="4g") == "linux-tcp"
    assert profile(network="4g", transport_profile="default") == "default"
    assert profile(network="sander-2mbps-100ms") == "quicly-chrome"  # its own


def test_a_constant_rate_with_loss_becomes_links_with_the_usual_profile() -> None:
    suggested = h3sim.simulate("davies-meenan", loss=0.02)
    asked = h3sim.simulate("davies-meenan", loss=0.02, transport_profile="default")
    assert suggested.profile == asked.profile is not None
    assert suggested.trace.digest() == asked.trace.digest()


def test_help_of_the_options_states_what_each_is_for() -> None:
    text = inspect.getdoc(h3sim.LoadConfig) or ""
    reported = re.findall(
        r"^    (\w+): ", text.partition("Args:\n")[2].partition("\nRaises:")[0], re.M
    )
    assert reported == [field.name for field in fields(h3sim.LoadConfig)]
    # In the words of the command line; of a flag, what the value means that it sets.
    assert "    rtt_ms: round-trip time\n" in text
    assert "    preload_scanner: False: only the parser finds" in text
