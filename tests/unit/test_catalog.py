"""What is shipped, by name, and what people bring, by path."""

from __future__ import annotations

import itertools
import json
import pickle
from pathlib import Path

import pytest

import h3sim
from h3sim import catalog
from h3sim.catalog.catalog import NameSets, shipped_sets
from h3sim.catalog.resources import root
from h3sim.page import page_to_dict
from h3sim.schemes.model import scheme_from_dict
from h3sim.values.errors import H3SimError, InputError, PageError, SchemeError, UnknownNameError
from tests.helpers import unworded

MARX_2019 = (
    *("rr", "wrr", "fifo", "dfifo", "firefox", "p+", "s+", "spdyrr"),
    *("bucket", "bucket-html", "zeroweight"),
)
SANDER_2022 = (
    *("sander-chrome", "sander-rr", "sander-wrr", "sander-firefox", "sander-firefox-eps"),
    "sander-batched-rr",
)


def test_schemes_are_listed_in_the_order_of_the_table_and_then_by_name() -> None:
    names = [scheme.name for scheme in h3sim.list_schemes()]
    today = (catalog.scheme_set(name) or () for name in ("servers", "browsers"))
    in_sets = [*MARX_2019, *SANDER_2022, *itertools.chain(*today)]
    assert names[: len(in_sets)] == in_sets
    others = names[len(in_sets) :]
    assert others == sorted(others)
    assert {"firefox-figure", "zeroweight-simple"} <= set(others)
    assert catalog.scheme_set("marx-2019") == MARX_2019
    assert catalog.scheme_set("sander-2022") == SANDER_2022


def test_the_summaries_end_with_the_pages_of_the_web() -> None:
    web = catalog.page_set("web") or ()
    last = catalog.page_summaries()[-len(web) :]
    assert [row.name for row in last] == [*web]
    page = catalog.load_page(web[0])
    assert last[0][1:4] == (
        len(page.resources),
        page.total_bytes,
        sum(resource.above_the_fold for resource in page.resources),
    )


def test_summaries_agree_with_the_pages() -> None:
    assert catalog.page_summaries()[: len(catalog.list_pages())] == [
        (
            page.name,
            len(page.resources),
            page.total_bytes,
            sum(resource.above_the_fold for resource in page.resources),
            page.provenance.get("source", "-"),
        )
        for page in catalog.list_pages()
    ]


def test_pages_and_networks_are_listed_by_name() -> None:
    pages = [page.name for page in h3sim.list_pages()]
    assert pages == sorted(pages)
    assert {"davies-meenan", "http2rulez", "admin-lte-index"} < set(pages)
    names = [network.name for network in h3sim.list_networks()]
    assert names == sorted(names)
    assert {"marx-2019", "marx-2019-jitter", "marx-2019-jitter-fixed"} < set(names)
    assert [name for name in names if name.startswith("sander-2mbps-100ms")] == [
        "sander-2mbps-100ms",
        "sander-2mbps-100ms-1pct",
        "sander-2mbps-100ms-2pct",
        *(f"sander-2mbps-100ms-2pct-burst{burst}" for burst in (10, 15, 5)),
        "sander-2mbps-100ms-5pct",
    ]
    assert catalog.page_set("papers") == ("http2rulez", "davies-meenan")
    shipped = [page.name for page in catalog.list_pages()]
    assert catalog.page_set("made-up") == ("marx-heuristics",)
    shipped.remove("marx-heuristics")
    assert catalog.page_set("corpus") == tuple(shipped)


def test_the_sizes_of_marx_2019_divide_the_corpus() -> None:
    small, medium, large = (
        catalog.page_set(f"corpus:{size}") or () for size in ("small", "medium", "large")
    )
    assert sorted((*small, *medium, *large)) == [*(catalog.page_set("corpus") or ())]
    for names, least, most in ((small, 0, 499), (medium, 500, 1000), (large, 1000, 10_000)):
        sizes_kb = [h3sim.load_page(name).total_bytes / 1000 for name in names]
        assert all(least <= size <= most + 0.999 for size in sizes_kb)


