"""Exports of the HTTP Archive: a page for each page load, in whatever order its rows are."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow
import pyarrow.parquet
import pytest

from h3sim.catalog import load_page
from h3sim.cli import main
from h3sim.importers import RecordingError, import_page, read_archive
from h3sim.importers.formats.archive import is_archive
from h3sim.page import page_to_dict
from tests.recordings import SITE, archive_lines, entry, har, write_recording

if TYPE_CHECKING:
    from pathlib import Path

NEWS = "https://news.example/today"
SHOP = (
    entry("/?q=SECRET", 0, 100, mime="text/html"),
    entry("/app.js", 90, 60, mime="text/javascript", _initiator=f"{SITE}/?q=SECRET",
          **{"_cpu.EvaluateScript": 30}),
)  # fmt: skip
PAPER = (entry(NEWS, 0, 80, mime="text/html"),)
LINES = [
    *archive_lines(*SHOP).splitlines(keepends=True),
    *archive_lines(*PAPER, page=NEWS).splitlines(keepends=True),
]


def pages_of(path: Path) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for name, result in read_archive(path):
        assert not isinstance(result, RecordingError), str(result)
        document = page_to_dict(result.page)
        del document["provenance"]
        found.append((name, document))
    return found


def write_lines(folder: Path, *lines: str) -> Path:
    return write_recording(folder, "".join(lines), "rows.jsonl")


def test_every_page_load_becomes_a_page(tmp_path: Path) -> None:
    (shop, first), (news, second) = pages_of(write_lines(tmp_path, *LINES))
    assert (shop, news) == ("shop.example-mobile", "news.example-today-mobile")
    assert [each["id"] for each in first["resources"]] == ["/", "app.js"]
    assert first["resources"][1]["execute_ms"] == 30.0
    assert first["resources"][1]["discovered"]["by"] == "/"
    assert [each["id"] for each in second["resources"]] == ["today"]
    assert first["recorded_load"]["load_event_ms"] == 250.0


def test_the_order_of_the_rows_of_different_pages_does_not_matter(tmp_path: Path) -> None:
    mixed = [LINES[0], LINES[3], LINES[1], LINES[4], LINES[2]]
    assert pages_of(write_lines(tmp_path, *mixed)) == pages_of(write_lines(tmp_path, *LINES))


def test_a_list_of_rows_and_parquet_say_the_same(tmp_path: Path) -> None:
    expected = pages_of(write_lines(tmp_path, *LINES))
    rows = [json.loads(line) for line in LINES]
    assert pages_of(write_recording(tmp_path, rows)) == expected
    table = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table, row_group_size=2)
    assert is_archive(table)
    assert pages_of(table) == expected


def test_columns_that_were_taken_out_of_a_payload_are_put_back(tmp_path: Path) -> None:
    payload = {**SHOP[0], "request": {"url": f"{SITE}/"}, "pageref": "page_1"}
    payload["response"] = {"status": 200, "content": {"mimeType": "text/html", "size": 9}}
    row: dict[str, Any] = {
        "page": f"{SITE}/",
        "payload": payload,
        "request_headers": [{"name": "Priority", "value": "u=0"}],
        "response_headers": json.dumps([{"name": "Content-Length", "value": "70"}]),
        "response_body": "<script src=app.js async></script>",
    }
    script: dict[str, Any] = row | {
        "payload": SHOP[1] | {"pageref": "page_1", "_initiator": ""},
    }
    del script["response_body"]
    ((name, page),) = pages_of(write_recording(tmp_path, [row, script]))
    root, found = page["resources"]
    assert name == "shop.example"
    assert (root["bytes"], root["recorded"][0]["urgency"]) == (70, 0)
    assert found["async"] is True  # told by the markup


def test_no_query_and_no_cookie_is_kept(tmp_path: Path) -> None:
    lines = archive_lines(*SHOP, page=f"{SITE}/cart?user=SECRET")
    ((name, result),) = read_archive(write_lines(tmp_path, lines))
    assert not isinstance(result, RecordingError)
    assert name == "shop.example-cart-mobile"
    assert "SECRET" not in json.dumps([page_to_dict(result.page), result.to_dict()])
    assert result.page.provenance["source"] == "rows.jsonl"


def test_equal_names_are_numbered_and_clients_are_told_apart(tmp_path: Path) -> None:
    more = [archive_lines(*PAPER, page=NEWS, **key) for key in (
        {"client": "desktop"}, {"date": "2026-04-01"})]  # fmt: skip
    names = [name for name, _ in pages_of(write_lines(tmp_path, *LINES[3:], *more))]
    assert names == [
        "news.example-today-mobile", "news.example-today-desktop", "news.example-today-mobile-2",
    ]  # fmt: skip


def test_a_page_that_cannot_be_made_does_not_stop_the_others(tmp_path: Path) -> None:
    bad = json.dumps({"page": "https://bad.example/", "payload": "{"}) + "\n"
    first, second = read_archive(write_lines(tmp_path, bad, *LINES[3:]))
    assert isinstance(first.result, RecordingError)
    assert "row 1.payload: skipped: must be an object, or one as text" in str(first.result)
    assert not isinstance(second.result, RecordingError)


def test_of_a_file_that_is_cut_off_the_rows_before_are_used(tmp_path: Path) -> None:
    pages = read_archive(write_lines(tmp_path, *LINES, '{"page": "x", "pay'))
    assert next(pages).name == "shop.example-mobile"
    assert next(pages).name == "news.example-today-mobile"
    with pytest.raises(RecordingError, match=r"is cut off.*; the rows before are used"):
        next(pages)


def test_the_command_writes_a_page_file_for_each(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, folder = write_lines(tmp_path, *LINES), tmp_path / "new" / "corpus"
    assert main(["import", str(path), "-o", f"{folder}/"]) == 0
    names = ["news.example-today-mobile.json", "shop.example-mobile.json"]
    assert sorted(file.name for file in folder.iterdir()) == names
    printed = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in printed] == [
        "shop.example-mobile", "news.example-today-mobile",
    ]  # fmt: skip
    assert [each.id for each in load_page(str(folder / names[0])).resources] == ["today"]
    bad = write_lines(tmp_path, '{"page": "x", "payload": "{"}')
    assert main(["import", str(bad), "-o", str(folder)]) == 1


def test_one_page_load_is_imported_as_from_any_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mixed = [LINES[0], LINES[3], LINES[1], LINES[4], LINES[2]]
    rows = write_lines(tmp_path, *mixed)
    for number, (name, document) in enumerate(pages_of(rows), 1):
        imported = import_page(rows, page=number)
        assert (imported.page.name, imported.dialect) == (name, "http-archive")
        assert imported.found["pages"] == 2
        assert page_to_dict(imported.page)["resources"] == document["resources"]
    with pytest.raises(RecordingError, match="has 2 page loads; there is no page 3"):
        import_page(rows, page=3)
    with pytest.raises(RecordingError, match="has rows of the HTTP Archive: it is not har"):
        import_page(rows, dialect="har")
    cut = import_page(write_lines(tmp_path, *LINES, '{"page": "x", "pay'))
    assert any("the rows before are used" in problem.message for problem in cut.skipped)
    assert main(["import", str(rows), "--page", "2"]) == 0
    assert "news.example-today-mobile: 1 resource" in capsys.readouterr().out


def test_a_folder_and_an_archive_go_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = write_lines(tmp_path, *LINES)
    table = tmp_path / "rows.parquet"
    table.write_bytes(b"PAR1 but no more")
    for read in (import_page, lambda path: list(read_archive(path))):
        with pytest.raises(RecordingError, match="is not valid Parquet"):
            read(table)
    recording = write_recording(tmp_path, har(*SHOP), "one.har")
    (tmp_path / "file").touch()
    for arguments, message in (
        ([str(recording), "-o", str(tmp_path)], "has no rows of the HTTP Archive"),
        ([str(rows), "-o", f"{tmp_path}/x/", "--page", "2"], "--page: does not go with a folder"),
        ([str(rows), "-o", f"{tmp_path}/file/"], "--output: cannot be made a folder"),
    ):
        assert main(["import", *arguments]) == 2
        assert message in capsys.readouterr().err


def test_a_damaged_footer_is_blamed_on_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = tmp_path / "rows.parquet"
    rows = [{"page": NEWS, "client": "mobile", "payload": "{}"}]
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), table)
    data = bytearray(table.read_bytes())
    n_footer = int.from_bytes(data[-8:-4], "little")
    footer = slice(len(data) - 8 - n_footer, len(data) - 8)
    # The schema of Arrow is in the footer as text of base 64.
    at = data.index(b"ARROW:schema", footer.start, footer.stop) + 30
    data[at : at + 40] = b"/" * 40
    table.write_bytes(data)
    for output in ([], ["-o", f"{tmp_path}/pages/"]):
        assert main(["import", str(table), *output]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert f"{table}: " in line
        assert "standard output" not in line
        assert line.isprintable()


def test_a_file_that_is_cut_off_is_used_in_part(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cut = write_lines(tmp_path, *LINES, '{"page": "x", "pay')
    folder = tmp_path / "pages"
    assert main(["import", str(cut), "-o", f"{folder}/"]) == 1
    assert len(list(folder.iterdir())) == 2
    assert "the rows before are used" in capsys.readouterr().err
    broken = write_lines(tmp_path, '{"page": "x", "pay')
    assert main(["import", str(broken), "-o", f"{tmp_path}/none/"]) == 2
