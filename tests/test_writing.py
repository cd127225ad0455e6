"""Files are written beside their name: what stands there already keeps its mode, links stay links,
and a failure says why in words."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from paramcalc import writing
from paramcalc.cli.main import main
from paramcalc.errors import InputError

WRITERS = {
    "sweep.csv": "sweep gpt2 --context 1:9 --out",
    "sweep.jsonl": "sweep gpt2 --context 1:9 --out",
    "sweep.parquet": "sweep gpt2 --context 1:9 --out",
    "sweep.xlsx": "sweep gpt2 --context 1:9 --out",
    "plot.svg": "sweep gpt2 --context 1:9 --plot",
    "plot.html": "sweep gpt2 --context 1:9 --plot",
    "plan.xlsx": "sheet gpt2 --out",
    "calc.html": "page gpt2 --out",
    "sized.csv": "annotate fleet.csv --columns params --out",
}
Capture = pytest.CaptureFixture[str]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("fleet.csv").write_text("model\ngpt2\n")
    return tmp_path


@pytest.mark.parametrize("name", WRITERS)
def test_every_writer_keeps_the_mode_and_the_link(name: str, here: Path) -> None:
    line = [*WRITERS[name].split(), name, "--force"]
    (here / "own").mkdir()
    old = here / "own" / name
    old.write_text("old")
    old.chmod(0o600)
    (here / name).symlink_to(old)
    assert main(line) == 0
    assert (here / name).is_symlink()
    assert old.read_bytes()[:3] != b"old"
    assert mode(old) == 0o600
    assert os.listdir(here / "own") == [name]  # and nothing beside it


@pytest.mark.parametrize("name", [n for n in WRITERS if not n.endswith(".svg")])
def test_every_writer_says_why_not_in_words(name: str, here: Path, capsys: Capture) -> None:
    option = "plot" if name.startswith("plot") else "out"
    (here / "loop").symlink_to("loop")
    (here / f"loop{Path(name).suffix}").symlink_to(f"loop{Path(name).suffix}")
    target = f"loop{Path(name).suffix}"
    assert main([*WRITERS[name].split(), target, "--force"]) == 2
    error = capsys.readouterr().err.splitlines()[-1]
    # what POSIX calls ELOOP, as the system says it
    assert error == f"paramcalc: {option} = {target}: {os.strerror(40).lower()}; name another"


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        with writing.beside(tmp_path / "new") as held:
            held.write_text("x")
    finally:
        os.umask(before)
    assert mode(tmp_path / "new") == 0o640


def test_nobody_reads_a_private_file_while_it_is_written(tmp_path: Path) -> None:
    path = tmp_path / "private"
    path.write_text("old")
    path.chmod(0o640)
    with writing.beside(path) as held:
        assert mode(held) == 0o600
        held.write_text("new")
    assert (path.read_text(), mode(path)) == ("new", 0o640)


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "old"
    path.write_text("old")

    def broken() -> None:
        with writing.beside(path) as held:
            held.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        broken()
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["old"])


def test_a_link_to_nothing_yet_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("target")
    with writing.beside(tmp_path / "link") as held:
        held.write_text("x")
    assert (tmp_path / "target").read_text() == "x"
    assert (tmp_path / "link").is_symlink()


def test_what_is_no_plain_file_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, why in (("pipe", "is no plain file"), ("folder", "is a directory")):
        with pytest.raises(InputError, match=why), writing.beside(tmp_path / name):
            pass
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]


def test_names_as_long_as_a_folder_takes(tmp_path: Path) -> None:
    with writing.beside(tmp_path / ("a" * 255)) as held:
        held.write_text("x")
    assert os.listdir(tmp_path) == ["a" * 255]


@pytest.mark.parametrize(
    "error",
    [
        OSError(27, "File too large"),
        OSError(OSError(27, "File too large")),
        OSError("[Errno 27] File too large: '/somewhere/.x.12'"),
        OSError(27, "Failed to write '/somewhere/.x.12'. Detail: [errno 27] File too large"),
    ],
)
def test_reasons_have_no_number_and_no_other_name(error: OSError) -> None:
    assert writing.reason(error) == "file too large"


def test_a_reason_that_nobody_gives() -> None:
    assert writing.reason(OSError("at /somewhere")) == "cannot be written"


FULL = {
    **{out: f"sweep gpt2 --context 1:100000 --out {out}" for out in ("a.csv", "a.parquet", "a/")},
    "a.xlsx": "sweep gpt2 --context 1:100000 --out a.xlsx",
    "plan.xlsx": "sheet gpt2 --out plan.xlsx",
    "calc.html": "page gpt2 --out calc.html",
}


@pytest.mark.skipif(sys.platform != "linux", reason="RLIMIT_FSIZE as Linux has it")
@pytest.mark.parametrize("out", FULL)
def test_a_full_disk(out: str, here: Path) -> None:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    spool = here / "tmp"
    spool.mkdir()
    ran = subprocess.run(
        [sys.executable, "-m", "paramcalc", *FULL[out].split()],
        env={**os.environ, "TMPDIR": str(spool)},
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    assert ran.returncode == 2
    said = ran.stderr.splitlines()[-1]
    assert said.startswith(f"paramcalc: out = {out}")
    assert said.endswith(": file too large; name another")
    assert "Traceback" not in ran.stderr
    left = {p.name for p in here.rglob("*") if p.is_file()} - {"fleet.csv", "sweep.json"}
    assert not left
