"""RWKV-4 (arXiv:2305.13048): no attention but a weighted sum that decays channel by channel, and a
gated network; both mix a token with the one before it."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.rows import matrix, vector
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Cache, Operation
from paramcalc.sight import State

NAMES: Names = {
    "layers": "rwkv.blocks",
    "embedding": "rwkv.embeddings",
    "embedding_norm": "rwkv.blocks.{i}.pre_ln",
    "final_norm": "rwkv.ln_out",
    "head": "head",
    "norm1": "ln1",
    "norm2": "ln2",
    "ffn.up": "feed_forward.key",
    "ffn.gate": "feed_forward.receptance",
    "ffn.down": "feed_forward.value",
}

TYPES: dict[str, dict[str, Any]] = {
    "rwkv": dict(
        vocab_size=50277,
        context_length=1024,
        hidden_size=4096,
        num_hidden_layers=32,
        attention_hidden_size=None,
        intermediate_size=None,
        tie_word_embeddings=False,
    ),
}

KEYS = {"context_length": ("max_position_embeddings", "ctx_len")}


def read(c: Config) -> dict[str, Any]:
    """The norm behind the embedding belongs to the first layer's block."""
    c.strict = True
    c.ignore("rescale_every")
    d = c.hidden_size
    c.keys["context"] = "context_length"
    return c.card(
        context=c.context_length,
        n_heads=None,
        d_ff=None,
        attention=False,
        ffn=False,
        norm="layer",
        norms_per_layer=2,
        embedding_norm=True,
        blocks=(
            time_mixing(d, c.size("attention_hidden_size", d)),
            channel_mixing(d, c.size("intermediate_size", 4 * d)),
        ),
    )


def time_mixing(d: int, wide: int) -> Rows:
    """Return the mixer. Sum and weight of a channel each cost a token 4 FLOPs: 2 to write, 2 to
    read. The cache holds both, their greatest exponent, and the token before."""
    own = "attention"
    return Rows(
        (
            *(vector(f"{own}.time_{part}", "mixer", wide) for part in ("decay", "first")),
            *_shifts(own, ("key", "value", "receptance"), d),
            *(
                matrix(f"{own}.{part}.weight", "mixer", wide, d, "column")
                for part in ("key", "value", "receptance")
            ),
            matrix(f"{own}.output.weight", "mixer", d, wide, "row"),
            Operation("attention.recurrence", "mixer", 8 * wide, State()),
            Cache("attention.state", 3 * wide, State(), of="state"),
            Cache("attention.before", d, State(), of="state"),
        )
    )


def channel_mixing(d: int, wide: int) -> Rows:
    """Return the network, whose output a gate of the stream's width scales."""
    own = "feed_forward"
    return Rows(
        (
            matrix("ffn.gate", "ffn", d, d),
            matrix("ffn.up", "ffn", wide, d, "column"),
            matrix("ffn.down", "ffn", d, wide, "row"),
            *_shifts(own, ("key", "receptance"), d),
            Cache("feed_forward.before", d, State(), of="state"),
        )
    )


def _shifts(own: str, parts: tuple[str, ...], d: int) -> list[Any]:
    """How much of the token before each part takes in."""
    role: Any = "mixer" if own == "attention" else "ffn"
    return [vector(f"{own}.time_mix_{part}", role, 1, 1, d) for part in parts]
