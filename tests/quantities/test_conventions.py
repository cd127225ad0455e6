"""FLOPs as other tools count them: their published figures, and their formulas by hand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import paramcalc
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.quantities import flops
from paramcalc.quantities.conventions import CONVENTIONS, count, find, hfu, mfu, variants
from paramcalc.sources import presets
from tests.conftest import preset

A100 = 312 * 10**12
GPT2 = {"attention_bias": False, "ffn_bias": False, "norm_bias": False}


def training(model: Model, name: str, n: int) -> int:
    work = count(model.ledger, n, name).training
    assert work is not None
    return work


def forward(model: Model, name: str, n: int) -> int:
    return count(model.ledger, n, name).forward


def gpt(layers: int, d: int, heads: int, vocab: int = 51_200) -> Model:
    """A GPT as Megatron's papers have them: tied, 4 d wide, 2,048 positions."""
    return paramcalc.load(
        {"d": d, "L": layers, "H": heads, "V": vocab, "d_ff": 4 * d, "context": 2048,
         "gpt2": True, "tie_embeddings": True, "n_positions": 2048}
    )  # fmt: skip


# Published figures


def test_gpt_oss_as_torchtitan_reports_it() -> None:
    model = preset("gpt-oss-120b")
    assert count(model.ledger, 4096, "torchtitan").training_per_token == 34_534_221_696
    whole = count(model.ledger, 4096, "torchtitan-full")
    assert whole.training_per_token == 38_044_854_144


def test_gpt2_in_nanogpt_s_sizing_notebook() -> None:
    model = preset("gpt2").with_(**GPT2)
    assert model.params.total == 124_337_664
    assert forward(model, "all-pairs", 1024) == 291_648_307_200
    assert training(model, "all-pairs", 1024) == 874_944_921_600
    assert training(model, "palm", 1024) == 875_062_886_400
    # the notebook's own PaLM cell keeps the position table in N
    assert training(model, "palm", 1024) + 6 * 1024 * 1024 * 768 == 879_894_724_608
    # 100 sequences in 0.755 s on one A100: "fraction of A100 used: 37.14%"
    speed = Fraction(100 * 1024 * 1000, 755)
    assert round(100 * mfu(model.ledger, 1024, speed, A100, "all-pairs"), 2) == Fraction("37.14")


def test_palm_540b_in_its_appendix_b() -> None:
    # 238.3K tokens a second on 6,144 TPU v4 of 275 TFLOP/s: 46.2%, and 45.7% without attention
    ledger, peak = preset("palm-540b").ledger, 6144 * 275 * 10**12
    assert round(100 * mfu(ledger, 2048, 238_300, peak, "palm"), 1) == Fraction("46.2")
    assert round(100 * mfu(ledger, 2048, 238_300, peak, "6n"), 1) == Fraction("45.7")


def test_megatron_turing_530b_in_palm_s_appendix_b() -> None:
    # 1,920 sequences of 2,048 in 60.1 s on 2,240 A100: 65.43K tokens a second; 30.2% and 29.7%
    ledger = gpt(105, 20_480, 128).ledger
    assert round(100 * mfu(ledger, 2048, 65_430, 2240 * A100, "palm"), 1) == Fraction("30.2")
    assert round(100 * mfu(ledger, 2048, 65_430, 2240 * A100, "6n"), 1) == Fraction("29.7")


@pytest.mark.parametrize(
    ("layers", "d", "heads", "batch", "gpus", "seconds", "percent"),
    [
        (48, 6144, 64, 4, 8, "1.10", "41.5"),
        (96, 12_288, 96, 64, 64, "13.75", "51.4"),
        (105, 20_480, 128, 280, 280, "37.83", "56.0"),
        (128, 25_600, 160, 512, 512, "71.49", "56.3"),
    ],
)
def test_mfu_of_korthikanti_s_table_5(
    layers: int, d: int, heads: int, batch: int, gpus: int, seconds: str, percent: str
) -> None:
    # arXiv:2205.05198; the time is printed to 0.01 s, which bounds the utilization
    ledger, tokens = gpt(layers, d, heads).ledger, batch * 2048
    slow, fast = (Fraction(seconds) + Fraction(sign, 200) for sign in (1, -1))
    low = mfu(ledger, 2048, tokens / slow, gpus * A100, "megatron-72")
    high = mfu(ledger, 2048, tokens / fast, gpus * A100, "megatron-72")
    assert 100 * low - Fraction(1, 20) <= Fraction(percent) <= 100 * high + Fraction(1, 20)


