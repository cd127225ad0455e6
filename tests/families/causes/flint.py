"""Lara Mini: the delta rule in chunks, as in Qwen3-Next."""

from __future__ import annotations

from tests.families.causes import Cause, recurrent

CAUSES = {
    ("lara_mini", "LaraMiniForCausalLM"): Cause(
        "the rule runs in chunks of 64, the convolution over n + k - 1 places", recurrent.delta
    ),
}
