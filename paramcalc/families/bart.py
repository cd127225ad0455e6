"""BART (arXiv:1910.13461) and its kin: post-norm or pre-norm stacks with biases everywhere, learned
or sinusoidal positions, an encoder and a decoder, or the decoder alone.

mBART, BlenderBot (large and small), Marian, Pegasus, PLBART, MVP, M2M-100, TrOCR's and Whisper's
text decoders, and the decoders XGLM, BioGPT and OPT, which are built of the same layers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.blocks import Attention, Norm
from paramcalc.blocks.rows import Rows, idle
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor
from paramcalc.sight import Both


STACKS = ("model.encoder.embed_tokens", "model.decoder.embed_tokens")


class Kind(NamedTuple):
    """What sets a type apart: rows added to its table of positions (None: nothing is stored), a
    norm after the embedding, a norm after the last layer."""

    offset: int | None = 2
    embedding_norm: bool = True
    final_norm: bool = False


KINDS = {
    "bart": Kind(),
    "mbart": Kind(final_norm=True),
    "plbart": Kind(),
    "mvp": Kind(),
    "blenderbot": Kind(0, False, True),
    "blenderbot-small": Kind(0),
    "marian": Kind(0, False),
    "pegasus": Kind(0, False, True),
    "m2m_100": Kind(None, False, True),
    "trocr": Kind(),
    "whisper": Kind(0, False, True),
}

TYPES: dict[str, dict[str, Any]] = {
    "bart": dict(
        vocab_size=50265,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "mbart": dict(
        vocab_size=50265,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "plbart": dict(
        vocab_size=50005,
        max_position_embeddings=1024,
        encoder_layers=6,
        encoder_ffn_dim=3072,
        encoder_attention_heads=12,
        decoder_layers=6,
        decoder_ffn_dim=3072,
        decoder_attention_heads=12,
        tie_word_embeddings=True,
        hidden_size=768,
    ),
    "mvp": dict(
        vocab_size=50267,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        use_prompt=False,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "blenderbot": dict(
        vocab_size=8008,
        max_position_embeddings=128,
        encoder_layers=2,
        encoder_ffn_dim=10240,
        encoder_attention_heads=32,
        decoder_layers=24,
        decoder_ffn_dim=10240,
        decoder_attention_heads=32,
        tie_word_embeddings=True,
        hidden_size=2560,
    ),
    "blenderbot-small": dict(
        vocab_size=50265,
        max_position_embeddings=512,
        encoder_layers=8,
        encoder_ffn_dim=2048,
        encoder_attention_heads=16,
        decoder_layers=8,
        decoder_ffn_dim=2048,
        decoder_attention_heads=16,
        tie_word_embeddings=True,
        hidden_size=512,
    ),
    "marian": dict(
        vocab_size=58101,
        decoder_vocab_size=None,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        share_encoder_decoder_embeddings=True,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "pegasus": dict(
        vocab_size=50265,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "m2m_100": dict(
        vocab_size=128112,
        max_position_embeddings=1024,
        encoder_layers=12,
        encoder_ffn_dim=4096,
        encoder_attention_heads=16,
        decoder_layers=12,
        decoder_ffn_dim=4096,
        decoder_attention_heads=16,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "trocr": dict(
        vocab_size=50265,
        decoder_layers=12,
        decoder_attention_heads=16,
        decoder_ffn_dim=4096,
        max_position_embeddings=512,
        use_learned_position_embeddings=True,
        layernorm_embedding=True,
        tie_word_embeddings=True,
        hidden_size=1024,
    ),
    "whisper": dict(
        vocab_size=51865,
        num_mel_bins=80,
        encoder_layers=4,
        encoder_attention_heads=6,
        decoder_layers=4,
        decoder_attention_heads=6,
        decoder_ffn_dim=1536,
        encoder_ffn_dim=1536,
        max_source_positions=1500,
        max_target_positions=448,
        tie_word_embeddings=True,
        hidden_size=384,
    ),
}

KEYS = {"hidden_size": ("d_model",)}


def is_alone(c: Config) -> bool:
    """Whether the class is the decoder alone."""
    return c.arch.endswith(("ForCausalLM", "Decoder")) or c.model_type == "trocr"


def NAMES(c: Config) -> Names:  # noqa: N802
    """The two stacks; alone, the decoder owns the embedding."""
    attention = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    alone = is_alone(c)
    shared = "model.decoder.embed_tokens" if alone else "model.shared"
    if c.model_type == "whisper" or c.model_type == "marian" and not _shares(c):
        shared = "model.decoder.embed_tokens"
    return {
        "layers": "model.decoder.layers",
        "encoder.layers": "model.encoder.layers",
        "embedding": shared,
        "positions": "model.decoder.embed_positions",
        "encoder.positions": "model.encoder.embed_positions",
        "embedding_norm": "model.decoder.layernorm_embedding",
        "encoder.embedding_norm": "model.encoder.layernorm_embedding",
        "final_norm": "model.decoder.layer_norm",
        "encoder.final_norm": "model.encoder.layer_norm",
        "head": "output_projection" if c.model_type == "trocr" else
                "proj_out" if c.model_type == "whisper" else "lm_head",
        "norm1": "self_attn_layer_norm",
        "norm2": "final_layer_norm" if alone else "encoder_attn_layer_norm",
        "encoder.norm2": "final_layer_norm",
        "norm3": "final_layer_norm",
        "cross_norm": "encoder_attn_layer_norm",
        **{f"attention.{x}": f"self_attn.{name}" for x, name in attention.items()},
        **{f"cross_attention.{x}": f"encoder_attn.{name}" for x, name in attention.items()},
        "ffn.up": "fc1",
        "ffn.down": "fc2",
    }


def read(c: Config) -> dict[str, Any]:
    """Both stacks, or the decoder alone with its cross attention stored and idle."""
    kind = KINDS[c.model_type]
    if c.model_type == "trocr":
        kind = Kind(2 if c.use_learned_position_embeddings else None, c.layernorm_embedding)
    d, alone = c.hidden_size, is_alone(c)
    heads, biases = c.decoder_attention_heads, "qvo" if c.model_type == "whisper" else "qkvo"
    context = c.get("max_target_positions") or c.max_position_embeddings
    fields: dict[str, Any] = {
        "n_layers": c.decoder_layers,
        "n_heads": heads,
        "n_kv_heads": None,
        "head_dim": None,
        "d_ff": c.decoder_ffn_dim,
        "vocab_size": c.get("decoder_vocab_size") or c.vocab_size,
        "context": context,
        "gpt2": True,
        "attention_bias": biases,
        "embedding_norm": kind.embedding_norm,
        "final_norm": kind.final_norm,
        **positions(kind, context),
    }
    c.keys |= {"n_layers": "decoder_layers", "n_heads": "decoder_attention_heads"}
    c.keys |= {"d_ff": "decoder_ffn_dim"}
    c.ignore("num_hidden_layers", "num_attention_heads", "num_key_value_heads")
    c.ignore("encoder_layers", "encoder_attention_heads", "encoder_ffn_dim", "max_source_positions")
    c.ignore("share_encoder_decoder_embeddings", "num_mel_bins", "use_prompt")
    if alone:
        cross = Attention(
            "cross_attention", d, heads, heads, d // heads, d // heads, Both(), biases, cross=True
        )
        rows = (*cross.rows(), *Norm("cross_norm", (d,), True).rows())
        fields |= {"blocks": (idle(rows),), "norms_per_layer": 2}
    else:
        fields |= {"encoder": encoder(c, kind), "outer": _speech(c)}
        if c.model_type == "marian" and not _shares(c):
            own = Tensor("model.encoder.embed_tokens.weight", "embedding", (c.vocab_size, d), "lookup")
            fields["outer"] = (Rows((own,)),)
        else:
            fields["vocab_size"] = c.vocab_size
            if c.model_type != "whisper":
                fields["outer"] += tables(c, *STACKS)
    return c.card(**fields)


def tables(c: Config, *names: str) -> tuple[Rows, ...]:
    """Each stack's own copy of the embedding, which an untied model keeps."""
    if c.get("tie_word_embeddings", True):
        return ()
    shape = (c.vocab_size, c.hidden_size)
    copies = (Tensor(f"{name}.weight", "embedding", shape, "lookup", "vocab") for name in names)
    return (Rows(tuple(copies)),)


