"""The figures the product is quoted for, each a published count or written out by hand."""

from __future__ import annotations

from fractions import Fraction

import pytest

import paramcalc
from paramcalc.ledger import Tensor
from paramcalc.quantities import flops, shape
from paramcalc.quantities.components import parts
from tests.conftest import preset


def part(name: str, title: str) -> int | None:
    return next(p.one_layer for p in parts(preset(name).ledger) if p.name == title)


def test_plain_layer_of_width_512() -> None:
    model = paramcalc.load({"d": 512, "L": 1, "H": 8, "V": 100})
    by = {p.name: p.one_layer for p in parts(model.ledger)}
    assert by["W_Q + W_O"] + by["W_K + W_V"] == 1_048_576  # type: ignore[operator]
    assert by["FFN (up, down)"] == 2_097_152
    assert shape.ratios(model.plan, model.ledger)[0].ffn_share == Fraction(2, 3)


def test_qwen2_half_billion_layer() -> None:
    attention = part("qwen2-0.5b", "W_Q + W_O") + part("qwen2-0.5b", "W_K + W_V")  # type: ignore[operator]
    assert attention == 1_835_008
    assert part("qwen2-0.5b", "FFN (gate, up, down)") == 13_074_432
    model = preset("qwen2-0.5b")
    share = shape.ratios(model.plan, model.ledger)[0].ffn_share
    assert share == Fraction(13_074_432, 1_835_008 + 13_074_432)
    assert round(float(share), 2) == 0.88


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("llama2-7b", 6_738_415_616),
        ("llama2-70b", 68_976_648_192),
        ("llama3-8b", 8_030_261_248),
        ("llama3-70b", 70_553_706_496),
        ("mixtral-8x7b", 46_702_792_704),
        ("deepseek-v3", 671_026_404_352),
        ("transformer-base", 63_045_632),
        ("bert-base", 109_514_298),
    ],
)
def test_totals(name: str, count: int) -> None:
    assert preset(name).params.total == count


def test_gpt2_small_in_parts() -> None:
    model = preset("gpt2")
    tensors = [r for r in model.ledger.layers[0].rows if isinstance(r, Tensor)]
    assert shape.matrices(tensors, "attention") == 2_359_296
    assert shape.matrices(tensors, "ffn") == 4_718_592
    assert 12 * shape.matrices(tensors, "ffn") == 56_623_104
    assert model.params.by_component["position"] == 786_432
    assert model.with_(tie=False).params.total - model.params.total == 38_597_376


def test_llama3_8b_in_parts() -> None:
    assert part("llama3-8b", "W_Q + W_O") == 33_554_432
    assert part("llama3-8b", "W_K + W_V") == 8_388_608
    assert part("llama3-8b", "FFN (gate, up, down)") == 176_160_768
    assert part("llama3-8b", "norms") == 8_192
    assert part("llama3-8b", "= layer") == 218_112_000
    by = {p.name: p.params for p in parts(preset("llama3-8b").ledger)}
    assert by["= layer"] == 6_979_584_000
    assert by["embedding + head"] == 1_050_673_152
    assert by["total"] == 8_030_261_248


def test_llama3_8b_with_32_kv_heads() -> None:
    model = preset("llama3-8b")
    wide = model.with_(kv=32)
    assert wide.params.total - model.params.total == 805_306_368
    assert wide.params.by_kind[0].params - model.params.by_kind[0].params == 25_165_824


def test_llama3_8b_compute() -> None:
    model = preset("llama3-8b")
    assert model.flops.matmul_per_token == 15_009_316_864
    assert model.flops.attention_per_token(131_072) == 68_719_476_736
    assert model.flops.crossover == 28_628


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("llama3-8b", 15_919_296_282_624),
        ("gpt2", 291_648_307_200),
        ("mixtral-8x7b", 26_658_862_006_272),
    ],
)
def test_forward_of_1024_tokens_over_all_pairs(name: str, count: int) -> None:
    assert preset(name).flops.prefill(1024, all_pairs=True) == count


