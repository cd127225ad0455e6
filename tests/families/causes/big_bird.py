"""BigBird's block-sparse attention, which long sequences take."""

from __future__ import annotations

from paramcalc.model import Model
from tests.families.causes import Cause


def sparse(model: Model, n: int, tower: str = "") -> int:
    """The first and last blocks see everything, those beside them 4 + r blocks, others 5 + r."""
    assert model.reading is not None
    config = {"block_size": 64, "num_random_blocks": 3, **model.reading.data}
    block, random = config["block_size"], config["num_random_blocks"]
    if n <= (5 + 2 * random) * block:
        return 0
    beside, middle = 2 * (4 + random) * block, (n // block - 4) * (5 + random) * block
    pairs = block * (2 * n + beside + middle)
    ops = (o for o in model.ledger.operations if o.name.startswith(tower))
    return (pairs - n * n) * sum(o.copies * o.flops_per_pair for o in ops)


_WHY = "block-sparse attention past (5 + 2 r) blocks, not all pairs"
CAUSES = {
    ("big_bird", "BigBirdForCausalLM"): Cause(_WHY, sparse),
    ("big_bird", "BigBirdForMaskedLM"): Cause(_WHY, sparse),
    ("bigbird_pegasus", "BigBirdPegasusForConditionalGeneration"): Cause(
        f"{_WHY}, in the encoder", lambda model, n: sparse(model, n, "encoder.")
    ),
}
