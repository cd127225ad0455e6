"""Delta nets and state-space models: recurrences in chunks or without their updates, and
convolutions padded on both sides."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.ledger import Cache, LayerRows, Tensor
from paramcalc.model import Model
from tests.families.causes import Cause


def sizes(layer: LayerRows) -> dict[str, Any]:
    """Shapes of a layer's tensors and elements of its caches, by name."""
    shapes = {row.name: row.shape for row in layer.rows if isinstance(row, Tensor)}
    return shapes | {row.name: row.per_position for row in layer.rows if isinstance(row, Cache)}


def mixing(model: Model) -> Iterator[tuple[int, dict[str, Any]]]:
    """How many layers of a kind have a convolution in their mixer, and their sizes."""
    for layer in model.ledger.layers:
        found = sizes(layer)
        if "mixer.conv" in found:
            yield int(layer.n_layers), found


def padded(found: dict[str, Any]) -> int:
    """A convolution of k runs over n + k - 1 places instead of n."""
    channels, _, kernel = found["mixer.conv"]
    return int(2 * channels * kernel * (kernel - 1))


def delta(model: Model, n: int) -> int:
    """Per value head and chunk of C, padded to whole chunks: C x C x K twice, C x C x V once,
    C x K x V three times."""
    total, chunk = 0, 64
    for layers, found in mixing(model):
        (heads,), (values,) = found["mixer.rates"], found["mixer.norm"]
        keys = found["mixer.state"] // (heads * values)
        inside = 2 * chunk * chunk * (2 * keys + values)
        chunked = heads * -(-n // chunk) * (inside + 6 * chunk * keys * values)
        ideal = 6 * heads * keys * values * n
        total += layers * (chunked - ideal + padded(found))
    return total


_DELTA = Cause("the rule runs in chunks of 64, the convolution over n + k - 1 places", delta)

CAUSES = {
    ("qwen3_next", "Qwen3NextForCausalLM"): _DELTA,
    ("qwen3_5", "Qwen3_5ForCausalLM"): _DELTA,
    ("qwen3_5_moe", "Qwen3_5MoeForCausalLM"): _DELTA,
    ("qwen3_5_text", "Qwen3_5ForCausalLM"): _DELTA,
    ("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"): _DELTA,
    ("olmo_hybrid", "OlmoHybridForCausalLM"): _DELTA,
}
