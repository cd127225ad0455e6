"""Audits against small real files: safetensors, shards, GGUF, quantized checkpoints."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.audit.compare import Audit, audit
from paramcalc.audit.packed import unpacked
from paramcalc.cli.main import main
from paramcalc.sources.contents import read_all, read_file
from tests.audit.files import (
    PREDICTING,
    TINY,
    predicting_shapes,
    tiny_shapes,
    write_arrays,
    write_config,
    write_gguf,
    write_safetensors,
    write_shards,
)

COUNT = 105408
"""2 tables of 100 x 64, 3 layers of 30,848, a norm of 64."""


def compared(path: Path, config: dict[str, Any] = TINY) -> Audit:
    return audit(paramcalc.load(config), read_all([path]))


def test_a_checkpoint_is_equal_name_by_name(tmp_path: Path) -> None:
    found = compared(write_safetensors(tmp_path / "model.safetensors", tiny_shapes()))
    assert found.equal
    assert found.params == found.elements == COUNT
    assert sum(item.copies for item in found.by_name) == 30
    assert not found.by_shape
    assert found.contents.total_bytes == 2 * COUNT


def test_shards_with_their_index(tmp_path: Path) -> None:
    every = list(tiny_shapes().items())
    index = write_shards(tmp_path, [dict(every[:11]), dict(every[11:])])
    assert compared(index).equal
    assert compared(tmp_path).equal
    (tmp_path / "model-00002-of-00002.safetensors").unlink()
    with pytest.raises(paramcalc.FileError, match=r"model-00002-of-00002\.safetensors is missing"):
        read_file(index)


def test_an_index_cannot_point_elsewhere(tmp_path: Path) -> None:
    index = tmp_path / "model.safetensors.index.json"
    for name in ("../other.safetensors", "/etc/passwd", ""):
        index.write_text(json.dumps({"weight_map": {"a": name}}), encoding="utf-8")
        with pytest.raises(paramcalc.FileError, match="does not lie beside the index"):
            read_file(index)
    index.write_text("{}", encoding="utf-8")
    with pytest.raises(paramcalc.FileError, match="has no weight_map"):
        read_file(index)


def test_missing_extra_and_different_tensors_are_named(tmp_path: Path) -> None:
    shapes = tiny_shapes()
    del shapes["model.layers.1.mlp.up_proj.weight"]
    shapes["model.norm.weight"] = (65,)
    shapes["model.layers.0.adapter.weight"] = (8, 8)
    found = compared(write_safetensors(tmp_path / "model.safetensors", shapes))
    assert not found.equal
    assert [(i.name, i.shape, i.copies) for i in found.missing] == [
        ("model.layers.*.mlp.up_proj.weight", (96, 64), 1)
    ]
    (different,) = found.different
    assert (different.name, different.shape, different.was) == ("model.norm.weight", (64,), (65,))
    assert [(i.name, i.copies) for i in found.extra] == [("model.layers.*.adapter.weight", 1)]


def test_a_tied_head_stored_again_and_buffers_stand_beside(tmp_path: Path) -> None:
    own = "self_attn.rotary_emb.inv_freq"
    shapes = tiny_shapes() | {f"model.layers.{i}.{own}": (8,) for i in range(3)}
    found = compared(
        write_safetensors(tmp_path / "model.safetensors", shapes),
        {**TINY, "tie_word_embeddings": True},
    )
    assert found.equal
    assert {why for why, _ in found.beside} == {
        "the tied head, stored again",
        "buffers, no parameters",
    }


def test_a_prefix_that_the_release_leaves_out(tmp_path: Path) -> None:
    shapes = {name.removeprefix("model."): shape for name, shape in tiny_shapes().items()}
    found = compared(write_safetensors(tmp_path / "model.safetensors", shapes))
    assert found.equal
    assert not found.by_shape


def test_experts_stored_one_by_one(tmp_path: Path) -> None:
    config = {**TINY, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
    shapes = {name: s for name, s in tiny_shapes().items() if ".mlp." not in name}
    for i in range(3):
        own = f"model.layers.{i}.block_sparse_moe"
        shapes[f"{own}.gate.weight"] = (4, 64)
        for e in range(4):
            shapes[f"{own}.experts.{e}.w1.weight"] = (96, 64)
            shapes[f"{own}.experts.{e}.w2.weight"] = (64, 96)
            shapes[f"{own}.experts.{e}.w3.weight"] = (96, 64)
    found = compared(write_safetensors(tmp_path / "model.safetensors", shapes), config)
    assert found.equal
    assert not found.by_shape


def test_a_preset_against_a_fused_and_transposed_file(tmp_path: Path) -> None:
    fields = {"d_model": 64, "n_layers": 2, "n_heads": 4, "vocab_size": 100, "context": 32}
    shapes = {"wte.weight": (100, 64), "wpe.weight": (32, 64)}
    for i in range(2):
        for name, shape in (
            ("attn.c_attn.weight", (64, 192)),
            ("attn.c_attn.bias", (192,)),
            ("attn.c_proj.weight", (64, 64)),
            ("attn.c_proj.bias", (64,)),
            ("mlp.c_fc.weight", (64, 256)),
            ("mlp.c_fc.bias", (256,)),
            ("mlp.c_proj.weight", (256, 64)),
            ("mlp.c_proj.bias", (64,)),
        ):
            shapes[f"h.{i}.{name}"] = shape
        for norm in ("ln_1", "ln_2"):
            shapes |= {f"h.{i}.{norm}.weight": (64,), f"h.{i}.{norm}.bias": (64,)}
    shapes |= {"ln_f.weight": (64,), "ln_f.bias": (64,)}
    path = write_safetensors(tmp_path / "model.safetensors", shapes)
    by_shape = compared(path, {**fields, "gpt2": True, "tie_embeddings": True})
    assert by_shape.equal
    config = {"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "vocab_size": 100}
    by_name = compared(path, {**config, "n_positions": 32})
    assert by_name.equal
    assert not by_name.by_shape


@pytest.mark.parametrize("quantized", [False, True])
def test_gguf(tmp_path: Path, quantized: bool) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", quantized=quantized)
    found = compared(path)
    assert found.equal
    assert not found.by_shape
    assert found.elements == COUNT
    norms = 7 * 64
    matrices = COUNT - norms
    n_bytes = matrices * 34 // 32 if quantized else matrices * 4  # Q8_0: 32 weights in 34 bytes
    assert found.contents.total_bytes == n_bytes + norms * 4
    assert paramcalc.load(path).params.total == COUNT
    assert paramcalc.load(path).spec.context == 512


def test_layers_of_prediction_are_compared_where_the_files_hold_them(tmp_path: Path) -> None:
    own, beside = predicting_shapes()
    found = compared(write_safetensors(tmp_path / "whole.safetensors", own | beside), PREDICTING)
    assert found.equal
    predicted = [item for why, item in found.beside if "as counted apart" in why]
    assert sum(item.copies for item in predicted) == len(beside) - 1  # a buffer is among them
    items = [*found.by_name, *(item for _, item in found.beside)]
    assert sum(item.copies for item in items) == len(own) + len(beside)

    found = compared(write_safetensors(tmp_path / "without.safetensors", own), PREDICTING)
    assert found.equal
    assert ("multi-token prediction, not in the files", 0) in [
        (why, item.copies) for why, item in found.beside
    ]

    at = "model.layers.3"
    beside |= {f"{at}.eh_proj.weight": (64, 64), f"{at}.junk.weight": (7, 7)}
    del beside[f"{at}.enorm.weight"]
    found = compared(write_safetensors(tmp_path / "broken.safetensors", own | beside), PREDICTING)
    assert [(i.name, i.shape) for i in found.missing] == [("model.layers.*.enorm.weight", (64,))]
    assert [(i.name, i.shape, i.was) for i in found.different] == [
        ("model.layers.*.eh_proj.weight", (64, 128), (64, 64))
    ]
    assert [(i.name, i.shape) for i in found.extra] == [("model.layers.*.junk.weight", (7, 7))]


def test_layers_after_the_models_own_are_extra_unless_they_predict(tmp_path: Path) -> None:
    path = write_safetensors(tmp_path / "model.safetensors", tiny_shapes())
    found = compared(path, {**TINY, "num_hidden_layers": 2})
    assert sum(item.copies for item in found.extra) == 9  # the whole third layer
    own, beside = predicting_shapes()
    path = write_safetensors(tmp_path / "predicting.safetensors", own | beside)
    found = compared(path, {**PREDICTING, "num_nextn_predict_layers": 0})
    assert found.equal
    apart = [item.copies for why, item in found.beside if "not counted here" in why]
    assert sum(apart) == len(beside)


def packed(kind: str) -> dict[str, np.ndarray[Any, Any]]:
    """A matrix (96, 64) as each format stores it."""
    name = "model.layers.0.mlp.up_proj"
    zeros = np.zeros
    return {
        "gptq": {
            f"{name}.qweight": zeros((8, 96), np.int32),
            f"{name}.qzeros": zeros((2, 12), np.int32),
            f"{name}.scales": zeros((2, 96), np.float16),
            f"{name}.g_idx": zeros((64,), np.int32),
        },
        "awq": {
            f"{name}.qweight": zeros((64, 12), np.int32),
            f"{name}.qzeros": zeros((2, 12), np.int32),
            f"{name}.scales": zeros((2, 96), np.float16),
        },
        "compressed": {
            f"{name}.weight_packed": zeros((96, 8), np.int32),
            f"{name}.weight_scale": zeros((96, 2), np.float16),
            f"{name}.weight_shape": np.array([96, 64]),
        },
        "int8": {
            f"{name}.weight": zeros((96, 64), np.int8),
            f"{name}.SCB": zeros((96,), np.float32),
        },
        "nvfp4": {
            f"{name}.weight": zeros((96, 32), np.uint8),
            f"{name}.weight_scale": zeros((96, 4), np.uint8),
            f"{name}.weight_scale_2": zeros((1,), np.float32),
        },
        "mxfp4": {
            f"{name}.weight_blocks": zeros((96, 2, 16), np.uint8),
            f"{name}.weight_scales": zeros((96, 2), np.uint8),
        },
        "nf4": {
            f"{name}.weight": zeros((3072, 1), np.uint8),
            f"{name}.weight.absmax": zeros((96,), np.float32),
            f"{name}.weight.quant_state.bitsandbytes__nf4": np.frombuffer(
                json.dumps({"shape": [96, 64]}).encode(), np.uint8
            ),
        },
    }[kind]


@pytest.mark.parametrize("kind", ["gptq", "awq", "compressed", "int8", "nvfp4", "mxfp4", "nf4"])
def test_packed_tensors_have_their_true_shape(kind: str, tmp_path: Path) -> None:
    arrays = packed(kind)
    (held,) = unpacked(read_file(write_arrays(tmp_path / "m.safetensors", arrays)))
    assert held.shape == (96, 64)
    assert held.name == "model.layers.0.mlp.up_proj.weight"
    assert held.n_bytes == sum(array.nbytes for array in arrays.values())
    assert held.packed


def test_a_quantized_checkpoint_is_equal(tmp_path: Path) -> None:
    arrays = {name: np.zeros(s, np.float16) for name, s in tiny_shapes().items()}
    del arrays["model.layers.0.mlp.up_proj.weight"]
    path = write_arrays(tmp_path / "model.safetensors", arrays | packed("gptq"))
    found = compared(path)
    assert found.equal
    assert found.elements == COUNT
    assert [t.stored_as for t in found.packed] == ["int4 (GPTQ)"]


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


def hostile(tmp_path: Path) -> dict[str, bytes]:
    whole = write_gguf(tmp_path / "whole.gguf").read_bytes()
    head = b"GGUF" + (3).to_bytes(4, "little")

    def u64(value: int) -> bytes:
        return value.to_bytes(8, "little")

    key = u64(1) + b"k"
    array = (9).to_bytes(4, "little")
    return {
        "empty.gguf": b"",
        "magic.gguf": b"GGML" + whole[4:],
        "version.gguf": b"GGUF" + (99).to_bytes(4, "little") + whole[8:],
        "cut.gguf": whole[:200],
        "cut data.gguf": whole[:-4096],
        "tensors.gguf": head + u64(2**60) + u64(0),
        "entries.gguf": head + u64(0) + u64(2**60),
        "string.gguf": head + u64(0) + u64(1) + u64(2**62),
        "array.gguf": head + u64(0) + u64(1) + key + array + (8).to_bytes(4, "little") + u64(2**40),
        "kind.gguf": head + u64(0) + u64(1) + key + (77).to_bytes(4, "little"),
        "offset.gguf": head
        + u64(1)
        + u64(0)
        + key
        + (1).to_bytes(4, "little")
        + u64(4)
        + (0).to_bytes(4, "little")
        + u64(2**63),
        "dims.gguf": head + u64(1) + u64(0) + key + (2**31).to_bytes(4, "little"),
        "empty.safetensors": b"",
        "length.safetensors": u64(2**62) + b"{}",
        "json.safetensors": u64(4) + b"{{{{",
        "cut.safetensors": u64(1000) + b'{"a":',
        "offsets.safetensors": u64(56)
        + b'{"a":{"dtype":"F32","shape":[99],"data_offsets":[0,8]}}'.ljust(56),
    }


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


def test_without_the_extras_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.setitem(sys.modules, "gguf", None)
    for suffix in ("safetensors", "gguf"):
        path = tmp_path / f"m.{suffix}"
        path.write_bytes(b"x")
        with pytest.raises(paramcalc.FileError, match=rf"pip install 'paramcalc\[{suffix}\]'"):
            read_file(path)


def test_what_states_a_shape_is_not_trusted(tmp_path: Path) -> None:
    name = "model.layers.0.mlp.up_proj"
    for shape in ([-5, 2**62], [0, 3], [2**50, 2]):
        arrays = packed("compressed") | {f"{name}.weight_shape": np.array(shape)}
        found = unpacked(read_file(write_arrays(tmp_path / "m.safetensors", arrays)))
        assert sum(held.elements for held in found) < 10_000
    deep = np.frombuffer(b"[" * 4000, np.uint8)
    arrays = packed("nf4") | {f"{name}.weight.quant_state.bitsandbytes__nf4": deep}
    (held,) = unpacked(read_file(write_arrays(tmp_path / "m.safetensors", arrays)))
    assert held.elements == 6144


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
