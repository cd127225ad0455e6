"""load: one door for presets, files, hub ids, configurations and fields."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramcalc.errors import (
    ConfigError,
    FileError,
    InputError,
    SpecError,
    UnknownPreset,
    printable,
)
from paramcalc.model import Model, spec_of
from paramcalc.sources.files import typed
from paramcalc.spelling import shown

if TYPE_CHECKING:
    from paramcalc.spec import ModelSpec

_FILE_SUFFIXES = (".yaml", ".yml", ".json")
_CONTENTS = (".safetensors", ".gguf")
_INDEX = ".safetensors.index.json"
_HUB_ID = re.compile(r"[\w][\w.-]{0,95}/[\w][\w.-]{0,95}")


def load(
    source: str | os.PathLike[str] | dict[str, Any] | ModelSpec,
    *,
    like: str | None = None,
    arch: str | None = None,
) -> Model:
    """Return the model that ``source`` describes.

    A text is the name of a preset (``llama3-8b``, ``meta-llama/Meta-Llama-3-8B``), the path of a
    YAML specification, of a ``config.json`` or its folder, of a GGUF file, or with the ``hub``
    extra an id on the hub; a path, a dict of fields or of a config.json, and a ``ModelSpec`` are
    taken as they are. ``like`` reads a config.json of an unknown type as another one; ``arch``
    names its class (``BartForCausalLM``, ``LlamaModel``) in place of ``architectures``.

    Raises ``UnknownPreset`` for a name that nothing answers to, ``FileError`` for a file that
    cannot be read, ``UnknownType`` and ``ConfigError`` for a config.json that no family takes,
    ``SpecError`` for fields that break a rule: each an ``InputError`` of one line.
    """
    from paramcalc.spec import ModelSpec

    if isinstance(source, ModelSpec):
        return Model(source)
    if isinstance(source, dict):
        return model_of(source, "fields", like=like, arch=arch)
    from paramcalc.sources import presets

    text = os.fspath(source) if isinstance(source, str | os.PathLike) else None
    if not isinstance(text, str):
        raise InputError(f"model = {shown(source)}: must be a name, a path or fields")
    if not isinstance(source, str) or is_file_name(text):
        return _from_file(typed(text), like, arch)
    try:
        found, data = presets.read(text)
    except UnknownPreset as error:
        if _exists(text):
            return _from_file(Path(text), like, arch)
        if _HUB_ID.fullmatch(text):
            from paramcalc.sources import hub

            path = hub.config(text, str(error))
            name = text.rpartition("/")[2]
            return _from_file(path, like, arch, name=name)
        raise
    name = found.path.stem
    return model_of(data, name, name=name, asked=found.hub, like=like, arch=arch)


def model_of(
    data: dict[str, Any],
    where: str,
    *,
    name: str | None = None,
    asked: str | None = None,
    like: str | None = None,
    arch: str | None = None,
) -> Model:
    """Return the model of a mapping: fields, a config.json, or fields with a ``config`` section.

    Raises ``InputError``.
    """
    from paramcalc.sources.config_file import is_config, is_spec

    foreign = not is_spec(data) and (like is not None or where.lower().endswith(".json"))
    if is_config(data) or foreign:
        return _configured(data, where, {}, name=name, asked=asked, like=like, arch=arch)
    inner = data.get("config")
    if inner is None and (like is not None or arch is not None):
        raise InputError(f"{where}: --like and --arch are for a config.json; leave them out")
    if inner is None:
        return Model(spec_of(data, where), name=name, asked=asked)
    beside = {k: v for k, v in data.items() if k != "config"}
    extra = sorted(beside.keys() - {"name", "about", "context"})
    if not isinstance(inner, dict) or extra:
        what = extra[0] if extra else "config"
        raise SpecError(
            f"{where}: {what}: beside a config section stand only name, about and context;"
            " change the config's own keys"
        )
    return _configured(inner, where, beside, name=name, asked=asked, like=like, arch=arch)


def _configured(
    data: dict[str, Any],
    where: str,
    beside: dict[str, Any],
    *,
    name: str | None,
    asked: str | None,
    like: str | None,
    arch: str | None,
) -> Model:
    from paramcalc import families

    own = name if name not in (None, "config") else None
    given = str(data.get("_name_or_path") or "").rstrip("/").rpartition("/")[2]
    try:
        reading = families.read(data, where=printable(where), like=like, arch=arch)
        spec = spec_of({**reading.fields, **beside}, where)
        plain = printable(own or given or reading.model_type)[:80]
        model = Model(spec, name=plain, asked=asked, reading=reading)
        _ = model.params.total  # a value of a wrong kind shows where it is multiplied
    except (TypeError, AttributeError, LookupError, ArithmeticError) as error:
        if isinstance(error, InputError):
            raise
        raise ConfigError(f"{printable(where)}: {families.suspect(data)}") from None
    return model


def _from_file(path: Path, like: str | None, arch: str | None, *, name: str | None = None) -> Model:
    from paramcalc.sources import config_file, presets, yaml_file

    shown = presets.shown(str(path))
    try:
        if path.is_dir():
            inside = path / "config.json"
            if not inside.is_file() and _holds_tensors(path):
                return _from_contents(path, like, arch)
            if not inside.is_file():
                raise FileError(f"{shown}: is a directory without a config.json; name a file")
            return _from_file(inside, like, arch, name=name or path.resolve().name)
    except (OSError, ValueError) as error:  # too long, not allowed, an embedded null character
        if isinstance(error, InputError):
            raise
        why = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{shown}: {why.lower()}; check the path") from None
    if path.suffix.lower() in _CONTENTS or path.name.lower().endswith(_INDEX):
        return _from_contents(path, like, arch)
    read = config_file.read if path.suffix.lower() == ".json" else yaml_file.read
    data = read(path)
    stem = path.stem
    if path.name == "config.json":  # called by its folder, or where none is typed by its type
        kind = data.get("model_type") if path == Path("config.json") else None
        stem = kind if isinstance(kind, str) and kind else path.parent.resolve().name
    own = presets.shown(name or stem)
    return model_of(data, shown, name=own, like=like, arch=arch)


def _from_contents(path: Path, like: str | None, arch: str | None) -> Model:
    """The model that a GGUF file's metadata describes, or the config.json beside a checkpoint;
    ``path`` is a file, an index or a folder of tensors."""
    from paramcalc.sources import gguf_config, presets
    from paramcalc.sources.contents import in_folder, read_file

    shown, folder = presets.shown(str(path)), path.is_dir()
    plain = path.resolve().name if folder else path.stem
    if plain.startswith("model"):  # model.safetensors, its shards and index: every model's name
        plain = path.resolve().parent.name
    name = presets.shown(plain)
    files = in_folder(path) if folder else [path]
    if all(file.suffix.lower() == ".gguf" for file in files):
        data = gguf_config.config_of(read_file(path), like)
        return model_of(data, shown, name=name, like=like, arch=arch)
    beside = path.parent / "config.json"
    if folder or not beside.is_file():
        raise FileError(
            f"{shown}: holds tensors, not a model's shape; put its config.json beside it"
        )
    return _from_file(beside, like, arch, name=name)


def is_shadowed(text: str) -> bool:
    """Whether a text names a preset, and a folder with a config.json that was passed by for it."""
    from paramcalc.sources import presets

    if is_file_name(text) or not _exists(os.path.join(text, "config.json")):
        return False
    try:
        presets.find(text)
    except UnknownPreset:
        return False
    return True


def is_file_name(text: str) -> bool:
    """Whether a text can only mean a file: by its suffix, or because it starts like a path."""
    suffixes = _FILE_SUFFIXES + _CONTENTS
    return text.lower().endswith(suffixes) or text.startswith((".", "~", os.sep))


def is_contents(text: str) -> bool:
    """Whether a text names a file of tensors, or a folder of them without a config.json."""
    from paramcalc.sources import presets

    if text.lower().endswith((*_CONTENTS, _INDEX)):
        return True
    folder = typed(text)
    if not _exists(str(folder)) or not folder.is_dir() or (folder / "config.json").is_file():
        return False
    if not is_file_name(text):
        try:
            presets.find(text)
        except UnknownPreset:
            return _holds_tensors(folder)
        return False
    return _holds_tensors(folder)


def _holds_tensors(folder: Path) -> bool:
    from paramcalc.sources.contents import in_folder

    return bool(in_folder(folder))


def _exists(text: str) -> bool:
    try:
        return os.path.exists(text)
    except (OSError, ValueError):  # too long, or an embedded null character
        return False
