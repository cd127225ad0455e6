"""ProphetNet (arXiv:2001.04063): the decoder predicts several words ahead; each of its streams
attends anew, with relative positions made from the hidden state."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks.rows import Rows
from paramcalc.families.bart import is_alone, is_bare, root, tables, unfed
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor

TYPES: dict[str, dict[str, Any]] = {
    "prophetnet": dict(
        vocab_size=30522,
        hidden_size=1024,
        encoder_ffn_dim=4096,
        num_encoder_layers=12,
        num_encoder_attention_heads=16,
        decoder_ffn_dim=4096,
        num_decoder_layers=12,
        num_decoder_attention_heads=16,
        max_position_embeddings=512,
        add_cross_attention=True,
        ngram=2,
        num_buckets=32,
        tie_word_embeddings=True,
    ),
}

_PARTS = {"q": "query_proj", "k": "key_proj", "v": "value_proj", "o": "out_proj"}


def NAMES(c: Config) -> Names:
    """One embedding for both stacks."""
    own = root(c, "prophetnet")
    last = is_alone(c) or not c.add_cross_attention
    found = {
        "embedding": f"{own}word_embeddings",
        "layers": f"{own}decoder.layers",
        "encoder.layers": f"{own}encoder.layers",
        "head": "lm_head",
        "norm1": "self_attn_layer_norm",
        "norm2": "feed_forward_layer_norm" if last else "cross_attn_layer_norm",
        "encoder.norm2": "feed_forward_layer_norm",
        "norm3": "feed_forward_layer_norm",
        "cross_norm": "cross_attn_layer_norm",
        "ffn.up": "feed_forward.intermediate",
        "ffn.down": "feed_forward.output",
        "attention.relative": "self_attn.relative_pos_embeddings",
        **{f"attention.{x}": f"self_attn.{name}" for x, name in _PARTS.items()},
        **{f"cross_attention.{x}": f"cross_attn.{name}" for x, name in _PARTS.items()},
    }
    for prefix, stack in (("", "decoder"), ("encoder.", "encoder")):
        found[f"{prefix}positions"] = f"{own}{stack}.position_embeddings"
        found[f"{prefix}embedding_norm"] = f"{own}{stack}.embeddings_layer_norm"
    return found


def read(c: Config) -> dict[str, Any]:
    """BART's layers, post-norm, with the streams' own rows in the decoder."""
    d, crossing = c.hidden_size, c.add_cross_attention
    out = c.size("num_buckets") * c.size("num_decoder_attention_heads")
    relative = Rows(
        (
            Tensor("attention.relative", "attention", (out, d)),
            Tensor("attention.relative.bias", "attention", (out,), "bias"),
        )
    )
    own = root(c, "prophetnet")
    streams = (c.size("ngram"), d)
    extra = Rows((Tensor(f"{own}decoder.ngram_embeddings.weight", "position", streams, "lookup"),))
    c.ignore("disable_ngram_loss", "relative_max_distance", "eps", "num_hidden_layers")
    c.keys |= {"n_layers": "num_decoder_layers", "n_heads": "num_decoder_attention_heads"}
    c.keys |= {"d_ff": "decoder_ffn_dim"}
    fields: dict[str, Any] = {
        "n_layers": c.num_decoder_layers,
        "n_heads": c.num_decoder_attention_heads,
        "n_kv_heads": None,
        "head_dim": None,
        "d_ff": c.decoder_ffn_dim,
        "gpt2": True,
        "embedding_norm": True,
        "final_norm": False,
        "head": "none" if is_bare(c) else "lm",
        "outer": (extra, *tables(c, own, "word_embeddings")),
        "blocks": (relative,),
    }
    if is_alone(c):
        c.ignore("num_encoder_layers", "num_encoder_attention_heads", "encoder_ffn_dim")
        if crossing:
            idle = unfed(c, "qkvo", "num_decoder_attention_heads")
            fields |= {"blocks": (relative, idle), "norms_per_layer": 2}
        return c.card(**fields)
    encoder = {
        "n_layers": c.num_encoder_layers,
        "n_heads": c.num_encoder_attention_heads,
        "d_ff": c.encoder_ffn_dim,
        "blocks": (),
    }
    return c.card(**fields, encoder=encoder, cross_attention=crossing)
