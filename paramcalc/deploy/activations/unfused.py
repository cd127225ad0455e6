"""What autograd keeps when each operation is a kernel of its own: ``eager`` and ``sdpa``.

Read off transformers 5.24.0 and torch 2.13.0 on CPU in bfloat16 with saved-tensor hooks
(``tools/measure_activations.py``); ``tests/golden/activations.json`` holds the bytes. On a GPU a
dropout's mask is 1 byte an element and a LayerNorm's statistics are float32.
"""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.deploy.activations.tensors import At, Core, Experts, Kept, Split, once
from paramcalc.numbers import Num

GQA_WIDTH = 256
"""The widest head for which scaled-dot-product attention reads shared KV heads as they are; wider
ones, and masks, have the heads repeated (``use_gqa_in_sdpa`` of transformers)."""


def norm(
    at: At, name: str, groups: Num, width: Num, split: Split, pieces: Num | None = None
) -> Iterator[Kept]:
    """LayerNorm is one operation; RMSNorm is written out in float32, and scales a copy."""
    rows = at.tokens * groups
    if at.layer_norm:
        yield at.row(f"{name}.input", rows * width, 2, "layer norm", split, pieces)
        yield at.row(f"{name}.mean", rows, 2, "layer norm", split, pieces)
        yield at.row(f"{name}.rstd", rows, 2, "layer norm", split, pieces)
    else:
        why = "square, and the product with rstd"
        yield at.row(f"{name}.input in float32", rows * width, 4, why, split, pieces)
        yield at.row(f"{name}.rstd", rows, 4, "rsqrt, and the product", split, pieces)
        why = "the product with the weight"
        yield at.row(f"{name}.normalized", rows * width, 2, why, split, pieces)


def core(at: At, core: Core) -> Iterator[Kept]:
    """Queries, keys and values as the products read them, and what lies between."""
    return (_eager if at.attention == "eager" else _math if at.dropout else _sdpa)(at, core)


def _eager(at: At, core: Core) -> Iterator[Kept]:
    """Two matrix products around a softmax, KV heads repeated for every query head."""
    own, rows = core.name, at.tokens * core.heads
    scores, width = rows * at.seq, 2 if at.classic else 4
    yield at.row(f"{own}.q", rows * core.qk_width, 2, "scores = q k^T", "tp")
    yield at.row(f"{own}.k", rows * core.qk_width, 2, "scores = q k^T", "tp")
    yield at.row(f"{own}.softmax", scores, width, "softmax", "tp")
    yield from mask(at, f"{own}.weights", scores, "tp")
    if at.dropout or not at.classic:  # else the softmax itself
        yield at.row(f"{own}.weights", scores, 2, "values = weights v", "tp")
    yield at.row(f"{own}.v", rows * core.v_width, 2, "values = weights v", "tp")
    yield at.row(f"{own}.output", rows * core.v_width, 2, "output projection", "tp")


