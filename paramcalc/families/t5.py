"""T5 (arXiv:1910.10683) and its kin: mT5, UMT5 (a table of relative positions in every layer),
LongT5 (arXiv:2112.07916, an encoder that sees a window), Switch Transformers (arXiv:2101.03961).

The head follows ``tie_word_embeddings``: T5 v1.1, Flan-T5 and mT5 keep one of their own.
"""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows, scale
from paramcalc.families.bart import tables
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.seq2seq import depth
from paramcalc.families.stacks import Layers, stack
from paramcalc.ledger import Operation, Tensor
from paramcalc.sight import BothCompressed

TYPES: dict[str, dict[str, Any]] = {
    "t5": dict(
        vocab_size=32128,
        d_kv=64,
        num_layers=6,
        num_decoder_layers=None,
        num_heads=8,
        relative_attention_num_buckets=32,
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
        feed_forward_proj="relu",
        encoder_attention_type="local",
        tie_word_embeddings=True,
        hidden_size=512,
        intermediate_size=2048,
    ),
    "switch_transformers": dict(
        vocab_size=32128,
        d_kv=64,
        num_layers=12,
        num_sparse_encoder_layers=3,
        num_decoder_layers=12,
        num_sparse_decoder_layers=3,
        num_heads=12,
        num_experts=8,
        router_bias=False,
        relative_attention_num_buckets=32,
        tie_word_embeddings=True,
        hidden_size=768,
        intermediate_size=2048,
    ),
}

KEYS = {
    "hidden_size": ("d_model",),
    "intermediate_size": ("d_ff",),
    "num_layers": ("num_hidden_layers",),
    "num_heads": ("num_attention_heads",),
    "d_kv": ("head_dim",),
}


def NAMES(c: Config) -> Names:
    """A stack's layer is a list: attention first, the network last."""
    local, sparse = "SelfAttention", c.model_type == "switch_transformers"
    if c.model_type == "longt5":
        local = "LocalSelfAttention" if _local(c) else "TransientGlobalSelfAttention"
    first = "block.0.layer.0"
    encoder = {
        "layers": "encoder.block",
        "final_norm": "encoder.final_layer_norm",
        "relative_positions": f"encoder.{first}.{local}.relative_attention_bias",
        **{f"attention.{x}": f"layer.0.{local}.{x}" for x in "qkvo"},
        **_network(c, "layer.1", sparse),
    }
    found = {
        "embedding": "shared",
        "head": "lm_head",
        **{f"norm{i + 1}": f"layer.{i}.layer_norm" for i in range(3)},
        **{f"cross_attention.{x}": f"layer.1.EncDecAttention.{x}" for x in "qkvo"},
        **{f"encoder.{name}": text for name, text in encoder.items()},
    }
    if _is_encoder(c):
        return found | encoder
    return found | {
        "layers": "decoder.block",
        "final_norm": "decoder.final_layer_norm",
        "relative_positions": f"decoder.{first}.SelfAttention.relative_attention_bias",
        **{f"attention.{x}": f"layer.0.SelfAttention.{x}" for x in "qkvo"},
        **_network(c, "layer.2", sparse),
    }


def _network(c: Config, place: str, sparse: bool) -> dict[str, str]:
    own = f"{place}.{'mlp' if sparse else 'DenseReluDense'}"
    return {
        "ffn.gate": f"{own}.wi_0",
        "ffn.up": f"{own}.{'wi_1' if gated(c) else 'wi'}",
        "ffn.down": f"{own}.wo",
        "ffn.router": f"{own}.router.classifier",
        "ffn.experts.*.up": f"{own}.experts.expert_{{e}}.wi",
        "ffn.experts.*.down": f"{own}.experts.expert_{{e}}.wo",
    }


def gated(c: Config) -> bool:
    """T5 v1.1 and later gate with GELU; Switch Transformers never do."""
    return str(c.get("feed_forward_proj", "relu")).split("-")[0] == "gated"


def _local(c: Config) -> bool:
    words = {"local": True, "transient-global": False}
    return bool(c.choose("encoder_attention_type", c.encoder_attention_type, words))


