"""Pictures: the kind that fits the axes, whole files, no cut or wrong data."""

from __future__ import annotations

from pathlib import Path

import pytest

from paramcalc.cli.main import main
from paramcalc.sweep.request import Plan, Request
from paramcalc.views import sweep_plot

Capture = pytest.CaptureFixture[str]
LINE = (("n_layers", "8:96:4"),)
GRID = (*LINE, ("d_model", "1024:4096:1024"), ("n_heads", "d/128"), ("n_kv_heads", "8"))
THREE = (*LINE, ("n_kv_heads", "2,8"), ("context", "1k,2k"))


def points(axes: tuple[tuple[str, str], ...], **more: tuple[str, ...]) -> sweep_plot.Points:
    return sweep_plot.gather(Plan(Request(axes=axes, **more), with_axes=True))  # type: ignore[arg-type]


def test_an_expression_is_no_axis_of_its_own() -> None:
    assert points(LINE).axes == ["n_layers"]
    assert points(GRID).axes == ["n_layers", "d_model"]
    assert points(THREE).axes == ["n_layers", "n_kv_heads", "context"]


def test_what_each_picture_shows() -> None:
    chart = sweep_plot._figure(points(LINE, columns=("params",))).axes[0]
    line = chart.lines[0]
    assert line.get_xdata().tolist() == [float(n) for n in range(8, 97, 4)]
    assert line.get_ydata()[6] == 8_030_261_248
    heat = sweep_plot._figure(points(GRID, columns=("params",))).axes[0]
    assert heat.collections[0].get_array().shape == (23, 4)
    cloud = sweep_plot._figure(points(THREE, columns=("params", "kv_bytes"))).axes[0]
    assert len(cloud.collections[0].get_offsets()) == 23 * 2 * 2
    assert cloud.get_ylabel() == "kv_bytes (bytes)"


@pytest.mark.parametrize(
    ("name", "start"), [("a.png", b"\x89PNG"), ("a.svg", b"<?xml"), ("a.html", b"<!doctype html>")]
)
def test_files(name: str, start: bytes, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / name
    assert main(["sweep", "--layers", "8:96:4", "--plot", str(path)]) == 0
    assert path.read_bytes().startswith(start)
    assert [p.name for p in tmp_path.iterdir()] == [name]
    assert main(["sweep", "--layers", "8:96:4", "--plot", str(path)]) == 2
    assert "exists; name another or give --force" in capsys.readouterr().err


def test_in_the_terminal(capsys: Capture) -> None:
    assert main(["sweep", "--layers", "8:96:4", "--plot", "-"]) == 0
    text = capsys.readouterr().out
    assert "llama3-8b: 23 shapes" in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("line", "ticks"),
    [
        ("--layers 8:96:8 --columns kv_bytes", ("3.22 GB", "268.44 MB")),
        ("--layers 8:96:8 --columns params", ("21.99 G", "2.796 G", "params (parameters)")),
        ("--layers 8:10 --gpu h100 --columns step_nanoseconds", (" ms", " 9 ")),
        (
            "--layers 8:16:4 --gpu h100 --price 2 --columns cost_per_million_tokens",
            ("$1.78", "n_layers"),
        ),
    ],
)
def test_numbers_beside_the_axes_have_their_unit(
    line: str, ticks: tuple[str, ...], capsys: Capture
) -> None:
    assert main(["sweep", *line.split(), "--plot", "-"]) == 0
    text = capsys.readouterr().out
    assert all(tick in text for tick in ticks)
    assert ".0┤" not in text


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--kv 8 --plot a.gif", "plot = a.gif: unknown kind; end it in .png, .svg, .html"),
        ("--layers 1:100k --context 1:100 --plot a.png", "at most 200,000 are drawn; thin an axis"),
        ("--kv 8 --columns n_kv_heads --plot a.png", "needs a quantity to show"),
        ("--kv 8 --where params<3 --plot a.png", "no row meets the conditions"),
        ("--kv 4,8 --plot none/a.png", "plot = none/a.png: no such file or directory"),
    ],
)
def test_bad_wishes(
    line: str, says: str, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", *line.split()]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
