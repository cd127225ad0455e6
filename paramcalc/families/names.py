"""Names: how a release stores the ledger's tensors, and under what names.

A family's table maps a row's name to a path. Written after the path:

* nothing: ``.weight`` is added, and ``.bias`` for the bias that belongs to the row;
* `` !``: the path is the whole name (an entry for a ``.bias`` always is);
* `` ^``: the path starts at the root, {i} in it stands for the layer;
* `` R``: with a leading axis of one, (1, n);
* `` S``: stored row by row, (E, n) as E vectors;
* `` T``: stored as (in, out); `` F``: the experts of a layer flat under each other, (E x out, in).

An entry for ``encoder.norm2`` goes before one for ``norm2`` in the encoder's layers.
Rows of one layer with the same path are one stored tensor, side by side along the output. Experts
without ``{e}`` in their path are stacked, (E, out, in). A row without an entry is its own name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paramcalc.ledger import LayerRows, Ledger, Row, Tensor
from paramcalc.numbers import Num

Names = Mapping[str, str]

LLAMA = {
    "layers": "model.layers",
    "encoder.layers": "model.encoder.layers",
    "embedding": "model.embed_tokens",
    "final_norm": "model.norm",
    "head": "lm_head",
    "norm1": "input_layernorm",
    "norm2": "post_attention_layernorm",
    "attention.q": "self_attn.q_proj",
    "attention.k": "self_attn.k_proj",
    "attention.v": "self_attn.v_proj",
    "attention.o": "self_attn.o_proj",
    "attention.q_norm": "self_attn.q_norm",
    "attention.k_norm": "self_attn.k_norm",
    "attention.sinks": "self_attn.sinks !",
    "ffn.gate": "mlp.gate_proj",
    "ffn.up": "mlp.up_proj",
    "ffn.down": "mlp.down_proj",
}
"""Llama's, which most decoders follow."""

MOE = {
    "ffn.router": "mlp.gate",
    "ffn.router.correction": "mlp.gate.e_score_correction_bias !",
    "ffn.experts.*.gate": "mlp.experts.gate_up_proj !",
    "ffn.experts.*.up": "mlp.experts.gate_up_proj !",
    "ffn.experts.*.down": "mlp.experts.down_proj !",
    "ffn.shared.gate": "mlp.shared_experts.gate_proj",
    "ffn.shared.up": "mlp.shared_experts.up_proj",
    "ffn.shared.down": "mlp.shared_experts.down_proj",
    "ffn.shared_gate": "mlp.shared_expert_gate",
}
"""Experts as the framework stacks them."""

MLA = {
    "attention.q_down": "self_attn.q_a_proj",
    "attention.q_norm": "self_attn.q_a_layernorm",
    "attention.q_up": "self_attn.q_b_proj",
    "attention.kv_down": "self_attn.kv_a_proj_with_mqa",
    "attention.kv_norm": "self_attn.kv_a_layernorm",
    "attention.kv_up": "self_attn.kv_b_proj",
    "attention.indexer.q": "self_attn.indexer.wq_b",
    "attention.indexer.k": "self_attn.indexer.wk",
    "attention.indexer.k_norm": "self_attn.indexer.k_norm",
    "attention.indexer.weights": "self_attn.indexer.weights_proj",
}
"""Latent attention as DeepSeek names it."""


class Stored(NamedTuple):
    """A stored tensor: its name ({i} a layer, {e} an expert), shape, how many there are, and the
    ledger's rows inside it."""

    name: str
    shape: tuple[Num, ...]
    copies: Num
    rows: tuple[str, ...]
    buffer: bool = False


def stored(ledger: Ledger, names: Names, *, bare: bool = False) -> list[Stored]:
    """Return what a checkpoint of the model holds, in the order of the ledger.

    ``bare`` says that the class is the model without a head: what all names start with is left out.
    """
    found = _within("", ledger.outer, 1, names)
    for layer in ledger.layers:
        found += _of_layers(layer, names)
    starts = {tensor.name.partition(".")[0] for tensor in found}
    if bare and len(starts) == 1:
        found = [tensor._replace(name=tensor.name.partition(".")[2]) for tensor in found]
    return _merged(found)


def stored_apart(ledger: Ledger, names: Names) -> list[Stored]:
    """Return what the layers beside the model hold."""
    return _merged([tensor for layer in ledger.apart for tensor in _of_layers(layer, names)])


def _of_layers(layer: LayerRows, names: Names) -> list[Stored]:
    place = f"{layer.stack}.layers" if layer.stack else "layers"
    prefix = f"{names.get(place, place)}.{{i}}."
    times = 1 if layer.shared else layer.n_layers
    return _within(prefix, layer.rows, times, names, f"{layer.stack}." if layer.stack else "")


def _within(
    prefix: str, rows: tuple[Row, ...], times: Num, names: Names, stack: str = ""
) -> list[Stored]:
    together: dict[tuple[str, int], list[Tensor]] = {}
    for number, row in enumerate(rows):
        if isinstance(row, Tensor) and not (type(row.copies) is int and row.copies == 0):
            found = path(stack + row.name, names)
            if found == stack + row.name:  # the stack has no name of its own for it
                found = path(row.name, names)
            apart = number if row.stream == "tower" else -1  # a tower fuses nothing
            together.setdefault((found, apart), []).append(row)
    return [_one(prefix, text, tensors, times) for (text, _), tensors in together.items()]


def path(name: str, names: Names) -> str:
    """Return the path of a row with its marks, its suffix added."""
    if name in names:
        found = names[name]
        if name.endswith(".bias") or "!" in found:
            return found
        head, _, marks = found.partition(" ")
        return f"{head}.weight {marks}".rstrip()
    owner = name.removesuffix(".bias")
    if owner != name and owner in names:
        head, _, marks = names[owner].partition(" ")
        return f"{head}.bias ^" if "^" in marks else f"{head}.bias"
    return name


def _one(prefix: str, text: str, tensors: list[Tensor], times: Num) -> Stored:
    head, _, marks = text.partition(" ")
    first = tensors[0]
    shape: tuple[Num, ...] = first.shape  # () for a single value
    if shape:
        shape = (sum(t.shape[0] for t in tensors), *shape[1:])
    count, experts = first.copies, ".experts.*" in first.name
    if "T" in marks:
        shape = (*shape[1:], shape[0])
    if "R" in marks:
        shape = (1, *shape)
    if "S" in marks:
        shape, count = shape[1:], count * shape[0]
    if "F" in marks:
        shape, count = (count * shape[0], *shape[1:]), 1
    elif experts and "{e}" not in head:
        shape, count = (count, *shape), 1
    rows = tuple(t.name for t in tensors)
    prefix = "" if "^" in marks else prefix
    return Stored(prefix + head, shape, count * times, rows, first.use == "buffer")


def _merged(tensors: list[Stored]) -> list[Stored]:
    """Add up equal tensors of different kinds of layers."""
    found: dict[tuple[str, tuple[Num, ...]], Stored] = {}
    for tensor in tensors:
        key = tensor.name, tensor.shape
        held = found.get(key)
        found[key] = tensor._replace(copies=held.copies + tensor.copies) if held else tensor
    return list(found.values())