def test_gpt3_in_its_table_d1() -> None:
    # 174,600M parameters, 300B tokens, "3.14E+23" training FLOPs
    ledger = preset("gpt3-175b").ledger
    each = count(ledger, 2048, "6n").training_per_token
    assert each is not None
    assert f"{each * 300 * 10**9:.2e}" == "3.14e+23"


# Formulas by hand


def test_the_closed_forms_of_megatron_s_papers() -> None:
    h, layers, vocab, s = 25_600, 128, 51_200, 2048
    model = gpt(layers, h, 160)
    base = s * layers * h * h
    with_it = 96 * base * (1 + Fraction(s, 6 * h) + Fraction(vocab, 16 * layers * h))
    without = 72 * base * (1 + Fraction(s, 6 * h) + Fraction(vocab, 12 * layers * h))
    assert training(model, "megatron-96", s) == with_it
    assert training(model, "megatron-72", s) == without


@pytest.mark.parametrize("n", [1024, 4095])
def test_kaplan_by_hand(n: int) -> None:
    layers, d = 12, 768
    weights = 2 * d * layers * (2 * d + 4 * d)  # 2 d_model n_layer (2 d_attn + d_ff)
    assert weights == 84_934_656
    assert forward(preset("gpt2"), "kaplan", n) == n * (2 * weights + 2 * layers * n * d)
    assert training(preset("gpt2"), "kaplan", n) == n * 6 * weights


def test_six_n_by_hand() -> None:
    model = preset("mixtral-8x7b")
    assert training(model, "6n", 100) == 6 * 12_879_925_248 * 100
    assert training(model, "6n-total", 100) == 6 * 46_702_792_704 * 100
    assert forward(model, "6n", 100) == 2 * 12_879_925_248 * 100


def test_palm_by_hand() -> None:
    layers, heads, width, n = 32, 32, 128, 8192
    each = 6 * 8_030_261_248 + 12 * layers * heads * width * n
    assert training(preset("llama3-8b"), "palm", n) == each * n


def test_megatron_with_gqa_and_swiglu_by_hand() -> None:
    h, layers, heads, groups, width, ffn, vocab, s = 4096, 32, 32, 8, 128, 14_336, 128_256, 8191
    q, k = heads * width, groups * width
    attention = h * (q + 2 * k) + Fraction(q * s, 2) * 2 + q * h
    each = 3 * 2 * (layers * (h * ffn * 3 + attention) + h * vocab)
    assert training(preset("llama3-8b"), "megatron", s) == each * s


def test_megatron_with_experts_by_hand() -> None:
    h, layers, heads, groups, width, ffn, vocab, s = 4096, 32, 32, 8, 128, 14_336, 32_000, 4096
    q, k = heads * width, groups * width
    attention = h * (q + 2 * k) + q * s + q * h  # no window, no router
    each = 3 * 2 * (layers * (h * ffn * 2 * 3 + attention) + h * vocab)
    assert training(preset("mixtral-8x7b"), "megatron", s) == each * s


def test_megatron_with_latents_by_hand() -> None:
    h, layers, heads, vocab, s = 7168, 61, 128, 129_280, 4096
    q_rank, kv_rank, nope, rope, v = 1536, 512, 128, 64, 128
    attention = q_rank * (h + heads * (nope + rope) + 1)
    attention += kv_rank * (h + heads * (nope + v) + 1) + h * rope + heads * v * h
    attention += s * heads * (nope + rope) // 2 + s * heads * v // 2
    ffn = 3 * 18_432 * 3 + 58 * 2048 * 3 * (8 + 1)
    each = 3 * 2 * (h * ffn + layers * attention + h * vocab)
    assert training(preset("deepseek-v3"), "megatron", s) == each * s


