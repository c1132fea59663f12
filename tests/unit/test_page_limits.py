"""Pages and their transforms at limits: offsets of 0, equal offsets, roots that are not first."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import pytest

import h3sim
from h3sim.page import Discovery, FetchPriority, Kind, Layout, Rectangle, synthetic, transforms
from h3sim.page.hosts import Host, RecordedHosts, host_groups, host_names, host_problems
from h3sim.page.model import NOT_COUNTED, Page, parts_of, read_marks, redirects_of
from h3sim.page.recording import RecordedLoad, clipped
from h3sim.page.resource import ImageFormat, PriorityChange, TriggerEvent
from h3sim.values.errors import InputError, PageError, UnknownNameError
from h3sim.values.units import ms
from tests.helpers import page_of

ROOT = {"id": "/", "kind": "document", "bytes": 1000}


def test_a_page_of_more_resources_than_the_limit_is_refused_at_once() -> None:
    document = {"format": "h3sim-page/1", "name": "x", "resources": [ROOT] * 100_001}
    with pytest.raises(PageError, match=r"resources: .*100,000 resources") as caught:
        Page.from_dict(document)
    assert len(caught.value.problems) == 1


def named(id_: str, offset_bytes: int = 100, by: str = "/", **entry: Any) -> dict[str, Any]:
    found = {"by": by, "at": "offset", "offset_bytes": offset_bytes}
    kind = {"css": "stylesheet", "js": "script"}.get(id_.rpartition(".")[2], "image")
    return {"id": id_, "kind": kind, "bytes": 10, "discovered": found, **entry}


def below(id_: str, by: str, at: str = "complete", **trigger: Any) -> dict[str, Any]:
    return {"id": id_, "kind": "image", "bytes": 10, "discovered": {"by": by, "at": at, **trigger}}


def triggers(page: Page) -> dict[str, tuple[Any, ...] | None]:
    """Return the trigger of each resource: parent, event, offset and delay in ms."""
    return {
        r.id: None
        if (when := r.discovered) is None
        else (when.by, when.at.value, when.offset_bytes, when.delay_ns // ms(1))
        for r in page.resources
    }


class TestInlining:
    PAGE = page_of(
        {**ROOT, "parse_ms": 7, "response_offsets": [0, 500]},
        named("a.css", 0, bytes=30, parse_ms=3, execute_ms=2),
        named("b.js", 100, bytes=20, parse_ms=1),
        named("same.png", 100),
        named("other.css", 300),
        named("font.woff", 5, by="other.css"),
        below("after.png", "a.css", "executed", delay_ms=4),
        {**below("timer.png", "b.js", "time"), "discovered": {"by": "b.js", "at": "time"}},
    )

    def test_what_is_behind_moves_by_the_bytes_before_it(self) -> None:
        page = transforms.with_inlined(self.PAGE, ["a.css", "b.js"])
        assert triggers(page) == {
            "/": None,
            # At the offset of the script itself: only the style is before it.
            "same.png": ("/", "offset", 130, 0),
            "other.css": ("/", "offset", 350, 0),
            "font.woff": ("other.css", "offset", 5, 0),
            "after.png": ("/", "offset", 30, 4),
            "timer.png": (None, "time", None, 0),
        }

    def test_the_document_has_their_bytes_and_their_work(self) -> None:
        root = transforms.with_inlined(self.PAGE, ["a.css", "b.js"]).resources[0]
        assert (root.size_bytes, root.parse_ns) == (1050, ms(7 + 3 + 2 + 1))
        assert root.response_offsets == ()

    def test_elements_move_like_references(self) -> None:
        hinted = named("c.png", 0, preload=True, reference_offset_bytes=200)
        page = transforms.with_inlined(page_of(ROOT, named("a.css", 100), hinted), "a.css")
        assert page.resources[1].reference_offset_bytes == 210

    @pytest.mark.parametrize(
        "wrong",
        [below("w.png", "/"), named("w.png", 5, by="a.css"), below("w.png", "/", "request")],
    )
    def test_what_is_not_in_the_body_of_the_document_is_refused(self, wrong: Any) -> None:
        page = page_of(ROOT, named("a.css"), wrong)
        with pytest.raises(InputError, match=r"w\.png: is not named by the document"):
            transforms.with_inlined(page, ["a.css", "w.png"])


class TestRootsThatAreNotFirst:
    PAGE = page_of(named("a.css"), ROOT, named("b.png", host="cdn"))

    def test_hints_and_links_are_right_behind_them(self) -> None:
        hinted = transforms.with_early_hints(self.PAGE, "a.css")
        assert [r.id for r in hinted.resources] == ["a.css", "/", "(103)", "b.png"]
        linked = transforms.with_preconnect(self.PAGE, "cdn")
        assert [r.id for r in linked.resources] == ["a.css", "/", "(preconnect cdn)", "b.png"]

    def test_a_link_costs_a_request_of_a_byte_at_the_beginning_of_the_document(self) -> None:
        link = transforms.with_preconnect(self.PAGE, "cdn").resources[2]
        assert (link.size_bytes, link.request_bytes, link.host) == (0, 1, "cdn")
        assert link.discovered == Discovery(by="/", at=TriggerEvent.OFFSET, offset_bytes=0)

    def test_the_header_of_a_hint_is_requested_with_the_document(self) -> None:
        hints = transforms.with_early_hints(self.PAGE, "a.css").resources[2]
        assert (hints.size_bytes, hints.request_bytes) == (0, 1)
        assert hints.header_bytes == 28 + len("a.css")
        assert hints.fetchpriority is FetchPriority.HIGH
        assert hints.discovered == Discovery(by="/", at=TriggerEvent.REQUEST)

    def test_what_only_a_preload_names_has_no_element_to_keep(self) -> None:
        page = page_of(ROOT, named("a.css", 100, preload=True), named("b.css", 200))
        offsets = [
            r.reference_offset_bytes
            for r in transforms.with_early_hints(page, ["a.css", "b.css"]).resources
        ]
        assert offsets == [None, None, None, 200]

    def test_a_name_that_is_taken_gets_the_next_number(self) -> None:
        once = transforms.with_preconnect(self.PAGE, "cdn")
        twice = transforms.with_preconnect(transforms.with_preconnect(once, "cdn"), "cdn")
        ids = [r.id for r in twice.resources if r.kind is Kind.OTHER]
        assert ids == ["(preconnect cdn) 3", "(preconnect cdn) 2", "(preconnect cdn)"]

    def test_a_push_is_requested_with_the_document_in_a_byte(self) -> None:
        pushed = transforms.with_push(self.PAGE, "b.png").resources
        assert [r.request_bytes for r in pushed] == [0, 0, 1]

    def test_an_unknown_host_is_refused(self) -> None:
        with pytest.raises(InputError, match="other: is not the host of any resource"):
            transforms.with_preconnect(self.PAGE, "other")


class TestMerging:
    ONE = page_of(ROOT, name="one")

    def test_a_page_is_opened_at_once_unless_a_time_is_given(self) -> None:
        for options, delay_ns in (({}, 0), ({"after_ms": 0.5}, ms(0.5))):
            both = transforms.merge_pages(self.ONE, self.ONE, **options)  # type: ignore[arg-type]
            assert both.resources[1].discovered == Discovery(
                at=TriggerEvent.TIME, delay_ns=delay_ns
            )
        with pytest.raises(InputError, match="after_ms"):
            transforms.merge_pages(self.ONE, self.ONE, after_ms=-0.5)

    def test_copies_are_counted(self) -> None:
        page = self.ONE
        for _ in range(3):
            page = transforms.merge_pages(page, self.ONE)
        assert [r.id for r in page.resources] == ["/", "one:/", "one (2):/", "one (3):/"]

    def test_one_resource_of_the_same_name_is_enough_for_a_number(self) -> None:
        first = page_of(ROOT, named("one:a.png"))
        both = transforms.merge_pages(first, page_of(ROOT, named("a.png"), name="one"))
        assert [r.id for r in both.resources][2:] == ["one (2):/", "one (2):a.png"]

    def test_hosts_of_one_server_are_equally_far_away(self) -> None:
        def page(name: str, *hosts: Host) -> Page:
            images = [named(f"{host.name}.png", host=host.name) for host in hosts]
            return replace(page_of(ROOT, *images, name=name), hosts=hosts)

        one = page(
            "one",
            Host(name="a", certificate="c", server="s", rtt_ns=5),
            Host(name="alone", rtt_ns=3),
        )
        two = page(
            "two",
            Host(name="b", certificate="c", server="s", rtt_ns=9),
            Host(name="d", rtt_ns=7),
            Host(name="e", certificate="c", server="t", rtt_ns=8),
            Host(name="alone", rtt_ns=4),
        )
        both = transforms.merge_pages(one, two)
        known = {host.name: host.rtt_ns for host in both.hosts}
        assert known == {"a": 5, "alone": 3, "b": 5, "d": 7, "e": 8}

    def test_hidden_tabs(self) -> None:
        def hidden(page: Page) -> list[list[bool | None]]:
            return [[change.hidden for change in r.priority_changes] for r in page.resources]

        assert hidden(transforms.merge_pages(self.ONE, self.ONE)) == [[], []]
        for opened, expected in (("background", [[], [True]]), ("front", [[True], []])):
            merged = transforms.merge_pages(self.ONE, self.ONE, after_ms=5, opened=opened)
            assert hidden(merged) == expected

    def test_what_a_merged_page_was_recorded_from(self) -> None:
        page = replace(self.ONE, provenance={"source": "here"})
        both = transforms.merge_pages(page, self.ONE, after_ms=2.5)
        assert dict(both.provenance) == {"source": "here", "beside": "one after 2.5 ms"}


class TestParts:
    SECOND: ClassVar = {**ROOT, "id": "/two", "root": True, "discovered": {"at": "time"}}

    def parts(self, *changed: dict[str, Any]) -> list[tuple[str, int, int]]:
        """Return, of each resource in its part, how many changes and recorded entries it has."""
        return [
            (r.id, len(r.priority_changes), len(r.recorded))
            for part in parts_of(page_of(ROOT, self.SECOND, *changed))
            for r in part.page.resources
        ]

    def test_they_keep_what_timers_and_their_own_resources_change(self) -> None:
        timer = {"at": "time", "delay_ms": 5}
        own, other = ({"by": by, "at": "complete"} for by in ("/two", "/"))
        found = self.parts(
            named(
                "a.png",
                by="/two",
                priority_changes=[{"when": when, "visible": True} for when in (timer, own, other)],
            ),
            named(
                "b.png",
                by="/two",
                recorded=[
                    {"urgency": 1},
                    *({"urgency": 2, "when": when} for when in (timer, own, other)),
                ],
            ),
        )
        assert found == [("/", 0, 0), ("/two", 0, 0), ("a.png", 2, 0), ("b.png", 0, 3)]

    def test_roots_of_one_page_are_its_parts(self) -> None:
        page = page_of(ROOT, self.SECOND, named("a.png", by="/two"), named("b.png"))
        parts = parts_of(page)
        assert [(part.root, part.indices) for part in parts] == [(0, (0, 3)), (1, (1, 2))]
        assert [part.page.root for part in parts] == [0, 0]
        assert [part.page.resources[0].discovered for part in parts] == [None, None]
        assert redirects_of(page) == frozenset()

    def test_a_root_that_another_leads_to_when_it_is_complete_is_redirected_to(self) -> None:
        for at, expected in (("complete", {0}), ("request", set())):
            second = {**self.SECOND, "discovered": {"by": "/", "at": at}}
            assert redirects_of(page_of(ROOT, second)) == expected


class TestHosts:
    def test_each_is_checked(self) -> None:
        page = page_of(ROOT, *(named(f"{name}.png", host=name) for name in "abcd"))
        known = [
            Host(name="a"),
            Host(name="b", certificate="c", server="s", rtt_ns=1),
            Host(name="x", certificate="c", server="s", rtt_ns=1),
            Host(name="c", certificate="c", server="s", rtt_ns=2),
            Host(name="d", certificate="c", server="t", rtt_ns=3),
            Host(name="b", certificate="c", server="s", rtt_ns=1),
        ]
        problems = [problem.key for problem in host_problems(page.resources, known)]
        assert problems == ["hosts.x", "hosts.c.rtt_ms", "hosts.b"]

    def test_that_of_the_page_comes_first(self) -> None:
        page = page_of(named("a.png", host="cdn"), ROOT, named("b.png", host="www"))
        assert host_names(page.resources, page.root) == ("(page)", "cdn", "www")
        page = page_of(named("a.png", host="cdn"), {**ROOT, "host": "www"}, named("b.png"))
        assert host_names(page.resources, page.root) == ("www", "cdn")

    def test_the_distance_of_a_group_is_that_of_its_hosts(self) -> None:
        known = [Host(name=name, certificate="c", server="s", rtt_ns=8) for name in "ab"]
        (group,) = host_groups(["a", "b"], known)
        assert group.rtt_ns == 8

    def test_nothing_is_known_of_a_look_up_by_default(self) -> None:
        assert RecordedHosts().dns_ns == 0
        assert Host(name="a", dns_ns=0, rtt_ns=ms(600_000)).dns_ns == 0
        wrong: dict[str, Any]
        for wrong in ({"name": ""}, {"name": "a", "rtt_ns": ms(600_000) + 1}):
            with pytest.raises(PageError):
                Host(**wrong)


class TestImagesBefore:
    def test_images_are_counted_as_they_stand_in_their_document(self) -> None:
        page = page_of(
            ROOT,
            below("unknown.png", "/"),
            named("late.png", 900),
            named("early.png", 63),
            {**below("timer.png", "/", "time"), "discovered": {"at": "time", "delay_ms": 5}},
            named("a.css"),
            named("of-style.png", 5, by="a.css"),
            named("preload.png", 1, preload=True),
            named("lazy.png", 1, lazy=True),
            named("small.png", 1, small=True),
            named("in-style.png", 1, in_style=True),
        )
        places = {id_: place for id_, place in page.images_before.items() if place != NOT_COUNTED}
        assert places == {"early.png": 0, "late.png": 1, "unknown.png": 2, "timer.png": 0}

    def test_a_page_has_more_images_than_any_rule_counts(self) -> None:
        page = page_of(ROOT, *(named(f"{n}.png", n) for n in range(70)))
        assert page.images_before["69.png"] == 69 < page.images_before["/"]


class TestPage:
    def test_its_title_counts(self) -> None:
        assert page_of(ROOT).title == "1 resource, 1 kB"
        assert page_of({**ROOT, "bytes": 1_500_000}, named("a.png")).title == (
            "2 resources, 1,500 kB"
        )

    def test_a_digest_is_the_same_in_every_version(self) -> None:
        """It is in names of edited pages, and in saved results."""
        page = page_of(ROOT, named("a.css"))
        assert page.digest.startswith("54548dd78a99f72d")
        name, _, part = page.without("a.css").name.rpartition("~")
        assert (name, len(part)) == ("page", 6)
        assert page.without("a.css").digest.startswith(part)

    def test_what_is_no_resource_is_refused(self) -> None:
        page = page_of(ROOT)
        for wrong in (5, [5], [*page.resources, "a.css"]):
            with pytest.raises(PageError):
                page.with_resources(wrong)  # type: ignore[arg-type]
        for wrong_id in (5, ["/"], "other"):
            with pytest.raises(UnknownNameError):
                page.without(wrong_id)  # type: ignore[arg-type]

    def test_descendants_go_with_a_resource(self) -> None:
        page = page_of(
            ROOT,
            named("a.css"),
            named("b.png", 1, by="a.css"),
            below("c.png", "b.png"),
            named("d.png"),
        )
        assert [r.id for r in page.without("a.css").resources] == ["/", "d.png"]

    def test_a_preload_is_at_the_start_of_the_document_of_its_resource(self) -> None:
        second = {**ROOT, "id": "/two", "root": True, "discovered": {"at": "time", "delay_ms": 5}}
        page = page_of(ROOT, second, named("a.css", 10, by="/two"))
        assert triggers(page.with_("a.css", preload=True))["a.css"] == ("/two", "offset", 0, 0)
        late = {"by": "/", "at": "complete"}
        kept = page.with_("a.css", preload=True, discovered=late)
        assert triggers(kept)["a.css"] == ("/", "complete", None, 0)
        assert triggers(page.with_("/two", preload=True))["/two"] == (None, "time", None, 5)
        assert triggers(page.with_("a.css", preload=False))["a.css"] == ("/two", "offset", 10, 0)

    def test_values_of_an_edit_may_be_those_of_python(self) -> None:
        when = Discovery(by="/", at=TriggerEvent.COMPLETE)
        page = page_of(ROOT, named("a.png", hero=True))
        edited = page.with_(
            "a.png",
            discovered=when,
            fetchpriority=FetchPriority.LOW,
            priority_changes=(PriorityChange(when=when, visible=True),),
            hero=None,
            mime=None,
        ).resources[1]
        assert edited.discovered == edited.priority_changes[0].when == when
        assert edited.fetchpriority is FetchPriority.LOW
        assert not edited.hero

    def test_labels_are_read_line_by_line(self, tmp_path: Any) -> None:
        page = page_of(ROOT, named("a.png"), named("#b.png"))
        path = tmp_path / "labels.txt"
        path.write_text("# comment\n\n  a.png  \n", encoding="utf-8")
        marks = [r.above_the_fold for r in read_marks(path, page).resources]
        assert marks == [False, True, False]
        path.write_text("a.png\n#b.png\nnothing\n", encoding="utf-8")
        with pytest.raises(InputError) as caught:
            read_marks(path, page)
        assert [problem.key for problem in caught.value.problems] == ["line 3"]

    def test_a_wrong_trigger_hides_no_other_mistake_of_it(self) -> None:
        wrong = {"by": "nowhere", "at": "complete", "delay_ms": -1}
        with pytest.raises(PageError) as caught:
            page_of(ROOT, {**named("a.png"), "discovered": wrong})
        assert [problem.key for problem in caught.value.problems] == [
            "resources[1].discovered.delay_ms",
            "resources[1].discovered.by",
        ]


class TestRecordedFacts:
    def test_times_may_be_parts_of_a_millisecond(self) -> None:
        document = {"load_event_ms": 0.5, "completed_ms": {"/": 0.25}}
        page = h3sim.Page.from_dict({**page_of(ROOT).to_dict(), "recorded_load": document})
        assert page.recorded_load is not None
        assert page.recorded_load.load_event_ns == 500_000
        assert page.awaited_by_load_event == ("/",)

    @pytest.mark.parametrize(
        ("rtt_ns", "n_bytes", "lacks"),
        [(None, None, False), (None, 5, True), (5, None, False), (5, 5, False)],
    )
    def test_a_network_is_missing_where_bytes_were_counted_without_it(
        self, rtt_ns: int | None, n_bytes: int | None, lacks: bool
    ) -> None:
        rate_bps = None if rtt_ns is None else 10**6
        load = RecordedLoad(rtt_ns=rtt_ns, rate_bps=rate_bps, n_bytes=n_bytes)
        assert load.lacks_network is lacks

    def test_rectangles_are_cut_at_every_edge_and_rounded_to_hundredths(self) -> None:
        assert clipped((100, 100), -20, -30, 50, 50) == Rectangle(x=0, y=0, width=30, height=20)
        assert clipped((100, 80), 90, 70, 50, 50) == Rectangle(x=90, y=70, width=10, height=10)
        cut = clipped((100, 100), 0.111, 0.222, 33.3333, 44.4444)
        assert cut == Rectangle(x=0.11, y=0.22, width=33.33, height=44.44)

    def test_shares_are_rounded_to_a_hundredth_of_a_percent(self) -> None:
        box = Rectangle(x=0, y=0, width=10, height=100)
        layout = Layout(width=300, height=100, rectangles={"a": (box,), "b": (box, box)})
        assert (layout.share("a"), layout.share("b"), layout.share("c")) == (0.0333, 0.0667, 0)

    def test_a_coordinate_is_a_million_pixels_at_most(self) -> None:
        assert Rectangle(x=-1_000_000, y=1_000_000, width=0, height=0).x == -1_000_000
        with pytest.raises(PageError, match="x"):
            Rectangle(x=1_000_000.5, y=0, width=0, height=0)


@pytest.mark.parametrize(
    ("head", "format_"),
    [
        (b"\x89PNG\r\n\x1a\n", ImageFormat.PNG),
        (b"GIF89a", ImageFormat.GIF),
        (b"\0\0\0\x1cftypavif\0\0\0\0", ImageFormat.AVIF),
        (b"\0\0\0\x1cftypavis", ImageFormat.AVIF),
        (b"\0\0\0\x1cftypheic", None),
        (b"", None),
        # JPEGs that end too early, with and behind a segment.
        (b"\xff\xd8", None),
        (b"\xff\xd8\xff\xc2\0", None),
        (b"\xff\xd8\xff\xc2\0\x04", ImageFormat.PROGRESSIVE_JPEG),
        (b"\xff\xd8\xff\xe0\0\x04\0\0\xff\xc2\0", None),
        (b"\xff\xd8\xff\xe0\0\x04\0\0\0\xc2\0\x04", None),
    ],
)
def test_first_bytes_of_images(head: bytes, format_: ImageFormat | None) -> None:
    assert ImageFormat.of_bytes(head) is format_


@pytest.mark.parametrize(
    ("name", "format_"),
    [
        ("a.b/c.JPEG?d=e.png", "jpeg"),
        ("logo.svg#part", "svg"),
        ("image/apng", "png"),
        ("image/x.y", "other"),
        ("a.tar.gif", "gif"),
    ],
)
def test_names_of_images(name: str, format_: str) -> None:
    assert ImageFormat.of_name(name).value == format_


def test_a_made_up_page_has_seed_0_unless_another_is_given() -> None:
    assert synthetic() == synthetic(seed=0)
    assert synthetic(seed=2, max_depth=4, script_share=0.27) == synthetic(seed=2)


def test_made_up_pages_have_10_to_214_resources_of_1_byte_to_4_megabytes() -> None:
    """Draws outside these limits are moved to them, so both limits are met."""
    counts = [len(synthetic(seed=seed, max_depth=1).resources) for seed in range(20)]
    assert (min(counts), max(counts)) == (10, 214)
    sizes = [r.size_bytes for r in synthetic(seed=1, n_resources=6_000).resources]
    assert (min(sizes), max(sizes)) == (1, 4_000_000)


def test_a_root_may_be_an_image() -> None:
    page = page_of({**ROOT, "kind": "image"}, named("a.png"), below("b.png", "/"))
    assert set(page.images_before.values()) == {NOT_COUNTED}


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "with_push": ("image",),
    "with_early_hints": ("image",),
    "with_staged_hints": (),
    "with_inlined_styles": (),
    "with_preconnect": ("cdn",),
    "with_inlined": ("image",),
    "with_same_host": ("image",),
    "with_cached": ("image",),
    "with_revalidated": ("image",),
    "with_first_layout": (),
    "merge_pages": (page_of(ROOT, name="other"),),
}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_transform_takes_a_page(name: str) -> None:
    transform: Any = getattr(transforms, name)
    assert transform(page_of(ROOT, named("a.png", host="cdn")), *ARGUMENTS[name]).resources
    for wrong in (None, "davies-meenan", [ROOT]):
        with pytest.raises(InputError) as caught:
            transform(wrong, *ARGUMENTS[name])
        assert [problem.key for problem in caught.value.problems] == ["page"]


def test_every_other_argument_of_a_transform_is_checked() -> None:
    page = page_of(ROOT, named("a.png", host="cdn"))
    calls: tuple[tuple[str, Any], ...] = (
        ("host", lambda: transforms.with_preconnect(page, "")),
        ("host", lambda: transforms.with_preconnect(page, 5)),  # type: ignore[arg-type]
        ("names", lambda: transforms.with_inlined(page, 5)),  # type: ignore[arg-type]
        ("names", lambda: transforms.with_push(page, ["a.png", 5])),  # type: ignore[list-item]
        ("share", lambda: transforms.with_inlined_styles(page, share=0)),
        ("share", lambda: transforms.with_inlined_styles(page, share=1.01)),
        ("other", lambda: transforms.merge_pages(page, "other")),  # type: ignore[arg-type]
        ("opened", lambda: transforms.merge_pages(page, page, opened="behind")),
        ("name", lambda: transforms.merge_pages(page, page, name=5)),  # type: ignore[arg-type]
        ("after_ms", lambda: transforms.merge_pages(page, page, after_ms=86_400_001)),
    )
    for key, call in calls:
        with pytest.raises(InputError) as caught:
            call()
        assert [problem.key for problem in caught.value.problems] == [key]
    assert transforms.merge_pages(page, page, after_ms=86_400_000, name="both").name == "both"


def test_places_in_a_recorded_tree_are_below_resources_and_earlier_groups() -> None:
    def problems(groups: list[dict[str, Any]], depends_on: str) -> list[str]:
        recorded = [{"browser": "firefox", "depends_on": depends_on, "weight": 3}]
        page = page_of(ROOT, named("a.png")).to_dict()
        page["resources"][1]["recorded"] = recorded
        try:
            Page.from_dict({**page, "recorded_groups": groups})
        except PageError as error:
            return [problem.key for problem in error.problems]
        return []

    place, groups = "resources[1].recorded[0].depends_on", [{"name": "g"}]
    below = [*groups, {"name": "h", "depends_on": "g"}]
    for parent in ("", "/", "g", "h"):
        assert problems(below, parent) == []
    for parent in ("i", "a.png"):
        assert problems(below, parent) == [place]
    assert problems([], "g") == [place]
    for wrong in ({"name": "h", "depends_on": "i"}, {"name": "h", "depends_on": "h"}):
        assert problems([*groups, wrong], "") == ["recorded_groups[1].depends_on"]
    for name in ("g", "a.png"):
        assert problems([*groups, {"name": name}], "") == ["recorded_groups[1].name"]


def test_given_sizes_may_be_all_of_a_made_up_page_and_no_more() -> None:
    sizes = {"html_bytes": 10_000, "hero_bytes": 20_000}
    page = synthetic(seed=1, n_resources=12, total_bytes=30_000, **sizes)
    assert sorted(r.size_bytes for r in page.resources) == [*[0] * 10, 10_000, 20_000]
    with pytest.raises(PageError, match="is less than the sum of html_bytes and hero_bytes"):
        synthetic(seed=1, n_resources=12, total_bytes=29_999, **sizes)
    alone = synthetic(seed=1, n_resources=1, total_bytes=10_000, html_bytes=10_000)
    assert alone.total_bytes == 10_000
    with pytest.raises(PageError, match="cannot be reached"):
        synthetic(seed=1, n_resources=1, total_bytes=10_001, html_bytes=10_000)


def test_a_page_file_with_too_many_resources_is_refused_before_it_is_parsed() -> None:
    text = '{"kind"' * 100_001  # no JSON: parsing it would say so
    with pytest.raises(PageError, match="at most 100,000 resources, is 100,001"):
        Page.from_json(text)
