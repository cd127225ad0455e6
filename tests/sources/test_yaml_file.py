"""Files a stranger may have written: one line each, quickly, and no traceback."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import paramcalc
from paramcalc.sources import yaml_file

GOOD = "d_model: 512\nn_layers: 2\nn_heads: 8\nvocab_size: 100\n"
BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(12)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} {{<<: [{','.join(['*' + chr(97 + i)] * 9)}]}}\n"
    for i in range(9)
)

BAD = {
    "empty": (b"", "empty; write fields"),
    "comment": (b"# nothing\n", "empty; write fields"),
    "list": (b"- 1\n- 2\n", "holds list, not fields"),
    "text": (b"hello", "holds str, not fields"),
    "broken": (b"d_model: [1, 2\n", "broken YAML: line 2, column 1"),
    "tab": (b"d_model:\n\t- 1\n", "broken YAML: line 2, column 1"),
    "tag": (b"d_model: !!python/object/apply:os.system ['true']\n", "could not determine a constr"),
    "not utf-8": (b"name: \xff\xfe\n", "not UTF-8 at byte 6"),
    "utf-16": ("d_model: 512".encode("utf-16"), "not UTF-8 at byte 0"),
    "control": (b"name: a\x00b\n", "broken YAML"),
    "bomb": (BOMB.encode(), "aliases (*name) are not read"),
    "merges": (MERGES.encode(), "aliases (*name) are not read"),
    "brackets": (b"[" * 100_000, "nested too deeply"),
    "dashes": (b"- " * 100_000 + b"1", "nested too deeply"),
    "questions": (b"? " * 100_000 + b"1", "nested too deeply"),
    "large": (b"#" * 300_000, "larger than 262,144 bytes"),
    "twice": (GOOD.encode() + b"d_model: 4\n", "d_model stands twice"),
    "key": (b"[1, 2]: 3\n", "broken YAML"),
    "date": (b"d_model: 2020-99-99\n", "broken YAML"),
    "config": (b'{"model_type": "llama", "hidden_size": true}', "hidden_size = True: must be"),
    "config beside": (b"config: {model_type: llama}\nd_model: 4", "d_model: beside a config"),
    "config text": (b"config: llama", "config: beside a config section"),
    "unknown": (GOOD.encode() + b"colour: red\n", "colour: unknown field"),
    "octal": (GOOD.encode() + b"context: 010\n", "010: write whole numbers in decimal"),
    "sexagesimal": (GOOD.encode() + b"context: 1:30\n", "1:30: write whole numbers in decimal"),
    "escape": (GOOD.encode() + b'name: "evil\\e[31m"\n', "name = evil?[31m: must be plain text"),
    "number key": (GOOD.encode() + b"3: 4\n", "3 = a field's name: is not text"),
}


@pytest.mark.parametrize("name", BAD)
def test_one_line(name: str, tmp_path: Path) -> None:
    content, says = BAD[name]
    path = tmp_path / "model.yaml"
    path.write_bytes(content)
    started = time.monotonic()
    with pytest.raises(paramcalc.InputError) as caught:
        paramcalc.load(path)
    assert time.monotonic() - started < 30  # a bomb would not come back
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_good_file(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD, encoding="utf-8")
    model = paramcalc.load(str(path))
    assert model.name == "mine"
    assert model.params.total == 2 * 100 * 512 + 2 * (12 * 512 * 512 + 2 * 512) + 512


def test_json_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "mine.json"
    path.write_text('{"d": 512, "L": 2, "H": 8, "V": 100}', encoding="utf-8")
    assert paramcalc.load(path).spec.d_model == 512


def test_no_file_and_a_directory(tmp_path: Path) -> None:
    with pytest.raises(paramcalc.FileError, match="no such file"):
        paramcalc.load(tmp_path / "none.yaml")
    with pytest.raises(paramcalc.FileError, match="is a directory"):
        paramcalc.load(tmp_path)


def test_a_folder_named_like_a_preset_does_not_hide_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    assert paramcalc.load("gpt2").params.total == 124_439_808


@pytest.mark.parametrize("name", ["a\0b", "\x1b[31mred", "../../etc/passwd", "x" * 5000, "", "é"])
def test_hostile_names(name: str) -> None:
    with pytest.raises(paramcalc.InputError) as caught:
        paramcalc.load(name)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


def test_parse_names_the_place() -> None:
    with pytest.raises(paramcalc.FileError, match=r"^here: "):
        yaml_file.parse("", "here")
