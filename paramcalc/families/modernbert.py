"""Encoders built like decoders: ModernBERT (arXiv:2412.13663) and its decoder, EuroBERT
(arXiv:2503.05500), Nomic BERT (arXiv:2402.01613)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config, Layers, both, stack
from paramcalc.families.names import LLAMA, Names

TYPES: dict[str, dict[str, Any]] = {
    "modernbert": dict(
        vocab_size=50368,
        hidden_size=768,
        intermediate_size=1152,
        num_hidden_layers=22,
        num_attention_heads=12,
        max_position_embeddings=8192,
        initializer_cutoff_factor=2.0,
        norm_bias=False,
        attention_bias=False,
        local_attention=128,
        mlp_bias=False,
        decoder_bias=True,
        classifier_pooling="cls",
        classifier_bias=False,
        classifier_activation="gelu",
        deterministic_flash_attn=False,
        sparse_prediction=False,
        sparse_pred_ignore_index=-100,
        tie_word_embeddings=True,
    ),
    "modernbert-decoder": dict(
        vocab_size=50368,
        hidden_size=768,
        intermediate_size=1152,
        num_hidden_layers=22,
        num_attention_heads=12,
        max_position_embeddings=8192,
        initializer_cutoff_factor=2.0,
        norm_bias=False,
        attention_bias=False,
        mlp_bias=False,
        decoder_bias=True,
        classifier_bias=False,
        classifier_activation="gelu",
        local_attention=128,
        tie_word_embeddings=True,
    ),
    "eurobert": dict(
        vocab_size=128256,
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=None,
        max_position_embeddings=8192,
        tie_word_embeddings=False,
        attention_bias=False,
        mlp_bias=False,
        head_dim=None,
        classifier_pooling="late",
    ),
    "nomic_bert": dict(
        vocab_size=30528,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=2048,
        type_vocab_size=2,
        head_dim=None,
    ),
}

KEYS = {"norm_bias": ("layer_norm_bias",)}

_MODERN = {
    "layers": "model.layers",
    "embedding": "model.embeddings.tok_embeddings",
    "embedding_norm": "model.embeddings.norm",
    "final_norm": "model.final_norm",
    "norm1": "mlp_norm",
    "norm2": "attn_norm",
    **{f"attention.{x}": "attn.Wqkv" for x in "qkv"},
    "attention.o": "attn.Wo",
    "ffn.gate": "mlp.Wi",
    "ffn.up": "mlp.Wi",
    "ffn.down": "mlp.Wo",
    "head": "decoder",
    "head.bias": "decoder.bias",
    "head.dense": "head.dense",
    "head.norm": "head.norm",
}
_NOMIC = LLAMA | {
    "layers": "nomic_bert.layers",
    "embedding": "nomic_bert.embeddings.word_embeddings",
    "token_types": "nomic_bert.embeddings.token_type_embeddings",
    "embedding_norm": "nomic_bert.embeddings.LayerNorm",
    "norm1": "post_attention_layernorm",
    "norm2": "post_mlp_layernorm",
    "head": "cls.predictions.decoder",
    "head.bias": "cls.predictions.bias",
    "head.dense": "cls.predictions.transform.dense",
    "head.norm": "cls.predictions.transform.layer_norm",
}
_OWN: dict[str, dict[str, str]] = {
    "modernbert": _MODERN,
    "modernbert-decoder": _MODERN
    | {f"attention.{x}": f"attn.{x}_proj" for x in "qkv"}
    | {"head.dense": "lm_head.dense", "head.norm": "lm_head.norm"},
    "eurobert": LLAMA,
    "nomic_bert": _NOMIC,
}


def NAMES(c: Config) -> Names:
    """Each type's own."""
    return _OWN[c.model_type]


def read(c: Config) -> dict[str, Any]:
    """EuroBERT is Llama seeing both ways; Nomic is BERT with SwiGLU and rotary positions."""
    if c.model_type == "eurobert":
        return c.card(
            gated_ffn=True,
            attention_bias=c.attention_bias,
            ffn_bias=c.mlp_bias,
            head_bias=c.mlp_bias,
            causal=False,
        )
    if c.model_type == "nomic_bert":
        return c.card(
            gated_ffn=True,
            causal=False,
            norm="layer",
            embedding_norm=True,
            final_norm=False,
            n_token_types=c.get("type_vocab_size") or None,
            head="masked",
            head_bias=True,
            tie_embeddings=c.get("tie_word_embeddings", True),
            outer=(Rows((vector("cls.predictions.transform.dense.bias", "head", c.hidden_size),)),),
        )
    return modern(c)


def modern(c: Config) -> dict[str, Any]:
    """The first layer's attention follows the embedding's norm and has none of its own; two of
    three layers see ``local_attention`` positions, half on either side."""
    n, causal = c.num_hidden_layers, c.model_type == "modernbert-decoder"
    every, window = c.get("global_attn_every_n_layers", 3), c.local_attention
    if not isinstance(every, int) or every < 1:
        c.fail("global_attn_every_n_layers", every, "must be at least 1", "raise it")
    size = window // 2 if causal else window
    windows = c.windows(lambda i: i % every != 0, "local_attention")
    sized: Layers = [{"window": size} if layer else {} for layer in windows]
    first: Layers = [{"norms_per_layer": 1}, *({} for _ in range(n - 1))]
    rows = []
    if c.classifier_bias and not c.mlp_bias:
        own = "lm_head.dense.bias" if causal else "head.dense.bias"
        rows.append(vector(own, "head", c.hidden_size))
    c.ignore("classifier_pooling", "sliding_window", "deterministic_flash_attn")
    c.ignore(
        "sparse_prediction",
        "sparse_pred_ignore_index",
        "initializer_cutoff_factor",
        "classifier_activation",
    )
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        gated_ffn=True,
        causal=causal,
        norm="layer",
        norm_bias=c.norm_bias,
        embedding_norm=True,
        attention_bias=c.attention_bias,
        ffn_bias=c.mlp_bias,
        head="masked",
        head_bias=c.decoder_bias,
        outer=(Rows(tuple(rows)),) if rows else (),
        **stack(both(sized, first)),
    )
