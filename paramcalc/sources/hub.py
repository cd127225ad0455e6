"""config.json from a model hub, with the ``hub`` extra."""

from __future__ import annotations

from pathlib import Path

from paramcalc.errors import FileError, UnknownPreset


def config(name: str, unknown: str) -> Path:
    """Return the path of a hub model's config.json, fetched or from the cache.

    ``unknown`` is what to say where the extra is missing. Raises ``UnknownPreset`` then, and
    ``FileError`` where the hub does not give the file.
    """
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise UnknownPreset(
            f"{unknown}; to read it from the hub: pip install 'paramcalc[hub]'"
        ) from None
    try:
        return Path(hf_hub_download(name, "config.json"))
    except Exception as error:  # the library raises dozens of kinds, of several packages
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileError(f"{name}: no preset, and the hub gives no config.json: {why}") from None
