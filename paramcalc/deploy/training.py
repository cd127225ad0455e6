"""Memory of training: what one GPU of each pipeline stage holds, byte by byte.

Model states are those of ``training_states``. Activations are those of ``activations.kept``, for
every microbatch in flight. Not counted: temporary tensors, fragmentation, communication buffers.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

from paramcalc import formats
from paramcalc.deploy import activations, lora, parallel, recipe, schedule
from paramcalc.deploy.activations import Activations, Kept
from paramcalc.deploy.engine import Engine
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.recipe import Recipe
from paramcalc.deploy.training_states import Ranks, States, ranks, states
from paramcalc.ledger import LayerRows, Ledger, Tensor
from paramcalc.model import Model
from paramcalc.numbers import Num, ceil_div
from paramcalc.quantities import params

GATHERED = 2
"""Units whose weights are whole at once under ZeRO 3 and FSDP: one at work, one fetched ahead."""
FIRST = ("embedding", "positions", "encoder", "relative_positions")
"""What the names of activations before the first layer start with."""


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


class _Share(NamedTuple):
    """What a GPU of a stage holds whatever the number of passes in flight, in bytes: ``inside`` the
    layers for one pass, ``first`` before and ``last`` after them, ``again`` for the layer that is
    computed again."""

    layers: int
    parameters: int
    trained: int
    states: States
    gathered: int
    inside: int
    again: int
    first: int
    last: int


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
    def _shares(self) -> list[_Share]:
        """What does not change with the passes in flight, stage by stage; one object for those
        that hold the same."""
        order = self.recipe.schedule
        whole = schedule.stages(order, self.model.ledger, self.layout)
        trained = (
            whole if self.recipe.lora is None else schedule.stages(order, self.trained, self.layout)
        )
        known: dict[tuple[object, ...], _Share] = {}
        found = []
        for number, (ledger, learnt) in enumerate(zip(whole, trained, strict=True)):
            # rows are one object where stages hold the same layers
            key = (id(ledger.rows), id(learnt.rows), number == 0, number == self.layout.pp - 1)
            if key not in known:
                known[key] = self._share(number, ledger, learnt)
            found.append(known[key])
        return found

    @cached_property
    def stages(self) -> list[Stage]:
        """One GPU of each pipeline stage, the first stage first."""
        return [self._stage(number, share) for number, share in enumerate(self._shares)]

    @cached_property
    def busiest(self) -> Stage:
        """The stage whose GPUs hold most. Of those that hold the same layers it is the first: no
        later one has more passes in flight."""
        first: dict[int, int] = {}
        for number, share in enumerate(self._shares):
            first.setdefault(id(share), number)
        some = (self._stage(number, self._shares[number]) for number in first.values())
        return max(some, key=lambda stage: stage.total)

    @property
    def need(self) -> int:
        """Bytes on the most loaded GPU."""
        return self.busiest.total

    def fits(self, capacity: int) -> bool:
        """Whether every GPU holds its part in so many bytes."""
        return self.least <= capacity and self.need <= capacity

    @cached_property
    def undivided(self) -> States:
        """The model states that one GPU would hold alone."""
        return states(
            self.trained.tensors, self.recipe, Ranks(1, 1), self._frozen(self.model.ledger)
        )

    @property
    def least(self) -> int:
        """Bytes below which ``need`` cannot be, found without looking at the stages: the mean of
        the model states over all GPUs."""
        s, zero, layout = self.undivided, self.recipe.zero, self.layout
        inside = layout.pp * max(layout.tp, layout.ep * layout.expert_tp)
        parts = ((s.weights + s.frozen, 3), (s.gradients, 2), (s.master + s.optimizer, 1))
        return sum(
            size // (layout.gpus if zero >= stage else min(inside, layout.gpus))
            for size, stage in parts
        )

    def _frozen(self, ledger: Ledger) -> list[tuple[Tensor, Num]]:
        """The tensors that are not trained, each with its bytes."""
        if self.recipe.lora is None:
            return []
        return [(t, formats.tensor_bytes(t, self._base)) for t in ledger.tensors]

    def _stage(self, number: int, share: _Share) -> Stage:
        r = self.recipe
        in_flight = r.schedule.in_flight(number, self.layout.pp, self.microbatches)
        return Stage(
            number,
            share.layers,
            share.parameters,
            share.trained,
            share.states,
            share.gathered,
            self._activations(share, in_flight),
            in_flight,
            Engine(reserve=r.reserve).reserve_bytes(self.layout.gpus),
        )

    def _share(self, number: int, whole: Ledger, trained: Ledger) -> _Share:
        r = self.recipe
        own = parallel.sharded(whole, self.layout)
        learnt = parallel.sharded(trained, self.layout)
        tp, sp = self.layout.tp, self.sequence_parallel
        inside, again = self._inside(whole)
        return _Share(
            sum(kind.n_layers for kind in whole.layers),
            params.total(own) + (params.total(learnt) if r.lora is not None else 0),
            params.total(learnt),
            states(learnt.tensors, self.recipe, self.ranks, self._frozen(own)),
            self._gathered(own, learnt),
            inside,
            again,
            sum(t.rank_bytes(tp, sp) for t in self._outside(number, early=True)),
            sum(t.rank_bytes(tp, sp) for t in self._outside(number, early=False)),
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

    def _inside(self, whole: Ledger) -> tuple[int, int]:
        """Bytes that one pass keeps in the stage's layers, and those of the layer that holds most
        while it is computed again."""
        tp, sp = self.layout.tp, self.sequence_parallel
        kinds = {(kind.stack, kind.label): kind for kind in self.kept.layers}
        inside, again = 0, 0
        for rows in whole.layers:
            kind = kinds.get((rows.stack, rows.label))
            if kind is not None:
                inside += rows.n_layers * (kind.bytes(tp, sp) + self._adapters(rows))
                again = max(again, sum(t.rank_bytes(tp, sp) for t in kind.again))
        return inside, again

    def _activations(self, share: _Share, in_flight: int) -> int:
        """Bytes of every pass in flight through the stage's layers, of what stands outside, and of
        the one layer that is computed again."""
        order = self.recipe.schedule
        passes = ceil_div(in_flight, order.chunks)
        # the last stage turns round at once, unless every forward pass comes first
        held = passes * share.first + (passes if order.kind == "gpipe" else 1) * share.last
        return ceil_div(in_flight * share.inside, order.chunks) + held + share.again

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
