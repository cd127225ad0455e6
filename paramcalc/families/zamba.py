"""Zamba (arXiv:2405.16712) and Zamba 2 (arXiv:2411.15242): Mamba in every layer, and before some of
them a transformer layer that they share. It reads the stream and the embedding side by side; Zamba
2 may have several that take turns, each adapted to its places by small matrices."""

from __future__ import annotations

from typing import Any

from paramcalc.blocks import FeedForward, Norm, Rows
from paramcalc.blocks.linear import linear
from paramcalc.blocks.mamba import Mamba, Mamba2
from paramcalc.families.config import Config
from paramcalc.families.mamba import groups, mixer_names, rank
from paramcalc.families.names import LLAMA, Names
from paramcalc.families.stacks import Layers, layers
from paramcalc.ledger import Cache, Operation, Tensor
from paramcalc.sight import Causal

_HEADS = {"x": "x_proj_weight !", "dt": "dt_proj_weight !", "dt.bias": "dt_proj_bias !"}
_SHARED = {
    **{f"attention.{x}": f"self_attn.{x}_proj" for x in "qkvo"},
    "shared.norm1": "input_layernorm",
    "shared.norm2": "pre_ff_layernorm",
    "ffn.gate": "feed_forward.gate_proj",
    "ffn.up": "feed_forward.up_proj",
    "ffn.down": "feed_forward.down_proj",
}
_FUSED = dict.fromkeys(("ffn.gate", "ffn.up"), "feed_forward.gate_up_proj")
_LISTS = {"ffn": "feed_forward.gate_up_proj"} | {
    f"attention.{x}": f"self_attn.linear_{x}" for x in "qkv"
}
_ADAPTERS = {  # numbered by place and by side: another mark keeps the two sides apart
    f"{part}.adapter_{side}": f"{path}_adapter_list.{{i}}.{{i}}.weight {mark}"
    for part, path in _LISTS.items()
    for side, mark in (("down", "!"), ("up", "!!"))
}

TYPES: dict[str, dict[str, Any]] = {
    "zamba": dict(
        vocab_size=32000,
        tie_word_embeddings=True,
        hidden_size=3712,
        attention_hidden_size=None,
        intermediate_size=14848,
        num_hidden_layers=76,
        num_attention_heads=16,
        attention_head_dim=None,
        num_key_value_heads=16,
        n_mamba_heads=2,
        max_position_embeddings=4096,
        attn_layer_period=6,
        attn_layer_offset=4,
        mamba_d_state=16,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_dt_rank=None,
        mamba_conv_bias=True,
        mamba_proj_bias=False,
        layers_block_type=None,
    ),
    "zamba2": dict(
        vocab_size=32000,
        tie_word_embeddings=True,
        hidden_size=2560,
        attention_hidden_size=None,
        intermediate_size=None,
        num_hidden_layers=54,
        num_attention_heads=32,
        attention_head_dim=None,
        num_key_value_heads=None,
        n_mamba_heads=8,
        max_position_embeddings=4096,
        mamba_d_state=64,
        mamba_d_conv=4,
        mamba_expand=2,
        mamba_ngroups=1,
        mamba_headdim=None,
        add_bias_linear=False,
        num_mem_blocks=1,
        use_shared_attention_adapter=False,
        adapter_rank=128,
        layers_block_type=None,
    ),
}

KEYS = {"layers_block_type": ("layer_types",), "attention_head_dim": ("head_dim",)}


def NAMES(c: Config) -> Names:
    """A layer with the shared transformer holds its Mamba one step further in."""
    names = LLAMA | {
        "final_norm": "model.final_layernorm",
        "decoder.norm": "mamba_decoder.input_layernorm",
    }
    newer = c.model_type == "zamba2"
    own = f"model.layers.{{i}}.shared_transf{'ormer' if newer else ''}"
    inner = _SHARED | _FUSED | _ADAPTERS if newer else _SHARED
    names |= {row: f"{own}.{path}" for row, path in inner.items()}
    for row, place in (("mixer", "mamba"), ("decoder.mixer", "mamba_decoder.mamba")):
        names |= {f"{row}{x.removeprefix('mixer')}": p for x, p in mixer_names(place).items()}
        if c.model_type == "zamba":
            names |= {f"{row}.{x}": f"{place}.{p}" for x, p in _HEADS.items()}
    return names


def read(c: Config) -> dict[str, Any]:
    """As many layers as the list of their kinds has."""
    c.strict = True
    c.ignore("num_hidden_layers", "use_associative_scan", "use_conv_bias", "chunk_size", "head_dim")
    c.ignore("use_mem_eff_path", "use_mem_rope", "use_long_context", "layers_block_type")
    c.ignore("attn_layer_period", "attn_layer_offset")
    c.ignore(
        "hybrid_layer_ids", "kv_channels", "num_query_groups", "mamba_dt_rank", "mamba_headdim"
    )
    kinds = kinds_of(c)
    hybrids = sum(kinds)
    d = c.hidden_size
    plain = dict(label="mamba", norms_per_layer=1, blocks=(mixer(c, "mixer"),))
    inside = (
        attending(c),
        Rows(tuple(linear("linear.weight", "residual", d, d))),
        Norm("decoder.norm", (d,), False),
        mixer(c, "decoder.mixer"),
    )
    hybrid = dict(label="hybrid", norms_per_layer=0, blocks=inside)
    every: Layers = [hybrid if yes else plain for yes in kinds]
    return c.card(
        n_layers=len(kinds),
        n_heads=None,
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        attention=False,
        ffn=False,
        outer=(shared(c, hybrids),) if hybrids else (),
        layers=layers(every),
    )


