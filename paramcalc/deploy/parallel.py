"""Parallelism: what one GPU of several holds, as a ledger of its own.

``sharded`` applies the shard rule of every row, so that weights, cache and work of one GPU are
the same folds that count the whole model. Rules:

* tensor parallelism (Megatron-LM, arXiv:1909.08053): columns of Q, K, V, gate and up, rows of O and
  down, the vocabulary; K and V heads are copied where there are more ranks than heads;
* expert parallelism (GShard, arXiv:2006.16668): whole experts over ``ep`` of a stage's GPUs, each
  split further over ``etp`` of them;
* pipeline parallelism: consecutive layers; the embedding on the first stage, the head on the last
  (which keeps a copy of a tied table);
* data and context parallelism copy the weights.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

from paramcalc.errors import InputError
from paramcalc.layout import is_literal
from paramcalc.ledger import Cache, LayerRows, Ledger, Row, Tensor
from paramcalc.numbers import Num, ceil_div

VOCAB_MULTIPLE = 64
"""vLLM and SGLang pad the vocabulary to a multiple of 64 before it is split over ranks."""


class Layout(NamedTuple):
    """How many GPUs share the work, and how.

    ``ep`` GPUs of the ``tp`` x ``dp`` x ``cp`` of a stage share out the experts; 1 splits experts
    as the rest is (``tp``). ``etp`` splits each expert further; None is 1 where ``ep`` is above 1,
    as in vLLM and SGLang. The vocabulary is padded to ``vocab_multiple`` where ranks share it.
    """

    tp: Num = 1
    pp: int = 1
    ep: Num = 1
    dp: Num = 1
    cp: int = 1
    etp: Num | None = None
    vocab_multiple: int = VOCAB_MULTIPLE

    @property
    def gpus(self) -> Num:
        """All GPUs: tp x pp x dp x cp."""
        return self.tp * self.pp * self.dp * self.cp

    @property
    def expert_tp(self) -> Num:
        """Ranks that share one expert's matrices."""
        if self.etp is not None:
            return self.etp
        return self.tp if type(self.ep) is int and self.ep == 1 else 1

    def text(self) -> str:
        """The sizes above 1, as ``tp 2 x pp 2``."""
        sizes = [
            (n, getattr(self, n)) for n in ("tp", "pp", "ep", "etp", "dp", "cp") if getattr(self, n)
        ]
        return " x ".join(f"{name} {size}" for name, size in sizes if size > 1) or "one GPU"


def check(ledger: Ledger, layout: Layout) -> None:
    """Raise ``InputError`` with one line where a layout cannot hold a model; ints only."""
    for name in ("tp", "pp", "ep", "dp", "cp", "etp", "vocab_multiple"):
        size = getattr(layout, name)
        if size is None and name == "etp":
            continue
        if type(size) is not int or size < 1:
            raise InputError(f"{name} = {size}: must be a whole number of at least 1; raise it")
    layers = sum(kind.n_layers for kind in ledger.layers)
    if layout.pp > max(layers, 1):
        raise InputError(
            f"pp = {layout.pp}: there are {layers} layers, and a stage needs one; lower it"
        )
    tensors = [row for row in _once(ledger) if isinstance(row, Tensor)]
    for name, size in (("ep", layout.ep), ("etp", layout.etp or 1)):
        if size > 1 and not any(row.shard.startswith("expert") for row in tensors):
            raise InputError(f"{name} = {size}: the model has no experts; leave it out")
    stage = layout.tp * layout.dp * layout.cp
    if stage % (layout.ep * layout.expert_tp):
        raise InputError(
            f"ep = {layout.ep}: with etp = {layout.expert_tp} must divide the GPUs of a stage,"
            f" tp x dp x cp = {stage}; lower it or raise dp"
        )
    for row in tensors:
        _check_tensor(row, layout)


def _check_tensor(row: Tensor, layout: Layout) -> None:
    ranks = layout.expert_tp if row.shard.startswith("expert") else layout.tp
    if row.shard.startswith("expert") and row.copies % layout.ep:
        raise InputError(
            f"ep = {layout.ep}: must divide the {row.copies} experts of {row.name}; lower it"
        )
    if row.shard in _WHOLE:
        return
    units = _units(row)
    if _broken(row, units, ranks):
        what = "heads" if row.units is not None else "rows or columns"
        name = "tp" if ranks == layout.tp else "etp"
        raise InputError(
            f"{name} = {ranks}: must divide the {units:,} {what} of {row.name}; lower it"
        )


_WHOLE = ("replicated", "vocab", "expert")
"""Shard rules that any number of ranks can follow."""


def _broken(row: Tensor, units: Any, ranks: Any) -> Any:
    """Whether ranks cannot share out a tensor's units; heads of K and V may be copied instead."""
    uneven = units % ranks != 0
    return uneven & (ranks % units != 0) if row.shard == "kv" else uneven


