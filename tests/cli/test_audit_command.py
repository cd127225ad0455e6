"""``paramcalc audit``, and files of tensors named in place of a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paramcalc.cli.main import main
from tests.audit.files import (
    TINY,
    tiny_shapes,
    write_config,
    write_gguf,
    write_safetensors,
    write_shards,
)
from tests.sources.test_contents import hostile

COUNT = 105408
"""2 tables of 100 x 64, 3 layers of 30,848, a norm of 64."""


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_config(tmp_path, TINY)
    good = write_safetensors(tmp_path / "model.safetensors", tiny_shapes())
    code, out, _ = run(capsys, "audit", str(tmp_path), str(good))
    assert code == 0
    assert "equal: every tensor is there, 105,408 parameters" in out
    shapes = tiny_shapes()
    del shapes["lm_head.weight"]
    bad = write_safetensors(tmp_path / "bad.safetensors", shapes)
    code, out, _ = run(capsys, "audit", str(tmp_path), str(bad), "--json")
    document = json.loads(out)
    assert code == 1
    assert document["missing"] == [
        {"name": "lm_head.weight", "shape": [100, 64], "copies": 1, "shape_in_files": None}
    ]
    assert document["stored_as"] == [
        {"dtype": "F16", "tensors": 29, "elements": COUNT - 6400, "bytes": 2 * (COUNT - 6400)}
    ]
    assert run(capsys, "audit", str(tmp_path), str(bad), "--csv")[1].splitlines()[-1] == (
        "missing,lm_head.weight,100 × 64,1"
    )


def test_a_file_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", tiny_shapes())
    code, out, err = run(capsys, str(path))
    assert code == 0
    assert "model.safetensors  105,408 elements in 30 tensors" in out
    assert "put its config.json beside it" in err
    write_config(tmp_path, TINY)
    document = json.loads(run(capsys, str(path), "--json")[1])
    assert document["bytes"] == 2 * COUNT
    assert document["model"]["quantities"]["params"] == COUNT
    gguf = write_gguf(tmp_path / "tiny.gguf")
    code, out, err = run(capsys, str(gguf))
    assert (code, err) == (0, "")
    assert "tiny  105,408 parameters" in out


def test_hostile_files_give_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, content in hostile(tmp_path).items():
        path = tmp_path / name
        path.write_bytes(content)
        for argv in ((str(path),), ("audit", "gpt2", str(path))):
            code, out, err = run(capsys, *argv)
            assert (code, out) == (2, ""), name
            assert err.startswith(f"paramcalc: {tmp_path}"[:50]), (name, err)
            assert err.count("\n") == 1, name


def test_other_files_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, says in (
        (tmp_path / "none.safetensors", "no such file"),
        (tmp_path / "none.gguf", "no such file"),
        (tmp_path / "pytorch_model.bin", "is no file of tensors"),
        (tmp_path, "is a directory without .safetensors or .gguf"),
    ):
        code, _, err = run(capsys, "audit", "gpt2", str(name))
        assert code == 2
        assert says in err


def test_names_in_files_reach_the_screen_plain(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_safetensors(tmp_path / "m.safetensors", {"bad\x1b[31m\nname": (4, 4)})
    out = run(capsys, str(path))[1]
    assert "bad?[31m?name" in out


def test_options_of_a_model_apply_to_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    gguf = write_gguf(tmp_path / "tiny.gguf")
    code, out, _ = run(capsys, str(gguf), "--kv", "4")
    assert code == 0
    assert "tiny  117,696 parameters  (+12,288 against the file)" in out  # 3 x 2 x 64 x 2 x 16


@pytest.mark.parametrize(
    "option",
    ["--batch 4", "--kv-dtype fp8", "--tie", "--no-gated", "--gpt2", "--tensors", "--kv 4"],
)
def test_any_option_of_a_model_goes_the_models_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], option: str
) -> None:
    write_config(tmp_path, TINY)
    path = write_safetensors(tmp_path / "model.safetensors", tiny_shapes())
    code, out, _ = run(capsys, str(path), *option.split())
    assert code == 0
    assert out.startswith(f"{tmp_path.name}  ")
    assert "elements in 30 tensors" not in out


def test_a_folder_of_tensors_without_a_config(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = list(tiny_shapes().items())
    (tmp_path / "shards").mkdir()
    index = write_shards(tmp_path / "shards", [dict(every[:11]), dict(every[11:])])
    for name in (str(index.parent), str(index)):
        code, out, err = run(capsys, name)
        assert code == 0
        assert "105,408 elements in 30 tensors in 2 files" in out
        assert "the tensors were read alone" in err
        assert "put its config.json beside it" in err
        assert err.count("\n") == 1
    code, _, err = run(capsys, str(index.parent), "--kv", "4")
    assert (code, err.count("\n")) == (2, 1)
    (tmp_path / "one").mkdir()
    write_gguf(tmp_path / "one" / "tiny.gguf")
    code, out, err = run(capsys, str(tmp_path / "one"))
    assert (code, err) == (0, "")
    assert "one  105,408 elements in 30 tensors" in out
    assert "one  105,408 parameters" in out


def test_a_broken_config_beside_a_file_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", tiny_shapes())
    (tmp_path / "config.json").write_text('{"model_type": }', encoding="utf-8")
    code, out, err = run(capsys, str(path))
    assert code == 0
    assert "105,408 elements" in out
    assert "note: the tensors were read alone: " in err
    assert "config.json: broken JSON" in err


def test_an_empty_name_is_not_this_folder(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "audit", "gpt2", "")
    assert (code, out) == (2, "")
    assert "FILE = '': is empty" in err
