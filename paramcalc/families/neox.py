"""GPT-NeoX (arXiv:2204.06745) and kin with one fused QKV matrix: Pythia, the Japanese NeoX, BLOOM
(arXiv:2211.05100), Persimmon and Fuyu (Adept 2023), MPT, Falcon (arXiv:2311.16867)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, vector
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor

TYPES: dict[str, dict[str, Any]] = {
    "gpt_neox": dict(
        vocab_size=50432,
        hidden_size=6144,
        num_hidden_layers=44,
        num_attention_heads=64,
        intermediate_size=24576,
        max_position_embeddings=2048,
        tie_word_embeddings=False,
        use_parallel_residual=True,
        attention_bias=True,
    ),
    "gpt_neox_japanese": dict(
        vocab_size=32000,
        hidden_size=2560,
        num_hidden_layers=32,
        num_attention_heads=32,
        intermediate_multiple_size=4,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
    ),
    "bloom": dict(
        vocab_size=250880,
        hidden_size=64,
        apply_residual_connection_post_layernorm=False,
        slow_but_exact=False,
        tie_word_embeddings=True,
        num_hidden_layers=2,
        num_attention_heads=8,
    ),
    "persimmon": dict(
        vocab_size=262144,
        hidden_size=4096,
        intermediate_size=16384,
        num_hidden_layers=36,
        num_attention_heads=64,
        max_position_embeddings=16384,
        tie_word_embeddings=False,
        qk_layernorm=True,
    ),
    "mpt": dict(
        expansion_ratio=4,
        vocab_size=50368,
        learned_pos_emb=True,
        attn_config=None,
        no_bias=True,
        tie_word_embeddings=True,
        num_attention_heads=16,
        hidden_size=2048,
        num_hidden_layers=24,
        max_position_embeddings=2048,
    ),
    "falcon": dict(
        vocab_size=65024,
        hidden_size=4544,
        num_hidden_layers=32,
        num_attention_heads=71,
        num_ln_in_parallel_attn=None,
        num_kv_heads=None,
        alibi=False,
        new_decoder_architecture=False,
        multi_query=True,
        parallel_attn=True,
        bias=False,
        max_position_embeddings=2048,
        ffn_hidden_size=None,
        tie_word_embeddings=True,
    ),
    "fuyu": dict(),
}

KEYS = {
    "hidden_size": ("d_model", "n_embed"),
    "num_hidden_layers": ("n_layer", "n_layers"),
    "num_attention_heads": ("n_head", "n_heads"),
    "max_position_embeddings": ("max_seq_len", "seq_length"),
    "num_kv_heads": ("n_head_kv",),
}


def _names(
    root: str, attention: str, embedding: str = "embed_in", final: str = "final_layer_norm"
) -> dict[str, str]:
    return {
        "layers": f"{root}.layers",
        "embedding": f"{root}.{embedding}",
        "final_norm": f"{root}.{final}",
        "head": "lm_head",
        "norm1": "input_layernorm",
        "norm2": "post_attention_layernorm",
        **{f"attention.{x}": f"{attention}.query_key_value" for x in "qkv"},
        "attention.o": f"{attention}.dense",
        "attention.q_norm": f"{attention}.q_layernorm",
        "attention.k_norm": f"{attention}.k_layernorm",
        "ffn.up": "mlp.dense_h_to_4h",
        "ffn.down": "mlp.dense_4h_to_h",
    }


_BLOOM = _names("transformer", "self_attention", "word_embeddings", "ln_f") | {
    "layers": "transformer.h",
    "embedding_norm": "transformer.word_embeddings_layernorm",
}
_FUYU = _names("model.language_model", "self_attn", "embed_tokens", "final_layernorm")
_OWN: dict[str, dict[str, str]] = {
    "gpt_neox": _names("gpt_neox", "attention"),
    "gpt_neox_japanese": _names("gpt_neox_japanese", "attention") | {"head": "embed_out"},
    "bloom": _BLOOM,
    "persimmon": _names("model", "self_attn", "embed_tokens", "final_layernorm"),
    "fuyu": _FUYU,
    "falcon": _BLOOM,
    "mpt": {
        "layers": "transformer.blocks",
        "embedding": "transformer.wte",
        "final_norm": "transformer.norm_f",
        "head": "lm_head",
        "norm1": "norm_1",
        "norm2": "norm_2",
        **{f"attention.{x}": "attn.Wqkv" for x in "qkv"},
        "attention.o": "attn.out_proj",
        "ffn.up": "ffn.up_proj",
        "ffn.down": "ffn.down_proj",
    },
}


def NAMES(c: Config) -> Names:
    """Falcon's newer models name the two norms before attention and network apart."""
    own = _OWN[c.model_type]
    if c.model_type == "falcon" and c.parallel_attn and _two_norms(c):
        return own | {"norm1": "ln_attn", "norm2": "ln_mlp"}
    return own