def _shares(c: Config) -> bool:
    return bool(c.get("share_encoder_decoder_embeddings", True))


def positions(kind: Kind, length: int) -> dict[str, Any]:
    """The table of positions, if there is one."""
    if kind.offset is None:
        return {"positions": "none"}
    return {"n_positions": length, "position_offset": kind.offset}


def encoder(c: Config, kind: Kind) -> dict[str, Any]:
    """The encoder's own sizes."""
    length = c.get("max_source_positions") or c.max_position_embeddings
    return {
        "n_layers": c.encoder_layers,
        "n_heads": c.encoder_attention_heads,
        "d_ff": c.encoder_ffn_dim,
        **positions(kind, length),
    }


def _speech(c: Config) -> tuple[Rows, ...]:
    """Whisper's two convolutions before the encoder."""
    if c.model_type != "whisper":
        return ()
    d, mels = c.hidden_size, c.num_mel_bins
    rows = []
    for name, into in (("conv1", mels), ("conv2", d)):
        own = f"model.encoder.{name}"
        rows += [
            Tensor(f"{own}.weight", "tower", (d, into, 3), "conv", stream="tower"),
            Tensor(f"{own}.bias", "tower", (d,), "bias", stream="tower"),
        ]
    return (Rows(tuple(rows)),)