def _is_encoder(c: Config) -> bool:
    """Whether the class is the encoder alone, as the one that labels tokens is."""
    return c.arch.endswith(("EncoderModel", "ForTokenClassification"))


def read(c: Config) -> dict[str, Any]:
    """Pre-norm with RMSNorm, no biases; each stack's first layer holds its relative positions."""
    c.ignore("relative_attention_max_distance", "dense_act_fn", "is_gated_act", "expert_capacity")
    c.ignore("scale_decoder_outputs", "global_block_size", "local_radius", "n_positions")
    c.ignore("add_router_probs", "router_ignore_padding_tokens", "router_dtype")
    c.ignore("encoder_sparse_step", "decoder_sparse_step")
    n = depth(c, "num_layers")
    decoders = n if c.num_decoder_layers is None else depth(c, "num_decoder_layers")
    c.keys |= {"n_layers": "num_decoder_layers", "n_heads": "num_heads", "head_dim": "d_kv"}
    fields: dict[str, Any] = {
        "n_layers": decoders,
        "n_heads": c.num_heads,
        "n_kv_heads": None,
        "head_dim": c.d_kv,
        "gated_ffn": gated(c) and c.model_type != "switch_transformers",
        "head": "none" if c.arch.endswith("Model") else "lm",
    }
    encoder: dict[str, Any] = {"n_layers": n}
    buckets = (c.size("relative_attention_num_buckets"), c.size("num_heads"))
    if c.model_type == "umt5":
        name = "layer.0.SelfAttention.relative_attention_bias.weight"
        fields["blocks"] = (Rows((Tensor(name, "position", buckets, "lookup"),)),)
    else:
        fields["relative_buckets"] = buckets[0]
    if c.model_type == "longt5":
        encoder |= {"window": 2 * c.size("local_radius") + 1, **_transient(c, n, buckets)}
    if c.model_type == "switch_transformers":
        experts = {"n_experts": c.num_experts}
        fields |= {"top_k": 1, "router_bias": c.router_bias}
        fields |= experts | stack(sparse(decoders, c.num_sparse_decoder_layers))
        encoder |= experts | stack(sparse(n, c.num_sparse_encoder_layers))
        fields["outer"] = _copies(c)
    if _is_encoder(c):
        c.keys["n_layers"] = "num_layers"
        c.ignore("tie_word_embeddings")
        fields.pop("layers", None)
        return c.card(**fields | encoder, causal=False)
    return c.card(**fields, encoder=encoder)


def _copies(c: Config) -> tuple[Rows, ...]:
    """Each stack's own copy of the embedding, which an untied Switch Transformer keeps."""
    copies = tables(c, "")
    if copies and _is_encoder(c):
        return (Rows(copies[0].items[:1]),)
    return copies


def sparse(n: int, wanted: int) -> Layers:
    """Every n / wanted-th layer has experts, from the second on; with none wanted the step is n,
    which still makes the second one sparse."""
    step = n // wanted if wanted > 0 else n
    flags = [(i % step == 1 or step == 1) if step > 0 else False for i in range(n)]
    return [{} if flag else {"n_experts": 0} for flag in flags]


def _transient(c: Config, n: int, buckets: tuple[int, int]) -> dict[str, Any]:
    """Transient global tokens, the sums of whole blocks, which every token sees besides its window:
    a norm for them in every layer, and one table more in the first."""
    if _local(c):
        return {}
    own = "layer.0.TransientGlobalSelfAttention"
    norm = scale(f"{own}.global_input_layer_norm.weight", c.hidden_size)
    table = f"{own}.global_relative_attention_bias.weight"
    seen = BothCompressed(c.size("global_block_size"))
    work = [
        Operation(f"attention.global.{part}", "attention", 2 * c.size("num_heads") * c.d_kv, seen)
        for part in ("scores", "values")
    ]
    rest = Rows((norm, *work))
    first = Rows((norm, Tensor(table, "position", buckets, "lookup"), *work))
    return stack([{"blocks": (first,)}] + [{"blocks": (rest,)}] * (n - 1))