def _sdpa(at: At, core: Core) -> Iterator[Kept]:
    """The flash kernel: no scores, but the logarithm of each row's sum."""
    own, rows = core.name, at.tokens * core.heads
    masked: Num = 0 if core.limit is None else once(at.seq // core.limit)
    repeated = once(masked + core.qk_width // (GQA_WIDTH + 1))
    heads = core.kv_heads + (core.heads - core.kv_heads) * repeated
    why = "attention kernel"
    yield at.row(f"{own}.q", rows * core.qk_width, 2, why, "tp")
    yield at.row(f"{own}.k", at.tokens * heads * core.qk_width, 2, why, "tp", core.kv_heads)
    yield at.row(f"{own}.v", at.tokens * heads * core.v_width, 2, why, "tp", core.kv_heads)
    if core.limit is not None:
        yield at.row(f"{own}.mask", at.tokens * at.seq * masked, 2, f"{why}: window reached")
    yield at.row(f"{own}.logsumexp", rows, 4, why, "tp")
    why = f"{why}, and output projection"
    yield at.row(f"{own}.output", rows * core.v_width, 2, why, "tp")


def _math(at: At, core: Core) -> Iterator[Kept]:
    """With dropout the CPU has no flash kernel and computes everything in float32."""
    own, rows = core.name, at.tokens * core.heads
    scores = rows * at.seq
    yield at.row(f"{own}.q in float32", rows * core.qk_width, 4, "scores = q k^T", "tp")
    yield at.row(f"{own}.k in float32", rows * core.qk_width, 4, "scores = q k^T", "tp")
    yield at.row(f"{own}.softmax", scores, 4, "softmax", "tp")
    yield at.row(f"{own}.weights.dropout mask", scores, 4, "dropout", "tp")
    yield at.row(f"{own}.weights", scores, 4, "values = weights v", "tp")
    yield at.row(f"{own}.v in float32", rows * core.v_width, 4, "values = weights v", "tp")
    yield at.row(f"{own}.output", rows * core.v_width, 2, "output projection", "tp")


def gated(at: At, name: str, rows: Num, width: Num, split: Split) -> Iterator[Kept]:
    """down(act(gate) * up): four tensors as wide as the network."""
    size = rows * width
    yield at.row(f"{name}.gate", size, 2, "activation", split)
    yield at.row(f"{name}.activated gate", size, 2, "the product with up", split)
    yield at.row(f"{name}.up", size, 2, "the product with the gate", split)
    yield at.row(f"{name}.product", size, 2, "down projection", split)


def plain(at: At, name: str, rows: Num, width: Num, split: Split) -> Iterator[Kept]:
    """down(act(up)): two tensors, or five where GELU is its tanh formula (GPT-2)."""
    size = rows * width
    yield at.row(f"{name}.up", size, 2, "activation (cube of GELU's formula)", split)
    if at.classic:
        yield at.row(f"{name}.tanh", size, 2, "tanh", split)
        yield at.row(f"{name}.half of up", size, 2, "GELU's last product", split)
        yield at.row(f"{name}.1 + tanh", size, 2, "GELU's last product", split)
    yield at.row(f"{name}.activated", size, 2, "down projection", split)


def mask(at: At, name: str, elements: Num, split: Split) -> Iterator[Kept]:
    """The mask is a tensor of the activations' type on CPU."""
    if at.dropout:
        yield at.row(f"{name}.dropout mask", elements, 2, "dropout", split)


def routed(at: At, experts: Experts) -> Iterator[Kept]:
    """``grouped_mm``, the framework's default: tokens sorted by expert, so that the bytes do not
    depend on how they were routed."""
    own, n, d = experts.name, at.tokens, experts.d_model
    slots = n * experts.top_k
    yield at.row(f"{own}.router.softmax", n * experts.number, 4, "softmax", "sp")
    yield at.row(f"{own}.router.indices", slots, 8, "top k", "sp")
    yield at.row(f"{own}.router.weights", slots, 4, "division by their sum", "sp")
    yield at.row(f"{own}.router.sum", n, 4, "division by their sum", "sp")
    yield at.row(f"{own}.slots.token", slots, 8, "gather of the tokens", "sp")
    yield at.row(f"{own}.slots.order", slots, 8, "gather of the weights", "sp")
    yield at.row(f"{own}.slots.place", slots, 8, "gather back", "sp")
    yield at.row(f"{own}.slots.ends", experts.number, 4, "grouped products")
    yield at.row(f"{own}.experts.input", slots * d, 2, "first grouped product", "sp")
    within = gated if experts.gated else plain
    yield from within(at, f"{own}.experts", slots, experts.d_ff, "tp")
    yield at.row(f"{own}.experts.output", slots * d, 2, "the product with the weights", "sp")
    yield at.row(f"{own}.slots.weight", slots, 4, "the product with the output", "sp")


def loss(at: At, vocab: Num) -> Iterator[Kept]:
    """Cross-entropy over float32 logits (``ForCausalLMLoss``)."""
    yield at.row("loss.log softmax", at.tokens * vocab, 4, "log-softmax", "tp")
    yield at.row("loss.targets", at.tokens, 8, "negative log-likelihood")
    yield at.row("loss.weight", 1, 4, "negative log-likelihood")
