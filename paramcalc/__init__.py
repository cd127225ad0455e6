"""paramcalc: parameters, FLOPs and memory of transformer language models, exact.

>>> import paramcalc
>>> paramcalc.load("llama3-8b").params.total
8030261248
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paramcalc.errors import (
        ConfigError,
        FileError,
        InputError,
        ParamcalcError,
        SpecError,
        UnknownPreset,
        UnknownType,
    )
    from paramcalc.ledger import Cache, Ledger, Operation, Tensor
    from paramcalc.model import Model
    from paramcalc.sources.loading import load
    from paramcalc.sources.presets import names as preset_names
    from paramcalc.spec import ModelSpec
    from paramcalc.views.calls import compare, fit, grid, report, serve, train
    from paramcalc.views.result import Result

__version__ = "0.1.0"

_HOMES = {
    "Cache": "ledger",
    "ConfigError": "errors",
    "FileError": "errors",
    "InputError": "errors",
    "Ledger": "ledger",
    "Model": "model",
    "ModelSpec": "spec",
    "Operation": "ledger",
    "ParamcalcError": "errors",
    "SpecError": "errors",
    "Result": "views.result",
    "Tensor": "ledger",
    "UnknownPreset": "errors",
    "UnknownType": "errors",
    "compare": "views.calls",
    "fit": "views.calls",
    "grid": "views.calls",
    "load": "sources.loading",
    "report": "views.calls",
    "serve": "views.calls",
    "train": "views.calls",
}

__all__ = [
    "Cache",
    "ConfigError",
    "FileError",
    "InputError",
    "Ledger",
    "Model",
    "ModelSpec",
    "Operation",
    "ParamcalcError",
    "Result",
    "SpecError",
    "Tensor",
    "UnknownPreset",
    "UnknownType",
    "compare",
    "fit",
    "grid",
    "load",
    "preset_names",
    "report",
    "serve",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that ``import paramcalc`` costs nothing."""
    from importlib import import_module

    if name == "preset_names":
        return import_module("paramcalc.sources.presets").names
    if name in _HOMES:
        return getattr(import_module(f"paramcalc.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'paramcalc' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
