"""config.json from a model hub, with the ``hub`` extra."""

from __future__ import annotations

from pathlib import Path

from paramcalc.errors import FileError, UnknownPreset

SECONDS = 5
"""How long the hub may take to answer."""


def config(name: str, unknown: str) -> Path:
    """Return the path of a hub model's config.json, fetched or from the cache.

    ``unknown`` is what to say where the extra is missing. Raises ``UnknownPreset`` then, and
    ``FileError`` where the hub does not give the file.
    """
    try:
        import huggingface_hub as hub
    except ImportError:
        raise UnknownPreset(
            f"{unknown}; to read it from the hub: pip install 'paramcalc[hub]'"
        ) from None
    cached = hub.try_to_load_from_cache(name, "config.json")
    try:
        # Asked once and briefly first: the download itself asks again for half a minute.
        hub.get_hf_file_metadata(hub.hf_hub_url(name, "config.json"), timeout=SECONDS)
        return Path(hub.hf_hub_download(name, "config.json"))
    except Exception as error:  # the library raises dozens of kinds, of several packages
        if isinstance(cached, str):
            return Path(cached)
        why = " ".join(str(error).split())[:120] or type(error).__name__
        raise FileError(f"{name}: no preset, and the hub gives no config.json: {why}") from None
