"""The load of experts as figures: what is set, then the same figures under each routing."""

from __future__ import annotations

from fractions import Fraction

from paramcalc.deploy.figures import MICRO, Figure, Group
from paramcalc.deploy.moe_load import (
    DRAWS,
    MILLIONTHS,
    Batch,
    Experts,
    Loads,
    Routing,
    check,
    loads_of,
    slots,
)


def answer(experts: Experts, batch: Batch, among: list[Routing]) -> tuple[Group, ...]:
    """Return the figures of one set of experts: the batch, then one group a routing.

    FLOPs are of all layers, everything else of one. Raises ``InputError`` (``moe_load.check``).
    """
    check(experts, batch)
    capacity = None
    if batch.factor is not None:
        capacity = slots(batch.tokens, experts.n_experts, experts.top_k, batch.factor, batch.least)
    groups = [_set(experts, batch, capacity)]
    for routing in among:
        # without a factor there is a slot for every token
        loads = loads_of(experts, batch, batch.tokens if capacity is None else capacity, routing)
        figures = _capacity(experts, batch, capacity, loads) + _dropless(experts, batch, loads)
        figures += _spread(experts, batch, loads)
        groups.append(Group(routing.title, tuple(figures), notes=(routing.rule,)))
    return tuple(groups)


def _set(experts: Experts, batch: Batch, capacity: int | None) -> Group:
    """What the ledger and the user give, and what follows without a routing."""
    n, k = experts.n_experts, experts.top_k
    assigned = batch.tokens * k
    figures = [
        Figure("layers", "layers that route", experts.layers, "layers", "exact"),
        Figure("n_experts", "experts a layer", n, "experts", "exact"),
        Figure("top_k", "experts a token", k, "experts", "exact"),
        Figure("assignments", "assignments a layer", assigned, "tokens", "derived", "T k"),
        Figure("assignment_flops", "FLOPs of one", experts.flops, "FLOPs", "exact"),
        Figure(
            "assigned_flops",
            "FLOPs of all, all layers",
            assigned * experts.layers * experts.flops,
            "FLOPs",
            "derived",
            "T k x FLOPs of one x layers, nothing dropped or padded",
        ),
    ]
    if batch.factor is not None and capacity is not None:
        figures += [
            Figure(
                "capacity_factor",
                "capacity factor",
                round(batch.factor * MICRO),
                MILLIONTHS,
                "assumed",
                "default" if batch.assumed else "--capacity-factor",
            ),
            Figure("slots", "slots an expert", capacity, "tokens", "derived", "ceil(T k c / E)"),
            Figure("layer_slots", "slots a layer", n * capacity, "tokens", "derived", "E slots"),
            Figure(
                "slot_flops",
                "FLOPs of the slots, all layers",
                n * capacity * experts.layers * experts.flops,
                "FLOPs",
                "derived",
                "empty slots are computed too",
            ),
        ]
    notes = []
    if experts.choices > n:
        notes.append(
            f"the router has {experts.choices - n} more choices that are no expert; taken as never"
            " chosen"
        )
    return Group(experts.name, tuple(figures), ("assigned_flops", "slot_flops"), tuple(notes))


def _capacity(experts: Experts, batch: Batch, capacity: int | None, loads: Loads) -> list[Figure]:
    """Drops, and slots against what is kept; nothing where nothing is dropped."""
    if capacity is None:
        return []
    assigned = batch.tokens * experts.top_k
    kept = assigned - loads.dropped
    figures = [
        Figure(
            "dropped", "dropped", round(loads.dropped), "tokens", "derived", "sum of E[(X - C)+]"
        ),
        _share("dropped_ppm", "dropped, share", loads.dropped / assigned, "of the assignments"),
        Figure(
            "kept_flops",
            "FLOPs kept, all layers",
            round(kept * experts.layers * experts.flops),
            "FLOPs",
            "derived",
            "assignments that are not dropped",
        ),
        _ratio(
            "slots_per_kept", "slots / kept", experts.n_experts * capacity / kept, "padded FLOPs"
        ),
    ]
    if loads.drawn_dropped is not None:
        part = loads.drawn_dropped / assigned
        figures.append(_share("drawn_dropped_ppm", "dropped, share, drawn", part, _DRAWN))
    return figures


def _dropless(experts: Experts, batch: Batch, loads: Loads) -> list[Figure]:
    """Rows in whole blocks, without drops."""
    assigned = batch.tokens * experts.top_k
    return [
        Figure(
            "dropless_rows",
            "dropless rows",
            round(loads.rows),
            "tokens",
            "derived",
            f"each load rounded up to {batch.block}",
        ),
        Figure(
            "dropless_flops",
            "dropless FLOPs, all layers",
            round(loads.rows * experts.layers * experts.flops),
            "FLOPs",
            "derived",
            "rows x FLOPs of one x layers",
        ),
        _ratio("rows_per_assigned", "dropless rows / needed", loads.rows / assigned, "padding"),
    ]


def _spread(experts: Experts, batch: Batch, loads: Loads) -> list[Figure]:
    """How even it is: experts with a token, the loss, the largest load of an expert and a rank."""
    n, assigned = experts.n_experts, batch.tokens * experts.top_k
    by_chance = loads.drawn_dropped is not None
    why = _DRAWN if by_chance else "the largest"
    figures = [
        Figure(
            "touched",
            "experts with a token",
            round(loads.touched),
            "experts",
            "derived",
            "expected; what decode reads",
        ),
        _share("idle_ppm", "experts without, share", 1 - loads.touched / n, "expected"),
        _ratio("balance_loss", "auxiliary loss", loads.loss, "E x sum f P; 1 when even"),
        Figure("largest", "largest load", round(loads.largest), "tokens", "derived", why),
        _ratio("imbalance", "largest / mean", loads.largest * n / assigned, why),
    ]
    if loads.heaviest is not None:
        figures.append(
            Figure("heaviest", "heaviest expert", loads.heaviest, "number", "derived", "from 0")
        )
    if batch.ep > 1:
        figures += [
            Figure(
                "largest_rank",
                "largest load of a rank",
                round(loads.largest_rank),
                "tokens",
                "derived",
                why,
            ),
            _ratio(
                "rank_imbalance",
                "largest / mean of ranks",
                loads.largest_rank * batch.ep / assigned,
                "factor on a dropless step's time",
            ),
        ]
        if loads.heaviest_rank is not None:
            rank = loads.heaviest_rank
            figures.append(
                Figure("heaviest_rank", "heaviest rank", rank, "number", "derived", "from 0")
            )
    return figures


_DRAWN = f"mean of {DRAWS} seeded batches"


def _share(key: str, label: str, value: Fraction, why: str) -> Figure:
    return Figure(key, label, round(value * MICRO), "ppm", "derived", why)


def _ratio(key: str, label: str, value: Fraction, why: str) -> Figure:
    return Figure(key, label, round(value * MICRO), MILLIONTHS, "derived", why)
