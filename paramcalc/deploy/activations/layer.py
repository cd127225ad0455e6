"""What one layer keeps, block by block."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.blocks import (
    Attention,
    Block,
    FeedForward,
    LatentAttention,
    MixtureOfExperts,
    Norm,
)
from paramcalc.deploy.activations import fused, unfused
from paramcalc.deploy.activations.megatron import Recompute
from paramcalc.deploy.activations.tensors import At, Core, Experts, Kept, Kernels, once
from paramcalc.ledger import Tensor
from paramcalc.numbers import Num
from paramcalc.sight import BothWindow, Chunk, Window

Sublayer = Attention | LatentAttention | FeedForward | MixtureOfExperts
"""Blocks that are counted tensor by tensor."""


def kernels(at: At) -> Kernels:
    """Return how a layer is run."""
    return fused if at.attention == "flash" else unfused


def tensors(at: At, blocks: tuple[Block, ...]) -> Iterator[Kept]:
    """Yield what one layer keeps. Sublayers that stand beside each other behind a single norm share
    their input; otherwise each keeps its own, a norm's output or the stream."""
    norms = [b for b in blocks if isinstance(b, Norm)]
    shared = len(norms) == 1
    for place, block in enumerate(b for b in blocks if not isinstance(b, Norm)):
        if isinstance(block, Sublayer) and (place == 0 or not shared):
            size = at.tokens * block.d_model
            yield at.row(f"{block.name}.input", size, 2, "its first matrices", "sp")
        yield from within(at, block)
    for block in norms:
        yield from within(at, block)


def within(at: At, block: Block) -> Iterator[Kept]:
    """Yield what one block keeps beside its input; of an unknown one, each matrix's input."""
    use = kernels(at)
    if isinstance(block, Norm):
        *groups, width = block.shape
        yield from use.norm(at, block.name, groups[0] if groups else 1, width, "sp")
    elif isinstance(block, Attention):
        yield from _around(at, block)
        yield from _between(at, block)
        yield from _after(at, block.name, block.d_model)
    elif isinstance(block, LatentAttention):
        yield from _latent(at, block)
        yield from _between(at, block)
        yield from _after(at, block.name, block.d_model)
    elif isinstance(block, FeedForward):
        inner = use.gated if block.gated else use.plain
        yield from inner(at, block.name, at.tokens, block.d_ff, "tp")
        yield from _after(at, block.name, block.d_model)
    elif isinstance(block, MixtureOfExperts):
        yield from _mixture(at, block)
        yield from _after(at, block.name, block.d_model)
    else:
        yield from _matrices(at, block)


def core_of(block: Attention | LatentAttention) -> Core:
    """Return the sizes of a block's attention between positions."""
    sight = block.sight
    limit = sight.size if isinstance(sight, Window | Chunk | BothWindow) else None
    if isinstance(block, Attention):
        widths = (block.head_dim, block.v_head_dim)
        return Core(block.name, block.n_heads, block.n_kv_heads, *widths, limit)
    width = block.qk_nope_head_dim + block.qk_rope_head_dim
    return Core(block.name, block.n_heads, block.n_heads, width, block.v_head_dim, limit)


def divided(
    at: At, blocks: tuple[Block, ...], recompute: Recompute, d_model: Num
) -> tuple[list[Kept], list[Kept]]:
    """Return what a layer keeps until its turn in the backward pass, and what it holds besides
    while it is computed again.

    ``full`` keeps the layer's input alone; ``selective`` drops what lies between q, k, v and the
    output of attention.
    """
    everything = list(tensors(at, blocks))
    if recompute == "full":
        size = at.tokens * d_model
        first = at.row("layer.input", size, 2, "computing the layer again", "sp")
        same = next((f"{b.name}.input" for b in blocks if isinstance(b, Norm)), "")
        return [first], [t for t in everything if t.name != same]
    again: list[Kept] = []
    if recompute == "selective":
        for block in blocks:
            if isinstance(block, Attention | LatentAttention):
                own = {t.name for t in _between(at, block)}
                stay, more = _selective(at, block)
                everything = [t for t in everything if t.name not in own] + stay
                again += more
    return everything, again


def _selective(at: At, block: Attention | LatentAttention) -> tuple[list[Kept], list[Kept]]:
    """What stays of attention is what the fused view has of q, k, v and the output: KV heads not
    yet repeated. Where query heads share them, the repeated ones are a copy."""
    ends = [f"{block.name}.{part}" for part in ("q", "k", "v", "output")]
    stay = [t for t in _between(at._replace(attention="flash"), block) if t.name in ends]
    core = core_of(block)
    copies = once(core.heads - core.kv_heads) if at.attention == "eager" else 0
    again = []
    for tensor in _between(at, block):
        if tensor.name in ends[1:3]:
            again.append(tensor._replace(elements=tensor.elements * copies))
        elif tensor.name not in ends:
            again.append(tensor)
    return stay, again


