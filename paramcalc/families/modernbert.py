"""Encoders built like today's decoders: ModernBERT (arXiv:2412.13663) and its causal twin,
Nomic BERT (arXiv:2402.01613), EuroBERT (arXiv:2503.05500).

Rotary positions and gated networks in all of them. ModernBERT's first layer goes without the norm
before its attention, and two layers of three see a window. Nomic BERT keeps BERT's norms after each
half and BERT's head; EuroBERT is a Llama that looks both ways, with no head but the matrix.
"""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Pooler
from paramcalc.blocks.rows import idle, vector
from paramcalc.families.bert import has_head, is_bare
from paramcalc.families.config import Config
from paramcalc.families.heads import pools
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import Layers, layers

_MODERN: dict[str, Any] = dict(
    vocab_size=50368,
    hidden_size=768,
    intermediate_size=1152,
    num_hidden_layers=22,
    num_attention_heads=12,
    max_position_embeddings=8192,
    norm_bias=False,
    attention_bias=False,
    mlp_bias=False,
    classifier_bias=False,
    decoder_bias=True,
    local_attention=128,
    global_attn_every_n_layers=3,
    layer_types=None,
    tie_word_embeddings=True,
)

TYPES: dict[str, dict[str, Any]] = {
    "modernbert": dict(_MODERN),
    "modernbert-decoder": dict(_MODERN),
    "nomic_bert": dict(
        vocab_size=30528,
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        max_position_embeddings=2048,
        type_vocab_size=2,
        head_dim=None,
        tie_word_embeddings=True,
    ),
    "eurobert": dict(
        vocab_size=128256,
        hidden_size=768,
        intermediate_size=3072,
        num_hidden_layers=12,
        num_attention_heads=12,
        num_key_value_heads=None,
        head_dim=None,
        max_position_embeddings=8192,
        attention_bias=False,
        mlp_bias=False,
        tie_word_embeddings=False,
    ),
}


def NAMES(c: Config) -> Names:
    """By type, under the root that a class without a head leaves out."""
    name = {"nomic_bert": "nomic_bert."}.get(c.model_type, "model.")
    at = "" if is_bare(c) else name
    found = LLAMA | {
        "layers": f"{at}layers",
        "embedding": f"{at}embed_tokens",
        "final_norm": f"{at}norm",
        "head.bias": "lm_head.bias",
    }
    if c.model_type == "eurobert":
        return found
    return found | (_nomic(c, at) if c.model_type == "nomic_bert" else _modern(c, at))


def _nomic(c: Config, at: str) -> dict[str, str]:
    own = "cls.predictions"
    return {
        "embedding": f"{at}embeddings.word_embeddings",
        "token_types": f"{at}embeddings.token_type_embeddings",
        "embedding_norm": f"{at}embeddings.LayerNorm",
        "norm1": "post_attention_layernorm",
        "norm2": "post_mlp_layernorm",
        "head.dense": f"{own}.transform.dense",
        "head.norm": f"{own}.transform.layer_norm",
        "head": f"{own}.decoder",
        "head.bias": f"{own}.bias" if c.tie_word_embeddings else f"{own}.decoder.bias",
    }


def _modern(c: Config, at: str) -> dict[str, str]:
    """The first layer's one norm is the network's: so that one comes first."""
    decoding = c.model_type == "modernbert-decoder"
    head = "lm_head" if decoding else "head"
    return {
        **{f"attention.{x}": f"attn.{x}_proj" if decoding else "attn.Wqkv" for x in "qkv"},
        "embedding": f"{at}embeddings.tok_embeddings",
        "embedding_norm": f"{at}embeddings.norm",
        "final_norm": f"{at}final_norm",
        "norm1": "mlp_norm",
        "norm2": "attn_norm",
        "attention.o": "attn.Wo",
        "ffn.gate": "mlp.Wi",
        "ffn.up": "mlp.Wi",
        "ffn.down": "mlp.Wo",
        "head.dense": f"{head}.dense",
        "head.norm": f"{head}.norm",
        "head": "decoder",
        "head.bias": "decoder.bias",
    }


def read(c: Config) -> dict[str, Any]:
    """What the types have in common, then each one's own."""
    c.strict = True
    own = {"nomic_bert": nomic, "eurobert": eurobert}.get(c.model_type, modern)
    fields = {"gated_ffn": True, "causal": False, **own(c)}
    if not has_head(c):
        pooler = (Pooler(c.hidden_size),) if pools(c.model_type, c.arch) else ()
        fields |= {"head": "none", "head_bias": False, "outer": pooler}
    return c.card(**fields)


def modern(c: Config) -> dict[str, Any]:
    """Windows in all layers but every third. The encoder's reaches half of ``local_attention`` to
    either side, the decoder's half of it back."""
    decoding = c.model_type == "modernbert-decoder"
    every = c.size("global_attn_every_n_layers")
    half = c.get("local_attention", 0) // 2
    if c.has("sliding_window") and not c.has("local_attention"):  # the class's name for the half
        half = c.get("sliding_window")
    each: Layers = [
        {"ffn_bias": c.mlp_bias}
        | ({"window": half if decoding else 2 * half} if kind and half else {})
        for kind in c.windows(lambda i: i % every > 0, "local_attention")
    ]
    if each:
        each[0]["norms_per_layer"] = 1
    c.ignore("sliding_window", "initializer_cutoff_factor", "sparse_pred_ignore_index")
    c.ignore("sparse_prediction", "deterministic_flash_attn")
    return {
        "causal": decoding,
        "n_kv_heads": None,
        "head_dim": None,
        "norm": "layer",
        "norm_bias": c.norm_bias,
        "embedding_norm": True,
        "attention_bias": c.attention_bias,
        "ffn_bias": c.classifier_bias,  # the head's dense layer; the layers state their own
        "head": "masked",
        "head_bias": c.decoder_bias,
        "layers": layers(each),
    }


def nomic(c: Config) -> dict[str, Any]:
    """Biases in the norms and in the head alone. Untied, the head has a second one, never added."""
    spare = idle([vector("cls.predictions.bias", "head", c.vocab_size)])
    return {
        "n_kv_heads": None,
        "norm": "layer",
        "embedding_norm": True,
        "final_norm": False,
        "n_token_types": c.type_vocab_size or None,
        "ffn_bias": True,  # the head's; the layers say otherwise
        "layers": [{"ffn_bias": False}],
        "head": "masked",
        "head_bias": True,
        "outer": () if c.tie_word_embeddings else (spare,),
    }


def eurobert(c: Config) -> dict[str, Any]:
    """Llama's biases by switch; the network's stands in the head as well."""
    return {"attention_bias": c.attention_bias, "ffn_bias": c.mlp_bias, "head_bias": c.mlp_bias}
