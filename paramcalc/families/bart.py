"""BART (arXiv:1910.13461) and its kin: post-norm or pre-norm stacks with biases everywhere, learned
or sinusoidal positions, an encoder and a decoder, or the decoder alone.

mBART, BlenderBot (large and small), Pegasus, PLBART, M2M-100, the text decoders of TrOCR and
Whisper; Marian and MVP, in files of their own, are read as BART first.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from paramcalc.blocks import Attention, Norm
from paramcalc.blocks.rows import Rows, idle
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.ledger import Tensor
from paramcalc.numbers import Num
from paramcalc.sight import Both


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

LARGE: dict[str, Any] = dict(
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
)
"""BART large, whose sizes most types have for defaults."""

TYPES: dict[str, dict[str, Any]] = {
    "bart": dict(LARGE),
    "mbart": dict(LARGE),
    "pegasus": dict(LARGE),
    "m2m_100": dict(LARGE, vocab_size=128112),
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

_UNSHAPED = (
    "num_hidden_layers num_attention_heads num_key_value_heads encoder_layers"
    " encoder_attention_heads encoder_ffn_dim max_source_positions num_mel_bins"
    " encoder_no_repeat_ngram_size begin_suppress_tokens classifier_proj_size mask_feature_length"
    " mask_time_length mask_time_min_masks median_filter_width use_weighted_layer_sum"
    " apply_spec_augment"
)
"""Keys that the decoder alone has no use for, and some of other tasks."""


def is_alone(c: Config) -> bool:
    """Whether the class is the decoder alone."""
    return c.arch.endswith(("ForCausalLM", "Decoder")) or c.model_type == "trocr"


def root(c: Config, own: str = "model") -> str:
    """What the names start with: nothing in a class without a head (``BartModel``)."""
    return "" if is_bare(c) else f"{own}."


def is_bare(c: Config) -> bool:
    """Whether the class has no head."""
    return c.arch.endswith("Model") and c.arch != "MarianMTModel"


def NAMES(c: Config) -> Names:
    """The two stacks; alone, the decoder owns the embedding."""
    attention = {"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "out_proj"}
    alone, own = is_alone(c), root(c)
    decoder = alone or c.model_type == "whisper"
    return {
        "layers": f"{own}decoder.layers",
        "encoder.layers": f"{own}encoder.layers",
        "embedding": f"{own}decoder.embed_tokens" if decoder else f"{own}shared",
        "positions": f"{own}decoder.embed_positions",
        "encoder.positions": f"{own}encoder.embed_positions",
        "embedding_norm": f"{own}decoder.layernorm_embedding",
        "encoder.embedding_norm": f"{own}encoder.layernorm_embedding",
        "final_norm": f"{own}decoder.layer_norm",
        "encoder.final_norm": f"{own}encoder.layer_norm",
        "head": _HEADS.get(c.model_type, "lm_head"),
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


_HEADS = {"trocr": "output_projection", "whisper": "proj_out"}


def read(c: Config) -> dict[str, Any]:
    """Both stacks, or the decoder alone with its cross attention stored and idle."""
    kind = KINDS[c.model_type]
    if c.model_type == "trocr":
        kind = Kind(2 if c.use_learned_position_embeddings else None, c.layernorm_embedding)
    biases = "qvo" if c.model_type == "whisper" else "qkvo"
    context = c.get("max_target_positions") or c.max_position_embeddings
    c.ignore(*_UNSHAPED.split())
    fields: dict[str, Any] = {
        **decoder(c),
        "context": context,
        "gpt2": True,
        "attention_bias": biases,
        "embedding_norm": kind.embedding_norm,
        "final_norm": kind.final_norm,
        **positions(kind, context),
    }
    if is_alone(c):
        return c.card(**fields, blocks=(unfed(c, biases),), norms_per_layer=2)
    extra = _speech(c) if c.model_type == "whisper" else tables(c, root(c))
    return c.card(**fields, encoder=encoder(c, kind), outer=extra)


def decoder(c: Config) -> dict[str, Any]:
    """The decoder's own sizes, and the head."""
    c.keys |= {"n_layers": "decoder_layers", "n_heads": "decoder_attention_heads"}
    c.keys |= {"d_ff": "decoder_ffn_dim"}
    return {
        "n_layers": c.decoder_layers,
        "n_heads": c.decoder_attention_heads,
        "n_kv_heads": None,
        "head_dim": None,
        "d_ff": c.decoder_ffn_dim,
        "head": "none" if is_bare(c) else "lm",
    }


def encoder(c: Config, kind: Kind) -> dict[str, Any]:
    """The encoder's own sizes."""
    length = c.get("max_source_positions") or c.max_position_embeddings
    return {
        "n_layers": c.encoder_layers,
        "n_heads": c.encoder_attention_heads,
        "d_ff": c.encoder_ffn_dim,
        **positions(kind, length),
    }


def positions(kind: Kind, length: int) -> dict[str, Any]:
    """The table of positions, if there is one."""
    if kind.offset is None:
        return {"positions": "none"}
    return {"n_positions": length, "position_offset": kind.offset}


def unfed(c: Config, biases: str, heads: str = "decoder_attention_heads") -> Rows:
    """The cross attention and its norm, which a decoder alone stores and never runs; TrOCR's reads
    an image encoder's width."""
    d, width = c.hidden_size, c.share("hidden_size", heads)
    n, source = d // width, d
    if c.model_type == "trocr":
        source = c.whole("cross_attention_hidden_size", d)
    cross = Attention(
        "cross_attention", d, n, n, width, width, Both(), biases, cross=True, d_source=source
    )
    return idle((*cross.rows(), *Norm("cross_norm", (d,), True).rows()))


def table(c: Config, name: str, rows: Num) -> Tensor:
    """A table of tokens beside the model's own."""
    return Tensor(f"{name}.weight", "embedding", (rows, c.hidden_size), "lookup", "vocab")


def tables(c: Config, own: str, name: str = "embed_tokens") -> tuple[Rows, ...]:
    """Each stack's own copy of the embedding, which an untied model keeps."""
    if c.get("tie_word_embeddings", True):
        return ()
    stacks = ("decoder",) if is_alone(c) else ("encoder", "decoder")
    return (Rows(tuple(table(c, f"{own}{stack}.{name}", c.vocab_size) for stack in stacks)),)


def _speech(c: Config) -> tuple[Rows, ...]:
    """Whisper's two convolutions before the encoder."""
    d, mels = c.hidden_size, c.num_mel_bins
    rows = []
    for name, into in (("conv1", mels), ("conv2", d)):
        own = f"{root(c)}encoder.{name}"
        rows += [
            Tensor(f"{own}.weight", "tower", (d, into, 3), "conv", stream="tower"),
            Tensor(f"{own}.bias", "tower", (d,), "bias", stream="tower"),
        ]
    return (Rows(tuple(rows)),)
