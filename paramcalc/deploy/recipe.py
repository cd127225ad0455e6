"""How a model is trained: formats, optimizer, ZeRO, batch, recomputation, pipeline schedule."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple, TypeVar, get_args

from paramcalc import formats
from paramcalc.deploy import optimizers, schedule
from paramcalc.deploy.activations.megatron import Recompute
from paramcalc.deploy.activations.megatron import check as check_kind
from paramcalc.deploy.activations.tensors import Attention
from paramcalc.deploy.lora import Lora
from paramcalc.deploy.optimizers import Optimizer
from paramcalc.deploy.parallel import Layout
from paramcalc.deploy.schedule import Schedule
from paramcalc.errors import InputError
from paramcalc.model import Model
from paramcalc.quantities.asked import whole

WEIGHTS = {"bf16": 16, "fp16": 16, "fp32": 32}
"""Bits of trained weights; activations stay 16 bits wide (autocast) with fp32 ones."""
GRADIENTS = {"bf16": 16, "fp16": 16, "fp32": 32}
ATTENTION: tuple[Attention, ...] = get_args(Attention)
MOST_SEQ = 8192
"""Tokens of a sequence where nobody states them, if the model's context is longer."""
FULL = 4
"""Microbatches for each pipeline stage where nobody states a batch."""
MOST = {"micro_batch": 10**6, "global_batch": 10**9, "seq": 10**9, "reserve": 10**15}
"""Of settings that are counts: far above any run, and small enough to be shown."""


class Recipe(NamedTuple):
    """Settings of a training run, None where a default depends on others.

    ``dtype`` is that of trained weights (adapters are FP32, PEFT's default), ``base_dtype`` that of
    weights frozen under ``lora``. ``zero`` is the stage 0 to 3 of ZeRO (arXiv:1910.02054; FSDP is
    3), over the data- and context-parallel ranks, or ``shard_over`` of them (hybrid sharding).
    ``global_batch`` and ``micro_batch`` count sequences of ``seq`` tokens.
    """

    optimizer: Optimizer = optimizers.OPTIMIZERS["adamw"]
    dtype: str = "bf16"
    grad_dtype: str | None = None
    master: bool | None = None
    zero: int = 1
    shard_over: int | None = None
    seq: int | None = None
    micro_batch: int = 1
    global_batch: int | None = None
    recompute: Recompute = "none"
    attention: Attention = "flash"
    sequence_parallel: bool = True
    schedule: Schedule = Schedule()
    lora: Lora | None = None
    base_dtype: str = "bf16"
    reserve: int | None = None

    @property
    def weight_dtype(self) -> str:
        """The format of trained weights."""
        return "fp32" if self.lora is not None else self.dtype

    @property
    def gradient_dtype(self) -> str:
        """The format of gradients: that of the weights unless stated."""
        return self.weight_dtype if self.grad_dtype is None else self.grad_dtype

    @property
    def has_master(self) -> bool:
        """Whether there is an FP32 copy beside 16-bit weights."""
        wanted = self.optimizer.master if self.master is None else self.master
        return wanted and self.weight_dtype != "fp32"

    def sequence(self, model: Model) -> int:
        """Tokens of a sequence: stated, else the model's context up to 8,192."""
        return min(model.context, MOST_SEQ) if self.seq is None else self.seq

    def microbatches(self, layout: Layout) -> int:
        """Microbatches of a step in one replica: stated by the global batch, else 4 a stage."""
        if self.global_batch is None:
            return FULL * layout.pp if layout.pp > 1 else 1
        return self.global_batch // (layout.dp * self.micro_batch)

    def step_sequences(self, layout: Layout) -> int:
        """Sequences of one optimizer step."""
        return self.microbatches(layout) * layout.dp * self.micro_batch


def check(recipe: Recipe, model: Model, layout: Layout) -> None:
    """Raise ``InputError`` with one line where settings do not go together."""
    r = recipe
    _check_types(r)
    pick("dtype", r.dtype, WEIGHTS)
    pick("grad_dtype", r.gradient_dtype, GRADIENTS)
    check_kind(r.recompute)
    pick("attention", r.attention, ATTENTION)
    if type(r.zero) is not int or r.zero not in (0, 1, 2, 3):
        raise InputError(f"zero = {r.zero}: must be 0, 1, 2 or 3; use one")
    for name, most in MOST.items():
        value = getattr(r, name)
        if value is None and name != "micro_batch":
            continue
        if whole(name, value, 0 if name == "reserve" else 1) > most:
            raise InputError(f"{name} = {value:,}: must be at most {most:,}; lower it")
    if r.master and r.weight_dtype == "fp32":
        what = "weights" if r.lora is None else "adapters"
        raise InputError(f"master = true: fp32 {what} need no fp32 copy; leave it out")
    one = layout.dp * r.micro_batch
    if r.global_batch is not None and r.global_batch % one:
        near = -(-r.global_batch // one) * one
        raise InputError(
            f"global_batch = {r.global_batch:,}: must be a multiple of dp x micro_batch ="
            f" {layout.dp} x {r.micro_batch}; take {near:,}"
        )
    seq = r.sequence(model)
    if seq % layout.cp:
        raise InputError(f"cp = {layout.cp}: must divide the {seq:,} tokens of a sequence")
    if layout.cp > 1 and r.attention != "flash":
        raise InputError(f"cp = {layout.cp}: needs flash attention; leave --attention out")
    replicas = layout.dp * layout.cp
    if r.shard_over is not None:
        if r.zero == 0:
            raise InputError(f"shard_over = {r.shard_over}: ZeRO 0 divides nothing; raise zero")
        if replicas % whole("shard_over", r.shard_over, 1):
            raise InputError(f"shard_over = {r.shard_over}: must divide dp x cp = {replicas}")
    if r.lora is not None:
        formats.find(r.base_dtype)
        if r.dtype != "bf16":
            raise InputError(f"dtype = {r.dtype}: adapters are fp32; leave it out")
    schedule.check(r.schedule, model.ledger, layout.pp, r.microbatches(layout))


def _check_types(r: Recipe) -> None:
    for name, found, kind, example in (
        ("optimizer", r.optimizer, Optimizer, "optimizers.find('adamw')"),
        ("schedule", r.schedule, Schedule, "Schedule('1f1b')"),
        ("lora", Lora(1) if r.lora is None else r.lora, Lora, "Lora(16)"),
    ):
        if not isinstance(found, kind):
            raise InputError(f"{name} = {found}: must be of its own type; as {example}")
    whole("virtual", r.schedule.chunks, 1)


Name = TypeVar("Name", bound=str)


def pick(name: str, value: str, names: Iterable[Name]) -> Name:
    """Return the one of ``names`` that a text spells. Raises ``InputError`` with all of them."""
    listed = list(names)
    for known in listed:
        if known == value:
            return known
    raise InputError(f"{name} = {value}: must be one of {', '.join(listed)}; use one")
