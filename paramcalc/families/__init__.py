"""Families: one file a family of config.json, found by its ``model_type``.

A family is a module with

* ``TYPES``: each model_type it reads, with the type's own defaults for absent keys;
* ``read(c)``: the fields of a specification (``ModelSpec``) for a ``Config``;
* ``NAMES``: how a release names and stores the ledger's rows (``families.names``), a table or a
  function of the config;
* optionally ``KEYS``, older spellings of keys, ``older``, which turns a file of another layout into
  one of the type's, and ``WRAPS``, types that hold the text model's config under ``text_config``,
  with the type it is read as.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from paramcalc.errors import ConfigError, UnknownType, did_you_mean
from paramcalc.families import classes, heads
from paramcalc.families.config import Config
from paramcalc.families.names import LLAMA, Names
from paramcalc.spelling import shown

NESTED = ("text_config", "llm_config", "language_config", "text_model_config")
"""Keys under which a multimodal config keeps its language model's."""
_NOT_FAMILIES = frozenset(
    {"__init__", "classes", "config", "heads", "inert", "names", "nested", "overrides", "stacks"}
)


class Reading(NamedTuple):
    """What a config.json says: the fields of a specification, how its tensors are stored, which
    keys feed which field, and what was not read, not counted or assumed.

    ``arch`` is the class that is counted, empty where nothing names one (then the type's language
    model is); ``asked`` is the class that the caller named. ``bare`` says that the class has no
    head, and so no names that start with its model's. ``known`` are the keys that its type reads,
    ``read_as`` is the type by which the file reads the same again.
    """

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
    asked: str | None = None
    bare: bool = False
    known: frozenset[str] = frozenset()
    read_as: str = ""


@cache
def _files() -> dict[str, str]:
    """The module of every model_type, read off the files' tables without importing them."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem not in _NOT_FAMILIES:
            text = path.read_text(encoding="utf-8")
            for name in re.findall(
                r'^    "([\w.-]+)": (?:dict\(|\{|_\w+(?: \||$))', _table(text), re.M
            ):
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
        model_type = ""
    module, inner = find(model_type), _inner(data, model_type)
    if module is None and inner is None and like is None:
        why = _refusal(model_type, data.get("architectures"))
        raise UnknownType(f"{prefix}model_type = {shown(model_type)}: {why}")
    stated = arch or _first(data.get("architectures"))
    if module is None and inner is not None and model_type:
        alone = f"{model_type} is read by its {inner[0]} alone"
        return _part(data, inner, prefix, arch, model_type, (alone,))
    as_type = model_type
    if like is not None and (module is None or find(like) is not module):
        module, as_type = find(like), like
    elif inner is not None and _is_text_class(stated, as_type, inner[1]):
        return _part(data, inner, prefix, stated, model_type)
    assert module is not None
    return _read(module, data, as_type, model_type, (arch, stated), prefix, like)


def _read(
    module: ModuleType,
    data: Mapping[str, Any],
    as_type: str,
    model_type: str,
    named: tuple[str | None, str],
    prefix: str,
    like: str | None,
) -> Reading:
    outer, (asked, stated) = data, named
    arch = classes.find(as_type, stated) or "" if classes.classes(as_type) else stated
    if asked and not arch:
        raise ConfigError(f"{prefix}arch = {shown(asked)}: {classes.refusal(as_type, asked)}")
    inside: tuple[str, ...] = ()
    wrapped = getattr(module, "WRAPS", {}).get(as_type)
    kind = as_type
    if wrapped is not None:
        inner = data.get("text_config")
        data = inner if isinstance(inner, dict) else data
        kind, inside = wrapped["as"], ("text_config",) if isinstance(inner, dict) else ()
    older = getattr(module, "older", None)
    config = Config(
        older(data, kind, prefix) if older else data,
        module.TYPES[kind],
        getattr(module, "KEYS", None),
        where=prefix + "".join(f"{key}." for key in inside),
        model_type=kind,
        arch=arch,
        outer=outer,
    )
    fields = heads.fitted(config, module.read(config), as_type)
    names = module.NAMES(config) if callable(module.NAMES) else module.NAMES
    if wrapped is not None and inside:
        for key, value in outer.items():
            if key.endswith("_config") and key not in inside and isinstance(value, dict):
                config.left_out.append(f"{key.removesuffix('_config')} tower ({key})")
    assumed = list(config.assumed)
    if as_type != model_type:
        assumed.append(f"{shown(model_type) or 'no model_type'} is read as {as_type}")
    if stated and not arch:
        assumed.append(f"{shown(stated)} is counted as {classes.classes(as_type)[0]}")
    return Reading(
        fields,
        names,
        config.keys,
        model_type or as_type,
        arch,
        tuple(config.unused()),
        tuple(config.left_out),
        tuple(assumed),
        outer,
        like,
        inside or config.inside,
        asked,
        classes.is_bare(as_type, arch),
        frozenset(config.known()),
        as_type,
    )


def _is_text_class(arch: str, model_type: str, inner: str) -> bool:
    """Whether a class is the text model's and none of the multimodal type's own."""
    return not classes.find(model_type, arch) and classes.find(inner, arch) is not None


def _inner(data: Mapping[str, Any], model_type: str) -> tuple[str, str] | None:
    """The key and type of the text part of a multimodal config, where a family reads it."""
    for key in NESTED:
        if isinstance(data.get(key), dict):
            kind = data[key].get("model_type", f"{model_type}_text")
            return (key, kind) if isinstance(kind, str) and find(kind) is not None else None
    return None


def _part(
    data: Mapping[str, Any],
    inner: tuple[str, str],
    prefix: str,
    arch: str | None,
    model_type: str,
    assumed: tuple[str, ...] = (),
) -> Reading:
    """The text part of a multimodal config: of a type that no family reads, or because the class is
    the text model's."""
    key, kind = inner
    text = {"model_type": kind, **data[key]}
    if "tie_word_embeddings" in data:
        text.setdefault("tie_word_embeddings", data["tie_word_embeddings"])
    found = read(text, where=prefix + key, arch=arch)
    towers = [
        f"{name.removesuffix('_config')} ({name})"
        for name, value in data.items()
        if name != key and name.endswith("_config") and isinstance(value, dict)
        if name not in ("quantization_config", "compression_config", "generation_config")
    ]
    return found._replace(
        model_type=model_type,
        left_out=(*found.left_out, *towers),
        assumed=(*found.assumed, *assumed),
        data=data,
        inside=(key,),
        read_as=model_type,
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


def _first(architectures: Any) -> str:
    if isinstance(architectures, list | tuple) and architectures:
        return str(architectures[0])
    return architectures if isinstance(architectures, str) else ""


def _refusal(model_type: str, architectures: Any = None) -> str:
    """What to say of an unknown type; the class that its file names tells which one it is like."""
    arch = _first(architectures)
    like = next((own for own in known() if arch and arch in classes.classes(own)), None)
    named = f" (its class {arch} is that type's)" if like else ""
    return (
        f"unknown type{'' if like else _near(model_type)}; {len(known())} are read (paramcalc list"
        f" --types), or give --like {like or 'llama'} to read it as one of them{named}"
    )


def _near(model_type: str) -> str:
    return did_you_mean(model_type[:80], known())


__all__ = ["LLAMA", "Config", "Reading", "find", "known", "read"]