def _around(at: At, block: Attention) -> Iterator[Kept]:
    """Norms of queries and keys, and what a gate on the output keeps."""
    use, own = kernels(at), block.name
    sides = (("q_norm", block.n_heads, None), ("k_norm", block.n_kv_heads, block.n_kv_heads))
    if block.qk_norm != "none":
        for name, heads, pieces in sides if "k" in block.parts else sides[:1]:
            shape = (1, heads * block.head_dim)
            groups, width = shape if block.qk_norm == "full" else (heads, block.head_dim)
            plain = at._replace(layer_norm=block.norm_bias)
            yield from use.norm(plain, f"{own}.{name}", groups, width, "tp", pieces)
    if block.gate != "none":
        out = at.tokens * block.n_heads * block.v_head_dim
        size = out if block.gate == "element" else at.tokens * block.n_heads
        yield at.row(f"{own}.gate", size, 2, "sigmoid, and its product", "tp")
        yield at.row(f"{own}.gated output", out, 2, "output projection", "tp")


def _between(at: At, block: Attention | LatentAttention) -> Iterator[Kept]:
    """Attention between positions; keys that serve as values are one tensor, keys of an earlier
    layer none of this one's."""
    parts = block.parts if isinstance(block, Attention) else "kv"
    absent = {f"{block.name}.{part}" for part in "kv" if part not in parts}
    return (t for t in kernels(at).core(at, core_of(block)) if t.name.split(" ")[0] not in absent)


def _latent(at: At, block: LatentAttention) -> Iterator[Kept]:
    """The latents of queries and of keys and values: each normed, then read by a matrix."""
    sides = (("q", block.q_lora_rank), ("kv", block.kv_lora_rank))
    for side, rank in sides:
        if rank is not None:
            name = f"{block.name}.{side}_norm"
            yield from kernels(at).norm(at._replace(layer_norm=False), name, 1, rank, "sp")
            size = at.tokens * rank
            yield at.row(f"{block.name}.{side}_up.input", size, 2, "up projection", "sp")


def _mixture(at: At, block: MixtureOfExperts) -> Iterator[Kept]:
    """Routed experts, and the shared network with its gate."""
    use, own, d = kernels(at), block.name, block.d_model
    sizes = (d, block.n_experts, block.top_k, block.d_expert, block.gated)
    yield from use.routed(at, Experts(own, *sizes))
    if block.d_shared is not None:
        inner = use.gated if block.gated else use.plain
        yield from inner(at, f"{own}.shared", at.tokens, block.d_shared, "tp")
    if block.shared_gate:
        yield at.row(f"{own}.shared_gate", at.tokens, 2, "sigmoid, and its product", "sp")
        yield at.row(f"{own}.shared.output", at.tokens * d, 2, "the product with the gate", "sp")


def _after(at: At, name: str, width: Num) -> Iterator[Kept]:
    """Dropout on the way back to the stream: GPT-2's layers have it, Llama's do not."""
    if at.classic:
        yield from kernels(at).mask(at, f"{name}.residual", at.tokens * width, "sp")


def _matrices(at: At, block: Block) -> Iterator[Kept]:
    """The input of each matrix that a token passes; what lies between is not counted."""
    for row in block.rows():
        if _runs(row):
            assert isinstance(row, Tensor)
            size = at.tokens * row.shape[-1] * row.runs
            yield at.row(f"{row.name}.input", size, 2, "its matrix", "sp")


def _runs(row: object) -> bool:
    """Whether a row is a matrix that a text's tokens are multiplied by."""
    return (
        isinstance(row, Tensor)
        and row.use == "matmul"
        and row.role != "tower"
        and row.stream in ("token", "source")
    )


def is_classic(blocks: tuple[Block, ...], learned: bool) -> bool:
    """Whether a layer is built as GPT-2's: LayerNorm, no gate, learned positions."""
    norms = [b for b in blocks if isinstance(b, Norm)]
    networks = [b for b in blocks if isinstance(b, FeedForward)]
    return learned and all(n.bias for n in norms) and not any(f.gated for f in networks)


def is_measured(blocks: tuple[Block, ...], classic: bool, rms: bool) -> bool:
    """Whether a layer is one of those that were measured: GPT-2's, Llama's (with RMSNorm on each
    head, as Qwen 3, or windows, as Mistral), or Mixtral's."""
    norms = [b for b in blocks if isinstance(b, Norm)]
    rest = [b for b in blocks if not isinstance(b, Norm)]
    if len(norms) != 2 or len(rest) != 2:
        return False
    attention, ffn = rest
    if not isinstance(attention, Attention) or attention.qk_norm not in ("none", "head"):
        return False
    usual = (attention.gate, attention.sinks, attention.cross, attention.parts, attention.cached)
    if usual != ("none", False, False, "qkvo", True):
        return False
    bare = attention.qk_norm == "none"
    if isinstance(ffn, FeedForward):
        return (rms and ffn.gated) or (classic and bare)
    if not isinstance(ffn, MixtureOfExperts):
        return False
    extra = (ffn.d_shared, ffn.expert_bias, ffn.router_bias, ffn.correction)
    return rms and bare and ffn.gated and extra == (None, False, False, "none")
