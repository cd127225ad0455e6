"""Families: one file a family of config.json, found by its ``model_type``.

A family is a module with

* ``TYPES``: each model_type it reads, with the type's own defaults for absent keys;
* ``read(c)``: the fields of a specification (``ModelSpec``) for a ``Config``;
* ``NAMES``: how a release names and stores the ledger's rows (``families.names``), a table or a
  function of the config;
* optionally ``KEYS``, older spellings of keys, and ``WRAPS``, types that hold the text model's
  config under ``text_config``, with the type it is read as.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.errors import ConfigError, SpecError, UnknownType, did_you_mean
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.spelling import shown

if TYPE_CHECKING:
    from paramcalc.spec import ModelSpec

NESTED = ("text_config", "llm_config", "language_config", "text_model_config")
"""Keys under which a multimodal config keeps its language model's."""
_NOT_FAMILIES = frozenset({"__init__", "config", "inert", "names", "nested"})


class Reading(NamedTuple):
    """What a config.json says: the fields of a specification, how its tensors are stored, which
    keys feed which field, and what was not read, not counted or assumed."""

    fields: dict[str, Any]
    names: Names
    keys: Mapping[str, str]
    model_type: str
    arch: str
    unused: tuple[str, ...]
    left_out: tuple[str, ...]
    assumed: tuple[str, ...]
    data: Mapping[str, Any]
    like: str | None
    inside: tuple[str, ...] = ()


@cache
def _files() -> dict[str, str]:
    """The module of every model_type, read off the files' tables without importing them."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _NOT_FAMILIES:
            text = path.read_text(encoding="utf-8")
            for name in re.findall(r'^    "([\w.-]+)": (?:dict\(|\{|_\w+ \|)', _table(text), re.M):
                found[name] = path.stem
    return found


def _table(text: str) -> str:
    """The lines of a module's TYPES and WRAPS."""
    parts = re.findall(r"^(?:TYPES|WRAPS)\b[^=]*= \{\n(.*?)^\}", text, re.M | re.S)
    return "".join(parts)


def known() -> list[str]:
    """Return every model_type that can be read, sorted."""
    return sorted(_files())


def family_of(model_type: str) -> str:
    """Return the name of the module that reads a type. Raises ``KeyError`` for an unknown one."""
    return _files()[model_type]


def find(model_type: str) -> ModuleType | None:
    """Return the family of a model_type, or None."""
    stem = model_type.replace("-", "_")
    if not re.fullmatch(r"[\w.-]{1,80}", model_type):
        return None
    here = Path(__file__).parent / f"{stem}.py"
    if stem not in _NOT_FAMILIES and here.is_file():
        module = import_module(f"paramcalc.families.{stem}")
        if model_type in module.TYPES or model_type in getattr(module, "WRAPS", {}):
            return module
    name = _files().get(model_type)
    return import_module(f"paramcalc.families.{name}") if name else None


def read(
    data: Mapping[str, Any], *, where: str = "", like: str | None = None, arch: str | None = None
) -> Reading:
    """Return what a config.json says.

    ``like`` reads an unknown type as another one, marked as assumed; ``arch`` names the class
    (``BartForCausalLM``) where the file's ``architectures`` should not decide.

    Raises ``UnknownType`` for a type that nothing reads, ``ConfigError`` for a value that the
    family cannot take.
    """
    prefix = f"{where}: " if where else ""
    model_type = data.get("model_type")
    if like is not None and find(like) is None:
        raise UnknownType(f"--like {like}: unknown type{_near(like)}")
    if not isinstance(model_type, str):
        if like is None:
            raise ConfigError(f"{prefix}model_type: is missing; add it, or give --like TYPE")
        model_type = like
    asked = arch or _first(data.get("architectures"))
    module = find(model_type)
    if module is None:
        inner = next((key for key in NESTED if isinstance(data.get(key), dict)), None)
        kind = data[inner].get("model_type") if inner else None
        if inner and isinstance(kind, str) and find(kind) is not None:
            return _part(data, inner, where, model_type)
        if like is None:
            raise UnknownType(f"{prefix}model_type = {shown(model_type)}: {_refusal(model_type)}")
        module, as_type = find(like), like
    else:
        as_type = like if like and find(like) is not module else model_type
        module = find(as_type)
    assert module is not None
    return _read(module, data, as_type, model_type, asked, prefix, like)


