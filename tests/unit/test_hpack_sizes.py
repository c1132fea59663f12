"""What HPACK makes of fields: by hand from RFC 7541, and beside the `hpack` package."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import h3sim
from h3sim.headers.hpack import HpackSizes
from h3sim.headers.wire import HUFFMAN_BITS, STATIC_TABLE
from h3sim.page import page_from_dict
from h3sim.transport.tcp.records import HEADER_BYTES

GET = (
    (b":method", b"GET"),
    (b":scheme", b"http"),
    (b":path", b"/"),
    (b":authority", b"www.example.com"),
)


def test_requests_take_what_the_examples_of_the_rfc_take() -> None:
    sizes = HpackSizes()
    # RFC 7541, appendix C.4: 17 bytes; then 12, with cache-control: no-cache; then 24.
    assert sizes.section_bytes(GET) == 17
    assert sizes.section_bytes((*GET, (b"cache-control", b"no-cache"))) == 12
    third = (
        (b":method", b"GET"),
        (b":scheme", b"https"),
        (b":path", b"/index.html"),
        (b":authority", b"www.example.com"),
        (b"custom-key", b"custom-value"),
    )
    assert sizes.section_bytes(third) == 24


def test_an_old_entry_leaves_for_a_new_one() -> None:
    # Entries of 32 + 3 + 15 and 32 + 3 + 15 bytes: two do not fit into 99.
    first, second = ((b"x-a", b"0" * 15),), ((b"x-b", b"1" * 15),)
    for table_bytes, again in ((100, 1), (99, 16)):
        sizes = HpackSizes(table_bytes)
        # 1 for the literal, 4 for the name; 1 and 10 for 15 digits of 5 bits.
        assert sizes.section_bytes(first) == 1 + 4 + 1 + 10
        sizes.section_bytes(second)
        assert sizes.section_bytes(first) == again


def test_a_path_makes_no_entry() -> None:
    sizes = HpackSizes()
    path = ((b":path", b"/a/long/enough/path"),)
    assert sizes.section_bytes(path) == sizes.section_bytes(path) > 10


def test_the_tables_are_those_of_the_hpack_package() -> None:
    pytest.importorskip("hpack")
    from hpack.huffman_constants import REQUEST_CODES_LENGTH
    from hpack.table import HeaderTable

    assert tuple(HeaderTable.STATIC_TABLE) == STATIC_TABLE
    assert tuple(REQUEST_CODES_LENGTH[:256]) == HUFFMAN_BITS


NAMES = st.sampled_from([b":path", b":authority", b"accept", b"x-own", b"cookie", b"referer"])
# hpack codes every string by Huffman, also where that is longer: so bytes of at most 8 bits.
VALUES = st.text(alphabet="abcdwxyzAZ0189/.-=%", max_size=40).map(str.encode)
FIELDS = st.tuples(NAMES, VALUES)
SECTIONS = st.lists(st.lists(FIELDS, max_size=6).map(tuple), max_size=12)


@given(sections=SECTIONS, table_bytes=st.sampled_from([0, 40, 100, 300, 4096]))
def test_sections_take_what_the_hpack_package_makes_of_them(
    sections: list[tuple[tuple[bytes, bytes], ...]], table_bytes: int
) -> None:
    hpack = pytest.importorskip("hpack")
    theirs = hpack.Encoder()
    theirs.header_table_size = table_bytes
    theirs.encode([])  # the change of the table's size
    ours = HpackSizes(table_bytes)
    for fields in sections:
        # hpack gives those an entry that are not sensitive.
        marked = [(name, value, name == b":path") for name, value in fields]
        assert ours.section_bytes(fields) == len(theirs.encode(marked))


def requests(transport: str, network: str = "4g", **document: int) -> list[int]:
    """Return the bytes up, of each request, of a page of a document and two images behind it."""
    image = {"kind": "image", "bytes": 900, "discovered": {"by": "/", "at": "complete"}}
    resources = [
        {"id": "/", "kind": "document", "bytes": 900, **document},
        {"id": "a.png", **image},
        {"id": "b.png", **image},
    ]
    page = page_from_dict({"format": "h3sim-page/1", "name": "three", "resources": resources})
    load = h3sim.simulate(
        page, network=network, transport=transport, handshake="none", record_packets=True
    )
    up = [row.size_bytes for row in load.trace.wire if not row.is_down]
    return [size - HEADER_BYTES for size in up if size > HEADER_BYTES]


def test_requests_of_http2_cost_what_hpack_makes_of_them() -> None:
    # 9 bytes of a frame's header each; 22 of a record around the one, and around both images.
    assert requests("tcp") == [417 + 9 + 22, 119 + 21 + 2 * 9 + 22]


def test_the_request_size_of_a_page_counts_and_is_indexed_all_the_same() -> None:
    assert requests("tcp", request_bytes=200) == [200 + 9 + 22, 119 + 21 + 2 * 9 + 22]
