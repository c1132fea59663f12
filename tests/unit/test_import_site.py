"""Static sites: what their HTML and CSS make a browser ask for, and where."""

from __future__ import annotations

import gzip
import sys
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from h3sim.importers import RecordingError, import_page
from h3sim.importers.content_encoding import serve
from h3sim.importers.css import StyledDocument, read_sheet
from h3sim.importers.html import read_markup, scan
from h3sim.importers.media_queries import chosen, matches
from h3sim.page import page_to_dict
from h3sim.values.errors import MissingExtraError
from tests.recordings import write_site

if TYPE_CHECKING:
    from pathlib import Path


def site_of(folder: Path, html: str, **files: str) -> dict[str, dict[str, Any]]:
    """Return the resources of a site of these files, a dot in their names written as two _."""
    for name, text in {"index__html": html, **files}.items():
        (folder / name.replace("__", ".")).write_text(text, encoding="utf-8")
    resources = page_to_dict(import_page(folder / "index.html").page)["resources"]
    return {resource.pop("id"): resource for resource in resources}


def test_a_site_is_what_a_browser_of_1366_by_768_asks_for(tmp_path: Path) -> None:
    index = write_site(tmp_path / "shop")
    html = index.read_bytes()
    result = import_page(index, above_the_fold="none")
    served = serve(html, "html")

    def behind(text: bytes) -> dict[str, Any]:
        offset = served.wire(html.index(text) + len(text))
        return {"by": "index.html", "at": "offset", "offset_bytes": offset}

    css = {"by": "css/main.css", "at": "complete"}
    resources = page_to_dict(result.page)["resources"]
    reported = {
        each["id"]: {key: each[key] for key in each if key not in ("id", "kind", "mime", "bytes")}
        for each in resources
    }
    assert reported == {
        "index.html": {},
        "css/main.css": {"in_head": True, "render_blocking": True}
        | {"discovered": behind(b'main.css?v=SECRET">')},
        "blocking.js": {"in_head": True, "render_blocking": True}
        | {"discovered": behind(b'"blocking.js">')},
        "later.js": {"in_head": True, "defer": True, "discovered": behind(b'"later.js">')},
        "module.js": {
            "in_head": True,
            "defer": True,
            "module": True,
            "discovered": behind(b'"module.js">'),
        },
        "async.js": {"in_head": True, "async": True, "discovered": behind(b'"/async.js">')},
        "title.woff2": {"in_head": True, "preload": True, "discovered": behind(b"crossorigin>")},
        "wide.png": {"fetchpriority": "high", "discovered": behind(b'fetchpriority="high">')},
        "m.jpg": {"discovered": behind(b'src="s.jpg">')},
        "bottom.js": {"after_first_image": True, "discovered": behind(b'"bottom.js">')},
        "inline.png": {"in_style": True, "discovered": behind(b'(inline.png)">')},
        "css/more.css": {"render_blocking": True, "discovered": css},
        "hero.png": {"discovered": css},
        "bullet.png": {"discovered": {"by": "css/more.css", "at": "complete"}},
    }
    assert resources[0]["bytes"] == len(gzip.compress(html, 6, mtime=0))
    assert result.page.name == "shop"
    assert result.left_out == {
        "of other hosts": 1,
        "data: and blob: URLs": 1,
        "fonts that no text needs": 1,
    }
    position = html.index(b'gone.png">') + len(b'gone.png">')
    assert [str(problem) for problem in result.skipped] == [
        f"index.html: byte {position}: img: skipped: there is no file 'gone.png'"
    ]


def test_an_offset_is_where_a_decoder_has_the_tag() -> None:
    data = b"".join(b"<p class=%d>%d</p>\n" % (n * n % 97, n**3) for n in range(2000))
    packed, served = gzip.compress(data, 6, mtime=0), serve(data, "html")
    assert served.wire_bytes == len(packed)
    for offset in (1, 5000, 20_000, len(data)):
        sent = served.wire(offset)
        decoded = [
            len(zlib.decompressobj(31).decompress(packed[:end])) for end in (sent, sent - 16)
        ]
        assert decoded[0] >= offset
        assert sent == 16 or decoded[1] < offset


def test_paths_begin_at_the_root_that_is_given(tmp_path: Path) -> None:
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages" / "a.html").write_text('<img src="/i.png"><img src="../j.png">')
    for name in ("i.png", "j.png"):
        (tmp_path / name).write_bytes(b"x")
    page = import_page(tmp_path / "pages" / "a.html", root=tmp_path).page
    assert [resource.id for resource in page.resources] == ["pages/a.html", "i.png", "j.png"]
    assert page.name == f"{tmp_path.name}/pages/a.html"
    with pytest.raises(ValueError, match="--root: is not in"):
        import_page(tmp_path / "pages" / "a.html", root=tmp_path / "other")


