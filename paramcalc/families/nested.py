"""Configs that nest: a language model's section beside those of towers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from paramcalc.blocks import Rows
from paramcalc.blocks.tower import placed, siglip
from paramcalc.families.config import Config
from paramcalc.families.names import Names

SIGLIP = dict(
    hidden_size=768,
    intermediate_size=3072,
    num_hidden_layers=12,
    num_attention_heads=12,
    num_channels=3,
    image_size=224,
    patch_size=16,
    vision_use_head=True,
)
"""The defaults of ``siglip_vision_model``."""


def language_model(
    c: Config, key: str, model_type: str, absent: Mapping[str, Any] | None = None
) -> tuple[Config, dict[str, Any]]:
    """Return the config of the language model under ``key``, and the fields its own family reads.

    ``model_type`` is its type where the section does not say, ``absent`` its keys where there is no
    section. Raises ``ConfigError`` for a type that nothing reads.
    """
    module, text = _module(c, key, model_type, absent)
    fields = module.read(text)
    # Whether the head is tied is the outer config's to say.
    text.keys.pop("tie_embeddings", None)
    return text, fields | {"tie_embeddings": bool(c.get("tie_word_embeddings", False))}


def names_of(c: Config, key: str, model_type: str, place: str = "model.language_model") -> Names:
    """Return the names of the language model under ``key``, which stands at ``place``."""
    module, text = _module(c, key, model_type)
    return inside(module.NAMES(text) if callable(module.NAMES) else module.NAMES, place)


def _module(
    c: Config, key: str, model_type: str, absent: Mapping[str, Any] | None = None
) -> tuple[Any, Config]:
    from paramcalc.families import find

    stated = c.get(key)
    kind = stated.get("model_type") if isinstance(stated, dict) else None
    kind = kind or model_type
    module = find(kind) if isinstance(kind, str) else None
    if module is None or kind not in module.TYPES:
        c.fail(f"{key}.model_type", kind, "is not the type of a language model")
    assert module is not None
    if key in c.parts:
        return module, c.parts[key]
    aliases = getattr(module, "KEYS", None)
    kinds = module.TYPES[kind]
    return module, c.part(key, kinds, aliases, model_type=kind, main=True, absent=absent)


def inside(names: Names, place: str = "model.language_model", model: str = "model") -> Names:
    """Return a language model's names where it stands at ``place`` instead of ``model``."""
    found = dict(names)
    for row, path in names.items():
        if path.startswith(f"{model}."):
            found[row] = place + path.removeprefix(model)
    return found


def patches(v: Config) -> int:
    """Return how many patches stand along one side of an image.

    Raises ``ConfigError`` where an image holds none.
    """
    image, patch = square(v, "image_size"), square(v, "patch_size")
    if image < patch:
        v.fail("image_size", image, f"must hold a patch of {patch}", "raise it")
    return image // patch


def square(v: Config, key: str) -> int:
    """Return a side in pixels. Raises ``ConfigError`` unless it is one number, at least 1."""
    side = getattr(v, key)
    if type(side) is not int or side < 1:
        v.fail(key, side, "must be one number, at least 1")
    return int(side)


def siglip_tower(c: Config, prefix: str) -> tuple[Config, Rows | None]:
    """Return the config of a SigLIP tower and its block; None for a tower of another type, which is
    noted as left out."""
    v = c.part("vision_config", SIGLIP, model_type="siglip_vision_model")
    if v.model_type != "siglip_vision_model":
        c.leave_out("vision_config", f"{v.model_type} tower")
        c.parts.pop("vision_config")
        return v, None
    v.ignore("num_attention_heads")
    rows = siglip(
        v.hidden_size,
        v.intermediate_size,
        v.num_hidden_layers,
        v.num_channels,
        square(v, "patch_size"),
        patches(v) ** 2,
        v.vision_use_head,
    )
    return v, placed(prefix, rows)
