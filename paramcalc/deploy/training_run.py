"""A training run: FLOPs, utilization, time, energy, money, checkpoints."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property

from paramcalc import formats
from paramcalc.deploy import lora, recipe
from paramcalc.deploy.hardware import Accelerator
from paramcalc.deploy.optimizers import state_bytes
from paramcalc.deploy.training import Plan
from paramcalc.errors import InputError
from paramcalc.ledger import Ledger
from paramcalc.numbers import Num, ceil_div
from paramcalc.quantities import conventions, flops, params
from paramcalc.quantities.asked import whole
from paramcalc.quantities.tool_rules import Fold

SECOND = 10**6
"""Microseconds."""
HOUR = 3600
MFU = Fraction(40, 100)
"""Assumed where nobody states a speed; the 405B run of Llama 3 reports 38% to 43%
(arXiv:2407.21783, table 4)."""
CONVENTIONS = ("6n", "palm", "kaplan", "megatron", "torchtitan", "maxtext")
"""Rules of other tools that a run is shown under (``quantities/conventions.py``)."""
MOST_TOKENS = 10**18
"""Of a run: more than was ever written."""
MOST_PUE = 100


class Run:
    """A plan that trains on ``tokens`` (None: one step) on one kind of GPU.

    It takes whole steps, each of all its sequences, so that ``processed`` tokens are ``tokens`` or
    a part of a step more; work, time, energy and money are theirs. The speed is either ``mfu``,
    model FLOPs over the dense peak in ``compute`` (None: fp16 for FP16 weights, else bf16), or
    ``tokens_per_second`` of all GPUs together; the other follows. Idle time of a pipeline is part
    of the MFU. ``pue`` multiplies the GPUs' watts (1: the GPUs alone). Raises ``InputError`` for
    no tokens or more than 10^18, a speed above the peak, a format of integers, or a GPU without
    the format.
    """

    def __init__(
        self,
        plan: Plan,
        gpu: Accelerator,
        tokens: int | None = None,
        mfu: Fraction | float | None = None,
        tokens_per_second: int | None = None,
        compute: str | None = None,
        pue: Fraction | float = Fraction(1),
    ) -> None:
        for name, count in (("tokens", tokens), ("tokens_per_second", tokens_per_second)):
            if count is not None and whole(name, count, 1) > MOST_TOKENS:
                raise InputError(f"{name} = {count:,}: must be at most {MOST_TOKENS:,}; lower it")
        if mfu is not None and tokens_per_second is not None:
            raise InputError("mfu and tokens_per_second: each gives the other; leave one out")
        self._mfu = MFU if mfu is None else _exact("mfu", mfu)
        if not 0 < self._mfu <= 1:
            raise InputError(
                f"mfu = {float(self._mfu):g}: must be above 0 and at most 1; as 0.4 or 40%"
            )
        self.pue = _exact("pue", pue)
        if not 1 <= self.pue <= MOST_PUE:
            raise InputError(
                f"pue = {float(self.pue):g}: must be from 1 (the GPUs alone) to {MOST_PUE}; change"
                " it"
            )
        self.plan = plan
        self.gpu = gpu
        self.tokens = plan.step_tokens if tokens is None else tokens
        self.compute = _arithmetic(plan) if compute is None else compute
        if self.compute.strip().lower().startswith("int"):
            known = ", ".join(name for name in gpu.peaks if not name.startswith("int"))
            raise InputError(
                f"compute = {self.compute}: integers carry no gradients; take one of {known}"
            )
        if gpu.peaks and not gpu.has(self.compute):
            raise InputError(
                f"compute = {self.compute}: {gpu.name} has no such peak; take one of"
                f" {', '.join(name for name in gpu.peaks if not name.startswith('int'))}"
            )
        self.peak = gpu.peak(self.compute) * plan.layout.gpus
        self.speed = None if tokens_per_second is None else Fraction(tokens_per_second)
        if self.hfu > 1:
            self._refuse(tokens_per_second)

    def _refuse(self, tokens_per_second: int | None) -> None:
        """What is computed, twice or not, cannot pass the peak."""
        if tokens_per_second is not None:
            most = int(self.peak * self.processed / self.hardware_flops)
            raise InputError(
                f"tokens_per_second = {tokens_per_second:,}: {self.plan.layout.gpus:,}"
                f" {self.gpu.name} at their peak do {most:,}; lower it"
            )
        again = Fraction(self.hardware_flops, self.model_flops)
        highest = int(10**4 / again) / 10**4
        raise InputError(
            f"mfu = {float(self._mfu):g}: {self.plan.recipe.recompute} recomputation makes"
            f" {float(again):.3f} times the work; at most {highest:g}"
        )

    @cached_property
    def model_flops(self) -> int:
        """FLOPs that training needs, nothing computed twice, exact for these sequences."""
        return self._over(self._needed)

    @cached_property
    def again_flops(self) -> int:
        """FLOPs that recomputation adds."""
        return self._over(self._repeated)

    @property
    def hardware_flops(self) -> int:
        """FLOPs that are computed."""
        return self.model_flops + self.again_flops

    def _over(self, fold: Fold) -> int:
        """A fold over the sequences of all steps."""
        plan = self.plan
        return self.processed // plan.seq * fold(plan.model.ledger, plan.seq)

    def _needed(self, ledger: Ledger, n: Num) -> Num:
        adapters = self.plan.recipe.lora
        if adapters is None:
            return flops.training(ledger, n)
        return lora.training(ledger, adapters, n)

    def _repeated(self, ledger: Ledger, n: Num) -> Num:
        how = self.plan.recipe
        if how.lora is None:
            return flops.recomputed(ledger, n, how.recompute)
        return lora.recomputed(ledger, how.lora, n, how.recompute)

    def by_convention(self) -> dict[str, int]:
        """Training FLOPs of all tokens under other tools' rules; none for adapters."""
        if self.plan.recipe.lora is not None:
            return {}
        found = {}
        for name in CONVENTIONS:
            fold = conventions.find(name).training
            assert fold is not None
            found[name] = self._over(fold)
        return found

    @property
    def mfu(self) -> Fraction:
        """Model FLOPs utilization (PaLM, arXiv:2204.02311, appendix B)."""
        if self.speed is None:
            return self._mfu
        return flops.utilization(self.model_flops, self.processed, self.speed, self.peak)

    @property
    def hfu(self) -> Fraction:
        """Hardware FLOPs utilization: with what is computed again."""
        return self.mfu * self.hardware_flops / self.model_flops

    @property
    def most_mfu(self) -> Fraction:
        """What MFU cannot pass: kernels at their peak but for recomputation and the bubble."""
        plan = self.plan
        bubble = plan.recipe.schedule.bubble(plan.layout.pp, plan.microbatches)
        return Fraction(self.model_flops) / self.hardware_flops / (1 + bubble)

    @property
    def seconds(self) -> Fraction:
        """Time of the run, nothing but training."""
        if self.speed is not None:
            return self.processed / self.speed
        return Fraction(self.model_flops) / (self._mfu * self.peak)

    @property
    def tokens_per_second(self) -> int:
        """Tokens that all GPUs process in a second."""
        return int(self.processed / self.seconds)

    @property
    def steps(self) -> int:
        """Optimizer steps, all of one size."""
        return ceil_div(self.tokens, self.plan.step_tokens)

    @property
    def processed(self) -> int:
        """Tokens of whole steps."""
        return self.steps * self.plan.step_tokens

    @property
    def gpu_hours(self) -> Fraction:
        """Hours of one GPU."""
        return self.seconds * self.plan.layout.gpus / HOUR

    @property
    def cost(self) -> int | None:
        """Micro-dollars; None where the GPU has no price."""
        price = self.gpu.price_per_hour_micro
        return None if price is None else -int(-self.gpu_hours * price // 1)

    @property
    def watt_hours(self) -> int | None:
        """``joules`` as whole watt-hours."""
        joules = self.joules
        return None if joules is None else joules // HOUR

    @property
    def joules(self) -> int | None:
        """Energy at the GPUs' full power times ``pue``; None where their watts are not known."""
        watts = self.gpu.watts
        return None if watts is None else int(self.gpu_hours * HOUR * watts * self.pue)

    @property
    def tokens_per_parameter(self) -> Fraction:
        """Tokens stated for each stored parameter of the model."""
        return Fraction(self.tokens, params.total(self.plan.model.ledger))

    @cached_property
    def checkpoint_weights(self) -> int:
        """Bytes of the trained weights: the model, or the adapters alone."""
        how = self.plan.recipe
        return formats.weight_bytes(self.plan.trained, formats.find(how.weight_dtype))

    @cached_property
    def checkpoint(self) -> int:
        """Bytes to resume from: weights, master copy and optimizer state."""
        how = self.plan.recipe
        tensors = self.plan.trained.tensors
        state = sum(state_bytes(t, how.optimizer) for t in tensors)
        master = recipe.WEIGHTS["fp32"] // 8 * params.total(self.plan.trained)
        return self.checkpoint_weights + state + (master if how.has_master else 0)


def _arithmetic(plan: Plan) -> str:
    """The format that products are taken in: FP32 weights are cast to BF16."""
    return "fp16" if plan.recipe.dtype == "fp16" else "bf16"


def _exact(name: str, value: int | float | Fraction) -> Fraction:
    """A number of a caller; a float is what it is written as. Raises ``InputError``."""
    if isinstance(value, float) and math.isfinite(value):
        return Fraction(repr(value))
    if isinstance(value, bool) or not isinstance(value, int | Fraction):
        raise InputError(f"{name} = {value}: must be a number; as Fraction(2, 5)")
    return Fraction(value)
