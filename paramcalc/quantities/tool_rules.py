"""Forward FLOPs of a sequence as other tools count them: folds over the ledger.

``conventions`` names them, with source and words. Where a rule has no word for a sight (a recurrent
state, compressed blocks), the exact count stands.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from paramcalc.ledger import Cache, Ledger, Tensor
from paramcalc.numbers import Num, minimum
from paramcalc.quantities import flops, params
from paramcalc.sight import (
    Both,
    BothChunk,
    BothWindow,
    Causal,
    Chunk,
    Compressed,
    Sight,
    Sparse,
    State,
    Window,
    all_pairs,
)

Fold: TypeAlias = Callable[[Ledger, Num], Num]


def thrice(forward: Fold) -> Fold:
    """Training as 3 forwards: the backward pass multiplies each matrix twice."""
    return lambda ledger, n: 3 * forward(ledger, n)


def _between(ledger: Ledger, n: Num, twice_the_pairs: Callable[[Sight, Num], Num]) -> Num:
    """Work between positions from twice the pairs of a sight, since halves of n x n are no
    integers; ``flops_per_pair`` is even, a multiply-add being 2."""
    twice = (o.copies * o.flops_per_pair * twice_the_pairs(o.sight, n) for o in ledger.operations)
    return sum(twice) // 2


def _half_of_all(sight: Sight, n: Num) -> Num:
    """Twice n x n / 2; a state is met once by each token."""
    return 2 * n if isinstance(sight, State) else all_pairs(sight, n)


def _within_windows(sight: Sight, n: Num) -> Num:
    """Twice n x min(n, W): every token as if it stood behind a full window."""
    if isinstance(sight, Window | BothWindow | Sparse):
        return 2 * n * minimum(n, sight.most)
    if isinstance(sight, Compressed):
        return 2 * n * sight.positions(n)
    return 2 * all_pairs(sight, n)


def _areas(sight: Sight, n: Num) -> Num:
    """Twice the area under a mask: n^2 / 2, n W - W^2 / 2, half the squares of chunks."""
    if isinstance(sight, Causal | Both):
        return n * n
    if isinstance(sight, Window | Sparse):
        most = minimum(n, sight.most)
        return 2 * n * most - most * most
    return BothChunk(sight.size).pairs(n) if isinstance(sight, Chunk) else 2 * sight.pairs(n)


def palm(ledger: Ledger, n: Num) -> Num:
    """2 N + 4 L H Q T a token: all parameters but position tables, every pair."""
    apart = ("position", "tower")
    weights = sum(t.active_params for t in ledger.tensors if t.role not in apart)
    return 2 * n * weights + flops.attention_all_pairs(ledger, n)


def _kaplan_weights(ledger: Ledger) -> Num:
    """N: the matrices in layers, as often as they run; no biases, no norms, no head."""
    inside = ("attention", "mixer", "ffn", "router")
    rows = (t for t in ledger.tensors if t.role in inside and t.use == "matmul")
    return sum(t.runs * t.elements for t in rows)


def kaplan(ledger: Ledger, n: Num) -> Num:
    """2 N + 2 L n d_attn a token (Kaplan et al., table 1)."""
    return 2 * n * _kaplan_weights(ledger) + _between(ledger, n, _half_of_all)


def kaplan_training(ledger: Ledger, n: Num) -> Num:
    """6 N a token: the part of attention that grows with n is dropped."""
    return flops.six_n(_kaplan_weights(ledger), n)


def megatron(ledger: Ledger, n: Num) -> Num:
    """Matrices without routers, every causal mask as half of n x n, no windows."""
    matmuls = flops.matmul_per_token(ledger) - flops.router_per_token(ledger)
    latent = 2 * sum(_latent_norms(ledger))
    return n * (matmuls + latent) + _between(ledger, n, _half_of_all)


def _latent_norms(ledger: Ledger) -> list[Num]:
    """The norms of latents (the + 1 of its MLA terms), which it counts as one row more."""
    found = []
    for layer in ledger.layers:
        rows = list(layer.all_rows())
        if any(isinstance(row, Cache) and row.kind == "latent" for row in rows):
            norms = (t for t in rows if isinstance(t, Tensor) and t.use == "scale")
            own = (t for t in norms if t.name.endswith((".q_norm", ".kv_norm")))
            found += [t.runs * t.elements for t in own]
    return found


def _torchtitan_weights(ledger: Ledger) -> Num:
    """N: what is no embedding table; a tied head is one."""
    kept = (t for t in ledger.tensors if t.use != "lookup" and t.role != "tower")
    return sum(t.active_params for t in kept)


def torchtitan(ledger: Ledger, n: Num) -> Num:
    """Active parameters outside embedding tables, a tied head, min(n, W) positions a token."""
    weights = _torchtitan_weights(ledger) + params.tied(ledger)
    return 2 * n * weights + _between(ledger, n, _within_windows)


def torchtitan_full(ledger: Ledger, n: Num) -> Num:
    """As ``torchtitan`` was before it knew windows: n positions a token, no tied head."""
    return 2 * n * _torchtitan_weights(ledger) + flops.attention_all_pairs(ledger, n)


def maxtext(ledger: Ledger, n: Num) -> Num:
    """Matrices with routers, and the area under each mask."""
    return n * flops.matmul_per_token(ledger) + _between(ledger, n, _areas)


def six_n(ledger: Ledger, n: Num) -> Num:
    """2 N a token, N the parameters it uses (a text's: towers left out)."""
    return 2 * n * params.working(ledger)


def six_n_total(ledger: Ledger, n: Num) -> Num:
    """2 N a token, N all parameters stored."""
    return 2 * n * params.total(ledger)


def with_recomputation(ledger: Ledger, n: Num) -> Num:
    """Training with every layer's forward pass done again, the head's not."""
    again = flops.recomputed(ledger, n, "full", every_pair=True)
    return 3 * flops.prefill_all_pairs(ledger, n) + again


def macs(ledger: Ledger, n: Num) -> Num:
    """Multiply-adds of a forward pass over every pair: half its FLOPs."""
    return flops.prefill_all_pairs(ledger, n) // 2
