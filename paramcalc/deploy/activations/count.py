"""What a model keeps for the backward pass: its layers, what stands around them, the loss.

A tensor counts once, at the elements that an operation keeps of it, parameters left out. Weights
and activations are 16 bits wide. Temporary tensors, gradients and the allocator's own rounding are
no part of it. Layers beside the model (multi-token prediction) and towers are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, get_args

from paramcalc.blocks import (
    Attention,
    Embedding,
    Head,
    LatentAttention,
    Norm,
    Positions,
    RelativePositions,
)
from paramcalc.build import Plan
from paramcalc.deploy.activations.layer import divided, is_classic, is_measured, kernels, within
from paramcalc.deploy.activations.megatron import Recompute, check
from paramcalc.deploy.activations.tensors import At, Kept, total
from paramcalc.deploy.activations.tensors import Attention as Way
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.numbers import Num, maximum
from paramcalc.quantities.asked import whole
from paramcalc.quantities.catalogue import Known

MEASURED = ("gpt2", "llama", "mistral", "mixtral", "qwen2", "qwen3")
"""Types whose kept bytes were measured; a file of another type gets its figures as assumed."""


class Layer(NamedTuple):
    """Equal layers: how many, what each keeps until its backward pass, and ``again``, what one
    holds besides while it is computed again."""

    stack: str
    label: str
    n_layers: Num
    tensors: tuple[Kept, ...]
    again: tuple[Kept, ...] = ()

    def bytes(self, tp: Num = 1, sequence_parallel: bool = False) -> Num:
        """Bytes that one layer keeps, on the fullest rank of ``tp``."""
        return total(self.tensors, tp, sequence_parallel)


class Activations(NamedTuple):
    """Everything kept: layers, what stands ``outside`` them, and the ``loss``."""

    layers: tuple[Layer, ...]
    outside: tuple[Kept, ...]
    loss: tuple[Kept, ...]

    def bytes(self, tp: Num = 1, sequence_parallel: bool = False, *, loss: bool = True) -> Num:
        """Bytes at the end of the forward pass, on the fullest rank of ``tp``."""
        parts = self.outside + (self.loss if loss else ())
        inside = [kind.n_layers * kind.bytes(tp, sequence_parallel) for kind in self.layers]
        return sum(inside, total(parts, tp, sequence_parallel))

    def peak_bytes(self, tp: Num = 1, sequence_parallel: bool = False) -> Num:
        """``bytes``, and the largest layer's ``again``: the most that is held at once."""
        most: Num = 0
        for kind in self.layers:
            most = maximum(most, total(kind.again, tp, sequence_parallel))
        return self.bytes(tp, sequence_parallel) + most


def kept(
    model: Model,
    batch: Num,
    seq: Num,
    attention: Way = "eager",
    dropout: float | None = None,
    recompute: Recompute = "none",
) -> Activations:
    """Return what a step over ``batch`` sequences of ``seq`` tokens keeps, tensor by tensor.

    ``eager`` and ``sdpa`` are the framework's operations one by one, ``flash`` fused kernels
    throughout. ``dropout`` is a probability (None: none), applied where the kind of layer has
    dropout. A source sequence is taken to be as long as the target. Raises ``InputError``.
    """
    _checked(batch, seq, attention, dropout)
    check(recompute)
    plan = model.plan
    learned = any(isinstance(b, Positions) for b in plan.outer)
    rms = model.spec.norm != "layer"
    likely = model.reading is None or model.reading.model_type in MEASURED
    layers, base = [], At(batch, seq, attention, bool(dropout), False, False, "derived")
    for kind in plan.layers:
        if kind.stream not in ("token", "source"):
            continue
        classic = is_classic(kind.blocks, learned)
        norms = [b for b in kind.blocks if isinstance(b, Norm)]
        layer_norm = not rms or any(n.bias for n in norms)
        sure = likely and is_measured(kind.blocks, classic, not layer_norm)
        known: Known = "derived" if sure else "assumed"
        at = base._replace(classic=classic, layer_norm=layer_norm, known=known)
        stay, again = divided(at, kind.blocks, recompute, model.spec.d_model)
        layers.append(Layer(kind.stack, kind.label, kind.n_layers, tuple(stay), tuple(again)))
    sure = all(t.known == "derived" for kind in layers for t in kind.tensors)
    at = base._replace(known="derived" if sure else "assumed")
    return Activations(
        tuple(layers), tuple(_outside(at, plan, learned, rms)), tuple(_loss(at, plan))
    )


def _outside(at: At, plan: Plan, learned: bool, rms: bool) -> Iterator[Kept]:
    """Tokens and positions, rotary tables, and what stands before and after the layers."""
    yield at.row("embedding.tokens", at.tokens, 8, "lookup")
    attentions = [
        b for kind in plan.layers for b in kind.blocks if isinstance(b, Attention | LatentAttention)
    ]
    if attentions and not any(isinstance(b, Positions | RelativePositions) for b in plan.outer):
        first = attentions[0]
        width = first.head_dim if isinstance(first, Attention) else first.qk_rope_head_dim
        why = "rotation of q and k, one for all layers"
        yield at.row("rotary.cos", at.seq * width, 2, why)
        yield at.row("rotary.sin", at.seq * width, 2, why)
    for block in plan.outer:
        if isinstance(block, Positions):
            yield at.row(f"{block.name}.places", at.seq, 8, "lookup")
        elif isinstance(block, Norm):
            yield from within(at._replace(layer_norm=block.bias or not rms), block)
        elif isinstance(block, Embedding) and is_classic(plan.layers[0].blocks, learned):
            yield from kernels(at).mask(at, "embedding", at.tokens * block.d_model, "sp")
        if not isinstance(block, Norm | Positions):
            yield from within(at, block)


def _loss(at: At, plan: Plan) -> Iterator[Kept]:
    """Cross-entropy over each token's logits, for a model with a head."""
    for block in plan.outer:
        if isinstance(block, Head):
            yield from kernels(at).loss(at, block.vocab_size)


def _checked(batch: Num, seq: Num, attention: str, dropout: float | None) -> None:
    """Raise ``InputError`` for what cannot be counted; symbols and arrays pass."""
    for name, value in (("batch", batch), ("seq", seq)):
        if isinstance(value, int | float | str):
            whole(name, value, 1)
    if attention not in get_args(Way):
        raise InputError(f"attention = {attention}: must be eager, sdpa or flash; use one")
    if dropout is not None and not 0 <= dropout < 1:
        raise InputError(f"dropout = {dropout}: must be at least 0 and below 1; give such a value")
