"""What imports know of modules, of prefetch links, and of lazy images that a link requests."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import h3sim
from h3sim.importers import import_page
from h3sim.importers.chromium.recording import Document
from h3sim.importers.formats.devtools import CallFrame, Initiator
from h3sim.importers.modules import imports_of
from tests.recordings import SITE, entry, har, resources_of, write_recording
from tests.unit.test_import_site import site_of
from tests.unit.test_recorder_triggers import exchange, parser, trigger

if TYPE_CHECKING:
    from pathlib import Path


PARSED = {"type": "parser", "url": f"{SITE}/"}


def found_by(entry_of: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the parent and event of each trigger of a resource."""
    found = entry_of["discovered"]
    triggers = found if isinstance(found, list) else [found]
    return [(each["by"], each["at"]) for each in triggers]


# Modules


def test_a_site_has_what_its_modules_import(tmp_path: Path) -> None:
    """A module that several import is requested when the first of them is there."""
    html = '<head><script type=module src="a.js"></script></head><body>text'
    resources = site_of(
        tmp_path,
        html,
        a__js='import "./b.js"; import {one} from "./shared.js"; import("./later.js");',
        b__js='export * from "./shared.js"; import "library";',
        shared__js="export const one = 1",
        later__js="",
    )
    assert [*resources] == ["index.html", "a.js", "b.js", "shared.js"]
    assert found_by(resources["b.js"]) == [("a.js", "complete")]
    assert found_by(resources["shared.js"]) == [("a.js", "complete"), ("b.js", "complete")]
    assert all(resources[f"{name}.js"]["module"] for name in ("a", "b", "shared"))
    result = import_page(tmp_path / "index.html")
    assert result.left_out["imports of bare names"] == 1
    assert result.page.module_graphs == {1: (3, 2, 1), 2: (3, 2)}


def test_modules_may_import_each_other_and_a_preloaded_one(tmp_path: Path) -> None:
    html = (
        '<head><link rel=modulepreload href="c.js"><script type=module src="a.js"></script></head>'
    )
    resources = site_of(
        tmp_path, html, a__js='import "./b.js"', b__js='import "./a.js"; import "./c.js"', c__js=""
    )
    assert found_by(resources["a.js"]) == [("index.html", "offset"), ("b.js", "complete")]
    assert found_by(resources["c.js"]) == [("index.html", "offset"), ("b.js", "complete")]
    assert resources["c.js"]["preload"]


def test_a_module_in_the_document_requests_its_imports_where_it_ends(tmp_path: Path) -> None:
    html = "<body><script type=module>import './a.js'</script><script>import('./b.js')</script>"
    resources = site_of(tmp_path, html, a__js="import './c.js'", b__js="", c__js="")
    assert [*resources] == ["index.html", "a.js", "c.js"]
    assert resources["a.js"]["defer"]
    # A classic script imports nothing before it runs.
    classic = site_of(tmp_path, '<script src="a.js"></script>')
    assert [*classic] == ["index.html", "a.js"]


def test_only_imports_that_a_browser_requests_before_running_are_found() -> None:
    source = b"""import{a as b}from'./1.js';import*as n from"./2.js"
        /* import './no.js' */ const text = "import './no.js'", more = `import './no.js'`
        export {default} from './3.js'; export default "./no.js"; import.meta.url
        import /* why */ './4.js'; object.import('./no.js'); import('./no.js')
        export class Field { static from }
        import './5.js'"""
    assert imports_of(source) == [f"./{n}.js" for n in range(1, 6)]


