"""DeepSeek-V4 (its report and model page, 2026): several residual streams, and one key a token that
is its own value, seen over a window, and compressed into an entry a block further back.

Layers are of three kinds: the window alone; heavily compressed (blocks of 128, all seen);
compressed sparse (overlapping blocks of 4, of which an indexer picks the best). Every layer has
experts; the first ones look them up in a table by token.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from paramcalc.blocks import Norm, Rows
from paramcalc.blocks.hyper import HyperConnection, HyperHead
from paramcalc.blocks.linear import linear
from paramcalc.families.config import Config
from paramcalc.families.deepseek import depth
from paramcalc.families.names import LLAMA, MOE
from paramcalc.families.stacks import layers
from paramcalc.ledger import Cache, Operation, Row, Tensor
from paramcalc.sight import Compressed, State, Window

SPARSE, HEAVY, SLIDING = (
    "compressed_sparse_attention",
    "heavily_compressed_attention",
    "sliding_attention",
)

_INDEXER = "self_attn.compressor.indexer"
NAMES = (
    LLAMA
    | MOE
    | {
        "attention.q_down": "self_attn.q_a_proj",
        "attention.q_norm": "self_attn.q_a_norm",
        "attention.q_up": "self_attn.q_b_proj",
        "attention.kv": "self_attn.kv_proj",
        "attention.kv_norm": "self_attn.kv_norm",
        "attention.o_down": "self_attn.o_a_proj",
        "attention.o_up": "self_attn.o_b_proj",
        "attention.compressor.kv": "self_attn.compressor.kv_proj",
        "attention.compressor.gate": "self_attn.compressor.gate_proj",
        "attention.compressor.places": "self_attn.compressor.position_bias !",
        "attention.compressor.norm": "self_attn.compressor.kv_norm",
        "attention.indexer.kv": f"{_INDEXER}.kv_proj",
        "attention.indexer.gate": f"{_INDEXER}.gate_proj",
        "attention.indexer.places": f"{_INDEXER}.position_bias !",
        "attention.indexer.norm": f"{_INDEXER}.kv_norm",
        "attention.indexer.q": f"{_INDEXER}.q_b_proj",
        "attention.indexer.weights": f"{_INDEXER}.scorer.weights_proj",
        "attention.streams": "attn_hc.fn !",
        "attention.streams.base": "attn_hc.base !",
        "attention.streams.scale": "attn_hc.scale !",
        "ffn.streams": "ffn_hc.fn !",
        "ffn.streams.base": "ffn_hc.base !",
        "ffn.streams.scale": "ffn_hc.scale !",
        "ffn.router.table": "mlp.gate.tid2eid !",
        "streams": "model.hc_head.hc_fn !",
        "streams.base": "model.hc_head.hc_base !",
        "streams.scale": "model.hc_head.hc_scale !",
    }
)

KEYS = {
    "n_routed_experts": ("num_local_experts",),
    "moe_intermediate_size": ("intermediate_size",),
}

TYPES = {
    "deepseek_v4": dict(
        vocab_size=129280,
        hidden_size=4096,
        moe_intermediate_size=2048,
        num_hidden_layers=43,
        num_attention_heads=64,
        head_dim=512,
        q_lora_rank=1024,
        num_experts_per_tok=6,
        n_routed_experts=256,
        max_position_embeddings=1048576,
        layer_types=None,
        mlp_layer_types=None,
        compress_rates=None,
        hc_mult=4,
        sliding_window=128,
        o_groups=8,
        o_lora_rank=1024,
        index_n_heads=64,
        index_head_dim=128,
        index_topk=512,
        tie_word_embeddings=False,
        mlp_bias=False,
    ),
}


def read(c: Config) -> dict[str, Any]:
    """Three kinds of attention, one shared expert of an expert's width."""
    c.ignore("num_key_value_heads", "attention_bias", "qk_rope_head_dim", "n_shared_experts")
    c.ignore("hc_sinkhorn_iters")
    d, streams = c.size("hidden_size"), c.size("hc_mult")
    joined = (
        HyperConnection("attention.streams", d, streams, True),
        HyperConnection("ffn.streams", d, streams, True),
    )
    table = Tensor(
        "ffn.router.table",
        "router",
        (c.size("vocab_size"), c.size("num_experts_per_tok")),
        "buffer",
    )
    places = list(zip(attentions(c), by_table(c), strict=True))
    own = {kind: tuple(attention(c, kind)) for kind in {kind for kind, _ in places}}
    kinds = [
        dict(blocks=(Rows((*own[kind], table)), *joined), router_correction="none")
        if fixed
        else dict(blocks=(Rows(own[kind]), *joined))
        for kind, fixed in places
    ]
    return c.card(
        n_kv_heads=None,
        head_dim=None,
        d_ff=None,
        attention=False,
        norms_per_layer=2,
        gated_ffn=True,
        ffn_bias=c.mlp_bias,
        expert_bias=False,
        n_experts=c.n_routed_experts,
        top_k=c.num_experts_per_tok,
        d_expert=c.moe_intermediate_size,
        d_shared=c.moe_intermediate_size,
        router_correction="buffer",
        layers=layers(kinds),
        outer=(HyperHead("streams", d, streams),),
        mtp=prediction(c, joined),
    )


