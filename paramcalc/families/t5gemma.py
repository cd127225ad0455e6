"""T5Gemma (arXiv:2504.06225): two Gemma 2 stacks, of sizes of their own, joined by cross attention."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows
from paramcalc.families import gemma
from paramcalc.families.config import Config, stack
from paramcalc.families.names import LLAMA
from paramcalc.ledger import Tensor

_NORMS = ("pre_self_attn", "post_self_attn", "pre_feedforward", "post_feedforward")

NAMES = LLAMA | {
    "layers": "model.decoder.layers",
    "encoder.layers": "model.encoder.layers",
    "embedding": "model.decoder.embed_tokens",
    "final_norm": "model.decoder.norm",
    "encoder.final_norm": "model.encoder.norm",
    "head": "lm_head.out_proj",
    **{f"norm{i + 1}": f"{name}_layernorm" for i, name in enumerate(_NORMS)},
    "norm5": "pre_cross_attn_layernorm",
    "norm6": "post_cross_attn_layernorm",
    **{f"cross_attention.{x}": f"cross_attn.{x}_proj" for x in "qkvo"},
}

TYPES: dict[str, dict[str, Any]] = {
    "t5gemma": dict(tie_word_embeddings=True),
}


def read(c: Config) -> dict[str, Any]:
    """Each stack's embedding is its own; the head is too, whatever the config says of tying."""
    source, target = (c.sub(key, gemma.TYPES["gemma2"]) for key in ("encoder", "decoder"))
    c.keys |= {field: f"decoder.{key}" for field, key in target.keys.items()}
    width, vocab = source.hidden_size, source.vocab_size
    table = Tensor("model.encoder.embed_tokens.weight", "embedding", (vocab, width), "lookup")
    encoder = {"d_model": width, "norms_per_layer": 4, **_stack(source)}
    c.ignore("tie_word_embeddings", "vocab_size")
    return {
        **_stack(target),
        "d_model": target.hidden_size,
        "vocab_size": target.vocab_size,
        "context": target.max_position_embeddings,
        "gated_ffn": True,
        "norms_per_layer": 6,
        "tie_embeddings": _tied(c),
        "encoder": encoder,
        "outer": (Rows((table,)),),
    }


def _tied(c: Config) -> bool:
    return bool(c.tie_word_embeddings)


def _stack(c: Config) -> dict[str, Any]:
    """Gemma 2's layers, of one stack."""
    return {
        "n_layers": c.num_hidden_layers,
        "n_heads": c.num_attention_heads,
        "n_kv_heads": c.num_key_value_heads,
        "head_dim": c.head_dim,
        "d_ff": c.intermediate_size,
        "attention_bias": c.attention_bias,
        **stack(c.windows(lambda i: (i + 1) % 2 == 1)),
    }
