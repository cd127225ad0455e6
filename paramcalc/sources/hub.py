"""config.json from a model hub, with the ``hub`` extra."""

from __future__ import annotations

from pathlib import Path

from paramcalc.errors import FileError, UnknownPreset

SECONDS = 5
"""How long the hub may take to answer."""
_UNREACHED = {"gaierror", "ConnectError", "ConnectionError", "ProxyError", "TimeoutException"}
"""What sockets and the libraries over them raise where there is no way to a host."""


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
        why = _why(error)
        raise FileError(f"{name}: no preset, and the hub gives no config.json: {why}") from None


def _why(error: Exception) -> str:
    """Why the hub gives nothing, in words where it cannot be reached."""
    cause: BaseException | None = error
    for _ in range(10):  # one error causes the next, by way of several packages
        names = {kind.__name__ for kind in type(cause).__mro__}
        if "OfflineModeIsEnabled" in names:
            return "offline by HF_HUB_OFFLINE"
        if names & _UNREACHED:
            return "no network (it cannot be reached)"
        cause = cause and (cause.__cause__ or cause.__context__)
    return " ".join(str(error).split())[:120] or type(error).__name__
