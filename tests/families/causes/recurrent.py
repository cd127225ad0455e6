"""Delta nets and state-space models: recurrences in chunks or without their updates, and
convolutions padded on both sides."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def scan(model: Model, n: int) -> int:
    """Mamba's state is read by a matrix product and written element by element."""
    return sum(
        layers * (padded(found) - 2 * found["mixer.state"] * n) for layers, found in mixing(model)
    )


def chunked_scan(chunk: int, model: Model, n: int) -> int:
    """Mamba 2 per head and chunk of C, padded to whole chunks: C x C x N and C x C x P inside it,
    C x N x P twice with the state; between c chunks and the start (c + 1) x (c + 1) x N x P."""
    total, count = 0, -(-n // chunk)
    for layers, found in mixing(model):
        (heads,) = found["mixer.rates"]
        channels, state = found["mixer.conv"][0], found["mixer.state"]
        width = found["mixer.out"][1] // heads
        wide = state // (heads * width)
        assert (channels - heads * width) % (2 * wide) == 0
        inside = count * (2 * chunk * chunk * (wide + width) + 4 * chunk * wide * width)
        between = 2 * (count + 1) ** 2 * wide * width
        ideal = 4 * state * n
        total += layers * (heads * (inside + between) - ideal + padded(found))
    return total


def chunks(key: str, default: int) -> Callable[[Model, int], int]:
    """``chunked_scan`` with the chunk that a config states."""

    def extra(model: Model, n: int) -> int:
        assert model.reading is not None
        return chunked_scan(model.reading.data.get(key) or default, model, n)

    return extra


def convolutions(model: Model, n: int) -> int:
    """The convolutions' padding alone."""
    return sum(layers * padded(found) for layers, found in mixing(model))


def lightning(model: Model, n: int) -> int:
    """Inside each block of at most B tokens every token meets every other, beside the state."""
    assert model.reading is not None
    block = model.reading.data.get("block_size") or 256
    inside = n // block * block**2 + (n % block) ** 2
    wide = sum(
        int(layer.n_layers) * sizes(layer)["mixer.norm"][0]
        for layer in model.ledger.layers
        if "mixer.norm" in sizes(layer)
    )
    return int(4 * inside * wide)


_PADDED = Cause("the convolution runs over n + k - 1 places", convolutions)
_SCAN = Cause("the state is written element by element, the convolution padded", scan)
_CHUNKS = "the scan runs in chunks, the convolution over n + k - 1 places"
_DELTA = Cause("the rule runs in chunks of 64, the convolution over n + k - 1 places", delta)

CAUSES = {
    ("mamba", "MambaForCausalLM"): _SCAN,
    ("falcon_mamba", "FalconMambaForCausalLM"): _SCAN,
    ("mamba2", "Mamba2ForCausalLM"): Cause(_CHUNKS, chunks("chunk_size", 256)),
    ("bamba", "BambaForCausalLM"): Cause(_CHUNKS, chunks("mamba_chunk_size", 256)),
    ("falcon_h1", "FalconH1ForCausalLM"): Cause(_CHUNKS, chunks("mamba_chunk_size", 256)),
    ("granitemoehybrid", "GraniteMoeHybridForCausalLM"): Cause(
        _CHUNKS, chunks("mamba_chunk_size", 256)
    ),
    ("nemotron_h", "NemotronHForCausalLM"): Cause(_CHUNKS, chunks("chunk_size", 128)),
    ("jamba", "JambaForCausalLM"): _SCAN,
    ("lfm2", "Lfm2ForCausalLM"): _PADDED,
    ("lfm2_moe", "Lfm2MoeForCausalLM"): _PADDED,
    ("lfm3", "Lfm3ForCausalLM"): _PADDED,
    ("minimax", "MiniMaxForCausalLM"): Cause(
        "all pairs of a block of tokens are multiplied, beside the state", lightning
    ),
    ("qwen3_next", "Qwen3NextForCausalLM"): _DELTA,
    ("qwen3_5", "Qwen3_5ForCausalLM"): _DELTA,
    ("qwen3_5_moe", "Qwen3_5MoeForCausalLM"): _DELTA,
    ("qwen3_5_text", "Qwen3_5ForCausalLM"): _DELTA,
    ("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"): _DELTA,
    ("olmo_hybrid", "OlmoHybridForCausalLM"): _DELTA,
}
