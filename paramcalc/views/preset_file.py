"""A model as the YAML of a preset."""

from __future__ import annotations

from typing import Any

import yaml

from paramcalc.families.config import CARD
from paramcalc.model import Model
from paramcalc.sections import has_blocks

FIRST = ("name", *CARD)
"""Fields in the order in which a reader expects them; the others follow."""


def preset_text(model: Model) -> str:
    """Return YAML that loads as the same model.

    A model whose layers no field spells (Mamba, Gemma 3n, ...), or with layers of multi-token
    prediction beside it, keeps the keys of its config.json under ``config``. What is assumed, not
    counted or not used stands in ``about``.
    """
    reading = model.reading
    stated = _plain(model.spec.model_dump(exclude_unset=True, exclude={"outer"}, warnings=False))
    if reading is None:
        return _dump(stated)
    if has_blocks(model.spec) or model.spec.mtp:
        keys = {k: v for k, v in reading.data.items() if not k.startswith("_")}
        keys.pop("transformers_version", None)
        keys["model_type"] = reading.read_as
        if reading.arch:
            keys["architectures"] = [reading.arch]
        fields = {"name": model.name, "config": keys}
    else:
        ordered = sorted(stated, key=lambda k: FIRST.index(k) if k in FIRST else len(FIRST))
        fields = {"name": model.name, **{key: stated[key] for key in ordered}}
    kind = f" ({reading.arch})" if reading.arch else ""
    source = f"config.json of model_type {reading.model_type}{kind}"
    kept = {
        "assumed": model.assumed,
        "not_counted": model.left_out,
        "keys_not_used": model.unused_keys,
    }
    about = {name: list(words) for name, words in kept.items() if words}
    fields["about"] = {"source": source, **about}
    return _dump(fields)


def _plain(fields: dict[str, Any]) -> dict[str, Any]:
    """Sections without what is empty; no biases at all stand as ``false``."""
    found: dict[str, Any] = {}
    for key, value in fields.items():
        if key == "attention_bias":
            found[key] = value or False
        elif isinstance(value, dict):
            found[key] = _plain(value)
        elif isinstance(value, list | tuple) and all(isinstance(v, dict) for v in value):
            if value:
                found[key] = [_plain(v) for v in value]
        elif value is not None:
            found[key] = value
    return found


class _Dumper(yaml.SafeDumper):
    """Short lists and inner sections on one line."""


def _tuple(dumper: _Dumper, value: tuple[Any, ...]) -> yaml.Node:
    return dumper.represent_list(value)


_Dumper.add_representer(tuple, _tuple)


def _dump(fields: dict[str, Any]) -> str:
    text: str = yaml.dump(
        fields,
        Dumper=_Dumper,
        sort_keys=False,
        width=96,
        allow_unicode=True,
        default_flow_style=None,
    )
    return text
