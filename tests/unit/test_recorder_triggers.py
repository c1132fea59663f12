"""What made the browser ask: one case for each rule of docs/recording.md."""

from __future__ import annotations

from typing import Any

from h3sim.importers.chromium.recording import Causes, ReceivedDocument, RequestInitiator
from h3sim.importers.formats.devtools import CallFrame, Initiator, RecordedExchange
from h3sim.importers.trace_tasks import CpuTime
from h3sim.page import TriggerEvent

ROOT = "http://x/"
HTML = (
    '<head><link rel=stylesheet href="a.css"><style>p{background:url(back.png)}</style></head>\n'
    '<p>text<img src="b.png">\n'
    "<script>\nfetch('c.json')\n</script>\n"
    "<p>more"
)


def exchange(name: str, at_ms: float, initiator: Initiator, **more: Any) -> RecordedExchange:
    made = RecordedExchange(
        key=name,
        hop_id=name,
        url=f"{ROOT}{name}",
        type="Script",
        frame_id="f",
        start_ms=at_ms,
        asked_by=initiator,
        initiator_type=initiator.type,
        priorities=[(at_ms, "High")],
    )
    made.end_ms = at_ms + 10
    for field, value in more.items():
        setattr(made, field, value)
    return made


def document() -> RecordedExchange:
    """It comes in two pieces of 100 and the rest, at 5 and 8 ms, and is not compressed."""
    root = exchange("", 0.0, Initiator(type="other"), type="Document")
    root.chunks = [(5.0, 0, 100), (8.0, 0, len(HTML) - 100)]
    root.end_ms = 9.0
    root.body_bytes = len(HTML)
    return root


def trigger(
    *exchanges: RecordedExchange, work: dict[str, CpuTime] | None = None, **more: Any
) -> RequestInitiator:
    """Return the trigger of the last one."""
    root = document()
    documents = {root.hop_id: ReceivedDocument(root, HTML)}
    return Causes([root, *exchanges], documents, work or {}, **more).of(exchanges[-1])


def parser(url: str = ROOT, line: int | None = None, column: int = 0) -> Initiator:
    return Initiator(type="parser", url=url, line=line, column=column)


def script(*names: str, line: int = 0) -> Initiator:
    frames = tuple(CallFrame(url=f"{ROOT}{name}", line=line) for name in names)
    return Initiator(type="script", stack=frames)


def message(found: RequestInitiator) -> tuple[int, TriggerEvent, int | None, float]:
    return found.by, found.at, found.offset_bytes, found.delay_ms


def test_what_a_tag_names_waits_for_the_bytes_of_the_tag() -> None:
    end = HTML.index('"a.css">') + len('"a.css">')
    css = exchange("a.css", 7.0, parser())
    assert message(trigger(css)) == (0, TriggerEvent.OFFSET, end, 2.0)
    end = HTML.index('"b.png">') + len('"b.png">')
    image = exchange("b.png", 8.5, parser())
    assert end > 100  # so it came with the second piece, at 8 ms
    assert message(trigger(image)) == (0, TriggerEvent.OFFSET, end, 0.5)


def test_a_request_ahead_of_its_bytes_has_no_delay() -> None:
    assert trigger(exchange("b.png", 6.0, parser())).delay_ms == 0


def test_what_inline_style_names_waits_for_its_place() -> None:
    end = HTML.index("back.png") + len("back.png")
    assert message(trigger(exchange("back.png", 20.0, parser(line=3)))) == (
        0,
        TriggerEvent.OFFSET,
        end,
        15.0,
    )


def test_what_no_tag_names_waits_for_the_place_that_the_browser_reports() -> None:
    end = HTML.index("\n") + 1 + 4
    found = trigger(exchange("other.png", 20.0, parser(line=1, column=4)))
    assert message(found)[:3] == (0, TriggerEvent.OFFSET, end)


def test_what_a_stylesheet_names_waits_for_all_of_it() -> None:
    css = exchange("a.css", 5.0, parser())
    font = exchange("f.woff2", 18.0, parser(f"{ROOT}a.css"))
    assert message(trigger(css, font)) == (1, TriggerEvent.COMPLETE, None, 3.0)


def test_what_a_script_asks_for_waits_until_it_has_run() -> None:
    js = exchange("a.js", 5.0, parser())
    image = exchange("b.png", 30.0, script("a.js"))
    work = {f"{ROOT}a.js": CpuTime(parse_ms=2.0, execute_ms=4.0)}
    assert message(trigger(js, image, work=work)) == (1, TriggerEvent.EXECUTED, None, 9.0)


