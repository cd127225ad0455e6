"""Every class of a type: what each counts, which are refused, what stands in place of a head."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc import families
from paramcalc.families import classes
from tests.families import conformance as c
from tests.families.test_reading import LLAMA3, run, write_config

CLASSES = c.rows("classes")
CONFIGS = {row["model_type"]: row["config"] for row in reversed(c.rows("types"))}
"""The configuration of each type's first row."""

LLAMA = 8030261248
HEAD = 128256 * 4096


@pytest.mark.parametrize("model_type", sorted({row["model_type"] for row in CLASSES}))
def test_every_class_holds_what_the_framework_s_does(model_type: str) -> None:
    config = {**CONFIGS.get(model_type, {}), "model_type": model_type}
    for row in (r for r in CLASSES if r["model_type"] == model_type):
        model = paramcalc.load(config, arch=row["arch"])
        assert model.params.total == row.get("body", row["params"]), row["arch"]
        if "body" in row:
            assert any(what.endswith(f"of {row['arch']}") for what in model.left_out)
        else:
            assert c.digest(c.shapes_of(model)) == row["shapes"], row["arch"]


def test_the_table_holds_every_type() -> None:
    assert sorted(classes.CLASSES) == families.known()


def test_a_class_without_a_head_has_no_prefix_in_its_names() -> None:
    # names as state_dict() of the framework's class gives them
    for model_type, arch, name in (
        ("llama", "LlamaModel", "layers.{i}.self_attn.q_proj.weight"),
        ("gpt2", "GPT2Model", "wte.weight"),
        ("bert", "BertModel", "pooler.dense.weight"),
        ("t5", "T5Model", "shared.weight"),
        ("mamba", "MambaModel", "norm_f.weight"),
        ("gemma3", "Gemma3Model", "language_model.embed_tokens.weight"),
    ):
        model = paramcalc.load({"model_type": model_type}, arch=arch)
        assert name in {tensor.name for tensor in model.stored}, arch


def test_a_head_goes_and_nothing_else_does() -> None:
    bare = paramcalc.load(LLAMA3, arch="LlamaModel")
    assert bare.params.total == LLAMA - HEAD
    full = paramcalc.load(LLAMA3)
    assert full.flops.per_token(64) - bare.flops.per_token(64) == 2 * HEAD
    tied = LLAMA3 | {"tie_word_embeddings": True}
    assert paramcalc.load(tied, arch="LlamaModel").params.total == LLAMA - HEAD


@pytest.mark.parametrize(
    ("more", "labels"),
    [({}, 2), ({"num_labels": 5}, 5), ({"id2label": {"0": "a", "1": "b", "2": "c"}}, 3)],
)
def test_a_task_s_head_is_as_wide_as_its_labels(more: dict[str, Any], labels: int) -> None:
    config = LLAMA3 | more
    text = paramcalc.load(config, arch="LlamaForSequenceClassification")
    assert text.params.total == LLAMA - HEAD + labels * 4096
    token = paramcalc.load(config, arch="LlamaForTokenClassification")
    assert token.params.total == LLAMA - HEAD + labels * 4096 + labels
    assert text.left_out == token.left_out == ()


def test_a_class_of_another_type_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, LLAMA3)
    for name in ("Nope", "GPT2LMHeadModel"):
        code, _, err = run(capsys, str(path), "--arch", name)
        assert code == 2
        assert f"arch = {name}: is no class of llama" in err
        assert "LlamaForCausalLM, LlamaModel" in err
        assert err.count("\n") == 1


def test_a_class_that_only_the_file_knows_is_counted_as_the_language_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, {**LLAMA3, "architectures": ["MyLlamaModel"]})
    code, out, err = run(capsys, str(path), "--csv")
    assert code == 0
    assert f"params,{LLAMA},parameters,assumed" in out
    assert "assumed: MyLlamaModel is counted as LlamaForCausalLM" in err
    changed = run(capsys, str(path), "-L", "2")[2]
    assert "assumed: MyLlamaModel" in changed


def test_a_class_in_another_spelling_is_the_same() -> None:
    old = paramcalc.load({**LLAMA3, "architectures": ["LLaMAForCausalLM"]})
    assert (old.params.total, old.assumed) == (LLAMA, ())
    own = paramcalc.load({"model_type": "internlm3", "architectures": ["InternLM3ForCausalLM"]})
    assert own.assumed == ()


