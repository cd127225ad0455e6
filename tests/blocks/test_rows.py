"""What the blocks say of their rows beyond counts: shards, biases, sights, caches."""

from __future__ import annotations

from typing import Any

import pytest

import paramcalc
from paramcalc.ledger import Tensor
from tests.conftest import preset

CARD: dict[str, Any] = {"d_model": 64, "n_layers": 1, "n_heads": 4, "vocab_size": 10}
MLA = {"kv_lora_rank": 8, "qk_nope_head_dim": 6, "qk_rope_head_dim": 4, "v_head_dim": 5}


def rows(**fields: Any) -> dict[str, Tensor]:
    ledger = paramcalc.load({**CARD, **fields}).ledger
    return {t.name.removeprefix("layers.*."): t for t in ledger.tensors}


def test_shard_rules_of_a_layer_with_experts() -> None:
    found = {
        name: t.shard
        for name, t in rows(
            n_experts=4, top_k=2, n_shared_experts=1, gated_ffn=True, attention_bias=True,
            ffn_bias=True, sinks=True, qk_norm="head",
        ).items()
    }  # fmt: skip
    expected = dict.fromkeys(["attention.q", "ffn.shared.gate", "ffn.shared.up"], "column")
    expected |= dict.fromkeys(["attention.k", "attention.v"], "kv")
    expected |= {f"{name}.bias": shard for name, shard in expected.items()}
    expected |= {
        f"ffn.experts.*.{n}": "expert+column" for n in ("gate", "up", "gate.bias", "up.bias")
    }
    expected |= {"attention.o": "row", "ffn.shared.down": "row", "ffn.experts.*.down": "expert+row"}
    expected |= {"attention.sinks": "column", "embedding": "vocab", "head": "vocab"}
    expected |= {"ffn.experts.*.down.bias": "expert"}
    whole = ["attention.o.bias", "ffn.shared.down.bias", "ffn.router"]
    whole += ["attention.q_norm", "attention.k_norm", "norm1", "norm2", "final_norm"]
    expected |= dict.fromkeys(whole, "replicated")
    assert found == expected


def test_biases_of_latent_attention() -> None:
    plain, biased = rows(mla=MLA), rows(mla={**MLA, "q_lora_rank": 7}, attention_bias=True)
    assert not any(name.endswith("bias") for name in plain)
    assert biased["attention.q_down.bias"].shape == (7,)
    assert biased["attention.kv_down.bias"].shape == (12,)
    assert biased["attention.o.bias"].shape == (64,)
    only = rows(mla={**MLA, "q_lora_rank": 7}, attention_bias=["k"])
    assert [name for name in only if name.endswith("bias")] == ["attention.kv_down.bias"]


def test_an_encoder_sees_both_sides_of_its_window() -> None:
    model = paramcalc.load({**CARD, "causal": False, "window": 4, "context": 9})
    pairs = sum(abs(i - j) <= 2 for i in range(9) for j in range(9))
    assert model.flops.prefill(9) - 9 * model.flops.matmul_per_token == 4 * 64 * pairs
    assert model.flops.attention_per_token(9) == 4 * 64 * 5
    assert model.memory.kv_bytes(9) == 0


def test_latent_attention_in_an_encoder_sees_all_and_caches_nothing() -> None:
    model = paramcalc.load({**CARD, "causal": False, "mla": MLA, "context": 20})
    attention = model.flops.prefill(20) - 20 * model.flops.matmul_per_token
    assert attention == 2 * 4 * (6 + 4 + 5) * 400
    assert model.memory.kv_bytes(20) == 0


def test_cross_attention_without_an_encoder_of_its_own() -> None:
    model = paramcalc.load({**CARD, "cross_attention": True, "context": 5})
    extra = model.params.total - paramcalc.load(CARD).params.total
    assert extra == 4 * 64 * 64 + 64  # four matrices and a norm
    assert model.memory.kv_bytes(5) == 2 * paramcalc.load(CARD).memory.kv_bytes(5)


def test_norms_and_biases_of_their_own() -> None:
    base = {**CARD, "norm": "layer", "qk_norm": "head"}
    more = paramcalc.load({**base, "qk_norm_bias": True}).params.total
    assert more - paramcalc.load(base).params.total == 2 * 16
    experts = {"n_experts": 3, "top_k": 1, "ffn_bias": True, "n_shared_experts": 1}
    fewer = rows(**experts, expert_bias=False)
    assert "ffn.shared.up.bias" in fewer
    assert "ffn.experts.*.up.bias" not in fewer


def test_a_group_may_switch_an_outer_window_off() -> None:
    model = paramcalc.load(
        {**CARD, "n_layers": 2, "window": 3, "layers": [{"repeat": 1}, {"window": 0}]}
    )
    assert model.memory.kv_bytes(9) == 2 * 2 * 64 * (3 + 9)


def test_shared_gate_is_part_of_the_router() -> None:
    router = preset("qwen1.5-moe-a2.7b").params.by_component["router"]
    assert router == 24 * (60 + 1) * 2048


@pytest.mark.parametrize(
    ("n", "batch"), [(-5, 1), (1.5, 1), ("8", 1), (True, 1), (10, -3), (10, 0)]
)
def test_absurd_arguments_are_refused(n: Any, batch: Any) -> None:
    with pytest.raises(paramcalc.InputError, match="must be a whole number of at least"):
        preset("gpt2").memory.kv_bytes(n, batch=batch)
    if batch == 1:
        with pytest.raises(paramcalc.InputError, match="n = "):
            preset("gpt2").flops.prefill(n)