def read(c: Config) -> dict[str, Any]:
    """Each by its own function."""
    return READERS[c.model_type](c)


def gpt_neox(c: Config) -> dict[str, Any]:
    """GPT-NeoX: biases everywhere but on the head, rotary positions."""
    c.ignore("use_parallel_residual")  # two norms either way
    return c.card(gpt2=True, positions="none", attention_bias=c.attention_bias)


def japanese(c: Config) -> dict[str, Any]:
    """No biases but one, after attention in the last layer."""
    d, n = c.size("hidden_size"), c.size("num_hidden_layers")
    last = Rows((vector("attention.dense_bias", "attention", d),))
    layers = [{"blocks": (last,)}] if n == 1 else [{"repeat": n - 1}, {"blocks": (last,)}]
    return c.card(d_ff=d * c.size("intermediate_multiple_size"), norm="layer", layers=layers)


def bloom(c: Config) -> dict[str, Any]:
    """BLOOM: a norm after the embedding, ALiBi in place of positions, networks of 4 d."""
    c.ignore(
        "slow_but_exact",
        "masked_softmax_fusion",
        "apply_residual_connection_post_layernorm",
        "seq_length",
    )
    return c.card(d_ff=None, gpt2=True, positions="none", embedding_norm=True)


def persimmon(c: Config) -> dict[str, Any]:
    """Persimmon: biases everywhere, LayerNorm on the heads of Q and K."""
    norms = {"qk_norm": "head", "qk_norm_bias": True} if c.qk_layernorm else {}
    return c.card(gpt2=True, positions="none", **norms)


def fuyu(c: Config) -> dict[str, Any]:
    """Fuyu: Persimmon, and one matrix that turns an image's patches into tokens."""
    text = c.part("text_config", TYPES["persimmon"], model_type="persimmon", main=True)
    patch = c.size("patch_size", 30) ** 2 * c.size("num_channels", 3)
    d = text.size("hidden_size")
    c.ignore("image_size")
    rows = (
        Tensor("model.vision_embed_tokens.weight", "tower", (d, patch), stream="tower"),
        Tensor("model.vision_embed_tokens.bias", "tower", (d,), "bias", stream="tower"),
    )
    fields = persimmon(text) | {"outer": (Rows(rows),)}
    text.keys.pop("tie_embeddings", None)  # the outer config's to say
    return fields | {"tie_embeddings": bool(c.get("tie_word_embeddings", False))}


def mpt(c: Config) -> dict[str, Any]:
    """MPT: no biases, norms neither, ALiBi, networks of 4 d in the framework's class."""
    c.ignore("expansion_ratio", "learned_pos_emb", "attn_config", "no_bias", "init_config")
    return c.card(d_ff=4 * c.size("hidden_size"), norm="layer", norm_bias=False)


def _two_norms(c: Config) -> bool:
    stated = c.get("num_ln_in_parallel_attn")
    return bool(c.new_decoder_architecture if stated is None else stated == 2)


def falcon(c: Config) -> dict[str, Any]:
    """Falcon: attention and network side by side; one KV head, or several from 40B on."""
    if c.new_decoder_architecture:
        kv = c.get("num_kv_heads") or c.num_attention_heads
    else:
        kv = 1 if c.multi_query else None
    c.ignore("num_kv_heads", "alibi", "multi_query")
    return c.card(
        n_kv_heads=kv,
        d_ff=c.get("ffn_hidden_size") or 4 * c.size("hidden_size"),
        attention_bias=c.bias,
        ffn_bias=c.bias,
        norm="layer",
        norms_per_layer=2 if not c.parallel_attn or _two_norms(c) else 1,
    )


READERS = {
    "gpt_neox": gpt_neox,
    "gpt_neox_japanese": japanese,
    "bloom": bloom,
    "persimmon": persimmon,
    "fuyu": fuyu,
    "mpt": mpt,
    "falcon": falcon,
}
