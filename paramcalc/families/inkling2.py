"""Inkling 2: a layer reads the stream by attending over the blocks of layers before it, queries are
gated, sinks come from the stream; full layers mix keys and values with taps made for each token.
The looped model runs its middle layers several times, which pass messages to themselves."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import Attention, MixtureOfExperts
from paramcalc.blocks.rows import Repeated, Rows, matrix, scale, vector
from paramcalc.families.config import Config, layers
from paramcalc.families.inkling import WORDS
from paramcalc.families.names import LLAMA, MOE
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.numbers import ceil_div
from paramcalc.sight import Causal, State, Window

NAMES = (
    LLAMA
    | MOE
    | {f"attention.{x}": f"self_attn.{x}_proj.linear" for x in "qkvo"}
    | {"attention.gate": "self_attn.o_proj.gate_proj"}
)

TYPES: dict[str, dict[str, Any]] = {
    "inkling2_text": dict(
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
        d_rel=16,
        rel_extent=1024,
        log_scaling_n_floor=128000,
        log_scaling_alpha=0.1,
        layer_types=None,
        max_position_embeddings=1048576,
        conv_kernel_size=4,
        moe_intermediate_size=2304,
        num_experts_per_tok=8,
        route_scale=8.0,
        qk_l2_clip_threshold=22.627416997969522,
        rel_l2_clip_threshold=8.0,
        n_layers_per_attn_res_block=6,
        mlp_gate_softcap=4.0,
        mlp_up_softcap=25.0,
        sliding_window=1024,
        num_experts=384,
    ),
    "inkling2_loop_text": dict(
        vocab_size=201024,
        unpadded_vocab_size=200058,
        hidden_size=2304,
        num_hidden_layers=24,
        num_attention_heads=24,
        num_key_value_heads=8,
        head_dim=128,
        swa_num_attention_heads=24,
        swa_num_key_value_heads=8,
        swa_head_dim=128,
        d_rel=16,
        rel_extent=1024,
        log_scaling_n_floor=8192,
        log_scaling_alpha=0.1,
        layer_types=None,
        max_position_embeddings=1048576,
        conv_kernel_size=4,
        moe_intermediate_size=1152,
        num_experts_per_tok=8,
        route_scale=8.0,
        qk_l2_clip_threshold=22.627416997969522,
        rel_l2_clip_threshold=8.0,
        n_layers_per_attn_res_block=6,
        mlp_gate_softcap=4.0,
        mlp_up_softcap=25.0,
        loop_layer_index_start=6,
        loop_layer_index_end=18,
        loop_num_passes=3,
        loop_gate_rank=64,
        sliding_window=1024,
        num_experts=128,
    ),
}

KEYS = {
    "sliding_window": ("sliding_window_size",),
    "num_experts": ("n_routed_experts", "num_local_experts"),
    "moe_intermediate_size": ("intermediate_size",),
    "conv_kernel_size": ("sconv_kernel_size",),
    "max_position_embeddings": ("model_max_length",),
}

QUIET = (
    "log_scaling_n_floor",
    "log_scaling_alpha",
    "route_scale",
    "mlp_gate_softcap",
    "mlp_up_softcap",
    "qk_l2_clip_threshold",
    "rel_l2_clip_threshold",
    "intermediate_size",
)


def read(c: Config) -> dict[str, Any]:
    """Every layer is spelled out, since each reads as many blocks as lie before it."""
    d, n, every = c.hidden_size, c.num_hidden_layers, c.n_layers_per_attn_res_block
    if every < 1:
        c.fail("n_layers_per_attn_res_block", every, "must be at least 1", "raise it")
    kinds = c.get("layer_types")
    if kinds is None:
        windows = [(i + 1) % 6 != 0 for i in range(n)]
    else:
        windows = [
            bool(c.choose("layer_types", k, WORDS)) for k in c.per_layer("layer_types", n, kinds)
        ]
    start, stop, passes = 0, 0, 1
    outer: list[Row] = [
        scale("model.embed_tokens.embed_norm.weight", d),
        vector("model.final_input.query", "residual", d),
        _mix("model.final_input.mix", 1, ceil_div(n, every) + 1, d),
    ]
    if c.model_type == "inkling2_loop_text":
        start, stop, passes = c.loop_layer_index_start, c.loop_layer_index_end, c.loop_num_passes
        if not 0 <= start < stop <= n:
            c.fail("loop_layer_index_end", stop, f"must lie between {start} and {n}")
        outer.append(vector("model.message_input.query", "residual", stop - start, 4, d))
    each: list[dict[str, Any]] = []
    for i, window in enumerate(windows):
        blocks: tuple[Any, ...] = (*_layer(c, window), Rows(tuple(_reading(c, i, window))))
        if start <= i < stop:
            own = ceil_div(stop, every) - ceil_div(start, every)
            blocks = (Repeated(blocks, passes), Rows(tuple(_messages(c, passes, own))))
        each.append({"blocks": blocks})
    words = c.get("unpadded_vocab_size") or c.vocab_size
    outer.append(matrix("lm_head.weight", "head", words, d, "vocab"))
    c.ignore(*QUIET, "tie_word_embeddings")
    return c.card(
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        attention=False,
        ffn=False,
        norms_per_layer=0,
        head="none",
        tie_embeddings=False,
        outer=(Rows(tuple(outer)),),
        layers=layers(each),
    )


def _mix(name: str, queries: int, states: int, d: int) -> Operation:
    """A query over the blocks' states: scores and values, for each token."""
    return Operation(name, "residual", 4 * queries * states * d, State())


