"""A training run: FLOPs, utilization, time, energy, money, checkpoints."""

from __future__ import annotations

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
from paramcalc.quantities.tool_rules import Fold

SECOND = 10**6
"""Microseconds."""
HOUR = 3600
MFU = Fraction(40, 100)
"""Assumed where nobody states a speed; the 405B run of Llama 3 reports 38% to 43%
(arXiv:2407.21783, table 4)."""
CONVENTIONS = ("6n", "palm", "kaplan", "megatron", "torchtitan", "maxtext")
"""Rules of other tools that a run is shown under (``quantities/conventions.py``)."""


class Run:
    """A plan that trains on ``tokens`` (None: one step) on one kind of GPU.

    The speed is either ``mfu``, model FLOPs over the dense peak in ``compute`` (None: fp16 for
    FP16 weights, else bf16), or
    ``tokens_per_second`` of all GPUs together; the other follows. Idle time of a pipeline is part
    of the MFU. ``pue`` multiplies the GPUs' watts (1: the GPUs alone). Raises ``InputError`` for
    no tokens, a speed above the peak, or a GPU without the format.
    """

    def __init__(
        self,
        plan: Plan,
        gpu: Accelerator,
        tokens: int | None = None,
        mfu: Fraction | None = None,
        tokens_per_second: int | None = None,
        compute: str | None = None,
        pue: Fraction = Fraction(1),
    ) -> None:
        if tokens is not None and tokens < 1:
            raise InputError(f"tokens = {tokens}: must be at least 1; raise it")
        if mfu is not None and tokens_per_second is not None:
            raise InputError("mfu and tokens_per_second: each gives the other; leave one out")
        if mfu is not None and not 0 < mfu <= 1:
            raise InputError(f"mfu = {float(mfu):g}: must be above 0 and at most 1; as 0.4 or 40%")
        if pue < 1:
            raise InputError(f"pue = {float(pue):g}: must be at least 1; 1 is the GPUs alone")
        self.plan = plan
        self.gpu = gpu
        self.tokens = plan.step_tokens if tokens is None else tokens
        self.compute = _arithmetic(plan) if compute is None else compute
        self.pue = pue
        if gpu.peaks and not gpu.has(self.compute):
            raise InputError(
                f"compute = {self.compute}: {gpu.name} has no such peak; take one of"
                f" {', '.join(gpu.peaks)}"
            )
        self.peak = gpu.peak(self.compute) * plan.layout.gpus
        self.speed = None if tokens_per_second is None else Fraction(tokens_per_second)
        self._mfu = MFU if mfu is None else mfu
        if self.speed is not None and self.mfu > 1:
            most = int(self.peak * self.tokens / self.model_flops)
            raise InputError(
                f"tokens_per_second = {tokens_per_second:,}: {plan.layout.gpus:,} {gpu.name} at"
                f" their peak do {most:,}; lower it"
            )

    @cached_property
    def model_flops(self) -> int:
        """FLOPs that training needs, nothing computed twice, exact for these sequences."""
        return over(self._needed, self.plan.model.ledger, self.tokens, self.plan.seq)

    @cached_property
    def again_flops(self) -> int:
        """FLOPs that recomputation adds."""
        return over(self._repeated, self.plan.model.ledger, self.tokens, self.plan.seq)

    @property
    def hardware_flops(self) -> int:
        """FLOPs that are computed."""
        return self.model_flops + self.again_flops

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
            found[name] = over(fold, self.plan.model.ledger, self.tokens, self.plan.seq)
        return found

    @property
    def mfu(self) -> Fraction:
        """Model FLOPs utilization (PaLM, arXiv:2204.02311, appendix B)."""
        if self.speed is None:
            return self._mfu
        return flops.utilization(self.model_flops, self.tokens, self.speed, self.peak)

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
            return self.tokens / self.speed
        return Fraction(self.model_flops) / (self._mfu * self.peak)

    @property
    def tokens_per_second(self) -> int:
        """Tokens that all GPUs process in a second."""
        return int(self.tokens / self.seconds)

    @property
    def steps(self) -> int:
        """Optimizer steps, the last one perhaps smaller."""
        return ceil_div(self.tokens, self.plan.step_tokens)

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
        """Energy at the GPUs' full power times ``pue``; None where their watts are not known."""
        watts = self.gpu.watts
        return None if watts is None else int(self.gpu_hours * watts * self.pue)

    @property
    def tokens_per_parameter(self) -> Fraction:
        """Tokens for each stored parameter of the model."""
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


def over(fold: Fold, ledger: Ledger, tokens: int, seq: int) -> int:
    """Return a fold over ``tokens`` in sequences of ``seq``; what is left is a shorter one."""
    whole, rest = divmod(tokens, seq)
    found = whole * fold(ledger, seq) if whole else 0
    return found + (fold(ledger, rest) if rest else 0)
