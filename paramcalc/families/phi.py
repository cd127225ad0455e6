"""Phi 1 to 2 (arXiv:2306.11644): one norm before attention and network side by side, biases
everywhere, a head with a bias. Phi 3 and 4 (arXiv:2404.14219): Llama's layers, fused."""

from __future__ import annotations

from typing import Any

from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names

TYPES: dict[str, dict[str, Any]] = {
    "phi": dict(
        vocab_size=51200,
        hidden_size=2048,
        intermediate_size=8192,
        num_hidden_layers=24,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        qk_layernorm=False,
    ),
    "phi3": dict(
        vocab_size=32064,
        hidden_size=3072,
        intermediate_size=8192,
        num_hidden_layers=32,
        num_attention_heads=32,
        num_key_value_heads=None,
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        sliding_window=None,
    ),
}


def NAMES(c: Config) -> Names:
    """Phi 3 stores Q, K, V as one matrix, and gate and up as one."""
    if c.model_type == "phi":
        return LLAMA | {
            "attention.o": "self_attn.dense",
            "attention.q_norm": "self_attn.q_layernorm",
            "attention.k_norm": "self_attn.k_layernorm",
            "ffn.up": "mlp.fc1",
            "ffn.down": "mlp.fc2",
            "final_norm": "model.final_layernorm",
        }
    qkv, gate_up = "self_attn.qkv_proj", "mlp.gate_up_proj"
    fused = {"attention.q": qkv, "attention.k": qkv, "attention.v": qkv}
    return LLAMA | fused | {"ffn.gate": gate_up, "ffn.up": gate_up}


def read(c: Config) -> dict[str, Any]:
    """The two designs."""
    if c.model_type == "phi3":
        window = c.get("sliding_window", 0) or None
        return c.card(gated_ffn=True, window=window)
    width = c.get("head_dim", c.hidden_size // c.size("num_attention_heads"))
    if c.qk_layernorm and width * c.num_attention_heads != c.hidden_size:
        c.fail("head_dim", width, "norms of Q and K need hidden_size / num_attention_heads")
    norms = {"qk_norm": "head", "qk_norm_bias": True} if c.qk_layernorm else {}
    return c.card(
        attention_bias="qkvo",
        ffn_bias=True,
        norm="layer",
        norms_per_layer=1,
        head_bias=True,
        **norms,
    )
