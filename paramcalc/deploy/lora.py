"""LoRA: small trained matrices beside frozen ones, as a ledger of their own.

A targeted matrix of shape (out, in) gets A of (rank, in) and B of (out, rank) (Hu et al.,
arXiv:2106.09685, section 4.1), for every copy that is stored: rank x (in + out) parameters each.
Under tensor parallelism A and B are split as the matrix is, where it is wide; the side of the rank
is whole on every rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.errors import InputError
from paramcalc.ledger import LayerRows, Ledger, Operation, Row, Shard, Tensor
from paramcalc.numbers import Num
from paramcalc.quantities import flops
from paramcalc.quantities.asked import whole

ALL = "all-linear"
READS_INPUT = ("q", "k", "v", "kv", "q_down", "kv_down", "gate", "up", "router")
"""Last words of the matrices that read a sublayer's input."""
LAST = ("o", "down")
"""Those of the matrices that write its output."""


class Lora(NamedTuple):
    """Adapters of one ``rank`` on the matrices that ``targets`` name: the last word of a row
    (``q``, ``down``), its name in the layer (``attention.q``), or ``all-linear``."""

    rank: Num
    targets: tuple[str, ...] = ("q", "k", "v", "o", "gate", "up", "down")


def candidates(ledger: Ledger) -> list[str]:
    """Return the names in their layer of the matrices that may have adapters."""
    found = {row.name: None for kind in ledger.layers for row in kind.rows if _may(row)}
    return list(found)


def adapters(ledger: Ledger, lora: Lora) -> Ledger:
    """Return the adapters as a ledger whose layers are those of the model.

    Raises ``InputError`` for a rank below 1 or above a side of a targeted matrix, for no target,
    and for one that no matrix has.
    """
    _check_targets(candidates(ledger), lora.targets)
    _check_rank(ledger, lora)
    kinds = [
        kind._replace(rows=tuple(a for row in kind.rows for a in _pair(row, lora)))
        for kind in ledger.layers
    ]
    return Ledger.of((), kinds)


def _check_targets(names: list[str], targets: tuple[str, ...]) -> None:
    if not names:
        raise InputError("lora_targets: this model has no matrix to adapt; train it whole")
    if not targets or isinstance(targets, str):
        raise InputError(
            f"lora_targets = {targets or 'none'}: must be a list of one or more; as {ALL}"
        )
    for target in targets:
        if not any(_meant(name, target) for name in names):
            known = ", ".join(dict.fromkeys(name.rpartition(".")[2] for name in names))
            raise InputError(
                f"lora_targets = {target}: no such matrix in this model; take {known} or {ALL}"
            )


def _check_rank(ledger: Ledger, lora: Lora) -> None:
    """A product of rank r has at most the rank of its smaller side; symbols and arrays pass."""
    if isinstance(lora.rank, int | float | str):
        whole("lora_rank", lora.rank, 1)
    sides = [
        (min(row.shape), row)
        for kind in ledger.layers
        for row in kind.rows
        if isinstance(row, Tensor) and _is_target(row, lora)
        if all(type(side) is int for side in (lora.rank, *row.shape))
    ]
    if not sides:
        return
    smallest, row = min(sides, key=lambda pair: pair[0])
    if lora.rank > smallest:
        shape = " x ".join(f"{side:,}" for side in row.shape)
        raise InputError(
            f"lora_rank = {lora.rank:,}: must be at most the smaller side of {row.name}, {shape};"
            " lower it"
        )


def training(ledger: Ledger, lora: Lora, n: Num) -> Num:
    """Return the FLOPs to train adapters on a sequence of n tokens.

    Forward once, through the model and the adapters. Backward: the gradient of the input of each
    frozen matrix, once, and never that of its weights; both for the adapters; both operands of
    what attention multiplies. Below the first adapter nothing is differentiated: the gradients of
    what reads the first adapted sublayer's input, and of everything before it, are left out.
    """
    own = adapters(ledger, lora)
    small = n * flops.matmul_per_token(own)
    matrices = n * flops.matmul_per_token(ledger) + flops.per_sequence(ledger)
    between = flops.attention_prefill(ledger, n)
    return 2 * matrices + 3 * (between + small) - _below(ledger, lora, n)


