"""Mixture of experts: a router, E experts of which k work on a token, and shared ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from paramcalc.blocks.ffn import FeedForward
from paramcalc.blocks.linear import linear
from paramcalc.ledger import Tensor
from paramcalc.numbers import Num


class MixtureOfExperts(NamedTuple):
    """Top-k routing over ``n_experts`` networks of width ``d_expert``.

    ``bias`` is that of the shared network, ``expert_bias`` that of the routed ones.
    ``d_shared`` is the width of the network that every token passes (None: there is none), which
    ``shared_gate`` scales by one learned row (Qwen2-MoE). ``correction`` is the balancing value an
    expert carries in the router: ``none``, ``parameter``, or ``buffer`` where the release stores it
    without training it (DeepSeek-V3).
    """

    name: str
    d_model: Num
    n_experts: Num
    top_k: Num
    d_expert: Num
    gated: bool
    bias: bool = False
    expert_bias: bool = False
    d_shared: Num | None = None
    shared_gate: bool = False
    router_bias: bool = False
    correction: str = "none"

    def rows(self) -> Iterator[Tensor]:
        """Yield the router, the experts, and the shared expert with its gate."""
        own, d, n = self.name, self.d_model, self.n_experts
        yield from linear(f"{own}.router", "router", n, d, bias=self.router_bias)
        if self.correction == "parameter":
            yield Tensor(f"{own}.router.correction", "router", (n,), "bias")
        elif self.correction == "buffer":
            yield Tensor(f"{own}.router.correction", "router", (n,), "buffer")
        experts = FeedForward(
            f"{own}.experts.*",
            d,
            self.d_expert,
            self.gated,
            self.expert_bias,
            n,
            self.top_k,
            expert=True,
        )
        yield from experts.rows()
        if self.d_shared is not None:
            yield from FeedForward(f"{own}.shared", d, self.d_shared, self.gated, self.bias).rows()
            if self.shared_gate:
                yield from linear(f"{own}.shared_gate", "router", 1, d)
