"""GIT (arXiv:2205.14100): BERT's layers as a decoder over image patches and text alike, behind
CLIP's vision model and a projection with a norm."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.tower import clip, dense, norm, placed, weight
from paramcalc.families.config import Config
from paramcalc.families.nested import patches, square

NAMES = {
    "layers": "git.encoder.layer",
    "embedding": "git.embeddings.word_embeddings",
    "positions": "git.embeddings.position_embeddings",
    "embedding_norm": "git.embeddings.LayerNorm",
    "head": "output",
    "norm1": "attention.output.LayerNorm",
    "norm2": "output.LayerNorm",
    "attention.q": "attention.self.query",
    "attention.k": "attention.self.key",
    "attention.v": "attention.self.value",
    "attention.o": "attention.output.dense",
    "ffn.up": "intermediate.dense",
    "ffn.down": "output.dense",
}

TYPES = {
    "git": dict(
        vision_config=None,
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=6,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=1024,
        tie_word_embeddings=False,
        num_image_with_embedding=None,
    ),
}

VISION = dict(
    hidden_size=768,
    intermediate_size=3072,
    num_hidden_layers=12,
    num_attention_heads=12,
    num_channels=3,
    image_size=224,
    patch_size=16,
)


def read(c: Config) -> dict[str, Any]:
    """Norms after each part, one after the embedding, none at the end."""
    c.strict = True
    return c.card(
        head_dim=None,
        n_kv_heads=None,
        norm="layer",
        attention_bias="qkvo",
        ffn_bias=True,
        positions="learned",
        embedding_norm=True,
        final_norm=False,
        head_bias=True,
        outer=_eyes(c),
    )


def _eyes(c: Config) -> tuple[Rows, Rows]:
    """The image encoder, then its projection, and in a model of videos a vector for each frame."""
    v, d = c.part("vision_config", VISION), c.hidden_size
    v.ignore("num_attention_heads")
    width = v.hidden_size
    tower = clip(
        width,
        v.intermediate_size,
        v.num_hidden_layers,
        v.num_channels,
        square(v, "patch_size"),
        patches(v) ** 2,
    )
    frames = weight(
        "img_temporal_embedding.{i}", 1, 1, width, times=c.whole("num_image_with_embedding", 0)
    )
    projection = placed(
        "git.",
        [frames],
        dense("visual_projection.visual_projection.{i}", d, width),
        norm("visual_projection.visual_projection.{i}", d),
    )
    return placed("git.image_encoder.vision_model.", tower), projection