def test_torchtitan_by_hand() -> None:
    # a tied table is the head's and counts; the earlier form drops it with the embedding
    tied, n = preset("gpt2"), 1024
    attention = 12 * 12 * 12 * 64 * n
    total = 124_439_808 - 1024 * 768
    assert training(tied, "torchtitan", n) == n * (6 * total + attention)
    earlier = n * (6 * (total - 50_257 * 768) + attention)
    assert training(tied, "torchtitan-full", n) == earlier
    untied = preset("llama3-8b")
    each = 6 * (8_030_261_248 - 128_256 * 4096) + 12 * 32 * 32 * 128 * 2048
    assert training(untied, "torchtitan", 2048) == each * 2048


def test_torchtitan_s_delta_rule_by_hand() -> None:
    # 6 (h (qk + v) n) for 12 layers, 6 x 3 H d_k d_v for 36, whatever the length
    model, n = paramcalc.load({"model_type": "qwen3_next"}), 4096
    attention = 12 * 6 * 16 * (256 + 256) * n + 36 * 6 * 3 * 32 * 128 * 128
    weights = model.params.active - 151_936 * 2048
    assert training(model, "torchtitan", n) == n * (6 * weights + attention)


def test_maxtext_by_hand() -> None:
    t = 8192
    h, layers, heads, groups, width, ffn, vocab = 4096, 32, 32, 8, 128, 14_336, 128_256
    qkv, out = 2 * t * h * (heads + 2 * groups) * width, 2 * t * h * heads * width
    mlp = 2 * t * ffn * h * 2 + 2 * t * ffn * h
    causal = 4 * t**2 * heads * width // 2
    total = 3 * (layers * (mlp + qkv + out + causal) + 2 * t * h * vocab)
    assert training(preset("llama3-8b"), "maxtext", t) == total


