"""Parameters: total, active, by component, by layer."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from paramcalc.layout import is_literal
from paramcalc.ledger import ROLES, Ledger, Role, Tensor
from paramcalc.numbers import Num


def total(ledger: Ledger) -> Num:
    """Return the stored parameters: the sum of copies x elements. Buffers are left out."""
    return sum(t.params for t in ledger.tensors)


def active(ledger: Ledger) -> Num:
    """Return the parameters one token uses: top-k experts; embeddings whole."""
    return sum(t.active_params for t in ledger.tensors)


def working(ledger: Ledger) -> Num:
    """Return the active parameters without towers, through which no token of a text goes: the N of
    2 N and 6 N."""
    return sum(t.active_params for t in ledger.tensors if t.role != "tower")


def idle(ledger: Ledger) -> Num:
    """Return the parameters that no token uses: those of tensors without an active copy, such as
    a decoder's cross attention where it runs without an encoder."""
    return sum(t.params for t in ledger.tensors if is_literal(t.active, 0))


def apart(ledger: Ledger) -> Num:
    """Return the parameters of layers beside the model (multi-token prediction)."""
    return sum(
        row.params for layer in ledger.apart for row in layer.all_rows() if isinstance(row, Tensor)
    )


def buffers(ledger: Ledger) -> Num:
    """Return the values that a checkpoint stores beside its parameters (router corrections)."""
    return sum(t.stored for t in ledger.tensors if t.use == "buffer")


def stored(ledger: Ledger) -> Num:
    """Return every stored element, parameters and buffers."""
    return sum(t.stored for t in ledger.tensors)


def tied(ledger: Ledger) -> Num:
    """Return what the head would add if it were not tied (0 if it is not)."""
    return sum(t.elements for t in ledger.tensors if is_tied(t))


def is_tied(tensor: Tensor) -> bool:
    """Whether a head is used but stored elsewhere (a literal 0 copies: structure, not a size)."""
    return tensor.role == "head" and type(tensor.copies) is int and tensor.copies == 0


def non_embedding(ledger: Ledger) -> Num:
    """Return the parameters outside embeddings, position tables and the head."""
    outside = ("embedding", "position", "head")
    return sum(t.params for t in ledger.tensors if t.role not in outside)


def by_component(ledger: Ledger) -> dict[Role, Num]:
    """Return the parameters of each component that the model has, in the order of ``ROLES``."""
    present = {t.role for t in ledger.tensors}
    return {r: of_roles(ledger.tensors, r) for r in ROLES if r in present}


def of_roles(tensors: Iterable[Tensor], *roles: Role) -> Num:
    """Return the parameters of the tensors with one of the roles."""
    return sum(t.params for t in tensors if t.role in roles)


class LayerKind(NamedTuple):
    """One kind of layer: its name, how many, their numbers, and what one of them holds."""

    name: str
    n_layers: Num
    ranges: tuple[tuple[Num, Num, Num], ...]
    params: Num
    active: Num
    by_component: dict[Role, Num]


def by_kind(ledger: Ledger) -> list[LayerKind]:
    """Return the parameters of one layer of each kind; shared layers hold them once for all."""
    kinds = []
    for layer in ledger.layers:
        tensors = [r for r in layer.rows if isinstance(r, Tensor)]
        kinds.append(
            LayerKind(
                " ".join(p for p in (layer.tower, layer.label) if p),
                layer.n_layers,
                layer.ranges,
                sum(t.params for t in tensors),
                sum(t.active_params for t in tensors),
                {r: of_roles(tensors, r) for r in ROLES if any(t.role == r for t in tensors)},
            )
        )
    return kinds


def by_layer(ledger: Ledger) -> list[tuple[str, int, Num]]:
    """Return (stack, layer number, parameters) for every layer; ints only.

    Layers that share weights each show the whole of them.
    """
    rows = [
        (layer.tower, number, kind.params)
        for layer, kind in zip(ledger.layers, by_kind(ledger), strict=True)
        for span in layer.ranges
        for number in range(*span)
    ]
    return sorted(rows, key=lambda row: (row[0] != "encoder", row[1]))
