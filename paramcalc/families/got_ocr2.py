"""GOT-OCR 2 (arXiv:2409.01704): SAM's image encoder, two convolutions and a matrix that shrink its
map to the width of a small Qwen 2."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.tower import dense, placed, sam
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.nested import language_model, names_of, patches, square

TYPES = {
    "got_ocr2": dict(
        text_config=None, vision_config=None, image_seq_length=576, tie_word_embeddings=True
    ),
}

TEXT = dict(
    vocab_size=151860,
    hidden_size=1024,
    intermediate_size=2816,
    num_hidden_layers=24,
    num_attention_heads=16,
    num_key_value_heads=16,
    max_position_embeddings=32768,
)
"""The language model of a file that says nothing about it."""

VISION: dict[str, Any] = dict(
    hidden_size=768,
    output_channels=256,
    num_hidden_layers=12,
    num_attention_heads=12,
    num_channels=3,
    image_size=1024,
    patch_size=16,
    qkv_bias=True,
    use_abs_pos=True,
    use_rel_pos=True,
    window_size=14,
    global_attn_indexes=[2, 5, 8, 11],
    mlp_dim=3072,
)


def NAMES(c: Config) -> Names:
    """The language model's, one step further in."""
    return names_of(c, "text_config", "qwen2")


def read(c: Config) -> dict[str, Any]:
    """The language model, then what an image passes."""
    c.ignore("image_seq_length")
    text, fields = language_model(c, "text_config", "qwen2", TEXT)
    return fields | {"outer": (_tower(c), _projector(c, text.hidden_size))}


def _tower(c: Config) -> Rows:
    v = c.part("vision_config", VISION)
    v.ignore("global_attn_indexes")
    layers, window = v.num_hidden_layers, v.window_size
    every = v.get("global_attn_indexes", VISION["global_attn_indexes"])
    n_global = layers if window == 0 else sum(i in every for i in range(layers))
    tower = sam(
        v.hidden_size,
        v.mlp_dim,
        layers,
        v.num_channels,
        square(v, "patch_size"),
        patches(v),
        v.output_channels,
        head_dim=v.hidden_size // max(v.num_attention_heads, 1),
        n_global=n_global,
        window=window,
        qkv_bias=v.qkv_bias,
        absolute=v.use_abs_pos,
        relative=v.use_rel_pos,
    )
    return placed("model.vision_tower.", tower)


def _projector(c: Config, d: int) -> Rows:
    out = c.parts["vision_config"].output_channels
    return placed(
        "model.multi_modal_projector.",
        dense("conv_upsampler1", 2 * out, out, 3, 3, bias=False, use="conv"),
        dense("conv_upsampler2", d, 2 * out, 3, 3, bias=False, use="conv"),
        dense("multimodal_projector", d, d),
    )
