"""Model states of training on one GPU, and the GPUs that share them out.

Folds over the tensors that ``parallel.shard`` leaves on a GPU; ZeRO (Rajbhandari et al.,
arXiv:1910.02054, section 5) divides them evenly over its ranks, optimizer states from stage 1,
gradients from 2, weights from 3. Experts are divided over the ranks that hold the same ones:
dp x tp x cp / (ep x etp).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from paramcalc.deploy import recipe
from paramcalc.deploy.optimizers import state_bytes
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.ledger import Tensor
from paramcalc.numbers import Num, ceil_div


class Ranks(NamedTuple):
    """GPUs that share out model states: of experts, and of everything else."""

    dense: Num
    experts: Num


class States(NamedTuple):
    """Bytes of model states on one GPU; ``frozen`` weights take no gradient."""

    weights: Num
    frozen: Num
    gradients: Num
    master: Num
    optimizer: Num

    @property
    def total(self) -> Num:
        """All of them."""
        return sum(self)


def ranks(layout: Layout, shard_over: int | None = None) -> Ranks:
    """Return how many GPUs share out the states; ``shard_over`` limits it (hybrid sharding)."""
    dense = layout.dp * layout.cp
    experts = dense * layout.tp // (layout.ep * layout.expert_tp)
    if shard_over is None:
        return Ranks(dense, experts)
    return Ranks(shard_over, min(shard_over, experts))


def states(
    trained: Iterable[Tensor], how: Recipe, over: Ranks, frozen: Iterable[tuple[Tensor, Num]] = ()
) -> States:
    """Return the model states on one GPU that holds these tensors before ZeRO divides them.

    ``frozen`` are tensors that are not trained, each with its bytes.
    """
    trained = list(trained)
    bits = recipe.WEIGHTS[how.weight_dtype]
    grad_bits = recipe.GRADIENTS[how.gradient_dtype]

    def part(of: Callable[[Tensor], Num], stage: int) -> Num:
        return _divided([(t, of(t)) for t in trained], over, how.zero >= stage)

    return States(
        part(lambda t: t.stored * bits // 8, 3),
        _divided(frozen, over, how.zero >= 3),
        part(lambda t: t.params * grad_bits // 8, 2),
        part(lambda t: t.params * 4, 1) if how.has_master else 0,
        part(lambda t: state_bytes(t, how.optimizer), 1),
    )


def _divided(sizes: Iterable[tuple[Tensor, Num]], over: Ranks, split: bool) -> Num:
    """The sum of sizes on one rank, those of experts and of the rest shared out apart."""
    dense: Num = 0
    experts: Num = 0
    for tensor, size in sizes:
        if tensor.shard.startswith("expert"):
            experts = experts + size
        else:
            dense = dense + size
    if not split:
        return dense + experts
    return ceil_div(dense, over.dense) + ceil_div(experts, over.experts)
