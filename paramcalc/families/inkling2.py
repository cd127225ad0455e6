"""Inkling 2 (thinkingmachines/Inkling-2-Small) and its looped form (Inkling-2-Mini): Inkling's
profiles over distance and short convolutions, a gate and sinks that depend on the token, and
instead of plain residuals attention over the depth: each sublayer reads a mix of the sums of
earlier blocks of layers.

A looped model passes its middle layers ``loop_num_passes`` times; from the second pass on, gates
let in what the pass before has left.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from paramcalc.blocks import Attention, Block, MixtureOfExperts, Norm
from paramcalc.blocks.again import Again
from paramcalc.blocks.linear import linear
from paramcalc.blocks.rows import Rows, matrix, scale, vector
from paramcalc.families.config import Config
from paramcalc.families.inkling import KEYS as OLDER
from paramcalc.families.inkling import convolution, heads_of, profiles, slides
from paramcalc.families.names import LLAMA, MOE
from paramcalc.families.stacks import Layers, layers
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import ceil_div
from paramcalc.sight import Causal, State, Window

_ATTENTION = {
    "attention.q": "q_proj.linear",
    "attention.k": "k_proj.linear",
    "attention.v": "v_proj.linear",
    "attention.o": "o_proj.linear",
    "attention.gate": "o_proj.gate_proj",
    "attention.q_norm": "q_proj.norm.scale !",
    "attention.sink": "sink_proj",
    "attention.relative": "relative_position_bias.linear",
    "attention.relative_norm": "relative_position_bias.norm.scale !",
    "attention.profiles": "relative_position_bias.proj !T",
    "attention.k_conv": "k_proj.sconv.conv1d",
    "attention.v_conv": "v_proj.sconv.conv1d",
    "attention.k_taps": "k_proj.sconv.static_weight !",
    "attention.v_taps": "v_proj.sconv.static_weight !",
    "attention.k_taps.token": "k_proj.sconv.weight_proj",
    "attention.v_taps.token": "v_proj.sconv.weight_proj",
}

NAMES = (
    LLAMA
    | MOE
    | {row: f"self_attn.{path}" for row, path in _ATTENTION.items()}
    | {
        "embedding_norm": "model.embed_tokens.embed_norm",
        "attention.conv": "post_attention_convolution.conv1d",
        "ffn.conv": "post_mlp_convolution.conv1d",
        **{f"norm1.{x}": f"{x}_input_layernorm" for x in "qkv"},
    }
)

_SMALL: dict[str, Any] = dict(
    vocab_size=201024,
    unpadded_vocab_size=200058,
    hidden_size=4608,
    num_hidden_layers=48,
    num_attention_heads=48,
    num_key_value_heads=8,
    head_dim=128,
    swa_num_attention_heads=48,
    swa_num_key_value_heads=8,
    swa_head_dim=128,
    sliding_window_size=1024,
    d_rel=16,
    rel_extent=1024,
    layer_types=None,
    max_position_embeddings=1048576,
    conv_kernel_size=4,
    moe_intermediate_size=2304,
    n_routed_experts=384,
    num_experts_per_tok=8,
    n_layers_per_attn_res_block=6,
)

TYPES: dict[str, dict[str, Any]] = {
    "inkling2_text": dict(_SMALL),
    "inkling2_loop_text": dict(
        _SMALL,
        hidden_size=2304,
        num_hidden_layers=24,
        num_attention_heads=24,
        swa_num_attention_heads=24,
        moe_intermediate_size=1152,
        n_routed_experts=128,
        loop_layer_index_start=6,
        loop_layer_index_end=18,
        loop_num_passes=3,
        loop_gate_rank=64,
    ),
}

WRAPS = {
    "inkling2": {"as": "inkling2_text"},
    "inkling2_loop": {"as": "inkling2_loop_text"},
}

KEYS = OLDER | {"moe_intermediate_size": ("intermediate_size",)}


def read(c: Config) -> dict[str, Any]:
    """The layers in up to four stretches: the first, those before the loop, inside it, after it.
    The head is never tied and has ``unpadded_vocab_size`` rows."""
    c.strict = True
    c.ignore("tie_word_embeddings", "log_scaling_n_floor", "number_of_conv_states")
    d, n, sliding = c.hidden_size, c.num_hidden_layers, slides(c)
    start, stop, passes = loop(c)
    outer: list[Row] = [vector("model.final_input.query", "residual", d)]
    if passes:
        outer.append(vector("model.message_input.query", "residual", stop - start, 4, d))
    outer.append(depth(c, sliding))
    kinds: Layers = []
    for i, slide in enumerate(sliding):
        blocks, label = layer(c, slide, i == 0), "sliding" if slide else "full"
        label = "first" if i == 0 else f"{label}-after" if i >= stop else label
        if start <= i < stop:
            blocks = (Again(blocks, passes), Again((gates(c),), passes - 1))
            label += "-looped"
        kinds.append({"label": label, "blocks": blocks})
    ends = (0, 1, min(start, n), min(stop, n), n)
    stretches = (kinds[a:b] for a, b in pairwise(ends))
    cut = c.size("unpadded_vocab_size")
    if cut != c.vocab_size:
        outer.append(Tensor("head", "head", (cut, d), "matmul", "vocab"))
    return c.card(
        attention=False,
        ffn=False,
        norms_per_layer=0,
        n_kv_heads=None,
        embedding_norm=True,
        tie_embeddings=False,
        head="lm" if cut == c.vocab_size else "none",
        layers=[group for stretch in stretches for group in counted(stretch)],
        outer=(Rows(tuple(outer)),),
    )


def counted(kinds: Layers) -> Layers:
    """The groups of a stretch of layers, every one with how many layers it has."""
    if not kinds:
        return []
    found = layers(kinds)
    found[-1]["repeat"] = len(kinds) - sum(group["repeat"] for group in found[:-1])
    return found


def loop(c: Config) -> tuple[int, int, int]:
    """The first layer of the loop, the one after its last, and the passes; no loop is (n, n, 0)."""
    n = c.num_hidden_layers
    if "loop_num_passes" not in TYPES[c.model_type]:
        return n, n, 0
    older, block = c.sub("loop_config"), c.size("n_layers_per_attn_res_block")
    keys = {
        "core_start": "loop_layer_index_start",
        "core_end": "loop_layer_index_end",
        "num_passes": "loop_num_passes",
    }
    stated = [older.size(old, c.size(key)) for old, key in keys.items()]
    for key, value in zip(keys.values(), stated[:2], strict=False):
        if value % block:
            c.fail(key, value, f"must be a multiple of n_layers_per_attn_res_block = {block}")
    start, stop, passes = stated
    if stop <= start:
        c.fail("loop_layer_index_end", stop, f"must be above loop_layer_index_start = {start}")
    return start, stop, passes


def layer(c: Config, sliding: bool, first: bool) -> tuple[Block, ...]:
    """Gated attention and experts. Full layers mix three inputs, for Q, K and V, and their short
    convolutions have taps that depend on the token; the first layer mixes nothing."""
    d, kernel, heads = c.hidden_size, c.size("conv_kernel_size"), heads_of(c, sliding)
    n_heads, kv, width = heads["n_heads"], heads["n_kv_heads"], heads["head_dim"]
    sight = Window(heads["window"]) if sliding else Causal()
    queries: list[Row] = [vector("mlp_input.query", "residual", d)]
    if not first:
        shape = (d,) if sliding else (3, d)
        queries.append(vector("attention_input.query", "residual", *shape))
    own: list[Block]
    if sliding:
        own = [convolution(f"attention.{x}_conv", kv * width, kernel) for x in "kv"]
        own.append(Norm("norm1", (d,), False))
    else:
        own = [token_convolution(f"attention.{x}_taps", d, kv, width, kernel) for x in "kv"]
        own += [Norm(f"norm1.{x}", (d,), False) for x in "qkv"]
    extras = (
        scale("attention.q_norm", n_heads, width),
        scale("attention.relative_norm", n_heads, c.size("d_rel")),
        matrix("attention.sink", "attention", n_heads, d),
        *queries,
    )
    experts, top_k = c.size("n_routed_experts"), c.size("num_experts_per_tok")
    if top_k > experts:
        c.fail("num_experts_per_tok", top_k, f"cannot exceed n_routed_experts = {experts}")
    return (
        Attention("attention", d, n_heads, kv, width, width, sight, gate="element"),
        profiles(c, sliding),
        *own,
        Norm("norm2", (d,), False),
        MixtureOfExperts(
            "ffn", d, experts, top_k, c.size("moe_intermediate_size"), True, correction="buffer"
        ),
        convolution("attention.conv", d, kernel),
        convolution("ffn.conv", d, kernel),
        Rows(extras),
    )


def token_convolution(name: str, d: int, heads: int, width: int, kernel: int) -> Rows:
    """A short convolution whose taps are the sum of stored ones, a channel each, and ones that a
    matrix makes from the token, a head each."""
    channels = heads * width
    return Rows(
        (
            Tensor(name, "mixer", (kernel, channels), "conv"),
            matrix(f"{name}.token", "mixer", heads * kernel, d),
            Cache(f"{name}.state", channels * kernel, State(), of="state"),
        )
    )


def gates(c: Config) -> Rows:
    """What lets the message of the pass before into Q, K, V and the experts: a bottleneck of both,
    then one value a channel to keep and one to take."""
    d, rank = c.hidden_size, c.sub("loop_config").size("gate_rank", c.size("loop_gate_rank"))
    rows: list[Row] = []
    for part in ("q", "k", "v", "mlp"):
        own = f"{part}_message_gate"
        rows += linear(f"{own}.down_proj.weight", "residual", rank, 2 * d)
        for gate in ("forget", "message"):
            rows += linear(f"{own}.{gate}_gate_proj.weight", "residual", d, rank)
    return Rows(tuple(rows))


def depth(c: Config, sliding: list[bool]) -> Operation:
    """Attention over the depth, of the whole model: a query costs 4 d FLOPs a source. Sources are
    the stream at the start of each block so far, and the block begun; before the first sublayer of
    a layer that begins a block, the block just ended. A message reads the same of the pass before,
    of the blocks in the loop alone."""
    n, block, (start, stop, passes) = len(sliding), c.size("n_layers_per_attn_res_block"), loop(c)
    reads = ceil_div(n, block) + 1
    for i, slide in enumerate(sliding):
        queries = 0 if i == 0 else 1 if slide else 3
        own = queries * (ceil_div(i, block) + 1) + i // block + 2
        reads += own * (passes if start <= i < stop else 1)
    looped = max(min(stop, n) - start, 0)
    reads += max(passes - 1, 0) * looped * 4 * max(ceil_div(looped, block), 1)
    return Operation("residual.depth", "residual", 4 * c.hidden_size * reads, State())
