"""Reading a config.json: defaults, older spellings, refusals, what was not used, overrides."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import paramcalc
from paramcalc import families
from paramcalc.cli.main import main
from tests.audit.files import TINY, write_config

LLAMA3 = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "rope_theta": 500000.0,
    "torch_dtype": "bfloat16",
}


def run(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, str, str]:
    code = main(list(argv))
    out, err = capsys.readouterr()
    return code, out, err


def test_a_file_its_folder_and_a_dict_are_one_model(tmp_path: Path) -> None:
    folder = tmp_path / "Llama-3-8B"
    folder.mkdir()
    path = write_config(folder, LLAMA3)
    for source in (path, str(path), folder, LLAMA3):
        assert paramcalc.load(source).params.total == 8030261248
    assert paramcalc.load(path).name == "Llama-3-8B"
    assert paramcalc.load(path).spec.context == 8192


def test_older_spellings_and_the_standard_ones_are_the_same() -> None:
    old = {"model_type": "gpt2", "n_embd": 1024, "n_layer": 24, "n_head": 16, "n_ctx": 1024}
    new = {
        "model_type": "gpt2",
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
    }
    assert paramcalc.load(old).params.total == 354823168
    assert paramcalc.load(new).params.total == 354823168


def test_an_unknown_type_is_refused_by_name_with_what_can_be_read() -> None:
    with pytest.raises(paramcalc.UnknownType) as caught:
        paramcalc.load({"model_type": "lama", "hidden_size": 64})
    said = str(caught.value)
    assert "model_type = lama: unknown type (did you mean llama" in said
    assert f"{len(families.known())} are read" in said
    assert "--like llama" in said


def test_nonsense_has_no_nearest_type() -> None:
    with pytest.raises(paramcalc.UnknownType) as caught:
        paramcalc.load({"model_type": "frobnicate"})
    assert "did you mean" not in str(caught.value)


def test_like_reads_an_unknown_type_and_says_assumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, {**LLAMA3, "model_type": "brandnew"})
    assert paramcalc.load(path, like="llama").params.total == 8030261248
    code, out, err = run(capsys, str(path), "--like", "llama")
    assert code == 0
    assert "8,030,261,248" in out
    assert "assumed: brandnew is read as llama" in err
    document = json.loads(run(capsys, str(path), "--like", "llama", "--json")[1])
    assert document["config"]["assumed"] == ["brandnew is read as llama"]
    code, _, err = run(capsys, str(path), "--like", "lamma")
    assert code == 2
    assert "--like lamma: unknown type (did you mean llama" in err


def test_a_file_without_a_type_needs_like() -> None:
    bare = {k: v for k, v in LLAMA3.items() if k != "model_type"}
    with pytest.raises(paramcalc.ConfigError, match="model_type: is missing"):
        paramcalc.load(bare)
    assert paramcalc.load(bare, like="llama").params.total == 8030261248


def test_keys_that_might_change_shapes_and_were_not_used_are_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    more = {"q_lora_rank": 512, "mlp_ratio": 4.0, "rope_scaling": {}}
    path = write_config(tmp_path, LLAMA3 | more)
    code, _, err = run(capsys, str(path))
    assert code == 0
    assert "keys not used, which may change shapes: mlp_ratio, q_lora_rank\n" in err
    document = json.loads(run(capsys, str(path), "--json")[1])
    assert document["config"]["unused_keys"] == ["mlp_ratio", "q_lora_rank"]


def test_a_multimodal_file_of_an_unknown_type_gives_its_text_part() -> None:
    config = {
        "model_type": "llava_next",
        "text_config": LLAMA3,
        "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024},
        "quantization_config": {"bits": 4},
    }
    model = paramcalc.load(config)
    assert model.params.total == 8030261248
    assert model.reading is not None
    assert model.reading.left_out == ("vision (vision_config)",)
    assert model.reading.assumed == ("llava_next is read by its text_config alone",)


def test_architectures_or_arch_choose_the_class() -> None:
    bart = {"model_type": "bart"}
    assert paramcalc.load(bart).params.total == 406291456
    assert paramcalc.load(bart, arch="BartForCausalLM").params.total == 254084096
    alone = {**bart, "architectures": ["BartForCausalLM"]}
    assert paramcalc.load(alone).params.total == 254084096


BAD: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"hidden_size": "4096"}, "hidden_size = 4096: must be a whole number"),
    "half": ({"hidden_size": 4096.5}, "hidden_size = 4096.5: must be a whole number"),
    "bool": ({"num_hidden_layers": True}, "num_hidden_layers = True: must be a whole number"),
    "negative": ({"vocab_size": -1}, "vocab_size = -1: must not be negative"),
    "zero": ({"num_hidden_layers": 0}, "n_layers = 0: must be at least 1"),
    "huge": ({"vocab_size": 10**29}, "vocab_size = 100000000000000000000000000000: must be"),
    "layers": ({"num_hidden_layers": 10**12}, "num_hidden_layers = 1000000000000: must be at most"),
    "heads": ({"num_attention_heads": 33}, "n_kv_heads = 8: must divide n_heads = 33"),
    "no heads": ({"num_attention_heads": 0}, "n_heads = 0: must be at least 1"),
    "groups": ({"num_key_value_heads": 7}, "n_kv_heads = 7: must divide n_heads = 32"),
    "flag": ({"attention_bias": "yes"}, "attention_bias = yes: must be true or false"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_value_is_one_line(name: str) -> None:
    changes, says = BAD[name]
    with pytest.raises(paramcalc.InputError) as caught:
        paramcalc.load({**LLAMA3, **changes})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


LISTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "short": ("gemma3_text", {"layer_types": ["full_attention"]}, "1 entries: there are 26 layers"),
    "word": ("gemma2", {"layer_types": ["round"] * 26}, "layer_types = round: must be one of"),
    "number": ("gemma2", {"layer_types": [3] * 26}, "layer_types = 3: must be one of"),
    "no list": ("afmoe", {"layer_types": "full"}, "must be"),
    "section": ("dbrx", {"attn_config": 3}, "attn_config = 3: must be a section"),
    "moe": ("qwen3_moe", {"num_experts": 4}, "top_k = 8: cannot exceed n_experts = 4"),
}


@pytest.mark.parametrize("name", LISTS)
def test_a_bad_list_or_section_is_one_line(name: str) -> None:
    model_type, changes, says = LISTS[name]
    with pytest.raises(paramcalc.InputError) as caught:
        paramcalc.load({"model_type": model_type, **changes})
    assert says in str(caught.value)


def test_overrides_change_the_keys_and_read_the_file_again() -> None:
    model = paramcalc.load(LLAMA3)
    assert model.with_(kv=32).params.total == 8030261248 + 805306368
    assert model.with_(n_kv_heads=32, context=4096).spec.context == 4096
    mamba = paramcalc.load({"model_type": "mamba", "hidden_size": 768, "num_hidden_layers": 24})
    halved = mamba.with_(n_layers=12)
    layer = mamba.params.by_kind[0].params
    assert mamba.params.total - halved.params.total == 12 * layer
    with pytest.raises(paramcalc.SpecError, match="n_experts: its layers are not built from this"):
        mamba.with_(n_experts=8)


def test_multi_token_prediction_is_counted_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = {"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}
    model = paramcalc.load(config)
    # embedding and head, projection of 2 d, three norms of the layer's own, one layer with experts
    d, vocab = 7168, 129280
    layer = 671026404352 - paramcalc.load({**config, "num_hidden_layers": 60}).params.total
    assert model.params.total == 671026404352
    assert model.params.mtp == 2 * vocab * d + 2 * d * d + 3 * d + layer
    path = write_config(tmp_path, config)
    assert "beside it, multi-token prediction: 13,463,426,048" in run(capsys, str(path))[1]
    whole = json.loads(run(capsys, str(path), "--mtp", "--json")[1])
    assert whole["quantities"]["params"] == 671026404352 + 13463426048


@pytest.mark.parametrize(
    ("config", "by"),
    [
        (LLAMA3, "d_model: 4096"),
        ({"model_type": "deepseek_v3", "num_nextn_predict_layers": 0}, "kv_lora_rank: 512"),
        ({"model_type": "deepseek_v3", "num_nextn_predict_layers": 1}, "predict_layers: 1"),
        ({"model_type": "gemma3_text"}, "window: 4096"),
        ({"model_type": "mamba2", "num_hidden_layers": 4}, "model_type: mamba2"),
        ({"model_type": "gemma3n_text"}, "model_type: gemma3n_text"),
    ],
    ids=lambda value: value if isinstance(value, str) else value["model_type"],
)
def test_a_preset_from_a_config_loads_as_the_same_model(
    config: dict[str, Any], by: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, config)
    code, out, _ = run(capsys, "preset", str(path))
    assert code == 0
    assert by in out
    again = tmp_path / "again.yaml"
    again.write_text(out, encoding="utf-8")
    model, same = paramcalc.load(path), paramcalc.load(again)
    assert same.params.total == model.params.total
    assert same.params.mtp == model.params.mtp
    assert same.flops.prefill(100) == model.flops.prefill(100)
    assert same.memory.kv_bytes(5000) == model.memory.kv_bytes(5000)


def test_the_cache_by_layer_and_kind(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = write_config(tmp_path, {"model_type": "gemma3_text"})
    document = json.loads(run(capsys, str(path), "--json", "--context", "8k")[1])
    # 26 layers, every sixth full, a window of 4,096: 2 x 4 heads of 256 a position
    full, window = document["cache_by_kind"][1], document["cache_by_kind"][0]
    assert (window["kind"], window["layers"]) == ("window", 22)
    assert window["elements"] == 22 * 4096 * 2048
    assert (full["kind"], full["layers"], full["elements"]) == ("full", 4, 4 * 8192 * 2048)
    layers = document["cache_by_layer"]
    assert [row["kind"] for row in layers[:6]] == ["window"] * 5 + ["full"]
    assert layers[5]["bytes"] == 2 * 8192 * 2048


def test_stored_tensors_say_what_is_fused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    path = write_config(tmp_path, {"model_type": "gpt2"})
    document = json.loads(run(capsys, str(path), "--json")[1])
    row = next(r for r in document["stored_tensors"] if r["name"].endswith("c_attn.weight"))
    assert row == {
        "name": "transformer.h.{i}.attn.c_attn.weight",
        "shape": [768, 2304],
        "copies": 12,
        "buffer": False,
        "holds": ["attention.q", "attention.k", "attention.v"],
    }


def test_each_family_says_what_it_reads() -> None:
    for name in families.known():
        module = families.find(name)
        assert module is not None
        assert module.__doc__
        assert module.read.__doc__
        assert name in module.TYPES or name in module.WRAPS
    assert len(families.known()) >= 216


def test_broken_json_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    for text, says in (
        ('{"model_type": ', "broken JSON: line 1, column 16"),
        ('{"a": 1, "a": 2}', "a stands twice"),
        ("[1]", "holds list, not a configuration's keys"),
        ('{"hidden_size": ' + "9" * 5000 + "}", "has 5,000 digits"),
        ("[" * 100_000, "nested too deeply"),
        ("", "broken JSON"),
    ):
        path.write_text(text, encoding="utf-8")
        code, _, err = run(capsys, str(path))
        assert code == 2
        assert says in err
        assert err.count("\n") == 1


def test_a_hub_id_without_the_extra_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    code, _, err = run(capsys, "someone/some-model")
    assert code == 2
    assert "no such preset or file" in err
    assert "pip install 'paramcalc[hub]'" in err


def test_tiny_is_what_its_tensors_add_up_to() -> None:
    from math import prod

    from tests.audit.files import tiny_shapes

    assert paramcalc.load(TINY).params.total == sum(map(prod, tiny_shapes().values()))


WINDOWED = {"gemma2": 4096, "gemma3_text": 4096, "gpt_oss": 128, "cohere2": 4096, "olmo3": 4096}


@pytest.mark.parametrize("model_type", WINDOWED)
def test_windows_are_defaults_too(model_type: str) -> None:
    model = paramcalc.load({"model_type": model_type})
    kinds = {row.kind: row for row in model.memory.cache_by_kind(10_000)}
    spec = model.spec
    kv = spec.n_kv_heads or spec.n_heads or 0
    width = 2 * kv * (spec.head_dim or spec.d_model // (spec.n_heads or 1))
    window = kinds["window"]
    assert window.elements == window.layers * width * WINDOWED[model_type]


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({"model_type": "mamba", "intermediate_size": ["x"]}, "intermediate_size = ['x']: must be"),
        ({"model_type": "nllb-moe", "decoder_sparse_step": None}, "decoder_sparse_step = none:"),
        ({"model_type": "diffllama", "head_dim": {"a": 1}}, "head_dim = {'a': 1}: must be"),
        (
            {"model_type": "llava", "text_config": {"model_type": "mamba", "state_size": {}}},
            "text_config: state_size = {}: must be",
        ),
    ],
    ids=lambda value: value["model_type"] if isinstance(value, dict) else "",
)
def test_a_value_that_makes_no_size_is_named(config: dict[str, Any], says: str) -> None:
    with pytest.raises(paramcalc.ConfigError) as caught:
        paramcalc.load(config)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("config", "arch"),
    [
        ({"model_type": "bart"}, "BartForCausalLM"),
        ({"model_type": "marian"}, "MarianForCausalLM"),
        ({"model_type": "gptj"}, "GPTJForCausalLM"),
        ({"model_type": "nllb-moe"}, "NllbMoeForConditionalGeneration"),
        ({"model_type": "big_bird"}, "BigBirdForCausalLM"),
        ({"model_type": "qwen3_5"}, "Qwen3_5ForCausalLM"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_preset_keeps_the_class_and_what_is_off(
    config: dict[str, Any], arch: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, config)
    code, out, _ = run(capsys, "preset", str(path), "--arch", arch)
    assert code == 0
    again = tmp_path / "again.yaml"
    again.write_text(out, encoding="utf-8")
    model, same = paramcalc.load(path, arch=arch), paramcalc.load(again)
    assert same.params.total == model.params.total
    assert same.params.mtp == model.params.mtp
    assert same.flops.prefill(100) == model.flops.prefill(100)
    assert same.memory.kv_bytes(500) == model.memory.kv_bytes(500)


def test_like_and_arch_are_for_configurations(capsys: pytest.CaptureFixture[str]) -> None:
    for option in ("--like", "--arch"):
        code, _, err = run(capsys, "llama3-8b", option, "gpt2")
        assert code == 2
        assert "--like and --arch are for a config.json" in err


def test_a_note_holds_no_control_letters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_config(tmp_path, {**LLAMA3, "bad\x1b[31m\nkey": 7})
    code, _, err = run(capsys, str(path))
    assert code == 0
    assert "bad?[31m?key" in err
    assert err.count("\n") == 1
    many = {f"key_{i}": 7 for i in range(500)}
    err = run(capsys, str(write_config(tmp_path, LLAMA3 | many)))[2]
    assert err.rstrip().endswith("and 480 more")
