"""CSV in, the same bytes out with cells behind them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paramcalc.errors import FileError, InputError
from paramcalc.fleet.answers import Answer
from paramcalc.fleet.csv_table import CsvTable


def annotated(folder: Path, data: bytes, row: int = 1) -> bytes:
    """The file with a column ``n`` that counts rows, and no faults."""
    path, out = folder / "in.csv", folder / "out.csv"
    path.write_bytes(data)
    table = CsvTable(path, row)
    places = {"model": table.headers.index("model")}
    rows = list(table.cells(places))
    found = [None if c is None else Answer((i,), None) for i, c in enumerate(rows)]
    table.write(out, ["n"], found)
    return out.read_bytes()


DIALECTS = {
    b"model,a\nx,1\n": b"model,a,n,paramcalc_error\nx,1,0,\n",
    b"model,a\r\nx,1\r\n": b"model,a,n,paramcalc_error\r\nx,1,0,\r\n",
    b"model,a\rx,1\r": b"model,a,n,paramcalc_error\rx,1,0,\r",
    b"model,a\nx,1": b"model,a,n,paramcalc_error\nx,1,0,",
    b"model;a,b;c\nx;1,5;\n": b"model;a,b;c;n;paramcalc_error\nx;1,5;;0;\n",
    b"model\ta\nx\t007\n": b"model\ta\tn\tparamcalc_error\nx\t007\t0\t\n",
    b"a|model\n1|x\n": b"a|model|n|paramcalc_error\n1|x|0|\n",
    b"sep=;\nmodel;a\nx;1\n": None,
    b'"model","a"\n"x","1"\n': b'"model","a","n","paramcalc_error"\n"x","1","0",""\n',
    b'model,a\n"x ""y"", z",1\n': b'model,a,n,paramcalc_error\n"x ""y"", z",1,0,\n',
    b'model,a\nx,"two\nlines"\ny,2\n': b'model,a,n,paramcalc_error\nx,"two\nlines",0,\ny,2,1,\n',
    b"\xef\xbb\xbfmodel,a\nx,\xc3\xbc\n": (
        b"\xef\xbb\xbfmodel,a,n,paramcalc_error\nx,\xc3\xbc,0,\n"
    ),
    b"model,a\nx,\xfc\xff\n": b"model,a,n,paramcalc_error\nx,\xfc\xff,0,\n",  # not UTF-8
    b"model,a\n\nx,1\n,\n": b"model,a,n,paramcalc_error\n\nx,1,1,\n,,,\n",
    b"model,a\nx\ny,1,2,3\n": b"model,a,,,n,paramcalc_error\nx,,,,0,\ny,1,2,3,1,\n",
    b"model\nx\n": b"model,n,paramcalc_error\nx,0,\n",
}


@pytest.mark.parametrize("data", [data for data, out in DIALECTS.items() if out])
def test_dialects(data: bytes, tmp_path: Path) -> None:
    assert annotated(tmp_path, data) == DIALECTS[data]


def test_what_stands_above_the_heading(tmp_path: Path) -> None:
    data = b"title\nmodel;a\nx;1\n"
    assert annotated(tmp_path, data, 2) == b"title\nmodel;a;n;paramcalc_error\nx;1;0;\n"


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("sign", [b";", b",", b"\t", b"|", b":"])
def test_a_line_that_names_the_delimiter_is_no_row(
    sign: bytes, mark: bytes, tmp_path: Path
) -> None:
    first, second = mark + b"sep=" + sign + b"\r\n", b"model;a\r\nx;1\r\n".replace(b";", sign)
    third = b"model;a;n;paramcalc_error\r\nx;1;0;\r\n".replace(b";", sign)
    assert annotated(tmp_path, first + second) == first + third
    lower = first + b"title\r\n" + second  # the heading is row 2, as a spreadsheet shows it
    assert annotated(tmp_path, lower, 2) == first + b"title\r\n" + third


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32"])
def test_wide_letters_without_a_mark_are_refused(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes("Model,GPU\r\ngpt2,h100\r\n".encode(encoding))
    with pytest.raises(FileError, match=r"row 1 holds null characters.*save it as UTF-8"):
        CsvTable(path)


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_unicode_text_of_a_spreadsheet(encoding: str, tmp_path: Path) -> None:
    data = "\ufeffmodel\tnote\r\nx\tü\r\n".encode(encoding)
    out = annotated(tmp_path, data).decode(encoding)
    assert out == "\ufeffmodel\tnote\tn\tparamcalc_error\r\nx\tü\t0\t\r\n"


CELL = st.text(st.characters(exclude_characters='\r\n"', exclude_categories=["Cs"]), max_size=6)


@given(rows=st.lists(st.tuples(CELL, CELL), max_size=6), end=st.sampled_from(["\n", "\r\n"]))
def test_every_old_byte_is_there(
    rows: list[tuple[str, str]], end: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    lines = [f'"{a}","{b}"' for a, b in rows]
    old = end.join(["model,b", *lines]) + end
    new = annotated(tmp_path_factory.mktemp("csv"), old.encode()).decode()
    for before, after in zip(old.split(end), new.split(end), strict=True):
        assert after.startswith(before)


BAD = {
    b"": "is empty",
    b'model,a\nx,"1\n': "the last row has an open quote",
    b'model,a\n"x,1\ny,2': "the last row has an open quote",
    b"model,a\n" + b"x" * 140_000: "field larger than field limit",
    b"\xff\xfea\xd8": "not utf-16-le",
}


@pytest.mark.parametrize("data", BAD)
def test_what_cannot_be_read(data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(data)
    with pytest.raises(FileError, match=BAD[data]):
        CsvTable(path)


def test_a_heading_that_is_not_there(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_bytes(b"title\n\nModel name,x\n")
    with pytest.raises(InputError, match=r"header-row = 9: .* has 3 rows"):
        CsvTable(path, 9)
    assert CsvTable(path).near() == "; row 3 looks like a heading: --header-row 3"
    with pytest.raises(FileError, match="no such file"):
        CsvTable(tmp_path / "none.csv")
