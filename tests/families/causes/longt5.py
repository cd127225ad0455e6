"""LongT5's encoder works in blocks."""

from __future__ import annotations

from paramcalc.model import Model
from paramcalc.numbers import ceil_div
from paramcalc.sight import BothCompressed, BothWindow
from tests.families.causes import Cause


def blocks(model: Model, n: int) -> int:
    """Each block of radius + 1 positions, the last one padded, meets itself and its neighbours in
    place of all n. Global tokens are summed by a product with n // size columns, multiplied by K
    and V, and met by the padding too."""
    extra = padded = 0
    for o in model.ledger.operations:
        if isinstance(o.sight, BothWindow):
            block = o.sight.size // 2 + 1
            padded = ceil_div(n, block) * block
            extra += o.copies * o.flops_per_pair * (padded * 3 * block - n * n)
    for o in model.ledger.operations:
        if isinstance(o.sight, BothCompressed):
            extra += o.copies * o.flops_per_pair * (padded - n) * (n // o.sight.size)
            if o.name.endswith("scores"):
                d, width = model.spec.d_model, o.flops_per_pair // 2
                extra += o.copies * (n // o.sight.size) * 2 * d * (n + 2 * width)
    return extra


CAUSES = {
    ("longt5", "LongT5ForConditionalGeneration"): Cause(
        "local attention runs in blocks of radius + 1 against three blocks, not over all pairs",
        blocks,
    ),
}
