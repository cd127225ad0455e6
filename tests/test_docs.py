"""The documents say what the program does: their commands run, their screens are its screens."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import paramcalc
from paramcalc.cli.main import main
from tests.audit.files import TINY, tiny_shapes, write_config, write_safetensors
from tests.conftest import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = [README, *(p.read_text(encoding="utf-8") for p in sorted((ROOT / "docs").glob("*.md")))]
FENCE = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


def test_the_models_in_the_field_list(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "fields.md").read_text(encoding="utf-8")
    totals = []
    for kind, body in FENCE.findall(text):
        if kind == "yaml":
            path = tmp_path / "model.yaml"
            path.write_text(body, encoding="utf-8")
            totals.append(paramcalc.load(path).params.total)
    d, ff = 2048, 8192
    dense, moe = 4 * d * d + 2 * d * ff, 4 * d * d + 8 * 2 * d * ff + 8 * d
    mixed = 2 * 50_000 * d + 12 * (dense + moe) + 24 * 2 * d + d
    mamba = 129_135_360  # state-spaces/mamba-130m-hf, safetensors metadata
    assert totals == [27_009_346_304, 671_026_404_352, mixed, 60_506_624, mamba]


def screens() -> list[tuple[str, str]]:
    """Each ``$ paramcalc`` command of the README and of docs/ with the screen under it."""
    found = []
    for kind, body in (fence for page in PAGES for fence in FENCE.findall(page)):
        if kind == "console":
            for piece in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, screen = piece.partition("\n")
                found.append((command, screen.rstrip("\n")))
    return found


@pytest.mark.parametrize(("command", "screen"), screens())
def test_each_screen(
    command: str,
    screen: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for kind, body in FENCE.findall(README):
        if kind == "yaml":
            (tmp_path / "my-model.yaml").write_text(body, encoding="utf-8")
        if kind == "json":
            (tmp_path / "config.json").write_text(body, encoding="utf-8")
    (tmp_path / "tiny").mkdir()
    write_config(tmp_path / "tiny", TINY)
    write_safetensors(tmp_path / "tiny" / "model.safetensors", tiny_shapes())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    program, *arguments = shlex.split(command)
    assert program == "paramcalc"
    assert main(arguments) == 0
    shown = "\n".join(line.rstrip() for line in capsys.readouterr().out.rstrip().splitlines())
    for part in re.split(r"^\.\.\.$", screen, flags=re.MULTILINE):
        assert part.strip("\n") in shown


def test_python_in_the_pages() -> None:
    for kind, body in (fence for page in PAGES for fence in FENCE.findall(page)):
        if kind == "python":
            space: dict[str, object] = {}
            for line in body.splitlines():
                code, arrow, value = line.partition("  # ")
                if arrow:
                    assert str(eval(code, space)) == value, line
                else:
                    exec(code, space)


def test_the_readme_opens_with_a_screen_and_two_commands() -> None:
    assert README.index("$ paramcalc llama3-8b") < 300
    setups = [body.strip() for kind, body in FENCE.findall(README) if kind == "sh"]
    assert len(setups) == 2
    assert all("\n" not in line and "python3 -m venv" in line for line in setups)
    assert "paramcalc llama3-8b" in setups[0]
    assert "pytest" in setups[1]
    assert setups[1] in (ROOT / ".ci" / "run").read_text(encoding="utf-8")


def test_the_command_of_the_picture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.findall(r"`(paramcalc sweep [^`]*--plot [^`]*)`", README)
    assert len(found) == 1
    monkeypatch.chdir(tmp_path)
    assert main(shlex.split(found[0])[1:]) == 0
    assert (tmp_path / "pareto.png").stat().st_size > 10_000