def recomputed(ledger: Ledger, lora: Lora, n: Num, what: flops.Recomputation) -> Num:
    """Return ``flops.recomputed`` with the adapters inside the layers."""
    again = flops.recomputed(ledger, n, what)
    return again + (n * flops.in_layers(adapters(ledger, lora)) if what == "full" else 0)


def _below(ledger: Ledger, lora: Lora, n: Num) -> Num:
    """FLOPs of gradients that nobody needs, in the first layers of each stack."""
    saved: Num = 0
    for stack in dict.fromkeys(kind.stack for kind in ledger.layers):
        for kind in _in_order([kind for kind in ledger.layers if kind.stack == stack]):
            part, reached = _below_in(kind, lora, n)
            saved = saved + part
            if reached:
                break
    return saved


def _in_order(kinds: list[LayerRows]) -> list[LayerRows]:
    """The kind of each layer, first layer first."""
    numbered = [(i, at) for at, kind in enumerate(kinds) for r in kind.ranges for i in range(*r)]
    return [kinds[at] for _, at in sorted(numbered)]


def _below_in(kind: LayerRows, lora: Lora, n: Num) -> tuple[Num, bool]:
    """What one layer saves, and whether it holds the first adapter; sublayers one after another."""
    saved: Num = 0
    rows = [row for row in kind.rows if isinstance(row, Tensor | Operation) and row.role != "norm"]
    for block in dict.fromkeys(row.name.partition(".")[0] for row in rows):
        own = [row for row in rows if row.name.partition(".")[0] == block]
        adapted = {_word(row) for row in own if _is_target(row, lora)}
        whole = adapted <= {*LAST}  # nothing before the last matrix is trained
        for row in own:
            if isinstance(row, Operation):
                saved = saved + (2 * row.copies * _pairs(row, n) if whole else 0)
            elif whole or _word(row) in READS_INPUT:
                saved = saved + n * row.flops
                if _is_target(row, lora):
                    saved = saved + n * 2 * row.runs * lora.rank * row.shape[1]
        if adapted:
            return saved, True
    return saved, False


def _word(row: Row) -> str:
    return row.name.rpartition(".")[2]


def _pairs(row: Operation, n: Num) -> Num:
    return row.flops_per_pair * row.sight.pairs(n)


def _may(row: Row) -> bool:
    """Whether a row is a matrix of attention, a mixer or a feed-forward part."""
    return (
        isinstance(row, Tensor)
        and row.use == "matmul"
        and len(row.shape) == 2
        and row.role in ("attention", "mixer", "ffn")
    )


def _meant(name: str, target: str) -> bool:
    plain = target.strip().removesuffix("_proj")
    return plain in (ALL, name, name.rpartition(".")[2])


def _is_target(row: Row, lora: Lora) -> bool:
    return _may(row) and any(_meant(row.name, target) for target in lora.targets)


def _pair(row: Row, lora: Lora) -> Iterator[Tensor]:
    """A and B beside a targeted matrix."""
    if not _is_target(row, lora):
        return
    assert isinstance(row, Tensor)
    out, into = row.shape
    whole: Shard = "expert" if row.shard.startswith("expert") else "replicated"
    wide_in = row.shard.endswith("row")
    sides: tuple[Shard, Shard] = (row.shard, whole) if wide_in else (whole, row.shard)
    shapes = ((lora.rank, into), (out, lora.rank))
    for side, shape, shard in zip("ab", shapes, sides, strict=True):
        units = row.units if shard == row.shard else None
        yield row._replace(name=f"{row.name}.lora_{side}", shape=shape, shard=shard, units=units)