def test_reading_imports_takes_time_in_proportion_to_the_length() -> None:
    for text in (b"import {", b"/*", b"import a from ", b"import '", b"import/*", b"`", b"import"):
        began = time.process_time()
        imports_of(text * (400_000 // len(text)))
        assert time.process_time() - began < 5, text


def scripted(path: str, start_ms: float, by: str, *, has_stack: bool) -> dict[str, Any]:
    initiator: dict[str, Any] = {"type": "script", "url": f"{SITE}{by}"}
    if has_stack:
        frame = {"url": f"{SITE}{by}", "functionName": "f", "lineNumber": 1, "columnNumber": 0}
        initiator = {"type": "script", "stack": {"callFrames": [frame]}}
    return entry(path, start_ms, 40, mime="text/javascript", _initiator=initiator)


def test_a_har_tells_imports_by_initiators_without_a_stack(tmp_path: Path) -> None:
    """The image follows the last module by 10 ms: the first had ended 110 ms before it."""
    document = har(
        entry("/", 0, 100, mime="text/html"),
        entry("/a.js", 110, 40, mime="text/javascript", _initiator=PARSED),
        scripted("/b.js", 152, "/a.js", has_stack=False),
        scripted("/c.js", 195, "/b.js", has_stack=False),
        scripted("/late.js", 245, "/a.js", has_stack=True),
    )
    resources = resources_of(tmp_path, document)
    assert [name for name, each in resources.items() if each.get("module")] == [
        "a.js",
        "b.js",
        "c.js",
    ]
    assert resources["b.js"]["discovered"] == {"by": "a.js", "at": "complete", "delay_ms": 2}
    assert resources["c.js"]["discovered"] == {"by": "b.js", "at": "complete", "delay_ms": 3}
    assert resources["late.js"]["discovered"] == {"by": "a.js", "at": "executed", "delay_ms": 10}
    page = h3sim.importers.read_har(write_recording(tmp_path, document))
    load = h3sim.simulate(page, scheme="fifo", network="marx-2019")
    times = {row.id: row for row in load.timings}
    assert times["late.js"].requested_ms == times["c.js"].finished_ms + 10


def test_a_har_without_stacks_names_no_modules(tmp_path: Path) -> None:
    """WebPageTest records the URL of the script that added another one, and no stack."""
    document = har(
        entry("/", 0, 100, mime="text/html"),
        entry("/a.js", 110, 40, mime="text/javascript", _initiator=PARSED),
        scripted("/b.js", 152, "/a.js", has_stack=False),
    )
    resources = resources_of(tmp_path, document)
    assert not any(each.get("module") for each in resources.values())


def test_the_recorder_counts_delays_from_the_last_import() -> None:
    """b is there at 60: the image leaves 15 ms later, not 45 ms after a."""
    by_a = Initiator(type="script", url="http://x/a.js")
    on_stack = Initiator(type="script", stack=(CallFrame(url="http://x/a.js", line=0),))
    found = trigger(
        exchange("a.js", 20, parser()),
        exchange("b.js", 50, by_a),
        exchange("c.png", 75, on_stack, type="Image"),
    )
    assert (found.by, found.at.value, found.delay_ms) == (1, "executed", 15)


# Prefetch links


def test_a_prefetch_link_is_kept_unless_the_page_uses_the_file(tmp_path: Path) -> None:
    html = (
        '<head><link rel=prefetch href="next.html"><link rel=prefetch as=image href="used.png">'
        '<link rel=stylesheet href="s.css"></head><img src="used.png">'
    )
    resources = site_of(tmp_path, html, next__html="<img src=no.png>", used__png="1", s__css="")
    assert [*resources] == ["index.html", "s.css", "used.png", "next.html"]
    assert resources["next.html"]["prefetch"]
    assert resources["next.html"]["kind"] == "other"
    assert "prefetch" not in resources["used.png"]


def test_a_har_keeps_a_prefetch_as_nothing_of_the_page(tmp_path: Path) -> None:
    html = '<head><link rel="prefetch" href="/next.html"></head>'
    document = har(
        entry(
            "/",
            0,
            100,
            mime="text/html",
            response_content={"text": html, "mimeType": "text/html", "size": len(html)},
        ),
        entry("/next.html", 130, 40, mime="text/html", _initiator=PARSED),
    )
    resource = resources_of(tmp_path, document)["next.html"]
    assert (resource["kind"], resource["prefetch"]) == ("other", True)


# Lazy images and links


LAZY_THEN_LINK = (
    '<body><img src="a.png" loading=lazy><link rel=preload as=image href="a.png"><p>text'
)


def test_a_link_behind_a_lazy_element_requests_the_image(tmp_path: Path) -> None:
    resources = site_of(tmp_path, LAZY_THEN_LINK, a__png="1")
    link_end = LAZY_THEN_LINK.index("<p>")
    assert resources["a.png"]["lazy"]
    assert resources["a.png"]["preload"]
    found = resources["a.png"]["discovered"]["offset_bytes"]
    alone = site_of(tmp_path, LAZY_THEN_LINK[:link_end].replace(" loading=lazy", ""), a__png="1")
    assert found > alone["a.png"]["discovered"]["offset_bytes"]
    reference = Document(LAZY_THEN_LINK, f"{SITE}/").references[f"{SITE}/a.png"]
    assert reference.offset_bytes == link_end


def test_an_element_behind_its_link_stays_lazy(tmp_path: Path) -> None:
    html = '<head><link rel=preload as=image href="a.png"></head><img src="a.png" loading=lazy>'
    resource = site_of(tmp_path, html, a__png="1")["a.png"]
    assert resource["lazy"]
    assert resource["preload"]