@pytest.mark.parametrize(
    "url", ["../secret.txt", "/../secret.txt", "%2e%2e/secret.txt", "a/%2e%2e/%2e%2e/secret.txt",
            "..%2fsecret.txt", "file:///etc/passwd", "..\\secret.txt", "%00", "//h.example/x"],
)  # fmt: skip
def test_no_file_outside_of_the_folder_is_read(tmp_path: Path, url: str) -> None:
    (tmp_path / "secret.txt").write_text("x")
    (tmp_path / "site").mkdir()
    assert list(site_of(tmp_path / "site", f'<img src="{url}">')) == ["index.html"]


def test_a_frame_is_a_document_with_references_of_its_own(tmp_path: Path) -> None:
    inner = "<img src=a.png><iframe src=index.html>"
    resources = site_of(tmp_path, "<iframe src=in.html></iframe>", in__html=inner, a__png="x")
    assert resources["in.html"]["kind"] == "document"
    assert resources["a.png"]["discovered"]["by"] == "in.html"


def test_imports_in_a_circle_end(tmp_path: Path) -> None:
    resources = site_of(
        tmp_path, "<link rel=stylesheet href=a.css>", a__css='@import "b.css";',
        b__css='@import url(a.css); @import "b.css";',
    )  # fmt: skip
    assert list(resources) == ["index.html", "a.css", "b.css"]
    assert resources["b.css"]["discovered"] == {"by": "a.css", "at": "complete"}


def test_css_in_a_document_triggers_at_its_end(tmp_path: Path) -> None:
    html = "<style>p { background: url(a.png) }</style><p>"
    resources = site_of(tmp_path, html, a__png="x")
    offset = html.index("</style>")
    assert resources["a.png"]["discovered"] == {
        "by": "index.html", "at": "offset", "offset_bytes": offset,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["style", "Style", "STYLE"])
def test_the_case_of_an_attribute_does_not_count(tmp_path: Path, name: str) -> None:
    resources = site_of(tmp_path, f"<p {name}='background: url(a.png)'>", a__png="x")
    assert list(resources) == ["index.html", "a.png"]


def test_a_font_loads_if_a_rule_that_applies_names_it_and_the_page_has_its_characters() -> None:
    css = b"""@font-face { font-family: "A b"; src: local(x), url(a.woff2) format("woff2") }
    @font-face { font-family: C; src: url(c.svg) format("svg"), url(c.ttf) format("truetype");
      unicode-range: U+400-4FF }"""
    faces = read_sheet(css).faces
    assert [(face.family, face.url) for face in faces] == [("a b", "a.woff2"), ("c", "c.ttf")]
    for text, is_shown in (("<p>abc", False), ("<p>\u0434", True)):
        data = text.encode()
        assert StyledDocument(data, scan(data)).shows(faces[1]) is is_shown


@pytest.mark.parametrize(
    ("html", "rule", "files"),
    [
        ("<p>", "p { font-family: A }", ["4"]),
        ("<p><b>", "p { font-family: A }", ["4", "7"]),
        ("<p><i>", "p { font-family: A }", ["4", "4i"]),
        ("<p>", "p { font-family: A } q { font-weight: 700; font-style: italic }", ["4"]),
        ("<p>", "p { font: italic 800 1em/1.5 A }", ["4", "7", "4i"]),
        ("<p>", "p { font-family: A; font-weight: 300 }", ["4"]),
    ],
)
def test_a_family_loads_the_faces_whose_weight_and_slant_the_page_needs(
    tmp_path: Path, html: str, rule: str, files: list[str]
) -> None:
    faces = "".join(
        f"@font-face {{ font-family: A; src: url({name}.woff2); {how} }}"
        for name, how in (
            ("4", ""), ("7", "font-weight: bold"), ("4i", "font-style: italic"),
            ("7i", "font-style: italic; font-weight: 700"),
        )
    )  # fmt: skip
    for name in ("4", "7", "4i", "7i"):
        (tmp_path / f"{name}.woff2").write_bytes(b"x")
    resources = site_of(tmp_path, f"<style>{faces}{rule}</style>{html}")
    assert list(resources)[1:] == [f"{name}.woff2" for name in files]


