"""Tables on narrow screens: they fit, and every digit is there."""

from __future__ import annotations

import re

import pytest

from paramcalc.cli.main import main
from paramcalc.views.narrow import fitted, needed
from paramcalc.views.tables import Section, person

LAYERS = "model.layers.{i}."


def tensors() -> Section:
    columns = [("", "left"), ("shape", "right"), ("copies", "right"), ("elements", "right")]
    section = Section("Tensors", columns, paths=True)
    section.add("model.embed_tokens.weight", "129280 × 7168", 1, 926_679_040)
    section.add(f"{LAYERS}mlp.experts.gate_up_proj", "256 × 4096 × 7168", 58, 435_939_180_544)
    section.add(f"{LAYERS}mlp.gate.e_score_correction_bias", "256", 58, 14_848)
    section.add("parameters", None, None, 435_939_180_544, strong=True)
    return section


def digits(sections: list[Section]) -> list[str]:
    cells = [person(c) for s in sections for row in s.rows for c in row[1:]]
    return re.findall(r"\d+", " ".join(cells))


def test_names_are_grouped_before_shapes_are_closed_and_names_broken() -> None:
    whole = tensors()
    assert fitted(whole, 120) == [whole]
    (grouped,) = fitted(whole, needed(whole) - 1)
    assert [row[0] for row in grouped.rows] == [
        "model.embed_tokens.weight",
        LAYERS,
        "  mlp.experts.gate_up_proj",
        "  mlp.gate.e_score_correction_bias",
        "parameters",
    ]
    assert "256 × 4096 × 7168" in grouped.rows[2]
    (closed,) = fitted(whole, needed(grouped) - 1)
    assert "256×4096×7168" in closed.rows[2]
    (broken,) = fitted(whole, needed(closed) - 1)
    assert broken.rows[3][0] == "  mlp.gate.\n    e_score_correction_bias"
    assert needed(broken) < needed(closed)
    for narrow in (grouped, closed, broken):
        assert digits([narrow]) == digits([whole])


def shapes() -> Section:
    columns = [("d_model", "right"), ("n_kv_heads", "right")]
    columns += [(name, "right") for name in ("params", "active_params", "kv_bytes")]
    section = Section("2 rows", columns, keys=2)
    section.add(4096, 8, 8_030_261_248, 8_030_261_248, 1_073_741_824)
    section.add(4096, 32, 8_835_567_616, 8_835_567_616, 4_294_967_296)
    section.notes.append("a note")
    return section


def test_columns_that_repeat_are_left_out_then_headings_broken_then_the_table_parted() -> None:
    whole = shapes()
    (fewer,) = fitted(whole, needed(whole) - 1)
    assert [name for name, _ in fewer.columns] == ["d_model", "n_kv_heads", "params", "kv_bytes"]
    assert fewer.notes == ["active_params: in every row equal to params", "a note"]
    (broken,) = fitted(whole, needed(fewer) - 1)
    assert broken.columns[1][0] == "n_kv_\nheads"
    first, second = fitted(whole, needed(broken) - 1)
    assert [name for name, _ in second.columns] == ["d_model", "n_kv_\nheads", "kv_bytes"]
    assert first.notes == []
    assert second.notes == fewer.notes
    assert second.rows[1] == (4096, 32, 4_294_967_296)


@pytest.mark.parametrize(
    "line",
    [
        "gpt-oss-20b --tensors",
        "deepseek-v3 --tensors",
        "sweep --d 4096,8192 --kv 8,32",
        "sweep gpt-oss-20b llama3-8b --d 2880,5760 --kv 8,16",
    ],
)
def test_screens_fit_in_80_columns(
    line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(line.split()) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_a_pipe_without_a_width_gets_whole_names(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    assert main(["gpt-oss-20b", "--tensors"]) == 0
    assert "layers.sliding.*.ffn.experts.*.down.bias" in capsys.readouterr().out


def test_the_text_of_the_last_column_is_broken_between_words() -> None:
    section = Section("Memory", [("", "left"), ("", "right"), ("by", "left")])
    section.add("activations", "5.12 GB", "1,024 × vocabulary × 39 B", strong=True)
    section.add("weights", "16.06 GB", "above")
    assert fitted(section, 80) == [section]
    (narrow,) = fitted(section, 40)
    assert needed(narrow) <= 40
    assert narrow.rows == [
        ("activations", "5.12 GB", "1,024 ×\nvocabulary × 39\nB"),
        ("weights", "16.06 GB", "above"),
    ]
    assert narrow.strong == {0}
    # with no room for words the table stays whole
    assert fitted(section, 25) == [section]
