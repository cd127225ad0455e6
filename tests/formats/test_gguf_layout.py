"""Tensors of GGUF files: names and shapes as llama.cpp's conversion writes them."""

from __future__ import annotations

import pytest

from paramcalc.formats.gguf_layout import LLAMA, Layout, block_count, layout_of, tensors
from tests.conftest import preset


def held(name: str, layout: Layout | None = None) -> dict[str, tuple[int, ...]]:
    found = tensors(preset(name).ledger, layout or layout_of(preset=name))
    return {t.name: t.shape for t in found}


def test_a_llama_has_nine_tensors_a_layer() -> None:
    shapes = held("llama3.1-8b")
    assert len(shapes) == 32 * 9 + 3  # 292 in the file, with rope_freqs
    assert shapes["token_embd.weight"] == shapes["output.weight"] == (128256, 4096)
    assert shapes["blk.31.attn_v.weight"] == (1024, 4096)


def test_a_tied_head_is_not_stored() -> None:
    assert "output.weight" not in held("gemma2-9b")


def test_experts_are_stacked_and_routers_stay_in_f32() -> None:
    found = {t.name: t for t in tensors(preset("mixtral-8x7b").ledger)}
    assert found["blk.0.ffn_down_exps.weight"].shape == (8, 4096, 14336)
    assert found["blk.0.ffn_gate_inp.weight"].keeps == "F32"
    assert found["blk.0.ffn_gate_exps.weight"].keeps is None


def test_fused_matrices_stay_fused() -> None:
    shapes = held("phi3-mini")
    assert shapes["blk.0.attn_qkv.weight"] == (3 * 3072, 3072)
    assert shapes["blk.0.ffn_up.weight"] == (2 * 8192, 3072)
    assert "blk.0.attn_q.weight" not in shapes
    assert held("gpt2")["blk.11.attn_qkv.bias"] == (3 * 768,)


@pytest.mark.parametrize(
    ("name", "heads", "rank", "keys", "values"),
    [
        ("deepseek-v3", 128, 512, 128, 128),  # config.json of each
        ("deepseek-v2-lite", 16, 512, 128, 128),
        ("kimi-k2", 64, 512, 128, 128),
        ("glm5", 64, 512, 192, 256),
    ],
)
def test_latent_attention_is_split_by_head(
    name: str, heads: int, rank: int, keys: int, values: int
) -> None:
    shapes = held(name)
    assert shapes["blk.1.attn_k_b.weight"] == (heads, rank, keys)
    assert shapes["blk.1.attn_v_b.weight"] == (heads, values, rank)


def test_latent_attention_whole() -> None:
    shapes = held("deepseek-v3", Layout(splits_kv=False))
    assert shapes["blk.0.attn_kv_b.weight"] == (128 * 256, 512)


def test_an_encoder_and_a_decoder() -> None:
    shapes = held("t5-small")
    assert shapes["enc.blk.5.attn_o.weight"] == (512, 512)
    assert shapes["dec.blk.0.cross_attn_v.weight"] == (512, 512)
    assert block_count(preset("t5-small").ledger) == 6


def test_an_encoder_goes_without_its_head() -> None:
    found = {t.name: t.keeps for t in tensors(preset("bert-base").ledger, layout_of("bert"))}
    assert not any(name.startswith(("head", "output.")) for name in found)
    assert found["position_embd.weight"] == found["token_types.weight"] == "F32"


@pytest.mark.parametrize(
    ("model_type", "name", "arch"),
    [
        (None, None, "llama"),
        ("mixtral", None, "llama"),
        ("gemma3_text", None, "gemma3_text"),
        ("phi3", "llama3-8b", "phi3"),
        (None, "phi4-mini", "phi3"),
        (None, "phi3.5-moe", "llama"),
        (None, "falcon-7b", "falcon"),
        (None, "falcon3-10b", "llama"),
        (None, "starcoder2-3b", "llama"),
        (None, "glm4-9b", "chatglm"),
        (None, "glm4-32b", "glm4"),
        (None, "qwen2.5-72b", "qwen2"),
    ],
)
def test_layouts(model_type: str | None, name: str | None, arch: str) -> None:
    assert layout_of(model_type, name).arch == arch


def test_what_is_not_named_is_stored_as_llama() -> None:
    assert layout_of("new_type") == LLAMA._replace(arch="new_type")