@pytest.mark.parametrize(
    ("selector", "applies"),
    [
        ("p", True), ("p.x, q", True), ("q", False), ("p::before", True), ("p:hover", False),
        ("p:not(:hover)", True), ("div > p", False), (":is(q, p)", True), ("[[", True),
    ],
)  # fmt: skip
def test_selectors_are_looked_for_in_the_document(selector: str, applies: bool) -> None:
    data = b"<body><p class=x>text"
    assert StyledDocument(data, scan(data)).applies(selector) is applies


@pytest.mark.parametrize("rule", ["p " + "div " * 9 + "i", "i ~ " * 9 + "b", "i:nth-child(2n+7)"])
def test_selectors_that_take_the_library_long_are_looked_for_in_part(rule: str) -> None:
    data = b"<div>" * 400 + b"<i></i>" * 100_000
    document = StyledDocument(data, scan(data))
    # Too long a selector is taken to apply, but not if its last parts match nothing.
    assert [document.applies(rule), document.n_guessed] in ([True, 1], [False, 0])
    assert document.applies(f"{rule} q") is False


@pytest.mark.parametrize(
    ("query", "holds"),
    [
        ("", True), ("screen", True), ("print", False), ("not print", True),
        ("not all", False),
        ("only screen and (max-width: 1366px)", True), ("(max-width: 1365px)", False),
        ("(min-width: 60em)", True), ("(width >= 1000px)", True),
        ("(400px < width < 900px)", False),
        ("(orientation: portrait)", False), ("(prefers-color-scheme: dark)", False),
        ("(min-resolution: 2dppx)", False), ("(-webkit-min-device-pixel-ratio: 1)", True),
        ("(hover)", True), ("not (hover)", False), ("(hover: none) or (width > 9px)", True),
        ("(made-up: 1)", False), ("print, screen", True), ("((", False), ("speech", False),
    ],
)  # fmt: skip
def test_media_queries_are_those_of_the_screen(query: str, holds: bool) -> None:
    assert matches(query) is holds


@pytest.mark.parametrize(
    ("srcset", "sizes", "url"),
    [
        ("a 1x, b 2x", "", "a"), ("b 2x, a", "", "a"), ("a 0.5x, b 0.8x", "", "b"),
        ("a 600w, b 1300w, c 1400w, d 3000w", "", "c"), ("a 100w, b 50w", "40px", "b"),
        ("a 700w, b 1400w", "(min-width: 1000px) 50vw, 100vw", "a"),
        ("a,b 2x", "", "a,b"), ("a, b 2x", "", "a"), ("a 1q, b 1x", "", "b"), (",,", "", ""),
    ],
)  # fmt: skip
def test_the_smallest_image_that_is_large_enough_is_chosen(
    srcset: str, sizes: str, url: str
) -> None:
    assert chosen(srcset, sizes) == url


@pytest.mark.parametrize(
    ("html", "urls"),
    [
        ("<img src=a><!-- <img src=b> --><img src=c>", "ac"),
        ("<!--><img src=a>", "a"),
        ("<!--!><img src=a>--!><img src=b>", "b"),
        ("<!---!><img src=a>--><img src=b>", "b"),
        ("<!----!><img src=a>", "a"),
        ("<script>'<img src=a>'</script><img src=b>", "b"),
        ("<script><!--<script></script><img src=a></SCRIPT ><img src=b>", "b"),
        ("<script><!--<script/></script><img src=a>", ""),
        ("<script><!--<scripts></script><img src=a>", "a"),
        ("<script><!--<script>--></script><img src=a>", "a"),
        ("<script><!--><script></script><img src=a>", "a"),
        ("<script><!----!><script></script><img src=a></script><img src=b>", "b"),
        ("<script><script></script><img src=a>", "a"),
        ("<title><img src=a></title><textarea><img src=b></textarea><IMG SRC=c>", "c"),
        ("<noscript><img src=a></noscript><template><img src=b></template><img src=c>", "c"),
        ("<img alt='>' src=a><img alt=it's src=b><img alt=\"\" / src = 'c'>", "abc"),
        ("<script type=text/template src=a></script><script nomodule src=b></script>", ""),
        ("a < b <img src=a", ""),
        ("<p <img src=a>", ""),
        ("<img src=a><img src=a>", "a"),
        ("<picture><source type=image/jxl srcset=a><source srcset=b></picture><img src=c>", "c"),
        ("<picture><source srcset=a><img src=b></picture><img src=c>", "ac"),
        ("<video poster=a><source src=b><source src=c></video>", "ab"),
        ("<video preload=none src=a><source src=b></video>", ""),
        ("<link rel='alternate stylesheet' href=a><link rel=icon href=b>", ""),
        ("<img src=a&amp;b>", "a&b"),
        ("<video src=a><source src=b></video><img src=c>", "ac"),
        ("<video><source media=print src=a><source src=b></video>", "b"),
        ("<iframe srcdoc='<p>' src=a></iframe><iframe src=b></iframe>", "b"),
        ("<link rel=stylesheet type=text/less href=a><link rel=stylesheet type=text/CSS href=b>",
         "b"),
        ("<script type=text/x-javascript src=a></script><script type=text/ld src=b></script>", "a"),
        ("<script type='text/javascript; charset=utf-8' src=a></script>", ""),
        ("<script type=module nomodule src=a></script>", "a"),
        ("<template shadowrootmode=open><img src=a><template><img src=b></template></template>",
         "a"),
        ("<template><template shadowrootmode=open></template><img src=a></template><img src=b>",
         "b"),
    ],
)  # fmt: skip
def test_tags_name_what_is_loaded(html: str, urls: str) -> None:
    found = [reference.url for reference in read_markup(scan(html.encode())).references]
    assert found == ([urls] if "&" in urls else list(urls))


