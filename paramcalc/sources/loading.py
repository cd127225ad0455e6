"""load: one door for presets, files and fields."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paramcalc.errors import FileError, SpecError, UnknownPreset
from paramcalc.model import Model

if TYPE_CHECKING:
    from paramcalc.spec import ModelSpec

_FILE_SUFFIXES = (".yaml", ".yml", ".json")


def load(source: str | os.PathLike[str] | dict[str, Any] | ModelSpec) -> Model:
    """Return the model that ``source`` describes.

    A text is the name of a preset (``llama3-8b``, ``meta-llama/Meta-Llama-3-8B``) or the path of a
    YAML specification; a path, a dict of fields and a ``ModelSpec`` are taken as they are.

    Raises ``UnknownPreset`` for a name that nothing answers to, ``FileError`` for a file that
    cannot be read, ``SpecError`` for fields that break a rule: each an ``InputError`` of one line.
    """
    from paramcalc.spec import ModelSpec

    if isinstance(source, ModelSpec):
        return Model(source)
    if isinstance(source, dict):
        return Model(spec_of(source, "fields"))
    from paramcalc.sources import presets

    text = os.fspath(source)
    if not isinstance(source, str) or is_file_name(text):
        return _from_file(Path(text).expanduser())
    try:
        found, data = presets.read(text)
    except UnknownPreset:
        if _exists(text):
            return _from_file(Path(text))
        raise
    name = found.path.stem
    return Model(spec_of(data, name), name=name, asked=found.hub)


def _from_file(path: Path) -> Model:
    from paramcalc.sources import presets, yaml_file

    name = presets.shown(str(path))
    try:
        inside = path.is_dir()
    except (OSError, ValueError) as error:  # too long, not allowed, an embedded null character
        why = getattr(error, "strerror", None) or str(error)
        raise FileError(f"{name}: {why.lower()}; check the path") from None
    if inside:
        raise FileError(f"{name}: is a directory; name a YAML file or a preset")
    return Model(spec_of(yaml_file.read(path), str(path)), name=presets.shown(path.stem))


def is_file_name(text: str) -> bool:
    """Whether a text can only mean a file: by its suffix, or because it starts like a path."""
    return text.lower().endswith(_FILE_SUFFIXES) or text.startswith((".", "~", os.sep))


def _exists(text: str) -> bool:
    try:
        return os.path.exists(text)
    except (OSError, ValueError):  # too long, or an embedded null character
        return False


def spec_of(data: dict[str, Any], where: str) -> ModelSpec:
    """Return the checked spec of a dict of fields. Raises ``SpecError`` naming ``where``."""
    from pydantic import ValidationError

    from paramcalc import spelling
    from paramcalc.spec import ModelSpec

    try:
        return ModelSpec.model_validate(data)
    except ValidationError as error:
        raise SpecError(f"{where}: {spelling.explain(error)}") from None
    except RecursionError:
        raise SpecError(f"{where}: nested too deeply for a specification; flatten it") from None
