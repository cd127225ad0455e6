"""Inkling: short convolutions padded on both sides, and ones whose taps depend on the token."""

from __future__ import annotations

from paramcalc.model import Model
from tests.families.causes import Cause


def convolutions(model: Model, n: int) -> int:
    """A stored kernel of k runs over n + k - 1 places; taps (k, channels) that depend on the token
    are multiplied one by one, which the framework does not count."""
    total = 0
    for tensor in model.ledger.tensors:
        if tensor.use == "conv" and len(tensor.shape) == 3:
            total += tensor.flops * (tensor.shape[-1] - 1)
        elif tensor.use == "conv":
            total -= tensor.flops * n
    return total


_WHY = "short convolutions run over n + k - 1 places; those with taps a token are not counted"

CAUSES = {
    ("inkling_text", "InklingForCausalLM"): Cause(_WHY, convolutions),
    ("inkling2_text", "Inkling2ForCausalLM"): Cause(_WHY, convolutions),
    ("inkling2_loop_text", "Inkling2LoopForCausalLM"): Cause(_WHY, convolutions),
}