@pytest.mark.parametrize("package", ["tinycss2", "selectolax.lexbor"])
def test_a_missing_library_is_named_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=r"pip install 'h3sim\[import\]'"):
        site_of(tmp_path, "<style>p {}</style><p>")


def test_a_script_that_is_named_as_blocking_blocks_rendering_in_the_head_alone() -> None:
    html = "<script async blocking='x Render' src=a></script>"
    for document, blocks in ((f"<head>{html}</head>", True), (f"<body>{html}", False)):
        (reference,) = read_markup(scan(document.encode())).references
        assert reference.flags.get("render_blocking", False) is blocks


def test_an_import_behind_other_rules_is_none() -> None:
    css = b"""@charset "utf-8"; @import "a.css"; @layer x; @import "b.css"; @media screen {
    @import "c.css"; } @import "d.css"; p { color: red } @import "e.css";"""
    assert read_sheet(css).imports == ["a.css", "b.css"]


def test_images_are_lazy_where_they_say_so(tmp_path: Path) -> None:
    html = '<img src="a.png" loading="lazy"><img src="b.png" loading="eager">'
    found = site_of(tmp_path, html, a__png="a", b__png="b")
    assert found["a.png"]["lazy"] is True
    assert "lazy" not in found["b.png"]


def test_no_link_out_of_the_folder_is_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.css").write_text("p { background: url(found.png) }")
    root = tmp_path / "site"
    (root / "sub").mkdir(parents=True)
    (root / "own.css").write_text("p { color: red }")
    (root / "out.css").symlink_to(tmp_path / "secret.css")
    (root / "up").symlink_to(tmp_path)
    (root / "loop.css").symlink_to(root / "loop.css")
    (root / "inside.css").symlink_to(root / "own.css")
    names = ("out.css", "up/secret.css", "loop.css", "inside.css")
    html = "".join(f"<link rel=stylesheet href={name}>" for name in names)
    (root / "index.html").write_text(f"{html}<p>text")
    result = import_page(root)
    assert [each.id for each in result.page.resources] == ["index.html", "inside.css"]
    skipped = [problem.message for problem in result.skipped]
    assert [message.split("'")[1] for message in skipped] == [
        "out.css",
        "up/secret.css",
        "loop.css",
    ]
    assert ["leads out of the folder" in message for message in skipped] == [True, True, False]
    # A document that is such a link is refused; so is one by the way of a folder that is.
    (root / "sub" / "index.html").symlink_to(tmp_path / "secret.css")
    for document in (root / "sub", root / "up" / "secret.css"):
        with pytest.raises(RecordingError, match="is a link that leads out of"):
            import_page(document, dialect="site", root=root)


def test_a_folder_may_itself_be_reached_by_a_link(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "index.html").write_text("<img src=a.png>")
    (tmp_path / "site" / "a.png").write_bytes(b"x")
    (tmp_path / "link").symlink_to(tmp_path / "site")
    assert len(import_page(tmp_path / "link").page.resources) == 2


@pytest.mark.parametrize("end", [">", ""])
def test_a_tag_with_thousands_of_attributes_is_not_parsed(end: str) -> None:
    def parsed(n_attributes: int) -> StyledDocument:
        data = f"<p {' '.join(f'a{n}=1' for n in range(n_attributes))}{end}".encode()
        return StyledDocument(data, scan(data))

    assert parsed(1_500).is_parsed
    assert not parsed(3_000).is_parsed
    assert parsed(3_000).applies("b")
