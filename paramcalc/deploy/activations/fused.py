"""What fused kernels keep (``flash``): nothing that the backward pass can compute again cheaply.

Attention keeps q, k, v, its output and the float32 log-sum-exp (Dao, arXiv:2307.08691, section
3.1); a fused norm its input and statistics, a fused gate its two inputs, and cross-entropy writes
the gradient over the logits (Hsu et al., Liger Kernel, arXiv:2410.10989). A dropout's mask is 1
byte; attention's own dropout is drawn again from a seed.
"""

from __future__ import annotations

from collections.abc import Iterator

from paramcalc.deploy.activations.tensors import At, Core, Experts, Kept, Split
from paramcalc.numbers import Num


def norm(
    at: At, name: str, groups: Num, width: Num, split: Split, pieces: Num | None = None
) -> Iterator[Kept]:
    """The input, and float32 statistics of each row."""
    rows = at.tokens * groups
    yield at.row(f"{name}.input", rows * width, 2, "fused norm", split, pieces)
    if at.layer_norm:
        yield at.row(f"{name}.mean", rows, 4, "fused norm", split, pieces)
    yield at.row(f"{name}.rstd", rows, 4, "fused norm", split, pieces)


def core(at: At, core: Core) -> Iterator[Kept]:
    """Shared KV heads stay as they are; no scores."""
    own, rows = core.name, at.tokens * core.heads
    kv, why = at.tokens * core.kv_heads, "flash attention"
    yield at.row(f"{own}.q", rows * core.qk_width, 2, why, "tp")
    yield at.row(f"{own}.k", kv * core.qk_width, 2, why, "tp", core.kv_heads)
    yield at.row(f"{own}.v", kv * core.v_width, 2, why, "tp", core.kv_heads)
    yield at.row(f"{own}.logsumexp", rows, 4, why, "tp")
    why = "flash attention, and output projection"
    yield at.row(f"{own}.output", rows * core.v_width, 2, why, "tp")


def gated(at: At, name: str, rows: Num, width: Num, split: Split) -> Iterator[Kept]:
    """Gate and up for the fused product, and the product for the down projection."""
    size = rows * width
    yield at.row(f"{name}.gate", size, 2, "fused gate", split)
    yield at.row(f"{name}.up", size, 2, "fused gate", split)
    yield at.row(f"{name}.product", size, 2, "down projection", split)


def plain(at: At, name: str, rows: Num, width: Num, split: Split) -> Iterator[Kept]:
    """What enters the activation, and what leaves it."""
    size = rows * width
    yield at.row(f"{name}.up", size, 2, "activation", split)
    yield at.row(f"{name}.activated", size, 2, "down projection", split)


def mask(at: At, name: str, elements: Num, split: Split) -> Iterator[Kept]:
    """One byte an element."""
    if at.dropout:
        yield at.row(f"{name}.dropout mask", elements, 1, "dropout", split)


def routed(at: At, experts: Experts) -> Iterator[Kept]:
    """A fused router keeps its softmax and choice, a fused permutation one int32 map."""
    own, n, d = experts.name, at.tokens, experts.d_model
    slots = n * experts.top_k
    yield at.row(f"{own}.router.softmax", n * experts.number, 4, "fused router", "sp")
    yield at.row(f"{own}.router.indices", slots, 4, "fused router", "sp")
    yield at.row(f"{own}.router.weights", slots, 4, "weighted sum", "sp")
    yield at.row(f"{own}.slots.place", slots, 4, "permutation, and back", "sp")
    yield at.row(f"{own}.experts.input", slots * d, 2, "first grouped product", "sp")
    within = gated if experts.gated else plain
    yield from within(at, f"{own}.experts", slots, experts.d_ff, "tp")
    yield at.row(f"{own}.experts.output", slots * d, 2, "weighted sum", "sp")


def loss(at: At, vocab: Num) -> Iterator[Kept]:
    """The gradient, in the logits' place."""
    yield at.row("loss.gradient of the logits", at.tokens * vocab, 2, "fused cross-entropy", "tp")
