"""Files and words that a stranger wrote: one line, exit code 2, or the exact number."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from paramcalc.cli.main import main
from tests.cli.test_process import run

BASE = "d_model: 64\nn_layers: 2\nn_heads: 4\nvocab_size: 100\n"
HEAVY_KV = "mla: {kv_lora_rank: 4, qk_nope_head_dim: 2, qk_rope_head_dim: 2, v_head_dim: 4}\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (BASE + 'window: !!bool "maybe"\n', "a !!tag does not fit its value"),
        (BASE + 'window: !!timestamp "abc"\n', "a !!tag does not fit its value"),
        (BASE + 'window: !!int ""\n', "write whole numbers in decimal"),
        (BASE + "encoder: " + "{encoder: " * 250 + "1" + "}" * 250, "nested too deeply"),
        (
            BASE.replace("n_heads: 4", "n_heads: 100") + "encoder: {n_layers: 2}\n" + HEAVY_KV,
            "must divide",
        ),
        (
            BASE
            + "share_layers: true\nencoder: {n_layers: 4, layers: [{window: 3, repeat: 2}, {}]}\n",
            "needs layers of one kind",
        ),
    ],
)
def test_a_file_that_cannot_be(
    text: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(text)
    assert main([str(path)]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["gpt2", "--set", "self=1"], "self: unknown field"),
        (["gpt2", "--set", "window=1,5k"], "is not a number"),
        (["gpt2", "--set", "window=٨"], "is not a number"),
        (["gpt2", "--kv", "7.99999999999999999999999999999999"], "is not a whole number"),
        (["gpt2", "--d", "1e-999999999"], "is not a whole number"),
        (["a" + "-it" * 40_000], "no such preset"),
        (["x" * 300 + ".yaml"], "check the path"),
    ],
)
def test_words_that_cannot_be(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    error = capsys.readouterr().err
    assert says in error
    assert error.count("\n") == 1


def test_a_size_keeps_all_its_digits(capsys: pytest.CaptureFixture[str]) -> None:
    batch = 1234567890123456789012345678901234567891
    assert main(["llama3-8b", "--batch", str(batch), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["batch"] == batch
    assert found["quantities"]["kv_bytes"] == 131_072 * 8_192 * batch


def test_only_a_head_is_tied(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["deepseek-v3", "--set", "n_dense_layers=61"]) == 0
    assert "tied head" not in capsys.readouterr().out
    assert main(["gemma3-27b", "--layers", "3"]) == 0
    assert f"untied it would add {262_208 * 5_376:,}" in capsys.readouterr().out


def test_a_model_may_be_named_as_a_key_of_the_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quantity.yaml").write_text(BASE)
    (tmp_path / "gpt2 (2).yaml").write_text(BASE)
    assert main(["compare", "gpt2", str(tmp_path / "quantity.yaml"), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)[0]
    assert first["quantity"] == "context"
    assert first["quantity (1)"] == 2_048
    names = ["gpt2", "gpt2", str(tmp_path / "gpt2 (2).yaml")]
    assert main(["compare", *names, "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)[0]) == 2 + 3 + 2


@pytest.mark.parametrize(
    "environment",
    [
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "cp437"},
        {"COLUMNS": "²"},
        {"LINES": "²"},
    ],
)
def test_odd_surroundings(environment: dict[str, str]) -> None:
    for way in ([], ["--markdown"], ["--csv"]):
        done = run("gpt2", "--kv", "6", *way, **environment)
        assert done.returncode == 0
        assert done.stderr == b""
        kept = 124_439_808 - 12 * 2 * (6 * 64 * 768 + 6 * 64)  # six heads of W_K, W_V and biases
        assert str(kept).encode() in done.stdout.replace(b",", b"")
