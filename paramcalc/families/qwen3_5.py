"""Qwen 3.5 with its eyes: a vision transformer that reads images and frames alike, joins squares of
patches, and hands them to the language model of ``qwen3_5_text``."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.tower import Tensors, dense, norm, placed, weight
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.nested import language_model, names_of

TYPES: dict[str, dict[str, Any]] = {
    "qwen3_5": dict(text_config=None, vision_config=None, tie_word_embeddings=False),
    "qwen3_5_moe": dict(text_config=None, vision_config=None, tie_word_embeddings=False),
}

VISION = dict(
    depth=27,
    hidden_size=1152,
    intermediate_size=4304,
    num_heads=16,
    in_channels=3,
    patch_size=16,
    spatial_merge_size=2,
    temporal_patch_size=2,
    out_hidden_size=3584,
    num_position_embeddings=2304,
)


def NAMES(c: Config) -> Names:
    """The language model's, one step further in beside the tower."""
    place = "model" if _text_alone(c) else "model.language_model"
    return names_of(c, "text_config", f"{c.model_type}_text", place)


def read(c: Config) -> dict[str, Any]:
    """The language model, and the tower unless the class is the text model's."""
    c.strict = True
    _, fields = language_model(c, "text_config", f"{c.model_type}_text")
    if _text_alone(c):
        c.leave_out("vision_config", "vision tower")
        return fields
    v = c.part("vision_config", VISION)
    v.ignore("num_heads", "deepstack_visual_indexes")
    return fields | {"outer": (tower(v),)}


def _text_alone(c: Config) -> bool:
    return c.arch.endswith("ForCausalLM")


def tower(v: Config) -> Rows:
    """Return the tower: patches in space and time, a table of places, layers, the merger."""
    d, n = v.hidden_size, v.depth
    joined = d * v.spatial_merge_size**2
    patch = (v.in_channels, *_sides(v, "temporal_patch_size", 1), *_sides(v, "patch_size", 2))
    places = weight("pos_embed.weight", v.num_position_embeddings, d, use="lookup")

    def layers() -> Tensors:
        for part in ("norm1", "norm2"):
            yield from norm(f"blocks.{{i}}.{part}", d, times=n)
        yield from dense("blocks.{i}.attn.qkv", 3 * d, d, times=n)
        yield from dense("blocks.{i}.attn.proj", d, d, times=n)
        yield from dense("blocks.{i}.mlp.linear_fc1", v.intermediate_size, d, times=n)
        yield from dense("blocks.{i}.mlp.linear_fc2", d, v.intermediate_size, times=n)

    return placed(
        "model.visual.",
        dense("patch_embed.proj", d, *patch, use="conv"),
        (places,),
        layers(),
        norm("merger.norm", d),
        dense("merger.linear_fc1", joined, joined),
        dense("merger.linear_fc2", v.out_hidden_size, joined),
    )


def _sides(v: Config, key: str, count: int) -> list[int]:
    side = v.get(key)
    sides = list(side) if isinstance(side, list | tuple) else [side] * count
    if len(sides) != count or not all(type(x) is int and x > 0 for x in sides):
        v.fail(key, side, "must be whole numbers, at least 1")
    return sides
