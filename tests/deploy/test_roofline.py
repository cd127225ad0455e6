"""Bytes, FLOPs and times of a step against what the published shapes give by hand."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc import formats
from paramcalc.build import ledger_of, plan
from paramcalc.deploy import parallel, roofline
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.roofline import Machine, Step, Work
from paramcalc.model import Model
from paramcalc.symbolic import symbolic
from paramcalc.symbols import lift
from tests.conftest import HERE, preset

H100 = Machine(3_350_000, 989_400, 450_000)
ONE = Layout()
BF16 = formats.find("bf16")


def decode(
    model: Model,
    context: int,
    batch: int,
    layout: Layout = ONE,
    dtype: str = "bf16",
    stage: int = 0,
    source: int | None = None,
) -> Step:
    ledger = parallel.stages(model.ledger, layout)[stage]
    return roofline.decode(ledger, layout, H100, model.format(dtype), 16, context, batch, source)


# Llama 3.1 8B (its config.json): d 4,096, 32 layers, 32 heads and 8 of K, V, of 128, d_ff 14,336
D, LAYERS, FF, V = 4096, 32, 14336, 128_256
MATRICES = 2 * D * D + 2 * D * 1024 + 3 * D * FF
READ = LAYERS * (MATRICES + 2 * D) + D + V * D


@pytest.mark.parametrize("batch", [1, 64])
def test_llama_reads_all_but_its_embedding(batch: int) -> None:
    step = decode(preset("llama3.1-8b"), 1000, batch)
    # the published parameters without the embedding
    assert 8_030_261_248 - V * D == READ
    assert step.weights == 2 * READ
    assert step.cache == batch * 1000 * 2 * (LAYERS * 2 * 8 * 128)
    per_token = 2 * (LAYERS * MATRICES + V * D) + LAYERS * 4 * 1000 * 32 * 128
    assert step.work == batch * per_token
    assert step.memory == -(-(step.weights + step.cache) * 1000 // 2_680_000)  # 80% of 3.35 TB/s
    assert step.compute == -(-step.work // 593_640)  # 60% of 989.4 TFLOP/s
    assert step.exchange == 0
    assert step.time == max(step.memory, step.compute)


def test_a_rank_of_eight_holds_an_eighth() -> None:
    """Norms are on every rank; each has 4 heads, 1 of K and V, and 16,032 rows of the head."""
    layout = Layout(tp=8)
    step = decode(preset("llama3.1-8b"), 1000, 1, layout)
    rank = 2 * D * 512 + 2 * D * 128 + 3 * D * 1792
    assert step.weights == 2 * (LAYERS * (rank + 2 * D) + D + 16_032 * D)
    assert step.cache == 1000 * 2 * (LAYERS * 2 * 128)
    assert step.work == 2 * (LAYERS * rank + 16_032 * D) + LAYERS * 4 * 1000 * 4 * 128


def test_keys_and_values_are_copied_beyond_their_heads() -> None:
    step = decode(preset("llama3.1-8b"), 1000, 1, Layout(tp=16))
    rank = 2 * D * 256 + 2 * D * 128 + 3 * D * 896
    padded = -(-V // 64) * 64 // 16
    assert step.weights == 2 * (LAYERS * (rank + 2 * D) + D + padded * D)
    assert step.work == 2 * (LAYERS * rank + padded * D) + LAYERS * 4 * 1000 * 2 * 128


def test_the_last_stage_has_the_head() -> None:
    layout = Layout(pp=2)
    first, last = (decode(preset("llama3.1-8b"), 10, 1, layout, stage=i) for i in (0, 1))
    half = LAYERS // 2 * (MATRICES + 2 * D)
    assert (first.weights, last.weights) == (2 * half, 2 * (half + D + V * D))
    assert first.cache == last.cache == 10 * 2 * (LAYERS // 2 * 2 * 8 * 128)


def oss_120b(experts: int) -> int:
    """Bytes of gpt-oss-120b (its config.json) without the embedding, so many experts a layer read.

    An expert's matrices have 4 bits a weight and 8 for each 32; the rest has 16.
    """
    d, heads, kv, ff = 2880, 64 * 64, 8 * 64, 2880
    attention = 2 * d * heads + heads + 2 * (d * kv + kv) + d + 64
    router = 128 * d + 128
    expert = 3 * (d * ff // 2 + d * ff // 32) + 2 * (2 * ff + d)
    rest = 2 * (36 * (attention + router + 2 * d) + d + 201_088 * d)
    return rest + 36 * experts * expert


def test_gpt_oss_reads_the_experts_of_its_tokens() -> None:
    one = decode(preset("gpt-oss-120b"), 1000, 1, dtype="mxfp4")
    assert one.weights == oss_120b(4)
    # 1 - (31/32)^2 of 128 experts are 7.875
    two = decode(preset("gpt-oss-120b"), 1000, 2, dtype="mxfp4")
    assert 8 * two.weights == oss_120b(7) + 7 * oss_120b(8)
    many = decode(preset("gpt-oss-120b"), 1000, 4096, dtype="mxfp4")
    assert many.weights == oss_120b(128)
    # 18 layers see 128 positions, 18 see all: 2 x 8 x 64 elements each
    assert one.cache == 2 * 18 * (128 + 1000) * 2 * 8 * 64


def test_gpt_oss_computes_its_active_weights() -> None:
    step = decode(preset("gpt-oss-120b"), 1000, 1, dtype="mxfp4")
    attention = 2 * 2880 * 4096 + 2 * 2880 * 512
    active = 36 * (attention + 128 * 2880 + 4 * 3 * 2880 * 2880) + 201_088 * 2880
    assert step.work == 2 * active + 18 * (1000 + 128) * 4 * 4096
    assert 5.1e9 < active < 5.2e9  # the model card: 5.13 B active (arXiv:2508.10925)


DENSE_ROWS = 7168 * 1536 + 7168 * 576  # both down-projections of DeepSeek-V3's attention
HEAD_ROWS = 1536 * 128 * 192 + 512 * 128 * 256 + 128 * 128 * 7168
LATENT = 2 * 128 * (576 + 512)  # FLOPs a pair: 128 heads score 576 and sum 512 of a latent


def test_deepseek_reads_a_latent_and_8_of_256_experts() -> None:
    """The sizes of arXiv:2412.19437, section 4.2; decode absorbs the up-projections."""
    step = decode(preset("deepseek-v3"), 4096, 1, dtype="bf16")
    assert step.cache == 61 * 576 * 4096 * 2
    norms = 61 * (2 * 7168 + 1536 + 512) + 7168
    expert = 3 * 7168 * 2048
    ffn = 3 * 3 * 7168 * 18_432 + 58 * (256 * 7168 + 9 * expert)
    read = 61 * (DENSE_ROWS + HEAD_ROWS) + norms + ffn + 129_280 * 7168
    assert step.weights == 2 * read
    assert step.work == 2 * (read - norms) + 61 * 4096 * LATENT


def test_every_rank_reads_the_whole_latent() -> None:
    """tp 8 divides heads; the down-projections and the cache are on every rank."""
    step = decode(preset("deepseek-v3"), 4096, 1, Layout(tp=8))
    assert step.cache == 61 * 576 * 4096 * 2
    replicated = 61 * DENSE_ROWS + 58 * 256 * 7168
    ffn = 3 * 3 * 7168 * 18_432 + 58 * 9 * 3 * 7168 * 2048
    divided = 61 * HEAD_ROWS + ffn + 129_280 * 7168
    assert step.work == 2 * (replicated + divided // 8) + 61 * 4096 * LATENT // 8


def test_an_indexer_scores_on_every_rank() -> None:
    """DeepSeek-V3.2: 64 small heads of 128 score every position, attention sees 2,048."""
    model, n = preset("deepseek-v3.2"), 16_384
    one, eight = decode(model, n, 1), decode(model, n, 1, Layout(tp=8))
    assert one.cache == eight.cache == 61 * 2 * (2048 * 576 + n * 128)
    shorter = decode(model, n - 1, 1, Layout(tp=8))
    assert eight.work - shorter.work == 61 * (2 * 64 * 128 + 2 * 64)


def test_experts_over_data_parallel_ranks() -> None:
    """ep 8 x dp 8: a rank has 32 of 256 experts and sees the tokens of all eight."""
    model = preset("deepseek-v3")
    apart = decode(model, 100, 4, Layout(dp=8))
    spread = decode(model, 100, 4, Layout(dp=8, ep=8))
    expert = 2 * 3 * 7168 * 2048
    read_32, read_4 = (1 - (248 / 256) ** n for n in (32, 4))
    common = apart.weights - 58 * 256 * read_4 * expert
    assert spread.weights == pytest.approx(common + 58 * 32 * read_32 * expert, rel=1e-5)
    assert spread.work == apart.work
    # dispatch and combine: 8 vectors of 7,168 a token, 7 in 8 of them leave, in 58 layers
    sent = -(-4 * 8 * 7168 * 2 * 7 * 1000 // (8 * 450_000))
    assert spread.exchange == 58 * 2 * (sent + 10_000)
    assert apart.exchange == 0


def test_experts_over_tensor_parallel_ranks_are_summed_in_place() -> None:
    model = preset("deepseek-v3")
    assert (
        decode(model, 9, 4, Layout(tp=8, ep=8)).exchange
        == decode(model, 9, 4, Layout(tp=8)).exchange
    )


def test_windows_bound_what_is_read() -> None:
    """Gemma 3 12B: 40 of 48 layers see 1,024 positions; 8 heads of K and V of 256."""
    step = decode(preset("gemma3-12b"), 8192, 3)
    assert step.cache == 3 * 2 * (40 * 1024 + 8 * 8192) * 2 * 8 * 256


def test_a_tied_head_is_read_once() -> None:
    """Gemma 3 12B: the embedding is looked up, and read as the head: the published total."""
    assert decode(preset("gemma3-12b"), 10, 1).weights == 2 * (12_187_325_040 - 421_290_864)


def test_shared_layers_are_read_each_time_they_run() -> None:
    fields: dict[str, Any] = {"d": 64, "L": 6, "H": 4, "V": 100, "ff": 256, "n": 64}
    model = paramcalc.load({**fields, "share_layers": True, "tie": True})
    layer = 4 * 64 * 64 + 2 * 64 * 256
    step = decode(model, 10, 1)
    assert model.params.total == layer + 2 * 64 + 64 + 100 * 64
    assert step.weights == 2 * (6 * (layer + 2 * 64) + 64 + 100 * 64)
    assert step.work == 2 * (6 * layer + 100 * 64) + 6 * 4 * 10 * 64


def test_an_encoder_does_not_run_in_decode() -> None:
    """T5-small: cross attention has its keys and values already, and sees the source."""
    step = decode(preset("t5-small"), 20, 1, source=300)
    layer = 4 * 512 * 512 + 2 * 512 * 512 + 2 * 512 * 2048
    norms = 6 * 3 * 512 + 2 * 512  # with the encoder's last one
    assert step.weights == 2 * (6 * layer + norms + 32_128 * 512)
    assert step.cache == 2 * 6 * 2 * 512 * (20 + 300)
    assert step.work == 2 * (6 * layer + 32_128 * 512) + 6 * 4 * 512 * (20 + 300)


def test_an_encoder_reads_the_prompt() -> None:
    """The encoder and the cross keys and values on 300 tokens, then one token of the decoder."""
    model = preset("t5-small")
    step = roofline.prefill(model.ledger, ONE, H100, BF16, 16, 300)
    encoder = 6 * (4 * 512 * 512 + 2 * 512 * 2048) + 6 * 2 * 512 * 512
    work = 300 * 2 * encoder + 6 * 4 * 512 * 300 * 300
    assert step.work == work + decode(model, 1, 1, source=300).work


@pytest.mark.parametrize("prompts", [1, 5])
def test_prefill_has_the_head_at_the_last_token(prompts: int) -> None:
    ledger = preset("llama3.1-8b").ledger
    step = roofline.prefill(ledger, ONE, H100, BF16, 16, 1024, prompts)
    pairs = 1024 * 1025 // 2
    one = 1024 * 2 * LAYERS * MATRICES + 2 * V * D + LAYERS * pairs * 4 * 32 * 128
    assert step.work == prompts * one
    assert step.weights == 2 * READ
    assert step.cache == prompts * 1024 * 2 * LAYERS * 2 * 8 * 128  # written once


def test_prefill_attends_in_the_expanded_form() -> None:
    """DeepSeek-V3: 128 heads of 192 score and of 128 sum."""
    ledger = preset("deepseek-v3").ledger
    one, two = (roofline.prefill(ledger, ONE, H100, BF16, 16, n).work for n in (1, 2))
    head = 2 * 129_280 * 7168
    pair = 61 * 2 * 128 * (192 + 128)
    assert two - head == 2 * (one - head) + pair


def test_all_reduces_by_hand() -> None:
    """Two a layer and one for the embedding, 2 x 7 in 8 of 64 vectors each; logits gathered."""
    step = decode(preset("llama3.1-8b"), 100, 64, Layout(tp=8))
    vector = -(-2 * 7 * 64 * D * 2 * 1000 // (8 * 450_000))
    logits = -(-7 * 64 * V * 2 * 1000 // (8 * 450_000))
    assert step.exchange == 65 * (vector + 10_000) + logits + 10_000
    assert step.time == max(step.memory, step.compute) + step.exchange


def test_a_prompt_gathers_one_row_of_logits() -> None:
    ledger = preset("llama3.1-8b").ledger
    step = roofline.prefill(ledger, Layout(tp=2), H100, BF16, 16, 500)
    vector = -(-2 * 500 * D * 2 * 1000 // (2 * 450_000))
    logits = -(-V * 2 * 1000 // (2 * 450_000))
    assert step.exchange == 65 * (vector + 10_000) + logits + 10_000


def test_stages_hand_on_vectors() -> None:
    step = decode(preset("llama3.1-8b"), 100, 64, Layout(pp=2))
    assert step.exchange == -(-64 * D * 2 * 1000 // 450_000) + 10_000


def test_without_a_link_hops_alone() -> None:
    ledger, machine = preset("llama3.1-8b").ledger, H100._replace(link=None)
    step = roofline.decode(ledger, Layout(tp=2), machine, BF16, 16, 100, 64)
    assert step.exchange == 66 * 10_000
    still = roofline.decode(ledger, Layout(tp=2), machine._replace(hop=0), BF16, 16, 100, 64)
    assert still.exchange == 0


def test_quantized_matrices_have_a_peak_of_their_own() -> None:
    """FP8: matrices in layers at one rate; the head and attention in 16 bits at the other."""
    machine = Machine(100, 2_000, plain=1_000, flops_percent=50)
    assert machine.computing(Work(10_000, 10_000)) == 10 + 20
    model = preset("llama3.1-8b")
    step = roofline.decode(model.ledger, ONE, machine, model.format("fp8"), 16, 1000, 1)
    fast, plain = 2 * LAYERS * MATRICES, 2 * V * D + LAYERS * 4 * 1000 * 32 * 128
    assert step.work == fast + plain
    assert step.compute == -(-fast // 1_000) - (-plain // 500)


def test_a_file_type_of_llama_cpp_is_read_as_it_is_stored() -> None:
    """Q8_0 has 34 bytes for 32 weights; norms stay 32 bits, the embedding is looked up."""
    step = decode(preset("llama3.1-8b"), 1, 1, dtype="q8_0")
    matrices = LAYERS * MATRICES + V * D
    assert step.weights == matrices // 32 * 34 + 4 * (LAYERS * 2 * D + D)


@pytest.mark.parametrize("name", ["llama3.1-8b", "deepseek-v2-lite", "gemma3-4b", "gpt-oss-20b"])
def test_arrays_give_the_same_integers(name: str) -> None:
    model = preset(name)
    batch, n = np.array([[1], [7], [300]]), np.array([5, 4096, 70_000])
    layout = Layout(tp=2)
    fmt = model.format("fp8")
    steps = roofline.decode(model.ledger, layout, H100, fmt, 8, n, batch)  # type: ignore[arg-type]
    for i in range(3):
        for j in range(3):
            one = roofline.decode(model.ledger, layout, H100, fmt, 8, int(n[j]), int(batch[i, 0]))
            assert int(np.broadcast_to(steps.time, (3, 3))[i, j]) == one.time


@settings(deadline=None, max_examples=30)
@given(
    st.sampled_from(["llama3.1-8b", "deepseek-v3", "gpt-oss-120b", "gemma3-12b", "t5-small"]),
    st.integers(1, 200_000),
    st.integers(1, 5_000),
    st.sampled_from([Layout(), Layout(tp=2), Layout(tp=4)]),
)
def test_more_takes_no_less(name: str, context: int, batch: int, layout: Layout) -> None:
    step = decode(preset(name), context, batch, layout)
    longer, wider = (
        decode(preset(name), context + 1, batch, layout),
        decode(preset(name), context, batch + 1, layout),
    )
    for other in (longer, wider):
        assert other.time >= step.time
        assert other.weights >= step.weights
        assert other.cache >= step.cache
    whole = decode(preset(name), context, batch)
    assert step.weights * layout.tp >= whole.weights
    assert step.work * layout.tp >= whole.work


def test_every_type_of_file_computes_a_token_and_a_prompt() -> None:
    """One GPU computes what the model's own counts say, but for latents and encoders; many tokens
    read every weight that is not looked up once."""
    checked = 0
    for line in (HERE / "golden" / "types.jsonl").read_text(encoding="utf-8").splitlines():
        model = paramcalc.load(json.loads(line)["config"])
        ledger, spec = model.ledger, model.spec
        latent = any(cache.kind == "latent" for cache in ledger.caches)
        if not spec.causal or spec.encoder is not None or latent:
            continue
        checked += 1
        n = 700
        of = dict.fromkeys(("token", "source", "sequence"), 0)
        for t in ledger.tensors:
            of[t.stream] = of.get(t.stream, 0) + t.flops
        assert decode(model, n, 1).work == model.flops.per_token(n) - of["source"]
        head = sum(t.flops for t in ledger.tensors if t.role == "head" and t.stream == "token")
        prompt = roofline.prefill(ledger, ONE, H100, BF16, 16, n).work
        known = model.flops.prefill(n) - of["sequence"]
        assert prompt == known - (n - 1) * head - n * of["source"]
        read = sum(
            2 * t.elements * (t.copies if t.shard.startswith("expert") else t.runs)
            for t in ledger.tensors
            if t.use not in ("lookup", "buffer") and t.stream == "token" and t.runs
        )
        assert decode(model, n, 1 << 20).weights == read
    assert checked > 120


def test_a_kind_of_layers_that_a_shape_has_none_of() -> None:
    """Where sizes are symbols its rows stay, with no copies; nothing of them is read."""
    kinds = [{"n_experts": 0}, {}, {"window": 7}, {"gated_ffn": False}]
    card = {"d": 64, "L": 3, "H": 4, "V": 100, "context": 32, "n_experts": 4, "top_k": 2}
    model = paramcalc.load({**card, "layers": [{"repeat": 2}, {"pattern": kinds}]})
    spec, _ = symbolic(model.spec, 32)
    rows = ledger_of(plan(spec))
    assert any(lift(t.copies).value == 0 for t in rows.tensors)
    read = roofline.weights_read(rows, ONE, BF16, 3)
    assert lift(read).value == roofline.weights_read(model.ledger, ONE, BF16, 3) > 0
