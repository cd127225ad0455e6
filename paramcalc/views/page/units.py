"""What one GPU of each kind has to hold, as ``paramcalc fit`` asks it: formulas and data."""

from __future__ import annotations

from typing import Any, cast

from paramcalc import formats
from paramcalc.deploy import fit, hardware
from paramcalc.deploy.engine import LARGE, Engine, for_gpu
from paramcalc.deploy.figures import GIB
from paramcalc.deploy.fitting import serves
from paramcalc.deploy.parallel import Layout
from paramcalc.formats.mixed import is_file_type
from paramcalc.ledger import Ledger
from paramcalc.model import Model
from paramcalc.numbers import Num
from paramcalc.quantities.catalogue import At
from paramcalc.symbols import Formula

STEP_TOKENS, STEP_REQUESTS = "step_tokens", "step_requests"
"""An engine's settings, of which GPUs of different kinds have their own."""
WORKSPACE, PAGED = "workspace", "kv_bytes_paged"
"""Bytes of activations, and of the cache in whole pages."""


def released(model: Model) -> str:
    """Return the format that the page opens a model in: the released one, but bf16 where that is a
    file type of llama.cpp, whose bytes are a table."""
    name = model.released_format
    return "bf16" if is_file_type(name) else formats.find(name).name


def padded(name: str) -> str:
    """Return the name of the figure of a format's weights as a GPU holds them."""
    return f"gpu_weight_bytes_{name}"


def figures(
    ledger: Ledger, vocab: Num, extra: tuple[str, ...], at: At, tokens: Formula, requests: Formula
) -> dict[str, Any]:
    """Return what one GPU that holds a whole ledger needs.

    ``extra`` are the formats that have no quantity in the catalogue: their weights plain, and with
    what kernels pad.
    """
    engine = Engine(max_batched_tokens=cast(Num, tokens), max_seqs=cast(Num, requests))
    found: dict[str, Any] = {}
    for name in extra or ("bf16",):
        stage = fit.stage_of(ledger, Layout(), formats.find(name), engine, vocab)
        if name in extra:
            found |= {f"weight_bytes_{name}": stage.plain, padded(name): stage.weights}
    found[PAGED] = fit.paged_bytes(stage.ledger, at.n, at.batch, at.kv_bits, engine.page)
    return found | {WORKSPACE: stage.workspace}


def data(dtypes: list[str]) -> dict[str, Any]:
    """Return every kind of GPU as data: its budget, its engine's settings, the formats it lacks."""
    units = hardware.all()
    engines = sorted({for_gpu(unit) for unit in units}, reverse=True, key=lambda e: e.max_seqs)
    return {
        "units": [
            {
                "label": unit.label,
                "budget": str(for_gpu(unit).budget(unit.visible_bytes)),
                "engine": engines.index(for_gpu(unit)),
                "lacks": [name for name in dtypes if not serves(unit, formats.find(name))],
            }
            for unit in units
        ],
        "engines": [
            {"tokens": engine.max_batched_tokens, "requests": engine.max_seqs} for engine in engines
        ],
        "large": LARGE // GIB,
        "page": Engine().page,
        "reserve": Engine().reserve_bytes(1),
        "notes": {name: formats.find(name).note for name in dtypes if name not in formats.FORMATS},
        "budget": int(100 * Engine().utilization),
    }
