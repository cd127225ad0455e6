"""FLOPs: one multiply-add is 2; lookups, norms, biases and activations cost nothing.

A token costs 2 x (active matmul elements, the head in even when tied) + what attention does over
the positions it sees. Over a sequence the causal sum is exact, windows included. In an
encoder-decoder "a token" is one source and one target token.
"""

from __future__ import annotations

from paramcalc.ledger import Ledger
from paramcalc.numbers import Num, ceil_div
from paramcalc.sight import Both, Causal


def matmul_per_token(ledger: Ledger) -> Num:
    """Return 2 x the active elements of the matrices a token is multiplied by, router included."""
    return sum(t.flops for t in ledger.tensors if t.stream != "sequence")


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


def prefill_all_pairs(ledger: Ledger, n: Num) -> Num:
    """Return ``prefill`` as kernels without causal skipping do it: n x n pairs in every layer."""
    pairs = sum(o.copies * o.flops_per_pair for o in ledger.operations) * n * n
    return n * matmul_per_token(ledger) + pairs + per_sequence(ledger)


def training(ledger: Ledger, n: Num) -> Num:
    """Return the FLOPs to train on a sequence of n tokens: 3 x forward, nothing recomputed.

    The backward pass multiplies each matrix twice: for its input's and for its own gradient.
    """
    return 3 * prefill(ledger, n)


def causal_links(n: Num) -> Num:
    """Return n (n + 1) / 2: the (query, key) pairs of one causal layer over n tokens."""
    return Causal().pairs(n)


def crossover(ledger: Ledger) -> int | None:
    """Return the smallest n at which a token's attention costs as much as its matmuls; ints only.

    None where windows or chunks keep attention cheaper at every length. A chunked layer counts as
    the last token of a chunk.
    """
    matmuls = matmul_per_token(ledger)
    grows = [o for o in ledger.operations if type(o.sight) in (Causal, Both)]
    slope = sum(o.copies * o.flops_per_pair for o in grows)

    def attention(n: int) -> int:
        return sum(o.copies * o.flops_per_pair * _most_seen(o.sight, n) for o in ledger.operations)

    if slope:
        high = max(1, ceil_div(matmuls, slope))
    else:
        high = max((getattr(o.sight, "size", 0) for o in ledger.operations), default=0)
        high = max([high, *(getattr(o.sight, "top_k", 0) for o in ledger.operations)])
        if attention(high) < matmuls:
            return None
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if attention(middle) >= matmuls else (middle, high)
    return high


def _most_seen(sight: object, n: int) -> int:
    size = getattr(sight, "size", None)
    if size is not None:
        return min(n, int(size) // 2 * 2 + 1 if type(sight).__name__ == "BothWindow" else int(size))
    top_k = getattr(sight, "top_k", None)
    return n if top_k is None else min(n, int(top_k))
