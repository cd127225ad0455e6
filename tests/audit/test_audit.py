"""Audits against small real files: safetensors, shards, GGUF, quantized checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.audit.compare import Audit, audit
from paramcalc.sources.contents import read_all, read_file
from tests.audit.files import (
    PREDICTING,
    TINY,
    predicting_shapes,
    tiny_shapes,
    write_arrays,
    write_gguf,
    write_safetensors,
    write_shards,
)
from tests.audit.test_packed import packed

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


def test_a_quantized_checkpoint_is_equal(tmp_path: Path) -> None:
    arrays = {name: np.zeros(s, np.float16) for name, s in tiny_shapes().items()}
    del arrays["model.layers.0.mlp.up_proj.weight"]
    path = write_arrays(tmp_path / "model.safetensors", arrays | packed("gptq"))
    found = compared(path)
    assert found.equal
    assert found.elements == COUNT
    assert [t.stored_as for t in found.packed] == ["int4 (GPTQ)"]
