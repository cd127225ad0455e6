"""What a workbook must show of a model, counted on plain ints."""

from __future__ import annotations

from typing import Any, cast

from paramcalc import formats, rules
from paramcalc.build import ledger_of, plan
from paramcalc.deploy import fit, fitting, hardware
from paramcalc.deploy.columns import COLUMNS, Placed, fits
from paramcalc.deploy.engine import Engine, for_gpu
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.parallel import Layout, shard
from paramcalc.errors import InputError
from paramcalc.formats.schemes import SCHEMES
from paramcalc.ledger import ROLES, Ledger, Tensor
from paramcalc.quantities import params
from paramcalc.quantities.catalogue import CATALOGUE, At
from paramcalc.spec import ModelSpec

SOLVED = "attention_equals_matmuls_at"
FREE = {
    "gpu_weights": "gpu_weight_bytes",
    "gpu_cache": "gpu_kv_bytes",
    "needed": "gpu_bytes_needed",
    "free": "gpu_free_bytes",
    "largest_batch": "largest_batch",
}
TIMED = {
    "step_time": "step_nanoseconds",
    "first_time": "first_token_nanoseconds",
    "tokens": "tokens_per_second",
    "tokens_request": "tokens_per_second_request",
    "tokens_gpu": "tokens_per_second_gpu",
}
MONEY = {
    "cost_hour": "cost_per_hour",
    "cost_million": "cost_per_million_tokens",
    "cost_prompt": "cost_per_million_prompt_tokens",
}

ANSWERS = ("needed", "free", "largest_batch", *TIMED, *MONEY)
"""Rows that are empty where a rule is broken, or where nothing is known."""


def summary(ledger: Ledger, context: int, batch: int, kv_bits: int, dtype: str) -> dict[str, int]:
    """Rows of sheet Summary."""
    at = At(context, batch, kv_bits)
    found: dict[str, Any] = {
        key: quantity.of(ledger, at)
        for key, quantity in CATALOGUE.items()
        if key != SOLVED and not key.startswith("weight_bytes_")
    }
    for name, fmt in SCHEMES.items():
        found[f"weights {name}"] = formats.weight_bytes(ledger, fmt)
    found["weights"] = found[f"weights {dtype}"]
    present = {t.role for t in ledger.tensors}
    found |= {role: params.of_roles(ledger.tensors, role) for role in ROLES if role in present}
    return found | {"same": 0}


def broken(spec: ModelSpec, ledger: Ledger, gpus: int, tp: int) -> bool:
    """Whether a rule of the spec, or of sharing it out, is broken."""
    found = [*rules.fits(spec), *fits(ledger, gpus, tp)]
    return any(bool(fit.broken) for fit in found)


def deployment(
    spec: ModelSpec,
    ledger: Ledger,
    gpu: Accelerator,
    dtype: str,
    kv_bits: int,
    sizes: dict[str, int],
) -> dict[str, int | str]:
    """Rows of sheet Deployment; no times or money where it does not fit or the GPU has no
    arithmetic for the format, and no times where its rate is not known."""
    fmt = formats.settled(SCHEMES[dtype], ledger)
    vocab = spec.vocab_size
    layout = Layout(tp=sizes["tp"], dp=sizes["gpus"] // sizes["tp"])
    stage = fit.stage_of(ledger, layout, fmt, for_gpu(gpu), vocab)
    found: dict[str, int | str] = {"workspace": stage.workspace, "reserve": stage.reserve}
    timed = True
    try:
        there = Placed(ledger, gpu, fmt, kv_bits, sizes, vocab)
    except InputError:  # memory is the same on any GPU of that size
        timed = False
        like = hardware.find("h100")._replace(
            name=gpu.name,
            visible_bytes=gpu.visible_bytes,
            price_per_hour_micro=gpu.price_per_hour_micro,
        )
        there = Placed(ledger, like, fmt, kv_bits, sizes, vocab)
    wanted = dict(FREE)
    if not any(cache.elements(1) for cache in ledger.caches):
        wanted.pop("largest_batch")
    if spec.causal or spec.encoder is not None:
        money = MONEY if gpu.price_per_hour_micro else {}
        if there.free >= 0 and fitting.serves(gpu, SCHEMES[dtype]):
            wanted |= (
                TIMED | money if timed else {k: v for k, v in money.items() if k == "cost_hour"}
            )
    return found | {row: COLUMNS[key].of(there) for row, key in wanted.items()}


def free_on(
    spec: ModelSpec, ledger: Ledger, dtype: str, kv_bits: int, sizes: dict[str, int]
) -> dict[str, int | None]:
    """Rows of sheet Summary for every kind of GPU: bytes to spare, with that kind's engine; None
    where it has no arithmetic for the format."""
    fmt = formats.settled(SCHEMES[dtype], ledger)
    replicas = sizes["gpus"] // sizes["tp"]
    layout = Layout(tp=sizes["tp"], dp=replicas)
    batch = -(-sizes["batch"] // replicas)
    stages: dict[Engine, tuple[int, int]] = {}
    found: dict[str, int | None] = {}
    for unit in hardware.all():
        if not fitting.serves(unit, SCHEMES[dtype]):
            found[unit.label] = None
            continue
        engine = for_gpu(unit)
        if engine not in stages:
            stage = fit.stage_of(ledger, layout, fmt, engine, spec.vocab_size)
            cache = fit.paged_bytes(stage.ledger, sizes["context"], batch, kv_bits, engine.page)
            stages[engine] = cast(int, stage.fixed), cast(int, cache)
        found[unit.label] = engine.budget(unit.visible_bytes) - sum(stages[engine])
    return found


def tensor(row: Tensor, ledger: Ledger, dtype: str) -> tuple[list[int], list[int]]:
    """A row of sheets Tensors (shape, copies, active, parameters, active parameters, bytes) and
    Weights (bytes in every format); a row of One_GPU is that of its ``part``."""
    held = [formats.tensor_bytes(row, formats.settled(fmt, ledger)) for fmt in SCHEMES.values()]
    chosen = held[list(SCHEMES).index(dtype)]
    counts = [row.copies, row.active, row.params, row.active_params, chosen]
    return [*row.shape, *counts], held


def part(row: Tensor, tp: int) -> Tensor:
    """What one GPU of ``tp`` holds of a row."""
    own = shard(row, Layout(tp=tp))
    assert isinstance(own, Tensor)
    return own


def ledger(spec: ModelSpec) -> Ledger:
    """The ledger of a spec."""
    return ledger_of(plan(spec))
