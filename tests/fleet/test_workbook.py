"""Workbooks: made by openpyxl and XlsxWriter, changed in one sheet only, hostile ones refused."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
import xlsxwriter
from openpyxl.chart import BarChart, Reference
from openpyxl.comments import Comment
from openpyxl.styles import Font, PatternFill

from paramcalc.errors import FileError, InputError
from paramcalc.fleet.answers import Answer
from paramcalc.fleet.row import Fault
from paramcalc.fleet.workbook import WorkbookTable
from tests import office

YELLOW = PatternFill("solid", fgColor="FFFFDD00")


def fleet(path: Path) -> None:
    """A planner's workbook with all that may get lost."""
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.title = "Fleet"
    for row in (
        ["Model", "GPUs", "Price", "Twice"],
        ["llama3-8b", 1, 2.49, "=B2*2"],
        ["=A2", 8, 2.5, "=B3*2"],
        ["@evil", True, "=1+1", None],
        [],
        ["qwen3-8b", 1e3, "007", "x"],
        [None, 2, None, "y"],
    ):
        sheet.append(row)
    for cell in sheet[1]:
        cell.font, cell.fill = Font(bold=True), YELLOW
    sheet["A4"].data_type = "s"
    sheet.merge_cells("A6:A7")
    sheet["A2"].comment = Comment("mine", "me")
    sheet["E2"].fill = sheet["Z3"].fill = YELLOW
    sheet.freeze_panes = "B2"
    sheet.column_dimensions["A"].width = 33
    sheet.row_dimensions[2].height = 40
    chart = BarChart()
    chart.add_data(Reference(sheet, min_col=2, min_row=1, max_row=4), titles_from_data=True)
    sheet.add_chart(chart, "A20")
    other = book.create_sheet("Other")
    other["A1"] = "=SUM(Fleet!B2:B9)"
    hidden = book.create_sheet("Hidden")
    hidden.sheet_state = "hidden"
    hidden["A1"] = "Model"
    book.save(path)


def annotated(path: Path, out: Path, figures: tuple[Any, ...] = (7, 2**60, True, "=1+1")) -> None:
    table = WorkbookTable(path)
    rows = list(table.cells({"model": 0}))
    answers = [None if row is None else Answer(figures, "said & <b>") for row in rows]
    table.write(out, ["i", "big", "yes", "text"], answers)


def test_everything_else_survives(tmp_path: Path) -> None:
    path, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    fleet(path)
    annotated(path, out)
    before, after = zipfile.ZipFile(path), zipfile.ZipFile(out)
    assert before.namelist() == after.namelist()
    changed = [name for name in before.namelist() if before.read(name) != after.read(name)]
    assert changed == ["xl/worksheets/sheet1.xml", "xl/styles.xml"]
    old, new = openpyxl.load_workbook(path)["Fleet"], openpyxl.load_workbook(out)["Fleet"]
    for row in old.iter_rows(max_col=4):
        for cell in row:
            same = new[cell.coordinate]
            assert (cell.value, cell.data_type) == (same.value, same.data_type)
            assert repr((cell.fill, cell.font)) == repr((same.fill, same.font))
    assert [c.value for c in new[1]][4:9] == ["i", "big", "yes", "text", "paramcalc_error"]
    assert new["E1"].font.b
    assert repr(new["E1"].fill) == repr(old["D1"].fill)
    assert [c.value for c in new[2]][4:9] == [7, str(2**60), True, "=1+1", "said & <b>"]
    assert new["E2"].number_format == "#,##0"
    assert new["H2"].data_type == "s"
    assert [c.value for c in new[5]][4:9] == [None] * 5
    assert new["Z3"].fill.fgColor.rgb == "FFFFDD00"
    assert new.dimensions == "A1:Z7"
    assert new["A2"].comment is not None
    assert new.freeze_panes == "B2"
    assert new.column_dimensions["A"].width == 33
    assert new.column_dimensions["E"].width == 18
    assert new.merged_cells == old.merged_cells
    before.close()
    after.close()


def test_cells_are_read_as_a_person_sees_them(tmp_path: Path) -> None:
    path = tmp_path / "in.xlsx"
    fleet(path)
    table = WorkbookTable(path)
    assert table.headers == ["Model", "GPUs", "Price", "Twice"]
    rows = list(table.cells({"model": 0, "gpus": 1, "price": 2}))
    assert rows[0] == {"model": "llama3-8b", "gpus": "1", "price": "2.49"}
    assert rows[1] is not None
    assert isinstance(rows[1]["model"], Fault)
    assert rows[1]["model"].text.startswith("a formula without a stored value")
    assert rows[2] is not None
    assert (rows[2]["model"], rows[2]["gpus"]) == ("@evil", "true")
    assert rows[3] == {"model": "qwen3-8b", "gpus": "1000", "price": "007"}
    assert rows[4] is not None
    assert rows[4]["model"] == Fault("inside the merged cells A6:A7; unmerge them")


