"""The program as a process: exit codes, colours, pipes, interrupts, what it imports."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

RUN = [sys.executable, "-m", "paramcalc"]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*RUN, *arguments], capture_output=True, check=False, env={**os.environ, **environment}
    )


def test_bad_input_leaves_with_2_and_no_traceback() -> None:
    done = run("lama3-8b")
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.count(b"\n") == 1
    assert b"Traceback" not in done.stderr


def test_piped_output_has_no_colours() -> None:
    assert b"\x1b" not in run("llama3-8b").stdout


def in_a_terminal(**environment: str) -> bytes:
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", **environment}
    process = subprocess.Popen([*RUN, "gpt2"], stdout=slave, stderr=slave, env=env)
    os.close(slave)
    text = b""
    while True:
        try:
            piece = os.read(master, 65536)
        except OSError:  # the other end is closed
            break
        if not piece:
            break
        text += piece
    os.close(master)
    assert process.wait() == 0
    return text


def test_colours_in_a_terminal_unless_told_not_to() -> None:
    assert b"\x1b[1;35m" in in_a_terminal()
    assert b"35m" not in in_a_terminal(NO_COLOR="1")


def test_a_terminal_without_unicode() -> None:
    done = run("gpt2", PYTHONIOENCODING="ascii")
    assert done.returncode == 0
    assert b"12 L d^2" in done.stdout
    assert b"###" in done.stdout
    assert run("no\u00e9", PYTHONIOENCODING="ascii").returncode == 2


def test_a_reader_that_leaves_early() -> None:
    process = subprocess.Popen(
        [*RUN, "list", "--csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate()
    assert errors == b""
    assert process.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
def test_a_full_disk_is_one_line() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*RUN, "gpt2", "--json"], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr == b"paramcalc: standard output: no space left on device\n"


def test_closed_streams() -> None:
    program = " ".join(RUN)
    done = subprocess.run(["sh", "-c", f"{program} gpt2 >&-"], capture_output=True, check=False)
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    done = subprocess.run(["sh", "-c", f"{program} gpt2 2>&-"], capture_output=True, check=False)
    assert done.returncode == 0
    assert b"124,439,808" in done.stdout


def test_an_interrupt_is_quiet_and_130(tmp_path: Path) -> None:
    pipe = tmp_path / "model.yaml"
    os.mkfifo(pipe)  # opening it waits for a writer, so that the interrupt meets a running program
    process = subprocess.Popen([*RUN, str(pipe)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    for _ in range(200):
        wait = Path(f"/proc/{process.pid}/wchan")
        if wait.exists() and "fifo" in wait.read_text():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=30)
    assert process.returncode == 130
    assert output == errors == b""


def modules(*arguments: str) -> set[str]:
    code = (
        "import sys\nfrom paramcalc.cli.main import main\n"
        f"main({list(arguments)!r})\nsys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return set(done.stderr.decode().split())


def test_counting_imports_no_numpy_and_help_imports_no_pydantic() -> None:
    assert not modules("llama3-8b") & {"numpy", "sympy"}
    assert not modules("--help") & {"pydantic", "rich", "yaml", "numpy"}


def test_importing_the_package_imports_nothing_else() -> None:
    code = "import sys, paramcalc; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert not set(done.stdout.decode().split()) & {"pydantic", "typer", "rich", "yaml"}


@pytest.mark.parametrize(
    ("words", "offers"),
    [
        ("paramcalc llama3-", "llama3-8b"),
        ("paramcalc com", "compare"),
        ("paramcalc compare mixtral", "mixtral-8x22b"),
        ("paramcalc explain gpt2-", "gpt2-xl"),
        ("paramcalc gpt2 --kv-", "--kv-dtype"),
    ],
)
def test_shell_completion_offers_presets_commands_and_options(words: str, offers: str) -> None:
    done = run(
        _PARAMCALC_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=str(words.count(" "))
    )
    assert offers in done.stdout.decode().split()