def test_a_loader_waits_for_a_script_before_it_inserts_the_next() -> None:
    """As RequireJS: its own stack has only the loader, which ran long before."""
    loader = exchange("require.js", 5.0, parser())
    one = exchange("one.js", 30.0, script("require.js"))
    slow = exchange("slow.js", 30.0, script("require.js"))
    two = exchange("two.js", 60.0, script("require.js"))
    image = exchange("a.png", 60.0, script("require.js"), type="Image")
    ran_us = {f"{ROOT}{name}": at for name, at in (("require.js", 20e3), ("one.js", 45e3))}
    ran_us[f"{ROOT}slow.js"] = 70e3
    found = trigger(loader, one, slow, two, ran_us=ran_us)
    assert message(found) == (2, TriggerEvent.EXECUTED, None, 15.0)
    assert trigger(loader, one, slow, image, ran_us=ran_us).by == 1


def test_of_the_scripts_on_a_stack_the_one_that_ran_last_counts() -> None:
    library = exchange("library.js", 5.0, parser())
    deferred = exchange("deferred.js", 5.1, parser())
    bottom = exchange("bottom.js", 5.2, parser())
    image = exchange("b.png", 90.0, script("library.js", "deferred.js", "bottom.js"))
    started = {"library.js": 10.0, "bottom.js": 20.0, "deferred.js": 30.0}
    work = {f"{ROOT}{name}": CpuTime(started_us=at) for name, at in started.items()}
    assert trigger(library, deferred, bottom, image, work=work).by == 2
    # Without a trace the one that was asked for last counts.
    assert trigger(library, deferred, bottom, image).by == 3


def test_what_an_inline_script_asks_for_waits_for_the_end_of_that_script() -> None:
    end = HTML.index("</script") + len("</script")
    line = HTML[: HTML.index("fetch(")].count("\n")
    found = trigger(exchange("c.json", 12.0, script("", line=line)))
    assert message(found) == (0, TriggerEvent.OFFSET, end, 4.0)


def test_what_a_module_imports_waits_for_all_of_the_module() -> None:
    module = exchange("m.js", 5.0, parser())
    imported = exchange("n.js", 16.0, Initiator(type="script", url=f"{ROOT}m.js"))
    assert message(trigger(module, imported)) == (1, TriggerEvent.COMPLETE, None, 1.0)


def test_what_follows_a_synchronous_request_waits_for_its_answer() -> None:
    js = exchange("a.js", 5.0, parser())
    first = exchange("one.json", 20.0, script("a.js"), type="XHR")
    second = exchange("two.json", 31.0, script("a.js"), type="XHR")
    found = trigger(js, first, second, waited=[first.url])
    assert message(found) == (2, TriggerEvent.COMPLETE, None, 1.0)
    assert trigger(js, first, second).by == 1


def test_a_redirection_leads_from_the_answer_to_the_next_request() -> None:
    first = exchange("old.css", 5.0, parser(), status=302)
    second = exchange("new.css", 16.0, parser(), redirected_from=first)
    assert message(trigger(first, second)) == (1, TriggerEvent.COMPLETE, None, 1.0)


def test_what_nobody_names_waits_for_the_document() -> None:
    found = trigger(exchange("beacon", 30.0, Initiator(type="other")))
    assert message(found) == (0, TriggerEvent.COMPLETE, None, 21.0)


def test_what_a_promise_inserts_waits_for_the_response_that_was_there_last() -> None:
    """It has no stack, and its document does not name it: Chromium says "other" or "parser"."""
    js = exchange("a.js", 5.0, parser())
    early = exchange("one.json", 16.0, script("a.js"), type="Fetch")
    late = exchange("two.json", 31.0, script("a.js"), type="Fetch")
    stood = Initiator(type="parser", url=ROOT, line=1, column=3)
    for initiator in (Initiator(type="other"), parser(), stood):
        image = exchange("i.png", 30.0, initiator, type="Image")
        assert message(trigger(js, early, image)) == (2, TriggerEvent.COMPLETE, None, 4.0)
        # What has not ended by then cannot have led to it.
        late_image = exchange("i.png", 40.0, initiator, type="Image")
        assert trigger(js, early, late, late_image).by == 2


def test_what_follows_a_script_without_a_stack_waits_until_that_has_run() -> None:
    js = exchange("a.js", 5.0, parser())
    image = exchange("i.png", 30.0, Initiator(type="other"), type="Image")
    work = {js.url: CpuTime(parse_ms=1.0, execute_ms=2.0, started_us=1.0)}
    assert message(trigger(js, image, work=work)) == (1, TriggerEvent.EXECUTED, None, 12.0)
