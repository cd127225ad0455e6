"""ProphetNet (arXiv:2001.04063): the decoder predicts several words ahead; each of its streams attends
anew, with relative positions made from the hidden state."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, Norm
from paramcalc.blocks.rows import Rows, idle
from paramcalc.families.bart import is_alone, tables
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor
from paramcalc.sight import Both

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
        relative_max_distance=128,
        disable_ngram_loss=False,
        eps=0.0,
        tie_word_embeddings=True,
    ),
}

_PARTS = {"q": "query_proj", "k": "key_proj", "v": "value_proj", "o": "out_proj"}


def NAMES(c: Config) -> Names:  # noqa: N802
    """One embedding for both stacks."""
    alone = is_alone(c)
    found = {
        "embedding": "prophetnet.word_embeddings",
        "layers": "prophetnet.decoder.layers",
        "encoder.layers": "prophetnet.encoder.layers",
        "head": "lm_head",
        "norm1": "self_attn_layer_norm",
        "norm2": "feed_forward_layer_norm" if alone else "cross_attn_layer_norm",
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
        found[f"{prefix}positions"] = f"prophetnet.{stack}.position_embeddings"
        found[f"{prefix}embedding_norm"] = f"prophetnet.{stack}.embeddings_layer_norm"
    return found


def read(c: Config) -> dict[str, Any]:
    """BART's layers, post-norm, with the streams' own rows in the decoder."""
    d, heads = c.hidden_size, c.num_decoder_attention_heads
    out = c.num_buckets * heads
    relative = (
        Tensor("attention.relative", "attention", (out, d)),
        Tensor("attention.relative.bias", "attention", (out,), "bias"),
    )
    streams = Tensor("prophetnet.decoder.ngram_embeddings.weight", "position", (c.ngram, d), "lookup")
    c.ignore("disable_ngram_loss", "relative_max_distance", "add_cross_attention", "eps")
    c.keys |= {"n_layers": "num_decoder_layers", "n_heads": "num_decoder_attention_heads"}
    fields: dict[str, Any] = {
        "n_layers": c.num_decoder_layers,
        "n_heads": heads,
        "d_ff": c.decoder_ffn_dim,
        "gpt2": True,
        "embedding_norm": True,
        "final_norm": False,
        "outer": (Rows((streams,)),),
        "blocks": (Rows(relative),),
    }
    stacks = ("decoder",) if is_alone(c) else ("encoder", "decoder")
    fields["outer"] += tables(c, *(f"prophetnet.{stack}.word_embeddings" for stack in stacks))
    if is_alone(c):
        cross = Attention("cross_attention", d, heads, heads, d // heads, d // heads, Both(), "qkvo")
        rows = (*cross.rows(), *Norm("cross_norm", (d,), True).rows())
        fields |= {"blocks": (Rows(relative), idle(rows)), "norms_per_layer": 2}
        c.ignore("num_encoder_layers", "num_encoder_attention_heads", "encoder_ffn_dim")
    else:
        fields["encoder"] = {
            "n_layers": c.num_encoder_layers,
            "n_heads": c.num_encoder_attention_heads,
            "d_ff": c.encoder_ffn_dim,
            "blocks": (),
        }
    return c.card(**fields)
