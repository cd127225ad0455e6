"""Overrides of a model from a config.json: its fields, its own keys, and names that are neither."""

from __future__ import annotations

from pathlib import Path

import pytest

import paramcalc
from tests.families.test_reading import LLAMA3, run, write_config

KINDS = ["sliding_attention", "full_attention"] * 12


def test_a_key_of_the_file_can_be_set(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write_config(tmp_path, LLAMA3))
    by_field = run(capsys, path, "-L", "8", "--csv")[1]
    assert run(capsys, path, "--set", "num_hidden_layers=8", "--csv")[1] == by_field
    # the type knows the key, though the file does not state it: 4 biases a layer
    biased = paramcalc.load(path).with_(attention_bias=True)
    assert biased.params.total - 8030261248 == 32 * (4096 + 2 * 1024 + 4096)


def test_a_name_that_is_neither_a_field_nor_a_key_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(write_config(tmp_path, LLAMA3))
    for name, near in (("nosuch", ""), ("num_hiden_layers", " (did you mean num_hidden_layers")):
        code, _, err = run(capsys, path, "--set", f"{name}=1")
        assert code == 2
        assert f"{name}: no such field, nor a key of its config.json{near}" in err


def test_a_list_with_an_entry_a_layer_goes_with_the_layers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(
        write_config(
            tmp_path, {"model_type": "gpt_oss", "layer_types": KINDS, "num_hidden_layers": 24}
        )
    )
    code, _, err = run(capsys, path, "-L", "2")
    assert code == 2
    assert "layer_types = 24 entries: there are 2 layers" in err
    assert "give both: -L 2 --set 'layer_types=[...]'" in err
    both = ["-L", "2", "--set", "layer_types=[full_attention, full_attention]"]
    code, out, _ = run(capsys, path, *both)
    assert code == 0
    assert "2 layers" in out
    assert "sliding" not in out


def test_a_key_of_a_section_can_be_set() -> None:
    model = paramcalc.load({"model_type": "gemma3", "text_config": {}, "vision_config": {}})
    one = model.with_(**{"vision_config.num_hidden_layers": 1})
    two = model.with_(**{"vision_config.num_hidden_layers": 2})
    d, ff = 768, 3072  # SigLIP: attention and network with biases, two norms
    layer = 4 * (d * d + d) + 2 * d * ff + d + ff + 4 * d
    assert two.params.towers - one.params.towers == layer
    with pytest.raises(paramcalc.ConfigError, match="is no section"):
        model.with_(**{"model_type.x": 2})