def _reading(c: Config, i: int, window: bool) -> list[Row]:
    """What attention and network of layer ``i`` read: blocks are closed before every
    ``n_layers_per_attn_res_block``-th layer's network."""
    d, every = c.hidden_size, c.n_layers_per_attn_res_block
    before, queries = ceil_div(i, every), 1 if window else 3
    rows: list[Row] = []
    if i:
        shape = (d,) if window else (3, d)
        rows.append(vector("attention_input.query", "residual", *shape))
        rows.append(_mix("attention_input.mix", queries, before + 1, d))
    rows.append(vector("mlp_input.query", "residual", d))
    rows.append(_mix("mlp_input.mix", 1, before + (i % every == 0) + 1, d))
    return rows


def _layer(c: Config, window: bool) -> tuple[Any, ...]:
    d, kernel = c.hidden_size, c.conv_kernel_size
    prefix = "swa_" if window else ""
    heads = getattr(c, f"{prefix}num_attention_heads")
    kv, width = getattr(c, f"{prefix}num_key_value_heads"), getattr(c, f"{prefix}head_dim")
    c.ignore("num_attention_heads", "num_key_value_heads", "head_dim")
    sight = Window(c.sliding_window) if window else Causal()
    extent = c.sliding_window if window else c.rel_extent
    own, bias = "self_attn", "self_attn.relative_position_bias"
    rows: list[Row] = [
        Tensor(f"{own}.q_proj.norm.scale", "norm", (heads, width), "scale"),
        matrix(f"{own}.sink_proj.weight", "attention", heads, d),
        Tensor(f"{bias}.proj", "attention", (c.d_rel, extent), runs=heads),
        matrix(f"{bias}.linear.weight", "attention", heads * c.d_rel, d),
        Tensor(f"{bias}.norm.scale", "norm", (heads, c.d_rel), "scale"),
        scale("post_attention_layernorm.weight", d),
    ]
    names = ("input_layernorm",) if window else tuple(f"{x}_input_layernorm" for x in "qkv")
    rows += [scale(f"{name}.weight", d) for name in names]
    for name in ("k_proj", "v_proj"):
        size, conv = kv * width, f"{own}.{name}.sconv"
        if window:
            rows.append(Tensor(f"{conv}.conv1d.weight", "mixer", (size, 1, kernel), "conv"))
        else:
            rows.append(vector(f"{conv}.static_weight", "mixer", kernel, size))
            rows.append(matrix(f"{conv}.weight_proj.weight", "mixer", kv * kernel, d))
        rows.append(Cache(f"{conv}.state", size * (kernel - 1), State(), of="state"))
    for name in ("post_attention_convolution", "post_mlp_convolution"):
        rows.append(Tensor(f"{name}.conv1d.weight", "mixer", (d, 1, kernel), "conv"))
        rows.append(Cache(f"{name}.state", d * (kernel - 1), State(), of="state"))
    return (
        Attention("attention", d, heads, kv, width, width, sight, gate="element"),
        MixtureOfExperts(
            "ffn", d, c.num_experts, c.num_experts_per_tok, c.moe_intermediate_size, True
        ),
        Rows(tuple(rows)),
    )


def _messages(c: Config, passes: int, states: int) -> list[Row]:
    """From the second pass on, four messages out of the pass before, each mixed in by a gate."""
    d, rank = c.hidden_size, c.loop_gate_rank
    again = passes - 1
    rows: list[Row] = []
    for name in ("q", "k", "v", "mlp"):
        gate = f"{name}_message_gate"
        for part, shape in (
            ("down_proj", (rank, 2 * d)),
            ("forget_gate_proj", (d, rank)),
            ("message_gate_proj", (d, rank)),
        ):
            rows.append(Tensor(f"{gate}.{part}.weight", "residual", shape, runs=again))
    rows.append(_mix("message_input.mix", 4 * again, states, d))
    return rows
