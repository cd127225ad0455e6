"""FLOPs: one multiply-add is 2; lookups, norms, biases and activations cost nothing.

A token costs 2 x (active matmul elements, the head in even when tied) + what attention does over
the positions it sees. Over a sequence the causal sum is exact, windows included. In an
encoder-decoder "a token" is one source and one target token.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Literal, TypeAlias, get_args

from paramcalc.layout import is_literal
from paramcalc.ledger import Ledger, Tensor
from paramcalc.numbers import Num, ceil_div, maximum
from paramcalc.sight import Blocks, BothCompressed, Causal, Chunk, Compressed, all_pairs

Recomputation: TypeAlias = Literal["none", "selective", "full"]
"""What the backward pass does again: nothing, the work between positions, or whole layers."""
RECOMPUTATIONS: tuple[Recomputation, ...] = get_args(Recomputation)


def matmul_per_token(ledger: Ledger) -> Num:
    """Return 2 x the active elements of the matrices a token is multiplied by, router included."""
    return sum(t.flops for t in ledger.tensors if t.stream in ("token", "source"))


def router_per_token(ledger: Ledger) -> Num:
    """Return the routers' part of ``matmul_per_token``."""
    return sum(t.flops for t in ledger.tensors if t.role == "router")


def attention_per_token(ledger: Ledger, n: Num) -> Num:
    """Return the FLOPs between positions for the n-th token: 4 L n H d_h with plain attention."""
    return sum(o.copies * o.flops_per_pair * o.sight.positions(n) for o in ledger.operations)


def per_token(ledger: Ledger, n: Num) -> Num:
    """Return the forward FLOPs of a token that sees n positions."""
    return matmul_per_token(ledger) + attention_per_token(ledger, n)


def per_sequence(ledger: Ledger) -> Num:
    """Return the FLOPs that occur once a sequence, whatever its length (a pooler)."""
    return sum(t.flops for t in ledger.tensors if t.stream == "sequence")


def attention_prefill(ledger: Ledger, n: Num) -> Num:
    """Return the FLOPs between positions over n tokens: the exact sum of what each token sees."""
    return sum(o.copies * o.flops_per_pair * o.sight.pairs(n) for o in ledger.operations)


def prefill(ledger: Ledger, n: Num) -> Num:
    """Return the forward FLOPs of a sequence of n tokens, the head at every position."""
    return n * matmul_per_token(ledger) + attention_prefill(ledger, n) + per_sequence(ledger)


def attention_all_pairs(ledger: Ledger, n: Num) -> Num:
    """Return the FLOPs between positions over n x n pairs in every layer."""
    return sum(o.copies * o.flops_per_pair * all_pairs(o.sight, n) for o in ledger.operations)


def prefill_all_pairs(ledger: Ledger, n: Num) -> Num:
    """Return ``prefill`` as kernels without causal skipping do it: n x n pairs in every layer."""
    pairs = attention_all_pairs(ledger, n)
    return n * matmul_per_token(ledger) + pairs + per_sequence(ledger)


def training(ledger: Ledger, n: Num) -> Num:
    """Return the FLOPs to train on a sequence of n tokens: 3 x forward, nothing recomputed.

    The backward pass multiplies each matrix twice: for its input's and for its own gradient.
    """
    return 3 * prefill(ledger, n)


def in_layers(ledger: Ledger) -> Num:
    """Return the part of ``matmul_per_token`` that stands inside layers: no head."""
    rows = (row for layer in ledger.layers for row in layer.all_rows())
    return sum(t.flops for t in rows if isinstance(t, Tensor) and t.stream in ("token", "source"))


def recomputed(ledger: Ledger, n: Num, what: Recomputation, *, every_pair: bool = False) -> Num:
    """Return the forward FLOPs that the backward pass of a sequence of n tokens does again.

    ``full`` repeats every layer from its input; ``selective`` only the work between positions
    (Korthikanti et al., arXiv:2205.05198, section 5). ``every_pair`` takes n x n pairs.
    """
    if what == "none":
        return 0
    between = attention_all_pairs(ledger, n) if every_pair else attention_prefill(ledger, n)
    return between + (n * in_layers(ledger) if what == "full" else 0)