def unit_rules(ledger: Ledger, tp: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield what tp must divide: the rule in words, the units, and whether it is broken.

    Sizes may be arrays.
    """
    for row in _once(ledger):
        if isinstance(row, Tensor) and row.shard not in _WHOLE:
            units = _units(row)
            what = "heads" if row.units is not None else "width"
            rule = f"tp must divide the {what} of {row.name}"
            yield rule, units, _broken(row, units, tp)


def _once(ledger: Ledger) -> Iterator[Row]:
    """Every row of one layer of each kind, and those outside."""
    yield from ledger.outer
    for kind in ledger.layers:
        yield from kind.rows


def _units(row: Tensor) -> Num:
    """What ranks share out of a tensor: heads, or single rows or columns."""
    if row.units is not None:
        return row.units
    return row.shape[-1] if row.shard.endswith("row") else row.shape[0]


def shard(row: Row, layout: Layout) -> Row:
    """Return what one GPU holds of a row of one layer (or of one outside the layers)."""
    if _alone(layout):
        return row
    if isinstance(row, Cache):
        if row.units is None:
            return row
        part = row.per_position // row.units * ceil_div(row.units, layout.tp)
        return row._replace(per_position=part)
    if not isinstance(row, Tensor) or row.shard == "replicated":
        return row
    if row.shard == "vocab":
        multiple = 1 + (layout.vocab_multiple - 1) * several(layout.tp)
        whole = ceil_div(row.shape[0], multiple) * multiple
        return row._replace(shape=(ceil_div(whole, layout.tp), *row.shape[1:]))
    ranks = layout.tp
    if row.shard.startswith("expert"):
        ranks = layout.expert_tp
        row = row._replace(
            copies=ceil_div(row.copies, layout.ep), active=ceil_div(row.active, layout.ep)
        )
        if row.shard == "expert":
            return row
    units, last = _units(row), row.shard.endswith("row")
    whole = row.shape[-1] if last else row.shape[0]
    part = whole // units * ceil_div(units, ranks)
    shape = (*row.shape[:-1], part) if last else (part, *row.shape[1:])
    return row._replace(shape=shape)


def _alone(layout: Layout) -> bool:
    """Whether nothing is shared out, whatever the sizes of a row."""
    return is_literal(layout.tp, 1) and is_literal(layout.ep, 1) and layout.etp is None


def several(ranks: Num) -> Num:
    """Return 1 where there is more than one rank, else 0."""
    return ceil_div(ranks - 1, ranks)


def partition(layers: int, pp: int) -> list[int]:
    """Return how many layers each stage has: equal, or one more for the stages before the last.

    The last stage has the head, so it is spared, then the first (vLLM's rule).
    """
    parts = [layers // pp] * pp
    for extra in range(layers % pp):
        parts[(-2 - extra) % pp] += 1
    return parts


def stages(ledger: Ledger, layout: Layout) -> list[Ledger]:
    """Return the ledger of each pipeline stage, first stage first, not yet sharded.

    Stages that hold the same layers have one ``rows``, so that who asks for each can count once.
    """
    if layout.pp == 1:
        return [ledger]
    stacks, start, found = list(_stacks(ledger)), 0, []
    alike: dict[tuple[object, ...], Ledger] = {}
    for number, size in enumerate(partition(sum(len(s) for _, s, _ in stacks), layout.pp)):
        layers = _layers(stacks, start, start + size)
        start += size
        ends = (number == 0, number == layout.pp - 1)
        key = (*ends, *((kind.stack, kind.label, kind.n_layers) for kind in layers))
        if key not in alike:
            alike[key] = Ledger.of(_outer(ledger, *ends), layers)
        found.append(alike[key]._replace(layers=layers))
    return found


def _outer(ledger: Ledger, first: bool, last: bool) -> list[Row]:
    """What stands before the first stage's layers and after the last's."""
    outer: list[Row] = []
    for row in ledger.outer:
        early = isinstance(row, Tensor) and row.role in ("embedding", "position", "tower")
        early = early or row.name.startswith(("embedding", "encoder"))
        if not (first if early else last):
            continue
        if isinstance(row, Tensor) and row.role == "head" and _tied(row):
            row = row._replace(copies=1, active=1)
        outer.append(row)
    return outer


_Kinds: TypeAlias = list[tuple[int, int, LayerRows]]
"""Kinds of layers, each with the first layer of it and what follows the last."""


def _stacks(ledger: Ledger) -> Iterator[tuple[int, range, _Kinds]]:
    """Each stack: what its own layer numbers are ahead of the model's, the model's, its kinds."""
    offset = 0
    for stack in dict.fromkeys(kind.stack for kind in ledger.layers):
        own = [kind for kind in ledger.layers if kind.stack == stack]
        end = offset + sum(kind.n_layers for kind in own)
        ends = [
            (min(part[0] for part in kind.ranges), max(part[1] for part in kind.ranges), kind)
            for kind in own
        ]
        yield min(first for first, _, _ in ends) - offset, range(offset, end), ends
        offset = end


def _layers(
    stacks: list[tuple[int, range, _Kinds]], start: int, stop: int
) -> tuple[LayerRows, ...]:
    """The kinds of the layers from ``start`` to before ``stop``, each with its own of them."""
    kinds = []
    for ahead, layers, own in stacks:
        if start >= layers.stop or stop <= layers.start:
            continue
        for first, end, kind in own:
            if first >= stop + ahead or end <= start + ahead:
                continue
            parts = (_clip(part, start + ahead, stop + ahead) for part in kind.ranges)
            ranges = tuple(part for part in parts if part)
            count = sum(len(range(*part)) for part in ranges)
            if count:
                kinds.append(kind._replace(ranges=ranges, n_layers=count))
    return tuple(kinds)


def _tied(row: Tensor) -> bool:
    return type(row.copies) is int and row.copies == 0


def _clip(part: tuple[int, int, int], low: int, high: int) -> tuple[int, int, int] | None:
    """The layers of a (first, stop, step) from ``low`` to before ``high``."""
    first, stop, step = part
    first += max(0, ceil_div(low - first, step)) * step
    stop = min(stop, high)
    return (first, stop, step) if first < stop else None


def sharded(ledger: Ledger, layout: Layout) -> Ledger:
    """Return what one GPU of a stage holds of a ledger; sizes may be arrays or symbols.

    Tensors and caches are divided; operations stay whole.
    """
    kinds: list[LayerRows] = [
        kind._replace(rows=tuple(shard(row, layout) for row in kind.rows)) for kind in ledger.layers
    ]
    return Ledger.of((shard(row, layout) for row in ledger.outer), kinds)
