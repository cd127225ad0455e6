"""Funnel-Transformer: each block after the first works on half as many tokens."""

from __future__ import annotations

from paramcalc.ledger import Tensor
from paramcalc.model import Model
from tests.families.causes import Cause


def _layer(sizes: dict[str, tuple[int, ...]], queries: int, keys: int, places: int) -> int:
    """One layer: Q and O and the network on the queries, K and V on the keys, the table of relative
    places; scores, values and places between them, and two segments."""
    d, heads, width = sizes["attention.r_kernel"]
    every, ff = heads * width, sizes["ffn.linear_1.weight"][0]
    matrices = 2 * d * every * (2 * queries + 2 * keys + places) + 4 * d * ff * queries
    return matrices + 2 * every * queries * (2 * keys + places + 2)


def _pooled(model: Model, n: int) -> int:
    """Whole layers on the shorter sequence, less the same layers on the whole one. The first layer
    of a block takes keys from before, and meets the distances of both lengths."""
    assert model.reading is not None
    data = model.reading.data
    repeats = data.get("block_repeats") or [1] * len(model.ledger.layers)
    separate, length, total = data.get("separate_cls", True), n, 0
    for number, layer in enumerate(model.ledger.layers):
        at = f"block{number}."
        rows = [r for r in layer.rows if isinstance(r, Tensor) and r.name.startswith(at)]
        if number == 0 or not rows:
            continue
        sizes = {row.name.removeprefix(at): row.shape for row in rows}
        runs, before = layer.n_layers * repeats[number], length
        if length > (2 if separate else 1):
            length = -(-length // 2)
            total += _layer(sizes, length, before, 2 * length + before)
            runs -= 1
        total += runs * _layer(sizes, length, length, 2 * length)
        total -= layer.n_layers * repeats[number] * _layer(sizes, n, n, 2 * n)
    return total


CAUSES = {
    ("funnel", "FunnelForMaskedLM"): Cause(
        "each block after the first pools the tokens to half as many", _pooled
    )
}