def utilization(
    work: Num, n: Num, tokens_per_second: int | Fraction, peak_flops: int | Fraction
) -> Fraction:
    """Return the share of a peak that so many tokens a second need, where n tokens take ``work``
    FLOPs (PaLM, arXiv:2204.02311, appendix B)."""
    return Fraction(tokens_per_second * work, n) / peak_flops


def six_n(active: Num, n: Num) -> Num:
    """Return 6 N n: the training FLOPs of n tokens by the rule of Kaplan et al. 2020."""
    return 6 * active * n


def causal_links(n: Num) -> Num:
    """Return n (n + 1) / 2: the (query, key) pairs of one causal layer over n tokens."""
    return Causal().pairs(n)


def crossover(ledger: Ledger) -> Num | None:
    """Return the smallest n at which a token's attention costs as much as its matmuls.

    None where windows or chunks keep attention cheaper at every length. Ints, or symbols where
    ``equal_at`` takes them.
    """
    matmuls = matmul_per_token(ledger)
    if any(isinstance(o.sight, Compressed | BothCompressed) for o in ledger.operations):
        return _stepwise(ledger, matmuls)
    chunks = {o.sight.size for o in ledger.operations if isinstance(o.sight, Chunk | Blocks)}
    start = equal_at(ledger, matmuls)  # as if each token were the last of its chunk
    if start is None or not chunks:
        return start
    # all chunks end together (a model has one size of them), and inside one attention only grows
    before, end = start - 1, ceil_div(start, max(chunks)) * max(chunks)
    within = _first(
        lambda i: attention_per_token(ledger, before + i) >= matmuls, max(1, end - before)
    )
    return None if within is None else before + within


def _stepwise(ledger: Ledger, matmuls: Num) -> int | None:
    """``crossover`` where entries for whole blocks make attention grow in steps; ints only."""
    ends = {
        o.sight.most * (o.sight.size if isinstance(o.sight, Compressed) else 1)
        if o.sight.most is not None
        else None
        for o in ledger.operations
    }
    high = max(end or 1 for end in ends)
    while None in ends and attention_per_token(ledger, high) < matmuls:
        high *= 2
    return _first(lambda n: attention_per_token(ledger, n) >= matmuls, high)


def equal_at(ledger: Ledger, matmuls: Num) -> Num | None:
    """Return the smallest n at which attention costs ``matmuls`` FLOPs a token; None if it cannot.

    Every sight is taken as its n positions up to its most (for chunks: at their ends). Then
    attention is a sum of a_i min(n, W_i) and the smallest of its straight lines
    c + s n, one for every choice of windows that are full; it reaches M where the last of them
    does: n = max ceil((M - c) / s). With symbols some layer must see without a limit, or whether
    there is such an n depends on the shape; otherwise raises ``ValueError``.
    """
    free: Num = 0
    limited: dict[Num, Num] = {}
    for operation in ledger.operations:
        work, most = operation.copies * operation.flops_per_pair, operation.sight.most
        if most is None:
            free = free + work
        else:
            limited[most] = limited.get(most, 0) + work
    found: Num | None = None
    for full, slope in _lines(free, limited):
        if is_literal(slope, 0):
            if type(full) is not int or type(matmuls) is not int:
                raise ValueError("every layer has a window")
            if full < matmuls:
                return None
            continue
        n = ceil_div(matmuls - full, slope)
        found = n if found is None else maximum(found, n)
    return found


def _lines(free: Num, limited: dict[Num, Num]) -> list[tuple[Num, Num]]:
    """The (constant, slope) pairs of ``equal_at``.

    Known windows fill in the order of their sizes; symbols in any, so each choice is a line.
    """
    known = sorted(size for size in limited if type(size) is int)
    orders = [known[:i] for i in range(len(known) + 1)]
    for size in limited:
        if type(size) is not int:
            orders += [[*order, size] for order in orders]
    return [
        (
            sum(limited[size] * size for size in order),
            free + sum(work for size, work in limited.items() if size not in order),
        )
        for order in orders
    ]


def _first(holds: Callable[[int], bool], high: int) -> int | None:
    """The smallest n from 1 to ``high`` at which a condition holds that never ceases to hold."""
    if not holds(high):
        return None
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
