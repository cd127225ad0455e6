"""The catalogue: every quantity under a stable name, with its unit and how it is known.

Views, files and the sweep take their numbers from here and nowhere else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

from paramcalc import formats
from paramcalc.ledger import Ledger
from paramcalc.numbers import Num
from paramcalc.quantities import flops, memory, params

Known: TypeAlias = Literal["exact", "derived", "measured", "assumed"]


class At(NamedTuple):
    """What is set beside the model: tokens in context, sequences, bits of a cache element."""

    n: Num
    batch: Num = 1
    kv_bits: int = 16


class Quantity(NamedTuple):
    """A named figure. ``of`` is a fold in plain arithmetic; the crossover solves, and may be None;
    ``needs_context`` says that it depends on the tokens in context."""

    key: str
    label: str
    unit: str
    known: Known
    of: Callable[[Ledger, At], Num | None]
    needs_context: bool = False


def _weights(name: str) -> Callable[[Ledger, At], Num]:
    return lambda ledger, at: formats.weight_bytes(ledger, formats.FORMATS[name])


_ALL = [
    Quantity("params", "parameters", "parameters", "exact", lambda x, at: params.total(x)),
    Quantity(
        "active_params", "active parameters", "parameters", "exact", lambda x, at: params.active(x)
    ),
    Quantity(
        "non_embedding_params",
        "outside embedding and head",
        "parameters",
        "exact",
        lambda x, at: params.non_embedding(x),
    ),
    Quantity(
        "buffers",
        "stored buffers (router corrections)",
        "values",
        "exact",
        lambda x, at: params.buffers(x),
    ),
    Quantity(
        "matmul_flops_per_token",
        "matmuls",
        "FLOPs",
        "exact",
        lambda x, at: flops.matmul_per_token(x),
    ),
    Quantity(
        "router_flops_per_token",
        "of which routers",
        "FLOPs",
        "exact",
        lambda x, at: flops.router_per_token(x),
    ),
    Quantity(
        "attention_flops_per_token",
        "attention",
        "FLOPs",
        "exact",
        lambda x, at: flops.attention_per_token(x, at.n),
        needs_context=True,
    ),
    Quantity(
        "flops_per_token",
        "forward, one token",
        "FLOPs",
        "exact",
        lambda x, at: flops.per_token(x, at.n),
        needs_context=True,
    ),
    Quantity(
        "prefill_flops",
        "prefill (causal)",
        "FLOPs",
        "exact",
        lambda x, at: flops.prefill(x, at.n),
        needs_context=True,
    ),
    Quantity(
        "prefill_flops_all_pairs",
        "prefill (all pairs)",
        "FLOPs",
        "exact",
        lambda x, at: flops.prefill_all_pairs(x, at.n),
        needs_context=True,
    ),
    Quantity(
        "training_flops",
        "training (3 x forward)",
        "FLOPs",
        "exact",
        lambda x, at: flops.training(x, at.n),
        needs_context=True,
    ),
    Quantity(
        "training_flops_6n",
        "training by 6N",
        "FLOPs",
        "derived",
        lambda x, at: flops.six_n(params.working(x), at.n),
        needs_context=True,
    ),
    Quantity(
        "causal_links",
        "causal links a layer",
        "pairs",
        "exact",
        lambda x, at: flops.causal_links(at.n),
        needs_context=True,
    ),
    Quantity(
        "attention_equals_matmuls_at",
        "attention = matmuls at",
        "tokens",
        "exact",
        lambda x, at: flops.crossover(x),
    ),
    *(
        Quantity(f"weight_bytes_{name}", f"weights {name}", "bytes", "derived", _weights(name))
        for name in formats.FORMATS
    ),
    Quantity(
        "kv_bytes_per_token",
        "KV, the first token",
        "bytes",
        "derived",
        lambda x, at: memory.kv_bytes_next(x, 0, at.kv_bits),
    ),
    Quantity(
        "kv_bytes_next_token",
        "KV, the next token",
        "bytes",
        "derived",
        lambda x, at: memory.kv_bytes_next(x, at.n, at.kv_bits),
        needs_context=True,
    ),
    Quantity(
        "kv_bytes",
        "KV cache",
        "bytes",
        "derived",
        lambda x, at: memory.kv_bytes(x, at.n, at.batch, at.kv_bits),
        needs_context=True,
    ),
]
CATALOGUE = {q.key: q for q in _ALL}


def evaluate(ledger: Ledger, at: At) -> dict[str, Num | None]:
    """Return every quantity by its stable name; ints only (a solved one may be None)."""
    return {key: quantity.of(ledger, at) for key, quantity in CATALOGUE.items()}