def attentions(c: Config) -> list[str]:
    """The kind of each layer: as listed, from the older list of ratios, or two heavy ones and then
    heavy and sparse by turns."""
    n = depth(c)
    kinds, ratios = c.layer_types, c.get("compress_ratios")
    if kinds is None and ratios is not None:
        named = {0: SLIDING, 4: SPARSE, 128: HEAVY}
        if not isinstance(ratios, list) or any(
            type(r) is not int or r not in named for r in ratios
        ):
            c.fail("compress_ratios", ratios, "must be a list of 0, 4 and 128")
        kinds = [named[ratio] for ratio in ratios]
    if kinds is None:
        kinds = [HEAVY if i < 2 or i % 2 == 0 else SPARSE for i in range(n)]
    known = {kind: kind for kind in (SLIDING, SPARSE, HEAVY)}
    return [c.choose("layer_types", kind, known) for kind in _first(c, "layer_types", n, kinds)]


def _first(c: Config, key: str, n: int, kinds: Any) -> list[Any]:
    """A list may go on with the layers of multi-token prediction."""
    return c.per_layer(key, n, kinds[:n] if isinstance(kinds, list) else kinds)


def by_table(c: Config) -> list[bool]:
    """Which layers look their experts up by token: the first three unless the file says."""
    n = depth(c)
    kinds = c.mlp_layer_types
    if kinds is None:
        first = c.get("num_hash_layers", 3)
        if type(first) is not int:
            c.fail("num_hash_layers", first, "must be a whole number")
        return [i < first for i in range(n)]
    among = {"hash_moe": True, "moe": False}
    every = _first(c, "mlp_layer_types", n, kinds)
    return [c.choose("mlp_layer_types", kind, among) for kind in every]


def rate(c: Config, kind: str) -> int:
    """How many tokens a compressed entry stands for."""
    older, usual = {SPARSE: ("compress_rate_csa", 4), HEAVY: ("compress_rate_hca", 128)}[kind]
    rates = c.compress_rates or {}
    if not isinstance(rates, dict):
        c.fail("compress_rates", rates, "must be a section")
    return c.size(older, rates.get(kind, usual))


def attention(c: Config, kind: str) -> Iterator[Row]:
    """The window's part (one key a token, its own value), the output in groups, and what sees
    further. A key is ``head_dim`` wide, and so is what is cached of it."""
    d, heads, width = c.size("hidden_size"), c.size("num_attention_heads"), c.size("head_dim")
    latent, groups, rank = c.size("q_lora_rank"), c.size("o_groups"), c.size("o_lora_rank")
    local = Window(c.size("sliding_window"))
    yield from linear("attention.q_down", "attention", latent, d)
    yield from Norm("attention.q_norm", (latent,), False).rows()
    yield from linear("attention.q_up", "attention", heads * width, latent, shard="column")
    yield from linear("attention.kv", "attention", width, d)
    yield from Norm("attention.kv_norm", (width,), False).rows()
    yield from linear("attention.o_down", "attention", groups * rank, heads * width // groups)
    yield from linear("attention.o_up", "attention", d, groups * rank)
    yield Tensor("attention.sinks", "attention", (heads,), "bias", "column")
    yield from _products("attention", heads * width, local)
    yield Cache("attention.kv", width, local)
    if kind == HEAVY:
        size = rate(c, HEAVY)
        yield from compressor("attention.compressor", d, width, size, False)
        yield from _products("attention.compressor", heads * width, Compressed(size))
    elif kind == SPARSE:
        size = rate(c, SPARSE)
        yield from compressor("attention.compressor", d, width, size, True)
        best = Compressed(size, c.size("index_topk"))
        yield from _products("attention.compressor", heads * width, best)
        small, key = c.size("index_n_heads"), c.size("index_head_dim")
        yield from compressor("attention.indexer", d, key, size, True)
        yield from linear("attention.indexer.q", "attention", small * key, latent)
        yield from linear("attention.indexer.weights", "attention", small, d)
        yield Operation("attention.indexer.scores", "attention", 2 * small * key, Compressed(size))


def _products(name: str, width: int, sight: Window | Compressed) -> Iterator[Operation]:
    """Scores and weighted values, of keys that are their own values."""
    yield Operation(f"{name}.scores", "attention", 2 * width, sight)
    yield Operation(f"{name}.values", "attention", 2 * width, sight)


def compressor(name: str, d: int, width: int, size: int, overlap: bool) -> Iterator[Row]:
    """A weighted mean over a block, of the block before as well where they overlap: each token
    gives a vector and its weights for every block it is part of.

    The cache holds an entry a block, and for the block that is not full the vectors and weights of
    its tokens (of two blocks where they overlap).
    """
    times = 2 if overlap else 1
    yield from linear(f"{name}.kv", "attention", times * width, d)
    yield from linear(f"{name}.gate", "attention", times * width, d)
    yield Tensor(f"{name}.places", "position", (size, times * width), "bias")
    yield from Norm(f"{name}.norm", (width,), False).rows()
    yield Cache(f"{name}.entries", width, Compressed(size))
    yield Cache(f"{name}.block", 2 * (times * size) * (times * width), State())


def prediction(c: Config, joined: tuple[HyperConnection, ...]) -> list[dict[str, Any]] | None:
    """The layers of multi-token prediction: two projections and norms, a layer with a window alone,
    a join of the streams and a norm; embedding and head are the model's."""
    n, d = c.get("num_nextn_predict_layers", 0), c.size("hidden_size")
    if not n:
        return None
    norms = (Norm(f"{name}.weight", (d,), False) for name in ("enorm", "hnorm", "norm"))
    extra = Rows(
        (
            *linear("e_proj.weight", "ffn", d, d),
            *linear("h_proj.weight", "ffn", d, d),
            *(row for norm in norms for row in norm.rows()),
            *HyperHead("hc_head", d, c.size("hc_mult")).rows(),
        )
    )
    return [dict(repeat=n, blocks=(Rows(tuple(attention(c, SLIDING))), *joined, extra))]