def test_maxtext_with_windows_and_experts_by_hand() -> None:
    t, w, h, layers, heads, groups, width, ffn, vocab = (
        4096,
        128,
        2880,
        36,
        64,
        8,
        64,
        2880,
        201_088,
    )
    qkv, out = 2 * t * h * (heads + 2 * groups) * width, 2 * t * h * heads * width
    moe = 2 * t * h * 128 + 4 * (2 * t * ffn * h * 2 + 2 * t * ffn * h)
    full, local = 2 * t**2 * heads * width, 4 * (t * w - w * w // 2) * heads * width
    total = layers * (moe + qkv + out) + 18 * full + 18 * local + 2 * t * h * vocab
    assert training(preset("gpt-oss-120b"), "maxtext", t) == 3 * total


def test_maxtext_with_chunks_by_hand() -> None:
    model, t, chunk = preset("llama4-scout"), 20_000, 8192
    heads, width, full, local = 40, 128, 12, 36
    squares = 2 * chunk**2 + (t - 2 * chunk) ** 2
    attention = 4 * heads * width * (full * t**2 + local * squares) // 2
    work = forward(model, "maxtext", t) - t * model.flops.matmul_per_token
    assert work == attention


def test_macs_are_half_the_framework_s_flops() -> None:
    # tests/golden: the framework's counter gives 15,919,296,282,624 FLOPs for 1,024 tokens
    assert forward(preset("llama3-8b"), "macs", 1024) == 15_919_296_282_624 // 2
    assert count(preset("llama3-8b").ledger, 1024, "macs").training is None


# Utilization


def test_hfu_repeats_layers_or_attention() -> None:
    model, n, speed, peak = gpt(2, 64, 4, 100), 128, 1000, 10**9
    layers, attention = 2 * 12 * 64 * 64, 2 * 2 * 64 * (n + 1)
    forward_each = 2 * layers + attention + 2 * 64 * 100
    for what, again in {"none": 0, "selective": attention, "full": 2 * layers + attention}.items():
        expected = Fraction(speed * (3 * forward_each + again), peak)
        assert model.flops.hfu(speed, peak, n, recomputation=what) == expected  # type: ignore[arg-type]
    assert model.flops.mfu(speed, peak, n) == Fraction(speed * 3 * forward_each, peak)


def test_without_recomputation_hfu_is_mfu() -> None:
    model = preset("llama3-8b")
    assert model.flops.hfu(1000, A100) == model.flops.mfu(1000, A100)
    assert hfu(model.ledger, 1024, 1000, A100) == mfu(model.ledger, 1024, 1000, A100)


def test_nothing_passes_the_peak() -> None:
    """Two layers of 12 d^2 matrices and a head of 100: what a peak of 10^9 does is a division."""
    model, n, peak = gpt(2, 64, 4, 100), 128, 10**9
    layers, attention, head = 2 * 12 * 64 * 64, 2 * 2 * 64 * (n + 1), 64 * 100
    each = 3 * (2 * layers + attention + 2 * head)
    most = peak // each
    assert model.flops.mfu(most, peak, n) <= 1
    for call in (model.flops.mfu, model.flops.hfu):
        with pytest.raises(InputError, match=f"FLOP/s does at most {most:,}; lower it"):
            call(most + 1, peak, n)
    less = peak // (each + 2 * layers + attention)
    with pytest.raises(InputError, match=f"does at most {less:,}; lower it"):
        model.flops.hfu(less + 1, peak, n, recomputation="full")
    with pytest.raises(InputError, match="does at most"):
        preset("llama3-8b").flops.mfu(10**12, 10**12)


def test_hfu_under_a_convention_is_the_published_closed_form() -> None:
    ledger = gpt(96, 12_288, 96).ledger
    twice = mfu(ledger, 2048, 1000, A100, "megatron-96")
    assert hfu(ledger, 2048, 1000, A100, "megatron-72", "full") == twice


def test_a_model_s_mfu_takes_a_convention() -> None:
    model = preset("palm-540b")
    peak = 6144 * 275 * 10**12
    same = mfu(model.ledger, 2048, 238_300, peak, "palm")
    assert model.flops.mfu(238_300, peak, 2048, convention="palm") == same


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"convention": "plam"}, r"convention = plam: unknown \(did you mean palm"),
        ({"convention": "macs"}, "convention = macs: counts no training; take one of exact"),
        ({"recomputation": "some"}, "recomputation = some: unknown; take one of none"),
        ({"convention": "megatron-96", "recomputation": "full"}, "holds a second forward pass"),
    ],
)
def test_bad_input(asked: dict[str, Any], says: str) -> None:
    with pytest.raises(InputError, match=says):
        preset("gpt2").flops.hfu(1000, A100, **asked)


# What holds for every rule


@pytest.mark.parametrize("name", CONVENTIONS)
def test_a_rule_counts_arrays_as_it_counts_ints(name: str) -> None:
    rule, lengths = find(name), np.array([1, 100, 128, 4096], dtype=np.int64)
    for model in (preset("gpt-oss-20b"), preset("llama4-scout"), preset("deepseek-v3.2")):
        column: Any = rule.forward(model.ledger, lengths)  # type: ignore[arg-type]
        assert list(column) == [rule.forward(model.ledger, int(n)) for n in lengths]


@pytest.mark.parametrize("name", presets.names())
def test_no_half_flop_is_lost(name: str) -> None:
    assert all(o.flops_per_pair % 2 == 0 for o in preset(name).ledger.operations)


def test_each_rule_says_what_it_is() -> None:
    for name, rule in CONVENTIONS.items():
        assert rule.name == name
        assert rule.source
        assert rule.counts
        assert rule.leaves_out
    assert variants("torchtitan") == ["torchtitan-full"]
    assert variants("megatron") == ["megatron-72", "megatron-96"]


def test_exact_is_the_package_s_own() -> None:
    ledger = preset("gemma2-9b").ledger
    found = count(ledger, 8192, "exact")
    assert (found.forward, found.training) == (
        flops.prefill(ledger, 8192),
        flops.training(ledger, 8192),
    )
    assert found.compared == found.exact


def test_a_mean_that_is_no_integer_is_not_rounded() -> None:
    found = count(preset("gpt-oss-20b").ledger, 1001, "maxtext")
    assert found.training_per_token is None
    assert found.forward_per_token is None