@pytest.mark.parametrize("name", [scheme.name for scheme in h3sim.list_schemes()])
def test_a_scheme_goes_by_the_name_in_its_file(name: str) -> None:
    assert h3sim.load_scheme(name).name == name


def test_a_set_that_is_not_there_is_none() -> None:
    assert catalog.scheme_set("sander-2023") is None
    assert catalog.page_set("alexa") is None


@pytest.mark.parametrize(
    ("load", "kind", "name", "nearest"),
    [
        (h3sim.load_scheme, "scheme", "buket", "bucket"),
        (h3sim.load_scheme, "scheme", "firefoks", "firefox"),
        (h3sim.load_network, "network", "marx2019", "marx-2019"),
        (h3sim.load_page, "page", "davis-meenan", "davies-meenan"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(
    load: object, kind: str, name: str, nearest: str
) -> None:
    assert callable(load)
    with pytest.raises(UnknownNameError) as caught:
        load(name)
    assert isinstance(caught.value, KeyError)
    assert caught.value.nearest[0] == nearest
    assert str(caught.value).startswith(f"no {kind} is called {name!r}; did you mean {nearest}")


def test_a_name_unlike_any_other_suggests_none() -> None:
    with pytest.raises(UnknownNameError) as caught:
        h3sim.load_scheme("qqqqqqq")
    assert caught.value.nearest == ()
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("name", ["x" * 300, "x" * 5000, "a\0b"])
def test_a_name_that_no_file_can_have_is_unknown(name: str) -> None:
    with pytest.raises(UnknownNameError):
        h3sim.load_page(name)


@pytest.mark.parametrize("given", [str, Path])
def test_a_page_is_read_from_a_path(tmp_path: Path, given: type[str] | type[Path]) -> None:
    path = tmp_path / "mine.json"
    page = h3sim.load_page("davies-meenan")
    path.write_text(json.dumps(page_to_dict(page)), encoding="utf-8")
    assert h3sim.load_page(given(path)) == page


def test_a_file_without_the_usual_ending_is_read_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = h3sim.load_page("davies-meenan")
    (tmp_path / "mine").write_text(json.dumps(page_to_dict(page)), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert h3sim.load_page("mine") == page


def test_a_shipped_name_goes_before_a_file_of_that_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rr").write_text("no scheme", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert h3sim.load_scheme("rr").title.startswith("Round robin")
    with pytest.raises(SchemeError):
        h3sim.load_scheme(Path("rr"))


def test_what_looks_like_a_path_is_not_called_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="cannot be read"):
        h3sim.load_page("nothing-here.json")
    with pytest.raises(PageError, match="cannot be read"):
        h3sim.load_page(str(tmp_path / "nothing"))


def test_a_shipped_scheme_file_reads_alike_by_path() -> None:
    path = Path(str(root("models"))) / "schemes" / "p-plus.toml"
    assert h3sim.catalog.read_scheme(path) == h3sim.load_scheme("p+")


GOOD_SCHEME = {
    "format": "h3sim-scheme/1",
    "name": "mine",
    "title": "My own",
    "mechanism": "tree",
    "signalling": "server",
    "source": "made up",
    "placeholders": [{"name": "group", "weight": 8}],
    "classes": {"all": {"group": "group", "weight": 3}},
    "rules": [{"kind": "image", "class": "all"}],
}


@pytest.mark.parametrize(
    ("change", "positions"),
    [
        ({"format": "h3sim-scheme/0"}, ["format"]),
        ({"mechanism": "lottery"}, ["mechanism"]),
        ({"colour": "red"}, ["colour"]),
        ({"otherwise": "none"}, ["otherwise"]),
        ({"rules": [{"class": "every"}]}, ["rules[0].class"]),
        ({"rules": [{"class": "all", "kind": "video"}]}, ["rules[0].kind"]),
        ({"rules": [{"class": "all", "any_of": ["big"]}]}, ["rules[0].any_of"]),
        ({"rules": [{"class": "all", "async": 1}]}, ["rules[0].async"]),
        ({"placeholders": []}, ["classes.all.group"]),
        ({"placeholders": [{"name": "group", "weight": 300}]}, ["placeholders[0].weight"]),
        (
            {"placeholders": [{"name": "group", "weight": 1, "parent": "group"}]},
            ["placeholders[0].parent"],
        ),
        ({"classes": {"all": {"bucket": 3}}}, ["classes.all.bucket"]),
        (
            {"mechanism": "buckets", "classes": {"all": {"bucket": 3}}},
            ["classes.all", "placeholders"],
        ),
        ({"classes": {"all": {"weight": "big"}}}, ["classes.all.weight"]),
        (
            {"mechanism": "buckets"},
            ["classes.all.bucket", "classes.all.group", "classes.all.weight", "placeholders"],
        ),
        (
            {"mechanism": "fifo", "classes": {"all": {}}, "max_placeholders": 0},
            ["placeholders", "max_placeholders"],
        ),
        (
            {"mechanism": "fifo", "classes": {"all": {}}, "max_placeholders": "x"},
            ["placeholders", "max_placeholders"],
        ),
        ({"name": ""}, ["name"]),
        ({"classes": {"all": {"weight": 0}}}, ["classes.all.weight"]),
        ({"classes": {"all": {"group": ["group"]}}}, ["classes.all.group"]),
        ({"knows": 5}, ["knows"]),
        ({"rules": [{"class": "all", "kind": [["image"]]}]}, ["rules[0].kind"]),
        ({"placeholders": [{"name": "group"}, {"name": "group"}]}, ["placeholders[1].name"]),
    ],
)
def test_an_error_in_a_scheme_is_reported_with_its_place(
    change: dict[str, object], positions: list[str]
) -> None:
    scheme_from_dict(GOOD_SCHEME)
    with pytest.raises(SchemeError) as caught:
        scheme_from_dict(GOOD_SCHEME | change)
    assert [problem.key for problem in caught.value.problems] == positions


def test_a_scheme_of_ones_own_runs() -> None:
    scheme = scheme_from_dict(GOOD_SCHEME)
    load = h3sim.simulate("davies-meenan", scheme=scheme)
    assert load.page_load_ms == 4580
    assert load.scheme.name == "mine"


@pytest.mark.parametrize(
    "error",
    [
        PageError([], "a.json"),
        UnknownNameError("scheme", "x", ["rr"]),
        h3sim.values.errors.StalledError(["a"]),
        h3sim.values.errors.MissingExtraError("pandas", "analysis"),
    ],
)
def test_errors_survive_the_way_between_processes(error: H3SimError) -> None:
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_every_name_in_a_set_is_shipped() -> None:
    sets = shipped_sets()
    shipped = {
        "schemes": {scheme.name for scheme in h3sim.list_schemes()},
        "pages": {row.name for row in catalog.page_summaries()},
    }
    for kind, named in (("schemes", sets.schemes), ("pages", sets.pages)):
        assert {name for names in named.values() for name in names} <= shipped[kind]


def test_a_set_that_is_no_list_of_names_is_reported_with_its_key() -> None:
    with pytest.raises(InputError) as caught:
        NameSets(schemes={"mine": ("rr", 4)}, pages={"mine": "creative"})  # type: ignore[dict-item]
    assert unworded(caught.value.lines()) == ["schemes.mine[1]: is 4", "pages.mine: is 'creative'"]


def test_shipped_networks_and_profiles_are_read_once() -> None:
    # Each load of a study names them, and reading them takes as long as a small load.
    assert h3sim.load_network("4g") is h3sim.load_network("4g")
    assert h3sim.load_profile("default") is h3sim.load_profile("default")
