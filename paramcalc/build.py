"""From a specification to its ledger: defaults filled in by arithmetic, blocks put in place.

The fields of the spec may be ints, or (through ``ModelSpec.model_copy``) arrays and symbols.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from paramcalc.blocks import (
    Attention,
    Block,
    Embedding,
    FeedForward,
    Head,
    LatentAttention,
    MaskedHead,
    MixtureOfExperts,
    Norm,
    Pooler,
    Positions,
    RelativePositions,
)
from paramcalc.layout import View, groups, is_literal, places, sections_of
from paramcalc.ledger import LayerRows, Ledger, Stream
from paramcalc.numbers import Num, ceil_div
from paramcalc.sight import Both, BothWindow, Causal, Chunk, Sight, Sparse, Window

if TYPE_CHECKING:
    from paramcalc.sections import EncoderSpec
    from paramcalc.spec import ModelSpec


class Layers(NamedTuple):
    """Equal layers: their stack and label, how many, their numbers, the blocks of one of them."""

    stack: str
    label: str
    n_layers: Num
    ranges: tuple[tuple[Num, Num, Num], ...]
    blocks: tuple[Block, ...]
    stream: Stream
    shared: bool
    tower: str


class Plan(NamedTuple):
    """Every block of a model and where it stands; ``apart`` are layers beside the model."""

    outer: tuple[Block, ...]
    layers: tuple[Layers, ...]
    apart: tuple[Layers, ...] = ()


def plan(spec: ModelSpec) -> Plan:
    """Return the blocks of a model, every default of the card filled in."""
    layers = _stack("", spec, spec)
    if spec.encoder is not None:
        layers = _stack("encoder", spec.encoder, spec) + layers
    mtp = list(_prediction(spec))
    if spec.count_mtp:
        layers, mtp = layers + mtp, []
    return Plan(tuple(_outer(spec)), tuple(layers), tuple(mtp))


def _prediction(spec: ModelSpec) -> Iterator[Layers]:
    """Yield the multi-token-prediction layers, numbered after the model's own."""
    start = spec.n_layers
    for number, group in enumerate(spec.mtp or ()):
        view = View((f"mtp.{number}.", group), ("", spec))
        stop = start + (1 if group.repeat is None else group.repeat)
        yield Layers(
            "mtp",
            group.label or "",
            stop - start,
            ((start, stop, 1),),
            tuple(_layer(view, spec, False)),
            "token",
            False,
            "mtp",
        )
        start = stop


def _outer(spec: ModelSpec) -> Iterator[Block]:
    d, width = spec.d_model, spec.d_embedding
    wide = d if width is None else width
    top = View(("", spec))
    if spec.embedding:
        yield Embedding(
            spec.vocab_size, wide, d, width is not None, spec.projection_bias, spec.n_token_types
        )
    yield from spec.outer
    sections: list[tuple[str, Any]] = [("", spec)]
    if spec.encoder is not None:
        sections.insert(0, ("encoder.", spec.encoder))
    for prefix, section in sections:
        yield from _around(prefix, View(*sections_of(section, spec)), spec, wide)
    kind, bias = _norm(top, spec)
    if spec.pooler:
        yield Pooler(d)
    if spec.head == "masked":
        yield MaskedHead(d, wide, _flag(top, "ffn_bias", spec), kind != "none" and bias)
    if spec.head != "none":
        project = width is not None and spec.head == "lm"
        yield Head(spec.vocab_size, d, wide, spec.tie_embeddings, spec.head_bias, project)


def _around(prefix: str, view: View, spec: ModelSpec, wide: Num) -> Iterator[Block]:
    """Yield what stands before and after a stack's layers."""
    size = places(view, spec)
    if size is not None:
        width = view.get("d_model") if spec.d_positions is None else spec.d_positions
        yield Positions(f"{prefix}positions", size + view.get("position_offset", 0), width)
    if view.get("relative_buckets") is not None:
        yield RelativePositions(
            f"{prefix}relative_positions", view.get("relative_buckets"), view.get("n_heads")
        )
    kind, bias = _norm(view, spec)
    if kind != "none":
        if view.get("embedding_norm", False):
            yield Norm(f"{prefix}embedding_norm", (wide,), bias)
        if view.get("final_norm", True):
            yield Norm(f"{prefix}final_norm", (view.get("d_model"),), bias)


def _stack(name: str, section: ModelSpec | EncoderSpec, spec: ModelSpec) -> list[Layers]:
    encoding = name == "encoder"
    stream: Stream = "source" if encoding else "token"
    return [
        Layers(
            name,
            g.label,
            g.n_layers,
            g.ranges,
            tuple(_layer(g.view, spec, encoding)),
            stream,
            spec.share_layers,
            "encoder" if encoding or not spec.causal else "decoder",
        )
        for g in groups(section, spec)
    ]


def _flag(view: View, name: str, spec: ModelSpec) -> bool:
    """A bias that GPT-2 mode turns on unless it is stated."""
    return bool(view.get(name, spec.gpt2))


