"""Mistakes that nearly every calculator makes, each with the figure that shows it."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from paramcalc.audit.packed import unpacked
from paramcalc.quantities.components import parts
from paramcalc.sources.contents import read_file
from paramcalc.views.tables import Size
from tests.conftest import preset


def test_head_dim_is_not_always_d_over_h_and_gqa_counts() -> None:
    # Qwen3 4B: 2,560 / 32 = 80, but a head is 128 wide; K and V have 8 heads
    part = {p.name: p.one_layer for p in parts(preset("qwen3-4b").ledger)}
    assert part["W_Q + W_O"] == 2 * 2560 * 32 * 128
    assert part["W_K + W_V"] == 2 * 2560 * 8 * 128
    assert preset("qwen3-4b").memory.kv_bytes_per_token() == 36 * 2 * 8 * 128 * 2


def test_mla_caches_the_latent() -> None:
    assert preset("deepseek-v2-lite").memory.kv_bytes_per_token() == 27 * (512 + 64) * 2


def test_sliding_layers_stop_growing() -> None:
    gemma = preset("gemma3-27b").memory  # 52 layers of 1,024 tokens, 10 of all
    assert gemma.kv_bytes(131_072) == 2 * 16 * 128 * 2 * (52 * 1_024 + 10 * 131_072)
    assert gemma.kv_bytes_per_token(131_072) == 10 * 2 * 16 * 128 * 2
    flops = preset("gemma3-27b").flops
    assert flops.attention_per_token(8_192) == 4 * 32 * 128 * (52 * 1_024 + 10 * 8_192)


def test_a_tied_head_counts_once_and_costs_all_the_same() -> None:
    tied, untied = preset("gemma-2b"), preset("gemma-2b").with_(tie=False)
    assert untied.params.total - tied.params.total == 256_000 * 2_048
    assert untied.flops.per_token(64) == tied.flops.per_token(64)


def test_an_untied_head_is_not_missed() -> None:
    assert preset("llama3-8b").params.by_component["head"] == 128_256 * 4_096


def test_swiglu_has_three_matrices() -> None:
    assert preset("llama2-7b").params.by_component["ffn"] == 32 * 3 * 4_096 * 11_008
    assert preset("gpt2").params.by_component["ffn"] == 12 * (2 * 768 * 3_072 + 3_072 + 768)


def test_active_is_not_total_and_shared_experts_are_active() -> None:
    model = preset("qwen1.5-moe-a2.7b")
    idle = 24 * (60 - 4) * 3 * 2_048 * 1_408
    assert model.params.total - model.params.active == idle


def test_the_causal_half() -> None:
    flops = preset("llama3-8b").flops
    all_pairs = flops.prefill(8_192, all_pairs=True) - 8_192 * flops.matmul_per_token
    causal = flops.prefill(8_192) - 8_192 * flops.matmul_per_token
    assert causal * 2 * 8_192 == all_pairs * 8_193


def test_gb_is_not_gib() -> None:
    assert str(Size(80 * 10**9)) == "80.00 GB      74.51 GiB"
    assert str(Size(80 * 2**30)) == "85.90 GB      80.00 GiB"
    assert str(Size(131_072)) == "131.07 kB     128.00 KiB"


def test_packed_quantized_tensors_count_their_true_elements(tmp_path: Path) -> None:
    packed = {
        "model.layers.0.mlp.up_proj.qweight": np.zeros((8, 96), np.int32),  # 8 words of 8 x 4 bits
        "model.layers.0.mlp.up_proj.qzeros": np.zeros((2, 12), np.int32),
        "model.layers.0.mlp.up_proj.scales": np.zeros((2, 96), np.float16),
    }
    save_file(packed, tmp_path / "model.safetensors")
    (held,) = unpacked(read_file(tmp_path / "model.safetensors"))
    assert held.shape == (96, 64)
    assert held.elements == 6144  # not the 768 packed words, nor 984 with zeros and scales
    assert held.n_bytes == 4 * 8 * 96 + 4 * 2 * 12 + 2 * 2 * 96
    assert held.stored_as == "int4 (GPTQ)"


def test_a_peak_with_sparsity_is_twice_the_dense_one() -> None:
    # H100 SXM: 1,979 TFLOP/s in BF16 "with sparsity" (NVIDIA's datasheet), 989.5 dense
    flops = preset("llama3-8b").flops
    asked = flops.mfu(10_000, 1_979_000_000_000_000, 8192, with_sparsity=True)
    assert asked == flops.mfu(10_000, 989_500_000_000_000, 8192)
    # 3 x (matmuls + attention at the mean of 4,096.5 positions), by hand
    token = 3 * (15_009_316_864 + 4 * 32 * 32 * 128 * Fraction(8193, 2))
    assert asked == Fraction(10_000) * token / 989_500_000_000_000
