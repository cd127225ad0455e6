"""Depthwise convolutions that the class pads on both sides."""

from __future__ import annotations

from paramcalc.ledger import Tensor
from paramcalc.model import Model
from tests.families.causes import Cause


def padded(model: Model, n: int) -> int:
    """Each runs over n + kernel - 1 places."""
    convs = (t for t in model.ledger.tensors if t.use == "conv" and t.stream == "token")
    return sum((t.shape[-1] - 1) * t.flops for t in convs if isinstance(t, Tensor))


PADDED = Cause("convolutions run over n + kernel - 1 places, padded on both sides", padded)
CAUSES = {
    ("inkling_text", "InklingForCausalLM"): PADDED,
    ("inkling2_text", "Inkling2ForCausalLM"): PADDED,
    ("inkling2_loop_text", "Inkling2LoopForCausalLM"): PADDED,
}