def test_bf16_weights() -> None:
    assert preset("llama3-70b").memory.weight_bytes("bf16") == 141_107_412_992
    assert round(preset("mixtral-8x7b").memory.weight_bytes("bf16") / 1e9, 1) == 93.4


def test_active_parameters() -> None:
    assert preset("mixtral-8x7b").params.active == 12_879_925_248
    assert round(preset("deepseek-v3").params.active / 1e9, 2) == 37.55


def test_deepseek_v3_routing_correction() -> None:
    params = preset("deepseek-v3").params
    assert params.buffers == 58 * 256
    assert params.total + params.buffers == 671_026_419_200


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("llama3-8b", 131_072),
        ("qwen3-8b", 147_456),
        ("gemma2-9b", 344_064),
        ("deepseek-v3", 70_272),
    ],
)
def test_kv_bytes_of_the_first_token(name: str, count: int) -> None:
    assert preset(name).memory.kv_bytes_per_token() == count


def test_causal_links() -> None:
    assert flops.causal_links(6) == 21


@pytest.mark.parametrize(
    ("name", "count", "printed", "digits"),
    [
        ("transformer-big", 214_171_648, 213e6, -7),
        ("gpt3-175b", 174_604_259_328, 175e9, -9),
        ("palm-540b", 540_356_474_880, 540.35e9, -8),
        ("palm-62b", 62_495_662_080, 62.50e9, -7),
        ("palm-8b", 8_632_012_800, 8.63e9, -7),
        ("switch-base-128", 7_415_217_408, 7e9, -9),
        ("bert-base", 109_514_298, 110e6, -6),
    ],
)
def test_published_rounding(name: str, count: int, printed: float, digits: int) -> None:
    assert preset(name).params.total == count
    assert round(count, digits) == round(printed, digits)


def test_transformer_base_is_near_its_published_65_million() -> None:
    # Vaswani et al. print 65M; one shared table, FFN biases and no attention biases give 3% less.
    assert abs(preset("transformer-base").params.total - 65e6) / 65e6 < 0.031


def test_deepseek_v3_by_hand() -> None:
    d, heads, nope, rope, v, q, kv = 7168, 128, 128, 64, 128, 1536, 512
    attention = d * q + q + q * heads * (nope + rope) + d * (kv + rope) + kv
    attention += kv * heads * (nope + v) + heads * v * d
    dense, expert = 3 * d * 18432, 3 * d * 2048
    moe = 256 * d + 257 * expert
    total = 2 * 129280 * d + d + 61 * (attention + 2 * d) + 3 * dense + 58 * moe
    assert preset("deepseek-v3").params.total == total
    assert preset("deepseek-v3").params.active == total - 58 * 248 * expert


@pytest.mark.parametrize(
    ("name", "layers", "heads", "d"),
    [("palm-8b", 32, 16, 4096), ("palm-62b", 64, 32, 8192), ("palm-540b", 118, 48, 18432)],
)
def test_palm_by_hand(name: str, layers: int, heads: int, d: int) -> None:
    # one K and one V head of 256, three FFN matrices of 4 d, one norm a parallel layer
    layer = 2 * d * heads * 256 + 2 * d * 256 + 3 * d * 4 * d + d
    assert preset(name).params.total == 256_000 * d + layers * layer + d


def test_transformer_base_by_hand() -> None:
    d, ff = 512, 2048
    attention, ffn, norm = 4 * d * d, 2 * d * ff + ff + d, 2 * d
    encoder = attention + ffn + 2 * norm
    decoder = 2 * attention + ffn + 3 * norm
    assert preset("transformer-base").params.total == 37_000 * d + 6 * encoder + 6 * decoder


def test_gpt2_by_the_sizing_notebook_formula() -> None:
    # embedding and positions, 12 d^2 + 13 d a layer, the final norm
    for name, layers, d in (("gpt2", 12, 768), ("gpt2-xl", 48, 1600)):
        total = (50_257 + 1_024) * d + layers * (12 * d * d + 13 * d) + 2 * d
        assert preset(name).params.total == total