def kinds_of(c: Config) -> list[bool]:
    """Return whether each layer has the shared transformer: as listed, or by each type's rule."""
    stated = c.layers_block_type
    if stated is not None:
        among = {"linear_attention": False, "mamba": False, "hybrid": True}
        if not isinstance(stated, list | tuple) or not stated:
            c.fail("layers_block_type", stated, "must be a list with an entry a layer")
        return [bool(c.choose("layers_block_type", kind, among)) for kind in stated]
    if c.model_type == "zamba":
        period, offset, n = c.attn_layer_period, c.attn_layer_offset, c.num_hidden_layers
        if period < 1:
            c.fail("attn_layer_period", period, "must be at least 1", "raise it")
        if n < 3:
            c.fail("num_hidden_layers", n, "the third layer is the first that attends", "raise it")
        return [False, False, True, *(i % period == offset for i in range(n - 3))]
    return [i in (6, 12, 18, 24, 30, 36, 42, 47, 51) for i in range(54)]  # whatever the number says


def mixer(c: Config, name: str) -> Mamba | Mamba2:
    """Return the mixer of a layer. Raises ``ConfigError`` where heads do not fill its width."""
    d, heads = c.hidden_size, c.n_mamba_heads
    inner = c.mamba_expand * d
    if heads < 1 or inner % heads:
        c.fail("n_mamba_heads", heads, f"must divide mamba_expand x hidden_size = {inner}")
    if c.model_type == "zamba":
        step, kernel = rank(c, "mamba_dt_rank"), c.mamba_d_conv
        conv, bias = c.mamba_conv_bias, c.mamba_proj_bias
        return Mamba(name, d, inner, c.mamba_d_state, step, kernel, conv, bias, n_heads=heads)
    width = inner // heads
    if c.get("mamba_headdim", width) != width:
        c.fail("mamba_headdim", c.mamba_headdim, f"times n_mamba_heads = {heads} must be {inner}")
    count, bias = groups(c, "mamba_ngroups", heads), c.add_bias_linear
    return Mamba2(name, d, heads, width, count, c.mamba_d_state, c.mamba_d_conv, True, bias, bias)


def _widths(c: Config) -> tuple[int, int, int]:
    """What the shared attention reads, its queries' width and its keys' width."""
    heads, wide = c.size("num_attention_heads"), 2 * c.hidden_size
    into = c.whole("attention_hidden_size", wide)
    width = c.whole("attention_head_dim", wide // heads)
    kv = c.size("num_key_value_heads", heads)
    if heads % kv:
        c.fail("num_key_value_heads", kv, f"must divide num_attention_heads = {heads}")
    return into, heads * width, kv * width


def attending(c: Config) -> Rows:
    """Return the shared attention's work, and the keys and values that each of its places keeps."""
    _, q, k = _widths(c)
    return Rows(
        (
            Operation("attention.scores", "attention", 2 * q, Causal()),
            Operation("attention.values", "attention", 2 * q, Causal()),
            Cache("attention.kv", 2 * k, Causal()),
        )
    )


def shared(c: Config, hybrids: int) -> Rows:
    """Return the transformer's weights: stored once (Zamba 2: ``num_mem_blocks`` times), run in
    ``hybrids`` layers. Where the head is not tied, the class ties nothing and stores one for each.
    """
    into, q, k = _widths(c)
    d, newer = c.hidden_size, c.model_type == "zamba2"
    wide = c.whole("intermediate_size", 4 * d)
    blocks = min(c.num_mem_blocks, hybrids) if newer else 1
    if blocks < 1:
        c.fail("num_mem_blocks", c.num_mem_blocks, "must be at least 1", "raise it")
    rows: list[Tensor] = [
        *linear("attention.q", "attention", q, into, shard="column"),
        *linear("attention.k", "attention", k, into, shard="column"),
        *linear("attention.v", "attention", k, into, shard="column"),
        *linear("attention.o", "attention", d, q, shard="row"),
        *Norm("shared.norm1", (into,), False).rows(),
        *Norm("shared.norm2", (d,), False).rows(),
        *FeedForward("ffn", d, wide, True, newer and c.add_bias_linear).rows(),
    ]
    tied = c.tie_word_embeddings
    copies = blocks if tied else hybrids
    rows = [row._replace(copies=copies, active=copies, runs=hybrids) for row in rows]
    if newer:
        # an untied transformer still has an adapter for every place of its turn
        turns = [len(range(turn, hybrids, blocks)) for turn in range(blocks)]
        copies = hybrids if tied else sum(count * count for count in turns)
        rows += [row._replace(copies=copies, runs=hybrids) for row in adapters(c, into, wide)]
    return Rows(tuple(row._replace(active=min(row.copies, hybrids)) for row in rows))


def adapters(c: Config, into: int, wide: int) -> list[Tensor]:
    """Return Zamba 2's adapters of one place: pairs of matrices through a bottleneck."""
    low, d = c.adapter_rank, c.hidden_size
    rows = [
        Tensor("ffn.adapter_down", "ffn", (low, d)),
        Tensor("ffn.adapter_up", "ffn", (2 * wide, low)),
    ]
    if c.use_shared_attention_adapter:
        for part in "qkv":
            own = f"attention.{part}.adapter"
            rows.append(Tensor(f"{own}_down", "attention", (low, into)))
            rows.append(Tensor(f"{own}_up", "attention", (into, low)))
    return rows