def test_xlsxwriter_shared_texts_formulas_and_a_title(tmp_path: Path) -> None:
    path, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    book = xlsxwriter.Workbook(str(path))
    sheet = book.add_worksheet("a")
    sheet.merge_range("A1:Z1", "Our fleet")
    sheet.write_row(2, 0, ["x", "Model", "x"])
    sheet.write_formula(3, 1, '="llama3"&"-8b"', value="llama3-8b")
    rich = [book.add_format({"bold": True}), "qwen3", "-8b"]
    sheet.write_rich_string(4, 1, *rich)
    book.close()
    table = WorkbookTable(path, 3)
    assert table.headers == ["x", "Model", "x"]
    rows = list(table.cells({"model": 1}))
    assert rows == [{"model": "llama3-8b"}, {"model": "qwen3-8b"}]
    table.write(out, ["i"], [Answer((5,), None)] * 2)
    new = openpyxl.load_workbook(out)["a"]
    assert [c.value for c in new[3]][:5] == ["x", "Model", "x", "i", "paramcalc_error"]
    assert new["B4"].value == '="llama3"&"-8b"'
    assert new["D5"].value == 5
    with pytest.raises(InputError, match="header-row = 2: the row is empty in sheet a"):
        WorkbookTable(path, 2)
    assert WorkbookTable(path).near() == "; row 3 looks like a heading: --header-row 3"


@office.needs_office
def test_libreoffice_reads_what_was_written(tmp_path: Path) -> None:
    path, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    fleet(path)
    annotated(path, out)
    (text,) = office.convert([out], tmp_path, "csv")
    lines = text.read_text(encoding="utf-8").splitlines()
    assert lines[0] == "Model,GPUs,Price,Twice,i,big,yes,text,paramcalc_error"
    end = f"7,{2**60},TRUE,=1+1,said & <b>"
    assert lines[1].replace(",1,=1+1", ",TRUE,=1+1") == f"llama3-8b,1,2.49,2,{end}"


def test_sheets(tmp_path: Path) -> None:
    path = tmp_path / "in.xlsx"
    fleet(path)
    assert WorkbookTable(path).sheet == "Fleet"
    assert WorkbookTable(path, sheet="Hidden").headers == ["Model"]
    with pytest.raises(InputError, match="sheet = Flet: no such sheet"):
        WorkbookTable(path, sheet="Flet")
    assert "other sheets: Fleet, Hidden" in WorkbookTable(path, sheet="Other").near()


def with_part(path: Path, out: Path, name: str, data: bytes) -> Path:
    """A workbook with a part changed."""
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, data if info.filename == name else old.read(info))
    return out


def test_other_spellings_of_the_same_xml(tmp_path: Path) -> None:
    path, out = tmp_path / "in.xlsx", tmp_path / "out.xlsx"
    fleet(path)
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    cells = "".join(
        f'<x:row spans="1:1"><x:c t="inlineStr"><x:is><x:t>{text}</x:t></x:is></x:c><x:c/></x:row>'
        for text in ("Model", "gpt2")
    )
    xml = f'<x:worksheet xmlns:x="{main}"><x:sheetData>{cells}<x:row/></x:sheetData></x:worksheet>'
    with_part(path, tmp_path / "x.xlsx", "xl/worksheets/sheet1.xml", xml.encode())
    table = WorkbookTable(tmp_path / "x.xlsx")
    assert list(table.cells({"model": 0})) == [{"model": "gpt2"}, None]
    table.write(out, ["i"], [Answer((5,), None), None])
    new = openpyxl.load_workbook(out)["Fleet"]
    assert [[c.value for c in row] for row in new.iter_rows(max_row=2)] == [
        ["Model", "i", "paramcalc_error"],
        ["gpt2", 5, None],
    ]


def test_hostile_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, bad = tmp_path / "in.xlsx", tmp_path / "bad.xlsx"
    fleet(path)
    sheet = "xl/worksheets/sheet1.xml"
    bomb = b'<!DOCTYPE x [<!ENTITY a "aa"><!ENTITY b "&a;&a;">]><x>&b;</x>'
    for data, why in ((bomb, "declares a document type"), (b"<row", "is no XML")):
        with pytest.raises(FileError, match=why):
            WorkbookTable(with_part(path, bad, sheet, data))
    with pytest.raises(FileError, match="UTF-16"):
        WorkbookTable(with_part(path, bad, sheet, "\ufeff<x/>".encode("utf-16-le")))
    for data, why in (
        (b"\xd0\xcf\x11\xe0old", r"an old \.xls, or a workbook with a password"),
        (b"text", "no workbook"),
        (path.read_bytes()[:-900], "no workbook"),
    ):
        bad.write_bytes(data)
        with pytest.raises(FileError, match=why):
            WorkbookTable(bad)
    raw = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as book:
        start = book.getinfo(sheet).header_offset
    raw[start + 80 : start + 120] = b"\0" * 40
    bad.write_bytes(raw)
    with pytest.raises(FileError, match="is broken"):
        WorkbookTable(bad)
    monkeypatch.setattr("paramcalc.fleet.package.MOST_BYTES", 5_000)
    with pytest.raises(FileError, match=r"bytes in \d+ parts, unpacked"):
        WorkbookTable(path)
    with pytest.raises(FileError, match="no such file"):
        WorkbookTable(tmp_path / "none.xlsx")
