"""Memory of training: what one GPU of each pipeline stage holds, byte by byte.

Model states are folds over the tensors that ``parallel.shard`` leaves on a GPU; ZeRO (Rajbhandari
et al., arXiv:1910.02054, section 5) divides them evenly over its ranks, optimizer states from
stage 1, gradients from 2, weights from 3. Experts are divided over the ranks that hold the same
ones: dp x tp x cp / (ep x etp). Activations are those of ``activations.kept``, for every
microbatch in flight. Not counted: temporary tensors, fragmentation, communication buffers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy import activations, lora, parallel, recipe, schedule
from paramcalc.deploy.activations import Activations, Kept
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.optimizers import state_bytes
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.ledger import LayerRows, Ledger, Tensor
from paramcalc.model import Model
from paramcalc.numbers import Num, ceil_div
from paramcalc.quantities import params

GATHERED = 2
"""Units whose weights are whole at once under ZeRO 3 and FSDP: one at work, one fetched ahead."""
FIRST = ("embedding", "positions", "encoder", "relative_positions")
"""What the names of activations before the first layer start with."""


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


class Stage(NamedTuple):
    """What a GPU of one pipeline stage holds, in bytes.

    ``gathered`` are weights and gradients that ZeRO has whole for a moment; ``in_flight`` counts
    passes whose ``activations`` are held; ``parameters`` and ``trained`` are the GPU's own, before
    ZeRO divides them.
    """

    number: int
    layers: int
    parameters: int
    trained: int
    states: States
    gathered: int
    activations: int
    in_flight: int
    reserve: int

    @property
    def total(self) -> int:
        """All bytes."""
        return self.states.total + self.gathered + self.activations + self.reserve


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


class Plan:
    """A model in training on GPUs in a layout. Raises ``InputError`` where they do not match.

    >>> from paramcalc import load
    >>> plan = Plan(load("llama3-8b"), Layout(dp=64), Recipe(zero=3, seq=4096))
    >>> plan.need == max(stage.total for stage in plan.stages)
    True
    """

    def __init__(self, model: Model, layout: Layout, how: Recipe | None = None) -> None:
        self.model = model
        self.layout = layout
        self.recipe = how or Recipe()
        parallel.check(model.ledger, layout)
        recipe.check(self.recipe, model, layout)
        self.seq = self.recipe.sequence(model)
        self.trained = (
            model.ledger
            if self.recipe.lora is None
            else lora.adapters(model.ledger, self.recipe.lora)
        )
        self._base = formats.settled(formats.find(self.recipe.base_dtype), model.ledger)

    @property
    def microbatches(self) -> int:
        """Microbatches of a step in one replica."""
        return self.recipe.microbatches(self.layout)

    @property
    def step_tokens(self) -> int:
        """Tokens of one optimizer step."""
        return self.recipe.step_sequences(self.layout) * self.seq

    @property
    def ranks(self) -> Ranks:
        """GPUs that share out model states."""
        return ranks(self.layout, self.recipe.shard_over)

    @property
    def sequence_parallel(self) -> bool:
        """Whether tensor-parallel ranks also share out tokens between their matrices."""
        return self.recipe.sequence_parallel and self.layout.tp > 1

    @cached_property
    def kept(self) -> Activations:
        """What one microbatch keeps in the whole model, before tensor parallelism."""
        r = self.recipe
        tokens = self.seq // self.layout.cp
        return activations.kept(
            self.model, r.micro_batch, tokens, r.attention, recompute=r.recompute
        )

    @cached_property
    def stages(self) -> list[Stage]:
        """One GPU of each pipeline stage, the first stage first."""
        order = self.recipe.schedule
        whole = schedule.stages(order, self.model.ledger, self.layout)
        trained = (
            whole if self.recipe.lora is None else schedule.stages(order, self.trained, self.layout)
        )
        return [self._stage(i, *parts) for i, parts in enumerate(zip(whole, trained, strict=True))]

    @property
    def busiest(self) -> Stage:
        """The stage whose GPUs hold most."""
        return max(self.stages, key=lambda stage: stage.total)

    @property
    def need(self) -> int:
        """Bytes on the most loaded GPU."""
        return self.busiest.total

    def fits(self, capacity: int) -> bool:
        """Whether every GPU holds its part in so many bytes."""
        return self.need <= capacity

    def _stage(self, number: int, whole: Ledger, trained: Ledger) -> Stage:
        r = self.recipe
        own = parallel.sharded(whole, self.layout)
        learnt = parallel.sharded(trained, self.layout)
        frozen: list[tuple[Tensor, Num]] = []
        if r.lora is not None:
            frozen = [(t, formats.tensor_bytes(t, self._base)) for t in own.tensors]
        in_flight = r.schedule.in_flight(number, self.layout.pp, self.microbatches)
        return Stage(
            number,
            sum(kind.n_layers for kind in whole.layers),
            params.total(own) + (params.total(learnt) if r.lora is not None else 0),
            params.total(learnt),
            states(learnt.tensors, r, self.ranks, frozen),
            self._gathered(own, learnt),
            self._activations(number, whole, in_flight),
            in_flight,
            Engine(reserve=r.reserve).reserve_bytes(self.layout.gpus),
        )

    def _gathered(self, own: Ledger, learnt: Ledger) -> int:
        """Two units of weights under ZeRO 3, and a unit's gradients before they are reduced from
        ZeRO 2; a unit is a layer or what stands outside, the largest there is."""
        r = self.recipe
        if r.zero < 2 or self.ranks.dense == 1:
            return 0
        grad = recipe.GRADIENTS[r.gradient_dtype]
        gradients = max(sum(t.params for t in unit) * grad // 8 for unit in _units(learnt))
        if r.zero < 3:
            return gradients
        bits = recipe.WEIGHTS[r.weight_dtype]
        weights = max(sum(t.stored for t in unit) * bits // 8 for unit in _units(learnt))
        if r.lora is not None:
            base = (sum(formats.tensor_bytes(t, self._base) for t in u) for u in _units(own))
            weights += max(base)
        return GATHERED * weights + gradients

    def _activations(self, number: int, whole: Ledger, in_flight: int) -> int:
        """Bytes of every pass in flight through the stage's layers, of what stands outside, and of
        the one layer that is computed again."""
        tp, sp = self.layout.tp, self.sequence_parallel
        kinds = {(kind.stack, kind.label): kind for kind in self.kept.layers}
        inside, again = 0, 0
        for rows in whole.layers:
            kind = kinds.get((rows.stack, rows.label))
            if kind is not None:
                inside += rows.n_layers * (kind.bytes(tp, sp) + self._adapters(rows))
                again = max(again, sum(t.rank_bytes(tp, sp) for t in kind.again))
        order = self.recipe.schedule
        passes = ceil_div(in_flight, order.chunks)
        first = sum(t.rank_bytes(tp, sp) for t in self._outside(number, early=True))
        last = sum(t.rank_bytes(tp, sp) for t in self._outside(number, early=False))
        # the last stage turns round at once, unless every forward pass comes first
        held = passes * first + (passes if order.kind == "gpipe" else 1) * last
        return ceil_div(in_flight * inside, order.chunks) + held + again

    def _adapters(self, rows: LayerRows) -> int:
        """Bytes between A and B of one layer's adapters, 16 bits wide."""
        if self.recipe.lora is None or self.recipe.recompute == "full":
            return 0
        tokens = self.recipe.micro_batch * self.seq // self.layout.cp
        one = self.trained.layers
        kind = next(k for k in one if (k.stack, k.label) == (rows.stack, rows.label))
        inner = [t for t in kind.rows if isinstance(t, Tensor) and t.name.endswith(".lora_a")]
        return tokens * 2 * sum(t.runs * t.shape[0] for t in inner)

    def _outside(self, number: int, early: bool) -> list[Kept]:
        """What stands before the layers of a stage (rotary tables, the embedding on the first) or
        after them (the final norm, the head and the loss on the last)."""
        if early:
            names = FIRST if number == 0 else ()
            return [t for t in self.kept.outside if t.name.startswith(("rotary", *names))]
        if number != self.layout.pp - 1:
            return []
        late = [t for t in self.kept.outside if not t.name.startswith(("rotary", *FIRST))]
        return [*late, *self.kept.loss]


def _units(ledger: Ledger) -> list[list[Tensor]]:
    """Tensors that are gathered together: those of a layer, or one outside the layers."""
    found = [[t for t in kind.rows if isinstance(t, Tensor)] for kind in ledger.layers]
    return [*found, *([t] for t in ledger.outer if isinstance(t, Tensor)), []]
