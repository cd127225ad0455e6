"""A model in a headline and a few words, read off its blocks."""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.blocks import Attention, FeedForward, LatentAttention, MixtureOfExperts
from paramcalc.blocks.again import opened
from paramcalc.errors import printable
from paramcalc.model import Model
from paramcalc.sight import Blocks, BothChunk, BothWindow, Chunk, Sight, Sparse, Window

MOST_KEYS = 20
"""Of a file's unused keys in a note; JSON has all."""


def headline(model: Model, base: Model | None) -> str:
    """Return the name with total and active parameters, and their change against ``base``."""
    total, active = model.params.total, model.params.active
    asked = f" (for {model.asked})" if model.asked else ""
    text = f"{model.name}{asked}  {total:,} parameters"
    if active != total:
        text += f", {active:,} active"
    if base and base.ledger.rows != model.ledger.rows:
        text += f"  ({total - base.params.total:+,}"
        if active != total or base.params.active != base.params.total:
            text += f"; active {active - base.params.active:+,}"
        same = "the file" if base.reading else "the preset"
        text += f" against {same if base.name == model.name else base.name})"
    return text


def words(model: Model) -> list[str]:
    """Return the shape in words: layers and what they see, widths, experts, vocabulary, context."""
    spec = model.spec
    found = [
        _depth(model),
        *_mixers(model),
        *_sights(model),
        f"d_model {spec.d_model:,}",
    ]
    found += _unique(_heads(b) for b in _blocks(model, Attention, LatentAttention))
    networks = _unique(_network(b) for b in _blocks(model, FeedForward, MixtureOfExperts))
    if not networks:
        own = any(t.role == "ffn" for t in model.ledger.tensors)
        sees = any(o.role == "attention" for o in model.ledger.operations)
        networks = ["attention only"] if sees and not own else []
    elif spec.d_ff is None and any(isinstance(b, FeedForward) for b in _blocks(model, FeedForward)):
        networks = [f"{text} (default)" if text.startswith("d_ff") else text for text in networks]
    found += [*networks, f"vocab {spec.vocab_size:,}"]
    found.append(f"context {model.context:,}" + (" (assumed)" if spec.context is None else ""))
    if spec.head != "none":
        found.append("tied" if spec.tie_embeddings else "untied")
    return found


def _blocks(model: Model, *kinds: type) -> Iterator[object]:
    for layer in model.plan.layers:
        for block in opened(layer.blocks):
            if isinstance(block, kinds) and getattr(block, "name", "") != "cross_attention":
                yield block


def _unique(texts: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(texts))


def _depth(model: Model) -> str:
    spec = model.spec
    if spec.encoder is not None:
        return f"{spec.encoder.n_layers:,} encoder + {spec.n_layers:,} decoder layers"
    shared = " sharing weights" if spec.share_layers else ""
    return f"{spec.n_layers:,} {'layer' if spec.n_layers == 1 else 'layers'}{shared}"


def _mixers(model: Model) -> list[str]:
    """How many layers keep a recurrent state, where some do."""
    kinds = {row.kind: row.layers for row in model.memory.cache_by_kind(1)}
    return [f"{kinds['state']:,} with a state"] if "state" in kinds else []


def _sights(model: Model) -> list[str]:
    """How many layers see how much, if any sees less than everything before it."""
    counts: dict[str, int] = {}
    for layer in model.plan.layers:
        for block in opened(layer.blocks):
            if isinstance(block, Attention | LatentAttention) and block.name == "attention":
                text = _seen(block.sight, model.spec.context)
                counts[text] = counts.get(text, 0) + layer.n_layers
    if set(counts) <= {"full"}:
        return []
    return [" + ".join(f"{count:,} {text}" for text, count in counts.items())]


def _seen(sight: Sight, context: int | None) -> str:
    if isinstance(sight, Window | BothWindow):
        wide = context is not None and sight.size >= context
        return f"sliding {sight.size:,}" + (", all of the context" if wide else "")
    if isinstance(sight, Chunk | BothChunk):
        return f"chunked {sight.size:,}"
    return f"sparse {sight.most:,}" if isinstance(sight, Sparse | Blocks) else "full"


def _heads(block: object) -> str:
    if isinstance(block, Attention):
        kv = f", {block.n_kv_heads:,} KV" if block.n_kv_heads != block.n_heads else ""
        return f"{block.n_heads:,} heads of {block.head_dim:,}{kv}"
    assert isinstance(block, LatentAttention)
    return f"{block.n_heads:,} heads, MLA {block.kv_lora_rank:,} + {block.qk_rope_head_dim:,}"


def _network(block: object) -> str:
    if isinstance(block, FeedForward) and block.expert:
        return f"{block.copies:,} experts of {block.d_ff:,}, top {block.active:,}"
    if isinstance(block, FeedForward):
        return f"d_ff {block.d_ff:,}{' gated' if block.gated else ''}"
    assert isinstance(block, MixtureOfExperts)
    shared = f", shared {block.d_shared:,}" if block.d_shared is not None else ""
    experts = f"{block.n_experts:,} experts of {block.d_expert:,}"
    return f"{experts}{' gated' if block.gated else ''}, top {block.top_k:,}{shared}"


def notes(model: Model) -> list[str]:
    """Return what a reader of a count must know beside it: what is assumed, left out, not used."""
    found = [f"assumed: {what}" for what in model.assumed]
    found += [f"not counted: {what}" for what in model.left_out]
    if model.spec.count_mtp and not model.spec.mtp:
        found.append("no layers of multi-token prediction: --mtp changes nothing")
    unused = model.unused_keys
    if unused:
        some = ", ".join(key[:60] for key in unused[:MOST_KEYS])
        left = len(unused) - MOST_KEYS
        more = f" and {left} more" if left > 0 else ""
        found.append(f"keys not used, which may change shapes: {some}{more}")
    return [printable(line) for line in found]