def _norm(view: View, spec: ModelSpec) -> tuple[str, bool]:
    """The kind of norm, and whether it has a bias (a LayerNorm does unless it says not)."""
    kind = view.get("norm", "layer" if spec.gpt2 else "rms")
    return kind, bool(view.get("norm_bias", kind == "layer"))


def _layer(view: View, spec: ModelSpec, encoding: bool) -> Iterator[Block]:
    d = view.get("d_model")
    kind, bias = _norm(view, spec)
    crossing = bool(view.get("cross_attention", spec.encoder is not None)) and not encoding
    generating = spec.causal and not encoding
    attending = bool(view.get("attention", True))
    sublayers = attending + crossing + view.has_ffn
    if kind != "none":
        for i in range(view.get("norms_per_layer", sublayers)):
            yield Norm(f"norm{i + 1}", (d,), bias)
    if attending and view.get("mla") is not None:
        yield _latent(view, spec, generating)
    elif attending:
        yield _attention("attention", view, spec, _sight(view, generating), generating)
    if crossing:
        yield _attention("cross_attention", view, spec, Both(), True)
    if view.has_ffn:
        yield _feed_forward(view, spec)
    yield from view.get("blocks", ())


def _sight(view: View, generating: bool) -> Sight:
    window, chunk = view.limit("window"), view.limit("chunk")
    if window is not None:
        return Window(window) if generating else BothWindow(window)
    if chunk is not None:
        return Chunk(chunk)
    return Causal() if generating else Both()


def _attention(name: str, view: View, spec: ModelSpec, sight: Sight, cached: bool) -> Attention:
    heads = view.get("n_heads")
    head_dim = view.get("head_dim")
    if head_dim is None:
        head_dim = default_head_dim(view.get("d_model"), heads)
    crossing = name == "cross_attention" and spec.encoder is not None
    return Attention(
        name,
        view.get("d_model"),
        heads,
        view.get("n_kv_heads", heads),
        head_dim,
        view.get("v_head_dim", head_dim),
        sight,
        view.get("attention_bias", "qkvo" if spec.gpt2 else ""),
        view.get("qk_norm", "none"),
        bool(view.get("qk_norm_bias", False)),
        bool(view.get("sinks", False)),
        name == "cross_attention",
        cached,
        view.get("attention_gate", "none"),
        d_source=spec.encoder.d_model if crossing and spec.encoder is not None else None,
    )


def _latent(view: View, spec: ModelSpec, generating: bool) -> LatentAttention:
    mla = view.get("mla")
    indexed = mla.index_top_k is not None
    return LatentAttention(
        "attention",
        spec.d_model,
        view.get("n_heads"),
        mla.q_lora_rank,
        mla.kv_lora_rank,
        mla.qk_nope_head_dim,
        mla.qk_rope_head_dim,
        mla.v_head_dim,
        Sparse(mla.index_top_k) if indexed else Causal() if generating else Both(),
        mla.index_n_heads,
        mla.index_head_dim,
        view.get("attention_bias", ""),
        generating,
    )


def default_head_dim(d_model: Num, n_heads: Num) -> Num:
    """The stream's width shared out over the heads (Vaswani et al. 2017)."""
    return d_model // n_heads


def default_d_ff(d_model: Num, gated: bool, multiple_of: Num) -> Num:
    """4 d, or with three matrices 8 d / 3 rounded up (the same parameters: Shazeer 2020)."""
    return ceil_div(8 * d_model, 3 * multiple_of) * multiple_of if gated else 4 * d_model


def _feed_forward(view: View, spec: ModelSpec) -> FeedForward | MixtureOfExperts:
    gated, bias = bool(view.get("gated_ffn", False)), _flag(view, "ffn_bias", spec)
    d = view.get("d_model")
    d_ff = view.get("d_ff")
    if d_ff is None:
        d_ff = default_d_ff(d, gated, spec.ff_multiple_of)
    if not view.is_moe:
        return FeedForward("ffn", d, d_ff, gated, bias)
    d_expert = view.get("d_expert", d_ff)
    shared = view.get("n_shared_experts", 0)
    d_shared = view.get("d_shared", None if is_literal(shared, 0) else shared * d_expert)
    return MixtureOfExperts(
        "ffn",
        d,
        view.get("n_experts"),
        view.get("top_k"),
        d_expert,
        gated,
        bias,
        bool(view.get("expert_bias", bias)),
        d_shared,
        bool(view.get("shared_gate", False)),
        bool(view.get("router_bias", False)),
        view.get("router_correction", "none"),
    )


def ledger_of(blocks: Plan) -> Ledger:
    """Return the ledger of a plan: every block's rows, multiplied by the layers that hold it."""
    return Ledger.of(
        (row for block in blocks.outer for row in block.rows()),
        map(_rows, blocks.layers),
        map(_rows, blocks.apart),
    )


def _rows(kind: Layers) -> LayerRows:
    return LayerRows(
        kind.stack,
        kind.label,
        kind.n_layers,
        kind.ranges,
        tuple(row for block in kind.blocks for row in block.rows()),
        kind.stream,
        kind.shared,
        kind.tower,
    )
