"""What becomes of the requests of a HAR that are not simply answered."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest

import h3sim
from h3sim.importers import import_page
from tests.recordings import SITE, entry, har, resources_of, write_recording

if TYPE_CHECKING:
    from pathlib import Path

PAGE = entry("/", 0, 100, mime="text/html")


def initiated_by(path: str, type_: str = "parser") -> dict[str, Any]:
    return {"type": type_, "url": f"{SITE}{path}"}


def image(path: str, start_ms: float, **more: Any) -> dict[str, Any]:
    more.setdefault("_initiator", initiated_by("/"))
    return entry(path, start_ms, 60, mime="image/png", **more)


@pytest.mark.parametrize(
    ("what", "left_out"),
    [
        (image("data:image/png;base64,AAAA", 120), "data: and blob: URLs"),
        (image(f"blob:{SITE}/1-2", 120), "data: and blob: URLs"),
        (image("chrome-extension://abc/x.png", 120), "not over HTTP"),
        (image("wss://shop.example/live", 120), "not over HTTP"),
        (image("/a.png", 120, response_status=0), "failed or were blocked"),
        (image("/a.png", 120, _fromCache="disk"), "from the cache"),
        (image("/a.png", 120, response_bodySize=0, response__transferSize=0), "from the cache"),
        (image("/a.png", 120, response__fetchedViaServiceWorker=True), "from a service worker"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_took_no_bytes_from_the_server_is_left_out_and_counted(
    tmp_path: Path, what: dict[str, Any], left_out: str
) -> None:
    result = import_page(write_recording(tmp_path, har(PAGE, what)))
    assert [resource.id for resource in result.page.resources] == ["/"]
    assert result.left_out == {left_out: 1}


def test_what_a_cached_script_asked_for_moves_to_the_page(tmp_path: Path) -> None:
    script = entry("/a.js", 120, 1, mime="text/javascript", _fromCache="memory",
                   _initiator=initiated_by("/"))  # fmt: skip
    fetch = image("/b.png", 150, _initiator=initiated_by("/a.js", "script"))
    resources = resources_of(tmp_path, har(PAGE, script, fetch))
    assert resources["b.png"]["discovered"] == {"by": "/", "at": "complete", "delay_ms": 50.0}


def test_a_page_that_is_redirected_is_painted_where_that_leads(tmp_path: Path) -> None:
    moved = {"response_status": 301, "response_redirectURL": "/home", "response_bodySize": 0}
    hop = entry("/", 0, 30, mime="text/html", **moved)
    home = entry("/home", 30, 100, mime="text/html")
    path = write_recording(tmp_path, har(hop, home, image("/a.png", 140)))
    page = h3sim.importers.read_har(path)
    assert [page.resources[root].id for root in page.roots] == ["/", "home"]
    load = h3sim.simulate(page, scheme="fifo", browser="parse", network="marx-2019")
    rows = {row.id: row for row in load.roots}
    assert load.first_paint_ms == rows["home"].requested_ms + (rows["home"].first_paint_ms or 0)


def test_an_answer_304_has_a_header_and_no_body(tmp_path: Path) -> None:
    old = image("/a.png", 120, response_status=304, response_bodySize=0)
    resource = resources_of(tmp_path, har(PAGE, old))["a.png"]
    assert (resource["bytes"], resource["header_bytes"]) == (0, 100)


def test_a_redirect_is_a_resource_and_triggers_its_target(tmp_path: Path) -> None:
    moved = entry("/", 0, 40, mime="", response_status=301, response_bodySize=0,
                  response_redirectURL="/home?q=SECRET")  # fmt: skip
    home = entry("/home?q=SECRET", 45, 100, mime="text/html")
    resources = resources_of(tmp_path, har(moved, home, image("/a.png", 200)))
    assert list(resources) == ["/", "home", "a.png"]
    assert resources["/"]["kind"] == "document"
    assert resources["/"]["bytes"] == 0
    assert resources["home"]["discovered"] == {"by": "/", "at": "complete", "delay_ms": 5.0}


def test_a_push_follows_the_request_of_the_page(tmp_path: Path) -> None:
    pushed = image("/a.png", 30, _was_pushed="1")
    resources = resources_of(tmp_path, har(PAGE, pushed))
    assert resources["a.png"]["discovered"] == {"by": "/", "at": "request", "delay_ms": 30.0}


@pytest.mark.parametrize(
    ("response", "size"),
    [
        ({"bodySize": 500, "_transferSize": 900}, 500),
        ({"bodySize": -1, "_transferSize": 900}, 800),
        # Less the text of the header, 39 bytes over HTTP/1.1: it does not count twice.
        ({"bodySize": -1, "_transferSize": 900, "headersSize": -1}, 861),
        ({"bodySize": -1, "content": {"size": 2000, "compression": 1400}}, 600),
        ({"bodySize": -1, "content": {"size": 2000}}, 2000),
        ({"bodySize": 0, "content": {"size": 0}}, 0),
        ({"bodySize": -1, "content": {"size": -1}}, 0),
        ({"bodySize": 0, "_transferSize": 900}, 800),
    ],
)
def test_sizes_are_taken_in_the_stated_order(
    tmp_path: Path, response: dict[str, Any], size: int
) -> None:
    more = {f"response_{name}": value for name, value in response.items()}
    assert resources_of(tmp_path, har(PAGE, image("/a.png", 120, **more)))["a.png"]["bytes"] == size


@pytest.mark.parametrize(
    ("path", "mime", "how", "kind"),
    [
        ("/a", "text/css", {}, "stylesheet"),
        ("/a", "image/svg+xml", {}, "image"),
        ("/a", "application/ld+json", {}, "fetch"),
        ("/a.woff2", "application/octet-stream", {}, "font"),
        ("/a.js", "", {}, "script"),
        ("/a", "", {}, "other"),
        ("/a", "text/html", {"_resourceType": "xhr"}, "fetch"),
        ("/a", "text/html", {"request_headers": [{"name": "Sec-Fetch-Dest", "value": "iframe"}]},
         "document"),
        ("/a", "text/html", {"request_headers": [
            {"name": "X-Requested-With", "value": "XMLHttpRequest"}]}, "fetch"),
    ],
)  # fmt: skip
def test_kinds_come_from_the_recorder_then_the_media_type_then_the_name(
    tmp_path: Path, path: str, mime: str, how: dict[str, Any], kind: str
) -> None:
    resources = resources_of(tmp_path, har(PAGE, entry(path, 120, 60, mime=mime, **how)))
    assert resources[path.lstrip("/")]["kind"] == kind


def test_markup_that_was_recorded_says_where_and_how_a_resource_is_named(tmp_path: Path) -> None:
    html = "<head><script defer src='/a.js'></script></head>" + " " * 952
    page = entry(
        "/",
        0,
        100,
        mime="text/html",
        response_bodySize=500,
        response_content={"size": 1000, "mimeType": "text/html", "text": html},
    )
    script = entry("/a.js", 130, 60, mime="text/javascript")
    result = import_page(write_recording(tmp_path, har(page, script)))
    resource = result.page.resources[1]
    assert (resource.in_head, resource.is_defer, resource.render_blocking) == (True, True, False)
    # The tag ends at byte 32 of 1000, so at 16 of 500; those were there at 80 + 20 * 16/500 ms.
    assert resource.discovered.offset_bytes == 16
    assert resource.discovered.delay_ns == 49_360_000
    assert result.inferred["parent from the markup"] == 1


@pytest.mark.parametrize(
    ("priority", "flags"),
    [
        ("High", (True, True, False, False)),
        ("Medium", (False, False, False, True)),
        ("Low", (False, False, True, False)),
    ],
)
def test_the_priority_of_a_script_tells_how_its_tag_was(
    tmp_path: Path, priority: str, flags: tuple[bool, ...]
) -> None:
    script = entry("/a.js", 120, 60, mime="text/javascript", _priority=priority,
                   _initiator=initiated_by("/"))  # fmt: skip
    found = import_page(write_recording(tmp_path, har(PAGE, script))).page.resources[1]
    reported = (found.in_head, found.render_blocking, found.is_async, found.after_first_image)
    assert reported == flags


def _script(path: str, start_ms: float, **more: Any) -> dict[str, Any]:
    more.setdefault("_initiator", initiated_by("/"))
    return entry(path, start_ms, 60, mime="text/javascript", **more)


def test_the_head_of_a_redirected_page_is_that_of_the_document_it_leads_to(tmp_path: Path) -> None:
    hop = entry("/", 0, 30, mime="text/html", response_status=301, response_redirectURL="/home")
    home = entry("/home", 30, 100, mime="text/html")
    script = _script("/a.js", 120, _priority="High", _initiator=initiated_by("/home"))
    found = import_page(write_recording(tmp_path, har(hop, home, script))).page.resources[2]
    assert (found.in_head, found.render_blocking) == (True, True)


def test_what_nobody_asked_for_comes_of_the_document_behind_the_redirects(tmp_path: Path) -> None:
    moved = {"response_status": 301, "response_redirectURL": "/home"}
    hop = entry("/", 0, 30, mime="text/html", **moved)
    early = entry("/early.png", 20, 60, mime="image/png")
    home = entry("/home", 30, 100, mime="text/html")
    late = entry("/late.png", 140, 60, mime="image/png")
    resources = resources_of(tmp_path, har(hop, early, home, late))
    assert resources["early.png"]["discovered"]["by"] == "/"
    assert resources["late.png"]["discovered"] == {"by": "home", "at": "complete", "delay_ms": 10.0}


def test_a_script_that_a_script_adds_with_a_low_priority_is_async(tmp_path: Path) -> None:
    by_script = initiated_by("/a.js", "script")
    log = har(
        PAGE,
        _script("/a.js", 120, _priority="High"),
        _script("/low.js", 190, _priority="Low", _initiator=by_script),
        _script("/high.js", 190, _priority="High", _initiator=by_script),
    )
    found = import_page(write_recording(tmp_path, log)).page.resources
    assert [resource.id for resource in found if resource.is_async] == ["low.js"]
    assert not any(resource.in_head for resource in found[2:])


def test_a_loader_of_scripts_waits_for_one_before_it_inserts_the_next(tmp_path: Path) -> None:
    """The stack names only the loader, which ran long before."""
    frame = {"url": f"{SITE}/require.js", "functionName": "load"}
    stack = {"_initiator": {"type": "script", "stack": {"callFrames": [frame]}}}
    loader = _script("/require.js", 90, _initiator=initiated_by("/"))
    one, two = _script("/one.js", 200, **stack), _script("/two.js", 320, **stack)
    seen = image("/c.png", 320, **stack)
    found = resources_of(tmp_path, har(PAGE, loader, one, two, seen))
    by = {name: found[name]["discovered"]["by"] for name in ("one.js", "two.js", "c.png")}
    assert by == {"one.js": "require.js", "two.js": "one.js", "c.png": "require.js"}


def test_the_first_image_is_the_first_that_the_document_names(tmp_path: Path) -> None:
    style = entry("/a.css", 100, 10, mime="text/css", _initiator=initiated_by("/"))
    back = image("/back.png", 112, _initiator=initiated_by("/a.css"))
    # Of one millisecond those that stand ahead of the image in the file come before it.
    log = har(PAGE, style, back, _script("/a.js", 120), image("/b.png", 120), _script("/c.js", 120))
    found = import_page(write_recording(tmp_path, log)).page.resources
    assert [each.id for each in found if each.in_head] == ["a.css", "a.js"]
    assert [each.id for each in found if each.after_first_image] == ["c.js"]


def test_initiators_in_a_circle_are_not_believed_where_time_runs_backwards(tmp_path: Path) -> None:
    entries = [PAGE]
    for number, by in ((1, 3), (2, 1), (3, 2)):
        initiator = initiated_by(f"/{by}.js")
        entries.append(entry(f"/{number}.js", 110 + number, 60, mime="text/javascript",
                             _initiator=initiator))  # fmt: skip
    result = import_page(write_recording(tmp_path, har(*entries)))
    assert [each.discovered and each.discovered.by for each in result.page.resources] == [
        None, "/", "1.js", "2.js",
    ]  # fmt: skip
    assert result.inferred["initiators that begin later, not believed"] == 1


def test_the_clock_gives_a_parent_where_nothing_else_does(tmp_path: Path) -> None:
    document = har(
        PAGE,
        entry("/a.css", 90, 60, mime="text/css"),
        entry("/b.js", 90, 90, mime="text/javascript"),
        entry("/c.css", 95, 100, mime="text/css"),
        entry("/early.woff2", 140, 60, mime="font/woff2"),
        entry("/title.woff2", 170, 60, mime="font/woff2"),
        entry("/api", 300, 60, mime="application/json"),
        entry("/late.png", 3000, 60, mime="image/png"),
    )
    resources = resources_of(tmp_path, document)
    found = {id_: each["discovered"]["by"] for id_, each in resources.items() if id_ != "/"}
    # At 140 ms no stylesheet is complete; at 170 ms only a.css; at 300 ms the one script. The
    # parser stood at c.css last before it came upon late.png.
    assert found == {
        "a.css": "/", "b.js": "/", "c.css": "/", "early.woff2": "/", "title.woff2": "a.css",
        "api": "b.js", "late.png": "c.css",
    }  # fmt: skip


def test_one_host_can_be_kept(tmp_path: Path) -> None:
    style = entry(
        "https://cdn.example/a.css", 90, 60, mime="text/css", _initiator=initiated_by("/")
    )
    font = entry(
        "/t.woff2",
        170,
        60,
        mime="font/woff2",
        _initiator={"type": "parser", "url": "https://cdn.example/a.css"},
    )
    path = write_recording(tmp_path, har(PAGE, style, font))
    assert import_page(path).found["hosts"] == 2
    result = import_page(path, host="Shop.Example")
    assert [
        (each.id, each.discovered and each.discovered.by) for each in result.page.resources
    ] == [
        ("/", None),
        ("t.woff2", "/"),
    ]
    assert result.left_out == {"of other hosts": 1}
    with pytest.raises(
        ValueError, match=r"no request to 'x\.example'; its hosts are shop\.example, "
    ):
        import_page(path, host="x.example")


def test_one_page_load_of_several_is_taken(tmp_path: Path) -> None:
    document = har(
        entry("/", 0, 100, mime="text/html", pageref="p1"),
        entry("/second", 900, 100, mime="text/html", pageref="p2"),
        pages=[{"id": "p1"}, {"id": "p2"}],
    )
    assert list(resources_of(tmp_path, document)) == ["/"]
    assert list(resources_of(tmp_path, document, page=2)) == ["second"]
    with pytest.raises(ValueError, match="has 2 pages; there is no page 3"):
        resources_of(tmp_path, document, page=3)


PAINT = {"event": "LargestImagePaint", "time": 900}
BACKGROUND = {"background-image": f'url("{SITE}/late.png")'}


@pytest.mark.parametrize(
    "page",
    [
        {"_LargestContentfulPaintImageURL": f"{SITE}/late.png"},
        {"_largestPaints": [PAINT | {"nodeInfo": {"sourceURL": f"{SITE}/late.png#x"}}]},
        {"_largestPaints": [PAINT | {"nodeInfo": {"styles": BACKGROUND}}]},
        {
            "_largestPaints": [
                PAINT | {"nodeInfo": {"sourceURL": f"{SITE}/0.png"}, "time": 300},
                PAINT | {"event": "LargestContentfulPaint", "element": {"src": f"{SITE}/late.png"}},
            ]
        },
    ],
)
def test_the_image_of_the_largest_paint_is_above_the_fold(tmp_path: Path, page: Any) -> None:
    document = har(
        PAGE | {"pageref": "p1"},
        *(image(f"/{n}.png", 120 + n) for n in range(7)),
        image("/late.png", 400),
        pages=[{"id": "p1", **page}],
    )
    imported = import_page(write_recording(tmp_path, document))
    found = {each.id: each for each in imported.page.resources}
    assert found["late.png"].hero
    assert found["late.png"].above_the_fold
    assert not found["6.png"].above_the_fold
    assert sum(each.hero for each in found.values()) == 1
    assert "largest paint 1" in str(imported)


def test_a_largest_paint_of_text_names_no_image(tmp_path: Path) -> None:
    text = {"event": "LargestTextPaint", "time": 950, "nodeInfo": {"nodeType": "P"}}
    first = PAINT | {"nodeInfo": {"sourceURL": f"{SITE}/0.png"}}
    reported = {"id": "p1", "_largestPaints": [first, text]}
    document = har(PAGE | {"pageref": "p1"}, image("/0.png", 120), pages=[reported])
    found = import_page(write_recording(tmp_path, document)).page.resources
    assert not any(each.hero for each in found)


@pytest.mark.parametrize(
    ("document", "dialect"),
    [
        (har(PAGE, creator="Playwright", browser={"name": "firefox"}), "har-playwright"),
        (har(PAGE, creator="x", browser={"name": "Firefox"}), "har-firefox"),
        (har(PAGE, image("/a.png", 120), creator="x"), "har-devtools"),
        (har(entry("/", 0, 100, _bytesIn=9), creator="x"), "har-webpagetest"),
        (har(entry("/", 0, 100, _initiator_type="x"), creator="x"), "har-chrome-har"),
        (har(PAGE, creator="x"), "har"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_dialect_is_told_by_the_writer_then_by_its_fields(
    tmp_path: Path, document: dict[str, Any], dialect: str
) -> None:
    assert import_page(write_recording(tmp_path, document)).dialect == dialect


def test_ids_are_paths_made_unique(tmp_path: Path) -> None:
    entries = [image(f"/a.png?n={number}", 120 + number) for number in range(3)]
    other = image("https://cdn.example/a.png;jsessionid=SECRET", 130)
    resources = resources_of(tmp_path, har(PAGE, *entries, other))
    assert list(resources) == ["/", "a.png", "a.png (2)", "a.png (3)", "cdn.example/a.png"]


def test_ids_do_not_hang_on_which_of_equal_paths_was_asked_for_first(tmp_path: Path) -> None:
    def ids(*numbers: int) -> dict[str, int]:
        entries = [image(f"/a.png?n={n}", 120 + position, response_bodySize=n + 1)
                   for position, n in enumerate(numbers)]  # fmt: skip
        resources = resources_of(tmp_path, har(PAGE, *entries))
        return {id_: resource["bytes"] for id_, resource in resources.items() if id_ != "/"}

    expected = {"a.png": 1, "a.png (2)": 2, "a.png (3)": 3}
    assert ids(0, 1, 2) == ids(2, 0, 1) == expected


def test_escapes_in_a_path_are_undone_but_for_what_cannot_be_seen(tmp_path: Path) -> None:
    resources = resources_of(tmp_path, har(PAGE, image("/caf%C3%A9%20%0A%1B[2J%ED%A0%80.png", 120)))
    assert list(resources) == ["/", "caf\u00e9 [2J\ufffd\ufffd\ufffd.png"]


def test_a_gzipped_file_is_read_alike(tmp_path: Path) -> None:
    packed = gzip.compress(json.dumps(har(PAGE)).encode())
    path = write_recording(tmp_path, packed, "shop.har.gz")
    plain = h3sim.import_page(write_recording(tmp_path, har(PAGE))).page
    assert h3sim.importers.read_har(path).resources == plain.resources


def test_entries_need_not_stand_in_the_order_of_time(tmp_path: Path) -> None:
    document = har(image("/b.png", 130), image("/a.png", 120), PAGE)
    assert list(resources_of(tmp_path, document)) == ["/", "a.png", "b.png"]


CACHED = {"response__transferSize": 0, "response_bodySize": 0, "_fromCache": "disk"}
WITHOUT_CACHE = "record with the cache disabled and service workers bypassed"


def test_a_main_document_from_the_cache_is_told_with_the_root_that_was_taken(
    tmp_path: Path,
) -> None:
    main = entry("/?user=SECRET", 0, 5, mime="text/html", **CACHED)
    frame = entry("https://ads.example/frame?SECRET", 40, 60, mime="text/html")
    beacon = entry("https://count.example/b.gif", 30, 60, mime="image/gif")
    warm = import_page(write_recording(tmp_path, har(main, beacon, frame)))
    assert warm.page.name == "ads.example"
    assert warm.warnings == (
        f"the main document, https://shop.example/, came from the cache: {WITHOUT_CACHE}."
        " The root is now https://ads.example/frame, the first document that was sent",
    )
    assert warm.lines()[1] == f"warning: {warm.warnings[0]}"
    assert warm.to_dict()["warnings"] == list(warm.warnings)
    (alone,) = import_page(write_recording(tmp_path, har(main, beacon))).warnings
    assert alone.endswith("https://count.example/b.gif, the first request that was sent")


def test_a_main_document_that_was_not_modified_is_told(tmp_path: Path) -> None:
    main = entry("/", 0, 5, mime="text/html", response_status=304, response_bodySize=0)
    (reported,) = import_page(write_recording(tmp_path, har(main))).warnings
    assert reported == f"the main document was not modified (304): {WITHOUT_CACHE}"


def test_frames_from_the_cache_are_no_main_document(tmp_path: Path) -> None:
    main = entry("/", 0, 50, mime="text/html")
    frame = entry("/frame", 40, 6, mime="text/html", **CACHED)
    assert import_page(write_recording(tmp_path, har(main, frame))).warnings == ()
    host = import_page(write_recording(tmp_path, har(main, frame)), host="shop.example")
    assert host.warnings == ()


def test_the_number_of_hosts_goes_into_the_page(tmp_path: Path) -> None:
    other = entry("https://cdn.example/a.png", 40, 60, mime="image/png")
    pages = [import_page(write_recording(tmp_path, har(entry("/", 0, 50), *more))).page
             for more in ((), (other,))]  # fmt: skip
    assert [page.provenance.get("hosts") for page in pages] == ["1", "2"]


def test_the_icon_of_the_tab_is_no_part_of_the_page(tmp_path: Path) -> None:
    by_browser = {"_initiator": {"type": "other"}, "_resourceType": "other"}
    image = by_browser | {"_resourceType": "image"}
    document = har(
        entry("/", 0, 100, mime="text/html"),
        entry("/seen.png", 120, 100, mime="image/png", **image),
        entry("/icon.svg", 300, 100, mime="image/svg+xml", **by_browser),
        entry("/favicon.ico", 300, 100, mime="text/html", **by_browser),
    )
    found = import_page(write_recording(tmp_path, document))
    assert [each.id for each in found.page.resources] == ["/", "seen.png"]
    assert found.left_out == {"for the icon of the tab": 2}


def test_images_that_a_callback_inserted_follow_the_fetch_for_which_it_waited(
    tmp_path: Path,
) -> None:
    by_callback = {"_initiator": {"type": "other"}, "_resourceType": "image"}
    asked = {"request_headers": [{"name": "Referer", "value": f"{SITE}/"}]}
    document = har(
        entry("/", 0, 60, mime="text/html"),
        entry("/main.css", 70, 60, mime="text/css"),
        entry("/app.js", 70, 80, mime="text/javascript"),
        entry("/list.json", 160, 60, mime="application/json", _resourceType="fetch"),
        entry("/late.css", 170, 60, mime="text/css"),
        entry("/0.png", 240, 60, mime="image/png", **by_callback, **asked),
    )
    found = resources_of(tmp_path, document)["0.png"]
    assert found["discovered"] == {"by": "list.json", "at": "complete", "delay_ms": 20}


@pytest.mark.parametrize(
    ("body", "waits_for"),
    [
        (
            "<div id=root>&nbsp;</div><noscript>Scripts!</noscript><!-- no text -->",
            ["a.js", "b.js"],
        ),
        ("<svg><defs/><symbol><path d=M0><text>a</text></symbol></svg>", ["a.js", "b.js"]),
        ("<template><p>text</p></template><iframe src=c>text</iframe>", ["a.js", "b.js"]),
        ("<div id=root>Loading</div>", None),
        ("<img src=data:,>", None),
        ("<svg><path d=M0></svg>", None),
    ],
)
def test_an_empty_document_is_first_painted_after_its_scripts_and_what_they_load(
    tmp_path: Path, body: str, waits_for: list[str] | None
) -> None:
    html = f"<head><title>Shop</title><script defer src='/a.js'></script></head><body>{body}"
    content = {"size": len(html), "mimeType": "text/html", "text": html}
    page = entry("/", 0, 100, mime="text/html", response_content=content)
    inserted = _script("/b.js", 200, _initiator=initiated_by("/a.js", "script"))
    paint = import_page(
        write_recording(tmp_path, har(page, _script("/a.js", 120), inserted))
    ).page.first_paint
    assert (None if paint is None else list(paint.after)) == waits_for