def test_a_text_class_of_a_multimodal_file_is_its_text_part() -> None:
    rows = {row["slug"]: row for row in c.rows("configs")}
    config = rows["gemma-3-27b-it-multimodal"]["released_config"] | {"model_type": "gemma3"}
    text = paramcalc.load(config, arch="Gemma3ForCausalLM")
    assert text.params.total == rows["gemma-3-27b-text"]["params"]
    assert text.params.towers == 0
    assert text.left_out == ("vision (vision_config)",)
    assert text.assumed == ()


MAMBA = {
    "d_model": 2560,
    "n_layer": 64,
    "vocab_size": 50277,
    "ssm_cfg": {},
    "rms_norm": True,
    "residual_in_fp32": True,
    "fused_add_norm": True,
    "pad_vocab_size_multiple": 8,
}
"""huggingface.co/state-spaces/mamba-2.8b, config.json."""


def test_a_file_in_state_spaces_own_layout_needs_like(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {row["slug"]: row for row in c.rows("configs")}
    path = write_config(tmp_path, MAMBA)
    code, _, err = run(capsys, str(path))
    assert code == 2
    assert "model_type: is missing; add it, or give --like TYPE" in err
    model = paramcalc.load(path, like="mamba")
    assert model.params.total == rows["mamba-2.8b"]["params"]
    assert model.spec.vocab_size == 50280
    assert model.unused_keys == ()
    (tmp_path / "empty.json").write_text("{}", encoding="utf-8")
    assert "model_type: is missing" in run(capsys, str(tmp_path / "empty.json"))[2]


def test_mamba_2_in_state_spaces_own_layout() -> None:
    rows = {row["slug"]: row for row in c.rows("configs")}
    second = MAMBA | {"d_model": 768, "n_layer": 24, "ssm_cfg": {"layer": "Mamba2"}}
    second |= {"pad_vocab_size_multiple": 16, "d_intermediate": 0, "attn_layer_idx": []}
    released = rows["mamba2-130m"]
    model = paramcalc.load(second, like="mamba2")
    # 50277 is rounded up to 50288 here
    table = (model.spec.vocab_size - released["released_config"]["vocab_size"]) * 768
    assert model.params.total == released["params"] + table
    for key, value, says in (
        ("ssm_cfg", {}, "give --like mamba"),
        ("attn_layer_idx", [4], "is not read"),
        ("ssm_cfg", 3, "must be a section"),
    ):
        with pytest.raises(paramcalc.ConfigError, match=says):
            paramcalc.load(second | {key: value}, like="mamba2")


def test_what_is_read_by_assumption_is_labelled_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, {**LLAMA3, "model_type": "brandnew"})
    out = run(capsys, str(path), "--like", "llama", "--csv")[1]
    assert {line.rpartition(",")[2] for line in out.splitlines()[1:]} == {"assumed"}
    assert "Parameters, assumed" in run(capsys, str(path), "--like", "llama")[1]
    document = json.loads(run(capsys, str(path), "--like", "llama", "--json")[1])
    assert set(document["known"].values()) == {"assumed"}
    # and a preset made from it says so again
    again = tmp_path / "again.yaml"
    again.write_text(run(capsys, "preset", str(path), "--like", "llama")[1], encoding="utf-8")
    code, out, err = run(capsys, str(again))
    assert code == 0
    assert "Parameters, assumed" in out
    assert "assumed: brandnew is read as llama" in err


def test_every_command_says_what_is_not_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"model_type": "llava_next", "text_config": LLAMA3, "vision_config": {"depth": 2}}
    path = str(write_config(tmp_path, config))
    for command in (
        ["show", path],
        ["explain", path],
        ["compare", path, "llama3-8b"],
        ["sweep", path, "--heads", "32"],
        ["preset", path],
    ):
        code, _, err = run(capsys, *command)
        assert code == 0
        assert "not counted: vision (vision_config)" in err, command


def test_mtp_where_there_is_none_is_a_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in (["llama3-8b"], ["explain", "llama3-8b"], ["compare", "llama3-8b", "qwen3-8b"]):
        code, _, err = run(capsys, *command, "--mtp")
        assert code == 0
        assert "no layers of multi-token prediction" in err
    rows = {row["slug"]: row for row in c.rows("configs")}
    config = rows["deepseek-v3"]["released_config"] | {"model_type": "deepseek_v3"}
    path = str(write_config(tmp_path, config))
    out = run(capsys, "compare", path, "deepseek-v3", "--mtp", "--json")[1]
    record = next(row for row in json.loads(out) if row["quantity"] == "params")
    # arXiv:2412.19437, 2.2: one layer as the last, two norms, a projection of 2 d to d, an own
    # embedding and head
    assert 684489830400 in record.values()
    assert 671026404352 in record.values()