def _read(
    module: ModuleType,
    data: Mapping[str, Any],
    as_type: str,
    model_type: str,
    arch: str,
    prefix: str,
    like: str | None,
) -> Reading:
    outer = data
    inside: tuple[str, ...] = ()
    wrapped = getattr(module, "WRAPS", {}).get(as_type)
    if wrapped is not None:
        inner = data.get("text_config")
        data = inner if isinstance(inner, dict) else data
        as_type, inside = wrapped["as"], ("text_config",) if isinstance(inner, dict) else ()
    config = Config(
        data,
        module.TYPES[as_type],
        getattr(module, "KEYS", None),
        where=prefix + "".join(f"{key}." for key in inside),
        model_type=as_type,
        arch=arch,
        outer=outer,
    )
    fields = module.read(config)
    names = module.NAMES(config) if callable(module.NAMES) else module.NAMES
    if wrapped is not None and inside:
        for key, value in outer.items():
            if key.endswith("_config") and key not in inside and isinstance(value, dict):
                config.left_out.append(f"{key.removesuffix('_config')} tower ({key})")
    assumed = list(config.assumed)
    if as_type != model_type and wrapped is None:
        assumed.append(f"{model_type} is read as {as_type}")
    return Reading(
        fields,
        names,
        config.keys,
        model_type,
        arch,
        tuple(config.unused()),
        tuple(config.left_out),
        tuple(assumed),
        outer,
        like,
        inside or config.inside,
    )


def _part(data: Mapping[str, Any], inner: str, where: str, model_type: str) -> Reading:
    """The text part of a multimodal config of a type that no family reads."""
    text = dict(data[inner])
    if "tie_word_embeddings" in data:
        text.setdefault("tie_word_embeddings", data["tie_word_embeddings"])
    found = read(text, where=f"{where}: {inner}" if where else inner)
    towers = [
        f"{key.removesuffix('_config')} ({key})"
        for key, value in data.items()
        if key != inner and key.endswith("_config") and isinstance(value, dict)
        if key not in ("quantization_config", "compression_config", "generation_config")
    ]
    return found._replace(
        model_type=model_type,
        left_out=(*found.left_out, *towers),
        assumed=(*found.assumed, f"{model_type} is read by its {inner} alone"),
        data=data,
        inside=(inner,),
    )


def suspect(data: Mapping[str, Any]) -> str:
    """Return what is wrong with a value that made no size: the first of the wrong kind."""
    kind = data.get("model_type")
    module = find(kind) if isinstance(kind, str) else None
    defaults = getattr(module, "TYPES", {}).get(kind, {})
    for key, value in data.items():
        if isinstance(value, dict) and key in NESTED:
            return f"{key}.{suspect(value)}"
        wanted = defaults.get(key)
        odd = isinstance(value, list | dict | str) and not isinstance(wanted, type(value))
        if key in defaults and (odd or (value is None and type(wanted) is int)):
            return f"{key} = {shown(value)}: must be a whole number; change it"
    return "a value has a kind that its family does not read; compare it with a released file"


_FREE = frozenset({"context", "name", "about", "count_mtp", "tie_embeddings"})
"""Fields that no block is built from."""


def changed(reading: Reading, fields: Mapping[str, Any]) -> tuple[Reading, dict[str, Any]]:
    """Return a reading with the keys changed that feed some fields, and the fields left over.

    Raises ``ConfigError``.
    """
    from paramcalc.spelling import canonical

    data, rest = dict(reading.data), {}
    inner = data
    for key in reading.inside:
        inner[key] = dict(inner[key])
        inner = inner[key]
    for name, value in fields.items():
        full = canonical(name)
        if full in reading.keys:
            inner[reading.keys[full]] = value
        else:
            rest[full] = value
    return read(data, like=reading.like, arch=reading.arch or None), rest


def reachable(spec: ModelSpec, fields: Mapping[str, Any]) -> None:
    """Raise ``SpecError`` for a field that a model with blocks of its own cannot take."""
    from paramcalc.sections import has_blocks

    own = has_blocks(spec)
    for name in sorted(fields.keys() - _FREE):
        if own:
            raise SpecError(
                f"{name}: its layers are not built from this field; change the config.json instead"
            )


def _first(architectures: Any) -> str:
    if isinstance(architectures, list | tuple) and architectures:
        return str(architectures[0])
    return architectures if isinstance(architectures, str) else ""


def _refusal(model_type: str) -> str:
    return (
        f"unknown type{_near(model_type)}; {len(known())} are read (paramcalc list --types),"
        " or give --like llama to read it as one of them"
    )


def _near(model_type: str) -> str:
    return did_you_mean(model_type[:80], known())


__all__ = ["LLAMA", "Config", "Reading", "find", "known", "read"]
