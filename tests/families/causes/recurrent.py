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
        found = {name.removeprefix("decoder."): size for name, size in sizes(layer).items()}
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


def element_wise(model: Model, n: int) -> int:
    """A recurrence channel by channel multiplies no matrices; the convolution's padding."""
    ops = (o for o in model.ledger.operations if o.name.endswith(".recurrence"))
    return convolutions(model, n) - sum(o.copies * o.flops_per_pair * n for o in ops)


def memory(model: Model, n: int) -> int:
    """xLSTM: whole chunks multiply all pairs inside; the sum of keys is added up element by
    element."""
    assert model.reading is not None
    chunk, total = model.reading.data.get("chunk_size") or 64, 0
    for layer in model.ledger.layers:
        found = sizes(layer)
        keys, values = found["mixer.q"][0], found["mixer.v"][0]
        inside = 2 * (n // chunk) * chunk * chunk * (keys + values)
        total += layer.n_layers * (inside - 2 * keys * n)
    return total


def compressed(model: Model, n: int) -> int:
    """ZAYA: the first convolution runs over the k - 1 places before the second's; the value of the
    token before the first is computed from zeros."""
    total = 0
    for layer in model.ledger.layers:
        found = sizes(layer)
        channels, _, kernel = found["attention.conv"]
        places = found["attention.conv_heads"][2] - 1
        half, d = found["attention.v_before"]
        total += layer.n_layers * (2 * channels * kernel * places + 2 * half * d)
    return total


_BARE = Cause("what decays channel by channel multiplies no matrices", element_wise)
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
    ("recurrent_gemma", "RecurrentGemmaForCausalLM"): _BARE,
    ("rwkv", "RwkvForCausalLM"): _BARE,
    ("xlstm", "xLSTMForCausalLM"): Cause(
        "memories are read and written in chunks, keys summed up element by element", memory
    ),
    ("zamba", "ZambaForCausalLM"): _SCAN,
    ("zamba2", "Zamba2ForCausalLM"): Cause(_CHUNKS, chunks("chunk_size", 256)),
    ("zaya", "ZayaForCausalLM"): Cause(
        "a convolution runs over more places, a value for the place before the first", compressed
    ),
    ("qwen3_next", "Qwen3NextForCausalLM"): _DELTA,
    ("qwen3_5", "Qwen3_5ForCausalLM"): _DELTA,
    ("qwen3_5_moe", "Qwen3_5MoeForCausalLM"): _DELTA,
    ("qwen3_5_text", "Qwen3_5ForCausalLM"): _DELTA,
    ("qwen3_5_moe_text", "Qwen3_5MoeForCausalLM"): _DELTA,
    ("olmo_hybrid", "OlmoHybridForCausalLM"): _DELTA,
}
