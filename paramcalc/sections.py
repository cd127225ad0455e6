"""Sections inside a specification, apart so that a model without any never builds them."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, ValidationError

from paramcalc import rules, spelling
from paramcalc.spec import (
    Count,
    LayerFields,
    ModelSpec,
    Section,
    Size,
    StackFields,
    Tokens,
    _Pattern,
)


class LatentSpec(Section):
    """Multi-head latent attention (DeepSeek-V2), with V3.2's indexer if its sizes are given."""

    q_lora_rank: Size | None = None
    kv_lora_rank: Size
    qk_nope_head_dim: Size
    qk_rope_head_dim: Size
    v_head_dim: Size
    index_n_heads: Count | None = None
    index_head_dim: Size | None = None
    index_top_k: Tokens | None = None


class LayerSpec(LayerFields):
    """One kind of layer inside a pattern, ``repeat`` times in a row (once)."""

    label: Annotated[str, Field(pattern="^[a-z0-9-]+$")] | None = None
    repeat: Count | None = None


class LayerGroup(LayerSpec):
    """A run of layers: ``repeat`` of them, or all that the other groups leave over.

    With ``pattern`` the run cycles through several kinds of layers.
    """

    pattern: _Pattern = None


class EncoderSpec(StackFields):
    """The encoder of an encoder-decoder; the decoder gains cross attention.

    ``d_model`` is its own width where it is not the decoder's.
    """

    d_model: Size | None = None
    n_layers: Annotated[int, Field(strict=True, ge=1, le=rules.MOST_LAYERS)]


_INNER: dict[str, tuple[type[Section], bool]] = {
    "mla": (LatentSpec, False),
    "encoder": (EncoderSpec, False),
    "layers": (LayerGroup, True),
    "pattern": (LayerSpec, True),
    "mtp": (LayerGroup, True),
}
"""Inner sections: their class, and whether there is a list of them."""


def read_inner(name: str, value: Any) -> Any:
    """Return the checked section, or tuple of sections, under a field. Raises ``ValueError``."""
    kind, many = _INNER[name]
    if value is None:
        return None
    if not many:
        return _read_one(name, kind, value)
    if not isinstance(value, list | tuple) or not value:
        raise ValueError(
            f"{name} = {spelling.shown(value)}: must be a list of sections; write - {{...}}"
        )
    if len(value) > rules.MOST_PERIOD:
        raise ValueError(
            f"{name} = {len(value)} sections: at most {rules.MOST_PERIOD:,} are read; use repeat"
        )
    return tuple(_read_one(f"{name}.{i}", kind, item) for i, item in enumerate(value))


def _read_one(where: str, kind: type[Section], value: Any) -> Section:
    try:
        return kind.model_validate(value)
    except ValidationError as error:
        raise ValueError(spelling.explain(error, where + ".")) from None


def has_blocks(spec: ModelSpec) -> bool:
    """Whether some layers, or the model around them, are blocks that no field spells.

    Layers of multi-token prediction, which stand beside the model, do not count.
    """
    stacks = [stack for stack in (spec, spec.encoder) if stack is not None]
    groups = [group for stack in stacks for group in stack.layers or ()]
    kinds = [kind for group in groups for kind in group.pattern or ()]
    return bool(spec.outer) or any(section.blocks for section in (*stacks, *groups, *kinds))
