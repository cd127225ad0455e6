"""Optimizers: the bytes of state that each keeps for a tensor, read off their implementations.

* AdamW: two moments in FP32 (Loshchilov and Hutter, arXiv:1711.05101); ``adamw-bf16`` keeps them
  in the weights' own BF16, as PyTorch does for a model in BF16.
* ``adamw-8bit``: bitsandbytes' ``AdamW8bit`` (arXiv:2110.02861). Two bytes an element and an FP32
  maximum for each block of 256 elements in each moment (2,048 before release 0.44). Tensors of
  fewer than 4,096 elements keep FP32, and so do embeddings (``register_module_override`` in
  transformers' Trainer; ``StableEmbedding``).
* Adafactor (Shazeer and Stern, arXiv:1804.04235): FP32 sums of the rows and of the columns of a
  matrix, a vector's second moment whole, no first moment (transformers' ``Adafactor``).
* Lion (arXiv:2302.06675): one momentum in FP32.
* Muon (Jordan et al. 2024; arXiv:2502.16982): one momentum in FP32 for matrices inside layers;
  embeddings, head and vectors go to AdamW.
* SGD: nothing, or one momentum in FP32.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import NamedTuple, TypeAlias

from paramcalc.errors import InputError, did_you_mean
from paramcalc.ledger import Tensor
from paramcalc.numbers import Num, ceil_div, minimum

BLOCK = 256
"""Elements that share an FP32 maximum in an 8-bit moment."""
LEAST_8BIT = 4096
"""Elements below which bitsandbytes keeps FP32."""

State: TypeAlias = Callable[[Tensor], Num]


class Optimizer(NamedTuple):
    """``state`` gives the bytes kept for one copy of a tensor, an FP32 master copy of the weights
    apart; ``master`` says whether mixed precision with it keeps one; ``keeps`` says it in words.
    """

    name: str
    state: State
    keeps: str
    master: bool = True


def state_bytes(tensor: Tensor, optimizer: Optimizer) -> Num:
    """Return the bytes of an optimizer's state for all copies of a tensor; buffers have none."""
    return 0 if tensor.use == "buffer" else tensor.copies * optimizer.state(tensor)


def find(name: str) -> Optimizer:
    """Return the optimizer of that name. Raises ``InputError`` with the names there are."""
    key = _SPELLINGS.get(name.strip().lower(), name.strip().lower())
    if key not in OPTIMIZERS:
        near = did_you_mean(key, OPTIMIZERS)
        raise InputError(f"optimizer = {name}: unknown{near}; take one of {', '.join(OPTIMIZERS)}")
    return OPTIMIZERS[key]


def _bytes(each: int) -> State:
    return lambda tensor: each * tensor.elements


def _eight_bit(tensor: Tensor) -> Num:
    n = tensor.elements
    if tensor.use == "lookup":
        return 8 * n
    large = minimum(1, n // LEAST_8BIT)
    return large * (2 * n + 2 * 4 * ceil_div(n, BLOCK)) + (1 - large) * 8 * n


def _factored(tensor: Tensor) -> Num:
    *outer, last = tensor.shape
    if not outer:
        return 4 * last
    return 4 * (prod(outer) + prod(outer[:-1]) * last)


def is_hidden_matrix(tensor: Tensor) -> bool:
    """Whether Muon updates a tensor: two dimensions or more, and inside the layers."""
    return len(tensor.shape) > 1 and tensor.role not in ("embedding", "position", "head")


def _muon(tensor: Tensor) -> Num:
    return (4 if is_hidden_matrix(tensor) else 8) * tensor.elements


OPTIMIZERS = {
    o.name: o
    for o in (
        Optimizer("adamw", _bytes(8), "m and v in fp32"),
        Optimizer("adamw-bf16", _bytes(4), "m and v in bf16", master=False),
        Optimizer("adamw-8bit", _eight_bit, "m and v, 8-bit"),
        Optimizer("adafactor", _factored, "rows + columns"),
        Optimizer("lion", _bytes(4), "momentum in fp32"),
        Optimizer("muon", _muon, "momentum, or m, v"),
        Optimizer("sgd", _bytes(0), "no state"),
        Optimizer("sgd-momentum", _bytes(4), "momentum in fp32"),
    )
}
"""Every optimizer by its name."""

_SPELLINGS = {
    "adam": "adamw",
    "adam-8bit": "adamw-8bit",
    "adamw_8bit": "adamw-8bit",
    "adamw8bit": "adamw-8bit",
    "adam8bit": "adamw-8bit",
    "adamw-bnb-8bit": "adamw-8bit",
}
