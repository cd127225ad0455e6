"""``paramcalc page``: the file, the address, and what it says to bad input."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from paramcalc.cli.main import main

Capture = pytest.CaptureFixture[str]


def test_a_file(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "calc.html"
    assert main(["page", "gpt2", "llama3-8b", "-o", str(out)]) == 0
    text = out.read_text(encoding="utf-8")
    assert text.startswith("<!doctype html>")
    assert '"name":"gpt2"' in text
    said = capsys.readouterr()
    assert said.out == ""
    assert f"wrote 2 models to {out}" in said.err
    assert list(tmp_path.iterdir()) == [out]
    assert main(["page", "gpt2", "-o", str(out)]) == 2
    assert out.read_text(encoding="utf-8") == text
    assert main(["page", "gpt2", "-o", str(out), "--force"]) == 0
    assert "gpt2, counted" in out.read_text(encoding="utf-8")


def test_models_of_ones_own(tmp_path: Path) -> None:
    model = tmp_path / "mine.yaml"
    model.write_text("{d: 64, L: 2, H: 4, V: 100, context: 32}", encoding="utf-8")
    assert main(["page", str(model), "-o", str(tmp_path / "mine.html")]) == 0
    assert '"name":"mine"' in (tmp_path / "mine.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "needs one of --out and --serve"),
        (["-o", "a.html", "--serve"], "--out and --serve were both given; leave one out"),
        (["-o", "a.pdf"], "out = a.pdf: is no page; end it in .html"),
        (["-o", "none/a.html"], "out = none/a.html: none is no directory; make it first"),
        (["-o", "folder.html"], "out = folder.html: is a directory; name a file in it"),
        (["-o", "a.html", "--port", "80"], "port = 80: is of --serve"),
        (["--serve", "--port", "65536"], "port = 65536: must be from 0 to 65,535"),
        (["--serve", "--port", "high"], "port = high"),
        (["gpt2", "gpt2", "-o", "a.html"], "model = gpt2: given twice"),
        (["lama3-8b", "-o", "a.html"], "lama3-8b: no such preset"),
    ],
)
def test_bad_input(
    arguments: list[str],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    names = [] if arguments and not arguments[0].startswith("-") else ["gpt2"]
    assert main(["page", *names, *arguments]) == 2
    said = capsys.readouterr()
    assert says in said.err
    assert said.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["folder.html"]


def test_a_file_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    def locked(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", locked)
    assert main(["page", "gpt2", "-o", str(tmp_path / "a.html")]) == 2
    assert "a.html: permission denied" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken(capsys: Capture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert main(["page", "gpt2", "--serve", "--port", str(port)]) == 2
    assert f"port = {port}: address already in use; take another" in capsys.readouterr().err


def test_served_to_this_machine_under_its_own_name() -> None:
    command = [sys.executable, "-m", "paramcalc", "page", "gpt2", "--serve"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        line = process.stdout.readline().decode()
        address = line.split()[0]
        assert address.startswith("http://127.0.0.1:")
        host = address.removeprefix("http://").rstrip("/")
        try:
            assert asked(host, "/")[0] == 200
            assert b"gpt2, counted" in asked(host, "/?x=1")[1]
            assert asked(host, "/etc/passwd")[0] == 404
            assert asked(host, "/", "HEAD")[1] == b""
            for own in ("127.0.0.1", "localhost", "LocalHost:80", "localhost:8000"):
                assert asked(host, "/", name=own)[0] == 200, own  # 80 goes without its number
            for other in ("elsewhere.example", "127.0.0.1.example:80", "localhost.example", ":80"):
                assert asked(host, "/", name=other)[0] == 403, other
            assert asked(host, "/", "POST")[0] == 501
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait() == 130
        assert process.stderr.read() == b""


def asked(host: str, path: str, method: str = "GET", name: str | None = None) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection(host, timeout=10)
    connection.request(method, path, headers={"Host": name} if name else {})
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found
