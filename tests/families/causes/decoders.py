"""Decoders whose class computes something else than the convention."""

from __future__ import annotations

from paramcalc.model import Model
from tests.families.causes import Cause


def all_experts(model: Model, n: int) -> int:
    """Every expert runs on every token."""
    rows = (t for t in model.ledger.tensors if ".experts." in t.name and t.use == "matmul")
    return sum(2 * n * (t.copies - t.active) * t.elements for t in rows)


def scores_again(model: Model, n: int) -> int:
    """The scores once more in every layer."""
    ops = model.ledger.operations
    return sum(o.copies * o.flops_per_pair * n * n for o in ops if o.name.endswith(".scores"))


_DENSE = Cause("the class runs every expert on every token", all_experts)

CAUSES = {
    ("llama4", "Llama4ForCausalLM"): _DENSE,
    ("llama4_text", "Llama4ForCausalLM"): _DENSE,
    ("diffllama", "DiffLlamaForCausalLM"): Cause(
        "the class computes each softmax's scores twice, once for each half of the values",
        scores_again,
    ),
}
