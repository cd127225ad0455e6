"""Ratios of a shape, and the rules of thumb beside the exact figure."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from paramcalc.blocks import Attention, FeedForward, LatentAttention, MixtureOfExperts
from paramcalc.build import Plan
from paramcalc.ledger import Ledger, Role, Tensor
from paramcalc.numbers import Num
from paramcalc.quantities import flops, params


class Ratios(NamedTuple):
    """One kind of layer as ratios; ints only.

    ``neurons_per_width``: active hidden neurons over d_model; ``heads_per_width``: n_heads x
    head_dim over d_model; ``qk_rank`` and ``ov_rank``: the largest rank of one head's d x d maps
    W_Q W_K^T and W_V W_O; ``attention`` and ``ffn``: parameters of their matrices, biases left out,
    all experts counted; ``ffn_share``: feed-forward matrices over attention and feed-forward
    matrices of the layer.
    """

    name: str
    attention: int
    ffn: int
    ffn_share: Fraction
    neurons_per_width: Fraction
    heads_per_width: Fraction
    n_heads: int
    qk_rank: int
    ov_rank: int


def ratios(plan: Plan, ledger: Ledger) -> list[Ratios]:
    """Return the ratios of each kind of layer."""
    found = []
    kinds = params.by_kind(ledger)
    for layer, rows, kind in zip(plan.layers, ledger.layers, kinds, strict=True):
        heads = (b for b in layer.blocks if isinstance(b, Attention | LatentAttention))
        mixer = next(heads, None)
        if mixer is None:
            continue
        if isinstance(mixer, LatentAttention):
            qk = mixer.qk_nope_head_dim + mixer.qk_rope_head_dim
        else:
            qk = mixer.head_dim
        d = mixer.d_model
        tensors = [r for r in rows.rows if isinstance(r, Tensor)]
        ffn, attention = matrices(tensors, "ffn"), matrices(tensors, "attention")
        found.append(
            Ratios(
                kind.name.removeprefix("decoder ") if len(kinds) > 1 else "layer",
                attention,
                ffn,
                Fraction(ffn, ffn + attention),
                Fraction(_neurons(layer.blocks), d),
                Fraction(mixer.n_heads * qk, d),
                mixer.n_heads,
                min(qk, d),
                min(mixer.v_head_dim, d),
            )
        )
    return found


def matrices(tensors: list[Tensor], role: Role) -> Num:
    """Return the parameters of one role's matrices: biases, sinks and norms left out."""
    return sum(t.params for t in tensors if t.role == role and t.use == "matmul")


def _neurons(blocks: tuple[object, ...]) -> int:
    for block in blocks:
        if isinstance(block, FeedForward):
            return block.d_ff
        if isinstance(block, MixtureOfExperts):
            return block.top_k * block.d_expert + (block.d_shared or 0)
    return 0


class Rule(NamedTuple):
    """A rule of thumb, what it gives, and the exact figure it stands for."""

    name: str
    gives: int
    of: str
    exact: int

    @property
    def error(self) -> Fraction:
        """(rule - exact) / exact."""
        return Fraction(self.gives - self.exact, self.exact)


def rules_of_thumb(d: int, plan: Plan, ledger: Ledger, n: int) -> list[Rule]:
    """Return 12 L d^2 (``d`` = d_model), 2N and 6N beside the exact figures; ints only.

    12 L d² (Kaplan et al. 2020) stands for the parameters outside embeddings, head and towers; 2N
    and 6N take N = active parameters, towers left out, and stand for the forward and training FLOPs
    a token, averaged over a sequence of n.
    """
    layers = sum(layer.n_layers for layer in plan.layers)
    active, forward = params.working(ledger), flops.prefill(ledger, n)
    inside = params.non_embedding(ledger) - params.of_roles(ledger.tensors, "tower")
    return [
        Rule("12 L d²", 12 * layers * d * d, "non-embedding", inside),
        Rule("2 N n", 2 * active * n, "forward", forward),
        Rule("6 N n", flops.six_n(active, n), "training", flops.training(ledger, n)),
    ]
