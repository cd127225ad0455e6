"""T5Gemma 2 (arXiv:2512.14856): two Gemma 3 stacks. The decoder's attention looks at its own tokens
and the encoder's side by side with the same matrices, and one table of tokens serves both stacks
and the head. The encoder sees images as Gemma 3 does."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.families import gemma
from paramcalc.families.config import Config
from paramcalc.families.gemma3 import eyes
from paramcalc.families.names import LLAMA
from paramcalc.families.stacks import Layers, layers
from paramcalc.ledger import Cache, Operation, Tensor
from paramcalc.sight import Both

NAMES = LLAMA | {
    "layers": "model.decoder.layers",
    "encoder.layers": "model.encoder.text_model.layers",
    "embedding": "model.encoder.text_model.embed_tokens",
    "embedding.end_of_image": "model.encoder.text_model.embed_tokens.eoi_embedding !",
    "decoder.embedding": "model.decoder.embed_tokens",
    "decoder.embedding.end_of_image": "model.decoder.embed_tokens.eoi_embedding !",
    "final_norm": "model.decoder.norm",
    "encoder.final_norm": "model.encoder.text_model.norm",
    "head": "lm_head.out_proj",
    "norm1": "pre_self_attn_layernorm",
    "norm2": "post_self_attn_layernorm",
    "norm3": "pre_feedforward_layernorm",
    "norm4": "post_feedforward_layernorm",
}

TYPES: dict[str, dict[str, Any]] = {
    "t5gemma2": dict(encoder=None, decoder=None, tie_word_embeddings=True),
}

_STACK = gemma.TYPES["gemma3_text"] | dict(sliding_window=4096, layer_types=None)


def read(c: Config) -> dict[str, Any]:
    """Both stacks have one width and one vocabulary."""
    c.ignore("vocab_size")  # the decoder's again
    outside, target = c.part("encoder", {}), c.part("decoder", _STACK)
    outside.ignore("mm_tokens_per_image", "tie_word_embeddings")
    source = outside.part("text_config", _STACK)
    source.ignore("max_position_embeddings")
    for part in (source, target):
        part.ignore("tie_word_embeddings")
    for key in ("hidden_size", "vocab_size"):
        if getattr(source, key) != getattr(target, key):
            c.fail(
                f"decoder.{key}", getattr(target, key), "must be the encoder's", "make them equal"
            )
    ours = [layer | {"blocks": (_crossing(target),)} for layer in _windows(target)]
    tied = bool(c.tie_word_embeddings)
    return {
        **_stack(target),
        "d_model": target.hidden_size,
        "vocab_size": target.vocab_size,
        "context": target.max_position_embeddings,
        "tie_embeddings": tied,
        "gated_ffn": True,
        "qk_norm": "head",
        "norms_per_layer": 4,
        "cross_attention": False,
        "layers": layers(ours),
        "encoder": _stack(source) | {"layers": layers(_windows(source))},
        "outer": (_tables(target, tied), *eyes(outside, source.hidden_size, "model.encoder.")),
    }


def _stack(c: Config) -> dict[str, Any]:
    return {
        "n_layers": c.num_hidden_layers,
        "n_heads": c.num_attention_heads,
        "n_kv_heads": c.num_key_value_heads,
        "head_dim": c.head_dim,
        "d_ff": c.intermediate_size,
        "attention_bias": c.attention_bias,
    }


def _windows(c: Config) -> Layers:
    period = c.get("sliding_window_pattern", 6)
    return c.windows(lambda i: (i + 1) % period != 0)


def _crossing(c: Config) -> Rows:
    """K and V once more, for the encoder's tokens, and every query against each of them."""
    d, width = c.hidden_size, c.head_dim
    kv, pair = c.num_key_value_heads * width, 2 * c.num_attention_heads * width
    again = [
        Tensor(
            f"cross_attention.{part}", "attention", (kv, d), "matmul", "column", 0, 0, 1, "source"
        )
        for part in "kv"
    ]
    return Rows(
        (
            *again,
            Operation("cross_attention.scores", "attention", pair, Both()),
            Operation("cross_attention.values", "attention", pair, Both()),
            Cache("cross_attention.kv", 2 * kv, Both(), of="cross"),
        )
    )


def _tables(c: Config, tied: bool) -> Rows:
    """The vector that ends an image; untied, the decoder has both tables again."""
    d, end = c.hidden_size, "embedding.end_of_image"
    rows = [Tensor(end, "embedding", (d,), "lookup")]
    if not tied:
        shape = (c.vocab_size, d)
        rows.append(Tensor("decoder.embedding", "embedding", shape, "lookup", "vocab"))
        rows.append(Tensor(f"decoder.{end}", "embedding", (d,), "lookup"))
    return Rows(tuple(rows))
