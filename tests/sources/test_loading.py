"""Names that mean several things: presets, folders, hub ids."""

from __future__ import annotations

import socket
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import paramcalc
from paramcalc.cli.main import main
from paramcalc.sources import hub, loading

CONFIG = '{"model_type": "llama", "num_hidden_layers": 2}'


def test_a_preset_that_hides_a_folder_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gemma-3-4b").mkdir()
    (tmp_path / "gemma-3-4b" / "config.json").write_text(CONFIG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["gemma-3-4b"]) == 0
    said = "gemma-3-4b is the preset of that name; for the folder write ./gemma-3-4b"
    assert said in capsys.readouterr().err
    assert main(["./gemma-3-4b"]) == 0
    out, err = capsys.readouterr()
    assert "2 layers" in out
    assert said not in err
    assert not loading.is_shadowed("llama3-8b")


@pytest.mark.parametrize("name", ["~nobody0", "~nobody0/x.yaml", "~\0", "~\0/x.yaml", "\0.yaml"])
def test_a_home_of_nobody_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([name], ["fit", name, "--gpu", "h100"], ["audit", "gpt2", name]):
        assert main(words) == 2
        out, err = capsys.readouterr()
        assert out == ""
        assert err.count("\n") == 1


class TimeoutException(Exception):  # as the library's own is called
    """No answer in time."""


class Library:
    """The hub's library, answering as told."""

    def __init__(self, answer: Path | Exception, cached: Path | None = None) -> None:
        self.answer, self.cached = answer, cached
        self.timeouts: list[Any] = []

    def module(self) -> SimpleNamespace:
        return SimpleNamespace(
            hf_hub_url=lambda name, file: f"{name}/{file}",
            get_hf_file_metadata=self._metadata,
            hf_hub_download=lambda name, file: str(self.answer),
            try_to_load_from_cache=lambda name, file: self.cached and str(self.cached),
        )

    def _metadata(self, url: str, *, timeout: float) -> None:
        self.timeouts.append(timeout)
        if isinstance(self.answer, Exception):
            raise self.answer


def test_a_hub_out_of_reach_is_one_line_or_the_copy_on_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(CONFIG, encoding="utf-8")
    gone = Library(OSError("no such\nhost"))
    monkeypatch.setitem(sys.modules, "huggingface_hub", gone.module())
    assert main(["someone/some-model"]) == 2
    err = capsys.readouterr().err
    assert err == (
        "paramcalc: someone/some-model: no preset, and the hub gives no config.json: no such host\n"
    )
    assert gone.timeouts == [hub.SECONDS]
    kept = Library(OSError("no such host"), path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", kept.module())
    assert paramcalc.load("someone/some-model").spec.n_layers == 2
    why = RuntimeError("[Errno -2] Name or service not known")
    why.__cause__ = socket.gaierror(-2, "Name or service not known")
    for reason in (why, TimeoutException("timed out")):
        monkeypatch.setitem(sys.modules, "huggingface_hub", Library(reason).module())
        assert main(["someone/some-model"]) == 2
        err = capsys.readouterr().err
        assert err.endswith("gives no config.json: no network (it cannot be reached)\n")
    there = Library(path)
    monkeypatch.setitem(sys.modules, "huggingface_hub", there.module())
    assert paramcalc.load("someone/some-model").name == "some-model"
