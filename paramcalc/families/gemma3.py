"""Gemma 3 with its eyes (arXiv:2503.19786): a SigLIP tower, a projection of its patches and a norm
before it, and the language model of ``gemma3_text``."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.tower import norm, placed, weight
from paramcalc.families.config import Config
from paramcalc.families.names import Names
from paramcalc.families.nested import language_model, names_of, siglip_tower

TYPES = {
    "gemma3": dict(
        text_config=None, vision_config=None, mm_tokens_per_image=256, tie_word_embeddings=True
    ),
}


def NAMES(c: Config) -> Names:
    """The language model's, one step further in."""
    return names_of(c, "text_config", "gemma3_text")


def read(c: Config) -> dict[str, Any]:
    """The language model, then what an image passes."""
    c.ignore("mm_tokens_per_image")
    text, fields = language_model(c, "text_config", "gemma3_text")
    return fields | {"outer": eyes(c, text.hidden_size, "model.")}


def eyes(c: Config, d_model: int, prefix: str) -> tuple[Rows, ...]:
    """Return the SigLIP tower of a config and the projection to a width of ``d_model``."""
    v, tower = siglip_tower(c, f"{prefix}vision_tower.")
    if tower is None:
        return ()
    projector = placed(
        f"{prefix}multi_modal_projector.",
        [weight("mm_input_projection_weight", v.hidden_size, d_model)],
        norm("mm_soft_emb_norm", v.hidden_size, bias=False),
    )
    return (tower, projector)
