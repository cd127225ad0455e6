"""What one rank holds, against the shapes of the configurations written out by hand."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import paramcalc
from paramcalc.deploy import parallel
from paramcalc.deploy.parallel import Layout, partition
from paramcalc.errors import InputError
from paramcalc.ledger import Ledger
from paramcalc.model import Model
from paramcalc.quantities import memory, params
from tests.conftest import preset
from tests.strategies import specs


def ranks(model: Model, layout: Layout) -> list[Ledger]:
    """One rank of each stage."""
    parallel.check(model.ledger, layout)
    return [parallel.sharded(s, layout) for s in parallel.stages(model.ledger, layout)]


def one(name: str, **sizes: int) -> Ledger:
    (rank,) = ranks(preset(name), Layout(**sizes))
    return rank


def llama70b(tp: int) -> int:
    """80 layers of 8,192; 64 heads and 8 of K and V, of 128; d_ff 28,672; 128,256 tokens."""
    d, kv_heads = 8192, max(1, 8 // tp)
    attention = 2 * (64 // tp * 128) * d + 2 * kv_heads * 128 * d
    layer = attention + 3 * (28_672 // tp) * d + 2 * d
    return 2 * (128_256 // tp) * d + 80 * layer + d


def test_llama_over_a_node() -> None:
    assert params.total(one("llama3-70b")) == llama70b(1) == 70_553_706_496  # as published
    assert params.total(one("llama3-70b", tp=8)) == llama70b(8)
    cache = memory.kv_bytes(one("llama3-70b", tp=8), 1, 1, 16)
    assert cache == 80 * 2 * 1 * 128 * 2


def test_heads_of_k_and_v_are_copied_beyond_their_number() -> None:
    """16 ranks, 8 heads: each rank has one, so two have the same."""
    rank = one("llama3-70b", tp=16)
    assert params.total(rank) == llama70b(16)
    assert memory.kv_bytes(rank, 1, 1, 16) == 80 * 2 * 1 * 128 * 2


def gpt_oss(tp: int, ep: int) -> int:
    """36 layers of 2,880; 64 heads and 8 of K and V, of 64; 128 experts of 2,880; biases."""
    d, q, kv = 2880, 64 // tp * 64, 8 // tp * 64
    attention = (q * d + q) + 2 * (kv * d + kv) + (d * q + d) + 64 // tp
    router = 128 * d + 128
    experts = 128 // ep
    part = d // tp if ep == 1 else d  # whole experts, or a part of each
    expert = 2 * (part * d + part) + (d * part + d)
    return 2 * (201_088 // tp) * d + 36 * (attention + router + experts * expert + 2 * d) + d


@pytest.mark.parametrize(("tp", "ep"), [(1, 1), (4, 1), (8, 8)])
def test_gpt_oss(tp: int, ep: int) -> None:
    assert gpt_oss(1, 1) == 116_829_156_672  # as published
    assert params.total(one("gpt-oss-120b", tp=tp, ep=ep)) == gpt_oss(tp, ep)


def test_experts_over_data_parallel_ranks() -> None:
    """tp 1, dp 8, ep 8: attention whole on each, 16 of the 128 experts."""
    d, q, kv = 2880, 4096, 512
    attention = (q * d + q) + 2 * (kv * d + kv) + (d * q + d) + 64
    expert = 3 * d * d + 3 * d
    layer = attention + 128 * d + 128 + 16 * expert + 2 * d
    rank = one("gpt-oss-120b", dp=8, ep=8)
    assert params.total(rank) == 2 * 201_088 * d + 36 * layer + d


def test_each_expert_may_be_split_too() -> None:
    """ep 4 x etp 2 on 8 GPUs: 32 experts, half of each."""
    d = 2880
    rank = one("gpt-oss-120b", tp=8, ep=4, etp=2)
    whole = one("gpt-oss-120b", tp=8, ep=8)
    half = 36 * 32 * (3 * d * d // 2 + d + d)
    assert params.total(rank) - params.total(whole) == half - 36 * 16 * (3 * d * d + 3 * d)


def test_deepseek_keeps_its_latents_whole() -> None:
    """61 layers of 7,168, 3 of them dense; MLA down projections and latents are on every rank."""
    d, heads = 7168, 128 // 8
    down = 1536 * d + 1536 + (512 + 64) * d + 512
    up = heads * (128 + 64) * 1536 + heads * (128 + 128) * 512 + d * heads * 128
    dense = 3 * d * 18_432 // 8
    moe = 256 * d + 256 // 8 * 3 * d * 2048 + 3 * d * 2048 // 8
    layers = 61 * (down + up + 2 * d) + 3 * dense + 58 * moe
    rank = one("deepseek-v3", tp=8, ep=8)
    assert params.total(rank) == 2 * (129_280 // 8) * d + layers + d
    assert memory.kv_bytes(rank, 1, 1, 16) == 61 * (512 + 64) * 2 == 70_272


def test_a_tied_head_is_copied_to_the_last_stage() -> None:
    """Gemma 2 9B: 42 layers of 3,584, 16 heads and 8, of 256, d_ff 14,336, 256,000 tokens."""
    d = 3584
    layer = 2 * 16 * 256 * d + 2 * 8 * 256 * d + 3 * 14_336 * d + 4 * d
    first, last = ranks(preset("gemma2-9b"), Layout(pp=2))
    assert params.total(first) == 256_000 * d + 21 * layer
    assert params.total(last) == 256_000 * d + 21 * layer + d
    whole = preset("gemma2-9b").params.total
    assert params.total(first) + params.total(last) == whole + 256_000 * d
    # windows and full attention take turns, and each stage has its own
    assert [c.copies for c in first.caches] == [11, 10]
    assert [c.copies for c in last.caches] == [10, 11]


def test_the_vocabulary_is_padded() -> None:
    """GPT-2's 50,257 become 50,304, a multiple of 64, where ranks share them."""
    rows = {t.name: t.shape for t in one("gpt2", tp=2).tensors}
    assert rows["embedding"] == (50_304 // 2, 768)
    assert rows["positions"] == (1024, 768)
    assert {t.name: t.shape for t in one("gpt2").tensors}["embedding"] == (50_257, 768)


@pytest.mark.parametrize(
    ("layers", "parts"),
    [
        # vLLM's tests/distributed/test_pipeline_partition.py
        (2, [1, 1]),
        (3, [2, 1]),
        (3, [1, 1, 1]),
        (4, [1, 2, 1]),
        (5, [2, 2, 1]),
        # its rule by hand: one more for each stage before the last, from the back
        (80, [27, 27, 26]),
        (61, [15, 15, 16, 15]),
    ],
)
def test_partition(layers: int, parts: list[int]) -> None:
    assert partition(layers, len(parts)) == parts


def test_dense_layers_first() -> None:
    """DeepSeek-V3 over 4 stages: 15, 15, 16, 15 layers; the 3 dense ones are on the first."""
    stages = ranks(preset("deepseek-v3"), Layout(pp=4))
    kinds = [{kind.label: kind.n_layers for kind in stage.layers} for stage in stages]
    assert kinds == [{"dense": 3, "moe": 12}, {"moe": 15}, {"moe": 16}, {"moe": 15}]
    assert sum(params.total(stage) for stage in stages) == 671_026_404_352


def test_encoder_first() -> None:
    """T5 small: 6 layers of 512 each way, a relative table of 32 x 8 each, one vocabulary."""
    d, ff, table = 512, 2048, 32_128 * 512
    encoder = 6 * (4 * d * d + 2 * d * ff + 2 * d) + d
    decoder = 6 * (8 * d * d + 2 * d * ff + 3 * d) + d
    first, last = ranks(preset("t5-small"), Layout(pp=2))
    assert params.total(first) == table + encoder + 2 * 32 * 8
    assert params.total(last) == table + decoder
    assert not first.caches
    assert memory.kv_bytes(last, 10, 1, 16) == 6 * 2 * (2 * d) * 10 * 2  # its own, and crossed


def test_shared_layers_are_on_every_stage() -> None:
    """ALBERT stores one layer, so that two stages store it twice."""
    first, last = ranks(preset("albert-base"), Layout(pp=2))
    whole = preset("albert-base")
    stored = params.total(first) + params.total(last) - whole.params.total
    (kind,) = whole.ledger.layers
    layer = sum(t.elements for t in kind.rows if isinstance(t, paramcalc.Tensor))
    tied = 30_000 * 128
    assert stored == layer + tied


@pytest.mark.parametrize(
    ("name", "sizes", "says"),
    [
        ("llama3-8b", {"tp": 3}, "tp = 3: must divide the 32 heads of attention.q; lower it"),
        ("gpt2", {"tp": 8}, "tp = 8: must divide the 12 heads of attention.q; lower it"),
        ("llama3-8b", {"pp": 33}, "pp = 33: there are 32 layers, and a stage needs one; lower it"),
        ("llama3-8b", {"ep": 2}, "ep = 2: the model has no experts; leave it out"),
        (
            "mixtral-8x7b",
            {"ep": 8},
            "ep = 8: with etp = 1 must divide the GPUs of a stage, tp x dp x cp = 1; lower it or"
            " raise dp",
        ),
        (
            "mixtral-8x7b",
            {"ep": 3, "dp": 3},
            "ep = 3: must divide the 8 experts of ffn.experts.*.gate; lower it",
        ),
        (
            "gpt-oss-20b",
            {"tp": 8, "ep": 1, "etp": 7},
            "ep = 1: with etp = 7 must divide the GPUs of a stage, tp x dp x cp = 8; lower it or"
            " raise dp",
        ),
        ("llama3-8b", {"tp": 0}, "tp = 0: must be a whole number of at least 1; raise it"),
        ("llama3-8b", {"dp": -1}, "dp = -1: must be a whole number of at least 1; raise it"),
    ],
)
def test_what_cannot_be_shared_out(name: str, sizes: dict[str, int], says: str) -> None:
    with pytest.raises(InputError, match=f"^{re.escape(says)}$"):
        parallel.check(preset(name).ledger, Layout(**sizes))


@settings(max_examples=150, deadline=None)
@given(specs(), st.integers(1, 8), st.integers(1, 6))
def test_ranks_hold_the_model_between_them(fields: dict[str, Any], tp: int, pp: int) -> None:
    model = Model(paramcalc.ModelSpec.model_validate(fields))
    layout = Layout(tp=tp, pp=pp)
    try:
        parallel.check(model.ledger, layout)
    except InputError:
        return
    held = tp * sum(params.total(rank) for rank in ranks(model, layout))
    assert held >= model.params.total
    kept = tp * sum(memory.kv_bytes(rank, 9, 1, 16) for rank in ranks(model, layout))
    assert kept >= model.memory.kv_bytes(9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(1, 6), st.integers(1, 5))
def test_nothing_is_copied_but_norms_where_all_divides(tp: int, layers: int, width: int) -> None:
    """Over tp ranks: the whole, and tp - 1 more of each norm; over stages: the whole."""
    d = 64 * tp * width
    fields = {"d_model": d, "n_layers": layers, "n_heads": 4 * tp, "n_kv_heads": 2 * tp}
    fields |= {"vocab_size": 64 * tp, "tie_embeddings": False}
    model = Model(paramcalc.ModelSpec.model_validate(fields))
    (rank,) = ranks(model, Layout(tp=tp))
    assert tp * params.total(rank) == model.params.total + (tp - 1) * (2 * layers + 1) * d
    assert tp * memory.kv_bytes(rank, 7, 3, 16) == model.memory.kv_bytes(7, batch=3)
    stages = ranks(model, Layout(pp=layers))
    assert sum(params.total(stage) for stage in stages) == model.params.total
    kept = sum(memory.kv_bytes(stage, 7, 3, 16) for stage in stages)
    assert kept == model.memory.kv_bytes(7, batch=3)


def test_stages_that_hold_the_same_layers_share_their_rows() -> None:
    """Llama 3 8B over 8 stages: the first, the last, and six alike, each with layers of its own."""
    found = parallel.stages(paramcalc.load("llama3-8b").ledger, Layout(pp=8))
    assert len({id(stage.rows) for stage in found}) == 3
    assert [stage.layers[0].ranges for stage in found] == [
        ((4 * i, 4 * i + 4, 1),) for i in range(8)
    ]


def test_a_dense_model_has_no_expert_to_split() -> None:
    with pytest.raises(InputError, match="etp = 2: the model has no experts; leave it out"):
        parallel.check(paramcalc.load("llama3-8b").ledger, Layout(tp=2, etp=2))
