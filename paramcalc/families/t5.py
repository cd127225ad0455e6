"""T5 (arXiv:1910.10683) and its kin: mT5, UMT5 (a table of relative positions in every layer), LongT5
(arXiv:2112.07916, an encoder that sees a window), Switch Transformers (arXiv:2101.03961)."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, scale
from paramcalc.families.bart import tables
from paramcalc.families.config import Config, Layers, stack
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor

TYPES: dict[str, dict[str, Any]] = {
    "t5": dict(
        vocab_size=32128,
        d_kv=64,
        num_layers=6,
        num_decoder_layers=None,
        num_heads=8,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
        feed_forward_proj="relu",
        hidden_size=512,
        intermediate_size=2048,
        tie_word_embeddings=True,
    ),
    "mt5": dict(
        vocab_size=250112,
        d_kv=64,
        num_layers=8,
        num_decoder_layers=None,
        num_heads=6,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
        feed_forward_proj="gated-gelu",
        tie_word_embeddings=True,
        hidden_size=512,
        intermediate_size=1024,
    ),
    "umt5": dict(
        vocab_size=250112,
        d_kv=64,
        num_layers=8,
        num_decoder_layers=None,
        num_heads=6,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
        feed_forward_proj="gated-gelu",
        hidden_size=512,
        intermediate_size=1024,
        tie_word_embeddings=True,
    ),
    "longt5": dict(
        vocab_size=32128,
        d_kv=64,
        num_layers=6,
        num_decoder_layers=None,
        num_heads=8,
        local_radius=127,
        global_block_size=16,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
        feed_forward_proj="relu",
        encoder_attention_type="local",
        tie_word_embeddings=True,
        hidden_size=512,
        intermediate_size=2048,
    ),
    "switch_transformers": dict(
        vocab_size=32128,
        d_kv=64,
        expert_capacity=64,
        num_layers=12,
        num_sparse_encoder_layers=3,
        num_decoder_layers=12,
        num_sparse_decoder_layers=3,
        num_heads=12,
        num_experts=8,
        router_bias=False,
        router_dtype="float32",
        router_ignore_padding_tokens=False,
        relative_attention_num_buckets=32,
        relative_attention_max_distance=128,
        dense_act_fn="relu",
        add_router_probs=False,
        tie_word_embeddings=True,
        hidden_size=768,
        intermediate_size=2048,
    ),
}

KEYS = {"hidden_size": ("d_model",), "intermediate_size": ("d_ff",)}


def NAMES(c: Config) -> Names:  # noqa: N802
    """A stack's layer is a list: attention first, the network last."""
    local = "SelfAttention"
    if c.model_type == "longt5":
        local = "LocalSelfAttention" if _local(c) else "TransientGlobalSelfAttention"
    sparse = c.model_type == "switch_transformers"
    found = {
        "layers": "decoder.block",
        "encoder.layers": "encoder.block",
        "embedding": "shared",
        "head": "lm_head",
        "final_norm": "decoder.final_layer_norm",
        "encoder.final_norm": "encoder.final_layer_norm",
        "relative_positions": "decoder.block.0.layer.0.SelfAttention.relative_attention_bias",
        "encoder.relative_positions": f"encoder.block.0.layer.0.{local}.relative_attention_bias",
        **{f"norm{i + 1}": f"layer.{i}.layer_norm" for i in range(3)},
        **{f"attention.{x}": f"layer.0.SelfAttention.{x}" for x in "qkvo"},
        **{f"encoder.attention.{x}": f"layer.0.{local}.{x}" for x in "qkvo"},
        **{f"cross_attention.{x}": f"layer.1.EncDecAttention.{x}" for x in "qkvo"},
    }
    up = "wi_1" if gated(c) else "wi"
    for prefix, place in (("", 2), ("encoder.", 1)):
        own = f"layer.{place}.{'mlp' if sparse else 'DenseReluDense'}"
        found |= {
            f"{prefix}ffn.gate": f"{own}.wi_0",
            f"{prefix}ffn.up": f"{own}.{up}",
            f"{prefix}ffn.down": f"{own}.wo",
            f"{prefix}ffn.router": f"{own}.router.classifier",
            f"{prefix}ffn.experts.*.up": f"{own}.experts.expert_{{e}}.wi",
            f"{prefix}ffn.experts.*.down": f"{own}.experts.expert_{{e}}.wo",
        }
    return found


def gated(c: Config) -> bool:
    """T5 v1.1 and later gate with GELU."""
    return str(c.get("feed_forward_proj", "relu")).startswith("gated")


def _local(c: Config) -> bool:
    words = {"local": True, "transient-global": False}
    return bool(c.choose("encoder_attention_type", c.encoder_attention_type, words))


def read(c: Config) -> dict[str, Any]:
    """Pre-norm with RMSNorm, no biases; each stack's first layer holds its relative positions."""
    n, decoders = c.num_layers, c.get("num_decoder_layers") or c.num_layers
    c.ignore("relative_attention_max_distance", "dense_act_fn", "is_gated_act", "expert_capacity")
    c.ignore("scale_decoder_outputs", "global_block_size", "local_radius", "n_positions")
    c.ignore("add_router_probs", "router_ignore_padding_tokens", "router_dtype")
    if c.arch.endswith("EncoderModel"):
        c.assumed.append("the decoder is counted too")
    encoder: dict[str, Any] = {"n_layers": n}
    fields: dict[str, Any] = {"gated_ffn": gated(c)}
    if c.model_type == "umt5":
        table = Tensor(
            "layer.0.SelfAttention.relative_attention_bias.weight",
            "position",
            (c.relative_attention_num_buckets, c.num_heads),
            "lookup",
        )
        fields["blocks"] = (Rows((table,)),)
    else:
        fields["relative_buckets"] = c.relative_attention_num_buckets
    if c.model_type == "longt5":
        encoder |= {"window": 2 * c.local_radius + 1, **_transient(c)}
    if c.model_type == "switch_transformers":
        fields |= {
            "n_experts": c.num_experts,
            "top_k": 1,
            "router_bias": c.router_bias,
            **stack(sparse(decoders, c.num_sparse_decoder_layers)),
        }
        encoder |= stack(sparse(n, c.num_sparse_encoder_layers))
        fields["outer"] = tables(c, "encoder.embed_tokens", "decoder.embed_tokens")
        c.ignore("encoder_sparse_step", "decoder_sparse_step")
    return c.card(
        n_layers=decoders,
        n_heads=c.num_heads,
        n_kv_heads=None,
        head_dim=c.d_kv,
        encoder=encoder,
        **fields,
    )


def sparse(n: int, wanted: int) -> Layers:
    """Every n / wanted-th layer has experts, from the second on; with none wanted the step is n,
    which still makes the second one sparse."""
    step = n // wanted if wanted > 0 else n
    flags = [(i % step == 1 or step == 1) if step > 0 else False for i in range(n)]
    return [{} if flag else {"n_experts": 0} for flag in flags]


def _transient(c: Config) -> dict[str, Any]:
    """Transient global tokens: a norm in every layer, and one table more in the first."""
    if _local(c):
        return {}
    own = "layer.0.TransientGlobalSelfAttention"
    norm = scale(f"{own}.global_input_layer_norm.weight", c.hidden_size)
    shape = (c.relative_attention_num_buckets, c.num_heads)
    table = Tensor(f"{own}.global_relative_attention_bias.weight", "position", shape, "lookup")
    first, rest = (Rows((norm, table)),), (Rows((norm,)),)
    return stack([{"blocks": first}] + [{"blocks": rest}] * (c.num_layers - 1))
