"""Gemma 4 with its towers (ai.google.dev/gemma/docs/core): each where the file has its section. The
unified model has none: patches and sound go through a projection. An assistant is a small model
that drafts tokens from the main model's states and reads that model's keys and values."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.linear import linear
from paramcalc.blocks.tower import Tensors, dense, norm, placed, weight
from paramcalc.blocks.tower_gemma import conformer, vision
from paramcalc.families.config import Config
from paramcalc.families.gemma4_text import ASSISTANTS
from paramcalc.families.names import Names
from paramcalc.families.nested import language_model, names_of, square
from paramcalc.ledger import Operation, Tensor
from paramcalc.sight import State

_BOTH: dict[str, Any] = dict(
    text_config=None, vision_config=None, audio_config=None, tie_word_embeddings=True
)
_DRAFT: dict[str, Any] = dict(
    text_config=None,
    use_ordered_embeddings=False,
    num_centroids=2048,
    centroid_intermediate_top_k=32,
    tie_word_embeddings=True,
)

TYPES: dict[str, dict[str, Any]] = {
    "gemma4": _BOTH | dict(),
    "gemma4_unified": _BOTH | dict(),
    "gemma4_assistant": _DRAFT | dict(backbone_hidden_size=1536),
    "gemma4_unified_assistant": _DRAFT | dict(backbone_hidden_size=3840),
}

VISION = dict(
    hidden_size=768,
    intermediate_size=3072,
    num_hidden_layers=16,
    num_attention_heads=12,
    num_key_value_heads=12,
    head_dim=64,
    patch_size=16,
    position_embedding_size=10240,
    use_clipped_linears=False,
    standardize=False,
)
AUDIO: dict[str, Any] = dict(
    hidden_size=1024,
    num_hidden_layers=12,
    num_attention_heads=8,
    conv_kernel_size=5,
    subsampling_conv_channels=None,
    output_proj_dims=1536,
    use_clipped_linears=True,
)
PATCHES = dict(
    patch_size=16,
    pooling_kernel_size=3,
    mm_embed_dim=3840,
    mm_posemb_size=1120,
    output_proj_dims=3840,
)
_FRAME = {"audio_embed_dim": ("hidden_size", "output_proj_dims", "audio_samples_per_token")}


def NAMES(c: Config) -> Names:
    """The text model's names: one step further in, but in an assistant."""
    if c.model_type not in ASSISTANTS:
        return names_of(c, "text_config", _text(c))
    mine = {"pre_projection": "pre_projection", "post_projection": "post_projection"}
    ordered = {
        "head.centroids": "masked_embedding.centroids",
        "head.ordering": "masked_embedding.token_ordering !",
        "head.candidates": "lm_head",
    }
    return {**names_of(c, "text_config", _text(c), "model"), **mine, **ordered}


def _text(c: Config) -> str:
    return "gemma4_unified_text" if "unified" in c.model_type else "gemma4_text"


def read(c: Config) -> dict[str, Any]:
    """The language model, and what stands around it."""
    c.strict = True
    text, fields = language_model(c, "text_config", _text(c))
    d, outer = text.hidden_size, fields.get("outer", ())
    if c.model_type in ASSISTANTS:
        return fields | _draft(c, d, text.vocab_size, fields["tie_embeddings"], outer)
    if c.model_type == "gemma4_unified":
        return fields | {"outer": (*outer, *_projections(c, d))}
    return fields | {"outer": (*outer, *_towers(c, d))}


def _towers(c: Config, d: int) -> list[Rows]:
    """The towers that the file describes, each with a matrix to the width of the stream."""
    found = []
    if c.vision_config is not None:
        v = c.part("vision_config", VISION)
        v.ignore("pooling_kernel_size", "max_position_embeddings", "attention_bias")
        tower = vision(
            v.hidden_size,
            v.intermediate_size,
            v.num_hidden_layers,
            v.num_attention_heads,
            v.num_key_value_heads,
            v.head_dim,
            square(v, "patch_size"),
            v.position_embedding_size,
            clipped=v.use_clipped_linears,
            standardize=v.standardize,
        )
        found += [placed("model.vision_tower.", tower), _project("vision", d, v.hidden_size)]
    if c.audio_config is not None:
        a = c.part("audio_config", AUDIO)
        a.ignore("attention_chunk_size", "attention_context_left", "attention_context_right")
        key = "subsampling_conv_channels"
        channels = a.per_layer(key, 2, a.get(key, [128, 32]))
        if not all(type(width) is int for width in channels):
            a.fail(key, channels, "must be two whole numbers")
        a.share("hidden_size", "num_attention_heads")
        tower = conformer(
            a.hidden_size,
            a.num_hidden_layers,
            a.num_attention_heads,
            a.conv_kernel_size,
            (channels[0], channels[1]),
            a.output_proj_dims,
            a.use_clipped_linears,
        )
        found += [placed("model.audio_tower.", tower), _project("audio", d, a.output_proj_dims)]
    return found


def _project(kind: str, d: int, width: int) -> Rows:
    return placed(f"model.embed_{kind}.", dense("embedding_projection", d, width, bias=False))


def _projections(c: Config, d: int) -> list[Rows]:
    """The unified model's: merged patches with two norms and places, sound as it is."""
    found = []
    if c.vision_config is not None:
        v = c.part("vision_config", PATCHES)
        side, width = square(v, "patch_size") * square(v, "pooling_kernel_size"), v.mm_embed_dim
        parts = _patches(3 * side * side, width, v.mm_posemb_size)
        last = dense("multimodal_embedder.embedding_projection", d, v.output_proj_dims, bias=False)
        found.append(placed("model.embed_vision.", parts, last))
    if c.audio_config is not None:
        a = c.part("audio_config", dict(audio_embed_dim=640), _FRAME)
        found.append(_project("audio", d, a.audio_embed_dim))
    return found


def _patches(pixels: int, width: int, places: int) -> Tensors:
    yield from norm("patch_ln1", pixels)
    yield from dense("patch_dense", width, pixels)
    yield from norm("patch_ln2", width)
    yield weight("pos_embedding", places, 2, width, use="lookup")
    yield from norm("pos_norm", width)


def _draft(c: Config, d: int, vocab: int, tied: bool, outer: tuple[Any, ...]) -> dict[str, Any]:
    """An assistant reads the main model's embedding and last state side by side and hands a state
    back. With ordered embeddings only the tokens of the best clusters get a logit."""
    wide = c.backbone_hidden_size
    rows: list[Any] = [
        *linear("pre_projection", "embedding", d, 2 * wide),
        *linear("post_projection", "head", wide, d),
    ]
    if not c.use_ordered_embeddings:
        c.ignore("num_centroids", "centroid_intermediate_top_k")
        return {"outer": (*outer, Rows(tuple(rows)))}
    clusters, best = c.num_centroids, c.centroid_intermediate_top_k
    if clusters < 1:
        c.fail("num_centroids", clusters, "must be at least 1", "raise it")
    stored = 0 if tied else 1
    rows += [
        *linear("head.centroids", "head", clusters, d),
        Tensor("head.ordering", "head", (vocab,), "buffer"),
        Tensor("head.candidates", "head", (vocab, d), "lookup", "vocab", stored, stored, 1),
        Operation("head.logits", "head", 2 * d * best * (vocab // clusters), State()),
    ]
    return {"outer": (*outer, Rows(tuple(rows))), "head": "none", "tie_embeddings": False}
