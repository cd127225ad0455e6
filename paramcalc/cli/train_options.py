"""What a command line says of a training run, as its recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING

from paramcalc.cli import deploy_options as d
from paramcalc.cli import options as o
from paramcalc.errors import InputError

if TYPE_CHECKING:
    from paramcalc.deploy.lora import Lora
    from paramcalc.deploy.recipe import Recipe
    from paramcalc.model import Model

_Text = str | None


def recipe(
    model: Model,
    *,
    optimizer: str,
    dtype: _Text,
    grad_dtype: _Text,
    master: bool | None,
    zero: str,
    shard_over: _Text,
    seq: _Text,
    micro_batch: str,
    batches: tuple[_Text, _Text],
    recompute: str,
    attention: str,
    sequence_parallel: bool,
    pipeline: tuple[str, _Text],
    adapters: tuple[_Text, _Text, _Text],
    reserve: _Text,
) -> Recipe:
    """The settings as typed. Raises ``InputError``."""
    from paramcalc.deploy import optimizers
    from paramcalc.deploy.activations.megatron import RECOMPUTE
    from paramcalc.deploy.recipe import ATTENTION, Recipe, pick
    from paramcalc.deploy.schedule import KINDS, Schedule
    from paramcalc.views.arguments import size

    stage = {"fsdp": "3"}.get(zero.strip().lower(), zero)
    if stage not in ("0", "1", "2", "3"):
        raise InputError(f"zero = {zero}: must be 0, 1, 2, 3 or fsdp; use one")
    kind, chunks = pipeline
    default = 2 if kind == "interleaved" else 1
    lora = _adapters(*adapters[:2])
    if lora is None and adapters[2] is not None:
        raise InputError(f"base_dtype = {adapters[2]}: only under adapters; add --lora-rank")
    if lora is not None and dtype is not None:
        raise InputError(
            f"dtype = {dtype}: adapters are fp32 and what is frozen is --base-dtype; leave it out"
        )
    found = Recipe(
        optimizer=optimizers.find(optimizer),
        dtype="bf16" if dtype is None else dtype,
        grad_dtype=grad_dtype,
        master=master,
        zero=int(stage),
        shard_over=d.count("shard_over", shard_over),
        seq=None if seq is None else _length("seq", seq),
        micro_batch=o.positive("micro_batch", micro_batch),
        recompute=pick("recompute", recompute, RECOMPUTE),
        attention=pick("attention", attention, ATTENTION),
        sequence_parallel=sequence_parallel,
        schedule=Schedule(pick("schedule", kind, KINDS), d.count("virtual", chunks) or default),
        lora=lora,
        base_dtype="bf16" if adapters[2] is None else adapters[2],
        reserve=None if reserve is None else size("reserve", reserve, 0),
    )
    return found._replace(global_batch=_batch(batches, found.sequence(model)))


def _batch(batches: tuple[_Text, _Text], seq: int) -> int | None:
    """Sequences of a step, typed as such or in tokens."""
    sequences, tokens = batches
    if sequences is not None and tokens is not None:
        raise InputError("global_batch and global_batch_tokens: state one of them")
    if tokens is None:
        return d.count("global_batch", sequences)
    total = _length("global_batch_tokens", tokens)
    if total % seq:
        near = -(-total // seq) * seq
        raise InputError(
            f"global_batch_tokens = {total:,}: must be a multiple of seq = {seq:,}; take {near:,}"
        )
    return total // seq


def _adapters(rank: _Text, targets: _Text) -> Lora | None:
    """The adapters of a rank; without one nothing may be said of them."""
    from paramcalc.deploy.lora import ALL, Lora

    if rank is not None:
        names = ALL if targets is None else targets
        return Lora(
            o.positive("lora_rank", rank), tuple(dict.fromkeys(names.replace(",", " ").split()))
        )
    if targets is not None:
        raise InputError(f"lora_targets = {targets}: only of adapters; add --lora-rank")
    return None


def _length(name: str, text: str) -> int:
    """Tokens of a sequence or batch, of which 1k is 1,024."""
    from paramcalc.spelling import parse_size

    try:
        value = parse_size(text, tokens=True)
    except ValueError as error:
        raise InputError(f"{name} = {text}: {error}") from None
    if value < 1:
        raise InputError(f"{name} = {text}: must be at least 1; raise it")
    return value
