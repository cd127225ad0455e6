"""Kimi Linear and Ling 3: the delta rule in chunks, and a convolution padded on both sides."""

from __future__ import annotations

from paramcalc.ledger import Tensor
from paramcalc.model import Model
from tests.families.causes import Cause

CHUNK = 64


def _delta(model: Model, n: int) -> int:
    """Per head and chunk of C: two products C x C x w for the corrections, one for the output
    inside the chunk, and three C x w x w with the state, on whole chunks; the convolution runs over
    n + k - 1 places."""
    total = 0
    for layer in model.ledger.layers:
        sizes = {row.name: row.shape for row in layer.rows if isinstance(row, Tensor)}
        if "mixer.conv" not in sizes:
            continue
        channels, _, kernel = sizes["mixer.conv"]
        (width,) = sizes["mixer.norm"]
        heads = channels // (3 * width)
        chunks = -(-n // CHUNK)
        chunked = heads * chunks * 6 * CHUNK * width * (CHUNK + width)
        ideal = 6 * heads * width * width * n
        total += layer.n_layers * (chunked - ideal + 2 * channels * kernel * (kernel - 1))
    return total


_WHY = "the delta rule runs in chunks of 64, and the convolution over n + k - 1 places"

CAUSES = {
    ("kimi_linear", "KimiLinearForCausalLM"): Cause(_WHY, _delta),
    ("bailing_hybrid", "BailingHybridForCausalLM"): Cause(_WHY, _delta),
}
