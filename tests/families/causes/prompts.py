"""CPM-Ant reads a prompt before the text."""

from __future__ import annotations

from paramcalc.ledger import Tensor
from paramcalc.model import Model
from tests.families.causes import Cause


def prompt(model: Model, n: int) -> int:
    """The prompt's tokens pass every layer and are seen by all."""
    assert model.reading is not None
    more = model.reading.data.get("prompt_length", 32)
    rows = [row for layer in model.ledger.layers for row in layer.all_rows()]
    matmuls = sum(r.flops for r in rows if isinstance(r, Tensor))
    work = sum(o.copies * o.flops_per_pair for o in model.ledger.operations)
    return more * matmuls + work * ((n + more) ** 2 - n * n)


CAUSES = {
    ("cpmant", "CpmAntForCausalLM"): Cause("a prompt of 32 tokens stands before the text", prompt),
}
